// network -- a priority queue of letters, and the post office in the middle of it.
//
//     node ──mail──▶ broker ──▶ node        two hops, each of which may be late, doubled or lost
//     node ──news──▶ broker ──▶ everybody   each copy by itself

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the queue ----------------------------------------------------------------------------------

static bool sooner(const struct flight *a, const struct flight *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq; // Ties by order of birth
}

static void push(struct sim *self, struct flight *flight)
{
    if (self->heap_count == self->heap_max) {
        self->heap_max = self->heap_max ? 2 * self->heap_max : 1024;
        self->heap = realloc(self->heap, self->heap_max * sizeof(void *));
        ensure(self->heap);
    }
    uint32_t i = self->heap_count++;
    for (; i > 0 && sooner(flight, self->heap[(i - 1) / 2]); i = (i - 1) / 2)
        self->heap[i] = self->heap[(i - 1) / 2];
    self->heap[i] = flight;
    if (self->heap_count > FLIGHTS_MAX)
        broken(self, "queues are bounded", "%u letters are on their way", self->heap_count);
}

struct flight *network_land(struct sim *self)
{
    struct flight *top = self->heap[0], *last = self->heap[--self->heap_count];
    uint32_t i = 0;
    for (uint32_t c; (c = 2 * i + 1) < self->heap_count; i = c) {
        if (c + 1 < self->heap_count && sooner(self->heap[c + 1], self->heap[c])) c++;
        if (!sooner(self->heap[c], last)) break;
        self->heap[i] = self->heap[c];
    }
    self->heap[i] = last;
    return top;
}

struct parcel *parcel_new(struct sim *self, const struct node *from, uint16_t kind,
                          const void *packed, uint32_t bytes)
{
    struct parcel *parcel = malloc(sizeof *parcel + bytes);
    ensure(parcel);
    *parcel = (struct parcel){ .refs = 1, .bytes = bytes, .kind = kind };
    if (bytes) memcpy(parcel->body, packed, bytes);
    if (!from) return parcel;
    struct node *node = &self->nodes[from - self->nodes];
    if (wire_kind_flags(kind) & WIRE_SIGNED) parcel->sender = node->key;
    parcel->incarnation = node->incarnation;
    parcel->forked = node->role == ACTOR_COORDINATOR && self->disk.behind;
    parcel->seq = ++node->seq;
    return parcel;
}

void parcel_release(struct parcel *parcel)
{
    if (parcel && --parcel->refs == 0) free(parcel);
}

void network_fly(struct sim *self, uint64_t delay_ms, enum flight_to to, uint8_t node,
                 uint32_t life, const char *name, struct parcel *parcel)
{
    struct flight *flight = malloc(sizeof *flight);
    ensure(flight);
    *flight = (struct flight){ .at_ms = self->now_ms + delay_ms,
                               .seq = self->seq++,
                               .to = to,
                               .node = node,
                               .life = life,
                               .parcel = parcel };
    snprintf(flight->name, sizeof flight->name, "%s", name);
    parcel->refs++;
    push(self, flight);
}

void network_done(struct sim *self, struct flight *flight)
{
    (void)self;
    parcel_release(flight->parcel);
    free(flight);
}

void network_clear(struct sim *self)
{
    while (self->heap_count) network_done(self, self->heap[--self->heap_count]);
    work_clear(self);
    intruder_clear(self);
    greedy_clear(self);
}

// ---- hops ---------------------------------------------------------------------------------------

static bool cut_off(struct sim *self, uint8_t node, bool towards_node)
{
    if (!faulty(self) || !(self->far >> node & 1)) return false;
    return towards_node ? self->deaf : self->mute;
}

bool reachable(const struct sim *self, uint8_t from, uint8_t to)
{
    return !faulty(self) || (self->far >> from & 1) == (self->far >> to & 1);
}

