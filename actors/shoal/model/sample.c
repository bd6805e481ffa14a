// sample -- text from a model.

#include "actors/shoal/model/evaluate.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TEMPERATURE = 1000, KEY_TOP_K, KEY_TOP_P, KEY_SEED, KEY_SAMPLES, KEY_THREADS, KEY_JSON };
enum { TOKENS_MAX = 1 << 16, SAMPLES_MAX = 10000 };

struct sample {
    const char *model, *prompt, *tokens, *temperature, *top_k, *top_p, *seed, *samples, *threads;
    bool json;
    uint64_t tokens_count, samples_count, threads_count;
    struct generate_options how;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct sample *self = state->input;
    switch (key) {
    case 'm': self->model = arg; break;
    case 'p': self->prompt = arg; break;
    case 'n': self->tokens = arg; break;
    case KEY_TEMPERATURE: self->temperature = arg; break;
    case KEY_TOP_K: self->top_k = arg; break;
    case KEY_TOP_P: self->top_p = arg; break;
    case KEY_SEED: self->seed = arg; break;
    case KEY_SAMPLES: self->samples = arg; break;
    case KEY_THREADS: self->threads = arg; break;
    case KEY_JSON: self->json = true; break;
    case ARGP_KEY_END:
        if (!self->model) argp_error(state, "--model DIR is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int read_flags(struct sample *self, struct why *why)
{
    uint64_t top_k = 0;
    double temperature = 0.7, top_p = 1;
    const struct {
        const char *flag, *text;
        uint64_t min, max, *to;
    } numbers[] = {
        { "--tokens", self->tokens, 1, TOKENS_MAX, &self->tokens_count },
        { "--top-k", self->top_k, 1, MODEL_VOCAB_MAX, &top_k },
        { "--seed", self->seed, 0, UINT64_MAX, &self->how.seed },
        { "--samples", self->samples, 1, SAMPLES_MAX, &self->samples_count },
        { "--threads", self->threads, 1, POOL_THREADS_MAX, &self->threads_count },
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == 0; i++)
        if (numbers[i].text)
            rc = command_number(numbers[i].flag, numbers[i].text, numbers[i].min, numbers[i].max,
                                why, numbers[i].to);
    if (rc == 0 && self->temperature)
        rc = shoal_real("--temperature", self->temperature, 0, 10, why, &temperature);
    if (rc == 0 && self->top_p) rc = shoal_real("--top-p", self->top_p, 0, 1, why, &top_p);
    self->how.top_k = (uint32_t)top_k;
    self->how.temperature = (float)temperature;
    self->how.top_p = (float)top_p;
    if (rc == 0 && generate_check(&self->how, why) < 0) rc = FAULT_USAGE;
    return rc;
}

static int print_json(const struct sample *self, json_t *texts, struct why *why)
{
    return shoal_print_json(
        json_pack("{s:s, s:s, s:o, s:I, s:f, s:I, s:f}", "schema", "shoal.sample.2", "prompt",
                  self->prompt, "texts", texts, "seed", (json_int_t)self->how.seed, "temperature",
                  (double)self->how.temperature, "top_k", (json_int_t)self->how.top_k, "top_p",
                  (double)self->how.top_p),
        why);
}

// Sample i is drawn with the seed plus i; the prompt is read once.
static int write_texts(const struct sample *self, decoder_t *decoder, const text_codec_t *codec,
                       struct why *why)
{
    struct generate_options how = self->how;
    json_t *texts = json_array();
    int rc = 0;
    for (uint64_t i = 0; i < self->samples_count && rc == 0; i++, how.seed++) {
        char *text = NULL;
        rc = evaluate_sample(decoder, codec, self->prompt, (uint32_t)self->tokens_count, &how, why,
                             &text);
        if (rc == 0 && self->json) json_array_append_new(texts, json_string(text));
        else if (rc == 0) {
            printf("%s%s%s\n", i ? "\n" : "", self->prompt, text);
            fflush(stdout);
        }
        free(text);
    }
    if (rc == 0 && self->json) return print_json(self, texts, why);
    json_decref(texts);
    return rc;
}

static int run(struct sample *self, struct why *why)
{
    struct model_folder model = { 0 };
    text_codec_t *codec = NULL;
    decoder_t *decoder = NULL;
    pool_t *pool = NULL;
    int rc = read_flags(self, why);
    if (rc == 0) rc = model_folder_load(self->model, why, &model);
    if (rc == 0) rc = text_codec_open(self->model, model.shape.vocab, why, &codec);
    if (rc == 0) {
        pool = pool_new((uint32_t)self->threads_count);
        rc = evaluate_decoder(&model, strlen(self->prompt) + self->tokens_count, pool, why,
                              &decoder);
    }
    if (rc == 0) rc = write_texts(self, decoder, codec, why);
    decoder_destroy(&decoder);
    pool_destroy(&pool);
    text_codec_close(&codec);
    model_folder_free(&model);
    return rc;
}

int shoal_sample(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "model", 'm', "DIR", 0, "A Hugging Face folder; its tokenizer.json, or bytes", 0 },
        { "prompt", 'p', "TEXT", 0, "What the text begins with (\"And \")", 0 },
        { "tokens", 'n', "N", 0, "How many tokens follow (200)", 0 },
        { "temperature", KEY_TEMPERATURE, "T", 0, "0: always the likeliest; 0.01 to 10 (0.7)", 0 },
        { "top-k", KEY_TOP_K, "N", 0, "Only of the N likeliest tokens (all)", 0 },
        { "top-p", KEY_TOP_P, "P", 0, "Only of the likeliest that make up this share (1)", 0 },
        { "seed", KEY_SEED, "N", 0, "The same seed gives the same text (1)", 0 },
        { "samples", KEY_SAMPLES, "N", 0, "So many texts, of this seed and those after it (1)", 0 },
        { "threads", KEY_THREADS, "N", 0, "Compute threads (one per processor)", 0 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Text from a model.\n\n"
        "  shoal sample --model checkpoints/step-00000460 --prompt 'And the LORD said'\n"
        "  shoal sample --model checkpoints/step-00000460 --top-p 0.9 --samples 3\n",
        NULL,
        NULL,
        NULL
    };
    struct sample self = { .prompt = "And ",
                           .tokens_count = 200,
                           .samples_count = 1,
                           .threads_count = shoal_threads(),
                           .how.seed = 1 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run(&self, &why), &why);
}
