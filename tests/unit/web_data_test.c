// Samples over HTTP are checked against the pinned manifest: two web servers have one folder, and
// one of them lies or dies. A reader gets what lies in the folder, or nothing.

#include "common/data/provider.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/web_fixture.h"
#include "tests/test.h"
#include <sys/stat.h>

enum { SEQ_LEN = 511, FILES = 3, NOTES_MAX = 64 };
static const uint32_t lengths[FILES] = { 1600000, 700001, 1000 }; // 3.05 MiB, 1.3 MiB, 2 kB
static const struct samples_config config = { .token_bytes = 2,
                                              .seq_len = SEQ_LEN,
                                              .vocab_size = 65536 };
static struct why why;
static struct web webs[2];
static struct hash digest;
static provider_t *local;
static uint64_t count; // Samples in a pass
static uint32_t truth[300][SEQ_LEN + 1], got[300][SEQ_LEN + 1];

// ---- the folder and its servers -----------------------------------------------------------------

static void put_tokens(uint32_t number, uint32_t tokens)
{
    char name[32];
    uint8_t *bytes = malloc(200 + 2 * tokens);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    char *text = (char *)bytes + 10;
    int length =
        sprintf(text, "{'descr': '<u2', 'fortran_order': False, 'shape': (%u,), }", tokens);
    length += sprintf(text + length, "%*s\n", 117 - length, "");
    bytes[8] = (uint8_t)length, bytes[9] = 0;
    uint8_t *at = bytes + 10 + length;
    for (uint32_t i = 0; i < tokens; i++) {
        const uint32_t token = (i + number) * 2654435761u >> 16;
        at[2 * i] = (uint8_t)token, at[2 * i + 1] = (uint8_t)(token >> 8);
    }
    snprintf(name, sizeof name, "%03u.npy", number);
    put(name, bytes, 10 + (size_t)length + 2 * tokens);
    free(bytes);
}

static int set_up(void **state)
{
    struct manifest manifest;
    if (folder_set_up(state) < 0) return -1;
    for (uint32_t i = 0; i < FILES; i++) put_tokens(i, lengths[i]);
    assert_int_equal(manifest_build(folder, 2, &why, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, &why), 0);
    digest = manifest.digest;
    manifest_free(&manifest);
    for (int i = 0; i < 2; i++) web_start(&webs[i], folder);
    assert_int_equal(provider_open_local(folder, &config, &why, &local), 0);
    count = provider_count(local);
    return 0;
}

static int tear_down(void **state)
{
    provider_close(&local);
    for (int i = 0; i < 2; i++) web_stop(&webs[i]);
    return folder_tear_down(state);
}

static void all_honest(void)
{
    for (int i = 0; i < 2; i++) {
        webs[i].mischief = WEB_HONEST;
        webs[i].times = -1;
        webs[i].only[0] = 0;
        webs[i].requests = webs[i].mischiefs = 0;
        webs[i].bytes = 0;
    }
}

// ---- a reader -----------------------------------------------------------------------------------

static unsigned notes; // Refusals that were told of
static char noted[NOTES_MAX][WHY_MAX];

static void note(void *arg, const char *reason, const char *next)
{
    (void)arg;
    assert_null(strstr(reason, "secret"));
    assert_true(next[0]);
    if (notes < NOTES_MAX) snprintf(noted[notes], sizeof noted[0], "%s", reason);
    notes++;
}

static unsigned notes_of(const struct web *web)
{
    char port[16];
    unsigned found = 0;
    snprintf(port, sizeof port, ":%u/", web->server.port);
    for (unsigned i = 0; i < notes && i < NOTES_MAX; i++) found += strstr(noted[i], port) != NULL;
    return found;
}

static int open_web(bool mirrored, const struct samples_config *wanted, const struct hash *pin,
                    provider_t **ret_self)
{
    char urls[2][128];
    for (int i = 0; i < 2; i++)
        snprintf(urls[i], sizeof urls[i], "http://me:secret@127.0.0.1:%u/{}.npy?key=secret",
                 webs[i].server.port);
    const struct remote_source source = { .kind = REMOTE_NUMBERED_FILES,
                                          .url = urls[0],
                                          .mirror = mirrored ? urls[1] : NULL,
                                          .num_files = FILES,
                                          .n_left_pad_zeros = 3,
                                          .manifest_digest = *pin };
    const struct http_config http = { .timeout_ms = 5000,
                                      .connect_timeout_ms = 2000,
                                      .attempts = 3,
                                      .pause_ms = 1,
                                      .stop_fd = -1,
                                      .refused = note };
    notes = 0;
    why.text[0] = 0;
    int rc = provider_open_http(&source, &http, wanted, &why, ret_self);
    assert_null(strstr(why.text, "secret"));
    return rc;
}

