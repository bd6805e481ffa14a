// world -- lives and deaths: who boots when, and what reaches whom in which order.

#include "common/actor/inbox.h"
#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    TICK_MS = 1000,
    TURNS_MAX = 2000,
    WAKES_MAX = 50,
    LIVENESS_MS = 900000,
    ROUNDS_MIN = 60,
    COMMITS_AFTER_HEAL = 20,
    SETTLE_MS = 30000
};
#define NEVER UINT64_MAX

void *memory_take(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(memory != MAP_FAILED);
    return memory;
}

void memory_forget(void *memory, size_t bytes)
{
    ensure(madvise(memory, bytes, MADV_DONTNEED) == 0);
}

_Noreturn void broken(struct sim *self, const char *invariant, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(self->verdict, sizeof self->verdict, "%s at %" PRIu64 ".%03" PRIu64 " s: %s",
             invariant, (uint64_t)self->now_ms / 1000, (uint64_t)self->now_ms % 1000, text);
    longjmp(self->broken, 1);
}

const void *unpack(struct sim *self, struct wire_arena *arena, uint16_t kind, const uint8_t *body,
                   uint32_t bytes)
{
    struct wire_refusal refusal;
    const void *unpacked = NULL;
    arena->used = 0;
    if (!wire_unpack_body(body, bytes, kind, arena, &unpacked, &refusal)) {
        char text[WIRE_REFUSAL_TEXT_MAX];
        wire_refusal_text(&refusal, text, sizeof text);
        broken(self, "whatever packs, unpacks", "%s", text);
    }
    return unpacked;
}

// ---- lives --------------------------------------------------------------------------------------

uint64_t node_clock(const struct sim *self, const struct node *node)
{
    return self->now_ms + node->skew_ms;
}

uint32_t node_named(const struct sim *self, const char *name)
{
    for (uint32_t i = 0; i < self->nodes_count; i++)
        if (actor_name_is_same(self->nodes[i].name, name)) return i;
    return NOBODY;
}

// By seed, node and life, so that many members come back under another label, or without one.
static void name_node(const struct sim *self, struct node *node)
{
    static const char *const labels[] = { "", "anna", "fifteen-letters", "" };
    const uint64_t number = self->seed + (uint64_t)(node - self->nodes) + node->life;
    actor_name_with(node->role, labels[number % 4], &node->key, node->name);
}

static size_t state_bytes(uint8_t role)
{
    switch (role) {
    case ACTOR_COORDINATOR: return sizeof(struct coordinator);
    case ACTOR_TRAINER:
    case ACTOR_SERVER: return sizeof(struct trainer);
    case ACTOR_WITNESS: return sizeof(struct witness_actor);
    case ACTOR_CHECKPOINTER: return sizeof(struct checkpointer);
    case ACTOR_PROVIDER: return sizeof(struct data_provider);
    default: return 0;
    }
}

static void step_core(struct node *node, const struct msg *in, struct outbox *out)
{
    switch (node->role) {
    case ACTOR_COORDINATOR: coordinator_step(node->state, in, out); break;
    case ACTOR_TRAINER:
    case ACTOR_SERVER: trainer_step(node->state, in, out); break;
    case ACTOR_WITNESS: witness_actor_step(node->state, in, out); break;
    case ACTOR_CHECKPOINTER: checkpointer_step(node->state, in, out); break;
    case ACTOR_PROVIDER: data_provider_step(node->state, in, out); break;
    }
}

static void init_member(struct sim *self, struct node *node)
{
    struct member *member = node->state; // The first field of every member's state
    switch (node->role) {
    case ACTOR_TRAINER: trainer_init(node->state); break;
    case ACTOR_SERVER: trainer_init_server(node->state); break;
    case ACTOR_WITNESS: witness_actor_init(node->state); break;
    case ACTOR_CHECKPOINTER: checkpointer_init(node->state); break;
    case ACTOR_PROVIDER:
        data_provider_init(node->state);
        member->samples = 100;
        member->data = hash_number("manifest", 0);
        break;
    }
    member->key = node->key;
    if (self->plan.tickets) member->coordinator = self->nodes[COORDINATOR].key;
    memcpy(member->name, node->name, sizeof member->name);
    memcpy(member->run, "sim", 4);
    snprintf(member->endpoint, sizeof member->endpoint, "tcp://127.0.0.1:%u",
             SIM_PORT + (unsigned)(node - self->nodes));
}

