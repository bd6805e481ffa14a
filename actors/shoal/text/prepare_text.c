// prepare-text -- text becomes a dataset, with a part held out and baselines to be compared with.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/text/baselines.h"
#include "common/text/demo_text.h"
#include "common/text/text_tokens.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES_MAX = 4096 };

struct prepare {
    const char *out, *files[FILES_MAX];
    const char *field; // NULL: not given
    size_t files_count;
    uint64_t seq_len, heldout_every;
    bool skip_bad, json;
    bool has_baselines;        // In the result
    uint64_t records, skipped; // Of the files
};

static void say(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "%s\n", line);
}

static size_t cut_anywhere(const void *context, const uint8_t *text, size_t count)
{
    (void)context, (void)text;
    return count;
}

static void say_skip(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "passed over: %s\n", text);
}

static int convert(struct prepare *self, struct why *why, struct demo_text_result *result)
{
    const struct text_config config = { .seq_len = (uint32_t)self->seq_len,
                                        .heldout_every = (uint32_t)self->heldout_every,
                                        .no_heldout = self->heldout_every == 0 };
    const struct corpus_options options = { .field = self->field ? self->field : "text",
                                            .cut = cut_anywhere,
                                            .skip = self->skip_bad ? say_skip : NULL };
    struct text_counts counts;
    corpus_t *corpus = NULL;
    int rc = corpus_open(self->files, self->files_count, &options, why, &corpus);
    if (rc < 0) return rc;
    rc = text_tokens_convert(corpus, self->out, &config, why, &counts);
    self->records = corpus_records(corpus);
    self->skipped = corpus_skipped(corpus);
    corpus_close(&corpus);
    if (rc < 0) return rc;
    result->train_bytes = counts.train;
    result->heldout_bytes = counts.heldout;
    if (config.no_heldout) return 0;
    self->has_baselines =
        counts.train <= BASELINES_TEXT_MAX && counts.heldout <= BASELINES_TEXT_MAX;
    if (self->has_baselines) return baselines_make(self->out, why, result->nats);
    fprintf(stderr, "no baselines: they are made of %d bytes at most; the dataset is complete\n",
            BASELINES_TEXT_MAX);
    return 0;
}

static int print_json(const struct prepare *self, const struct demo_text_result *result,
                      struct why *why)
{
    json_t *nats = self->has_baselines
                       ? json_pack("[f, f, f]", result->nats[0], result->nats[1], result->nats[2])
                       : json_null();
    return shoal_print_json(json_pack("{s:s, s:o, s:I, s:I, s:I, s:o}", "schema",
                                      "shoal.prepare-text.1", "folder", shoal_text(self->out),
                                      "bad_records", (json_int_t)self->skipped, "train_bytes",
                                      (json_int_t)result->train_bytes, "heldout_bytes",
                                      (json_int_t)result->heldout_bytes, "nats", nats),
                            why);
}

static void print(const struct prepare *self, const struct demo_text_result *result)
{
    printf("%s/train    %" PRIu64 " bytes to train on\n", self->out, result->train_bytes);
    if (result->heldout_bytes)
        printf("%s/heldout  %" PRIu64 " bytes that no trainer is served\n", self->out,
               result->heldout_bytes);
    if (self->has_baselines) printf("\nWitten-Bell baselines, nats per held-out byte:\n");
    for (int order = 0; order < NGRAM_ORDERS && self->has_baselines; order++)
        printf("  order %d: %.4f   guessing from the %d byte%s before\n", order,
               result->nats[order], order, order == 1 ? "" : "s");
    if (self->skipped)
        printf("%" PRIu64 " of %" PRIu64 " records are bad and were passed over\n", self->skipped,
               self->records);
}

static int run(struct prepare *self, struct why *why)
{
    struct demo_text_result result = { 0 };
    if (self->heldout_every == 1)
        return why_set(why, FAULT_USAGE, "--heldout-every 1: 0 for none, else 2 to 1048576");
    if (!self->files_count &&
        (self->heldout_every != TEXT_HELDOUT_EVERY || self->field || self->skip_bad))
        return why_set(why, FAULT_USAGE,
                       "--heldout-every, --jsonl-field and --skip-bad belong to INPUT: the demo's "
                       "text is cut as it is");
    self->has_baselines = !self->files_count;
    int rc = self->files_count ? convert(self, why, &result)
                               : demo_text_prepare(self->out, NULL, (uint32_t)self->seq_len, say,
                                                   NULL, why, &result);
    if (rc < 0) return rc;
    if (self->json) return print_json(self, &result, why);
    print(self, &result);
    return 0;
}

static const struct flag flags[] = {
    FLAG("out", 'o', "DIR", TO_TEXT(struct prepare, out), "The folder for the dataset",
         .needed = true),
    FLAG("seq-len", 0, "N", TO_NUMBER(struct prepare, seq_len, 1, 1 << 20),
         "Sequence length of the runs, for tokenizer_config.json (128)"),
    FLAG("jsonl-field", 0, "NAME", TO_TEXT(struct prepare, field),
         "The field of a record (.jsonl, .json) that holds the text (text)"),
    FLAG("heldout-every", 0, "N", TO_NUMBER(struct prepare, heldout_every, 0, 1 << 20),
         "One block of N is held out; 0: none, and no baselines (20)"),
    FLAG("skip-bad", 0, NULL, TO_SWITCH(struct prepare, skip_bad),
         "Pass over bad records, name and count them"),
    FLAG("json", 'j', NULL, TO_SWITCH(struct prepare, json), "Print one JSON object"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .usage = "[INPUT...]",
    .about = "Turns text into tokens, one per byte, with a twentieth held out, and says how well "
             "its bytes can be guessed by counting. INPUT: text files, records (.jsonl, .ndjson, "
             ".json), any of them as .gz or .zst, and folders of them. Without: the demo's text, "
             "from Debian's bible-kjv and jargon-text.\n\n"
             "  shoal prepare-text --out data\n"
             "  shoal prepare-text --out data book1.txt book2.txt web.jsonl.gz\n",
    .arguments = TO_LIST(struct prepare, files, files_count, FILES_MAX),
};

int shoal_prepare_text(int argc, char **argv)
{
    static struct prepare self = { .seq_len = 128, .heldout_every = TEXT_HELDOUT_EVERY };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