static int read_both(provider_t *self, uint64_t position, uint32_t samples)
{
    memset(got, 0, sizeof got);
    int rc = provider_read(self, position, samples, got[0], &why);
    assert_null(strstr(why.text, "secret"));
    if (rc < 0) return rc;
    assert_int_equal(provider_read(local, position, samples, truth[0], &why), 0);
    assert_memory_equal(got, truth, (size_t)samples * sizeof truth[0]);
    return 0;
}

static void assert_says(const char *word)
{
    if (!strstr(why.text, word)) fail_msg("'%s' is not in '%s'", word, why.text);
}

// ---- tests --------------------------------------------------------------------------------------

// The same samples as from the folder, and what they cost: each MiB once, then blocks.
static void proved_samples_are_the_folders(void **state)
{
    provider_t *self = NULL;
    (void)state;
    all_honest();
    assert_int_equal(open_web(false, &config, &digest, &self), 0);
    assert_int_equal(provider_count(self), count);
    assert_true(hash_equal(provider_digest(self), &digest));
    assert_int_equal(webs[0].requests, 2 + FILES); // The manifest, no block hashes, three headers
    webs[0].requests = 0;
    for (uint64_t at = 0; at < count + 300; at += 300)
        assert_int_equal(read_both(self, at, 300), 0);
    webs[0].bytes = 0;
    assert_int_equal(read_both(self, count / 2, 1), 0);
    assert_true(webs[0].bytes <= 2 * 4096);
    assert_int_equal(notes, 0);
    provider_close(&self);
}

static void shuffled_samples_are_the_folders(void **state)
{
    struct samples_config shuffled = config;
    provider_t *self = NULL, *here = local;
    (void)state;
    all_honest();
    shuffled.shuffled = true;
    assert_int_equal(provider_open_local(folder, &shuffled, &why, &local), 0);
    assert_int_equal(open_web(true, &shuffled, &digest, &self), 0);
    for (uint64_t at = 0; at < count; at += 97) assert_int_equal(read_both(self, at, 20), 0);
    assert_int_equal(notes, 0);
    assert_int_equal(webs[1].requests, 1); // Asked for block hashes
    provider_close(&self);
    provider_close(&local);
    local = here;
}

// Whatever the first place does, the second one serves, and the first one is named.
static void a_liar_is_named_and_the_mirror_asked(void **state)
{
    static const char *const names[] = { "", "npy", "manifest" };
    (void)state;
    for (int mischief = WEB_HONEST + 1; mischief < WEB_MISCHIEFS; mischief++)
        for (int i = 0; i < 3; i++) {
            provider_t *self = NULL;
            all_honest();
            snprintf(webs[0].only, sizeof webs[0].only, "%s", names[i]);
            webs[0].mischief = mischief;
            assert_int_equal(open_web(true, &config, &digest, &self), 0);
            assert_int_equal(read_both(self, 1000, 300), 0);
            assert_int_equal(webs[0].mischiefs, 1); // The server that answered last is asked first
            assert_int_equal(notes, 1);
            assert_int_equal(notes_of(&webs[0]), 1);
            provider_close(&self);
        }
}