// Checkpoints that their own shell would pass over by name: the newest, or all.
static void damage(struct sim *self, struct node *node)
{
    if (node->checkpoints_count == 0 || !chance(self, self->plan.damage)) return;
    node->checkpoints_count = (uint32_t)roll(self, node->checkpoints_count);
    self->faults[DAMAGE]++;
}

// What its store still holds of the life before.
static void inherit(struct sim *self, uint8_t id)
{
    const struct store *store = &self->nodes[id].store;
    if (store->count)
        node_hear(self, id, FRAME_INHERITED,
                  &(struct wire_inherited){ store->blobs, store->count });
}

// As checkpointer_main does: the run that began last comes first.
static bool is_newer(const struct pin *a, const struct pin *b)
{
    return a->born_unix_ms != b->born_unix_ms
               ? a->born_unix_ms > b->born_unix_ms
               : replica_is_newer(a->step, a->epoch, b->step, b->epoch);
}

static void first_messages(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    struct wire_start start = { .incarnation = node->incarnation,
                                .instance = node->instance,
                                .unix_ms = 1800000000000u + self->now_ms };
    if (node->has_journal) node_hear(self, id, FRAME_JOURNAL, &node->journal);
    if (node->role == ACTOR_CHECKPOINTER) damage(self, node);
    if (node->up && node->role == ACTOR_CHECKPOINTER && node->checkpoints_count) {
        const struct pin *newest = &node->checkpoints[0];
        for (uint32_t i = 1; i < node->checkpoints_count; i++) {
            if (is_newer(&node->checkpoints[i], newest)) newest = &node->checkpoints[i];
        }
        struct wire_load resume = { .step = newest->step };
        snprintf(resume.path, sizeof resume.path, "checkpoints/step-%08" PRIu64, resume.step);
        node_hear(self, id, FRAME_RESUME, &resume);
    }
    if (node->up) inherit(self, id);
    if (node->up) node_hear(self, id, FRAME_START, &start);
}

void node_boot(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    bool first = node->life == 0;
    node->life++;
    name_node(self, node);
    node->up = true;
    node->leaving = node->quits = false;
    if (!first && chance(self, 250)) { // The machine rebooted, too: its clock starts over
        node->skew_ms = 0 - self->now_ms + roll(self, 5000);
        self->faults[REBOOT]++;
    }
    node->alarm_ms = node->patience_ms = NEVER;
    memset(node->said_ms, 0, sizeof node->said_ms);
    node->frozen_ms = 0;
    node->hello_ms = self->now_ms;
    node->broker_instance = 0;
    node->instance = 1800000000000u + self->now_ms + node->life;
    node->born_unix_ms = 0;
    if (id == COORDINATOR) work_clear(self); // Its inbox ended with it
    if (id == COORDINATOR) disk_lose(self);
    if (id == COORDINATOR) disk_fall_behind(self);
    node->incarnation = node->instance;
    node->learner = (struct learner){ .generation = node->learner.generation + 1 };
    if (node->role == ACTOR_OPERATOR) return;
    memory_forget(node->state, node->state_bytes);
    if (node->role == ACTOR_COORDINATOR) {
        coordinator_init(node->state, &self->plan.rules);
        disk_recover(self, node->state);
    } else {
        init_member(self, node);
        check_rebooted(self, id);
    }
    first_messages(self, id);
}

void node_crash(struct sim *self, uint8_t id, uint64_t down_ms)
{
    struct node *node = &self->nodes[id];
    node->up = false;
    node->turns = 0;
    node->up_again_ms = self->now_ms + down_ms;
    if (node->role != ACTOR_CHECKPOINTER) node->store.count = 0;
}

// ---- one step -----------------------------------------------------------------------------------

static void mix(struct sim *self, uint64_t word)
{
    self->trace = (self->trace ^ word) * 0x100000001B3u;
    self->trace ^= self->trace >> 29;
}

