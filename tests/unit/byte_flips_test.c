// byte_flips_test -- one bit is flipped anywhere in a dataset, a checkpoint, a blob or a ledger, on
// the disk or over HTTP. A reader gets what was written, or refuses it by name and fetches it from
// another holder. A second provider and a second holder of a blob are real servers and tried for
// one flip in thirty; a second web server is tried for each. Takes some seconds; make storage has
// the long form, FLIPS=10000 and two minutes. live/provider_test.c runs a provider whose disk rots.

#include "common/bulk/bulk_client.h"
#include "common/data/proof.h"
#include "common/data/provider.h"
#include "common/ledger/ledger.h"
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/unit/checkpoint_fixture.h"
#include "tests/unit/web_fixture.h"
#include "tests/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    SEQ_LEN = 31,
    SAMPLES = 40,
    TOKENS = SAMPLES * SEQ_LEN + 1,
    RECORDS = 60,
    ENOUGH_MS = 30000
};

struct tally {
    unsigned flips, refused, harmless;
};

static uint64_t prng = 88172645463325252u;

static uint64_t roll(uint64_t below)
{
    prng ^= prng << 13, prng ^= prng >> 7, prng ^= prng << 17; // xorshift64, Marsaglia 2003
    return prng % below;
}

static unsigned flips(void)
{
    const char *wish = getenv("FLIPS");
    return wish && atoi(wish) > 0 ? (unsigned)atoi(wish) : 300;
}

// ---- a file with one wrong bit ------------------------------------------------------------------

struct victim {
    char path[512];
    uint8_t *bytes;
    size_t count;
};

static struct victim victim_open(const char *path)
{
    struct victim self = { .path = "" };
    struct stat status;
    snprintf(self.path, sizeof self.path, "%s", path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    self.count = (size_t)status.st_size;
    self.bytes = malloc(self.count + 1);
    assert_true(self.bytes && fread(self.bytes, 1, self.count, file) == self.count);
    fclose(file);
    return self;
}

static void put(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(bytes, 1, count, file) == count);
    assert_int_equal(fclose(file), 0);
}

static size_t victim_flip(const struct victim *self)
{
    const size_t at = (size_t)roll(self->count);
    const uint8_t bit = (uint8_t)(1u << roll(8));
    self->bytes[at] ^= bit;
    put(self->path, self->bytes, self->count);
    self->bytes[at] ^= bit;
    return at;
}

static void victim_restore(struct victim *self)
{
    put(self->path, self->bytes, self->count);
    free(self->bytes);
}

static void say(const char *what, const struct tally *tally)
{
    print_message("%s: %u flips, %u refused, %u changed nothing that is read\n", what, tally->flips,
                  tally->refused, tally->harmless);
}