// One letter over one hop: lost, doubled, late or simply there. What proves guilt may come when its
// round is long over.
static void hop(struct sim *self, enum flight_to to, uint8_t node, uint32_t life, const char *name,
                struct parcel *parcel)
{
    bool lost = cut_off(self, node, to == TO_NODE_MAIL || to == TO_NODE_NEWS || to == TO_POST);
    if (lost || chance(self, self->plan.loss)) {
        self->faults[LOSS]++;
        return;
    }
    int copies = 1;
    if (chance(self, self->plan.duplicate)) {
        self->faults[DUPLICATE]++;
        copies = 2;
    }
    for (int i = 0; i < copies; i++) {
        uint64_t delay_ms = 1 + roll(self, 20);
        if (chance(self, self->plan.delay)) {
            self->faults[DELAY]++;
            delay_ms += roll(self, self->plan.delay_ms);
        }
        if (to == TO_BROKER_MAIL) delay_ms += liar_delay_ms(self, node, parcel->kind);
        if (parcel->kind == FRAME_CLAIM_COPY && chance(self, self->plan.late_proofs))
            delay_ms += roll(self, LATE_PROOF_MS);
        network_fly(self, delay_ms, to, node, life, name, parcel);
    }
}

void network_mail(struct sim *self, uint8_t from, const char *to, struct parcel *parcel)
{
    hop(self, TO_BROKER_MAIL, from, self->nodes[from].life, to, parcel);
}

void network_news(struct sim *self, uint8_t from, struct parcel *parcel)
{
    hop(self, TO_BROKER_NEWS, from, self->nodes[from].life, "", parcel);
}

// ---- the broker: what broker/mail.c does around the core ------------------------------------------

// A connection is a node's life: a restart dials anew.
static struct route route_of(uint8_t node, uint32_t life)
{
    struct route route = { .count = 5, .bytes = { node } };
    memcpy(route.bytes + 1, &life, sizeof life);
    return route;
}

static uint32_t life_of(const struct route *route)
{
    uint32_t life;
    memcpy(&life, route->bytes + 1, sizeof life);
    return life;
}

static void answer(struct sim *self, const struct flight *to, uint16_t kind, const void *body)
{
    size_t count = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(count > 0);
    struct parcel *parcel = parcel_new(self, NULL, kind, self->bytes, (uint32_t)count);
    hop(self, TO_POST, to->node, to->life, "broker", parcel);
    parcel_release(parcel);
}

static void undeliverable(struct sim *self, const struct flight *flight, const char *to,
                          const char *reason)
{
    struct wire_undeliverable no = { .kind = flight->parcel->kind };
    snprintf(no.to, sizeof no.to, "%s", to);
    snprintf(no.reason, sizeof no.reason, "%s", reason);
    answer(self, flight, FRAME_UNDELIVERABLE, &no);
}

static void hear_hello(struct sim *self, const struct flight *flight, const struct route *route)
{
    const struct parcel *parcel = flight->parcel;
    const struct wire_hello *hello =
        unpack(self, &self->scratch, parcel->kind, parcel->body, parcel->bytes);
    struct key connection = { { 0 } }; // Each connection has a CURVE key of its own
    memcpy(connection.bytes, route->bytes, route->count);
    const char *reason = post_office_hello(self->office, route, &parcel->sender, &connection, hello,
                                           false, self->now_ms);
    if (reason) {
        undeliverable(self, flight, "broker", reason);
        return;
    }
    struct wire_welcome welcome = { .instance = self->broker.instance };
    memcpy(welcome.name, hello->name, sizeof welcome.name);
    answer(self, flight, FRAME_WELCOME, &welcome);
}

static void recall(struct sim *self, const struct flight *flight)
{
    for (int kind = 0; kind < 256; kind++)
        if (self->broker.kept[kind])
            hop(self, TO_NODE_MAIL, flight->node, flight->life, "", self->broker.kept[kind]);
}

