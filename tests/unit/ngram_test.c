// From text to a dataset: the baselines, the tokeniser, the split, the demo's text.
#include "common/base/child_output.h"
#include "common/data/manifest.h"
#include "common/data/ngram.h"
#include "common/data/token_files.h"
#include "common/text/demo_text.h"
#include "common/text/text_tokens.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *old_path;
static struct why why;

static int set_up(void **state)
{
    old_path = strdup(getenv("PATH"));
    return old_path ? folder_set_up(state) : -1;
}

static int tear_down(void **state)
{
    setenv("PATH", old_path, 1);
    free(old_path);
    return folder_tear_down(state);
}

// ---- ngram

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9) fail_msg("%.12f is not %.12f", a, b);
}

static void test_ngram_by_hand(void **state)
{
    (void)state;
    ngram_t *self;
    double nats[NGRAM_ORDERS];
    assert_int_equal(ngram_new(&why, &self), 0);
    ngram_score(self, (const uint8_t *)"xyz", 3, nats);
    for (int k = 0; k < NGRAM_ORDERS; k++) assert_near(nats[k], log(256)); // Uniform
    assert_int_equal(ngram_fit(self, (const uint8_t *)"aab", 3, &why), 0);
    ngram_score(self, (const uint8_t *)"aab", 3, nats);
    const double a0 = (2 + 2.0 / 256) / 5, b0 = (1 + 2.0 / 256) / 5; // n 3, t 2
    const double aa = (1 + 2 * a0) / 4, ab = (1 + 2 * b0) / 4;       // After a: n 2, t 2
    const double aab = (1 + 1 * ab) / 2;                             // After aa: n 1, t 1
    assert_near(nats[0], -(2 * log(a0) + log(b0)) / 3);
    assert_near(nats[1], -(log(a0) + log(aa) + log(ab)) / 3);
    assert_near(nats[2], -(log(a0) + log(aa) + log(aab)) / 3);
    ngram_score(self, (const uint8_t *)"\0a", 2, nats); // The beginning is no context of zeros
    assert_near(nats[2], nats[0]);
    ngram_destroy(&self);
    assert_null(self);
}

// Of every order, the probabilities of all bytes after a context sum to one.
static void test_ngram_sums_to_one(void **state)
{
    (void)state;
    static const char text[] = "the cat sat on the mat and the rat sat on the cat";
    static const char *const contexts[] = { "th", "at", "zq", "hz" };
    ngram_t *self;
    assert_int_equal(ngram_new(&why, &self), 0);
    assert_int_equal(ngram_fit(self, (const uint8_t *)text, sizeof text - 1, &why), 0);
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        uint8_t bytes[3] = { (uint8_t)contexts[i][0], (uint8_t)contexts[i][1], 0 };
        double before[NGRAM_ORDERS], all[NGRAM_ORDERS], sum[NGRAM_ORDERS] = { 0 };
        ngram_score(self, bytes, 2, before);
        for (int c = 0; c < 256; c++) {
            bytes[2] = (uint8_t)c;
            ngram_score(self, bytes, 3, all);
            for (int k = 0; k < NGRAM_ORDERS; k++) sum[k] += exp(2 * before[k] - 3 * all[k]);
        }
        for (int k = 0; k < NGRAM_ORDERS; k++) assert_near(sum[k], 1);
    }
    ngram_destroy(&self);
}

// ---- the split

static size_t cut_anywhere(const void *context, const uint8_t *text, size_t count)
{
    (void)context, (void)text;
    return count;
}

static int convert(const char *const *paths, size_t count, const struct text_config *config,
                   struct text_counts *counts)
{
    const struct corpus_options options = { .field = "text", .cut = cut_anywhere };
    corpus_t *corpus = NULL;
    assert_int_equal(corpus_open(paths, count, &options, &why, &corpus), 0);
    const int rc = text_tokens_convert(corpus, path_of("data"), config, &why, counts);
    corpus_close(&corpus);
    return rc;
}

