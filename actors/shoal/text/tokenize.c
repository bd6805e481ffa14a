// tokenize -- text becomes token files that a data provider serves.

#include "actors/shoal/shoal.h"
#include "actors/shoal/text/text_progress.h"
#include "common/actor/command.h"
#include "common/kernel/pool.h"
#include "common/text/corpus.h"
#include "common/text/text_tokens.h"
#include "common/text/tokenizer.h"
#include <inttypes.h>
#include <stdio.h>

enum { INPUTS_MAX = 4096 };

struct tokenize {
    const char *tokenizer, *out, *separator, *field;
    uint64_t token_size, heldout_every, threads; // token_size 0: what the ids need
    const char *inputs[INPUTS_MAX];
    size_t inputs_count;
    bool with_template, skip_bad, json;
};

// ---- the work

struct work {
    const struct tokenize *wish;
    tokenizer_t *tokenizer;
    uint32_t threads, token_bytes, separator; // BPE_NONE: no separator
    bool any_bytes;
    pool_t *pool;
    encoder_t *encoders[POOL_THREADS_MAX];
    corpus_t *corpus;
    text_tokens_t *tokens;
    struct token_list lists[CORPUS_BATCH_UNITS];
    const struct corpus_unit *units;
    int faults[CORPUS_BATCH_UNITS];
    uint64_t documents, tokens_count;
    struct text_progress progress;
};

static int encode_text(const struct work *self, uint32_t worker, const struct corpus_unit *unit,
                       struct why *why, struct token_list *list)
{
    const unsigned flags = unit->begins ? 0 : ENCODE_CONTINUES;
    int rc = tokenizer_encode(self->encoders[worker], unit->text, unit->count, flags, why, list);
    if (rc == 0) return 0;
    return unit->line ? why_wrap(why, rc, "%s:%" PRIu64, unit->path, unit->line)
                      : why_wrap(why, rc, "%s from byte %" PRIu64 " on", unit->path, unit->offset);
}

static int encode_document(struct work *self, uint32_t task, uint32_t worker, struct why *why)
{
    const struct corpus_unit *unit = &self->units[task];
    struct token_list *list = &self->lists[task];
    list->count = 0;
    int rc = self->any_bytes ? 0 : corpus_check(unit, why);
    if (rc == 0 && self->wish->with_template && unit->begins)
        tokenizer_template(self->tokenizer, false, list);
    if (rc == 0) rc = encode_text(self, worker, unit, why, list);
    if (rc == 0 && self->wish->with_template && unit->ends)
        tokenizer_template(self->tokenizer, true, list);
    if (rc == 0 && unit->ends && self->separator != BPE_NONE) token_list_add(list, self->separator);
    return rc;
}

static void encode_unit(void *arg, uint32_t task, uint32_t worker)
{
    struct work *self = arg;
    self->faults[task] = encode_document(self, task, worker, NULL);
}

// A unit without tokens: its fault, found again for its text, or 0 if it is passed over.
static int pass_over(struct work *self, uint32_t task, struct why *why)
{
    const int rc = encode_document(self, task, 0, why);
    self->lists[task].count = 0;
    return corpus_skip(self->corpus, &self->units[task], rc, why);
}

static int encode_batch(struct work *self, size_t count, struct why *why)
{
    int rc = 0;
    pool_run(self->pool, (uint32_t)count, encode_unit, self);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (self->faults[i] < 0) {
            rc = pass_over(self, (uint32_t)i, why);
            continue;
        }
        rc = text_tokens_add_ids(self->tokens, self->lists[i].ids, self->lists[i].count, why);
        self->tokens_count += self->lists[i].count;
        self->documents += self->units[i].ends;
    }
    return rc;
}

static int encode_all(struct work *self, struct why *why)
{
    size_t count = 1;
    int rc = 0;
    while (rc == 0 && count > 0) {
        rc = corpus_next(self->corpus, why, &self->units, &count);
        if (rc == 0 && count > 0) rc = encode_batch(self, count, why);
        if (rc == 0)
            text_progress_tick(&self->progress, corpus_bytes_read(self->corpus),
                               self->tokens_count);
    }
    text_progress_end(&self->progress);
    return rc;
}

