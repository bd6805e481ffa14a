// gate -- decides which handshakes, letters and connections the broker refuses. Once a turn it
// takes the events of connections, then the waiting handshakes, then cuts surplus connections. For
// each letter it checks the budget of its connection. In a sweep it cuts the connections that use
// too much memory. Of each connection it keeps the challenge, and which actor was welcomed on it: the mail
// lets every key in, the news only the keys of welcomed actors.

#include "broker/broker.h"
#include "common/actor/cost.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/net/descriptors.h"
#include "common/net/zap.h"
#include <inttypes.h>
#include <malloc.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HANDSHAKES_TURN_MAX = 64,
    SWEEP_MS = 1000,
    LOOK_MS = 100,
    GROWTH_KIB = 16 << 10,
    LOG_MS = 1000,
    ACTOR_CONNECTIONS_MAX =
        8, // To each socket: an actor needs one, and that of a moment ago may not have ended yet
    MUTE_MS =
        10000, // Between a connection and a WELCOME, or a subscription. Both take three answers
    FAREWELL_MS = 500 // So that an ejected member still gets the coordinator's refusal
};

// Frames a second, frames in a burst, bytes a second, bytes in a burst. One frame may count as several (cost.h).
// An honest actor never reaches these rates, since each round adds to a member's budget what a round takes. A
// witness's vote of 16,384 results has 1.6 MiB. The coordinator answers all members.
static const struct budget stranger = { 5, 20, 64 << 10, 256 << 10 };
static const struct budget onlooker = { 100, 500, 64 << 10, 1 << 20 };
static const struct budget member = { 2000, 8000, 8 << 20, 32 << 20 };
static const struct budget coordinator = { 100000, 400000, 400 << 20, 400 << 20 };

// ---- cutting off --------------------------------------------------------------------------------

static void cut(void *arg, int fd)
{
    struct broker *self = arg;
    self->cut++;
    descriptors_cut(fd, 0);
}

// One system call measures both directions.
static bool measure(void *arg, int fd, struct connection_counts *ret_counts)
{
    struct broker *self = arg;
    if (!descriptors_measure(fd, 0, ret_counts)) return false;
    backlog_measured(self->backlog, fd, ret_counts->acked, ret_counts->none_wait, clock_ms());
    return true;
}

// Measures again before it refuses: the receiver may have caught up since the last sweep. True if
// the connection is gone, since sending then reports that.
bool broker_may_send(struct broker *self, int fd)
{
    struct connection_counts counts;
    return !backlog_is_full(self->backlog, fd) || !measure(self, fd, &counts) ||
           !backlog_is_full(self->backlog, fd);
}

static void cut_behind(void *arg, int fd)
{
    struct broker *self = arg;
    connections_cut_one(self->connections, fd, cut, self);
}

static uint64_t resident_kib(void)
{
    int64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %" PRId64, &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void log_cut(uint64_t connections, const char *reason, uint64_t kib)
{
    if (connections == 0) return;
    log_line(LOG_WARNING, "gate.cut connections=%" PRIu64 " reason=\"%s\" resident_mib=%" PRIu64,
             connections, reason, (uint64_t)kib >> 10);
    malloc_trim(0);
}

// A sweep costs one system call for each connection. So it runs once a second, and earlier when
// memory grows.
void broker_sweep(struct broker *self, uint64_t now_ms)
{
    if (now_ms < self->look_ms) return;
    self->look_ms = now_ms + LOOK_MS;
    uint64_t kib = resident_kib(), before = self->cut;
    if (now_ms < self->sweep_ms && kib < self->swept_kib + GROWTH_KIB) return;
    self->sweep_ms = now_ms + SWEEP_MS;
    connections_cut_hoarders(self->connections, measure, cut, self);
    const uint64_t hoarders = self->cut - before;
    backlog_cut_full(self->backlog, clock_ms(), cut_behind, self);
    const uint64_t behind = self->cut - before - hoarders;
    if (now_ms > MUTE_MS) connections_cut_mute(self->connections, now_ms - MUTE_MS, cut, self);
    log_cut(hoarders, "more bytes than messages", kib);
    log_cut(behind, "does not take what waits for it", kib);
    log_cut(self->cut - before - hoarders - behind, "said no HELLO that was welcome", kib);
    log_cut(self->crowded, "more than an address or an actor may have", kib);
    self->crowded = 0;
    self->swept_kib = resident_kib();
}

void broker_eject(struct broker *self, const struct wire_member *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (members[i].state != MEMBER_EJECTED) continue;
        if (!admission_ban(self->admission, &members[i].key)) continue;
        log_line(LOG_WARNING, "gate.banned name=%s; its connections are cut", members[i].name);
        self->cut_ms = clock_ms() + FAREWELL_MS;
    }
}