static const char *in_folder(const char *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// ---- dataset ------------------------------------------------------------------------------------

static const struct samples_config samples = { .token_bytes = 2, .seq_len = SEQ_LEN };
static uint32_t truth[SAMPLES][SEQ_LEN + 1], got[SAMPLES][SEQ_LEN + 1];

static void make_dataset(char folder[256])
{
    static uint16_t tokens[TOKENS];
    struct manifest manifest;
    token_files_t *files;
    make_folder(folder);
    for (size_t i = 0; i < TOKENS; i++) tokens[i] = (uint16_t)(i * 2654435761u >> 7);
    put(in_folder(folder, "a.bin"), tokens, sizeof tokens);
    assert_rc(manifest_build(folder, 2, &why, &manifest), 0);
    assert_rc(manifest_write(&manifest, folder, &why), 0);
    manifest_free(&manifest);
    assert_rc(token_files_open(folder, &samples, &why, &files), 0);
    assert_rc(token_files_read(files, 0, SAMPLES, truth[0], &why), 0);
    token_files_close(&files);
}

static bool dataset_is_refused(const char *folder)
{
    token_files_t *files = NULL;
    why.text[0] = 0;
    int rc = token_files_open(folder, &samples, &why, &files);
    if (rc == 0) rc = token_files_read(files, 0, SAMPLES, got[0], &why);
    token_files_close(&files);
    if (rc < 0) assert_true(why.text[0]);
    else assert_memory_equal(got, truth, sizeof truth); // Never other data
    return rc < 0;
}

static void a_dataset_is_refused_or_as_it_was(void **unused)
{
    static const char *const names[] = { "a.bin", "manifest.json" };
    char folder[256];
    (void)unused;
    make_dataset(folder);
    for (int i = 0; i < 2; i++) {
        struct tally tally = { .flips = flips() };
        struct victim victim = victim_open(in_folder(folder, names[i]));
        for (unsigned n = 0; n < tally.flips; n++) {
            victim_flip(&victim);
            if (dataset_is_refused(folder)) tally.refused++;
            else tally.harmless++;
        }
        victim_restore(&victim);
        say(names[i], &tally);
        assert_int_equal(i == 0 ? tally.harmless : 0, 0); // Of JSON, a blank may be another
        assert_true(tally.refused > tally.flips * 3 / 4);
    }
    assert_false(dataset_is_refused(folder));
    remove_folder(folder);
}

// As a data-provider answers, and as a trainer checks.
static int give_proofs(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                       size_t *ret_count, struct why *reason)
{
    struct proof proof = { 0 };
    int rc = token_files_prove(arg, position, count, &proof, reason);
    if (rc < 0) free(proof.bytes);
    else *ret_bytes = proof.bytes, *ret_count = proof.count;
    return rc;
}

static int take_proofs(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                       size_t bytes_count, uint32_t *tokens, struct why *reason)
{
    return dataset_check(arg, position, count, bytes, bytes_count, tokens, reason);
}

struct provider {
    token_files_t *files;
    bulk_server_t *server;
};

static struct provider provide(const char *folder)
{
    struct provider self = { NULL, NULL };
    assert_rc(token_files_open(folder, &samples, &why, &self.files), 0);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .answer = give_proofs,
                                                 .arg = self.files,
                                                 .seq_len = SEQ_LEN };
    assert_rc(bulk_server_new(&options, &why, &self.server), 0);
    fixture_admit(self.server);
    return self;
}

static struct dataset dataset_of(token_files_t *files)
{
    const struct hash order = dataset_order_of(token_files_samples(files));
    struct dataset dataset;
    uint8_t *bytes;
    size_t count;
    assert_rc(dataset_describe(token_files_samples(files), token_files_manifest(files), &why,
                               &bytes, &count),
              0);
    assert_rc(dataset_parse(bytes, count, token_files_digest(files), &order, &why, &dataset), 0);
    free(bytes);
    return dataset;
}

static void withdraw(struct provider *self)
{
    bulk_server_destroy(&self->server);
    token_files_close(&self->files);
}

static void samples_come_from_the_second_provider(void **unused)
{
    char folders[2][256];
    struct bulk_client *client;
    (void)unused;
    for (int i = 0; i < 2; i++) make_dataset(folders[i]);
    struct victim victim = victim_open(in_folder(folders[0], "a.bin"));
    struct provider good = provide(folders[1]);
    struct dataset dataset = dataset_of(good.files);
    const struct bulk_client_options options = { .identity = fixture_identity(),
                                                 .run = FIXTURE_RUN,
                                                 .seq_len = SEQ_LEN,
                                                 .take = take_proofs,
                                                 .arg = &dataset };
    const unsigned times = flips() / 30;
    for (unsigned n = 0; n < times; n++) {
        victim_flip(&victim);
        struct provider bad = provide(folders[0]);
        const struct wire_holder providers[] = { fixture_at(bulk_server_endpoint(bad.server)),
                                                 fixture_at(bulk_server_endpoint(good.server)) };
        assert_rc(bulk_client_new(&options, &why, &client), 0);
        bulk_client_set_providers(client, providers, 2);
        memset(got, 0, sizeof got);
        assert_rc(bulk_read_samples(client, 0, SAMPLES, got[0], &why), 0);
        assert_memory_equal(got, truth, sizeof truth);
        assert_true(bulk_counts_of(bad.server).refusals > 0);
        bulk_client_destroy(&client);
        withdraw(&bad);
    }
    print_message("samples: %u damaged providers, the second one served each time\n", times);
    dataset_free(&dataset);
    withdraw(&good);
    victim_restore(&victim);
    for (int i = 0; i < 2; i++) remove_folder(folders[i]);
}

// ---- dataset, by HTTP ---------------------------------------------------------------------------