// With block hashes beside the files a sample costs them and its blocks, no MiB; wrong ones are
// refused.
static void block_hashes_spare_the_mib(void **state)
{
    struct manifest manifest;
    provider_t *self = NULL;
    (void)state;
    all_honest();
    assert_int_equal(manifest_read(folder, &why, &manifest), 0);
    assert_int_equal(manifest_write_blocks(&manifest, folder, &why), 0);
    manifest_free(&manifest);
    assert_int_equal(open_web(false, &config, &digest, &self), 0);
    webs[0].bytes = webs[0].requests = 0;
    assert_int_equal(read_both(self, 2000, 1), 0);
    assert_true(webs[0].bytes <= 8192 + 2 * 4096);
    assert_int_equal(webs[0].requests, 2);
    for (uint64_t at = 0; at < count; at += 37) assert_int_equal(read_both(self, at, 3), 0);
    assert_true(webs[0].bytes < 2 << 20); // Of 4.4 MiB, 8 % were asked
    assert_int_equal(notes, 0);
    provider_close(&self);
    for (int mischief = WEB_HONEST + 1; mischief < WEB_MISCHIEFS; mischief++)
        for (int mirrored = 0; mirrored < 2; mirrored++) {
            all_honest();
            strcpy(webs[0].only, "blocks");
            webs[0].mischief = mischief;
            assert_int_equal(open_web(mirrored, &config, &digest, &self), 0);
            assert_int_equal(read_both(self, 2000, 100), 0);
            assert_true(webs[0].mischiefs > 0);
            assert_int_equal(notes, mischief == WEB_GONE ? 0 : webs[0].mischiefs);
            provider_close(&self);
        }
    for (uint32_t i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%03u.npy.blocks", i);
        assert_int_equal(remove(path_of(name)), 0);
    }
}

// In the middle of a run, and back: neither place is out for good.
static void a_place_that_turns_bad_is_left(void **state)
{
    provider_t *self = NULL;
    (void)state;
    all_honest();
    assert_int_equal(open_web(true, &config, &digest, &self), 0);
    assert_int_equal(read_both(self, 0, 300), 0);
    for (int turn = 0; turn < 4; turn++) {
        const int bad = turn % 2;
        webs[bad].mischief = WEB_FLIPS;
        webs[!bad].mischief = WEB_HONEST;
        notes = 0;
        assert_int_equal(read_both(self, 10, 1), 0); // Blocks whose hashes are known
        assert_int_equal(notes_of(&webs[bad]), 1);
        assert_int_equal(notes, 1);
    }
    provider_close(&self);
}

// Without a mirror it is asked again; and if it goes on, nothing of it is taken.
static void alone_it_is_asked_again_or_nothing_is_read(void **state)
{
    (void)state;
    for (int mischief = WEB_HONEST + 1; mischief < WEB_MISCHIEFS; mischief++) {
        const bool may_pass = mischief != WEB_SHRINKS && mischief != WEB_GONE;
        provider_t *self = NULL;
        all_honest();
        assert_int_equal(open_web(false, &config, &digest, &self), 0);
        webs[0].mischief = mischief;
        webs[0].times = 2;
        assert_int_equal(read_both(self, 1000, 100) == 0, may_pass);
        assert_int_equal(notes, may_pass ? 2 : 1);
        webs[0].times = -1;
        const int rc = read_both(self, 2000, 100);
        assert_true(rc < 0 && (mischief != WEB_FLIPS || rc == FAULT_DIGEST));
        webs[0].mischief = WEB_HONEST;
        assert_int_equal(read_both(self, 2000, 100), 0); // It stays usable
        provider_close(&self);
    }
}

static void where_both_lie_nothing_is_read(void **state)
{
    provider_t *self = NULL;
    (void)state;
    all_honest();
    assert_int_equal(open_web(true, &config, &digest, &self), 0);
    webs[0].mischief = webs[1].mischief = WEB_FLIPS;
    assert_int_equal(read_both(self, 700, 200), FAULT_DIGEST);
    assert_says("after 3 attempts");
    assert_says("differs from manifest.json; nothing is read from it");
    assert_int_equal(notes_of(&webs[0]), 3);
    assert_int_equal(notes_of(&webs[1]), 3);
    provider_close(&self);
    assert_int_equal(open_web(true, &config, &digest, &self), FAULT_DIGEST);
    assert_null(self);
}