static const struct peer *peer_at(const struct broker *self, const struct curve_key *connection)
{
    struct key key;
    memcpy(key.bytes, connection->bytes, KEY_BYTES);
    return post_office_at(self->office, &key);
}

// Its actor may take no role any more, or not the one that it has.
static bool is_out(void *arg, const struct connection *connection)
{
    const struct broker *self = arg;
    if (key_is_none(&connection->actor)) return false;
    const uint8_t roles = admission_roles(self->admission, &connection->name);
    const struct peer *peer = peer_at(self, &connection->key);
    return peer ? !(roles & 1 << peer->role) : !roles;
}

void broker_cut_unlisted(struct broker *self)
{
    self->cut_ms = 0;
    connections_cut_if(self->connections, is_out, cut, self);
}

// ---- budgets ------------------------------------------------------------------------------------

static const struct budget *budget_of(const struct broker *self, const struct peer *peer)
{
    if (!peer) return &stranger;
    if (peer->role == ACTOR_COORDINATOR) return &coordinator;
    return broker_takes_part(self, peer) ? &member : &onlooker;
}

static void log_drop(struct broker *self, const struct peer *from, uint64_t now_ms,
                     const char *then)
{
    self->dropped++;
    if (now_ms < self->log_ms) return;
    self->log_ms = now_ms + LOG_MS;
    log_line(LOG_WARNING, "gate.over_budget from=%s dropped=%" PRIu64 "; %s",
             from ? from->name : "a stranger", self->dropped, then);
}

// What a sender has left of its budget. That of an actor is kept with the actor, so that a new connection brings no
// new budget; that of a stranger with its connection. A sender that gets another budget, as an
// onlooker that joins the run, starts with a full one. A stranger's HELLO has a bucket of its own: a peer whose registration expired goes on
// sending mail until it is told, and that mail must not use up the tokens that its HELLO needs.
struct allowance {
    struct budget budget;
    struct bucket bucket, hello;
    uint64_t opened;                    // The broker's count of rounds when this was filled last
    uint8_t challenge[CHALLENGE_BYTES]; // Zeros: none was drawn
};
_Static_assert(sizeof(struct allowance) <= CONNECTION_OWN_BYTES &&
                   sizeof(struct allowance) <= PEER_OWN_BYTES,
               "the connection or the peer keeps it");

// FRAME_NONE: its head cannot be read.
static uint16_t kind_of(const struct delivery *in)
{
    struct wire_head head;
    struct wire_refusal refusal;
    return wire_unpack_head(in->frame, in->count, WIRE_MAIL | WIRE_NEWS, &head, &refusal)
               ? head.kind
               : FRAME_NONE;
}

static enum budget_verdict spend(const struct broker *self, uint8_t *own,
                                 const struct budget *budget, bool as_hello, uint32_t frames,
                                 uint64_t bytes, uint64_t now_ms)
{
    struct allowance allowance;
    memcpy(&allowance, own, sizeof allowance);
    if (budget == &member)
        bucket_give(&allowance.bucket, budget,
                    (self->opened - allowance.opened) * COST_ROUND_FRAMES);
    allowance.opened = self->opened;
    if (memcmp(&allowance.budget, budget, sizeof *budget) != 0) {
        allowance.budget = *budget;
        bucket_fill(&allowance.bucket, budget, now_ms);
        if (budget == &stranger) bucket_fill(&allowance.hello, budget, now_ms);
    }
    enum budget_verdict verdict =
        bucket_take(as_hello ? &allowance.hello : &allowance.bucket, budget, frames, bytes, now_ms);
    memcpy(own, &allowance, sizeof allowance);
    return verdict;
}