static void count_refusal(void *arg, const char *reason, const char *next)
{
    assert_true(reason[0] && next[0]);
    ++*(unsigned *)arg;
}

static struct hash digest_in(const char *folder)
{
    struct manifest manifest;
    assert_rc(manifest_read(folder, &why, &manifest), 0);
    const struct hash digest = manifest.digest;
    manifest_free(&manifest);
    return digest;
}

// One bit of every answer is wrong, at another place each time. The same bytes or a refusal; and
// then they come from the second server.
static void what_comes_over_http_is_refused_or_as_it_was(void **unused)
{
    static const char *const names[] = { "a.bin", "manifest.json" };
    static struct web webs[2];
    char folder[256], urls[2][64];
    (void)unused;
    make_dataset(folder);
    for (int i = 0; i < 2; i++) {
        web_start(&webs[i], folder);
        snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%u/a.bin", webs[i].server.port);
    }
    const struct remote_source source = { .kind = REMOTE_SINGLE_URL,
                                          .url = urls[0],
                                          .mirror = urls[1],
                                          .manifest_digest = digest_in(folder) };
    webs[0].mischief = WEB_FLIPS;
    for (int i = 0; i < 2; i++) {
        struct tally tally = { .flips = flips() };
        struct http_config http = HTTP_CONFIG_DEFAULT;
        http.refused = count_refusal;
        http.arg = &tally.refused;
        snprintf(webs[0].only, sizeof webs[0].only, "%s", names[i]);
        webs[0].mischiefs = 0;
        for (unsigned n = 0; n < tally.flips; n++) {
            provider_t *self;
            memset(got, 0, sizeof got);
            assert_rc(provider_open_http(&source, &http, &samples, &why, &self), 0);
            assert_rc(provider_read(self, 0, SAMPLES, got[0], &why), 0);
            assert_memory_equal(got, truth, sizeof truth);
            provider_close(&self);
        }
        assert_int_equal(webs[0].mischiefs, tally.flips);
        tally.harmless = tally.flips - tally.refused;
        print_message("by HTTP, ");
        say(names[i], &tally);
        assert_int_equal(i == 0 ? tally.harmless : 0, 0); // Of JSON, a blank may be another
        assert_true(tally.refused > tally.flips * 3 / 4);
    }
    for (int i = 0; i < 2; i++) web_stop(&webs[i]);
    remove_folder(folder);
}

// ---- checkpoint ---------------------------------------------------------------------------------

static bool checkpoint_is_refused(void)
{
    static float loaded[N], saved[N];
    checkpoint_t *checkpoint = NULL;
    why.text[0] = 0;
    int rc = checkpoint_open(root, 7, "run-1", &why, &checkpoint);
    if (rc == 0) rc = checkpoint_load_params(checkpoint, &layout, loaded, &why);
    if (rc == 0)
        rc = checkpoint_load_state(checkpoint, tags_find(&state, "moment"),
                                   (struct interval){ 0, N }, saved, &why);
    if (rc == 0) {
        assert_memory_equal(loaded, params, sizeof loaded);
        assert_memory_equal(saved, moment, sizeof saved);
    } else assert_true(why.text[0]);
    checkpoint_close(&checkpoint);
    return rc < 0;
}

static void every_flip_in_a_checkpoint_is_refused(void **unused)
{
    static const char *const names[] = { "model.safetensors", "shoal.json", "config.json",
                                         "state-moment.bin" };
    struct tally tally = { 0 };
    (void)unused;
    assert_rc(write_step(7, 1), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct victim victim = victim_open(file_path("step-00000007", names[i]));
        for (unsigned n = 0; n < flips() / 4; n++, tally.flips++) {
            victim_flip(&victim);
            tally.refused += checkpoint_is_refused();
        }
        victim_restore(&victim);
    }
    tally.harmless = tally.flips - tally.refused;
    say("checkpoint", &tally);
    assert_int_equal(tally.harmless, 0);
    assert_false(checkpoint_is_refused());
}

// ---- blobs --------------------------------------------------------------------------------------