static void fold(struct sim *self, uint8_t id, const struct msg *in, const struct parcel *parcel)
{
    mix(self, self->now_ms);
    mix(self, in->kind | (uint64_t)id << 16 | (uint64_t)(uint8_t)in->from[0] << 24 |
                  (uint64_t)in->seq << 32);
    if (!parcel) return;
    uint64_t word = 0;
    uint32_t i = 0;
    for (; i + 8 <= parcel->bytes; i += 8) {
        memcpy(&word, parcel->body + i, 8);
        mix(self, word);
    }
    word = 0;
    memcpy(&word, parcel->body + i, parcel->bytes - i);
    mix(self, word ^ parcel->bytes);
}

static void print(const struct sim *self, uint8_t id, const char *arrow, const char *other,
                  uint16_t kind, const void *body)
{
    char line[1024];
    wire_print(kind, body, line, sizeof line);
    printf("%7" PRIu64 ".%03" PRIu64 "  %-22.22s %s %-22.22s %s\n", (uint64_t)self->now_ms / 1000,
           (uint64_t)self->now_ms % 1000, self->nodes[id].name, arrow, other, line);
}

static const char *port_name(const struct effect *effect)
{
    static const char *const names[PORT_COUNT] = { "",      "(news)",    "(disk)",    "(clock)",
                                                   "(log)", "(learner)", "(fetcher)", "(shell)" };
    return effect->port == PORT_MAIL ? effect->to : names[effect->port];
}

// A batch with a record in it is where a crash hurts most: there it falls twenty times as often, and
// where the record is a rare one, two hundred times.
static bool crashes_here(struct sim *self)
{
    uint32_t times = 1;
    if (!faulty(self) || self->plan.cut == 0) return false;
    for (uint32_t i = 0; i < self->out.count; i++) {
        const struct effect *effect = &self->out.effects[i];
        const bool rare = effect->kind == FRAME_RECORD_EJECTION ||
                          effect->kind == FRAME_RECORD_EPOCH_END ||
                          effect->kind == FRAME_RECORD_RESTORE;
        if (effect->port == PORT_DISK && times < 20) times = 20;
        if (effect->port == PORT_DISK && rare) times = 200;
    }
    return roll(self, 10000) < times * self->plan.cut;
}

// Before which effect: as likely as not before a record, which is torn then or not there at all.
static uint32_t draw_cut(struct sim *self)
{
    const uint32_t from = (uint32_t)roll(self, self->out.count + 1);
    if (roll(self, 2)) return from;
    for (uint32_t i = from; i < self->out.count; i++)
        if (self->out.effects[i].port == PORT_DISK) return i;
    return from;
}

// A clock that rings again and again, though time goes on in between.
static void count_wake(struct sim *self, struct node *node)
{
    if (self->now_ms >= node->wakes_ms + 1000) node->wakes_ms = self->now_ms, node->wakes = 0;
    if (++node->wakes > WAKES_MAX)
        broken(self, "no timer spins", "%s wakes %" PRIu64 " times in a second", node->name,
               node->wakes);
}

void node_step(struct sim *self, uint8_t id, struct msg *in)
{
    struct node *node = &self->nodes[id];
    node->turns = node->turn_ms == self->now_ms ? node->turns + 1 : 0;
    node->turn_ms = self->now_ms;
    const uint64_t answers = id == self->plan.greedy ? 10 : 1; // That came while it was frozen
    if (node->turns > TURNS_MAX * answers)
        broken(self, "no timer spins", "%s hears %s again and again", node->name,
               wire_kind_name(in->kind));
    in->now_ms = node_clock(self, node);
    self->steps++;
    outbox_clear(&self->out);
    if (in->kind == FRAME_WAKE) count_wake(self, node);
    if (self->verbose && in->kind != FRAME_WAKE) print(self, id, "<", in->from, in->kind, in->body);
    check_heard(self, id, in);
    step_core(node, in, &self->out);
    uint32_t cut = crashes_here(self) ? draw_cut(self) : UINT32_MAX;
    for (uint32_t i = 0; i <= self->out.count; i++) {
        if (i == cut && may_lose(self, id)) { // What it has just promised counts, too
            self->faults[CUT]++;
            if (self->verbose)
                printf("             %s dies after %u of %u effects\n", node->name, i,
                       self->out.count);
            disk_tear(self, id, i < self->out.count ? &self->out.effects[i] : NULL);
            node_crash(self, id, down_for(self));
            return;
        }
        if (i == self->out.count) break;
        const struct effect *effect = &self->out.effects[i];
        if (self->verbose && effect->port != PORT_CLOCK)
            print(self, id, ">", port_name(effect), effect->kind,
                  unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes));
        perform(self, id, effect);
        if (!node->up) return; // Its disk is behind, or took nothing more
    }
    check_stepped(self, id, in);
    if (node->quits)
        node_crash(self, id, between(self, 500, 5000)); // The supervisor starts it again
    if (node->role == ACTOR_COORDINATOR) disk_snapshot(self);
}

