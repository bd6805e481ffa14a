// export -- a checkpoint, or any model that is read here, as other tools want it. The numbers of a
// save in pieces are read a block at a time and never all held.

#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/model/saved.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/learner/state_pieces.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct export
{
    const char *model, *save, *out, *dtype;
    uint64_t max_shard_bytes;
    bool json;
};

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
            json_pack("{s:s, s:o, s:s, s:s, s:I, s:I}", "schema", "shoal.export.1", "folder",
                      shoal_text(self->out), "digest", hex, "dtype", layout_dtype_name(dtype),
                      "files", (json_int_t)files, "parameters", (json_int_t)model->floats),
            why);
    printf("%s: %" PRIu64 " parameters as %s in %zu file%s\nfrom %s, digest %s\n", self->out,
           model->floats, layout_dtype_name(dtype), files, files == 1 ? "" : "s",
           self->save ? self->save : self->model, hex);
    return 0;
}

static int read_block(void *pieces, uint64_t first, size_t count, float *room, struct why *why,
                      const float **ret_floats)
{
    const struct pieces_item *item = pieces_find(pieces, STATE_PARAMETERS);
    *ret_floats = room;
    return pieces_read(pieces, item, (struct interval){ first, first + count }, room, why);
}

// The numbers of the save, whose digest is known before they are read; of the folder `model`, all
// else.
static int open_save(const struct export *self, struct why *why, struct model_folder *model,
                     pieces_t **ret_pieces)
{
    int rc = saved_open(self->save, why, ret_pieces);
    if (rc == 0) rc = model_folder_prepare(self->model, why, model);
    if (rc == 0) rc = state_check_params(*ret_pieces, &model->layout, why);
    if (rc < 0) return rc;
    return pieces_root(*ret_pieces, pieces_find(*ret_pieces, STATE_PARAMETERS), why,
                       &model->digest);
}

static int run(const struct export *self, struct why *why)
{
    struct model_folder model = { 0 };
    struct model_export how = { .from = self->model, .max_shard_bytes = self->max_shard_bytes };
    pieces_t *pieces = NULL;
    size_t files;
    int rc = read_dtype(self->dtype, why, &how.dtype);
    if (rc == 0)
        rc = self->save ? open_save(self, why, &model, &pieces)
                        : model_folder_load(self->model, why, &model);
    if (pieces) how.source = (struct safetensors_source){ read_block, pieces };
    if (rc == 0) rc = model_folder_export(self->out, &model, &how, why, &files);
    if (rc == 0) rc = print(self, &model, how.dtype, files, why);
    model_folder_free(&model);
    pieces_close(&pieces);
    return rc;
}

static const struct flag flags[] = {
    FLAG("model", 'm', "DIR", TO_TEXT(struct export, model),
         "A Hugging Face folder, a checkpoint for example", .needed = true),
    FLAG("save", 0, "DIR", TO_TEXT(struct export, save),
         "A save in pieces: its parameters, with the config.json and tokenizer of --model"),
    FLAG("out", 'o', "DIR", TO_TEXT(struct export, out), "The new folder", .needed = true),
    FLAG("dtype", 0, "T", TO_TEXT(struct export, dtype),
         "f32, bf16 or f16 (bf16): halves are rounded to nearest"),
    FLAG("max-shard-bytes", 0, "N", TO_NUMBER(struct export, max_shard_bytes, 1, INT64_MAX),
         "Of numbers in one file; a larger model has several, and an index (5000000000)"),
    FLAG("json", 0, NULL, TO_SWITCH(struct export, json), "Print one JSON object"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about =
        "Writes a model for other tools: config.json, safetensors and what tokenizer there is.\n\n"
        "  shoal export --model checkpoints/step-00000460 --out model-bf16\n"
        "  shoal export --model model --save shared/a-17/step-00000120 --dtype f32 --out f32\n",
};

int shoal_export(int argc, char **argv)
{
    struct export self = { .dtype = "bf16", .max_shard_bytes = MODEL_FOLDER_SHARD_BYTES };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
