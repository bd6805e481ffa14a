// eval -- what a model has learned, as a number: its loss on tokens it never saw, and how many
// multiple-choice questions it gets right.

#include "actors/shoal/model/choices.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_JSON = 1000, KEY_THREADS, KEY_TOKEN_BYTES, KEY_SHOTS, KEY_SHOTS_FILE, KEY_LIMIT };

struct eval {
    const char *model, *data, *choices, *seq_len, *threads, *token_bytes, *shots, *shots_file,
        *limit;
    bool json;
    uint64_t seq, threads_count, token_width, shots_count, limit_count;
    struct model_folder folder;
    text_codec_t *codec; // NULL: no text can be made of its tokens
    pool_t *pool;
    json_t *report;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct eval *self = state->input;
    switch (key) {
    case 'm': self->model = arg; break;
    case 'd': self->data = arg; break;
    case 'c': self->choices = arg; break;
    case 's': self->seq_len = arg; break;
    case KEY_THREADS: self->threads = arg; break;
    case KEY_TOKEN_BYTES: self->token_bytes = arg; break;
    case KEY_SHOTS: self->shots = arg; break;
    case KEY_SHOTS_FILE: self->shots_file = arg; break;
    case KEY_LIMIT: self->limit = arg; break;
    case KEY_JSON: self->json = true; break;
    case ARGP_KEY_END:
        if (!self->model) argp_error(state, "--model DIR is needed");
        if (!self->data && !self->choices)
            argp_error(state, "--data DIR or --choices FILE is needed");
        if (!self->choices && (self->shots || self->shots_file || self->limit))
            argp_error(state, "--shots, --shots-file and --limit belong to --choices");
        if (self->shots_file && !self->shots) argp_error(state, "--shots-file without --shots N");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int read_flags(struct eval *self, struct why *why)
{
    const struct {
        const char *flag, *text;
        uint64_t min, max, fallback, *to;
    } numbers[] = {
        { "--seq-len", self->seq_len, 1, MODEL_SEQ_LEN_MAX, 0, &self->seq },
        { "--threads", self->threads, 1, POOL_THREADS_MAX, shoal_threads(), &self->threads_count },
        { "--token-bytes", self->token_bytes, 2, 4, 2, &self->token_width },
        { "--shots", self->shots, 0, CHOICES_SHOTS_MAX, 0, &self->shots_count },
        { "--limit", self->limit, 1, CHOICES_QUESTIONS_MAX, CHOICES_QUESTIONS_MAX,
          &self->limit_count },
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == 0; i++) {
        *numbers[i].to = numbers[i].fallback;
        if (numbers[i].text)
            rc = command_number(numbers[i].flag, numbers[i].text, numbers[i].min, numbers[i].max,
                                why, numbers[i].to);
    }
    return rc;
}

// ---- tokens held out ----------------------------------------------------------------------------

static void add_heldout(struct eval *self, const struct evaluation *evaluation)
{
    const double sum = evaluation->nats * (double)evaluation->tokens;
    const bool has_bytes = evaluation->bytes > 0;
    json_t *per_byte = has_bytes ? json_real(sum / (double)evaluation->bytes) : json_null();
    json_object_set_new(self->report, "nats_per_token", json_real(evaluation->nats));
    json_object_set_new(self->report, "perplexity", json_real(exp(evaluation->nats)));
    json_object_set_new(self->report, "nats_per_byte", per_byte);
    json_object_set_new(self->report, "tokens", json_integer((json_int_t)evaluation->tokens));
    json_object_set_new(self->report, "bytes",
                        has_bytes ? json_integer((json_int_t)evaluation->bytes) : json_null());
    if (self->json) return;
    printf("loss %.6f nats per token, perplexity %.4f, over %" PRIu64 " tokens\n", evaluation->nats,
           exp(evaluation->nats), evaluation->tokens);
    if (has_bytes)
        printf("     %.6f nats per byte, over %" PRIu64 " bytes\n", sum / (double)evaluation->bytes,
               evaluation->bytes);
    else printf("     nats per byte unknown: no tokenizer says what text the tokens stand for\n");
}

static int measure_heldout(struct eval *self, struct why *why)
{
    struct evaluation evaluation;
    struct evaluate_options options = {
        .data = self->data,
        .codec = self->codec,
        .seq_len = self->seq ? (uint32_t)self->seq : self->folder.shape.seq_len_max,
        .token_bytes = (uint32_t)self->token_width,
        .threads = (uint32_t)self->threads_count,
    };
    const int rc = evaluate_heldout(&self->folder, &options, why, &evaluation);
    if (rc == 0) add_heldout(self, &evaluation);
    return rc;
}

// ---- questions ----------------------------------------------------------------------------------

static bool say_asked(void *arg, size_t done, size_t of)
{
    (void)arg;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%zu of %zu questions%s", done, of, done == of ? "\r\033[K" : "");
    return true;
}

static void add_choices(struct eval *self, const struct choices_result *result)
{
    const uint64_t all = result->questions, right = result->right;
    const uint64_t normalized = result->right_normalized;
    const double acc = (double)right / (double)all, acc_norm = (double)normalized / (double)all;
    const double err = choices_stderr(right, all), err_norm = choices_stderr(normalized, all);
    json_object_set_new(self->report, "questions", json_integer((json_int_t)all));
    json_object_set_new(self->report, "shots", json_integer((json_int_t)self->shots_count));
    json_object_set_new(self->report, "acc", json_real(acc));
    json_object_set_new(self->report, "acc_stderr", json_real(err));
    json_object_set_new(self->report, "acc_norm", json_real(acc_norm));
    json_object_set_new(self->report, "acc_norm_stderr", json_real(err_norm));
    if (self->json) return;
    printf("acc       %.4f (standard error %.4f), %" PRIu64 " of %" PRIu64 " questions, %" PRIu64
           " shots\nacc_norm  %.4f (standard error %.4f), by log-probability per character\n",
           acc, err, right, all, self->shots_count, acc_norm, err_norm);
}

static int ask(struct eval *self, const struct choices *asked, const struct choices *shots,
               struct why *why)
{
    const bool own = shots == asked; // The head of the file: shown, and so not asked
    const size_t first = own ? (size_t)self->shots_count : 0;
    if (self->shots_count > shots->count || first >= asked->count)
        return why_set(why, FAULT_RANGE, "--shots %" PRIu64 ": %s has %zu questions",
                       self->shots_count, self->shots_file ? self->shots_file : self->choices,
                       shots->count);
    const size_t left = asked->count - first, limit = (size_t)self->limit_count;
    const struct choices_options options = { .path = self->choices,
                                             .shots = shots->questions,
                                             .shots_count = (size_t)self->shots_count,
                                             .asked = say_asked };
    struct choices_result result;
    decoder_t *decoder = NULL;
    const uint32_t window = self->seq ? (uint32_t)self->seq : self->folder.shape.seq_len_max;
    int rc =
        decoder_new(&self->folder.shape, self->folder.params, window, self->pool, why, &decoder);
    if (rc == 0)
        rc = choices_score(decoder, self->codec, asked->questions + first,
                           left < limit ? left : limit, &options, why, &result);
    decoder_destroy(&decoder);
    if (rc == 0) add_choices(self, &result);
    return rc;
}

static int measure_choices(struct eval *self, struct why *why)
{
    struct choices asked = { 0 }, shots = { 0 };
    int rc =
        self->codec ? 0 : text_codec_open(self->model, self->folder.shape.vocab, why, &self->codec);
    if (rc == 0) rc = choices_read(self->choices, why, &asked);
    if (rc == 0 && self->shots_file) rc = choices_read(self->shots_file, why, &shots);
    if (rc == 0) rc = ask(self, &asked, self->shots_file ? &shots : &asked, why);
    choices_free(&asked);
    choices_free(&shots);
    return rc;
}

// ---- the whole ----------------------------------------------------------------------------------

static int open_model(struct eval *self, struct why *why)
{
    struct why unsupported = { 0 };
    int rc = model_folder_load(self->model, why, &self->folder);
    if (rc < 0) return rc;
    rc = text_codec_open(self->model, self->folder.shape.vocab, &unsupported, &self->codec);
    if (rc < 0 && rc != FAULT_UNSUPPORTED) return why_set(why, rc, "%s", unsupported.text);
    self->pool = pool_new((uint32_t)self->threads_count);
    return 0;
}

static int run(struct eval *self, struct why *why)
{
    char hex[HASH_HEX];
    int rc = read_flags(self, why);
    if (rc == 0) rc = open_model(self, why);
    if (rc == 0) {
        hash_to_hex(&self->folder.digest, hex);
        self->report =
            json_pack("{s:s, s:s, s:s, s:I}", "schema", "shoal.eval.1", "model", self->model,
                      "digest", hex, "parameters", (json_int_t)self->folder.floats);
        if (!self->report) rc = why_set(why, FAULT_MEMORY, "no memory for the answer");
    }
    if (rc == 0 && self->data) rc = measure_heldout(self, why);
    if (rc == 0 && self->choices) rc = measure_choices(self, why);
    if (rc == 0 && self->json) rc = shoal_print_json(json_incref(self->report), why);
    else if (rc == 0) printf("digest %s\n", hex);
    json_decref(self->report);
    pool_destroy(&self->pool);
    text_codec_close(&self->codec);
    model_folder_free(&self->folder);
    return rc;
}

int shoal_eval(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "model", 'm', "DIR", 0, "A Hugging Face folder, a checkpoint for example", 0 },
        { "data", 'd', "DIR", 0, "Token files: mean loss over them", 1 },
        { "token-bytes", KEY_TOKEN_BYTES, "N", 0, "Width of a token: 2 or 4 (2)", 1 },
        { "choices", 'c', "FILE", 0,
          "Lines of {\"question\", \"choices\": [...], \"answer\": 0 or \"A\"}", 2 },
        { "shots", KEY_SHOTS, "N", 0, "Answered questions before each: the first N, not asked (0)",
          2 },
        { "shots-file", KEY_SHOTS_FILE, "FILE", 0, "Take them from this file", 2 },
        { "limit", KEY_LIMIT, "N", 0, "Ask only so many (all)", 2 },
        { "seq-len", 's', "N", 0, "Length of a window (the model's longest)", 3 },
        { "threads", KEY_THREADS, "N", 0,
          "Compute threads (one per processor); the result is the same", 3 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object", 3 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "How good a model is. Tokens: in windows one after the other, each but the first is "
        "predicted once, from those before it in its window. Questions: acc and acc_norm as "
        "lm-evaluation-harness defines them.\n\n"
        "  shoal eval --model checkpoints/step-00000460 --data data/heldout -s 128\n"
        "  shoal eval --model model --choices arc.jsonl --shots 5 --json\n",
        NULL,
        NULL,
        NULL
    };
    struct eval self = { 0 };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    return fault_exit(run(&self, &why), &why);
}