void broker_hear_mail(struct sim *self, const struct flight *flight)
{
    struct route route = route_of(flight->node, flight->life);
    uint16_t kind = flight->parcel->kind;
    if (strcmp(flight->name, "broker") == 0 && kind == FRAME_HELLO) {
        hear_hello(self, flight, &route);
        return;
    }
    const struct peer *from = post_office_sender(self->office, &route, self->now_ms);
    if (!from) {
        undeliverable(self, flight, "", "say HELLO first");
        return;
    }
    if (strcmp(flight->name, "broker") == 0 && kind == FRAME_RECALL) {
        recall(self, flight);
        return;
    }
    const struct peer *receiver = post_office_named(self->office, flight->name);
    const char *reason = receiver ? post_office_forbids_mail(from->role, kind, receiver->role)
                                  : "nobody of that name";
    if (reason) {
        undeliverable(self, flight, flight->name, reason);
        return;
    }
    uint8_t node = receiver->route.bytes[0];
    uint32_t life = life_of(&receiver->route);
    bool gone = !self->nodes[node].up || self->nodes[node].life != life;
    if (gone && roll(self, 2)) { // The other half: still in a dead connection's queue
        struct route dead = receiver->route;
        undeliverable(self, flight, flight->name, "its connection is gone");
        post_office_forget(self->office, &dead);
        return;
    }
    hop(self, TO_NODE_MAIL, node, life, from->name, flight->parcel);
}

// News nobody in the simulation would listen to: a shell subscribes by kind.
static bool listens(const struct node *node, uint16_t kind)
{
    if (node->role == ACTOR_COORDINATOR || node->role == ACTOR_OPERATOR || kind == FRAME_PROGRESS)
        return false;
    return kind != FRAME_CLAIM || node->role == ACTOR_TRAINER || node->role == ACTOR_WITNESS;
}

void broker_hear_news(struct sim *self, const struct flight *flight)
{
    struct parcel *parcel = flight->parcel;
    if (wire_kind_flags(parcel->kind) & WIRE_STATE) {
        const struct peer *coordinator = post_office_named(self->office, "coordinator");
        if (!coordinator || !key_equal(&coordinator->key, &parcel->sender)) return;
        parcel_release(self->broker.kept[parcel->kind]);
        self->broker.kept[parcel->kind] = parcel;
        parcel->refs++;
    }
    for (uint8_t i = 0; i < self->nodes_count; i++)
        if (self->nodes[i].up && listens(&self->nodes[i], parcel->kind))
            hop(self, TO_NODE_NEWS, i, self->nodes[i].life, "", parcel);
}

void network_forget(struct sim *self)
{
    for (int i = 0; i < 256; i++) {
        parcel_release(self->broker.kept[i]);
        self->broker.kept[i] = NULL;
    }
}

void broker_boot(struct sim *self)
{
    memory_forget(self->office, sizeof *self->office);
    network_forget(self);
    self->broker.up = true;
    self->broker.instance = self->now_ms + 1;
}

void broker_crash(struct sim *self)
{
    self->broker.up = false;
    self->broker.up_again_ms = self->now_ms + between(self, 100, 8000);
    network_forget(self);
    self->faults[BROKER_CRASH]++;
}

// ---- the actor's side of it: what post.c does ---------------------------------------------------

static void to_broker(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    size_t count = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(count > 0);
    struct parcel *parcel = parcel_new(self, &self->nodes[id], kind, self->bytes, (uint32_t)count);
    network_mail(self, id, "broker", parcel);
    parcel_release(parcel);
}

void post_tick(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    struct wire_hello hello = { .role = node->role, .instance = node->instance };
    memcpy(hello.name, node->name, sizeof hello.name);
    node->hello_ms = self->now_ms + 1000;
    to_broker(self, id, FRAME_HELLO, &hello);
}

void post_hear(struct sim *self, uint8_t id, const struct parcel *parcel)
{
    struct node *node = &self->nodes[id];
    const void *body = unpack(self, &self->scratch, parcel->kind, parcel->body, parcel->bytes);
    if (parcel->kind == FRAME_UNDELIVERABLE) {
        if (!((const struct wire_undeliverable *)body)->to[0]) node->hello_ms = self->now_ms;
        return;
    }
    const struct wire_welcome *welcome = body;
    if (welcome->instance == node->broker_instance) return;
    node->broker_instance = welcome->instance;
    if (node->role == ACTOR_COORDINATOR || node->role == ACTOR_OPERATOR) return;
    to_broker(self, id, FRAME_RECALL, &(struct wire_recall){ .run = "sim" });
}