static void test_text_is_split_in_blocks(void **state)
{
    (void)state;
    enum { BLOCK = 10, EVERY = 4, TEXT = 95 }; // 9 blocks and a half; 3 and 7 are held out
    const struct text_config config = { .block_tokens = BLOCK,
                                        .heldout_every = EVERY,
                                        .seq_len = 5 };
    uint8_t text[TEXT], *train, *heldout;
    size_t train_count, heldout_count;
    struct text_counts counts;
    for (int i = 0; i < TEXT; i++) text[i] = (uint8_t)(i + 150);
    put("one.txt", text, 33);
    put("two.txt", text + 33, TEXT - 33);
    char one[512], two[512];
    snprintf(one, sizeof one, "%s", path_of("one.txt"));
    snprintf(two, sizeof two, "%s", path_of("two.txt"));
    const char *const paths[] = { one, two };
    assert_int_equal(convert(paths, 2, &config, &counts), 0);
    assert_int_equal(counts.train, TEXT - 20);
    assert_int_equal(counts.heldout, 20);
    assert_int_equal(
        text_tokens_load(path_of("data/train/train.bin"), 1000, &why, &train, &train_count), 0);
    assert_int_equal(
        text_tokens_load(path_of("data/heldout/heldout.bin"), 20, &why, &heldout, &heldout_count),
        0);
    assert_int_equal(train_count + heldout_count, TEXT);
    size_t t = 0, h = 0;
    for (size_t i = 0; i < TEXT; i++) {
        if (i / BLOCK % EVERY == EVERY - 1) assert_int_equal(heldout[h++], text[i]);
        else assert_int_equal(train[t++], text[i]);
    }
    free(train);
    free(heldout);
    assert_int_equal(
        text_tokens_load(path_of("data/heldout/heldout.bin"), 19, &why, &heldout, &heldout_count),
        FAULT_LIMIT);

    put("odd.bin", "\1\0\2", 3);
    assert_int_equal(text_tokens_load(path_of("odd.bin"), 1, &why, &heldout, &heldout_count),
                     FAULT_FORMAT);
    assert_non_null(strstr(why.text, "odd.bin has 3 bytes"));
    put("wide.bin", "\1\0\0\1", 4);
    assert_int_equal(text_tokens_load(path_of("wide.bin"), 2, &why, &heldout, &heldout_count),
                     FAULT_RANGE);
    assert_non_null(strstr(why.text, "token 1 is 256"));

    const struct samples_config samples = { .token_bytes = 2, .seq_len = 5, .vocab_size = 256 };
    token_files_t *files = NULL;
    uint32_t tokens[6];
    assert_int_equal(token_files_open(path_of("data/train"), &samples, &why, &files), 0);
    assert_non_null(token_files_digest(files));
    assert_int_equal(token_files_count(files), 14);
    assert_int_equal(token_files_read(files, 13, 1, tokens, &why), 0);
    assert_int_equal(tokens[0], text[85]);
    token_files_close(&files);
}

static void test_text_is_refused(void **state)
{
    (void)state;
    struct text_config config = { .block_tokens = 10, .heldout_every = 4, .seq_len = 5 };
    struct text_counts counts;
    text_tokens_t *self = NULL;
    put("short.txt", "thirty bytes are one too few..", 30);
    char name[512];
    snprintf(name, sizeof name, "%s", path_of("short.txt"));
    const char *const paths[] = { name };
    assert_int_equal(convert(paths, 1, &config, &counts), FAULT_RANGE);
    assert_non_null(
        strstr(why.text, "more than 30: add text, or --heldout-every 3, or --heldout-"));
    struct text_config fits = config;
    fits.heldout_every = 3;
    assert_int_equal(convert(paths, 1, &fits, &counts), 0);
    assert_int_equal(counts.heldout, 10);
    remove(path_of("data/train/train.bin"));
    put("short.txt", "ten bytes.", 10);
    assert_int_equal(convert(paths, 1, &config, &counts), FAULT_RANGE);
    assert_non_null(
        strstr(why.text, "more than 30: add text, or --heldout-every 0 to hold nothing"));
    assert_int_not_equal(access(path_of("data/train/train.bin"), F_OK), 0); // No trace
    assert_int_not_equal(access(path_of("data/train/.train.bin.tmp"), F_OK), 0);
    config.heldout_every = 1;
    assert_int_equal(text_tokens_new(path_of("data"), &config, &why, &self), FAULT_RANGE);
    assert_null(self);
    config.heldout_every = 4;
    put("data/train/other.bin", "....", 4);
    put("short.txt", "thirty-one bytes are just enough", 31);
    assert_int_equal(convert(paths, 1, &config, &counts), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "2 token files"));
}

// ---- other programs

static int swallow(void *context, const void *bytes, size_t count, struct why *reason)
{
    (void)bytes, (void)reason;
    *(uint64_t *)context += count;
    return 0;
}

static int refuse(void *context, const void *bytes, size_t count, struct why *reason)
{
    (void)context, (void)bytes, (void)count;
    return why_set(reason, FAULT_DISK_FULL, "no more");
}

static void test_child_output(void **state)
{
    (void)state;
    struct child_limits limits = { .bytes_max = 100000, .timeout_ms = 5000 };
    uint64_t total = 0;
    const char *const ok[] = { "head", "-c", "100000", "/dev/zero", NULL };
    assert_int_equal(child_output(ok, &limits, swallow, &total, &why), 0);
    assert_int_equal(total, 100000);
    const char *const more[] = { "head", "-c", "100001", "/dev/zero", NULL };
    assert_int_equal(child_output(more, &limits, swallow, &total, &why), FAULT_LIMIT);
    const char *const none[] = { "no-such-program-here", NULL };
    assert_int_equal(child_output(none, &limits, swallow, &total, &why), FAULT_NOT_FOUND);
    const char *const fails[] = { "sh", "-c", "exit 3", NULL };
    assert_int_equal(child_output(fails, &limits, swallow, &total, &why), FAULT_IO);
    assert_non_null(strstr(why.text, "exit code 3"));
    const char *const hangs[] = { "sleep", "60", NULL };
    limits.timeout_ms = 20;
    assert_int_equal(child_output(hangs, &limits, swallow, &total, &why), FAULT_TIMEOUT);
    limits.timeout_ms = 5000;
    assert_int_equal(child_output(more, &limits, refuse, NULL, &why), FAULT_DISK_FULL);
}

