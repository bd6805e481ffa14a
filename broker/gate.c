#include "broker/broker.h"
#include "common/actor/zap.h"
#include "common/ensure.h"
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HANDSHAKES_TURN_MAX = 64, EVENT_BYTES = 6, SWEEP_MS = 1000, LOOK_MS = 100,
       GROWTH_KIB = 16 << 10, LOG_MS = 1000, FAREWELL_MS = 500 };

// What an honest actor never reaches: in a run of rounds as short as a tenth of a second a trainer
// says some hundred frames a second, a witness's vote of 16,384 results is 1.6 MiB. The coordinator
// answers all of them.
static const struct budget stranger = { 5, 20, 64 << 10, 256 << 10 };
static const struct budget onlooker = { 50, 500, 64 << 10, 1 << 20 };
static const struct budget member = { 2000, 8000, 8 << 20, 32 << 20 };
static const struct budget coordinator = { 100000, 400000, 400 << 20, 400 << 20 };

// ---- cutting off --------------------------------------------------------------------------------

// As if the peer had hung up: the library notices, and frees what waits. What the peer still sends is
// answered with a reset, not with patience.
static void cut(void *arg, int fd)
{
    static const struct linger none = { .l_onoff = 1 };
    struct broker *self = arg;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    self->cut++;
    shutdown(fd, SHUT_RDWR);
}

// One look at a connection tells of both directions.
static int64_t received(void *arg, int fd)
{
    struct broker *self = arg;
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes)
        return -1;
    backlog_measured(self->backlog, fd, info.tcpi_bytes_acked,
                     info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0, shell_now_ms());
    return (int64_t)info.tcpi_bytes_received;
}

// What was measured a second ago may have been taken by now. Of what is gone the library knows more.
bool broker_may_send(struct broker *self, int fd)
{
    return !backlog_is_full(self->backlog, fd) || received(self, fd) < 0 ||
           !backlog_is_full(self->backlog, fd);
}

static void cut_behind(void *arg, int fd)
{
    struct broker *self = arg;
    connections_cut_one(self->connections, fd, cut, self);
}

