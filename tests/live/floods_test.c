// Floods at a real broker, one after the other, while an honest member is served: idle connections,
// joins by keys that are on no list, frames that claim 8 GiB, messages without an end, letters and
// news that no peer reads, and more frames than an honest actor sends. LIVE_LONG=1 holds each for a
// minute instead of three seconds. A flood that is too small fails: each must reach a least amount,
// and the broker must count as many refusals of joins. The short form runs on machines that do
// other work as well: it goes on until it has the amount, and it repeats a flood in which a letter
// was late, TURNS times in all. A broker that does not serve is late each time; a machine that was
// busy is not. 10,000 idle connections (5,000 at least in the short form) need as many descriptors;
// where the limit is lower, their part is skipped.

#include "common/base/clock.h"
#include "tests/by_hand.h"
#include "tests/live/hostile_peer.h"
#include "tests/live/own_actor.h"
#include "common/base/ensure.h"
#include "tests/test.h"
#include <inttypes.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Of the broker: 256 MiB of messages on their way (connections.h), or 128 that are not read and 64
// of news (backlog.h), what arrives between two looks, and 30 KiB for each connection.
enum {
    SERVED_MS = 1000,
    RESIDENT_MIB_MAX = 512,
    SHORT_MS = 3000,
    LONG_MS = 60000,
    IDLE_MAX = 10000,
    IDLE_SHORT = 5000,
    JOINS_S = 1000,
    SOON_MS = 10000,
    PING_MS = 20,
    OWN_DESCRIPTORS = 200,
    RECALLS_S = 100,
    RESULTS_MAX = 16384,
    SHORT_SHARE = 5,
    LATEST_MS = 30000,
    TURNS = 3
};

// ---- floods -------------------------------------------------------------------------------------

struct flood {
    const char *name, *unit, *said; // Said: by the broker's log, of what it did about it; or NULL
    void *(*run)(void *flood);
    unsigned long mib_max;   // Of the broker; 0: RESIDENT_MIB_MAX
    bool news;               // While the coordinator publishes the largest of commits
    uint64_t least;          // Of `amount`
    uint64_t least_s;        // Or of each second; the short form, on a machine that does
                             // other things as well, asks a fifth of it
    bool refused;            // As many the broker must have refused; or again a fifth:
                             // a connection closed before its handshake is not
                             // refused
    uint64_t wanted;         // Of this turn, by the two
    uint64_t refused_before; // Of the broker's count
    struct testbed *bed;
    atomic_bool stop;
    int stopped; // An eventfd, readable from then on
    _Atomic uint64_t amount;
};

// Until the flood is stopped, or it is time for more.
static void pause_flood(const struct flood *self, int ms)
{
    zmq_pollitem_t item = { .fd = self->stopped, .events = ZMQ_POLLIN };
    zmq_poll(&item, 1, ms);
}

static int dial(const struct flood *flood, unsigned port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)(flood->bed->port + port)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) return fd;
    close(fd);
    return -1;
}

static uint64_t idle_most; // Established at once

static bool may_hold_idle(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= IDLE_MAX + OWN_DESCRIPTORS;
}

static bool is_established(int fd)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

// Half at each port; a connection that was cut off dials again.
static void *stay_idle(void *arg)
{
    struct flood *self = arg;
    static int fds[IDLE_MAX];
    for (unsigned i = 0; i < IDLE_MAX; i++) fds[i] = -1;
    while (!self->stop) {
        unsigned open_now = 0;
        for (unsigned i = 0; i < IDLE_MAX && !self->stop; i++) {
            char byte;
            if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
                close(fds[i]), fds[i] = -1;
            if (fds[i] < 0) fds[i] = dial(self, i % 2);
            open_now += is_established(fds[i]);
        }
        if (open_now > self->amount) self->amount = open_now;
        if (open_now > idle_most) idle_most = open_now;
        pause_flood(self, 100);
    }
    for (unsigned i = 0; i < IDLE_MAX; i++)
        if (fds[i] >= 0) close(fds[i]);
    return NULL;
}

// As a DEALER to the mail or a SUB to the news. It reads little: what comes stays where it is.
static void *call(void *context, int type, const struct flood *flood, const struct curve_pair *own)
{
    int one = 1, many = 1000000;
    void *socket; // Those that were closed are not all gone yet
    while (!(socket = by_hand_connect(context, type, flood->bed->port, own,
                                      &flood->bed->ticket.server))) {
        ensure(errno == EMFILE);
        pause_flood(flood, 10);
    }
    zmq_setsockopt(socket, ZMQ_SNDHWM, &many, sizeof many);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &one, sizeof one);
    return socket;
}