// ---- the demo

static void hear(void *context, const char *line)
{
    char *heard = context;
    snprintf(heard + strlen(heard), 2000 - strlen(heard), "%s\n", line);
}

// A bible of our own: 4000 numbered lines of 100 bytes.
static void make_bible(void)
{
    static const char script[] =
        "#!/bin/sh\n[ \"$1 $2\" = \"-f gen1:1-rev22:21\" ] || exit 9\n"
        "i=0; while [ $i -lt 4000 ]; do printf '%099d\\n' $i; i=$((i+1)); done\n";
    char path[1024];
    put("bible", script, sizeof script - 1);
    assert_int_equal(chmod(path_of("bible"), 0755), 0);
    snprintf(path, sizeof path, "%s:%s", folder, old_path);
    setenv("PATH", path, 1);
}

static void test_demo_text(void **state)
{
    (void)state;
    struct demo_text_result result;
    struct manifest manifest;
    json_error_t error;
    char heard[2000] = "", data[512];
    make_bible();
    put("jargon.txt", "foo bar\n", 8);
    snprintf(data, sizeof data, "%s", path_of("data"));
    assert_int_equal(demo_text_prepare(data, path_of("jargon.txt"), 64, hear, heard, &why, &result),
                     0);
    assert_int_equal(result.bible_bytes, 400000);
    assert_int_equal(result.jargon_bytes, 8);
    assert_int_equal(result.heldout_bytes, TEXT_BLOCK_TOKENS);
    assert_int_equal(result.train_bytes, 400008 - TEXT_BLOCK_TOKENS);
    assert_true(result.nats[0] > result.nats[1] && result.nats[1] > 0);
    json_t *json = json_load_file(path_of("data/baselines.json"), 0, &error);
    assert_non_null(json);
    assert_near(json_real_value(json_array_get(json_object_get(json, "nats"), 1)) - result.nats[1],
                0);
    json_decref(json);
    assert_int_equal(manifest_read(path_of("data/train"), &why, &manifest), 0);
    assert_int_equal(manifest_verify(&manifest, path_of("data/train"), &why), 0);
    manifest_free(&manifest);
}

static void test_demo_text_without_packages(void **state)
{
    (void)state;
    struct demo_text_result result;
    char heard[2000] = "", data[512];
    snprintf(data, sizeof data, "%s", path_of("data"));
    make_bible();
    assert_int_equal(demo_text_prepare(data, path_of("none.gz"), 64, hear, heard, &why, &result),
                     0);
    assert_int_equal(result.jargon_bytes, 0);
    assert_non_null(strstr(heard, "dpkg-deb -x"));
    assert_int_equal(unlink(path_of("bible")), 0);
    setenv("PATH", folder, 1);
    assert_int_equal(demo_text_prepare(data, NULL, 64, NULL, NULL, &why, &result), FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "bible-kjv"));
    setenv("PATH", old_path, 1);
}

// The real text of Debian 12, where it is installed. The numbers are from an independent
// implementation of the formula, in another language, over the same split.
static void test_baselines_of_the_real_text(void **state)
{
    (void)state;
    struct demo_text_result result;
    if (access("/usr/bin/bible", X_OK) || access(DEMO_TEXT_JARGON, R_OK)) skip();
    assert_int_equal(demo_text_prepare(path_of("data"), NULL, 512, NULL, NULL, &why, &result), 0);
    print_message("%.4f %.4f %.4f nats per byte\n", result.nats[0], result.nats[1], result.nats[2]);
    if (result.bible_bytes != 4404412 || result.jargon_bytes != 1681817) skip();
    const double known[] = { 3.2263, 2.4846, 1.9380 };
    for (int k = 0; k < NGRAM_ORDERS; k++) assert_true(fabs(result.nats[k] - known[k]) < 1e-4);
}

#define PATH_TEST(name) TEST_WITH(name, set_up, tear_down)

TESTS(TEST(test_ngram_by_hand), TEST(test_ngram_sums_to_one),
      PATH_TEST(test_text_is_split_in_blocks), PATH_TEST(test_text_is_refused),
      PATH_TEST(test_child_output), PATH_TEST(test_demo_text),
      PATH_TEST(test_demo_text_without_packages), PATH_TEST(test_baselines_of_the_real_text))
