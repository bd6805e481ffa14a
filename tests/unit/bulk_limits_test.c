// What a hostile peer can take from a bulk server is bounded: memory, descriptors, the time of
// other peers.
#include "common/bulk/purse.h"
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"
#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ENOUGH_MS = 30000,
    ANSWER_MS = 1000,
    BUSY_MS =
        20000, // On a machine that does other work: what an answer may cost is counted in answers
    SEQ_LEN = 1023,
    SAMPLES = 1000,
    SLOW_MS = 20,
    MIB = 1 << 20
};

static struct why why;

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

static unsigned port_of(const struct wire_holder *holder)
{
    return (unsigned)atoi(strrchr(holder->endpoint, ':') + 1);
}

// A connection that stands, of whom there are to be more.
static void open_line(struct fixture_asker *peer, const struct identity *identity,
                      const struct wire_holder *holder)
{
    const uint64_t until_ms = clock_ms() + ENOUGH_MS;
    fixture_asker_open(peer, identity, holder);
    while (!peer->line.is_open && clock_ms() < until_ms) fixture_hear(peer, 1);
    assert_true(peer->line.is_open);
}

static void open_own(struct fixture_asker *peer, const struct wire_holder *holder)
{
    open_line(peer, fixture_identity(), holder);
}

// Another member, which keeps the protocol.
struct member {
    struct identity *identity;
    struct fixture_asker asker;
};

static struct member *member_new(bulk_server_t *server, const struct wire_holder *holder)
{
    static const uint8_t secret[SECRET_BYTES] = { 7 };
    struct member *self = calloc(1, sizeof *self);
    assert_non_null(self);
    assert_int_equal(identity_from_secret(secret, &why, &self->identity), 0);
    bulk_server_admit(server, identity_key(self->identity), true);
    fixture_asker_open(&self->asker, self->identity, holder);
    return self;
}

static void member_destroy(struct member *self)
{
    bulk_line_close(&self->asker.line);
    identity_destroy(&self->identity);
    free(self);
}

// The kind of the answer, 0 if there was none in time.
static uint16_t ask(struct member *self, uint16_t kind, const void *question)
{
    assert_true(fixture_say(&self->asker, FIXTURE_RUN, kind, question));
    return fixture_hear(&self->asker, BUSY_MS) == BULK_MAIL ? self->asker.mail.head.kind : 0;
}

// ---- what comes -----------------------------------------------------------------------------

// Of one who reads nothing: its questions wait in the kernel, which takes no more of them then.
static void test_questions_without_end_wait(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct member *member = member_new(holder.server, &holder.holder);
    uint8_t *bytes = fixture_bytes(BULK_CHUNK_MAX, 1);
    const struct hash hash = fixture_give(holder.store, bytes, BULK_CHUNK_MAX);
    const struct wire_want none = { .request = 1, .hash = { { 1 } }, .count = 1 },
                           all = { 1, hash, 0, BULK_CHUNK_MAX };
    struct fixture_asker peer;
    uint64_t sent = 0, still = 0;
    open_own(&peer, &holder.holder);
    while (sent < 64 * MIB && still < 20) { // As long as it is taken
        const size_t before = peer.line.out_bytes;
        for (int n = 0; before < MIB && n < 1000; n++)
            bulk_line_put(&peer.line, FIXTURE_RUN, FRAME_WANT, &all, NULL, 0);
        const size_t waits = peer.line.out_bytes;
        assert_int_equal(bulk_line_move(&peer.line, &why), 1);
        sent += waits - peer.line.out_bytes;
        still = waits == peer.line.out_bytes ? still + 1 : 0;
        if (still) sleep_ms(10);
    }
    const struct bulk_counts counts = bulk_counts_of(holder.server);
    print_message("%d MiB of questions taken, %d heard, %d MiB of answers\n", (int)(sent / MIB),
                  (int)counts.heard, (int)counts.chunks);
    assert_true(sent < 64 * MIB);
    assert_true(counts.chunks < 64 && counts.heard <= counts.chunks + 1);
    assert_int_equal(ask(member, FRAME_WANT, &none), FRAME_LACKING);
    bulk_line_close(&peer.line);
    member_destroy(member);
    free(bytes);
    fixture_holder_destroy(&holder);
}

