// disk -- what a crash leaves: the ledger's records and snapshot, and what disk_shell does
// with them. A record is durable from the moment its effect is performed; those behind it in the
// outbox may never be; the one that a crash falls into is torn, and a start finds that its bytes are
// not those which the chain vouches for, and cuts it off. A torn snapshot is passed over for the one
// before. Of a member's journal two records lie on disk in turn, so a torn one leaves the one before:
// to the core a crash before it. That whole bytes come back unchanged is the promise of common/ledger
// and common/actor/journal, tested there.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>

static void clear_ledger(struct disk *self)
{
    for (uint64_t i = 0; i < self->count; i++) free(self->log[i].body);
    for (int i = 0; i < 2; i++) {
        free(self->snapshots[i].body);
        self->snapshots[i] = (struct kept_snapshot){ 0 };
    }
    self->count = 0;
}

void disk_clear(struct disk *self)
{
    clear_ledger(self);
    for (uint64_t i = 0; i < self->newer_count; i++) free(self->newer[i].body);
    self->newer_count = 0;
    self->behind = false;
}

// All is lost but the members, who have seen the run that was: its owner begins it anew.
void disk_lose(struct sim *self)
{
    struct disk *disk = &self->disk;
    const bool may = !disk->behind && disk->count > 2 && check_phase(self) != PHASE_FINISHED &&
                     self->ghost.pasts < PASTS_WHEN_LOST_MAX;
    if (self->plan.amnesia == 0 || !may || !chance(self, self->plan.amnesia)) return;
    clear_ledger(disk);
    check_begin_anew(self);
    self->faults[AMNESIA]++;
}

// ---- an older copy in its place -----------------------------------------------------------------

// Whoever is up has seen more than the copy holds: nobody may follow it, and somebody will say so.
static bool all_know_better(const struct sim *self, uint64_t count)
{
    uint32_t members = 0;
    for (uint32_t i = 0; i < self->nodes_count; i++) {
        const struct node *node = &self->nodes[i];
        if (!node->up || node->role == ACTOR_COORDINATOR || node->role == ACTOR_OPERATOR) continue;
        const struct member *member = node->state;
        if (member->position.log_seq <= count ||
            member->position.born_unix_ms != self->ghost.born_unix_ms)
            return false;
        members++;
    }
    return members > 0;
}

void disk_fall_behind(struct sim *self)
{
    struct disk *disk = &self->disk;
    uint64_t less = between(self, 1, BEHIND_MAX);
    if (disk->behind || disk->count <= less + 2 || !chance(self, self->plan.behind) ||
        !all_know_better(self, disk->count - less))
        return;
    disk->behind = true;
    disk->newer_count = less;
    disk->base = disk->count -= less;
    memcpy(disk->newer, disk->log + disk->count, less * sizeof *disk->newer);
    for (int i = 0; i < 2; i++)
        if (disk->snapshots[i].seq > disk->count) disk->snapshots[i].seq = 0;
    self->faults[BEHIND]++;
}

// The process has ended with a clear word; the owner puts the newer copy back.
static void put_back(struct sim *self)
{
    struct disk *disk = &self->disk;
    for (uint64_t i = disk->base; i < disk->count; i++) free(disk->log[i].body);
    memcpy(disk->log + disk->base, disk->newer, disk->newer_count * sizeof *disk->newer);
    disk->count = disk->base + disk->newer_count;
    disk->newer_count = 0;
    disk->behind = false;
    node_crash(self, COORDINATOR, 1000);
}

// Those who know better have died before they could say so, and nobody boots while the disk is
// behind (world.c): the owner finds the newer copy by himself.
void disk_found_behind(struct sim *self)
{
    for (uint32_t i = 0; i < self->nodes_count; i++) {
        const struct node *node = &self->nodes[i];
        if (node->up && node->role != ACTOR_COORDINATOR && node->role != ACTOR_OPERATOR) return;
    }
    if (self->disk.behind) put_back(self);
}

// What ledger_covers does, behind a signature that nobody else could make.
static void prove(struct sim *self, const struct wire_position *said)
{
    struct disk *disk = &self->disk;
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    static uint8_t kept[sizeof said->beat];
    uint16_t bytes = said->beat_bytes;
    memcpy(kept, said->beat, bytes);
    self->scratch.used = 0;
    if (!wire_unpack(kept, bytes, WIRE_NEWS, &self->scratch, &head, &body, &refusal) ||
        !key_equal(&head.sender, &self->nodes[COORDINATOR].key))
        return;
    const struct wire_beat *beat = body;
    const struct coordinator *core = self->nodes[COORDINATOR].state;
    if (beat->born_unix_ms != core->run.born_unix_ms) return;
    bool there = beat->log_seq <= disk->count &&
                 hash_equal(&disk->log[beat->log_seq - 1].chain, &beat->chain);
    if (!there && !disk->behind)
        broken(self, "a coordinator halts only if its disk fell behind",
               "record %" PRIu64 " of %" PRIu64, beat->log_seq, disk->count);
    if (!there) put_back(self);
}

