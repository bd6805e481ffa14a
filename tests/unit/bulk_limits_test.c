// What a hostile peer can take from a bulk server is bounded: memory, descriptors, the time of
// other peers. The peer speaks by hand (tests/live/hostile_peer.h), as the library would refuse to
// send this.
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/live/hostile_peer.h"
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
    PART = 60000,
    SEQ_LEN = 1023,
    SAMPLES = 1000,
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

static void connect_hostile(struct hostile_peer *peer, const struct wire_holder *holder)
{
    const struct identity *identity = fixture_identity();
    assert_true(hostile_peer_connect(peer, port_of(holder), identity, identity_key(identity)));
}

static bool say(struct hostile_peer *peer, uint16_t kind, const void *question)
{
    struct wire_head head = { .kind = kind, .run = FIXTURE_RUN };
    uint8_t frame[BULK_FRAME_MAX];
    const size_t count = wire_pack(&head, question, frame, sizeof frame);
    return hostile_peer_send(peer, false, frame, count);
}

// Another member, which keeps the protocol.
struct member {
    struct identity *identity;
    void *context, *dealer;
    struct bulk_mail mail;
};

static struct member member_new(bulk_server_t *server, const struct wire_holder *holder)
{
    static const uint8_t secret[SECRET_BYTES] = { 7 };
    struct member self = { .context = net_context_new(1) };
    struct curve_key key;
    assert_int_equal(identity_from_secret(secret, &why, &self.identity), 0);
    assert_true(curve_of_key(identity_key(self.identity), &key));
    bulk_server_admit(server, &key, true);
    self.dealer = net_socket_new(self.context, ZMQ_DEALER, BULK_ANSWER_BYTES_MAX, 64);
    assert_true(bulk_connect(self.dealer, self.identity, holder));
    bulk_mail_init(&self.mail);
    return self;
}

static void member_destroy(struct member *self)
{
    bulk_mail_end(&self->mail);
    zmq_close(self->dealer);
    net_context_destroy(&self->context);
    identity_destroy(&self->identity);
}

// The kind of the answer, 0 if there was none in a second.
static uint16_t hear(struct member *self)
{
    zmq_pollitem_t item = { .socket = self->dealer, .events = ZMQ_POLLIN };
    if (zmq_poll(&item, 1, ANSWER_MS) != 1) return 0;
    assert_int_equal(bulk_mail_recv(&self->mail, self->dealer), BULK_MAIL);
    return self->mail.head.kind;
}

static uint16_t ask(struct member *self, uint16_t kind, const void *question)
{
    bulk_send(self->dealer, NULL, FIXTURE_RUN, kind, question, NULL);
    return hear(self);
}

// ---- what comes -----------------------------------------------------------------------------

static void test_endless_multipart_is_cut(void **state)
{
    (void)state;
    static uint8_t part[PART];
    struct fixture_holder holder = fixture_holder_new();
    struct member member = member_new(holder.server, &holder.holder);
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    struct hostile_peer peer;
    uint64_t sent = 0;
    connect_hostile(&peer, &holder.holder);
    while (sent < 256 * MIB && hostile_peer_send(&peer, true, part, PART)) sent += PART;
    print_message("cut off after %d MiB\n", (int)(sent / MIB));
    assert_true(peer.fd < 0);
    assert_true(bulk_counts_of(holder.server).cut >= 1);
    assert_int_equal(ask(&member, FRAME_WANT, &want), FRAME_LACKING);
    member_destroy(&member);
    fixture_holder_destroy(&holder);
}

// In all ten times what may wait, one after the other: that is what a connection is for.
static void test_whole_questions_are_not(void **state)
{
    (void)state;
    enum { QUESTIONS = 4000, PARTS = 4, LENGTH = 600 };
    struct fixture_holder holder = fixture_holder_new();
    struct member member = member_new(holder.server, &holder.holder);
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    static const uint8_t noise[LENGTH];
    for (int i = 0; i < QUESTIONS; i++) {
        for (int part = 1; part <= PARTS; part++)
            zmq_send(member.dealer, noise, LENGTH, part < PARTS ? ZMQ_SNDMORE : 0);
        assert_int_equal(ask(&member, FRAME_WANT, &want), FRAME_LACKING);
    }
    assert_int_equal(bulk_counts_of(holder.server).heard, 2 * QUESTIONS);
    assert_int_equal(bulk_counts_of(holder.server).cut, 0);
    member_destroy(&member);
    fixture_holder_destroy(&holder);
}

// ---- descriptors ----------------------------------------------------------------------------

