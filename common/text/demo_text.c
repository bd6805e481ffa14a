// demo_text -- in this order: the Bible (bible -f) and the Jargon File become tokens (text_tokens.h), then the baselines
// are made. A missing Jargon File is reported and left out; a missing bible program is a fault.

#include "common/text/demo_text.h"
#include "common/base/child_output.h"
#include "common/text/baselines.h"
#include "common/text/text_tokens.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_MAX = 64 << 20, TIMEOUT_MS = 30000 };

struct teller {
    demo_text_say *say;
    void *context;
};

static void tell(const struct teller *teller, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(const struct teller *teller, const char *format, ...)
{
    char line[512];
    va_list args;
    if (!teller->say) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    teller->say(teller->context, line);
}

// ---- the text

struct pouring {
    text_tokens_t *tokens;
    uint64_t bytes;
};

static int pour(void *context, const void *bytes, size_t count, struct why *why)
{
    struct pouring *self = context;
    self->bytes += count;
    return text_tokens_add(self->tokens, bytes, count, why);
}

static int add_output(text_tokens_t *tokens, const char *const argv[], struct why *why,
                      uint64_t *ret_bytes)
{
    const struct child_limits limits = { .bytes_max = TEXT_MAX, .timeout_ms = TIMEOUT_MS };
    struct pouring pouring = { .tokens = tokens };
    int rc = child_output(argv, &limits, pour, &pouring, why);
    if (rc == 0) *ret_bytes = pouring.bytes;
    return rc;
}

static int add_bible(text_tokens_t *tokens, const struct teller *teller, struct why *why,
                     uint64_t *ret_bytes)
{
    const char *const argv[] = { "bible", "-f", "gen1:1-rev22:21", NULL };
    int rc = add_output(tokens, argv, why, ret_bytes);
    if (rc == FAULT_NOT_FOUND)
        return why_set(why, rc,
                       "no program named bible in PATH; `apt-get install bible-kjv` has"
                       " it");
    if (rc < 0) return rc;
    if (*ret_bytes == 0) return why_set(why, FAULT_FORMAT, "bible printed nothing");
    tell(teller, "King James Bible: %" PRIu64 " bytes", (uint64_t)*ret_bytes);
    return 0;
}

static int add_jargon(text_tokens_t *tokens, const char *path, const struct teller *teller,
                      struct why *why, uint64_t *ret_bytes)
{
    const char *const argv[] = { "zcat", "-f", "--", path, NULL };
    if (access(path, R_OK) < 0) {
        *ret_bytes = 0;
        tell(teller,
             "no Jargon File at %s (is the package jargon-text installed, or was its"
             " documentation left out?): going on with the Bible alone. To get it: apt-get"
             " download jargon-text && dpkg-deb -x jargon-text_*.deb FOLDER, then name"
             " FOLDER%s as the file",
             path, DEMO_TEXT_JARGON);
        return 0;
    }
    int rc = add_output(tokens, argv, why, ret_bytes);
    if (rc == 0) tell(teller, "Jargon File: %" PRIu64 " bytes", (uint64_t)*ret_bytes);
    return rc;
}

static int write_tokens(const char *dir, const char *jargon_path, uint32_t seq_len,
                        const struct teller *teller, struct why *why,
                        struct demo_text_result *result)
{
    const struct text_config config = { .seq_len = seq_len };
    struct text_counts counts = { 0 };
    text_tokens_t *tokens;
    int rc = text_tokens_new(dir, &config, why, &tokens);
    if (rc < 0) return rc;
    rc = add_bible(tokens, teller, why, &result->bible_bytes);
    if (rc == 0) rc = add_jargon(tokens, jargon_path, teller, why, &result->jargon_bytes);
    if (rc == 0) rc = text_tokens_finish(tokens, why, &counts);
    text_tokens_destroy(&tokens);
    if (rc < 0) return rc;
    result->train_bytes = counts.train;
    result->heldout_bytes = counts.heldout;
    tell(teller, "%" PRIu64 " bytes to train on, %" PRIu64 " held out", counts.train,
         counts.heldout);
    return 0;
}

// ---- all of it

int demo_text_prepare(const char *dir, const char *jargon_path, uint32_t seq_len,
                      demo_text_say *say, void *context, struct why *why,
                      struct demo_text_result *ret_result)
{
    const struct teller teller = { .say = say, .context = context };
    struct demo_text_result result = { 0 };
    int rc = write_tokens(dir, jargon_path ? jargon_path : DEMO_TEXT_JARGON, seq_len, &teller, why,
                          &result);
    if (rc == 0) rc = baselines_make(dir, why, result.nats);
    if (rc < 0) return rc;
    tell(&teller, "held out, given 0, 1, 2 bytes of context: %.3f, %.3f, %.3f nats per byte",
         result.nats[0], result.nats[1], result.nats[2]);
    *ret_result = result;
    return 0;
}