void node_hear(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    struct msg in = { .kind = kind, .run = "", .from = "", .body = body };
    fold(self, id, &in, NULL);
    node_step(self, id, &in);
}

// What a receiver keeps to show it to others. No signature is made or checked: nobody here bends what
// another has signed.
static void sign(struct sim *self, struct msg *in)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES] = { 1 };
    struct wire_head head = { .kind = in->kind, .incarnation = in->incarnation, .seq = in->seq };
    if (in->kind != FRAME_CLAIM && in->kind != FRAME_FINDING && in->kind != FRAME_BEAT) return;
    memcpy(head.run, "sim", 4);
    head.sender = in->sender;
    size_t count = wire_pack(&head, in->body, self->frame, sizeof self->frame);
    ensure(count > 0);
    in->frame_bytes =
        (uint32_t)wire_put_signature(self->frame, count, signature, sizeof self->frame);
    in->frame = self->frame;
}

// A letter of a version that has a field more is heard without it. One that lacks a field, or whose
// kind we do not know, is refused where it is unpacked, and no core hears of it. NULL: so it is.
static const void *unpack_skewed(struct sim *self, const struct parcel *parcel)
{
    const uint8_t first = parcel->bytes ? parcel->body[0] : 0;
    const bool bends = (first & 0xf0) == 0x90 && first > 0x90 && first < 0x9f; // Up to 14 fields
    const bool longer = bends && roll(self, 2);
    struct wire_refusal refusal;
    const void *body = NULL;
    self->faults[SKEW]++;
    self->arena.used = 0;
    if (parcel->bytes) memcpy(self->bytes, parcel->body, parcel->bytes);
    if (bends) self->bytes[0] = (uint8_t)(longer ? first + 1 : first - 1);
    self->bytes[parcel->bytes] = 7;
    bool taken = wire_unpack_body(self->bytes, parcel->bytes + longer, bends ? parcel->kind : 9999,
                                  &self->arena, &body, &refusal);
    if (taken != longer)
        broken(self, "another version is understood or refused", "%s",
               wire_kind_name(parcel->kind));
    return taken ? body : NULL;
}

static void hear_parcel(struct sim *self, const struct flight *flight)
{
    const struct parcel *parcel = flight->parcel;
    if (self->nodes[flight->node].role == ACTOR_OPERATOR) return;
    struct msg in = { .kind = parcel->kind,
                      .run = "sim",
                      .from = flight->name,
                      .sender = parcel->sender,
                      .incarnation = parcel->incarnation,
                      .seq = parcel->seq };
    in.body = chance(self, self->plan.skew)
                  ? unpack_skewed(self, parcel)
                  : unpack(self, &self->arena, parcel->kind, parcel->body, parcel->bytes);
    if (!in.body) return;
    sign(self, &in);
    fold(self, flight->node, &in, parcel);
    self->hears_forked = parcel->forked;
    node_step(self, flight->node, &in);
    self->hears_forked = false;
}

static void reach(struct sim *self, const struct flight *flight)
{
    switch (flight->to) {
    case TO_LEARNER: learner_finish(self, flight->node, flight->parcel); break;
    case TO_SAVER: saver_finish(self, flight->node, flight->parcel); break;
    case TO_FETCHER: fetcher_finish(self, flight->node, flight->parcel); break;
    case TO_POST: post_hear(self, flight->node, flight->parcel); break;
    case TO_CORE:
        node_hear(self, flight->node, flight->parcel->kind,
                  unpack(self, &self->arena, flight->parcel->kind, flight->parcel->body,
                         flight->parcel->bytes));
        break;
    default: hear_parcel(self, flight);
    }
}