enum {
    DESCRIPTORS = 256,
    STRANGERS = 600,
    FETCHES = 4,
    ROUND_MS = 1200,
    PATIENCE_MS = 20000,
    PUTS_FAILED_MAX = 5
};

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
    // A few: the library accepts on while the thread that cuts waits for a processor. Without: all.
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= PUTS_FAILED_MAX);
}

static void test_a_crowd_of_one_key_is_cut(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    struct hostile_peer peers[BULK_KEY_CONNECTIONS_MAX + 8];
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX + 8; i++) {
        connect_hostile(&peers[i], &holder.holder);
        assert_true(say(&peers[i], FRAME_WANT, &want));
        while (bulk_counts_of(holder.server).refusals <= (uint64_t)i) sleep_ms(1);
    }
    assert_int_equal(bulk_counts_of(holder.server).cut, 8);
    for (int i = 0; i < BULK_KEY_CONNECTIONS_MAX + 8; i++) hostile_peer_close(&peers[i]);
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
    struct member member = member_new(server, &holder);
    struct hostile_peer peers[CONNECTIONS];
    const struct wire_want_samples all = { 1, 0, SAMPLES }, some = { 1, 0, 16 };
    for (int i = 0; i < CONNECTIONS; i++) {
        connect_hostile(&peers[i], &holder);
        for (int n = 0; n < 24; n++) assert_true(say(&peers[i], FRAME_WANT_SAMPLES, &all));
    }
    for (int i = 0; i < HONEST; i++) {
        assert_int_equal(ask(&member, FRAME_WANT_SAMPLES, &some), FRAME_SAMPLES);
        sleep_ms(20);
    }
    const struct bulk_counts counts = bulk_counts_of(server);
    print_message("%d answers of 4 MiB to one key, %d times busy\n",
                  (int)((counts.samples - 16 * HONEST) / SAMPLES), (int)counts.refusals);
    // 16 MiB wait; the kernel of the other side took the rest, 32 MiB at most for each.
    assert_true(counts.refusals >= 24);
    assert_true(counts.samples - 16 * HONEST < 24 * SAMPLES);
    for (int i = 0; i < CONNECTIONS; i++) hostile_peer_close(&peers[i]);
    // A peer that has read its answers gets more
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask(&member, FRAME_WANT_SAMPLES, &all), FRAME_SAMPLES);
    member_destroy(&member);
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

// A reader that takes nothing has an answer of each of many snapshots in its queue: none of those
// is kept for it.
static void test_slow_readers_keep_no_snapshots(void **state)
{
    (void)state;
    enum { FLOATS = 2 * MIB, LEAVES = FLOATS / DIGEST_LEAF_FLOATS, SNAPSHOTS = 24, FIRST = 36 };
    static struct hash leaves[LEAVES];
    struct fixture_holder holder = fixture_holder_new();
    float *params = calloc(FLOATS, sizeof *params);
    struct hostile_peer peer;
    int before = 0;
    connect_hostile(&peer, &holder.holder);
    for (int i = 0; i < SNAPSHOTS; i++) {
        for (int leaf = 0; leaf < LEAVES; leaf++)
            params[leaf * DIGEST_LEAF_FLOATS] = (float)(i + 1);
        digest_fill_leaves(params, FLOATS, 0, LEAVES, leaves);
        pin_vector(holder.store, (uint64_t)i, params, FLOATS);
        const struct wire_want want = { (uint32_t)i, leaves[i % LEAVES], 0, BULK_CHUNK_BYTES };
        const uint64_t chunks = bulk_counts_of(holder.server).chunks;
        for (int n = 0; n < (i ? 1 : FIRST); n++) assert_true(say(&peer, FRAME_WANT, &want));
        while (bulk_counts_of(holder.server).chunks < chunks + (i ? 1 : FIRST)) sleep_ms(1);
        if (i == BLOB_PINS_MAX) before = resident_mib();
    }
    const int more = resident_mib() - before;
    print_message("%d snapshots of 8 MiB, %d MiB more resident\n", SNAPSHOTS, more);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // They keep what is freed
    assert_true(more < 16);
#endif
    hostile_peer_close(&peer);
    free(params);
    fixture_holder_destroy(&holder);
}

TESTS(TEST(test_strangers_leave_descriptors), // It forks: before any thread
      TEST(test_endless_multipart_is_cut), TEST(test_whole_questions_are_not),
      TEST(test_a_crowd_of_one_key_is_cut), TEST(test_one_member_starves_no_other),
      TEST(test_slow_readers_keep_no_snapshots))
