// logits -- what a model folder says after each of some tokens, to hold against transformers.
//
//     logits MODEL_DIR < tokens > logits       u32 in, float32 [tokens][vocab] out, little-endian
//
// Each row is a pass of its own over the tokens up to there, so that nothing hangs on the passes.

#include "actors/shoal/model/model_folder.h"
#include "common/model/model.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS_MAX = 1024 };

static int print_logits(const struct model_folder *folder, const uint32_t *tokens, uint32_t count,
                        struct why *why)
{
    const struct model_options options = { .batch_max = 1, .seq_max = count };
    model_t *model;
    float *logits = calloc(folder->shape.vocab, sizeof *logits);
    if (!logits) return FAULT_MEMORY;
    int rc = model_new(&folder->shape, &options, NULL, why, &model);
    for (uint32_t n = 1; n <= count && rc == 0; n++) {
        rc = model_logits_last(model, folder->params, tokens, n, why, logits);
        if (rc == 0 &&
            fwrite(logits, sizeof *logits, folder->shape.vocab, stdout) != folder->shape.vocab)
            rc = why_set(why, FAULT_IO, "standard output");
    }
    if (rc == 0) model_destroy(&model);
    free(logits);
    return rc;
}

int main(int argc, char **argv)
{
    struct why why = { 0 };
    struct model_folder folder;
    static uint32_t tokens[TOKENS_MAX];
    const uint32_t count = (uint32_t)fread(tokens, sizeof *tokens, TOKENS_MAX, stdin);
    if (argc != 2 || count == 0)
        return fault_exit(why_set(&why, FAULT_USAGE, "logits MODEL_DIR < tokens"), &why);
    int rc = model_folder_load(argv[1], &why, &folder);
    if (rc == 0) {
        rc = print_logits(&folder, tokens, count, &why);
        model_folder_free(&folder);
    }
    return fault_exit(rc, &why);
}