static struct hash put_blob(const char *folder, const uint8_t *bytes, size_t count)
{
    const struct blob_store_options options = { .dir = folder, .lazy = true };
    blob_store_t *store;
    struct hash hash;
    assert_rc(blob_store_new(&options, &why, &store), 0);
    assert_rc(blob_store_put(store, bytes, count, &why, &hash), 0);
    blob_store_destroy(&store);
    return hash;
}

static void every_flip_in_a_blob_is_refused(void **unused)
{
    enum { BYTES = 5000 };
    struct tally tally = { .flips = flips() };
    char folder[256];
    (void)unused;
    make_folder(folder);
    const struct blob_store_options options = { .dir = folder, .lazy = true };
    uint8_t *bytes = fixture_bytes(BYTES, 3);
    const struct hash hash = put_blob(folder, bytes, BYTES);
    struct victim victim = victim_open(in_folder(folder, "spool.0"));
    for (unsigned n = 0; n < tally.flips; n++) {
        blob_store_t *store;
        struct blob_ref ref = { 0 };
        size_t size;
        victim_flip(&victim);
        assert_rc(blob_store_new(&options, &why, &store), 0);
        const int rc = blob_store_get(store, &hash, &why, &ref); // Of a flip in its head: not found
        assert_true(rc == FAULT_CORRUPT || rc == FAULT_NOT_FOUND);
        assert_false(blob_store_size(store, &hash, &size)); // Gone, so that it is fetched again
        blob_store_destroy(&store);
        tally.refused++;
    }
    say("blob", &tally);
    free(victim.bytes);
    free(bytes);
    remove_folder(folder);
}

static struct fixture_holder hold(const char *folder)
{
    struct fixture_holder self = { 0 };
    const struct blob_store_options store = { .dir = folder, .lazy = true };
    assert_rc(blob_store_new(&store, &why, &self.store), 0);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .store = self.store };
    assert_rc(bulk_server_new(&options, &why, &self.server), 0);
    fixture_admit(self.server);
    self.holder = fixture_at(bulk_server_endpoint(self.server));
    return self;
}

static void a_blob_comes_from_the_second_holder(void **unused)
{
    enum { BYTES = 600000 }; // Three chunks
    char folders[2][256];
    struct hash hash;
    (void)unused;
    uint8_t *bytes = fixture_bytes(BYTES, 4);
    for (int i = 0; i < 2; i++) {
        make_folder(folders[i]);
        hash = put_blob(folders[i], bytes, BYTES);
    }
    struct victim victim = victim_open(in_folder(folders[0], "spool.0"));
    const unsigned times = flips() / 30;
    for (unsigned n = 0; n < times; n++) {
        victim_flip(&victim);
        struct fixture_holder bad = hold(folders[0]), good = hold(folders[1]);
        struct fixture_fetcher *fetcher = fixture_fetcher_new(3000);
        const struct wire_holder holders[] = { bad.holder, good.holder };
        fixture_fetch(fetcher, &hash, BYTES, holders, 2);
        const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
        assert_true(fetched && fetched->ok);
        assert_int_equal(bulk_counts_of(bad.server).chunk_bytes, 0);
        struct blob_ref ref;
        assert_rc(blob_store_get(fetcher->store, &hash, &why, &ref), 0);
        assert_memory_equal(ref.bytes, bytes, BYTES);
        blob_store_release(&ref);
        fixture_fetcher_destroy(fetcher);
        fixture_holder_destroy(&bad);
        fixture_holder_destroy(&good);
    }
    print_message("blob: %u damaged holders, the second one served each time\n", times);
    free(victim.bytes);
    free(bytes);
    for (int i = 0; i < 2; i++) remove_folder(folders[i]);
}

// ---- ledger -------------------------------------------------------------------------------------

static size_t fill_record(uint64_t seq, uint8_t bytes[400])
{
    const size_t count = 1 + (size_t)(seq * 97 % 399);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(seq * 31 + i);
    return count;
}

static void make_ledger(const char *folder)
{
    const struct ledger_options options = { .map_bytes_start = 1 << 20 };
    struct ledger *ledger;
    uint8_t bytes[400];
    uint64_t seq;
    assert_rc(ledger_open(folder, "run", &options, &why, &ledger), 0);
    for (uint64_t n = 1; n <= RECORDS; n++) {
        assert_rc(ledger_begin(ledger, &why), 0);
        assert_rc(
            ledger_append(ledger, bytes, fill_record(n, bytes), n % 3 ? NULL : &n, &why, &seq), 0);
        if (n % 25 == 0) assert_rc(ledger_put_snapshot(ledger, "state", 5, &why), 0);
        assert_rc(ledger_commit(ledger, &why), 0);
    }
    ledger_close(&ledger);
}

