// init-model -- the model that a run begins with.

#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_CONFIG = 1000, KEY_TIED, KEY_JSON, KEY_TOKENIZER, KEY_NUMBER };

// The numbers of a shape that have a flag of their own.
enum { DIM, LAYERS, HEADS, KV_HEADS, FFN, VOCAB, SEQ_LEN, SEED, NUMBERS };
static const struct {
    const char *flag;
    uint64_t max;
} numbers[NUMBERS] = {
    [DIM] = { "dim", MODEL_DIM_MAX },
    [LAYERS] = { "layers", MODEL_LAYERS_MAX },
    [HEADS] = { "heads", MODEL_HEADS_MAX },
    [KV_HEADS] = { "kv-heads", MODEL_HEADS_MAX },
    [FFN] = { "ffn", MODEL_FFN_MAX },
    [VOCAB] = { "vocab", MODEL_VOCAB_MAX },
    [SEQ_LEN] = { "seq-len", MODEL_SEQ_LEN_MAX },
    [SEED] = { "seed", UINT64_MAX },
};

struct init {
    const char *config, *out, *tokenizer_dir, *text[NUMBERS];
    bool tied, json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct init *self = state->input;
    if (key == KEY_CONFIG) self->config = arg;
    else if (key == KEY_TIED) self->tied = true;
    else if (key == KEY_JSON) self->json = true;
    else if (key == KEY_TOKENIZER) self->tokenizer_dir = arg;
    else if (key == 'o') self->out = arg;
    else if (key >= KEY_NUMBER && key < KEY_NUMBER + NUMBERS) self->text[key - KEY_NUMBER] = arg;
    else if (key == ARGP_KEY_END && !self->out) argp_error(state, "--out DIR is needed");
    else if (key == ARGP_KEY_END && !self->config && !self->text[DIM])
        argp_error(state, "--config FILE or a shape (--dim --layers --heads --ffn ...) is needed");
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

static int read_number(const struct init *self, int which, uint64_t fallback, struct why *why,
                       uint64_t *ret_value)
{
    char flag[32];
    snprintf(flag, sizeof flag, "--%s", numbers[which].flag);
    if (self->text[which])
        return command_number(flag, self->text[which], which == SEED ? 0 : 1, numbers[which].max,
                              why, ret_value);
    if (fallback == 0) return why_set(why, FAULT_USAGE, "%s N is needed beside --dim", flag);
    *ret_value = fallback;
    return 0;
}

static int shape_of_flags(const struct init *self, struct why *why, struct model_shape *ret_shape)
{
    uint64_t value[NUMBERS] = { 0 };
    static const uint64_t fallback[NUMBERS] = { [VOCAB] = 256, [SEQ_LEN] = 2048 };
    int rc = 0;
    for (int i = 0; i < SEED && rc == 0; i++)
        rc = read_number(self, i, i == KV_HEADS ? value[HEADS] : fallback[i], why, &value[i]);
    if (rc < 0) return rc;
    if (value[DIM] % value[HEADS] != 0)
        return why_set(why, FAULT_USAGE, "--dim %" PRIu64 " is no multiple of --heads %" PRIu64,
                       value[DIM], value[HEADS]);
    *ret_shape = (struct model_shape){ .vocab = (uint32_t)value[VOCAB],
                                       .dim = (uint32_t)value[DIM],
                                       .layers = (uint32_t)value[LAYERS],
                                       .heads = (uint32_t)value[HEADS],
                                       .kv_heads = (uint32_t)value[KV_HEADS],
                                       .head_dim = (uint32_t)(value[DIM] / value[HEADS]),
                                       .ffn = (uint32_t)value[FFN],
                                       .seq_len_max = (uint32_t)value[SEQ_LEN],
                                       .rope_theta = 10000,
                                       .rms_eps = 1e-6,
                                       .tied = self->tied };
    return 0;
}

static int run(const struct init *self, struct why *why)
{
    struct model_genesis genesis = { .tokenizer_dir = self->tokenizer_dir };
    struct hash digest;
    char hex[HASH_HEX];
    char *config = NULL;
    int rc = self->config ? model_folder_read_config(self->config, why, &genesis.shape, &config)
                          : shape_of_flags(self, why, &genesis.shape);
    for (int i = 0; i < SEED && rc == 0 && self->config; i++)
        if (self->text[i])
            rc = why_set(why, FAULT_USAGE, "--%s and --config: the shape comes from one of them",
                         numbers[i].flag);
    if (rc == 0) rc = read_number(self, SEED, 1, why, &genesis.seed);
    genesis.config = config;
    if (rc == 0) rc = model_folder_create(self->out, &genesis, why, &digest);
    free(config);
    if (rc < 0) return rc;
    uint64_t parameters = model_parameter_count(&genesis.shape);
    hash_to_hex(&digest, hex);
    if (self->json)
        return shoal_print_json(json_pack("{s:s, s:s, s:s, s:I, s:I}", "schema",
                                          "shoal.init-model.1", "folder", self->out, "digest", hex,
                                          "parameters", (json_int_t)parameters, "seed",
                                          (json_int_t)genesis.seed),
                                why);
    printf("%s: %" PRIu64 " parameters of seed %" PRIu64
           "\n\nTo pin it, in state.toml:\n\n[model]\n"
           "digest = \"%s\"\n",
           self->out, parameters, genesis.seed, hex);
    return 0;
}

int shoal_init_model(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "config", KEY_CONFIG, "FILE", 0, "The shape: a config.json of a Llama", 1 },
        { "dim", KEY_NUMBER + DIM, "N", 0, "Or by numbers: width of the residual stream", 1 },
        { "layers", KEY_NUMBER + LAYERS, "N", 0, "Layers", 1 },
        { "heads", KEY_NUMBER + HEADS, "N", 0, "Query heads; they divide --dim", 1 },
        { "kv-heads", KEY_NUMBER + KV_HEADS, "N", 0, "Key and value heads (as --heads)", 1 },
        { "ffn", KEY_NUMBER + FFN, "N", 0, "Width of the feed-forward part", 1 },
        { "vocab", KEY_NUMBER + VOCAB, "N", 0, "Vocabulary (256: bytes)", 1 },
        { "seq-len", KEY_NUMBER + SEQ_LEN, "N", 0, "Longest sequence (2048)", 1 },
        { "tied", KEY_TIED, NULL, 0, "The embedding is the head", 1 },
        { "seed", KEY_NUMBER + SEED, "N", 0,
          "Of the random numbers (1); the same bits on every machine", 2 },
        { "out", 'o', "DIR", 0, "The new folder", 2 },
        { "tokenizer-dir", KEY_TOKENIZER, "DIR", 0,
          "Copy the tokenizer files found there (a byte tokenizer if "
          "the vocabulary is 256)",
          2 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 2 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Makes the first parameters of a run, a folder in Hugging Face layout.\n\n"
        "  shoal init-model --config config/demo/model.json --seed 1 --out model\n"
        "  shoal init-model --dim 256 --layers 6 --heads 8 --ffn 688 --out model\n",
        NULL,
        NULL,
        NULL
    };
    struct init self = { 0 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run(&self, &why), &why);
}
