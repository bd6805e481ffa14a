// train-tokenizer -- a byte-level BPE tokenizer from text, as files that Hugging Face's libraries
// load.

#include "actors/shoal/shoal.h"
#include "actors/shoal/text/text_progress.h"
#include "common/actor/command.h"
#include "common/base/folder.h"
#include "common/kernel/pool.h"
#include "common/text/bpe_train.h"
#include "common/text/corpus.h"
#include "common/text/tokenizer_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS_MAX = 4096 };

struct train {
    const char *out, *pattern, *field;
    uint64_t vocab_size, min_frequency, seq_len, threads;
    const char *special[BPE_TRAIN_SPECIAL_MAX], *inputs[INPUTS_MAX]; // special[0] ends a text
    size_t special_count, inputs_count;
    bool add_prefix_space, skip_bad, json;
};

// How text is cut before it is merged.
static const struct {
    const char *name;
    struct pretokenizer pretokenizer;
} patterns[] = {
    { "gpt2", { .gpt2_is_byte_level = true, .count = 1, .chain = { PRETOKENIZE_GPT2 } } },
    { "llama3", { .count = 1, .chain = { PRETOKENIZE_CL100K } } },
    { "llama3-digit", { .count = 1, .chain = { PRETOKENIZE_CL100K1 } } },
    { "smollm",
      { .gpt2_is_byte_level = true,
        .count = 2,
        .chain = { PRETOKENIZE_DIGIT, PRETOKENIZE_GPT2 } } },
};

// ---- the work

struct work {
    const struct train *wish;
    struct bpe_train_options options;
    pool_t *pool;
    corpus_t *corpus;
    bpe_train_t *train;
    const struct corpus_unit *units;
    uint8_t bad[CORPUS_BATCH_UNITS]; // No valid UTF-8
    struct text_progress progress;
};

static void count_unit(void *arg, uint32_t task, uint32_t worker)
{
    struct work *self = arg;
    const struct corpus_unit *unit = &self->units[task];
    self->bad[task] = corpus_check(unit, NULL) < 0;
    if (!self->bad[task])
        bpe_train_add(self->train, worker, unit->text, unit->count,
                      unit->begins ? 0 : ENCODE_CONTINUES);
}

static int count_all(struct work *self, struct why *why)
{
    size_t count = 1;
    int rc = 0;
    while (rc == 0 && count > 0) {
        rc = corpus_next(self->corpus, why, &self->units, &count);
        if (rc == 0 && count > 0) pool_run(self->pool, (uint32_t)count, count_unit, self);
        for (size_t i = 0; rc == 0 && i < count; i++)
            if (self->bad[i]) rc = corpus_check(&self->units[i], why);
        if (rc == 0) text_progress_tick(&self->progress, corpus_bytes_read(self->corpus), 0);
    }
    return rc;
}

static bool say_merges(void *context, uint32_t tokens, uint32_t vocab_size)
{
    struct work *self = context;
    char line[100];
    snprintf(line, sizeof line, "merging: %u of %u tokens", tokens, vocab_size);
    text_progress_say(&self->progress, line);
    return true;
}

// ---- the command

static size_t last_cut(const void *context, const uint8_t *text, size_t count)
{
    return pretokenize_last_cut(context, text, count);
}

static int read_pattern(const struct train *wish, struct why *why, struct pretokenizer *ret)
{
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (strcmp(patterns[i].name, wish->pattern) != 0) continue;
        *ret = patterns[i].pretokenizer;
        ret->add_prefix_space = wish->add_prefix_space;
        if (wish->add_prefix_space && !(ret->count == 1 && ret->gpt2_is_byte_level))
            return why_set(why, FAULT_USAGE, "--add-prefix-space: only with --pattern gpt2");
        return 0;
    }
    return why_set(why, FAULT_USAGE, "--pattern %.40s: gpt2, llama3, llama3-digit or smollm",
                   wish->pattern);
}

static int read_options(struct work *self, struct why *why)
{
    const struct train *wish = self->wish;
    int rc = read_pattern(wish, why, &self->options.pretokenizer);
    if (rc < 0) return rc;
    self->options.vocab_size = (uint32_t)wish->vocab_size;
    self->options.min_frequency = wish->min_frequency;
    self->options.special_tokens = wish->special;
    self->options.special_count = (uint32_t)wish->special_count;
    self->options.workers = (uint32_t)wish->threads;
    return 0;
}

static int open_work(struct work *self, struct why *why)
{
    int rc = read_options(self, why);
    if (rc < 0) return rc;
    const struct corpus_options corpus = { .field = self->wish->field,
                                           .cut = last_cut,
                                           .context = &self->options.pretokenizer,
                                           .skip = self->wish->skip_bad ? text_progress_skip : NULL,
                                           .skip_context = &self->progress };
    rc = bpe_train_new(&self->options, why, &self->train);
    if (rc == 0)
        rc = corpus_open(self->wish->inputs, self->wish->inputs_count, &corpus, why, &self->corpus);
    if (rc < 0) return rc;
    self->pool = pool_new(self->options.workers);
    return self->pool ? 0 : why_set(why, FAULT_MEMORY, "%u threads", self->options.workers);
}

static int write_files(const struct work *self, const tokenizer_t *tokenizer, struct why *why)
{
    const struct tokenizer_config config = { .seq_len = (uint32_t)self->wish->seq_len,
                                             .end_token = self->wish->special[0] };
    int rc = folder_make(self->wish->out, 0755, why);
    return rc < 0 ? rc : tokenizer_write(tokenizer, self->wish->out, &config, why);
}

