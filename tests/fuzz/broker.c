// The whole post office, from inside: letters of any sender (events.h) over connections whose CURVE
// keys are proven. Each letter is signed by its sender; some are damaged on the way. No socket is
// opened. A HELLO is for its connection, and has that one's challenge, unless its choices say otherwise.
//
//     event    as events.h has it; its bearer is the connection, its first choice is the receiver, the
//              second what is wrong with the frame, all further ones are the fields'
//
// What must hold: an actor is registered under its own names only, and by no HELLO that is for another
// connection; nothing passes from an actor that is not registered; nothing passes from an ejected actor;
// the news let in the CURVE keys of registered actors only.

#include "broker/broker.h"
#include "common/net/descriptors.h"
#include "common/net/signed_frame.h"
#include "common/net/zap.h"
#include <stdarg.h>

static int fuzz_send(void *socket, const void *bytes, size_t count, int flags);
static void fuzz_cut(int fd, uint16_t port);
static void fuzz_log(int priority, const char *format, ...);
#define zmq_send        fuzz_send
#define descriptors_cut fuzz_cut
#define log_line        fuzz_log
#include "broker/gate.c"
#include "broker/letter.c"
#include "broker/mail.c"
#include "broker/news.c"
#undef zmq_send
#undef descriptors_cut
#undef log_line

#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { EVENTS_PER_INPUT = 60, FD_FIRST = 5000, FRAME_ROOM = 1 << 20, LETTER_CHOICES = 2 };

// What leaves the broker: at which part of a letter it is, and whether it finds a full queue.
static struct {
    uint32_t part;
    bool is_full;
} out;

static int fuzz_send(void *socket, const void *bytes, size_t count, int flags)
{
    (void)socket;
    ensure(count == 0 || bytes);
    if (out.is_full && out.part == 0) {
        errno = count % 2 ? EHOSTUNREACH : EAGAIN;
        return -1;
    }
    out.part = flags & ZMQ_SNDMORE ? out.part + 1 : 0;
    return (int)count;
}

static void fuzz_cut(int fd, uint16_t port)
{
    (void)port;
    ensure(fd >= FD_FIRST && fd < FD_FIRST + EVENT_PEOPLE);
}

static void fuzz_log(int priority, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (fuzz_is_verbose()) printf("%d %s\n", priority, line);
}

static const struct key server = { { 7 } };

// Of a connection.
static struct curve_key curve_of(uint8_t connection)
{
    return (struct curve_key){ { 9, connection } };
}

// Which the broker may not have drawn yet: then it does.
static void challenge_of(struct broker *self, uint8_t connection, uint64_t now_ms,
                         uint8_t ret_bytes[CHALLENGE_BYTES])
{
    const struct curve_key curve = curve_of(connection);
    struct delivery in = { .fd = FD_FIRST + connection };
    memcpy(in.user.bytes, curve.bytes, CURVE_BYTES);
    if (!connections_has(self->connections, in.fd, AT_MAIL, &curve))
        connections_heard(self->connections, in.fd, AT_MAIL, &curve, 0, now_ms);
    memset(ret_bytes, 0, CHALLENGE_BYTES);
    if (connections_has(self->connections, in.fd, AT_MAIL, &curve)) // Else it is cut
        broker_challenge(self, &in, ret_bytes);
}

// A choice for each field: 0 is what fits.
enum { HELLO_CONNECTION = 4, HELLO_SERVER, HELLO_CHALLENGE };

static void aim_hello(struct broker *self, const struct event *letter, uint64_t now_ms,
                      struct wire_hello *hello)
{
    uint8_t choices[HELLO_CHALLENGE + 1] = { 0 };
    const size_t count =
        letter->choices_count < sizeof choices ? letter->choices_count : sizeof choices;
    if (count > 0) memcpy(choices, letter->choices, count);
    const unsigned bearer = letter->bearer;
    const struct curve_key curve =
        curve_of((uint8_t)((bearer + choices[HELLO_CONNECTION]) % EVENT_PEOPLE));
    memcpy(hello->connection.bytes, curve.bytes, CURVE_BYTES);
    hello->server = server;
    hello->server.bytes[1] ^= choices[HELLO_SERVER];
    challenge_of(self, (uint8_t)((bearer + choices[HELLO_CHALLENGE]) % EVENT_PEOPLE), now_ms,
                 hello->challenge);
}

static struct route route_of(uint8_t connection)
{
    return (struct route){ .count = 1, .bytes = { connection }, .fd = FD_FIRST + connection };
}