static void arrive(struct sim *self, struct flight *flight)
{
    struct node *node = &self->nodes[flight->node];
    bool to_broker = flight->to == TO_BROKER_MAIL || flight->to == TO_BROKER_NEWS;
    if (to_broker) { // On its way already: the sender's death is no matter
        if (!self->broker.up) return;
        if (flight->to == TO_BROKER_MAIL) broker_hear_mail(self, flight);
        else broker_hear_news(self, flight);
        return;
    }
    if (!node->up || node->life != flight->life) return;
    if (flight->parcel->forked && !self->disk.behind) return; // Its connections ended with it
    if (node->frozen_ms > self->now_ms) {
        network_fly(self, node->frozen_ms - self->now_ms, flight->to, flight->node, flight->life,
                    flight->name, flight->parcel);
        return;
    }
    if (work_must_wait(self, flight)) return;
    reach(self, flight);
    work_heard(self);
}

// ---- the loop -----------------------------------------------------------------------------------

enum alarm { BOOT, HELLO, WAKE, WORK, ALARMS };

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

// The next thing that happens by the clock alone, and to whom (NOBODY: the world's tick).
static uint64_t next_alarm(const struct sim *self, uint8_t *ret_id, enum alarm *ret_alarm)
{
    uint64_t at_ms = self->tick_ms;
    *ret_id = NOBODY;
    for (uint8_t id = 0; id < self->nodes_count; id++) {
        const struct node *node = &self->nodes[id];
        const uint64_t alarms[] = {
            [BOOT] = node->up || node->ended ? NEVER : node->up_again_ms,
            [HELLO] = node->up ? later(node->hello_ms, node->frozen_ms) : NEVER,
            [WAKE] = node->up ? later(node->alarm_ms, node->frozen_ms) : NEVER,
            [WORK] =
                node->up && id == COORDINATOR ? later(work_due_ms(self), node->frozen_ms) : NEVER,
        };
        for (int i = 0; i < ALARMS; i++)
            if (alarms[i] < at_ms) at_ms = alarms[i], *ret_id = id, *ret_alarm = (enum alarm)i;
    }
    return at_ms;
}

// Without its journal a witness could say in the open round something else than it has said: who has
// lost it stays away until that round has ended (common/actor/journal.c). Who only trains needs not: it
// trains nothing of a round that was open when it came.
static bool must_wait(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    if (node->has_journal && self->plan.lose_journal && chance(self, self->plan.lose_journal)) {
        node->has_journal = false;
        node->promised_round = check_round(self);
        self->faults[LOST_JOURNAL]++;
    }
    bool votes = node->role != ACTOR_TRAINER;
    for (uint32_t i = 0; i < self->ghost.witnesses_count; i++)
        votes |= self->ghost.witnesses[i] == check_member(self, id);
    return votes && self->ghost.round_open && node->promised_round == check_round(self);
}

// The coordinator hears what waited for its processor, unless that came to its process before this one.
static void work(struct sim *self)
{
    struct flight *flight = work_next(self);
    if (flight->life == self->nodes[COORDINATOR].life) reach(self, flight);
    work_heard(self);
    network_done(self, flight);
}

static void ring(struct sim *self, uint8_t id, enum alarm alarm)
{
    const bool away =
        alarm == BOOT && id != NOBODY && id != COORDINATOR &&
        (self->disk.behind || must_wait(self, id)); // Behind: who knows less might follow
    if (away) disk_found_behind(self);
    if (id == NOBODY) {
        self->tick_ms += between(self, TICK_MS / 2, TICK_MS * 3 / 2);
        faults_draw(self);
    } else if (away) self->nodes[id].up_again_ms = self->now_ms + 1000;
    else if (alarm == BOOT) node_boot(self, id);
    else if (alarm == HELLO) post_tick(self, id);
    else if (alarm == WORK) work(self);
    else {
        self->nodes[id].alarm_ms = NEVER;
        node_hear(self, id, FRAME_WAKE, &(struct wire_wake){ node_clock(self, &self->nodes[id]) });
    }
}