// What the coordinator says leads to nothing at its own. What a stranger says goes no further, and an actor
// that the broker has forgotten is one until its next HELLO.
static uint32_t frames_of(const struct delivery *in, const struct peer *from, uint16_t kind)
{
    if (!from || from->role == ACTOR_COORDINATOR) return 1;
    return strcmp(in->to, "news") == 0 ? COST_NEWS_FRAMES : cost_in_frames(kind);
}

static struct curve_key key_of(const struct key *user)
{
    struct curve_key key;
    memcpy(key.bytes, user->bytes, CURVE_BYTES);
    return key;
}

struct owned {
    struct broker *broker;
    struct key actor;
};

static bool is_owned(void *arg, const struct connection *connection)
{
    return key_equal(&connection->actor, &((const struct owned *)arg)->actor);
}

static void cut_owned(void *arg, int fd) { cut(((struct owned *)arg)->broker, fd); }

// Cuts all connections of the sender and keeps it out for a while: its CURVE key, and, since a new CURVE key costs
// nothing, the actor's key too.
static void cut_sender(struct broker *self, const struct delivery *in, const struct peer *from)
{
    const struct curve_key key = key_of(&in->user);
    penalties_add(&self->penalties, &in->user, in->now_ms);
    connections_cut_key(self->connections, &key, cut, self);
    if (!from) return;
    struct owned owned = { self, from->key };
    penalties_add(&self->penalties, &owned.actor, in->now_ms);
    connections_cut_if(self->connections, is_owned, cut_owned, &owned);
}

bool broker_may_say(struct broker *self, const struct delivery *in, const struct peer *from)
{
    const struct curve_key key = key_of(&in->user);
    const uint64_t wire_bytes =
        connections_part_bytes(in->bytes) + (in->parts - 1) * connections_part_bytes(0);
    struct connection *connection =
        connections_heard(self->connections, in->fd, AT_MAIL, &key, wire_bytes, in->now_ms);
    if (!connection) return false; // More descriptors than the table has room for
    if (connection->cut || (self->cut_ms && is_out(self, connection))) return false;
    connection->known = from != NULL;
    connection->trusted = from && from->role == ACTOR_COORDINATOR;
    backlog_trust(self->backlog, in->fd, connection->trusted);
    const struct budget *budget = budget_of(self, from);
    const uint16_t kind = in->is_sound ? kind_of(in) : FRAME_NONE;
    const enum budget_verdict verdict =
        spend(self, from ? post_office_own(self->office, from) : connection->own, budget,
              !from && kind == FRAME_HELLO, frames_of(in, from, kind), in->bytes, in->now_ms);
    if (verdict == BUDGET_WITHIN) return true;
    log_drop(self, from, in->now_ms, verdict == BUDGET_CUT ? "connection cut" : "frame ignored");
    if (verdict == BUDGET_CUT) cut_sender(self, in, from);
    return false;
}

static struct connection *connection_of(struct broker *self, const struct delivery *in)
{
    const struct curve_key key = key_of(&in->user);
    return connections_find(self->connections, in->fd, AT_MAIL, &key);
}

void broker_challenge(struct broker *self, const struct delivery *in,
                      uint8_t ret_bytes[CHALLENGE_BYTES])
{
    struct connection *connection = connection_of(self, in);
    struct allowance allowance;
    ensure(connection); // Heard a moment ago
    memcpy(&allowance, connection->own, sizeof allowance);
    if (sodium_is_zero(allowance.challenge, CHALLENGE_BYTES)) {
        randombytes_buf(allowance.challenge, CHALLENGE_BYTES);
        memcpy(connection->own, &allowance, sizeof allowance);
    }
    memcpy(ret_bytes, allowance.challenge, CHALLENGE_BYTES);
}

// The conversion takes 0.1 ms, so it is done once for a connection, and not each time that all are looked at.
static void set_actor(struct broker *self, struct connection *connection, const struct key *actor)
{
    if (key_equal(&connection->actor, actor)) return;
    connection->actor = *actor;
    ensure(curve_of_key(actor, &connection->name)); // Else it had been refused
    const uint64_t before = self->cut;
    connections_cut_crowd(self->connections, connection->where, actor, ACTOR_CONNECTIONS_MAX, cut,
                          self);
    self->crowded += self->cut - before;
}

void broker_welcomed(struct broker *self, const struct delivery *in, const struct key *actor)
{
    struct connection *connection = connection_of(self, in);
    if (connection) set_actor(self, connection, actor);
}