static int check_record(void *arg, const struct record *record)
{
    uint64_t *next = arg;
    uint8_t bytes[400];
    const size_t count = fill_record(++*next, bytes);
    return record->seq == *next && record->count == count &&
                   memcmp(record->bytes, bytes, count) == 0
               ? 0
               : FAULT_DIGEST;
}

enum { SAME = 0, REFUSED = 1, OTHER = 2 };

static bool holds_all(struct ledger *ledger, uint64_t records)
{
    struct snapshot snapshot;
    struct hash head;
    uint64_t seq, next = 0;
    ledger_head(ledger, &seq, &head);
    if (ledger_each(ledger, 1, check_record, &next, &why) != 0 || seq != records || next != records)
        return false;
    if (ledger_snapshot(ledger, &why, &snapshot) < 0 || snapshot.seq == 0) return true;
    return snapshot.count == 5 && memcmp(snapshot.bytes, "state", 5) == 0;
}

// It goes on from there: what is written next is there after a restart, and so is all before it.
static bool goes_on(const char *folder, struct ledger *ledger)
{
    uint8_t bytes[400];
    uint64_t seq;
    if (ledger_begin(ledger, &why) < 0 ||
        ledger_append(ledger, bytes, fill_record(RECORDS + 1, bytes), NULL, &why, &seq) < 0 ||
        ledger_commit(ledger, &why) < 0)
        return false;
    ledger_close(&ledger);
    if (ledger_open_readonly(folder, &why, &ledger) < 0) return false;
    const bool all = holds_all(ledger, RECORDS + 1);
    ledger_close(&ledger);
    return all;
}

// What a coordinator would see after a restart: everything, as it was written, or a refusal.
static int judge_ledger(const char *folder, bool readonly)
{
    struct ledger *ledger = NULL;
    const int rc = readonly ? ledger_open_readonly(folder, &why, &ledger)
                            : ledger_open(folder, "run", NULL, &why, &ledger);
    if (rc < 0) return why.text[0] ? REFUSED : OTHER;
    bool same = holds_all(ledger, RECORDS);
    if (same && !readonly) same = goes_on(folder, ledger);
    else ledger_close(&ledger);
    return same ? SAME : OTHER;
}

// In a process of its own: a library that trusts its file may die of it, and that would be seen.
static int judge_apart(const char *folder, bool readonly)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        for (int n = 1; n < 32; n++) signal(n, SIG_DFL); // cmocka has handlers of its own
        _exit(judge_ledger(folder, readonly));
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_ledger_is_refused_or_as_it_was(void **unused)
{
    struct tally tally = { .flips = flips() };
    unsigned crashed = 0, other = 0;
    char folder[256];
    (void)unused;
    make_folder(folder);
    make_ledger(folder);
    struct victim victim = victim_open(in_folder(folder, "data.mdb"));
    for (unsigned n = 0; n < tally.flips; n++) {
        const size_t at = victim_flip(&victim);
        const int verdict = judge_apart(folder, n % 2);
        if (verdict < 0) print_message("byte %zu: signal %d\n", at, -verdict), crashed++;
        if (verdict == OTHER) print_message("byte %zu: other content\n", at), other++;
        tally.refused += verdict == REFUSED;
        tally.harmless += verdict == SAME;
    }
    say("ledger", &tally);
    assert_int_equal(crashed, 0);
    assert_int_equal(other, 0);
    victim_restore(&victim);
    assert_int_equal(judge_apart(folder, true), SAME);
    remove_folder(folder);
}

TESTS(TEST(a_dataset_is_refused_or_as_it_was), TEST(samples_come_from_the_second_provider),
      TEST(what_comes_over_http_is_refused_or_as_it_was),
      CHECKPOINT_TEST(every_flip_in_a_checkpoint_is_refused), TEST(every_flip_in_a_blob_is_refused),
      TEST(a_blob_comes_from_the_second_holder), TEST(a_ledger_is_refused_or_as_it_was))