static void advance(struct sim *self)
{
    uint8_t id;
    enum alarm alarm = WAKE;
    uint64_t alarm_ms = next_alarm(self, &id, &alarm);
    if (alarm_ms < self->now_ms) alarm_ms = self->now_ms;
    if (self->heap_count == 0 || alarm_ms < self->heap[0]->at_ms) {
        self->now_ms = alarm_ms;
        ring(self, id, alarm);
        return;
    }
    struct flight *flight = network_land(self);
    self->now_ms = flight->at_ms;
    arrive(self, flight);
    network_done(self, flight);
}

static void add_node(struct sim *self, uint8_t role, const struct key *key)
{
    uint8_t id = (uint8_t)self->nodes_count++;
    struct node *node = &self->nodes[id];
    void *state = node->state;
    size_t bytes = node->state_bytes;
    uint8_t had = node->role;
    memset(node, 0, sizeof *node);
    if (state && (had != role || bytes != state_bytes(role))) {
        munmap(state, bytes);
        state = NULL;
    }
    node->role = role;
    node->state_bytes = state_bytes(role);
    node->state = state || !node->state_bytes ? state : memory_take(node->state_bytes);
    node->key = *key;
    name_node(self, node);
    node->skew_ms = roll(self, 30ull * 86400000); // How long its machine has been up
    node->has_genesis = true;
    node->up_again_ms = roll(self, 2000);
}

static void add_nodes(struct sim *self)
{
    const struct plan *plan = &self->plan;
    uint64_t number = self->seed * 100;
    struct key owner = plan->rules.owner, key;
    self->nodes_count = 0;
    add_node(self, ACTOR_COORDINATOR, &owner);
    for (uint32_t i = 0; i < plan->trainers; i++) {
        key = key_number(++number);
        add_node(self, ACTOR_TRAINER, &key);
        bool late = i >= plan->rules.init_min_clients && roll(self, 2);
        if (late) self->nodes[self->nodes_count - 1].up_again_ms = roll(self, plan->heal_ms);
        // Unpinned, two thirds of those there must hold it (seed 3126: two of six, for ever).
        if (late && !hash_is_none(&plan->rules.genesis_digest))
            self->nodes[self->nodes_count - 1].has_genesis = roll(self, 2);
    }
    for (uint32_t i = 0; i < plan->servers; i++)
        key = key_number(++number), add_node(self, ACTOR_SERVER, &key);
    for (uint32_t i = 0; i < plan->witnesses; i++)
        key = key_number(++number), add_node(self, ACTOR_WITNESS, &key);
    self->checkpointer_node = NOBODY;
    if (plan->checkpointer) {
        self->checkpointer_node = self->nodes_count;
        key = key_number(++number);
        add_node(self, ACTOR_CHECKPOINTER, &key);
    }
    key = key_number(++number);
    self->provider_node = self->nodes_count;
    add_node(self, ACTOR_PROVIDER, &key);
    self->operator_node = self->nodes_count;
    add_node(self, ACTOR_OPERATOR, &owner);
}

static void begin(struct sim *self, uint64_t seed)
{
    network_clear(self);
    disk_clear(&self->disk);
    self->saves_count = 0;
    self->seed = seed;
    self->prng = seed * 0x9E3779B97F4A7C15u + 1;
    self->now_ms = self->seq = self->steps = self->trace = self->tick_ms = 0;
    self->far = 0;
    self->commits_at_heal = NEVER;
    memset(self->faults, 0, sizeof self->faults);
    self->verdict[0] = 0;
    plan_draw(self);
    add_nodes(self);
    check_begin(self);
    broker_boot(self);
    node_boot(self, (uint8_t)self->operator_node);
}

static bool enough(const struct sim *self)
{
    if (self->commits_at_heal == NEVER) return false;
    if (check_phase(self) == PHASE_FINISHED) return true;
    if (check_at_large(self)) return false;
    if (self->pace->awaits && self->pace->awaits(self)) return false;
    const uint64_t rounds = self->pace->rounds ? self->pace->rounds(self)
                                               : self->ghost.rounds_before + check_round(self);
    return rounds >= ROUNDS_MIN && check_step(self) >= self->commits_at_heal + COMMITS_AFTER_HEAL;
}