// A thousand new keys a second, if this machine is fast enough.
static void *join_unlisted(void *arg)
{
    struct flood *self = arg;
    enum { OPEN = 200 };
    void *context = zmq_ctx_new(), *open_now[OPEN] = { NULL };
    uint64_t began_ms = clock_ms();
    for (uint32_t i = 0; !self->stop; i++) {
        uint8_t secret[SECRET_BYTES] = { 77, (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16) };
        struct identity *identity;
        struct curve_pair own;
        ensure(identity_from_secret(secret, NULL, &identity) == 0);
        curve_draw(&own);
        const struct wire_hello hello = by_hand_hello(identity, &own, &self->bed->ticket.server);
        if (open_now[i % OPEN]) zmq_close(open_now[i % OPEN]);
        open_now[i % OPEN] = call(context, ZMQ_DEALER, self, &own);
        by_hand_say(open_now[i % OPEN], identity, FRAME_HELLO, &hello);
        identity_destroy(&identity);
        self->amount++;
        while (!self->stop && self->amount > (clock_ms() - began_ms) * JOINS_S / 1000)
            pause_flood(self, 1);
    }
    for (int i = 0; i < OPEN; i++)
        if (open_now[i]) zmq_close(open_now[i]);
    zmq_ctx_term(context);
    return NULL;
}

static void wait_ready(int fd, short events)
{
    zmq_pollitem_t item = { .fd = fd, .events = events };
    zmq_poll(&item, 1, 200);
}

// A greeting, then a command that says of itself that it has 8 GiB, and as much of it as is taken.
static void *claim_8_gib(void *arg)
{
    struct flood *self = arg;
    static const uint8_t header[] = { 0x06, 0, 0, 0, 2, 0, 0, 0, 0 };
    uint8_t greeting[64] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E' };
    static uint8_t noise[65536];
    while (!self->stop) {
        int fd = dial(self, 0);
        if (fd < 0) continue;
        wait_ready(fd, ZMQ_POLLOUT);
        send(fd, greeting, sizeof greeting, MSG_NOSIGNAL);
        send(fd, header, sizeof header, MSG_NOSIGNAL);
        for (int i = 0; i < 100 && !self->stop; i++) {
            wait_ready(fd, ZMQ_POLLOUT);
            if (send(fd, noise, sizeof noise, MSG_NOSIGNAL) < 0 && errno != EAGAIN) break;
        }
        close(fd);
        self->amount++;
    }
    return NULL;
}

// A key without a HELLO, whose message never ends: small parts, that cost the most. In MiB that were taken.
static void *never_end(void *arg)
{
    struct flood *self = arg;
    static uint8_t part[1000];
    struct hostile_peer peer = { .fd = -1 };
    uint64_t bytes = 0;
    while (!self->stop) {
        if (peer.fd < 0 &&
            !hostile_peer_connect(&peer, self->bed->port, &self->bed->ticket.server, NULL))
            pause_flood(self, 100);
        for (int i = 0; i < 1000 && peer.fd >= 0; i++)
            if (hostile_peer_send(&peer, true, part, sizeof part)) bytes += sizeof part;
        self->amount = bytes >> 20;
    }
    hostile_peer_close(&peer);
    return NULL;
}

// A member that the broker has welcomed, and that says HELLO again as often as it likes.
struct mallory {
    struct identity *identity;
    struct curve_pair own;
    struct wire_hello hello;
    void *context, *dealer;
};

static void mallory_begin(struct mallory *self, const struct flood *flood)
{
    struct by_hand_heard heard;
    self->identity = testbed_identity("mallory");
    curve_draw(&self->own);
    self->hello = by_hand_hello(self->identity, &self->own, &flood->bed->ticket.server);
    self->hello.instance = clock_unix_ms();
    self->context = zmq_ctx_new();
    self->dealer = call(self->context, ZMQ_DEALER, flood, &self->own);
    ensure(by_hand_register(self->dealer, self->identity, &self->hello, SOON_MS, &heard) ==
           FRAME_WELCOME);
}