// Files that agree with a manifest, which is not the pinned one; and files that it does not name.
static void only_the_pinned_manifest_counts(void **state)
{
    const struct hash other = { { 1 } }, none = { { 0 } };
    struct samples_config wide = config;
    provider_t *self = NULL;
    char url[128];
    (void)state;
    all_honest();
    assert_int_equal(open_web(true, &config, &other, &self), FAULT_DIGEST);
    assert_says("it does not match [data] manifest_digest");
    wide.token_bytes = 4;
    assert_int_equal(open_web(true, &wide, &digest, &self), FAULT_DIGEST);
    assert_says("token_bytes is 2 and the configured token size is 4");
    snprintf(url, sizeof url, "http://127.0.0.1:%u/manifest.json", webs[0].server.port);
    const struct http_config http = HTTP_CONFIG_DEFAULT;
    struct remote_source source = { .kind = REMOTE_SINGLE_URL,
                                    .url = url,
                                    .manifest_digest = digest };
    assert_int_equal(provider_open_http(&source, &http, &config, &why, &self), FAULT_DIGEST);
    assert_says("names no such file");
    source = (struct remote_source){ .kind = REMOTE_NUMBERED_FILES,
                                     .url = "http://h/{}/tokens.bin",
                                     .num_files = 1,
                                     .manifest_digest = digest };
    assert_int_equal(provider_open_http(&source, &http, &config, &why, &self), FAULT_CONFIG);
    assert_says("in the file's name");
    source.url = "http://h/{}.bin", source.mirror = "http://h/1.bin";
    assert_int_equal(provider_open_http(&source, &http, &config, &why, &self), FAULT_CONFIG);
    assert_says("the mirror: url_template must have exactly one {}");
    assert_null(self);
    assert_int_equal(open_web(false, &config, &none, &self), 0); // And without a pin
    assert_null(provider_digest(self));
    webs[0].mischief = WEB_FLIPS;
    assert_int_equal(provider_read(self, 0, 10, got[0], &why), 0); // is believed what comes
    provider_close(&self);
}

// What a server says is quoted, and begins no line of a log.
static void a_forged_line_is_no_line(void **state)
{
    static const char forged[] =
        "{ \"format\": \"shoal-manifest-2\", \"token_bytes\": 2, \"leaf_bytes\": 1048576,"
        " \"digest\": \"0000000000000000000000000000000000000000000000000000000000000000\", "
        "\"files\": ["
        " { \"name\": \"a\\u000around.committed\\u001b.bin\", \"bytes\": 0, \"root\": \"\","
        " \"leaves\": \"\" } ] }";
    provider_t *self = NULL;
    (void)state;
    all_honest();
    assert_int_equal(mkdir(path_of("forged"), 0755), 0);
    put("forged/manifest.json", forged, sizeof forged - 1);
    strcpy(webs[0].dir, path_of("forged"));
    assert_int_equal(open_web(false, &config, &digest, &self), FAULT_DIGEST);
    assert_says("a round.committed .bin: bytes is 0");
    for (unsigned i = 0; i < notes; i++) assert_null(strpbrk(noted[i], "\n\033"));
    strcpy(webs[0].dir, folder);
}

// Where a manifest and block hashes are looked for.
static void a_manifest_lies_beside_the_files(void **state)
{
    static const struct {
        const char *url, *manifest, *blocks;
    } pairs[] = {
        { "http://h/a/b.bin", "http://h/a/manifest.json", "http://h/a/b.bin.blocks" },
        { "http://h/b.bin?k=/#x", "http://h/manifest.json?k=/#x", "http://h/b.bin.blocks?k=/#x" },
        { "https://u:p@h:1/a/", "https://u:p@h:1/a/manifest.json", NULL },
        { "http://h", "http://h/manifest.json", NULL },
        { "http://h?q=/", "http://h/manifest.json?q=/", NULL },
    };
    struct remote_urls urls;
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct remote_source source = { .kind = REMOTE_SINGLE_URL, .url = pairs[i].url };
        remote_source_manifest(&source, &urls);
        assert_string_equal(urls.places.url[0], pairs[i].manifest);
        assert_null(urls.places.url[1]);
        remote_source_blocks(&source, 0, &urls);
        if (pairs[i].blocks) assert_string_equal(urls.places.url[0], pairs[i].blocks);
    }
}

TESTS_WITH(set_up, tear_down, TEST(proved_samples_are_the_folders),
           TEST(shuffled_samples_are_the_folders), TEST(a_liar_is_named_and_the_mirror_asked),
           TEST(block_hashes_spare_the_mib), TEST(a_place_that_turns_bad_is_left),
           TEST(alone_it_is_asked_again_or_nothing_is_read), TEST(where_both_lie_nothing_is_read),
           TEST(only_the_pinned_manifest_counts), TEST(a_forged_line_is_no_line),
           TEST(a_manifest_lies_beside_the_files))