static uint64_t resident_kib(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %lld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void log_cut(uint64_t connections, const char *reason, uint64_t kib)
{
    if (connections == 0) return;
    shell_log(4, "gate.cut connections=%llu reason=\"%s\" resident_mib=%llu",
              (unsigned long long)connections, reason, (unsigned long long)kib >> 10);
    malloc_trim(0);
}

// Looking at every connection costs a system call each: once a second, and at once when memory
// grows.
void broker_sweep(struct broker *self, uint64_t now_ms)
{
    if (now_ms < self->look_ms) return;
    self->look_ms = now_ms + LOOK_MS;
    uint64_t kib = resident_kib(), before = self->cut;
    if (now_ms < self->sweep_ms && kib < self->swept_kib + GROWTH_KIB) return;
    self->sweep_ms = now_ms + SWEEP_MS;
    connections_cut_hoarders(self->connections, received, cut, self);
    const uint64_t hoarders = self->cut - before;
    backlog_cut_full(self->backlog, shell_now_ms(), cut_behind, self);
    log_cut(hoarders, "more bytes than messages", kib);
    log_cut(self->cut - before - hoarders, "does not take what waits for it", kib);
    self->swept_kib = resident_kib();
}

void broker_eject(struct broker *self, const struct wire_roster *roster)
{
    for (uint32_t i = 0; i < roster->members_count; i++) {
        struct key key;
        struct curve_key curve;
        if (roster->members[i].state != MEMBER_EJECTED) continue;
        memcpy(key.bytes, roster->members[i].key.bytes, KEY_BYTES);
        if (!curve_of_key(&key, &curve) || !admission_ban(self->admission, &curve)) continue;
        shell_log(4, "gate.banned name=%s; its connections are cut", roster->members[i].name);
        self->cut_ms = shell_now_ms() + FAREWELL_MS;
    }
}

static bool is_out(void *arg, const struct connection *connection)
{
    const struct broker *self = arg;
    return !admission_lets_in(self->admission, &connection->key, connection->where == AT_MAIL);
}

void broker_cut_unlisted(struct broker *self)
{
    self->cut_ms = 0;
    connections_cut_if(self->connections, is_out, cut, self);
}

// ---- what is said -------------------------------------------------------------------------------

static const struct budget *budget_of(const struct peer *peer)
{
    if (!peer) return &stranger;
    if (peer->role == ACTOR_COORDINATOR) return &coordinator;
    return peer->role == ACTOR_MONITOR || peer->role == ACTOR_OPERATOR ? &onlooker : &member;
}

static void log_drop(struct broker *self, const struct peer *from, uint64_t now_ms, const char *then)
{
    self->dropped++;
    if (now_ms < self->log_ms) return;
    self->log_ms = now_ms + LOG_MS;
    shell_log(4, "gate.over_budget from=%s dropped=%llu; %s", from ? from->name : "a stranger",
              (unsigned long long)self->dropped, then);
}

bool broker_may_say(struct broker *self, const struct delivery *in, const struct peer *from,
                    uint32_t parts, uint64_t bytes)
{
    struct curve_key key;
    memcpy(key.bytes, in->user.bytes, CURVE_BYTES);
    struct connection *connection =
        connections_heard(self->connections, in->fd, AT_MAIL, &key, parts, bytes, in->now_ms);
    if (!connection) return false;      // More descriptors than the table has room for
    if (connection->cut || (self->cut_ms && is_out(self, connection))) return false;
    connection->known = from != NULL;
    connection->trusted = from && from->role == ACTOR_COORDINATOR;
    backlog_trust(self->backlog, in->fd, connection->trusted);
    connections_allow(connection, budget_of(from), in->now_ms);
    enum budget_verdict verdict = bucket_take(&connection->bucket, &connection->budget, bytes,
                                              in->now_ms);
    if (verdict == BUDGET_WITHIN) return true;
    log_drop(self, from, in->now_ms, verdict == BUDGET_CUT ? "cut off" : "not looked at");
    if (verdict == BUDGET_CUT) {
        connections_punish(self->connections, &key, in->now_ms);
        connections_cut_key(self->connections, &key, cut, self);
    }
    return false;
}

void broker_hear_subscriber(struct broker *self, zmq_msg_t *part, uint64_t now_ms)
{
    struct curve_key key;
    if (zap_user(part, &key))
        connections_heard(self->connections, zmq_msg_get(part, ZMQ_SRCFD), AT_NEWS, &key, 1,
                          zmq_msg_size(part), now_ms);
}

// ---- who connects -------------------------------------------------------------------------------

void *broker_watch(struct broker *self, void *socket, const char *endpoint)
{
    int zero = 0;
    ensure(zmq_socket_monitor(socket, endpoint, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CLOSED |
                                                    ZMQ_EVENT_DISCONNECTED) == 0);
    void *events = zmq_socket(self->context, ZMQ_PAIR);
    ensure(events && zmq_setsockopt(events, ZMQ_LINGER, &zero, sizeof zero) == 0);
    // Without a bound: whoever fills it is the library's I/O thread, which would wait for us.
    ensure(zmq_setsockopt(events, ZMQ_RCVHWM, &zero, sizeof zero) == 0);
    ensure(zmq_connect(events, endpoint) == 0);
    return events;
}

static void hear_events(struct broker *self, enum connection_where where, uint64_t now_ms)
{
    uint8_t bytes[EVENT_BYTES];
    char address[256];
    uint16_t event;
    int32_t fd;
    while (zmq_recv(self->events[where], bytes, sizeof bytes, ZMQ_DONTWAIT) == sizeof bytes) {
        memcpy(&event, bytes, sizeof event);
        memcpy(&fd, bytes + sizeof event, sizeof fd);
        zmq_recv(self->events[where], address, sizeof address, 0);
        if (event == ZMQ_EVENT_ACCEPTED) {
            connections_opened(self->connections, fd, where, now_ms);
            backlog_opened(self->backlog, fd, where);
        } else {
            connections_closed(self->connections, fd);
            backlog_closed(self->backlog, fd);
        }
    }
}

struct turn { struct broker *broker; uint64_t now_ms; };

static bool judge(void *arg, const struct zap_request *request)
{
    const struct turn *turn = arg;
    struct broker *self = turn->broker;
    bool guests = strcmp(request->domain, "member") == 0;
    bool welcome = admission_lets_in(self->admission, &request->key, guests) &&
                   !connections_is_punished(self->connections, &request->key, turn->now_ms);
    if (!welcome) self->refused++;
    return welcome;
}

void broker_mind_gate(struct broker *self, uint64_t now_ms)
{
    struct turn turn = { self, now_ms };
    for (enum connection_where where = 0; where < WHERE_COUNT; where++)
        hear_events(self, where, now_ms);
    zap_serve(self->zap, judge, &turn, HANDSHAKES_TURN_MAX);
    connections_cut_surplus(self->connections, cut, self);
}