// ---- the command

static int choose_token_size(struct work *self, struct why *why)
{
    const uint32_t id_end = tokenizer_id_end(self->tokenizer);
    const uint64_t needed = id_end <= 1 << 16 ? 2 : 4, wanted = self->wish->token_size;
    const uint64_t size = wanted ? wanted : needed;
    if (size == 3) return why_set(why, FAULT_USAGE, "--token-size 3: it must be 2 or 4");
    if (size == 2 && id_end > 1 << 16)
        return why_set(why, FAULT_USAGE,
                       "--token-size 2: the vocabulary has ids up to %u, which "
                       "need 4",
                       id_end - 1);
    self->token_bytes = (uint32_t)size;
    return 0;
}

static size_t last_cut(const void *context, const uint8_t *text, size_t count)
{
    return tokenizer_last_cut(context, text, count);
}

static int open_work(struct work *self, struct why *why)
{
    const struct tokenize *wish = self->wish;
    int rc = tokenizer_load(wish->tokenizer, why, &self->tokenizer);
    if (rc == 0 && wish->heldout_every == 1)
        rc = why_set(why, FAULT_USAGE, "--heldout-every 1: 0 for none, else 2 to 1048576");
    if (rc == 0 && wish->separator)
        rc = tokenizer_find(self->tokenizer, wish->separator, why, &self->separator);
    if (rc == 0) rc = choose_token_size(self, why);
    if (rc < 0) return rc;
    self->threads = (uint32_t)wish->threads;
    self->any_bytes = tokenizer_is_bytes(self->tokenizer);
    const struct corpus_options corpus = { .field = wish->field,
                                           .cut = last_cut,
                                           .context = self->tokenizer,
                                           .skip = wish->skip_bad ? text_progress_skip : NULL,
                                           .skip_context = &self->progress };
    const struct text_config config = { .heldout_every = (uint32_t)wish->heldout_every,
                                        .no_heldout = wish->heldout_every == 0,
                                        .token_bytes = self->token_bytes,
                                        .tokenizer = wish->tokenizer };
    rc = corpus_open(wish->inputs, wish->inputs_count, &corpus, why, &self->corpus);
    if (rc == 0) rc = text_tokens_new(wish->out, &config, why, &self->tokens);
    if (rc < 0) return rc;
    self->pool = pool_new(self->threads);
    if (!self->pool) return why_set(why, FAULT_MEMORY, "%u threads", self->threads);
    for (uint32_t i = 0; i < self->threads; i++)
        if (!(self->encoders[i] = encoder_new(self->tokenizer)))
            return why_set(why, FAULT_MEMORY, "an encoder");
    return 0;
}

static void close_work(struct work *self)
{
    for (uint32_t i = 0; i < POOL_THREADS_MAX; i++) encoder_destroy(&self->encoders[i]);
    for (uint32_t i = 0; i < CORPUS_BATCH_UNITS; i++) token_list_free(&self->lists[i]);
    pool_destroy(&self->pool);
    corpus_close(&self->corpus);
    text_tokens_destroy(&self->tokens);
    tokenizer_destroy(&self->tokenizer);
}

static int report(const struct work *self, const struct text_counts *counts, double seconds,
                  struct why *why)
{
    const double bytes = (double)corpus_text_bytes(self->corpus);
    const double rate = seconds > 0 ? bytes / 1e6 / seconds : 0;
    if (self->wish->json)
        return shoal_print_json(
            json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "schema",
                      "shoal.tokenize.1", "folder", shoal_text(self->wish->out), "documents",
                      (json_int_t)self->documents, "bad_records",
                      (json_int_t)corpus_skipped(self->corpus), "text_bytes",
                      (json_int_t)corpus_text_bytes(self->corpus), "train_tokens",
                      (json_int_t)counts->train, "heldout_tokens", (json_int_t)counts->heldout,
                      "token_bytes", (json_int_t)self->token_bytes, "vocab_size",
                      (json_int_t)tokenizer_id_end(self->tokenizer), "threads",
                      (json_int_t)self->threads, "seconds", seconds, "mb_per_s", rate),
            why);
    printf("%s/train    %" PRIu64 " tokens to train on, %u bytes each\n", self->wish->out,
           counts->train, self->token_bytes);
    if (counts->heldout)
        printf("%s/heldout  %" PRIu64 " tokens that no trainer is served\n", self->wish->out,
               counts->heldout);
    printf("\n%" PRIu64 " document%s, %.1f MB in %.1f s: %.1f MB/s on %u thread%s, %.2f bytes per "
           "token; vocab_size %u\n",
           self->documents, self->documents == 1 ? "" : "s", bytes / 1e6, seconds, rate,
           self->threads, self->threads == 1 ? "" : "s",
           bytes / (double)(counts->train + counts->heldout), tokenizer_id_end(self->tokenizer));
    if (corpus_skipped(self->corpus))
        printf("%" PRIu64 " of %" PRIu64 " records are bad and were passed over\n",
               corpus_skipped(self->corpus), corpus_records(self->corpus));
    return 0;
}