static void test_whole_questions_are_heard(void **state)
{
    (void)state;
    enum { QUESTIONS = BULK_WORDS };
    struct fixture_holder holder = fixture_holder_new();
    struct member *member = member_new(holder.server, &holder.holder);
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    for (int i = 0; i < QUESTIONS; i++)
        assert_int_equal(ask(member, FRAME_WANT, &want), FRAME_LACKING);
    assert_int_equal(bulk_counts_of(holder.server).heard, QUESTIONS);
    assert_int_equal(bulk_counts_of(holder.server).cut, 0);
    member_destroy(member);
    fixture_holder_destroy(&holder);
}

// ---- descriptors ----------------------------------------------------------------------------

enum { DESCRIPTORS = 256, STRANGERS = 600, FETCHES = 4, ROUND_MS = 1200, PATIENCE_MS = 20000 };

// The process that serves: puts a blob each tenth of a second until its parent hangs up, and ends
// with how often that failed.
static void serve_among_strangers(int parent)
{
    const struct rlimit limit = { DESCRIPTORS / 2, DESCRIPTORS }; // The soft one is raised
    char dir[] = "/tmp/bulk_limits.XXXXXX", command[64];
    ensure(setrlimit(RLIMIT_NOFILE, &limit) == 0 && mkdtemp(dir));
    struct blob_store_options kept = { .dir = dir, .lazy = true };
    struct fixture_holder self = { 0 };
    ensure(blob_store_new(&kept, &why, &self.store) == 0);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .store = self.store };
    ensure(bulk_server_new(&options, &why, &self.server) == 0);
    fixture_admit(self.server);
    self.holder = fixture_at(bulk_server_endpoint(self.server));
    fixture_give(self.store, (const uint8_t *)"alpha", 5);
    ensure(write(parent, &self.holder, sizeof self.holder) == sizeof self.holder);
    int failed = 0;
    char byte;
    for (int i = 0; recv(parent, &byte, 1, MSG_DONTWAIT) < 0; i++, sleep_ms(100)) {
        struct hash hash;
        failed += blob_store_put(self.store, &i, sizeof i, &why, &hash) < 0;
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    _exit(system(command) == 0 ? failed : 100);
}

// Connects again each connection that the other side has closed.
static void dial_all(int *fds, const struct wire_holder *holder)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = htons((uint16_t)port_of(holder)) };
    for (int i = 0; i < STRANGERS; i++) {
        char bytes[64]; // It greets
        const ssize_t count = fds[i] < 0 ? 0 : recv(fds[i], bytes, sizeof bytes, MSG_DONTWAIT);
        if (count > 0 || (count < 0 && (errno == EAGAIN || errno == ENOTCONN))) continue;
        if (fds[i] >= 0) close(fds[i]);
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fds[i], (const struct sockaddr *)&to, sizeof to);
    }
}