static int report(const struct work *self, const tokenizer_t *tokenizer,
                  const struct bpe_train_result *result, struct why *why)
{
    const double seconds = text_progress_seconds(&self->progress);
    const uint32_t vocab_size = tokenizer_id_end(tokenizer);
    if (self->wish->json)
        return shoal_print_json(
            json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "schema",
                      "shoal.train-tokenizer.1", "folder", shoal_text(self->wish->out),
                      "vocab_size", (json_int_t)vocab_size, "merges", (json_int_t)result->merges,
                      "bad_records", (json_int_t)corpus_skipped(self->corpus), "text_bytes",
                      (json_int_t)corpus_text_bytes(self->corpus), "words",
                      (json_int_t)result->words, "distinct_words",
                      (json_int_t)result->distinct_words, "seconds", seconds),
            why);
    printf("%s/tokenizer.json  %u tokens, %u merges\n\n%.1f MB, %" PRIu64 " words, %" PRIu64
           " of them distinct; %.1f s\n",
           self->wish->out, vocab_size, result->merges,
           (double)corpus_text_bytes(self->corpus) / 1e6, result->words, result->distinct_words,
           seconds);
    if (corpus_skipped(self->corpus))
        printf("%" PRIu64 " of %" PRIu64 " records are bad and were passed over\n",
               corpus_skipped(self->corpus), corpus_records(self->corpus));
    if (vocab_size < self->options.vocab_size)
        printf("Fewer than the %u tokens wanted: no other pair occurs %" PRIu64 " times.\n",
               self->options.vocab_size, self->options.min_frequency);
    return 0;
}

static int run(const struct train *wish, struct why *why)
{
    static struct work work;
    struct bpe_train_result result;
    tokenizer_t *tokenizer = NULL;
    work = (struct work){ .wish = wish };
    int rc = open_work(&work, why);
    if (rc == 0) {
        text_progress_init(&work.progress, NULL, corpus_bytes(work.corpus));
        rc = count_all(&work, why);
    }
    if (rc == 0) rc = bpe_train_finish(work.train, say_merges, &work, why, &tokenizer, &result);
    if (rc == 0) text_progress_end(&work.progress);
    if (rc == 0) rc = write_files(&work, tokenizer, why);
    if (rc == 0) rc = report(&work, tokenizer, &result, why);
    tokenizer_destroy(&tokenizer);
    bpe_train_destroy(&work.train);
    corpus_close(&work.corpus);
    pool_destroy(&work.pool);
    return rc;
}

static const struct flag flags[] = {
    FLAG("out", 'o', "DIR", TO_TEXT(struct train, out),
         "The folder for tokenizer.json and tokenizer_config.json", .needed = true),
    FLAG("vocab-size", 0, "N", TO_NUMBER(struct train, vocab_size, 257, BPE_TOKENS_MAX),
         "Tokens, special ones and bytes included (8192)"),
    FLAG("min-frequency", 0, "N", TO_NUMBER(struct train, min_frequency, 0, UINT32_MAX),
         "Rarer pairs are not merged (2)"),
    FLAG("end-token", 0, "TOKEN", TO_TEXT(struct train, special[0]),
         "Special token that ends a text (<|endoftext|>)"),
    FLAG("special", 0, "TOKEN",
         TO_LIST(struct train, special, special_count, BPE_TRAIN_SPECIAL_MAX),
         "One more special token; may come again"),
    FLAG("pattern", 0, "NAME", TO_TEXT(struct train, pattern),
         "gpt2, llama3, llama3-digit or smollm (gpt2)"),
    FLAG("add-prefix-space", 0, NULL, TO_SWITCH(struct train, add_prefix_space),
         "A text begins with a space, or is given one"),
    FLAG("jsonl-field", 0, "NAME", TO_TEXT(struct train, field),
         "Of a record in a .jsonl or .json file, has the text (text)"),
    FLAG("skip-bad", 0, NULL, TO_SWITCH(struct train, skip_bad),
         "Pass over bad records, name and count them"),
    FLAG("seq-len", 0, "N", TO_NUMBER(struct train, seq_len, 1, 1 << 20),
         "Longest input, for tokenizer_config.json (2048)"),
    FLAG("threads", 0, "N", TO_NUMBER(struct train, threads, 1, BPE_TRAIN_WORKERS_MAX),
         "Same tokenizer for any number (one per processor)"),
    FLAG("json", 0, NULL, TO_SWITCH(struct train, json), "Print one JSON object"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .usage = "INPUT...",
    .about = "Makes a byte-level BPE tokenizer from text files, records (.jsonl, .ndjson, .json), "
             "any of "
             "them as .gz or .zst, and folders of them.\n\n"
             "  shoal train-tokenizer --vocab-size 8192 --out tokenizer books/\n"
             "  shoal train-tokenizer --pattern llama3 --vocab-size 32000 -o tokenizer web.jsonl\n",
    .arguments = TO_LIST(struct train, inputs, inputs_count, INPUTS_MAX),
    .none = "a file or folder with text is needed",
};

int shoal_train_tokenizer(int argc, char **argv)
{
    static struct train self = { .vocab_size = 8192,
                                 .min_frequency = 2,
                                 .pattern = "gpt2",
                                 .field = "text",
                                 .seq_len = 2048,
                                 .special = { "<|endoftext|>" },
                                 .special_count = 1 };
    struct why why = { 0 };
    self.threads = shoal_threads();
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
