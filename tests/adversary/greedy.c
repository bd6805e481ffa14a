// greedy -- what one peer can cost a run that sends as much as it may: every kind of frame, as each role,
// to the coordinator, to a trainer, to everybody and to a bulk server, reading the answers and not.
//
//     build/live/greedy                  every cell, about half an hour (make greedy)
//     build/live/greedy ASK PING         these kinds only
//
// A run of three trainers goes on all the while. In each cell a peer joins, sends for POUR_MS all that the
// broker's budget of a member lets through (rate_of), and leaves. The rounds a second meanwhile must be at
// least half of the undisturbed ones, and at least 80 % in the second second after it. A cell that fails is repeated,
// against fresh undisturbed ones, TURNS times in all: this machine does other work as well, and so does the
// peer, which signs on the same processors. Ends with 0 if no cell failed each time.
//
// Bodies are made up from the wire table, and where a made-up one would be refused at once, from what the run
// has said (fill_known). A data provider is not among the roles: it is asked by trainers, so its harm is
// what it answers (provider_test), not what it asks.

#include "common/actor/cost.h"
#include "common/base/clock.h"
#include "common/bulk/bulk_line.h"
#include "tests/fuzz/wire_fill.h"
#include "tests/live/own_actor.h"
#include "tests/test.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    RATE = 1950,
    STEP_MS = 4,
    BATCH_MAX = 64,
    POUR_MS = 1500,
    CALM_MS = 1000,
    AFTER_MS = 1000,
    BASE_MS = 3000,
    TURNS = 3,
    KEYS = 32,
    JOIN_MS = 20000,
    OUTSTANDING = 960,
    STEPS = 1000000,
    FILL_BYTES = 1 << 20
};

enum target { COORDINATOR, TRAINER, EVERYBODY, BULK, TARGETS };
static const char *const target_names[TARGETS] = { "coordinator", "trainer", "everybody", "bulk" };

struct rank {
    const char *name;
    uint8_t role;
    bool joins;
};
static const struct rank ranks[] = { { "trainer", ACTOR_TRAINER, true },
                                     { "checkpointer", ACTOR_CHECKPOINTER, true },
                                     { "stranger", ACTOR_TRAINER, false } };
enum { RANKS = sizeof ranks / sizeof *ranks };

struct cell {
    const struct rank *rank;
    enum target target;
    uint16_t kind;
    uint8_t topic; // Of ASK
    bool reads;
};

struct peer {
    struct cell cell;
    struct testbed *bed;
    struct own *own;
    char trainer[ACTOR_NAME_MAX + 1];
    char bulk[128];
    struct wire_run run; // What the run said when the cell began
    uint64_t round, instance;
    struct wire_arena arena;
    struct wire_fill fill;
    atomic_bool stop;
    uint64_t rate; // Letters a second
    uint64_t sent, unsent;
};

// ---- bodies ---------------------------------------------------------------------------------------

// What fits the run as it stands.
static void fill_known(const struct peer *self, uint16_t kind, void *body)
{
    switch (kind) {
    case FRAME_PING:
        *(struct wire_ping *)body = (struct wire_ping){ .instance = self->instance };
        break;
    case FRAME_LEAVE: *(struct wire_leave *)body = (struct wire_leave){ self->instance }; break;
    case FRAME_ASK:
        *(struct wire_ask *)body = (struct wire_ask){ .topic = self->cell.topic };
        break;
    case FRAME_RECALL: snprintf(((struct wire_recall *)body)->run, WIRE_RUN_MAX + 1, "live"); break;
    case FRAME_HOLDS:
        ((struct wire_holds *)body)->epoch = self->run.epoch;
        ((struct wire_holds *)body)->step = self->run.step;
        break;
    case FRAME_UNREAD: ((struct wire_unread *)body)->step = self->run.step; break;
    case FRAME_VOTE: ((struct wire_vote *)body)->round = self->round; break;
    case FRAME_FINDING: ((struct wire_finding *)body)->round = self->round; break;
    case FRAME_REACH:
        snprintf(((struct wire_reach *)body)->endpoint, 128, "tcp://127.0.0.1:9");
        break;
    case FRAME_CLAIM: {
        struct wire_claim *claim = body;
        snprintf(claim->run, sizeof claim->run, "live");
        claim->epoch = self->run.epoch;
        claim->round = self->round;
        claim->author = *identity_key(self->own->identity);
        break;
    }
    case FRAME_PROGRESS: // Else the testbed takes it for a replica that differs
        ((struct wire_progress *)body)->digest = (struct hash){ { 0 } };
        break;
    case FRAME_WANT_SAMPLES: ((struct wire_want_samples *)body)->count = 1000; break;
    case FRAME_WANT: ((struct wire_want *)body)->count = BULK_CHUNK_MAX; break;
    default: break;
    }
}