static void test_strangers_leave_descriptors(void **state)
{
    (void)state;
    int pair[2], fds[STRANGERS], status, fetched = 0;
    struct wire_holder holder;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pair[0]);
        serve_among_strangers(pair[1]);
    }
    close(pair[1]);
    assert_int_equal(read(pair[0], &holder, sizeof holder), sizeof holder);
    for (int i = 0; i < STRANGERS; i++) fds[i] = -1;
    const struct hash hash = hash_of("alpha", 5);
    for (int n = 0; n < FETCHES; n++) {
        struct fixture_fetcher *fetcher = fixture_fetcher_new(ANSWER_MS);
        bool asked = false, here = false;
        // However long a busy processor takes: the strangers go on dialling, and a fetch that failed is retried, as
        // a member does, until the blob is there.
        for (int ms = 0; ms < ROUND_MS || (!here && ms < PATIENCE_MS); ms += 20, sleep_ms(20)) {
            dial_all(fds, &holder);
            if (ms >= 200 && !asked && !here) {
                fixture_fetch(fetcher, &hash, 5, &holder, 1);
                asked = true;
            }
            const struct wire_fetched *answer =
                asked ? fixture_answer(fetcher, FRAME_FETCHED, 0) : NULL;
            if (!answer) continue;
            asked = false;
            here |= answer->ok;
        }
        fetched += here;
        fixture_fetcher_destroy(fetcher);
    }
    close(pair[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; i < STRANGERS; i++) close(fds[i]);
    print_message("fetched %d of %d times, %d puts failed\n", fetched, FETCHES,
                  WEXITSTATUS(status));
    assert_int_equal(fetched, FETCHES);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_a_crowd_of_one_key_is_cut(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    static struct fixture_asker peers[BULK_KEY_CONNECTIONS_MAX + 8];
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX + 8; i++) {
        open_own(&peers[i], &holder.holder);
        assert_true(fixture_say(&peers[i], FIXTURE_RUN, FRAME_WANT, &want));
        while (bulk_counts_of(holder.server).refusals <= (uint64_t)i) sleep_ms(1);
    }
    assert_int_equal(bulk_counts_of(holder.server).cut, 8);
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX + 8; i++) {
        assert_int_equal(fixture_hear(&peers[i], ANSWER_MS), BULK_MAIL); // It had its answer before
        if (i < 8) assert_int_equal(fixture_hear(&peers[i], ENOUGH_MS), BULK_ENDED);
        bulk_line_close(&peers[i].line);
    }
    fixture_holder_destroy(&holder);
}

// ---- what one key may have --------------------------------------------------------------------

// Asks for the same over all its connections, and reads the answers, until nothing more comes for
// QUIET_MS, or too much has. Returns the raw bytes.
static uint64_t gorge(struct fixture_asker *peers, const struct wire_want *want)
{
    enum { QUIET_MS = 700, AHEAD = 4, TOO_MUCH = 32 * MIB };
    static uint32_t open[BULK_KEY_CONNECTIONS_MAX];
    uint64_t bytes = 0, heard_ms = clock_ms();
    while (clock_ms() < heard_ms + QUIET_MS && bytes < TOO_MUCH)
        for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX; i++) {
            for (; open[i] < AHEAD; open[i]++)
                assert_true(fixture_say(&peers[i], FIXTURE_RUN, FRAME_WANT, want));
            if (fixture_hear(&peers[i], 1) != BULK_MAIL) continue;
            open[i]--;
            bytes += peers[i].mail.raw_count;
            heard_ms = clock_ms();
        }
    memset(open, 0, sizeof open);
    return bytes;
}

// Of everything that is here one key gets twice as much, and once what is new. It waits for more,
// and is not cut off; others are served meanwhile.
static void test_one_key_gets_all_of_it_twice(void **state)
{
    (void)state;
    enum { BLOB = 3 * MIB / 2, NEW = MIB, TOLERANCE = 64 << 10 };
    struct fixture_holder holder = fixture_holder_new();
    struct member *member = member_new(holder.server, &holder.holder);
    uint8_t *bytes = fixture_bytes(BLOB, 31);
    struct hash hashes[] = { fixture_give(holder.store, bytes, BLOB), { { 0 } } };
    struct wire_want want = { 1, hashes[0], 0, BULK_CHUNK_MAX };
    static struct fixture_asker peers[BULK_KEY_CONNECTIONS_MAX];
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX; i++) open_own(&peers[i], &holder.holder);
    const uint64_t first = gorge(peers, &want);
    hashes[1] = fixture_give(holder.store, bytes, NEW);
    const uint64_t more = gorge(peers, &want);
    print_message("%d KiB of a blob of %d, %d KiB more after one of %d\n", (int)(first >> 10),
                  BLOB >> 10, (int)(more >> 10), NEW >> 10);
    assert_in_range(first, 2 * BLOB, 2 * BLOB + BULK_CHUNK_MAX + TOLERANCE);
    assert_in_range(first + more, 2 * BLOB + NEW, 2 * BLOB + NEW + BULK_CHUNK_MAX + TOLERANCE);
    assert_int_equal(ask(member, FRAME_WANT, &want), FRAME_CHUNK);
    assert_int_equal(bulk_counts_of(holder.server).cut, 0);
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX; i++) bulk_line_close(&peers[i].line);
    member_destroy(member);
    free(bytes);
    fixture_holder_destroy(&holder);
}