static void choose_to(uint8_t choice, char to[ACTOR_NAME_MAX + 1])
{
    const char *text = choice == 0     ? "broker"
                       : choice == 1   ? "news"
                       : choice < 250  ? event_people()[choice % EVENT_PEOPLE].name
                       : choice == 250 ? ""
                       : choice == 251 ? "%s%n'\"\\"
                                       : "\xff\x7f nobody";
    snprintf(to, ACTOR_NAME_MAX + 1, "%s", text);
}

// Packed, signed by its sender, then damaged as the choice says: 0 is not at all.
static size_t make_frame(struct broker *self, const struct event *event,
                         struct event_memory *memory, uint64_t now_ms, uint8_t damage,
                         uint8_t *frame, bool *ret_is_for_here)
{
    static uint8_t room[4 << 20];
    struct wire_arena arena = { room, 0, sizeof room };
    struct wire_head head = { .kind = event->what,
                              .incarnation = 2 - event->late,
                              .seq = ++self->seq };
    snprintf(head.run, sizeof head.run, "%s", event->other_run ? "other" : "fuzz");
    head.sender = event_people()[event->signer].key;
    void *body = event_body(event, memory, NULL, &arena);
    struct wire_hello right = { .instance = 0 };
    if (event->what == FRAME_HELLO) {
        struct event plain = *event;
        plain.choices_count = 0;
        aim_hello(self, event, now_ms, body);
        aim_hello(self, &plain, now_ms, &right);
        const struct wire_hello *hello = body;
        *ret_is_for_here = key_equal(&hello->connection, &right.connection) &&
                           key_equal(&hello->server, &right.server) &&
                           memcmp(hello->challenge, right.challenge, CHALLENGE_BYTES) == 0;
    }
    size_t count = wire_pack(&head, body, frame, FRAME_ROOM);
    if (count == 0) return 0;
    event_memory_keep(memory, event->what, body);
    if (wire_kind_flags(event->what) & WIRE_SIGNED)
        count = signed_frame_sign(event_identity(event->signer), frame, count, FRAME_ROOM);
    if (damage >= 128) count = count * (damage - 128u) / 128;
    else if (damage) frame[(size_t)damage * 7 % count] ^= damage;
    return count;
}

// The name of a person in a role, made up once.
static const char *name_of(uint8_t person, uint8_t role)
{
    static char names[EVENT_PEOPLE][ACTOR_COUNT][ACTOR_NAME_MAX + 1];
    char *name = names[person][role];
    if (!name[0]) actor_name(role, &event_people()[person].key, name);
    return name;
}

// The number of names that a person is registered under. Each must be its own, and the CURVE key that of
// the connection.
static uint32_t check_person(const struct broker *self, uint8_t person, uint64_t now_ms)
{
    const struct key *key = &event_people()[person].key;
    uint32_t found = 0;
    for (uint8_t role = 0; role < ACTOR_COUNT; role++) {
        if (role == ACTOR_COORDINATOR && person > 0) continue; // All share this name
        const struct peer *peer = post_office_named(self->office, name_of(person, role));
        if (!peer) continue;
        ensure(peer->role == role && key_equal(&peer->key, key) && peer->heard_ms <= now_ms);
        const struct curve_key curve = curve_of(peer->route.bytes[0]);
        ensure(memcmp(peer->connection.bytes, curve.bytes, CURVE_BYTES) == 0);
        ensure(post_office_at(self->office, &peer->connection) == peer);
        found++;
    }
    return found;
}

static void check_office(const struct broker *self, uint64_t now_ms)
{
    uint32_t found = 0;
    for (uint8_t i = 0; i < EVENT_PEOPLE; i++) found += check_person(self, i, now_ms);
    ensure(found == self->office->count && self->bulletins_count <= BULLETINS_MAX);
}

// The news, asked by the CURVE key of each connection.
static void check_news(const struct broker *self, uint64_t now_ms)
{
    for (uint8_t i = 0; i < EVENT_PEOPLE; i++) {
        const struct zap_request request = { .domain = "monitor", .key = curve_of(i) };
        const bool is_in = broker_lets_in(self, &request, now_ms);
        bool is_registered = false;
        for (uint32_t place = 0; place < self->office->used_places; place++) {
            const struct peer *peer = &self->office->peers[place];
            if (peer->name[0] && peer->route.bytes[0] == i)
                is_registered = admission_lets_in(self->admission, &peer->key);
        }
        ensure(!is_in || is_registered);
    }
}