static void mallory_end(struct mallory *self)
{
    zmq_close(self->dealer);
    zmq_ctx_term(self->context);
    identity_destroy(&self->identity);
}

// A member asks again and again for the last values of the run, some MiB, and does not read them.
static void *ask_and_not_read(void *arg)
{
    struct flood *self = arg;
    struct mallory mallory;
    mallory_begin(&mallory, self);
    for (; !self->stop; self->amount++) {
        by_hand_say(mallory.dealer, mallory.identity, FRAME_RECALL,
                    &(struct wire_recall){ .run = "live" });
        pause_flood(self, 1000 / RECALLS_S);
    }
    mallory_end(&mallory);
    return NULL;
}

static void *subscribe_and_not_read(void *arg)
{
    struct flood *self = arg;
    enum { SUBSCRIBERS = 10 };
    struct mallory mallory;
    void *sockets[SUBSCRIBERS];
    mallory_begin(&mallory, self);
    for (int i = 0; i < SUBSCRIBERS; i++)
        sockets[i] = call(mallory.context, ZMQ_SUB, self, &mallory.own);
    self->amount = SUBSCRIBERS;
    while (!self->stop) { // It stays registered, so that it may subscribe again when it is cut
        by_hand_say(mallory.dealer, mallory.identity, FRAME_HELLO, &mallory.hello);
        pause_flood(self, 500);
    }
    for (int i = 0; i < SUBSCRIBERS; i++) zmq_close(sockets[i]);
    mallory_end(&mallory);
    return NULL;
}

// Whole frames, as many as go: junk, from a key that has not even said HELLO.
static void *talk_too_much(void *arg)
{
    struct flood *self = arg;
    struct curve_pair own;
    curve_draw(&own);
    void *context = zmq_ctx_new(), *dealer = call(context, ZMQ_DEALER, self, &own);
    for (uint64_t bounds = 0; !self->stop; bounds++) {
        zmq_send(dealer, "coordinator", 11, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        if (zmq_send(dealer, "junk", 4, ZMQ_DONTWAIT) == 4) self->amount++;
        if (bounds % 1000 == 0) pause_flood(self, 1);
    }
    zmq_close(dealer);
    zmq_ctx_term(context);
    return NULL;
}

// A flood comes from other machines: here it gets what processor time the broker leaves.
static void *pour(void *arg)
{
    struct flood *self = arg;
    setpriority(PRIO_PROCESS, 0, 15); // Of this thread, and of those it starts
    return self->run(self);
}

// ---- the measure --------------------------------------------------------------------------------

// The broker says each second what it has done, as it would to systemd.
struct status {
    int fd;
    char env[64];
    _Atomic uint64_t refused;
};

static void *hear_status(void *arg)
{
    struct status *self = arg;
    char said[512];
    ssize_t count;
    while ((count = recv(self->fd, said, sizeof said - 1, 0)) > 0) {
        uint64_t refused;
        said[count] = 0;
        const char *at = strstr(said, " connections, ");
        if (at && sscanf(at, " connections, %" PRIu64 " refused", &refused) == 1)
            self->refused = refused;
    }
    return NULL;
}

static void status_open(struct status *self)
{
    struct sockaddr_un own = { .sun_family = AF_UNIX };
    char name[32];
    const int count = snprintf(name, sizeof name, "floods-%d", (int)getpid());
    memcpy(own.sun_path + 1, name, (size_t)count);
    snprintf(self->env, sizeof self->env, "NOTIFY_SOCKET=@%s", name);
    self->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ensure(self->fd >= 0 &&
           bind(self->fd, (struct sockaddr *)&own,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count)) == 0);
    pthread_t thread;
    ensure(pthread_create(&thread, NULL, hear_status, self) == 0 && pthread_detach(thread) == 0);
}

// Whether the flood reached its amount, and the broker's log names it if `said` is set.
static bool is_enough(const struct flood *flood, const struct status *status)
{
    return flood->amount >= flood->wanted &&
           (!flood->refused || status->refused - flood->refused_before >=
                                   flood->wanted / (testbed_is_long() ? 1 : SHORT_SHARE)) &&
           (!flood->said || testbed_log_has(flood->bed, "broker", flood->said, NULL, 0));
}

static unsigned long resident_mib(pid_t pid)
{
    char path[64], line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %lu", &kib);
    if (file) fclose(file);
    return kib >> 10;
}