static int run(const struct tokenize *wish, struct why *why)
{
    static struct work work;
    struct text_counts counts;
    work = (struct work){ .wish = wish, .separator = BPE_NONE };
    int rc = open_work(&work, why);
    if (rc == 0) {
        text_progress_init(&work.progress, "tokens", corpus_bytes(work.corpus));
        rc = encode_all(&work, why);
    }
    if (rc == 0) rc = text_tokens_finish(work.tokens, why, &counts);
    if (rc == 0 && work.documents > 1 && !wish->separator && !wish->with_template)
        fprintf(stderr,
                "%" PRIu64 " documents joined without a token between them; --separator "
                "TOKEN puts one after each\n",
                work.documents);
    if (rc == 0) rc = report(&work, &counts, text_progress_seconds(&work.progress), why);
    close_work(&work);
    return rc;
}

static const struct flag flags[] = {
    FLAG("tokenizer", 0, "FILE", TO_TEXT(struct tokenize, tokenizer),
         "A tokenizer.json, a folder with one, or: bytes", .needed = true),
    FLAG("out", 'o', "DIR", TO_TEXT(struct tokenize, out), "The folder for the dataset",
         .needed = true),
    FLAG("separator", 0, "TOKEN", TO_TEXT(struct tokenize, separator),
         "Goes after each document, e.g. '<|endoftext|>'"),
    FLAG("template", 0, NULL, TO_SWITCH(struct tokenize, with_template),
         "With what the tokenizer puts around a text"),
    FLAG("token-size", 0, "2|4", TO_NUMBER(struct tokenize, token_size, 2, 4),
         "Bytes per token (2 if the ids fit, else 4)"),
    FLAG("jsonl-field", 0, "NAME", TO_TEXT(struct tokenize, field),
         "Of a record in a .jsonl or .json file, has the text (text)"),
    FLAG("skip-bad", 0, NULL, TO_SWITCH(struct tokenize, skip_bad),
         "Pass over bad records, name and count them"),
    FLAG("heldout-every", 0, "N", TO_NUMBER(struct tokenize, heldout_every, 0, 1 << 20),
         "One block of N is held out; 0: none (20)"),
    FLAG("threads", 0, "N", TO_NUMBER(struct tokenize, threads, 1, POOL_THREADS_MAX),
         "Same tokens for any number (one per processor)"),
    FLAG("json", 0, NULL, TO_SWITCH(struct tokenize, json), "Print one JSON object"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .usage = "INPUT...",
    .about = "Turns text files, records (.jsonl, .ndjson, .json), any of them as .gz or .zst, and "
             "folders of them into token files with a manifest.\n\n"
             "  shoal tokenize --tokenizer SmolLM-135M --separator '<|endoftext|>' -o data books/ "
             "web.jsonl\n"
             "  shoal tokenize --tokenizer bytes -o data notes.txt\n",
    .arguments = TO_LIST(struct tokenize, inputs, inputs_count, INPUTS_MAX),
    .none = "a file or folder with text is needed",
};

int shoal_tokenize(int argc, char **argv)
{
    static struct tokenize self = { .field = "text", .heldout_every = TEXT_HELDOUT_EVERY };
    struct why why = { 0 };
    self.threads = shoal_threads();
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
