// export -- a checkpoint, or any model that is read here, as other tools want it.

#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = 1000, KEY_DTYPE, KEY_SHARD };

struct export
{
    const char *model, *out, *dtype, *shard;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct export *self = state->input;
    switch (key) {
    case 'm': self->model = arg; break;
    case 'o': self->out = arg; break;
    case KEY_DTYPE: self->dtype = arg; break;
    case KEY_SHARD: self->shard = arg; break;
    case KEY_JSON: self->json = true; break;
    case ARGP_KEY_END:
        if (!self->model) argp_error(state, "--model DIR is needed");
        if (!self->out) argp_error(state, "--out DIR is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int read_dtype(const char *text, struct why *why, enum layout_dtype *ret_dtype)
{
    static const char *const names[LAYOUT_DTYPES] = {
        [LAYOUT_F32] = "f32",
        [LAYOUT_BF16] = "bf16",
        [LAYOUT_F16] = "f16",
    };
    for (enum layout_dtype dtype = 0; dtype < LAYOUT_DTYPES; dtype++) {
        if (strcmp(text, names[dtype]) != 0) continue;
        *ret_dtype = dtype;
        return 0;
    }
    return why_set(why, FAULT_USAGE, "--dtype %.20s: allowed f32, bf16 and f16", text);
}

static int print(const struct export *self, const struct model_folder *model,
                 enum layout_dtype dtype, size_t files, struct why *why)
{
    char hex[HASH_HEX];
    hash_to_hex(&model->digest, hex);
    if (self->json)
        return shoal_print_json(
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "schema", "shoal.export.1", "folder",
                      self->out, "digest", hex, "dtype", layout_dtype_name(dtype), "files",
                      (json_int_t)files, "parameters", (json_int_t)model->floats),
            why);
    printf("%s: %" PRIu64 " parameters as %s in %zu file%s\nfrom %s, digest %s\n", self->out,
           model->floats, layout_dtype_name(dtype), files, files == 1 ? "" : "s", self->model, hex);
    return 0;
}

static int run(const struct export *self, struct why *why)
{
    struct model_folder model = { 0 };
    struct model_export how = { .from = self->model, .max_shard_bytes = MODEL_FOLDER_SHARD_BYTES };
    size_t files;
    int rc = read_dtype(self->dtype, why, &how.dtype);
    if (rc == 0 && self->shard)
        rc = command_number("--max-shard-bytes", self->shard, 1, INT64_MAX, why,
                            &how.max_shard_bytes);
    if (rc == 0) rc = model_folder_load(self->model, why, &model);
    if (rc < 0) return rc;
    rc = model_folder_export(self->out, &model, &how, why, &files);
    if (rc == 0) rc = print(self, &model, how.dtype, files, why);
    model_folder_free(&model);
    return rc;
}

int shoal_export(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "model", 'm', "DIR", 0, "A Hugging Face folder, a checkpoint for example", 0 },
        { "out", 'o', "DIR", 0, "The new folder", 0 },
        { "dtype", KEY_DTYPE, "T", 0, "f32, bf16 or f16 (bf16): halves are rounded to nearest", 0 },
        { "max-shard-bytes", KEY_SHARD, "N", 0,
          "Of numbers in one file; a larger model has several, and an index (5000000000)", 0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Writes a model for other tools: config.json, safetensors and what tokenizer there is.\n\n"
        "  shoal export --model checkpoints/step-00000460 --out model-bf16\n"
        "  shoal export --model model --dtype f32 --max-shard-bytes 1000000000 --out f32\n",
        NULL,
        NULL,
        NULL
    };
    struct export self = { .dtype = "bf16" };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run(&self, &why), &why);
}