// A joiner that is restarted fetches a whole state again, at full speed, also after its key has had
// all blobs twice.
static void test_a_whole_state_is_had_twice(void **state)
{
    (void)state;
    enum { FLOATS = 12 * MIB, LEAVES = FLOATS / DIGEST_LEAF_FLOATS, AGAIN = 100 };
    struct fixture_holder holder = fixture_holder_new();
    float *params = (float *)(void *)fixture_bytes(FLOATS * sizeof *params, 32);
    struct hash *leaves = calloc(LEAVES, sizeof *leaves);
    digest_fill_leaves(params, FLOATS, 0, LEAVES, leaves);
    const uint64_t begun_ms = clock_ms();
    const struct hash digest = pin_vector(holder.store, 1, params, FLOATS);
    uint8_t *bytes = fixture_bytes(MIB, 33);
    const struct hash blob = fixture_give(holder.store, bytes, MIB);
    static struct fixture_asker peer;
    open_own(&peer, &holder.holder);
    for (int i = 0; i < 2; i++) {
        const struct wire_want want = { 1, blob, 0, MIB };
        assert_true(fixture_say(&peer, FIXTURE_RUN, FRAME_WANT, &want));
        assert_int_equal(fixture_hear(&peer, BUSY_MS), BULK_MAIL);
    }
    for (int i = 0; i < 2; i++) {
        struct fixture_fetcher *fetcher = fixture_fetcher_new(BUSY_MS);
        fixture_fetch_model(fetcher, 1, &digest, FLOATS, &holder.holder, 1);
        const struct wire_fetched_model *fetched =
            fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
        assert_true(fetched && fetched->ok);
        fixture_fetcher_destroy(fetcher);
    }
    // A third time it waits: of what it asks for it gets as much as time brings
    for (uint32_t leaf = 0; leaf < AGAIN; leaf++) {
        const struct wire_want want = { 1, leaves[leaf], 0, STATE_LEAF_BYTES };
        assert_true(fixture_say(&peer, FIXTURE_RUN, FRAME_WANT, &want));
    }
    uint32_t more = 0;
    while (fixture_hear(&peer, ANSWER_MS) == BULK_MAIL) more++;
    const uint64_t by_time = (clock_ms() - begun_ms) * LEAVES / PURSE_MS;
    print_message("%u leaves of %d a third time, %d by the time that has passed\n", more, LEAVES,
                  (int)by_time);
    assert_true(more <= by_time + 2 && more < AGAIN);
    bulk_line_close(&peer.line);
    free(leaves);
    free(params);
    free(bytes);
    fixture_holder_destroy(&holder);
}

// What is not here costs nothing to ask for, and its refusal a little of the line.
static void test_refusals_have_a_rate(void **state)
{
    (void)state;
    enum { MORE = 100 };
    struct fixture_holder holder = fixture_holder_new();
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    static struct fixture_asker peer;
    open_own(&peer, &holder.holder);
    const uint64_t begun_ms = clock_ms();
    for (int n = 0; n < BULK_WORDS + MORE; n++) {
        assert_true(fixture_say(&peer, FIXTURE_RUN, FRAME_WANT, &want));
        assert_int_equal(fixture_hear(&peer, BUSY_MS), BULK_MAIL);
    }
    assert_true(clock_ms() - begun_ms >= (MORE - 1) * BULK_WORD_MS);
    bulk_line_close(&peer.line);
    fixture_holder_destroy(&holder);
}

// ---- what waits -----------------------------------------------------------------------------

static int give_samples(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                        size_t *ret_count, struct why *reason)
{
    (void)arg, (void)position, (void)reason;
    *ret_count = count * (SEQ_LEN + 1) * sizeof(uint32_t);
    *ret_bytes = calloc(1, *ret_count);
    return 0;
}