// ---- records ------------------------------------------------------------------------------------

// Nothing can be stored: the process ends, and its supervisor starts it again, until it can.
static bool is_full(struct sim *self, uint8_t id)
{
    const struct node *node = &self->nodes[id];
    if (!faulty(self) || self->now_ms >= node->full_ms || !may_lose(self, id)) return false;
    node_crash(self, id, between(self, 200, 3000));
    return true;
}

static struct hash chain_before(const struct disk *disk, uint64_t count)
{
    const struct hash none = { { 0 } };
    return count > 1 ? disk->log[count - 2].chain : none;
}

static struct stored *append(struct disk *disk, const struct effect *effect)
{
    ensure(disk->count < RECORDS_MAX);
    const struct hash before = chain_before(disk, ++disk->count);
    struct stored *stored = &disk->log[disk->count - 1];
    *stored = (struct stored){ effect->kind, effect->bytes, malloc(effect->bytes),
                               run_chain(&before, disk->count, effect->kind, effect->body,
                                         effect->bytes) };
    ensure(stored->body);
    memcpy(stored->body, effect->body, effect->bytes);
    return stored;
}

void disk_store(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    if (effect->kind == FRAME_SEND_COMMITS) {
        disk_send_commits(self, id,
                          unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes));
        return;
    }
    if (effect->kind == FRAME_FORGET) {
        learner_forget(self, id, effect);
        return;
    }
    if (is_full(self, id)) return;
    const void *record = unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
    if (effect->kind == FRAME_POSITION) {
        prove(self, record);
        return;
    }
    if (id != COORDINATOR) {
        ensure(effect->kind == FRAME_JOURNAL);
        node->journal = *(const struct wire_journal *)record;
        node->has_journal = true;
        return;
    }
    append(&self->disk, effect);
    if (!self->disk.behind) check_record(self, effect->kind, record, effect->body, effect->bytes);
}

static bool is_commit_of(struct sim *self, const struct stored *stored, uint64_t step)
{
    const void *record = unpack(self, &self->scratch, stored->kind, stored->body, stored->bytes);
    return pace_of(&self->plan.rules)->commits(stored->kind, record).end == step + 1;
}

// A record of several steps is found by the last of them, as in the index of the ledger. Who asks for steps
// of an earlier run hears nothing here; a coordinator would begin with the first of its own.
void disk_send_commits(struct sim *self, uint8_t id, const struct wire_send_commits *said)
{
    const struct wire_send_commits asked = *said; // Records are unpacked in its place
    const uint16_t frame = pace_of(&self->plan.rules)->commit_frame;
    const uint64_t end = ((const struct coordinator *)self->nodes[id].state)->run.step;
    uint32_t sent = 0;
    if (asked.from_step < self->plan.rules.first_step) return;
    for (uint64_t step = asked.from_step; step < end && sent < asked.count && step < ROUNDS_MAX;
         step++) {
        uint64_t seq = self->ghost.commit_of_step[step];
        if (seq > self->disk.count) return;
        // An older ledger was put back: another record has its number there
        if (seq == 0 || !is_commit_of(self, &self->disk.log[seq - 1], step)) continue;
        sent++;
        const struct stored *stored = &self->disk.log[seq - 1];
        struct parcel *parcel =
            parcel_new(self, &self->nodes[id], frame, stored->body, stored->bytes);
        work_done(self, id, stored->bytes, true);
        network_mail(self, id, asked.to, parcel);
        parcel_release(parcel);
    }
}

static uint32_t pack_snapshot(struct sim *self, const struct run *run, uint8_t *bytes,
                              size_t bytes_max)
{
    _Alignas(max_align_t) uint8_t part[RUN_PART_BYTES];
    struct wire_snapshot snapshot = run_to_snapshot(run, part);
    size_t count = wire_pack_record(FRAME_SNAPSHOT, &snapshot, bytes, bytes_max);
    if (count == 0) broken(self, "a state packs", "snapshot after record %" PRIu64, run->log_seq);
    return (uint32_t)count;
}

static struct kept_snapshot *newest(struct disk *disk)
{
    return &disk->snapshots[disk->snapshots[1].seq > disk->snapshots[0].seq];
}

// Of all that is on disk, in the place of the older one.
static struct kept_snapshot *write_snapshot(struct sim *self)
{
    struct disk *disk = &self->disk;
    struct coordinator *core = self->nodes[COORDINATOR].state;
    struct kept_snapshot *kept = &disk->snapshots[newest(disk) == disk->snapshots];
    uint32_t bytes = pack_snapshot(self, &core->run, self->bytes, SCRATCH_BYTES);
    uint8_t *body = realloc(kept->body, bytes);
    ensure(body);
    memcpy(body, self->bytes, bytes);
    *kept = (struct kept_snapshot){ body, bytes, disk->count, hash_of(body, bytes) };
    return kept;
}