// By when the commits must be there: as many rounds at their longest, and the epochs they fall into.
// Most rounds end early, and that is all the time there is for what was down, behind or cut off. Who
// lies on withholds and claims twice, so rounds last their time and are void: there, twice as long; and where one
// is late for ever, whose round is void if too few others are there.
static uint64_t due_ms(const struct sim *self)
{
    const struct plan *plan = &self->plan;
    const struct rules *rules = &plan->rules;
    const uint64_t round_ms = rules->train_ms + rules->witness_ms;
    const uint64_t rounds = rules->epoch_ms ? rules->epoch_ms / round_ms + 1 : rules->epoch_rounds;
    // Witnesses without parameters believe a base that more than a third of the round's trainers name.
    // A batch with fewer samples has fewer results: what is committed is an epoch's first round, whose
    // base is on record (seed 4165).
    const bool few = plan->witnesses > 0 && rules->batch_start <= plan->trainers / 3;
    const uint64_t epochs = COMMITS_AFTER_HEAL / (few ? 1 : rounds) + 1;
    const uint64_t needs_ms = (few ? epochs * rounds : COMMITS_AFTER_HEAL) * round_ms +
                              epochs * (rules->waiting_ms + rules->warmup_ms + rules->cooldown_ms);
    return plan->heal_ms + needs_ms * (plan->stubborn || plan->late != NOBODY ? 2 : 1);
}

static void live(struct sim *self)
{
    const uint64_t due = due_ms(self), end_ms = self->plan.heal_ms + LIVENESS_MS;
    while (!enough(self)) {
        advance(self);
        if (self->now_ms < self->plan.heal_ms) continue;
        if (self->commits_at_heal > check_step(self)) // Only now, or taken back since
            self->commits_at_heal = check_step(self);
        const uint64_t since = check_step(self) - self->commits_at_heal;
        const bool late =
            self->now_ms > due && since < COMMITS_AFTER_HEAL && check_phase(self) != PHASE_FINISHED;
        if (late || self->now_ms > end_ms)
            broken(self, "once healed, the run gets on",
                   "%" PRIu64 " commits, %" PRIu64 " of them since, in %" PRIu64
                   " s, round %" PRIu64 ", phase %s",
                   (uint64_t)check_step(self), since,
                   (uint64_t)(self->now_ms - self->plan.heal_ms) / 1000,
                   (uint64_t)check_round(self), run_phase_name(check_phase(self)));
    }
    bool finished = check_phase(self) == PHASE_FINISHED;
    for (uint64_t until = self->now_ms + SETTLE_MS; finished && self->now_ms < until;)
        advance(self);
    check_end(self);
}

struct sim *sim_new(void)
{
    struct sim *self = memory_take(sizeof *self);
    self->office = memory_take(sizeof *self->office);
    self->inbox = memory_take(sizeof *self->inbox);
    self->replayed = memory_take(sizeof *self->replayed);
    self->evidence = memory_take(sizeof *self->evidence);
    self->bytes = memory_take(SCRATCH_BYTES);
    self->arena = (struct wire_arena){ .bytes = memory_take(SCRATCH_BYTES), .max = SCRATCH_BYTES };
    self->scratch =
        (struct wire_arena){ .bytes = memory_take(SCRATCH_BYTES), .max = SCRATCH_BYTES };
    self->inside = (struct wire_arena){ .bytes = memory_take(SCRATCH_BYTES), .max = SCRATCH_BYTES };
    self->out = (struct outbox){ .effects = memory_take(EFFECTS_MAX * sizeof(struct effect)),
                                 .count_max = EFFECTS_MAX,
                                 .bytes = memory_take(SCRATCH_BYTES),
                                 .bytes_max = SCRATCH_BYTES };
    return self;
}

void sim_end(struct sim *self)
{
    network_clear(self);
    network_forget(self);
    disk_clear(&self->disk);
    free(self->heap);
}

int sim_run(struct sim *self, uint64_t seed)
{
    if (setjmp(self->broken)) return 1;
    begin(self, seed);
    live(self);
    return 0;
}
