// eval -- what a model has learned, as a number: its loss on tokens it never saw, and how many
// multiple-choice questions it gets right.

#include "actors/shoal/model/choices.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/data/token_files.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct eval {
    const char *model, *data, *choices, *template, *shots_file, *scores;
    uint64_t seq_len, threads, token_bytes; // seq_len 0: the model's longest
    uint64_t shots, limit;                  // Of questions; COMMAND_NOT_GIVEN
    bool json;
    struct model_folder folder;
    text_codec_t *codec; // NULL: no text can be made of its tokens
    pool_t *pool;
    json_t *report;
};

// ---- tokens held out ----------------------------------------------------------------------------

static void add_heldout(struct eval *self, const struct evaluation *evaluation)
{
    const double sum = evaluation->nats * (double)evaluation->tokens;
    const bool has_bytes = evaluation->bytes > 0;
    json_t *per_byte = has_bytes ? shoal_number(sum / (double)evaluation->bytes) : json_null();
    json_object_set_new(self->report, "nats_per_token", shoal_number(evaluation->nats));
    json_object_set_new(self->report, "perplexity", shoal_number(exp(evaluation->nats)));
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
        .seq_len = self->seq_len ? (uint32_t)self->seq_len : model_seq_len(&self->folder.shape),
        .token_bytes = (uint32_t)self->token_bytes,
        .threads = (uint32_t)self->threads,
    };
    int rc = options.token_bytes ? 0 : token_files_width(self->data, why, &options.token_bytes);
    if (rc == 0) rc = evaluate_heldout(&self->folder, &options, why, &evaluation);
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
    const double err = choices_standard_error(right, all),
                 err_norm = choices_standard_error(normalized, all);
    json_object_set_new(self->report, "questions", json_integer((json_int_t)all));
    json_object_set_new(self->report, "template", json_string(self->template));
    json_object_set_new(self->report, "shots", json_integer((json_int_t)self->shots));
    json_object_set_new(self->report, "acc", json_real(acc));
    json_object_set_new(self->report, "acc_stderr", json_real(err));
    json_object_set_new(self->report, "acc_norm", json_real(acc_norm));
    json_object_set_new(self->report, "acc_norm_stderr", json_real(err_norm));
    if (self->json) return;
    printf("acc       %.4f (standard error %.4f), %" PRIu64 " of %" PRIu64 " questions, %" PRIu64
           " shots\nacc_norm  %.4f (standard error %.4f), by log-probability per character\n",
           acc, err, right, all, self->shots, acc_norm, err_norm);
}

static const char *const templates[CHOICES_TEMPLATES] = { "question", "raw" };

// CHOICES_TEMPLATES if there is none of that name.
static enum choices_template template_of(const char *name)
{
    unsigned i = 0;
    while (i < CHOICES_TEMPLATES && strcmp(templates[i], name) != 0) i++;
    return (enum choices_template)i;
}

// Scores are written as questions are answered, and would destroy the questions where these are read from.
static int open_scores(const struct eval *self, FILE **ret_file, struct why *why)
{
    *ret_file = NULL;
    if (!self->scores) return 0;
    if (shoal_is_same_file(self->scores, self->choices) ||
        (self->shots_file && shoal_is_same_file(self->scores, self->shots_file)))
        return why_set(why, FAULT_USAGE, "--scores %s: the questions are in that file",
                       self->scores);
    *ret_file = fopen(self->scores, "we");
    if (*ret_file) return 0;
    return why_set(why, fault_from_errno(errno), "--scores %s: %s", self->scores, strerror(errno));
}

static int close_scores(const struct eval *self, FILE *file, int rc, struct why *why)
{
    if (!file || fclose(file) == 0 || rc < 0) return rc;
    return why_set(why, FAULT_IO, "--scores %s: %s", self->scores, strerror(errno));
}