// As broker_take_mail does it with what came over a socket.
static void take_letter(struct broker *self, const struct event *event, struct event_memory *memory,
                        uint64_t now_ms)
{
    static uint8_t frame[FRAME_ROOM];
    struct event letter = *event;
    const uint8_t used =
        letter.choices_count < LETTER_CHOICES ? letter.choices_count : LETTER_CHOICES;
    const uint8_t to = used > 0 ? letter.choices[0] : 0, damage = used > 1 ? letter.choices[1] : 0;
    if (!wire_table_frame(event->what)) return;
    letter.choices += used;
    letter.choices_count = (uint8_t)(letter.choices_count - used);
    bool is_for_here = true;
    const size_t count = make_frame(self, &letter, memory, now_ms, damage, frame, &is_for_here);
    const struct curve_key curve = curve_of(event->bearer);
    uint8_t *exact = malloc(count + !count); // A byte beyond it would be seen
    ensure(exact);
    memcpy(exact, frame, count);
    struct delivery in = { .sender = route_of(event->bearer),
                           .fd = FD_FIRST + event->bearer,
                           .frame = exact,
                           .count = count,
                           .parts = 2,
                           .bytes = count,
                           .now_ms = now_ms };
    memcpy(in.user.bytes, curve.bytes, CURVE_BYTES);
    choose_to(to, in.to);
    const uint64_t passed = self->passed + self->published;
    const uint32_t registered = self->office->count;
    const struct peer *from = find_sender(self, &in);
    const bool was_known = from != NULL,
               is_banned = from && !admission_lets_in(self->admission, &from->key),
               is_by_it = from && key_equal(&from->key, &event_people()[event->signer].key);
    out.part = 0;
    out.is_full = damage == 127;
    if (broker_may_say(self, &in, from)) pass_on(self, &in, from);
    if (self->passed + self->published > passed) {
        ensure(was_known && is_by_it);
        core_counted("broker")->heard[event->what]++;
    }
    // Its signature does not verify, or it is another connection's
    ensure((damage == 0 && is_for_here) || self->office->count <= registered);
    // An ejected actor may have been heard until its connection is cut: half a second.
    ensure(!is_banned || self->cut_ms == 0 || self->passed + self->published == passed);
    check_person(self, event->bearer, now_ms);
    free(exact);
}

static void open_broker(struct broker *self, struct post_office *office)
{
    const struct key owner = event_people()[0].key;
    const struct admission_options options = {
        .policy = ADMIT_OPEN, .identity = &server, .server = &server, .owner = &owner
    };
    *self = (struct broker){ .office = office,
                             .connections = self->connections,
                             .backlog = self->backlog,
                             .server = server,
                             .instance = 7 };
    if (!self->connections) self->connections = broker_connections_new(100);
    if (!self->backlog) self->backlog = backlog_new();
    for (int i = 0; i < EVENT_PEOPLE; i++) backlog_opened(self->backlog, FD_FIRST + i, AT_MAIL);
    ensure(admission_new(&options, NULL, &self->admission) == 0);
}

// The table of connections is large: it is made again only if it remembers a connection that was
// cut off.
static void close_broker(struct broker *self)
{
    for (uint32_t i = 0; i < self->bulletins_count; i++) free(self->bulletins[i].frame);
    for (int i = 0; i < EVENT_PEOPLE; i++)
        connections_closed(self->connections, FD_FIRST + i, AT_MAIL);
    free(self->seats);
    if (self->cut > 0) connections_destroy(&self->connections);
    admission_destroy(&self->admission);
}

bool core_check_broker(const uint8_t *bytes, size_t count)
{
    static struct post_office *office;
    static struct broker broker;
    static struct event_memory memory;
    const uint8_t *at = bytes;
    struct event event;
    uint64_t now_ms = 1000;
    int events = 0;
    if (!office)
        office = mmap(NULL, sizeof *office, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(office != MAP_FAILED && madvise(office, sizeof *office, MADV_DONTNEED) == 0);
    memset(&memory, 0, sizeof memory);
    open_broker(&broker, office);
    for (; events < EVENTS_PER_INPUT && event_next(&at, bytes + count, &event); events++) {
        now_ms += event.after_ms;
        if (event.what == EVENT_WAKE) post_office_expire(broker.office, now_ms);
        else if (event.what == EVENT_QUIT)
            connections_closed(broker.connections, FD_FIRST + event.bearer, AT_MAIL);
        else if (event.what == EVENT_RESTART) broker_cut_unlisted(&broker);
        else take_letter(&broker, &event, &memory, now_ms);
    }
    check_office(&broker, now_ms);
    check_news(&broker, now_ms);
    const bool some = broker.passed + broker.published > 0;
    close_broker(&broker);
    return some;
}

// ---- seeds --------------------------------------------------------------------------------------

// An event (events.h): what, from, after, the number of its choices, these.
enum { CHOICES_MAX = 35 };
typedef uint8_t seed_event[EVENT_HEAD + CHOICES_MAX];

static size_t add_events(uint8_t *seed, size_t used, const seed_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = EVENT_HEAD + (size_t)events[i][EVENT_HEAD - 1];
        memcpy(seed + used, events[i], bytes);
        used += bytes;
    }
    return used;
}