bool broker_has_welcomed(struct broker *self, const struct delivery *in)
{
    const struct connection *connection = connection_of(self, in);
    return connection && !key_is_none(&connection->actor);
}

bool broker_is_connected(const struct broker *self, const struct peer *peer)
{
    const struct curve_key key = key_of(&peer->connection);
    return connections_has(self->connections, peer->route.fd, AT_MAIL, &key);
}

// At its first subscription a connection to the news gets its actor: the one that is registered at the mail with the
// same CURVE key. It is cut if that actor has left the mail since the handshake, because later the broker could not
// tell which actor it belongs to; also if the actor was banned since.
void broker_hear_subscriber(struct broker *self, zmq_msg_t *part, uint64_t now_ms)
{
    struct curve_key key;
    if (!zap_user(part, &key)) return;
    const int fd = zmq_msg_get(part, ZMQ_SRCFD);
    struct connection *connection = connections_heard(
        self->connections, fd, AT_NEWS, &key, connections_part_bytes(zmq_msg_size(part)), now_ms);
    if (!connection || connection->known) return;
    const struct peer *peer = peer_at(self, &key);
    // mutant: news: an actor that was banned since subscribes
    connection->known = peer && admission_lets_in(self->admission, &peer->key);
    if (connection->known) set_actor(self, connection, &peer->key);
    else connections_cut_one(self->connections, fd, cut, self);
}

// ---- connections and handshakes -----------------------------------------------------------------

struct connections *broker_connections_new(uint32_t room)
{
    const struct connections_limits limits[WHERE_COUNT] = {
        [AT_MAIL] = { room, CONNECTION_PENDING_MAX, .keeps_all = false },
        [AT_NEWS] = { room, SUBSCRIBED_MAX, .keeps_all = true }
    };
    return connections_new(limits, WHERE_COUNT, CONNECTIONS_PENDING_MAX);
}

struct told {
    struct broker *broker;
    enum connection_where where;
    uint64_t now_ms;
};

// ZeroMQ has begun the handshake by now; a connection that is cut here costs little of it.
static bool may_call(struct broker *self, int fd, uint64_t now_ms)
{
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    if (getpeername(fd, (struct sockaddr *)&from, &bytes) != 0) return true; // It has ended
    const struct sockaddr *address = (const struct sockaddr *)&from;
    return blocks_is_here(address) || callers_admit(&self->callers, address, NULL, now_ms);
}

static void tell(void *arg, int fd, bool opened)
{
    const struct told *told = arg;
    struct broker *self = told->broker;
    if (!opened) {
        backlog_closed(self->backlog, fd, told->where);
        return;
    }
    backlog_opened(self->backlog, fd, told->where);
    if (may_call(self, fd, told->now_ms)) return;
    connections_cut_one(self->connections, fd, cut, self);
    self->crowded++;
}

bool broker_lets_in(const struct broker *self, const struct zap_request *request, uint64_t now_ms)
{
    struct key key;
    memcpy(key.bytes, request->key.bytes, KEY_BYTES);
    if (penalties_has(&self->penalties, &key, now_ms)) return false;
    if (strcmp(request->domain, "member") == 0) return true;
    const struct peer *peer = post_office_at(self->office, &key);
    // mutant: news: a key that the mail has not welcomed is let in
    return peer && admission_lets_in(self->admission, &peer->key);
}

struct turn {
    struct broker *broker;
    uint64_t now_ms;
};

static bool judge(void *arg, const struct zap_request *request)
{
    const struct turn *turn = arg;
    const bool welcome = broker_lets_in(turn->broker, request, turn->now_ms);
    if (!welcome) turn->broker->refused++;
    return welcome;
}

void broker_mind_gate(struct broker *self, uint64_t now_ms)
{
    struct turn turn = { self, now_ms };
    for (enum connection_where where = 0; where < WHERE_COUNT; where++) {
        struct told told = { self, where, now_ms };
        const uint16_t port = (uint16_t)(self->port + (where == AT_NEWS));
        descriptors_hear(self->events[where], self->connections, where, port, now_ms, tell, &told);
    }
    zap_serve(self->zap, judge, &turn, HANDSHAKES_TURN_MAX);
    connections_cut_surplus(self->connections, cut, self);
}