// Over several connections, that read nothing.
static void test_one_member_starves_no_other(void **state)
{
    (void)state;
    enum { CONNECTIONS = 3, HONEST = 20 };
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .answer = give_samples,
                                                 .seq_len = SEQ_LEN };
    bulk_server_t *server = NULL;
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    fixture_admit(server);
    const struct wire_holder holder = fixture_at(bulk_server_endpoint(server));
    struct member *member = member_new(server, &holder);
    static struct fixture_asker peers[CONNECTIONS];
    const struct wire_want_samples all = { 1, 0, SAMPLES }, some = { 1, 0, 16 };
    for (int i = 0; i < CONNECTIONS; i++) {
        open_own(&peers[i], &holder);
        for (int n = 0; n < 24; n++)
            assert_true(fixture_say(&peers[i], FIXTURE_RUN, FRAME_WANT_SAMPLES, &all));
    }
    for (int i = 0; i < HONEST; i++) {
        assert_int_equal(ask(member, FRAME_WANT_SAMPLES, &some), FRAME_SAMPLES);
        sleep_ms(20);
    }
    const struct bulk_counts counts = bulk_counts_of(server);
    print_message("%d answers of 4 MiB to one key, over %d connections\n",
                  (int)((counts.samples - 16 * HONEST) / SAMPLES), CONNECTIONS);
    // 5 MiB wait for each; the kernel took the rest, 6 MiB at both sides together.
    assert_true(counts.samples - 16 * HONEST < 5 * CONNECTIONS * SAMPLES);
    for (int i = 0; i < CONNECTIONS; i++) bulk_line_close(&peers[i].line);
    // A peer that has read its answers gets more
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask(member, FRAME_WANT_SAMPLES, &all), FRAME_SAMPLES);
    assert_int_equal(bulk_counts_of(server).refusals, 0);
    member_destroy(member);
    bulk_server_destroy(&server);
}

static int give_slowly(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                       size_t *ret_count, struct why *reason)
{
    sleep_ms(SLOW_MS);
    return give_samples(arg, position, count, ret_bytes, ret_count, reason);
}

// What takes time is the server's work. One key asks over many connections, always; another has one
// question at a time: each second answer is its own.
static void test_keys_take_turns(void **state)
{
    (void)state;
    enum { CONNECTIONS = BULK_KEY_CONNECTIONS_MAX, QUESTIONS = 80, HONEST = 30 };
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .answer = give_slowly,
                                                 .seq_len = SEQ_LEN };
    bulk_server_t *server = NULL;
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    fixture_admit(server);
    const struct wire_holder holder = fixture_at(bulk_server_endpoint(server));
    struct member *member = member_new(server, &holder);
    static struct fixture_asker peers[CONNECTIONS];
    const struct wire_want_samples one = { 1, 0, 1 }, many = { 1, 0, 64 };
    for (int i = 0; i < CONNECTIONS; i++) open_own(&peers[i], &holder);
    for (int n = 0; n < QUESTIONS; n++)
        for (int i = 0; i < CONNECTIONS; i++)
            assert_true(fixture_say(&peers[i], FIXTURE_RUN, FRAME_WANT_SAMPLES, &many));
    for (int i = 0; i < HONEST; i++)
        assert_int_equal(ask(member, FRAME_WANT_SAMPLES, &one), FRAME_SAMPLES);
    const int others = (int)((bulk_counts_of(server).samples - HONEST) / 64);
    print_message("%d answers to the one with a question at a time, %d to the one with %d\n",
                  HONEST, others, CONNECTIONS * QUESTIONS);
    assert_true(others < 2 * HONEST); // Else it would be four times as many
    for (int i = 0; i < CONNECTIONS; i++) bulk_line_close(&peers[i].line);
    // What they had asked is forgotten with them
    assert_int_equal(ask(member, FRAME_WANT_SAMPLES, &one), FRAME_SAMPLES);
    const uint64_t left = bulk_counts_of(server).samples;
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask(member, FRAME_WANT_SAMPLES, &one), FRAME_SAMPLES);
    assert_true(bulk_counts_of(server).samples - left <= 10 + CONNECTIONS * 64);
    member_destroy(member);
    bulk_server_destroy(&server);
}

static int resident_mib(void)
{
    long pages = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "re");
    assert_true(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return (int)(pages * sysconf(_SC_PAGESIZE) / MIB);
}