static struct wire_join own_join(const struct peer *self)
{
    struct wire_join join = { .role = self->cell.rank->role, .instance = self->instance };
    snprintf(join.name, sizeof join.name, "%s", self->own->name);
    snprintf(join.endpoint, sizeof join.endpoint, "tcp://127.0.0.1:9");
    return join;
}

static const void *next_body(struct peer *self)
{
    static struct wire_join join;
    struct wire_head head;
    if (self->cell.kind == FRAME_JOIN) {
        join = own_join(self);
        return &join;
    }
    self->arena.used = 0;
    void *body = wire_fill_frame(&self->fill, self->cell.kind, &head);
    fill_known(self, self->cell.kind, body);
    return body;
}

// ---- pouring --------------------------------------------------------------------------------------

static void send_letters(struct peer *self, uint64_t count)
{
    static const char *const to[TARGETS] = { [COORDINATOR] = "coordinator" };
    for (uint64_t i = 0; i < count; i++) {
        const void *body = next_body(self);
        // Every other LEAVE is followed by a JOIN, else it is no member any more
        if (self->cell.kind == FRAME_LEAVE && self->sent % 2) {
            const struct wire_join join = own_join(self);
            post_mail(self->own->post, "coordinator", FRAME_JOIN, &join);
        } else if (self->cell.target == EVERYBODY) {
            post_publish(self->own->post, self->cell.kind, body);
        } else if (!post_mail(self->own->post,
                              self->cell.target == TRAINER ? self->trainer : to[self->cell.target],
                              self->cell.kind, body)) {
            self->unsent++;
            return;
        }
        self->sent++;
    }
}

static void pour_letters(struct peer *self)
{
    const uint64_t began_ms = clock_ms();
    while (!self->stop) {
        const uint64_t due = (clock_ms() - began_ms) * self->rate / 1000 - self->sent;
        send_letters(self, due < BATCH_MAX ? due : BATCH_MAX);
        zmq_pollitem_t item = { .socket = post_mail_socket(self->own->post), .events = ZMQ_POLLIN };
        if (self->cell.reads) own_heard(self->own, FRAME_NONE);
        else post_tick(self->own->post);
        zmq_poll(&item, self->cell.reads, STEP_MS);
    }
}

static void pour_questions(struct peer *self)
{
    const struct handshake_self own = bulk_line_self(self->own->identity, "live");
    struct identity *provider = testbed_identity("data-provider");
    struct wire_holder holder = { .key = *identity_key(provider) };
    struct bulk_line line = { .fd = -1, .raw_max = BULK_ANSWER_BYTES_MAX };
    struct why why = { 0 };
    static struct bulk_mail mail;
    uint64_t asked = 0;
    snprintf(holder.endpoint, sizeof holder.endpoint, "%s", self->bulk);
    while (!self->stop) {
        if (line.fd < 0 && bulk_line_connect(&line, &own, &holder, &why) < 0) self->unsent++;
        const int moved = bulk_line_move(&line, &why);
        if (moved < 0) bulk_line_close(&line), self->unsent++, asked = 0;
        while (moved > 0 && asked < OUTSTANDING) {
            bulk_line_put(&line, "live", self->cell.kind, next_body(self), NULL, 0);
            asked++, self->sent++;
        }
        enum bulk_heard heard = BULK_NOTHING;
        while (moved > 0 && self->cell.reads &&
               (heard = bulk_line_recv(&line, &mail, &why)) == BULK_MAIL)
            if (asked) asked--;
        if (heard == BULK_ENDED) bulk_line_close(&line), self->unsent++, asked = 0;
        struct pollfd item = { line.fd, line.fd < 0 ? 0 : bulk_line_events(&line), 0 };
        if (!self->cell.reads) item.events &= ~POLLIN;
        poll(&item, 1, STEP_MS);
        if (self->cell.reads) own_heard(self->own, FRAME_NONE); // It stays a member
    }
    bulk_line_close(&line);
    identity_destroy(&provider);
}