struct measured {
    uint64_t worst_ms, newcomer_ms;
    unsigned long mib;
    unsigned letters;
};

// Some 3 MiB: a broker keeps it and sends it to each actor that asks.
static void publish_commit(struct own *coordinator)
{
    static struct wire_accepted accepted[RESULTS_MAX];
    static struct wire_commit commit = { .accepted = accepted, .accepted_count = RESULTS_MAX };
    for (uint32_t i = 0; commit.round == 0 && i < RESULTS_MAX; i++) accepted[i].end = 1;
    commit.round++;
    post_publish(coordinator->post, FRAME_COMMIT, &commit);
}

// A letter each PING_MS from the member to the coordinator, the next once the last has come; in the
// middle of it a newcomer is let in.
static struct measured measure(struct testbed *bed, struct own *coordinator, struct own *trainer,
                               const struct flood *flood, const struct status *status,
                               uint64_t lasts_ms)
{
    struct measured measured = { 0 };
    pid_t broker = testbed_actor(bed, "broker")->pid;
    uint64_t until_ms = clock_ms() + lasts_ms, middle_ms = until_ms - lasts_ms / 2;
    uint64_t latest_ms = until_ms + (testbed_is_long() ? SOON_MS : LATEST_MS);
    while (clock_ms() < until_ms || (!is_enough(flood, status) && clock_ms() < latest_ms)) {
        if (flood->news) publish_commit(coordinator);
        uint64_t began_ms = clock_ms();
        ensure(post_mail(trainer->post, "coordinator", FRAME_PING,
                         &(struct wire_ping){ .instance = 1 }));
        uint64_t took_ms = own_await_ms(coordinator, FRAME_PING, SOON_MS);
        measured.letters++;
        if (took_ms > measured.worst_ms) measured.worst_ms = took_ms;
        unsigned long mib = resident_mib(broker);
        if (mib > measured.mib) measured.mib = mib;
        if (!measured.newcomer_ms && clock_ms() > middle_ms) {
            struct own *newcomer = own_new(bed, "newcomer", ACTOR_WITNESS);
            measured.newcomer_ms = own_await_ms(newcomer, FRAME_WELCOME, SOON_MS) + 1;
            own_destroy(newcomer);
        }
        const uint64_t now_ms = clock_ms(); // Meanwhile what the broker says to it is taken
        if (now_ms < began_ms + PING_MS)
            own_await(trainer, FRAME_NONE, began_ms + PING_MS - now_ms);
    }
    return measured;
}

static uint64_t least_of(const struct flood *flood, uint64_t lasts_ms)
{
    if (flood->least) return flood->least;
    return flood->least_s * lasts_ms / 1000 / (testbed_is_long() ? 1 : SHORT_SHARE);
}

// The flooding threads have little processor time and may need long to close their connections. An
// actor that is silent for all that time would count as gone: so both talk while we wait.
static void join_talking(pthread_t thread, struct own *coordinator, struct own *trainer)
{
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
        own_await(coordinator, FRAME_NONE, PING_MS);
        own_await(trainer, FRAME_NONE, PING_MS);
    }
}

static struct measured pour_and_measure(struct testbed *bed, struct own *coordinator,
                                        struct own *trainer, struct flood *flood,
                                        const struct status *status, uint64_t lasts_ms)
{
    pthread_t thread;
    flood->bed = bed;
    flood->wanted = least_of(flood, lasts_ms);
    flood->stop = false;
    flood->amount = 0;
    flood->refused_before = status->refused;
    flood->stopped = eventfd(0, EFD_CLOEXEC);
    ensure(flood->stopped >= 0);
    if (flood->run) ensure(pthread_create(&thread, NULL, pour, flood) == 0);
    const struct measured m = measure(bed, coordinator, trainer, flood, status, lasts_ms);
    flood->stop = true;
    ensure(eventfd_write(flood->stopped, 1) == 0);
    if (flood->run) join_talking(thread, coordinator, trainer);
    close(flood->stopped);
    print_message("%-18s %12" PRIu64 " %-8s %11" PRIu64 " ms %11" PRIu64 " ms %12lu MiB\n",
                  flood->name, flood->amount, flood->unit, m.worst_ms, m.newcomer_ms, m.mib);
    return m;
}