// Readers that take nothing have answers of each of many snapshots in their queues: none of those
// snapshots is kept for them.
static void test_slow_readers_keep_no_snapshots(void **state)
{
    (void)state;
    enum { FLOATS = 2 * MIB, LEAVES = FLOATS / DIGEST_LEAF_FLOATS, SNAPSHOTS = 12, QUESTIONS = 40 };
    static struct hash leaves[LEAVES];
    static struct fixture_asker peers[SNAPSHOTS];
    struct fixture_holder holder = fixture_holder_new();
    float *params = calloc(FLOATS, sizeof *params);
    int before = 0;
    for (int i = 0; i < SNAPSHOTS; i++) {
        for (int leaf = 0; leaf < LEAVES; leaf++)
            params[leaf * DIGEST_LEAF_FLOATS] = (float)(i + 1);
        digest_fill_leaves(params, FLOATS, 0, LEAVES, leaves);
        pin_vector(holder.store, (uint64_t)i, params, FLOATS);
        const struct wire_want want = { (uint32_t)i, leaves[i], 0, STATE_LEAF_BYTES };
        const uint64_t chunks = bulk_counts_of(holder.server).chunks;
        open_own(&peers[i], &holder.holder);
        for (int n = 0; n < QUESTIONS; n++)
            assert_true(fixture_say(&peers[i], FIXTURE_RUN, FRAME_WANT, &want));
        while (bulk_counts_of(holder.server).chunks < chunks + QUESTIONS / 2) sleep_ms(1);
        if (i == BLOB_PINS_MAX) before = resident_mib();
    }
    const int more = resident_mib() - before;
    print_message("%d snapshots of 8 MiB, %d MiB more resident\n", SNAPSHOTS, more);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // They keep what is freed
    assert_true(more < 16);
#endif
    for (int i = 0; i < SNAPSHOTS; i++) bulk_line_close(&peers[i].line);
    free(params);
    fixture_holder_destroy(&holder);
}

// A buddy has each new share once, however soon one follows another.
static void test_each_new_share_is_had(void **state)
{
    (void)state;
    enum { FLOATS = 6 * MIB, BYTES = 4 * FLOATS, LEAVES = FLOATS / DIGEST_LEAF_FLOATS, SHARES = 5 };
    const struct state_cut cut = state_cut_of_floats(FLOATS);
    const struct share_list list = share_list_of(&cut, 0, 1, SHARE_ALIKE);
    struct fixture_holder holder = fixture_holder_new();
    struct hash *leaves = calloc(LEAVES, sizeof *leaves);
    for (uint64_t step = 1; step <= SHARES; step++) {
        uint8_t *bytes = fixture_bytes(BYTES, 50 + step);
        blob_share_t *share;
        assert_int_equal(blob_store_new_share(holder.store, &cut, NULL, &share), 0);
        memcpy(blob_share_bytes(share), bytes, BYTES);
        state_item_fill(bytes, BYTES, leaves);
        const struct hash digest = state_cut_root(&cut, leaves);
        blob_store_put_share(holder.store, &share, step, &list, leaves);
        share = blob_store_share(holder.store, step);
        assert_int_equal(blob_share_complete(share, &digest, leaves, NULL), 0);
        blob_share_release(&share);
        blob_store_drop_shares(holder.store, step, UINT64_MAX);

        struct fixture_fetcher *fetcher = fixture_fetcher_new(BUSY_MS);
        fixture_fetch_model(fetcher, step, &digest, FLOATS, &holder.holder, 1);
        const struct wire_fetched_model *fetched =
            fixture_answer(fetcher, FRAME_FETCHED_MODEL, BUSY_MS);
        assert_true(fetched && fetched->ok);
        fixture_fetcher_destroy(fetcher);
        free(bytes);
    }
    free(leaves);
    fixture_holder_destroy(&holder);
}

TESTS(TEST(test_strangers_leave_descriptors), // It forks: before any thread
      TEST(test_questions_without_end_wait), TEST(test_whole_questions_are_heard),
      TEST(test_a_crowd_of_one_key_is_cut), TEST(test_one_key_gets_all_of_it_twice),
      TEST(test_a_whole_state_is_had_twice), TEST(test_each_new_share_is_had),
      TEST(test_refusals_have_a_rate), TEST(test_one_member_starves_no_other),
      TEST(test_keys_take_turns), TEST(test_slow_readers_keep_no_snapshots))
