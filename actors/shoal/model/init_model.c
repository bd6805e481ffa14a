// init-model -- the model that a run begins with.

#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The numbers of a shape; 0: not given.
enum { DIM, LAYERS, HEADS, KV_HEADS, FFN, VOCAB, SEQ_LEN, NUMBERS };

struct init {
    const char *config, *out, *tokenizer_dir;
    uint64_t numbers[NUMBERS], seed;
    bool tied, json;
};

static const char *const names[NUMBERS] = {
    [DIM] = "dim", [LAYERS] = "layers", [HEADS] = "heads",     [KV_HEADS] = "kv-heads",
    [FFN] = "ffn", [VOCAB] = "vocab",   [SEQ_LEN] = "seq-len",
};

static int shape_of_flags(const struct init *self, struct why *why, struct model_shape *ret_shape)
{
    const uint64_t fallback[NUMBERS] = {
        [KV_HEADS] = self->numbers[HEADS], [VOCAB] = 256, [SEQ_LEN] = 2048
    };
    uint32_t value[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        value[i] = (uint32_t)(self->numbers[i] ? self->numbers[i] : fallback[i]);
        if (value[i] == 0)
            return why_set(why, FAULT_USAGE, "--%s N is needed beside --dim", names[i]);
    }
    if (value[DIM] % value[HEADS] != 0)
        return why_set(why, FAULT_USAGE, "--dim %u is no multiple of --heads %u", value[DIM],
                       value[HEADS]);
    *ret_shape = (struct model_shape){ .vocab = value[VOCAB],
                                       .dim = value[DIM],
                                       .layers = value[LAYERS],
                                       .heads = value[HEADS],
                                       .kv_heads = value[KV_HEADS],
                                       .head_dim = value[DIM] / value[HEADS],
                                       .ffn = value[FFN],
                                       .seq_len_max = value[SEQ_LEN],
                                       .rope_theta = 10000,
                                       .rms_eps = 1e-6,
                                       .tied = self->tied };
    return 0;
}

static int run(const struct init *self, struct why *why)
{
    struct model_genesis genesis = { .tokenizer_dir = self->tokenizer_dir, .seed = self->seed };
    struct hash digest;
    char hex[HASH_HEX];
    char *config = NULL;
    int rc = self->config ? model_folder_read_config(self->config, why, &genesis.shape, &config)
                          : shape_of_flags(self, why, &genesis.shape);
    for (int i = 0; i < NUMBERS && rc == 0 && self->config; i++)
        if (self->numbers[i])
            rc = why_set(why, FAULT_USAGE, "--%s and --config: the shape comes from one of them",
                         names[i]);
    if (rc == 0 && self->config && self->tied)
        rc = why_set(why, FAULT_USAGE, "--tied and --config: the shape comes from one of them");
    genesis.config = config;
    if (rc == 0) rc = model_folder_create(self->out, &genesis, why, &digest);
    free(config);
    if (rc < 0) return rc;
    uint64_t parameters = model_parameter_count(&genesis.shape);
    hash_to_hex(&digest, hex);
    if (self->json)
        return shoal_print_json(json_pack("{s:s, s:o, s:s, s:I, s:I}", "schema",
                                          "shoal.init-model.1", "folder", shoal_text(self->out),
                                          "digest", hex, "parameters", (json_int_t)parameters,
                                          "seed", (json_int_t)genesis.seed),
                                why);
    printf("%s: %" PRIu64 " parameters of seed %" PRIu64
           "\n\nTo pin it, in state.toml:\n\n[model]\n"
           "digest = \"%s\"\n",
           self->out, parameters, genesis.seed, hex);
    return 0;
}

static const struct flag flags[] = {
    FLAG("config", 0, "FILE", TO_TEXT(struct init, config), "The shape: a config.json of a Llama",
         .group = 1),
    FLAG("dim", 0, "N", TO_NUMBER(struct init, numbers[DIM], 1, MODEL_DIM_MAX),
         "Or by numbers: width of the residual stream", .group = 1),
    FLAG("layers", 0, "N", TO_NUMBER(struct init, numbers[LAYERS], 1, MODEL_LAYERS_MAX), "Layers",
         .group = 1),
    FLAG("heads", 0, "N", TO_NUMBER(struct init, numbers[HEADS], 1, MODEL_HEADS_MAX),
         "Query heads; they divide --dim", .group = 1),
    FLAG("kv-heads", 0, "N", TO_NUMBER(struct init, numbers[KV_HEADS], 1, MODEL_HEADS_MAX),
         "Key and value heads (as --heads)", .group = 1),
    FLAG("ffn", 0, "N", TO_NUMBER(struct init, numbers[FFN], 1, MODEL_FFN_MAX),
         "Width of the feed-forward part", .group = 1),
    FLAG("vocab", 0, "N", TO_NUMBER(struct init, numbers[VOCAB], 1, MODEL_VOCAB_MAX),
         "Vocabulary (256: bytes)", .group = 1),
    FLAG("seq-len", 0, "N", TO_NUMBER(struct init, numbers[SEQ_LEN], 1, MODEL_SEQ_LEN_MAX),
         "Longest sequence (2048)", .group = 1),
    FLAG("tied", 0, NULL, TO_SWITCH(struct init, tied), "The embedding is the head", .group = 1),
    FLAG("seed", 0, "N", TO_NUMBER(struct init, seed, 0, INT64_MAX),
         "Of the random numbers (1); the same bits on every machine", .group = 2),
    FLAG("out", 'o', "DIR", TO_TEXT(struct init, out), "The new folder", .group = 2,
         .needed = true),
    FLAG("tokenizer-dir", 0, "DIR", TO_TEXT(struct init, tokenizer_dir),
         "Copy the tokenizer files found there (a byte tokenizer if the vocabulary is 256)",
         .group = 2),
    FLAG("json", 0, NULL, TO_SWITCH(struct init, json), "Print one JSON object", .group = 2),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct init *self = line;
    if (self->config || self->numbers[DIM]) return 0;
    return why_set(why, FAULT_USAGE,
                   "--config FILE or a shape (--dim --layers --heads --ffn ...) is needed");
}

static const struct command_line line = {
    .flags = flags,
    .check = check,
    .about = "Makes the first parameters of a run, a folder in Hugging Face layout.\n\n"
             "  shoal init-model --config config/demo/model.json --seed 1 --out model\n"
             "  shoal init-model --dim 256 --layers 6 --heads 8 --ffn 688 --out model\n",
};

int shoal_init_model(int argc, char **argv)
{
    struct init self = { .seed = 1 };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
