// eval, sample -- what a model has learned, as a number and as text.

#include "actors/shoal/evaluate.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/learn/pool.h"
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { KEY_JSON = 1000, KEY_THREADS, KEY_TOKEN_BYTES, KEY_TEMPERATURE, KEY_SEED };

struct eval {
    const char *model, *data, *seq_len, *threads, *token_bytes, *prompt, *tokens, *temperature,
        *seed;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct eval *self = state->input;
    switch (key) {
    case 'm':             self->model = arg; break;
    case 'd':             self->data = arg; break;
    case 's':             self->seq_len = arg; break;
    case 'p':             self->prompt = arg; break;
    case 'n':             self->tokens = arg; break;
    case KEY_THREADS:     self->threads = arg; break;
    case KEY_TOKEN_BYTES: self->token_bytes = arg; break;
    case KEY_TEMPERATURE: self->temperature = arg; break;
    case KEY_SEED:        self->seed = arg; break;
    case KEY_JSON:        self->json = true; break;
    case ARGP_KEY_END:
        if (!self->model) argp_error(state, "--model DIR is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int read_threads(const struct eval *self, struct why *why, uint64_t *ret_threads)
{
    *ret_threads = evaluate_threads();
    return self->threads
               ? command_number("--threads", self->threads, 1, POOL_THREADS_MAX, why, ret_threads)
               : 0;
}

// ---- eval ---------------------------------------------------------------------------------------

static int print_evaluation(const struct eval *self, const struct model_folder *model,
                            const struct evaluation *evaluation, struct why *why)
{
    char hex[HASH_HEX];
    hash_to_hex(&model->digest, hex);
    if (self->json)
        return shoal_print_json(
            json_pack("{s:s, s:s, s:s, s:f, s:f, s:I, s:I}", "schema", "shoal.eval.1", "model",
                      self->model, "digest", hex, "nats_per_token", evaluation->nats, "perplexity",
                      exp(evaluation->nats), "tokens", (json_int_t)evaluation->tokens, "parameters",
                      (json_int_t)model->floats),
            why);
    printf("loss %.6f nats per token, perplexity %.4f, over %" PRIu64 " tokens\ndigest %s\n",
           evaluation->nats, exp(evaluation->nats), evaluation->tokens, hex);
    return 0;
}

static int run_eval(const struct eval *self, struct why *why)
{
    struct model_folder model = { 0 };
    struct evaluation evaluation;
    uint64_t seq_len = 0, threads = 1, token_bytes = 2;
    if (!self->data) return why_set(why, FAULT_USAGE, "--data DIR is needed");
    int rc = read_threads(self, why, &threads);
    if (rc == 0 && self->seq_len)
        rc = command_number("--seq-len", self->seq_len, 1, MODEL_SEQ_LEN_MAX, why, &seq_len);
    if (rc == 0 && self->token_bytes)
        rc = command_number("--token-bytes", self->token_bytes, 2, 4, why, &token_bytes);
    if (rc == 0) rc = model_folder_load(self->model, why, &model);
    if (rc < 0) return rc;
    if (seq_len == 0) seq_len = model.shape.seq_len_max;
    struct evaluate_options options = { .data = self->data,
                                        .seq_len = (uint32_t)seq_len,
                                        .token_bytes = (uint32_t)token_bytes,
                                        .threads = (uint32_t)threads };
    rc = evaluate_heldout(&model, &options, why, &evaluation);
    if (rc == 0) rc = print_evaluation(self, &model, &evaluation, why);
    model_folder_free(&model);
    return rc;
}

int shoal_eval(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "model", 'm', "DIR", 0, "A Hugging Face folder, a checkpoint for example", 0 },
        { "data", 'd', "DIR", 0, "A folder of token files", 0 },
        { "seq-len", 's', "N", 0, "Length of a window (the model's longest)", 0 },
        { "token-bytes", KEY_TOKEN_BYTES, "N", 0, "Width of a token: 2 or 4 (2)", 0 },
        { "threads", KEY_THREADS, "N", 0,
          "Compute threads (one per processor); the result is the same", 0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Mean loss of a model over tokens, in windows one after the other: each token but the "
        "first is "
        "predicted once, from those before it in its window.\n\n"
        "  shoal eval --model checkpoints/step-00000600 --data data/heldout -s 128\n"
        "  shoal eval --model model --data data/heldout --json\n",
        NULL,
        NULL,
        NULL
    };
    struct eval self = { 0 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run_eval(&self, &why), &why);
}

// ---- sample -------------------------------------------------------------------------------------

static int run_sample(const struct eval *self, struct why *why)
{
    static char text[EVALUATE_TEXT_MAX + 1];
    struct model_folder model = { 0 };
    uint64_t threads = 1, count = 200, seed = 1;
    double temperature = 0.7;
    int rc = read_threads(self, why, &threads);
    if (rc == 0 && self->tokens)
        rc = command_number("--tokens", self->tokens, 1, EVALUATE_TEXT_MAX, why, &count);
    if (rc == 0 && self->seed) rc = command_number("--seed", self->seed, 0, UINT64_MAX, why, &seed);
    if (rc == 0 && self->temperature)
        rc = shoal_real("--temperature", self->temperature, 0, 10, why, &temperature);
    if (rc == 0 && temperature > 0 && temperature < 0.01)
        rc = why_set(why, FAULT_USAGE, "--temperature %g: 0 (the likeliest) or 0.01 to 10",
                     temperature);
    if (rc == 0) rc = model_folder_load(self->model, why, &model);
    if (rc < 0) return rc;
    rc = evaluate_sample(&model, self->prompt, (uint32_t)count, (float)temperature, seed,
                         (uint32_t)threads, why, text);
    if (rc == 0 && self->json)
        rc = shoal_print_json(json_pack("{s:s, s:s, s:s, s:I, s:f}", "schema", "shoal.sample.1",
                                        "prompt", self->prompt, "text", text, "seed",
                                        (json_int_t)seed, "temperature", temperature),
                              why);
    else if (rc == 0) printf("%s%s\n", self->prompt, text);
    model_folder_free(&model);
    return rc;
}

int shoal_sample(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "model", 'm', "DIR", 0, "A Hugging Face folder whose tokens are bytes", 0 },
        { "prompt", 'p', "TEXT", 0, "What the text begins with (a line's beginning)", 0 },
        { "tokens", 'n', "N", 0, "How many bytes follow (200)", 0 },
        { "temperature", KEY_TEMPERATURE, "T", 0, "0: always the likeliest; 0.01 to 10 (0.7)", 0 },
        { "seed", KEY_SEED, "N", 0, "The same seed gives the same text (1)", 0 },
        { "threads", KEY_THREADS, "N", 0, "Compute threads (one per processor)", 0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Text from a model.\n\n"
        "  shoal sample --model checkpoints/step-00000600 --prompt 'And the LORD said'\n"
        "  shoal sample --model checkpoints/step-00000600 --temperature 0 --tokens 400\n",
        NULL,
        NULL,
        NULL
    };
    struct eval self = { .prompt = "And " };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run_sample(&self, &why), &why);
}