// After a step whose effects were all performed.
void disk_snapshot(struct sim *self)
{
    struct coordinator *core = self->nodes[COORDINATOR].state;
    struct disk *disk = &self->disk;
    if (disk->behind) return;
    if (core->run.log_seq != disk->count ||
        (disk->count && !hash_equal(&core->run.chain, &disk->log[disk->count - 1].chain)))
        broken(self, "what is true is on disk",
               "the core has %" PRIu64 " records, the disk %" PRIu64, core->run.log_seq,
               disk->count);
    if (disk->count >= newest(disk)->seq + self->plan.snapshot_every) write_snapshot(self);
}

// From some byte on it is not what was to be written, or not there at all.
static uint32_t tear(struct sim *self, uint8_t *body, uint32_t bytes)
{
    const uint32_t from = (uint32_t)roll(self, bytes);
    self->faults[TORN]++;
    if (from > 0 && roll(self, 2)) return from;
    for (uint32_t i = from; i < bytes; i++) body[i] ^= (uint8_t)between(self, 1, 255);
    return bytes;
}

void disk_tear(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct disk *disk = &self->disk;
    if (id != COORDINATOR || disk->behind || roll(self, 2)) return;
    if (!effect && disk->count > newest(disk)->seq) {
        struct kept_snapshot *torn = write_snapshot(self);
        torn->bytes = tear(self, torn->body, torn->bytes);
    } else if (effect && effect->port == PORT_DISK && effect->kind != FRAME_SEND_COMMITS &&
               effect->kind != FRAME_POSITION) {
        struct stored *torn = append(disk, effect);
        torn->bytes = tear(self, torn->body, torn->bytes);
    }
}

static void replay(struct sim *self, struct run *run, uint64_t from)
{
    for (uint64_t i = from; i < self->disk.count; i++) {
        const struct stored *stored = &self->disk.log[i];
        run_apply(run, stored->kind,
                  unpack(self, &self->scratch, stored->kind, stored->body, stored->bytes));
    }
}

// What the last life was writing when it ended.
static void cut_torn(struct sim *self)
{
    struct disk *disk = &self->disk;
    while (disk->count > 0) {
        struct stored *last = &disk->log[disk->count - 1];
        const struct hash before = chain_before(disk, disk->count);
        const struct hash chain =
            run_chain(&before, disk->count, last->kind, last->body, last->bytes);
        if (hash_equal(&chain, &last->chain)) break;
        free(last->body);
        disk->count--;
    }
    if (!disk->behind && disk->count != self->ghost.records)
        broken(self, "recovery is a prefix", "%" PRIu64 " records, %" PRIu64 " were durable",
               disk->count, self->ghost.records);
    for (int i = 0; i < 2; i++) {
        struct kept_snapshot *kept = &disk->snapshots[i];
        const struct hash hash = hash_of(kept->body, kept->bytes);
        if (kept->seq > disk->count || !hash_equal(&hash, &kept->hash)) kept->seq = 0;
    }
}

// Recovers as the coordinator does, and holds what comes of it against a second state that never
// saw a snapshot: both must be the log's, to the last byte.
void disk_recover(struct sim *self, struct coordinator *core)
{
    struct disk *disk = &self->disk;
    struct run *run = &core->run, *whole = self->replayed;
    cut_torn(self);
    const struct kept_snapshot *snapshot = newest(disk);
    if (snapshot->seq > 0) {
        struct wire_refusal refusal;
        uint16_t kind;
        const void *body;
        self->scratch.used = 0;
        if (!wire_unpack_record(snapshot->body, snapshot->bytes, WIRE_LOCAL, &self->scratch, &kind,
                                &body, &refusal))
            broken(self, "a snapshot can be read", "after record %" PRIu64, snapshot->seq);
        if (!run_from_snapshot(run, body))
            broken(self, "a snapshot is of the run's pace", "after record %" PRIu64, snapshot->seq);
        uint32_t bytes = pack_snapshot(self, run, self->bytes, SCRATCH_BYTES);
        if (bytes != snapshot->bytes || memcmp(self->bytes, snapshot->body, bytes) != 0)
            broken(self, "a snapshot comes back as it went", "after record %" PRIu64,
                   snapshot->seq);
    }
    replay(self, run, snapshot->seq);
    if (disk->count) run->chain = disk->log[disk->count - 1].chain;
    memory_forget(whole, sizeof *whole);
    run_init(whole, &core->pace->run, self->plan.rules.snapshot_rounds);
    replay(self, whole, 0);
    size_t half = SCRATCH_BYTES / 2;
    uint32_t bytes = pack_snapshot(self, run, self->bytes, half);
    uint32_t again = pack_snapshot(self, whole, self->bytes + half, half);
    if (bytes != again || memcmp(self->bytes, self->bytes + half, bytes) != 0 ||
        !table_equal(&run->table, &whole->table))
        broken(self, "recovery is the log", "%" PRIu64 " records, snapshot after %" PRIu64,
               disk->count, snapshot->seq);
    check_rebooted(self, COORDINATOR);
}
