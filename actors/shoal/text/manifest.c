// manifest -- writes down what the token files of a folder contain, so that all can check them.

#include "actors/shoal/shoal.h"
#include "common/data/manifest.h"
#include "common/data/source.h"
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = 1000, KEY_CHECK, KEY_BLOCKS };

struct making {
    const char *dir, *bytes, *data_config;
    bool json, check, blocks;
    struct data_config config;      // Of `data_config`:
    struct wire_data_source source; // whose folder is `dir`
    struct hash dataset;            // and whose samples are this
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct making *self = state->input;
    switch (key) {
    case 'b': self->bytes = arg; break;
    case 'd': self->data_config = arg; break;
    case KEY_JSON: self->json = true; break;
    case KEY_CHECK: self->check = true; break;
    case KEY_BLOCKS: self->blocks = true; break;
    case ARGP_KEY_ARG:
        if (self->dir) argp_usage(state);
        self->dir = arg;
        break;
    case ARGP_KEY_END:
        if (!self->dir == !self->data_config)
            argp_error(state, "DIR or --data-config FILE is needed, and not both");
        if (self->bytes && self->data_config)
            argp_error(state, "--token-bytes belongs to DIR: FILE says it itself");
        if (self->check && self->blocks)
            argp_error(state, "--check compares and --blocks writes: one of them");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int print(const struct making *self, const struct manifest *manifest, struct why *why)
{
    char hex[HASH_HEX], dataset[HASH_HEX];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < manifest->file_count; i++) bytes += manifest->files[i].bytes;
    hash_to_hex(&manifest->digest, hex);
    hash_to_hex(&self->dataset, dataset);
    if (self->json)
        return shoal_print_json(
            json_pack("{s:s, s:s, s:s, s:I, s:I, s:s*}", "schema", "shoal.manifest.1", "folder",
                      self->dir, "digest", hex, "files", (json_int_t)manifest->file_count, "bytes",
                      (json_int_t)bytes, "dataset_digest", self->data_config ? dataset : NULL),
            why);
    printf("%s: %u files, %" PRIu64 " bytes\ndigest %s\n", self->dir, manifest->file_count, bytes,
           hex);
    if (self->data_config) printf("dataset_digest %s\n", dataset);
    return 0;
}

static int read_config(struct making *self, struct why *why)
{
    static struct config_faults faults;
    int rc = config_load_data(self->data_config, &self->config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s", self->data_config);
    rc = source_of_data_config(&self->config, why, &self->source);
    self->dir = self->source.where;
    return rc;
}

// As a data-provider with this data.toml opens it.
static int name_dataset(struct making *self, struct why *why)
{
    const struct samples_config samples = { .seq_len = (uint32_t)self->config.seq_len };
    provider_t *provider;
    int rc = source_open(&self->source, &samples, NULL, why, &provider);
    if (rc < 0) return rc;
    self->dataset = provider_dataset_digest(provider);
    provider_close(&provider);
    return 0;
}

static int make(const struct making *self, struct manifest *manifest, struct why *why)
{
    uint32_t bytes = self->data_config ? self->source.token_bytes : 2;
    if (self->bytes)
        bytes = strcmp(self->bytes, "2") == 0 ? 2 : strcmp(self->bytes, "4") == 0 ? 4 : 0;
    if (bytes == 0)
        return why_set(why, FAULT_USAGE, "--token-bytes %.20s: allowed 2 and 4", self->bytes);
    if (self->check) {
        int rc = manifest_read(self->dir, why, manifest);
        return rc < 0 ? rc : manifest_verify(manifest, self->dir, why);
    }
    int rc = manifest_build(self->dir, bytes, why, manifest);
    if (rc == 0 && self->blocks) rc = manifest_write_blocks(manifest, self->dir, why);
    return rc < 0 ? rc : manifest_write(manifest, self->dir, why);
}

static int run(struct making *self, struct manifest *manifest, struct why *why)
{
    int rc = self->data_config ? read_config(self, why) : 0;
    if (rc == 0) rc = make(self, manifest, why);
    return rc < 0 || !self->data_config ? rc : name_dataset(self, why);
}

int shoal_manifest(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "data-config", 'd', "FILE", 0,
          "A data-provider's data.toml, in place of DIR: prints "
          "dataset_digest, too",
          0 },
        { "token-bytes", 'b', "N", 0, "Of one token: 2 or 4 (2)", 0 },
        { "check", KEY_CHECK, NULL, 0, "Compare every byte with the manifest that is there", 0 },
        { "blocks", KEY_BLOCKS, NULL, 0,
          "Write NAME.blocks too (0.8 % of the data): who reads from a web server then need not "
          "fetch a MiB to check a sample",
          0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        "DIR\n--data-config FILE",
        "Writes manifest.json beside the token files (*.bin, *.npy, *.ds) of a folder: a hash tree "
        "of their bytes, by which trainers check samples. prepare-text and tokenize make one by "
        "themselves. What to pin in [data] of state.toml: for data-providers (data_location "
        "Server) "
        "the dataset_digest that --data-config prints, which names the order of the samples, too; "
        "for a web server (Http), with manifest.json put there beside the files, or folders of the "
        "trainers' own (Local), the digest, as manifest_digest.\n\n"
        "  shoal manifest data/train\n"
        "  shoal manifest --data-config data.toml    for data-providers\n"
        "  shoal manifest data/train --check         finds a file that has changed\n"
        "  shoal manifest data/train --blocks        for a web server\n",
        NULL,
        NULL,
        NULL
    };
    struct making self = { 0 };
    struct manifest manifest = { 0 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    int rc = run(&self, &manifest, &why);
    if (rc == 0) rc = print(&self, &manifest, &why);
    manifest_free(&manifest);
    return fault_exit(rc, &why);
}