// All actors send HELLO; then news, mail, and RECALL of the news that are kept.
void core_write_seeds_broker(const char *folder)
{
    static const seed_event letters[] = {
        { FRAME_RUN, 0, 0, 1, 1 },     { FRAME_ROSTER, 0, 0, 1, 1 }, { FRAME_ROUND, 0, 3, 1, 1 },
        { FRAME_JOIN, 1, 0, 1, 0xf0 }, { FRAME_CLAIM, 2, 0, 1, 4 },  { FRAME_CLAIM, 2, 0, 1, 1 },
        { FRAME_VOTE, 1, 0, 1, 0 },    { FRAME_RECALL, 4, 0, 0 },    { FRAME_RUN, 3, 0, 1, 1 },
        { EVENT_WAKE, 0, 14, 0 },
    };
    // News of every kind; a roster of four, of which the last is ejected, sends one more message,
    // and comes back; mail into a full queue; a connection that is lost.
    static const seed_event ejection[] = {
        { FRAME_RUN, 0, 0, 1, 1 },
        { FRAME_ROUND, 0, 0, 1, 1 },
        { FRAME_COMMIT, 0, 0, 1, 1 },
        { FRAME_EPOCH_END, 0, 0, 1, 1 },
        { FRAME_BEAT, 0, 0, 1, 1 },
        { FRAME_PROGRESS, 1, 0, 1, 1 },
        { FRAME_CLAIM, 3, 0, 1, 1 },
        { FRAME_PING, 1, 0, 1, 0xf0 },
        { FRAME_HOLDS, 1, 0, 1, 0xf0 },
        { FRAME_VOTE, 1, 0, 1, 0xf0 },
        { FRAME_FINDING, 1, 0, 1, 0xf0 },
        { FRAME_CLAIM_COPY, 1, 0, 1, 0xf0 },
        { FRAME_POSITION, 1, 0, 1, 0xf0 },
        { FRAME_REVEAL, 1, 0, 1, 2 },
        { FRAME_ADMITTED, 0, 0, 1, 1 + 12 },
        { FRAME_ACK, 0, 0, 1, 1 + 12 },
        { FRAME_CHECKPOINT, 5, 0, 1, 0xf0 },
        { FRAME_SEND_CLAIM, 0, 0, 1, 2 },
        { FRAME_ROSTER, 0, 0, 35, 1, 0, 0x1a, 5, [38] = 0x4a },
        { FRAME_CLAIM, 3, 0, 1, 1 },
        { FRAME_HELLO, 3, 10, 0 },
        { FRAME_PING, 1, 0, 2, 0xf0, 127 },
        { EVENT_QUIT, 2, 0, 0 },
        { FRAME_CLAIM, 2, 0, 1, 1 },
        { EVENT_RESTART, 0, 0, 0 },
    };
    // A HELLO for another connection, for another broker, with another's challenge; each then as it should
    // be. Somebody else's on one's own connection. A connection that ends, and the same HELLO again.
    static const seed_event elsewhere[] = {
        { FRAME_HELLO, 1, 0, 7, 0, 0, 0, 0, 0, 0, 1 },
        { FRAME_HELLO, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1 },
        { FRAME_HELLO, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
        { FRAME_HELLO, 1, 0, 0 },
        { FRAME_HELLO, 0x12, 0, 0 },
        { EVENT_QUIT, 1, 0, 0 },
        { FRAME_PING, 1, 0, 1, 0xf0 },
        { FRAME_HELLO, 1, 0, 0 },
    };
    uint8_t seed[1024];
    size_t hellos = 0;
    for (uint8_t i = 0; i < 6; i++)
        hellos = add_events(seed, hellos, &(const seed_event){ FRAME_HELLO, i }, 1);
    fuzz_write_seed(folder, "seed-hellos", seed, hellos);
    size_t used = add_events(seed, hellos, letters, sizeof letters / sizeof *letters);
    fuzz_write_seed(folder, "accepted-letters", seed, used);
    used = add_events(seed, hellos, ejection, sizeof ejection / sizeof *ejection);
    fuzz_write_seed(folder, "seed-ejection", seed, used);
    used = add_events(seed, 0, elsewhere, sizeof elsewhere / sizeof *elsewhere);
    fuzz_write_seed(folder, "seed-elsewhere", seed, used);
}