static void *pour(void *arg)
{
    struct peer *self = arg;
    if (self->cell.target == BULK) pour_questions(self);
    else pour_letters(self);
    return NULL;
}

// ---- a cell ---------------------------------------------------------------------------------------

static double rounds_s(struct testbed *bed, uint64_t ms)
{
    const uint64_t began_ms = clock_ms(), before = bed->news.rounds;
    testbed_pass_ms(bed, ms);
    return (double)(bed->news.rounds - before) * 1000.0 / (double)(clock_ms() - began_ms);
}

static bool await_while_run_goes_on(struct peer *self, uint16_t kind)
{
    for (uint64_t until_ms = clock_ms() + JOIN_MS; clock_ms() < until_ms;) {
        if (own_await(self->own, kind, 20)) return true;
        testbed_pass_ms(self->bed, 1);
    }
    return false;
}

static bool join_run(struct peer *self)
{
    if (!await_while_run_goes_on(self, FRAME_WELCOME)) return false;
    if (!self->cell.rank->joins) return true;
    const struct wire_join join = own_join(self);
    return post_mail(self->own->post, "coordinator", FRAME_JOIN, &join) &&
           await_while_run_goes_on(self, FRAME_ADMITTED);
}

static void end_membership(struct peer *self)
{
    const struct wire_leave leave = { self->instance };
    if (self->cell.rank->joins) post_mail(self->own->post, "coordinator", FRAME_LEAVE, &leave);
    own_heard(self->own, FRAME_NONE);
    own_destroy(self->own);
}

// Letters a second: at least RATE, and more if the kind is cheap and rounds are quick. What is over the budget is
// ignored, but not so much that the broker would cut the connection.
static uint64_t rate_of(const struct cell *cell, double rounds_s)
{
    const double frames_s = RATE + rounds_s * COST_ROUND_FRAMES;
    const double cost = cell->target == EVERYBODY ? COST_NEWS_FRAMES : cost_in_frames(cell->kind);
    return frames_s / cost > RATE ? (uint64_t)(frames_s / cost) : RATE;
}

struct measured {
    double before, during, after;
    uint64_t sent, unsent;
    bool joined;
};

static struct measured play(struct peer *self, const struct cell *cell, double base)
{
    static unsigned keys;
    char key[32];
    struct measured m = { .before = base };
    pthread_t thread;
    snprintf(key, sizeof key, "greedy %s %u", cell->rank->name, keys++ % KEYS); // Keeps its role
    self->cell = *cell;
    self->rate = rate_of(cell, base);
    self->own = own_new(self->bed, key, cell->rank->role);
    self->instance = clock_unix_ms();
    self->stop = false;
    self->sent = self->unsent = 0;
    m.joined = join_run(self);
    self->run = self->bed->news.run;
    self->round = self->bed->news.rounds;
    if (m.joined) {
        ensure(pthread_create(&thread, NULL, pour, self) == 0);
        m.during = rounds_s(self->bed, POUR_MS);
        self->stop = true;
        ensure(pthread_join(thread, NULL) == 0);
    }
    end_membership(self);
    testbed_pass_ms(self->bed, CALM_MS);
    m.after = rounds_s(self->bed, AFTER_MS);
    m.sent = self->sent, m.unsent = self->unsent;
    return m;
}

static bool is_well(const struct measured *m)
{
    return m->joined && m->during >= m->before / 2 && m->after >= m->before * 0.8;
}

