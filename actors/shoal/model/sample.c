// sample -- text from a model.

#include "actors/shoal/model/evaluate.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS_MAX = 1 << 16, SAMPLES_MAX = 10000 };

struct sample {
    const char *model, *prompt;
    bool json;
    uint64_t tokens, samples, threads, seed, top_k;
    double temperature, top_p;
    struct generate_options how;
    uint32_t ends[TEXT_CODEC_ENDS_MAX]; // For `how`
};

static int read_how(struct sample *self, struct why *why)
{
    self->how = (struct generate_options){ .seed = self->seed,
                                           .top_k = (uint32_t)self->top_k,
                                           .temperature = (float)self->temperature,
                                           .top_p = (float)self->top_p };
    return generate_check(&self->how, why) < 0 ? FAULT_USAGE : 0;
}

static int print_json(const struct sample *self, json_t *texts, struct why *why)
{
    return shoal_print_json(
        json_pack("{s:s, s:o, s:o, s:I, s:f, s:I, s:f}", "schema", "shoal.sample.2", "prompt",
                  shoal_text(self->prompt), "texts", texts, "seed", (json_int_t)self->how.seed,
                  "temperature", (double)self->how.temperature, "top_k",
                  (json_int_t)self->how.top_k, "top_p", (double)self->how.top_p),
        why);
}

// Sample i is drawn with the seed plus i; the prompt is read once.
static int write_texts(const struct sample *self, decoder_t *decoder, const text_codec_t *codec,
                       struct why *why)
{
    struct generate_options how = self->how;
    json_t *texts = json_array();
    int rc = 0;
    for (uint64_t i = 0; i < self->samples && rc == 0; i++, how.seed++) {
        char *text = NULL;
        rc =
            evaluate_sample(decoder, codec, self->prompt, (uint32_t)self->tokens, &how, why, &text);
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
    int rc = read_how(self, why);
    if (rc == 0) rc = model_folder_load(self->model, why, &model);
    if (rc == 0) rc = text_codec_open(self->model, model.shape.vocab, why, &codec);
    if (rc == 0)
        rc = text_codec_ends(codec, self->model, model.shape.vocab, why, self->ends,
                             &self->how.ends_count);
    if (rc == 0) {
        self->how.ends = self->ends;
        pool = pool_new((uint32_t)self->threads);
        rc = evaluate_decoder(&model, strlen(self->prompt) + self->tokens, pool, why, &decoder);
    }
    if (rc == 0) rc = write_texts(self, decoder, codec, why);
    decoder_destroy(&decoder);
    pool_destroy(&pool);
    text_codec_close(&codec);
    model_folder_free(&model);
    return rc;
}

static const struct flag flags[] = {
    FLAG("model", 'm', "DIR", TO_TEXT(struct sample, model),
         "A Hugging Face folder; its tokenizer.json, or bytes", .needed = true),
    FLAG("prompt", 'p', "TEXT", TO_TEXT(struct sample, prompt),
         "What the text begins with (\"And \")"),
    FLAG("tokens", 0, "N", TO_NUMBER(struct sample, tokens, 1, TOKENS_MAX),
         "At most this many tokens follow (200)"),
    FLAG("temperature", 0, "T", TO_REAL(struct sample, temperature, 0, 10),
         "0 to 10; 0 takes the likeliest token (0.7)"),
    FLAG("top-k", 0, "N", TO_NUMBER(struct sample, top_k, 1, MODEL_VOCAB_MAX),
         "Draw from the N likeliest tokens (all)"),
    FLAG("top-p", 0, "P", TO_REAL(struct sample, top_p, 0, 1),
         "Draw from the likeliest that make up this share (1)"),
    FLAG("seed", 0, "N", TO_NUMBER(struct sample, seed, 0, INT64_MAX),
         "The same seed gives the same text (1)"),
    FLAG("samples", 0, "N", TO_NUMBER(struct sample, samples, 1, SAMPLES_MAX),
         "Number of texts; each has the next seed (1)"),
    FLAG("threads", 0, "N", TO_NUMBER(struct sample, threads, 1, POOL_THREADS_MAX),
         "Compute threads (one per processor)"),
    FLAG("json", 0, NULL, TO_SWITCH(struct sample, json), "Print one JSON object"),
    { 0 },
};

// A model's folder is meant, or that of a run, whose checkpoints are such folders.
static const char *say_stray(const char *argument, char text[COMMAND_STRAY_MAX])
{
    char path[COMMAND_STRAY_MAX];
    snprintf(path, sizeof path, "%.300s/config.json", argument);
    if (access(path, F_OK) == 0)
        return snprintf(text, COMMAND_STRAY_MAX, "%.300s is the folder of a model: --model %.300s",
                        argument, argument),
               text;
    snprintf(path, sizeof path, "%.300s/state.toml", argument);
    if (access(path, F_OK) != 0) return NULL;
    snprintf(text, COMMAND_STRAY_MAX,
             "%.300s is the folder of a run: --model %.300s/run/checkpoints/step-... takes one of "
             "its models",
             argument, argument);
    return text;
}

static const struct command_line line = {
    .flags = flags,
    .stray = say_stray,
    .about = "Text from a model, up to its end-of-text token if that comes.\n\n"
             "  shoal sample --model checkpoints/step-00000460 --prompt 'And the LORD said'\n"
             "  shoal sample --model checkpoints/step-00000460 --top-p 0.9 --samples 3\n",
};

int shoal_sample(int argc, char **argv)
{
    struct sample self = { .prompt = "And ",
                           .tokens = 200,
                           .temperature = 0.7,
                           .top_p = 1,
                           .samples = 1,
                           .threads = shoal_threads(),
                           .seed = 1 };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
