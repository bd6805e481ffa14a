// manifest -- writes down what the token files of a folder contain, so that all can check them.

#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "common/actor/command.h"
#include "common/data/manifest.h"
#include "common/data/source.h"
#include "common/data/token_files.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct making {
    const char *dir, *bytes, *data_config;
    bool json, check, blocks;
    struct data_config config;      // Of `data_config`:
    struct wire_data_source source; // whose folder is `dir`
    struct hash dataset;            // and whose samples are this
};

static int print(const struct making *self, const struct manifest *manifest, struct why *why)
{
    char hex[HASH_HEX], dataset[HASH_HEX];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < manifest->file_count; i++) bytes += manifest->files[i].bytes;
    hash_to_hex(&manifest->digest, hex);
    hash_to_hex(&self->dataset, dataset);
    if (self->json)
        return shoal_print_json(json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:s*}", "schema",
                                          "shoal.manifest.1", "folder", shoal_text(self->dir),
                                          "digest", hex, "files", (json_int_t)manifest->file_count,
                                          "bytes", (json_int_t)bytes, "token_bytes",
                                          (json_int_t)manifest->token_bytes, "dataset_digest",
                                          self->data_config ? dataset : NULL),
                                why);
    printf("%s: %u file%s, %" PRIu64 " bytes, %u a token\ndigest %s\n", self->dir,
           manifest->file_count, show_s(manifest->file_count), bytes, manifest->token_bytes, hex);
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

// Opens the data as a data-provider with this data.toml does.
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
    uint32_t bytes = self->source.token_bytes;
    if (self->bytes) {
        bytes = strcmp(self->bytes, "2") == 0 ? 2 : strcmp(self->bytes, "4") == 0 ? 4 : 0;
        if (bytes == 0)
            return why_set(why, FAULT_USAGE, "--token-bytes %.20s: allowed 2 and 4", self->bytes);
    }
    if (self->check) {
        int rc = manifest_read(self->dir, why, manifest);
        return rc < 0 ? rc : manifest_verify(manifest, self->dir, why);
    }
    int rc = bytes ? 0 : token_files_width(self->dir, why, &bytes);
    if (rc == 0) rc = manifest_build(self->dir, bytes, why, manifest);
    if (rc == 0 && self->blocks) rc = manifest_write_blocks(manifest, self->dir, why);
    return rc < 0 ? rc : manifest_write(manifest, self->dir, why);
}

static int run(struct making *self, struct manifest *manifest, struct why *why)
{
    int rc = self->data_config ? read_config(self, why) : 0;
    if (rc == 0) rc = make(self, manifest, why);
    return rc < 0 || !self->data_config ? rc : name_dataset(self, why);
}

static const struct flag flags[] = {
    FLAG("data-config", 'd', "FILE", TO_TEXT(struct making, data_config),
         "A data-provider's data.toml, in place of DIR: prints dataset_digest, too"),
    FLAG("token-bytes", 0, "N", TO_TEXT(struct making, bytes),
         "Bytes of a token: 2 or 4 (those of the manifest that is there)"),
    FLAG("check", 0, NULL, TO_SWITCH(struct making, check),
         "Compare every byte with the manifest that is there"),
    FLAG("blocks", 0, NULL, TO_SWITCH(struct making, blocks),
         "Write NAME.blocks too (0.8 % of the data): a trainer that reads from a web server then "
         "need not fetch a MiB to check a sample"),
    FLAG("json", 0, NULL, TO_SWITCH(struct making, json), "Print one JSON object"),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct making *self = line;
    if (!self->dir == !self->data_config)
        return why_set(why, FAULT_USAGE, "DIR or --data-config FILE is needed, and not both");
    if (self->bytes && self->data_config)
        return why_set(why, FAULT_USAGE, "--token-bytes belongs to DIR: FILE says it itself");
    if (self->check && self->blocks)
        return why_set(why, FAULT_USAGE, "--check compares and --blocks writes: one of them");
    return 0;
}

static const struct command_line line = {
    .flags = flags,
    .usage = "DIR\n--data-config FILE",
    .about =
        "Writes manifest.json beside the token files (*.bin, *.npy, *.ds) of a folder: a hash tree "
        "of their bytes, by which trainers check samples. prepare-text and tokenize make one by "
        "themselves. What to pin in [data] of state.toml: for data-providers (data_location "
        "Server) the dataset_digest that --data-config prints, which names the order of the "
        "samples, too; for a web server (Http), with manifest.json put there beside the files, or "
        "folders of the trainers' own (Local), the digest, as manifest_digest.\n\n"
        "  shoal manifest data/train --token-bytes 2\n"
        "  shoal manifest --data-config data.toml    for data-providers\n"
        "  shoal manifest data/train --check         finds a file that has changed\n"
        "  shoal manifest data/train --blocks        for a web server\n",
    .arguments = TO_TEXT(struct making, dir),
    .check = check,
};

int shoal_manifest(int argc, char **argv)
{
    struct making self = { 0 };
    struct manifest manifest = { 0 };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &manifest, &why);
    if (rc == 0) rc = print(&self, &manifest, &why);
    manifest_free(&manifest);
    return fault_exit(rc, &why);
}