static bool judge(struct peer *self, const struct cell *cell, double *base)
{
    struct measured m = { 0 };
    bool well = false;
    for (int turn = 0; turn < TURNS && !well; turn++) {
        if (turn > 0) *base = rounds_s(self->bed, BASE_MS);
        m = play(self, cell, *base);
        well = is_well(&m);
    }
    char kind[64];
    snprintf(kind, sizeof kind, "%s%s%s", wire_kind_name(cell->kind),
             cell->kind == FRAME_ASK ? " " : "",
             cell->kind == FRAME_ASK ? wire_enum_topic.names[cell->topic] : "");
    print_message("%-12s %-11s %-16s %-5s %7.0f %8.1f %8.1f %8.1f  %s\n", cell->rank->name,
                  target_names[cell->target], kind, cell->reads ? "yes" : "no",
                  (double)m.sent * 1000 / POUR_MS, m.before, m.during, m.after,
                  well        ? "ok"
                  : !m.joined ? "NOT ADMITTED"
                              : "FAILED");
    fflush(stdout);
    return well;
}

// ---- all ------------------------------------------------------------------------------------------

static bool goes_to(uint16_t kind, enum target target)
{
    const unsigned flags = wire_kind_flags(kind);
    if (target == BULK)
        return kind == FRAME_WANT || kind == FRAME_WANT_LEAVES || kind == FRAME_WANT_SAMPLES ||
               kind == FRAME_WANT_DATASET;
    if (target == EVERYBODY) return flags & WIRE_NEWS;
    return flags & WIRE_MAIL;
}

static const char *wanted_kinds; // NULL: all. " ASK PING "

static bool is_wanted(uint16_t kind)
{
    char name[64];
    snprintf(name, sizeof name, " %s ", wire_kind_name(kind));
    return !wanted_kinds || strstr(wanted_kinds, name);
}

static void play_kind(struct peer *self, uint16_t kind, double *base, unsigned *passed,
                      unsigned *failed)
{
    const uint8_t topics = kind == FRAME_ASK ? TOPIC_COUNT : 1;
    for (int t = 0; t < TARGETS; t++)
        for (int r = 0; goes_to(kind, t) && r < RANKS; r++)
            for (uint8_t topic = 0; topic < topics; topic++)
                for (int reads = 1; reads >= 0; reads--) {
                    const struct cell cell = { &ranks[r], t, kind, topic, reads };
                    if (t == BULK && !ranks[r].joins) continue; // The handshake refuses it
                    ++*(judge(self, &cell, base) ? passed : failed);
                }
}

static void every_cell_leaves_half(void **state)
{
    unsigned passed = 0, failed = 0;
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .total_steps = STEPS, .epoch_rounds = STEPS, .map_mib_max = 2048, .lease_s = 10 });
    static struct peer peer;
    peer = (struct peer){ .bed = bed, .arena = { malloc(FILL_BYTES), 0, FILL_BYTES } };
    peer.fill =
        (struct wire_fill){ .random = 1, .arena = &peer.arena, .list_max = 3, .bytes_max = 256 };
    testbed_start_all(bed);
    testbed_await_step(bed, 20);
    struct identity *trainer = testbed_identity("trainer0");
    actor_name(ACTOR_TRAINER, identity_key(trainer), peer.trainer);
    identity_destroy(&trainer);
    assert_true(testbed_log_has(bed, "data-provider", " bulk=", peer.bulk, sizeof peer.bulk));
    peer.bulk[strcspn(peer.bulk, " \n")] = 0;
    double base = rounds_s(bed, BASE_MS);
    print_message("%-12s %-11s %-16s %-5s %7s %8s %8s %8s\n", "as", "to", "kind", "reads", "sent/s",
                  "before", "during", "after");
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        if (is_wanted(kind)) play_kind(&peer, kind, &base, &passed, &failed);
    free(peer.arena.bytes);
    print_message("%u passed, %u failed\n", passed, failed);
    assert_int_equal(failed, 0);
    assert_true(passed > 0);
}

int main(int argc, char **argv)
{
    static char wanted[1024] = " ";
    for (int i = 1; i < argc; i++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s ", argv[i]);
    }
    if (argc > 1) wanted_kinds = wanted;
    const struct CMUnitTest tests[] = { TESTBED_TEST(every_cell_leaves_half) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