static int ask(struct eval *self, const struct choices *asked, const struct choices *shots,
               struct why *why)
{
    const bool own = shots == asked; // The head of the file: shown, and so not asked
    const size_t first = own ? (size_t)self->shots : 0;
    if (self->shots > shots->count || first >= asked->count)
        return why_set(why, FAULT_RANGE, "--shots %" PRIu64 ": %s has %zu questions", self->shots,
                       self->shots_file ? self->shots_file : self->choices, shots->count);
    const size_t left = asked->count - first, limit = (size_t)self->limit;
    struct choices_options options = { .template = template_of(self->template),
                                       .path = self->choices,
                                       .shots = shots->questions,
                                       .shots_count = (size_t)self->shots,
                                       .goes_on = say_asked,
                                       .scores_path = self->scores };
    struct choices_result result;
    decoder_t *decoder = NULL;
    const uint32_t window =
        self->seq_len ? (uint32_t)self->seq_len : model_seq_len(&self->folder.shape);
    int rc =
        decoder_new(&self->folder.shape, self->folder.params, window, self->pool, why, &decoder);
    if (rc == 0) rc = open_scores(self, &options.scores, why);
    if (rc == 0)
        rc = choices_score(decoder, self->codec, asked->questions + first,
                           left < limit ? left : limit, &options, why, &result);
    decoder_destroy(&decoder);
    rc = close_scores(self, options.scores, rc, why);
    if (rc < 0 && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
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
    self->pool = pool_new((uint32_t)self->threads);
    return 0;
}

static int run(struct eval *self, struct why *why)
{
    char hex[HASH_HEX];
    int rc = open_model(self, why);
    if (rc == 0) {
        hash_to_hex(&self->folder.digest, hex);
        self->report = json_pack("{s:s, s:o, s:s, s:I}", "schema", "shoal.eval.1", "model",
                                 shoal_text(self->model), "digest", hex, "parameters",
                                 (json_int_t)self->folder.floats);
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

// ---- command line -------------------------------------------------------------------------------

static const struct flag flags[] = {
    FLAG("model", 'm', "DIR", TO_TEXT(struct eval, model),
         "A Hugging Face folder, a checkpoint for example", .needed = true),
    FLAG("data", 0, "DIR", TO_TEXT(struct eval, data), "Token files: mean loss over them",
         .group = 1),
    FLAG("token-bytes", 0, "N", TO_NUMBER(struct eval, token_bytes, 2, 4),
         "Bytes of a token of --data: 2 or 4 (its manifest's)", .group = 1),
    FLAG("choices", 0, "FILE", TO_TEXT(struct eval, choices),
         "Lines of {\"question\", \"choices\": [...], \"answer\": 0 or \"A\"}", .group = 2),
    FLAG("template", 0, "NAME", TO_TEXT(struct eval, template),
         "Ask \"Question: ...\" and \"Answer:\" (question), or the file's words verbatim (raw)",
         .group = 2),
    FLAG("shots", 0, "N", TO_NUMBER(struct eval, shots, 0, CHOICES_SHOTS_MAX),
         "Answered questions before each: the first N, not asked (0)", .group = 2),
    FLAG("shots-file", 0, "FILE", TO_TEXT(struct eval, shots_file), "Take them from this file",
         .group = 2),
    FLAG("scores", 0, "FILE", TO_TEXT(struct eval, scores),
         "Write the log-probability of each choice, a line of JSON a question", .group = 2),
    FLAG("limit", 0, "N", TO_NUMBER(struct eval, limit, 1, CHOICES_QUESTIONS_MAX),
         "Ask only the first N (all)", .group = 2),
    FLAG("seq-len", 0, "N", TO_NUMBER(struct eval, seq_len, 1, MODEL_SEQ_LEN_MAX),
         "Length of a window (the model's longest)", .group = 3),
    FLAG("threads", 0, "N", TO_NUMBER(struct eval, threads, 1, POOL_THREADS_MAX),
         "Compute threads (one per processor); the result is the same", .group = 3),
    FLAG("json", 0, NULL, TO_SWITCH(struct eval, json), "Print one JSON object", .group = 3),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct eval *self = line;
    const bool has_shots = self->shots != COMMAND_NOT_GIVEN;
    if (!self->data && !self->choices)
        return why_set(why, FAULT_USAGE, "--data DIR or --choices FILE is needed");
    if (!self->choices && (has_shots || self->shots_file || self->template || self->scores ||
                           self->limit != COMMAND_NOT_GIVEN))
        return why_set(
            why, FAULT_USAGE,
            "--template, --shots, --shots-file, --scores and --limit belong to --choices");
    if (!self->data && self->token_bytes)
        return why_set(why, FAULT_USAGE, "--token-bytes belongs to --data");
    if (self->token_bytes == 3) return why_set(why, FAULT_USAGE, "--token-bytes 3: 2 or 4");
    if (self->template && template_of(self->template) == CHOICES_TEMPLATES)
        return why_set(why, FAULT_USAGE, "--template %.40s: question or raw", self->template);
    if (self->shots_file && !has_shots)
        return why_set(why, FAULT_USAGE, "--shots-file without --shots N");
    return 0;
}

static const struct command_line line = {
    .flags = flags,
    .about = "How good a model is. Tokens: in windows one after the other, each but the first is "
             "predicted once, from those before it in its window. Questions: acc and acc_norm as "
             "lm-evaluation-harness defines them.\n\n"
             "  shoal eval --model checkpoints/step-00000460 --data data/heldout --seq-len 128\n"
             "  shoal eval --model model --choices arc.jsonl --shots 5 --json\n",
    .check = check,
};

int shoal_eval(int argc, char **argv)
{
    struct eval self = { .threads = shoal_threads(),
                         .shots = COMMAND_NOT_GIVEN,
                         .limit = COMMAND_NOT_GIVEN };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (self.shots == COMMAND_NOT_GIVEN) self.shots = 0;
    if (!self.template) self.template = templates[CHOICES_QUESTION];
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
