// manifest -- writes down what the token files of a folder contain, so that all can check them.

#include "actors/shoal/shoal.h"
#include "common/data/manifest.h"
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = 1000, KEY_CHECK, KEY_BLOCKS };

struct making {
    const char *dir, *bytes;
    bool json, check, blocks;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct making *self = state->input;
    switch (key) {
    case 'b':       self->bytes = arg; break;
    case KEY_JSON:  self->json = true; break;
    case KEY_CHECK: self->check = true; break;
    case KEY_BLOCKS: self->blocks = true; break;
    case ARGP_KEY_ARG:
        if (self->dir) argp_usage(state);
        self->dir = arg;
        break;
    case ARGP_KEY_END:
        if (!self->dir) argp_error(state, "DIR is needed");
        if (self->check && self->blocks)
            argp_error(state, "--check compares and --blocks writes: one of them");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int print(const struct making *self, const struct manifest *manifest, struct why *why)
{
    char hex[HASH_HEX];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < manifest->file_count; i++) bytes += manifest->files[i].bytes;
    hash_to_hex(&manifest->digest, hex);
    if (self->json)
        return shoal_print_json(json_pack("{s:s, s:s, s:s, s:I, s:I}", "schema", "shoal.manifest.1",
                                          "folder", self->dir, "digest", hex, "files",
                                          (json_int_t)manifest->file_count, "bytes",
                                          (json_int_t)bytes),
                                why);
    printf("%s: %u files, %" PRIu64 " bytes\ndigest %s\n", self->dir, manifest->file_count, bytes,
           hex);
    return 0;
}

static int run(const struct making *self, struct manifest *manifest, struct why *why)
{
    uint32_t bytes = 2;
    if (self->bytes) bytes = strcmp(self->bytes, "2") == 0 ? 2 : strcmp(self->bytes, "4") == 0 ? 4 : 0;
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

int shoal_manifest(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "token-bytes", 'b', "N", 0, "Of one token: 2 or 4 (2)", 0 },
        { "check", KEY_CHECK, NULL, 0, "Compare every byte with the manifest that is there", 0 },
        { "blocks", KEY_BLOCKS, NULL, 0,
          "Write NAME.blocks too (0.8 % of the data): who reads from a web server then need not "
          "fetch a MiB to check a sample", 0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = { options, parse, "DIR",
        "Writes manifest.json beside the token files (*.bin, *.npy, *.ds) of a folder: a hash tree "
        "of their bytes, by which trainers can check the samples of a data-provider, or of a web "
        "server (data_location Http): put manifest.json there beside the files, and its digest, as "
        "manifest_digest of [data], into state.toml. prepare-text and tokenize make one by "
        "themselves.\n\n"
        "  shoal manifest data/train\n"
        "  shoal manifest data/train --check         finds a file that has changed\n"
        "  shoal manifest data/train --blocks        for a web server\n",
        NULL, NULL, NULL };
    struct making self = { 0 };
    struct manifest manifest = { 0 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    int rc = run(&self, &manifest, &why);
    if (rc == 0) rc = print(&self, &manifest, &why);
    manifest_free(&manifest);
    return fault_exit(rc, &why);
}