static bool was_served(struct measured m)
{
    return m.worst_ms < SERVED_MS && m.newcomer_ms < SERVED_MS && m.letters > 0;
}

static void an_honest_member_is_served(void **state)
{
    static const char *const names[] = { "coordinator", "trainer0", "newcomer", "mallory" };
    static struct flood floods[] = {
        { .name = "nothing", .unit = "" },
        { .name = "idle connections", .unit = "at once", .run = stay_idle, .least = IDLE_SHORT },
        { .name = "unlisted joins",
          .unit = "in all",
          .run = join_unlisted,
          .least_s = JOINS_S / 2,
          .refused = true },
        { .name = "8 GiB claimed", .unit = "times", .run = claim_8_gib, .least_s = 100 },
        { .name = "endless multipart",
          .unit = "MiB",
          .run = never_end,
          .least = 32,
          .said = "more bytes than messages" },
        { .name = "letters not read",
          .unit = "RECALLs",
          .run = ask_and_not_read,
          .least_s = RECALLS_S / 2,
          .mib_max = 256 },
        { .name = "news not read",
          .unit = "deaf",
          .run = subscribe_and_not_read,
          .news = true,
          .least = 10,
          .said = "does not take what waits for it" },
        { .name = "junk frames",
          .unit = "in all",
          .run = talk_too_much,
          .least_s = 10000,
          .said = "gate.over_budget from=a stranger" },
    };
    uint64_t lasts_ms = testbed_is_long() ? LONG_MS : SHORT_MS;
    char text[512] = "", hex[KEY_HEX];
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .admit = "allowlist=list", .owned = true });
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < 4; i++) {
        struct identity *identity = testbed_identity(names[i]);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s\n", key_to_hex(identity_key(identity), hex));
        identity_destroy(&identity);
    }
    testbed_write_file(bed, "list", text, strlen(text));
    static struct status status;
    status_open(&status);
    testbed_start_with(
        bed, "broker",
        &(struct testbed_launch){ .env = (const char *const[]){ status.env, NULL } });
    struct own *coordinator = own_new(bed, "coordinator", ACTOR_COORDINATOR),
               *trainer = own_new(bed, "trainer0", ACTOR_TRAINER);
    assert_true(own_await(coordinator, FRAME_WELCOME, SOON_MS));
    assert_true(own_await(trainer, FRAME_WELCOME, SOON_MS));
    publish_commit(coordinator);
    print_message("%-18s %12s %-8s %14s %14s %16s\n", "flood", "amount", "", "letter, worst",
                  "newcomer", "broker resident");
    bool well = true, whole = true;
    for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
        struct flood *flood = &floods[i];
        if (flood->run == stay_idle && !may_hold_idle()) continue;
        struct measured m = pour_and_measure(bed, coordinator, trainer, flood, &status, lasts_ms);
        for (int turn = 1; !testbed_is_long() && !was_served(m) && turn < TURNS; turn++) {
            const unsigned long mib = m.mib; // Memory is bounded even when a letter is late
            m = pour_and_measure(bed, coordinator, trainer, flood, &status, lasts_ms);
            if (m.mib < mib) m.mib = mib;
        }
        if (flood->refused)
            print_message("%-18s %12" PRIu64 " refused by the broker\n", "",
                          status.refused - flood->refused_before);
        whole = whole && is_enough(flood, &status);
        well =
            well && was_served(m) && m.mib < (flood->mib_max ? flood->mib_max : RESIDENT_MIB_MAX);
    }
    own_destroy(coordinator), own_destroy(trainer);
    if (!well)
        testbed_fail(bed,
                     "a letter or a newcomer took %d ms or more, or the broker too much memory",
                     SERVED_MS);
    if (!whole) testbed_fail(bed, "a flood was less than it has to be");
}

static void idle_connections_were_as_many(void **state)
{
    (void)state;
    if (!may_hold_idle()) {
        print_message("SKIP: %d idle connections want as many descriptors and %d more: raise the "
                      "limit\n",
                      IDLE_MAX, OWN_DESCRIPTORS);
        skip();
    }
    assert_in_range(idle_most, testbed_is_long() ? IDLE_MAX : IDLE_SHORT, IDLE_MAX);
}

TESTS(TESTBED_TEST(an_honest_member_is_served),
      { "idle connections were as many as stated (10,000 descriptors)",
        idle_connections_were_as_many, NULL, NULL, NULL })
