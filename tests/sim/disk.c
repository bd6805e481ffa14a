// disk -- what a crash leaves: the ledger's records and snapshot, and what coordinator_main does
// with them. A record is durable from the moment its effect is performed; those behind it in the
// outbox may never be. That the bytes come back unchanged is common/ledger's promise, tested there.

#include "common/ensure.h"
#include "tests/sim/sim.h"
#include <stdlib.h>
#include <string.h>

void disk_clear(struct disk *self)
{
    for (uint64_t i = 0; i < self->count; i++) free(self->log[i].body);
    free(self->snapshot);
    self->snapshot = NULL;
    for (uint64_t i = 0; i < self->newer_count; i++) free(self->newer[i].body);
    self->count = self->snapshot_seq = self->newer_count = 0;
    self->snapshot_bytes = 0;
    self->behind = false;
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
        if (member->position.log_seq <= count) return false;
        members++;
    }
    return members > 0;
}

void disk_fall_behind(struct sim *self)
{
    struct disk *disk = &self->disk;
    uint64_t less = between(self, 1, BEHIND_MAX);
    if (disk->behind || disk->count <= less + 2 || !chance(self, self->plan.behind) ||
        !all_know_better(self, disk->count - less)) return;
    disk->behind = true;
    disk->newer_count = less;
    disk->base = disk->count -= less;
    memcpy(disk->newer, disk->log + disk->count, less * sizeof *disk->newer);
    if (disk->snapshot_seq > disk->count) disk->snapshot_seq = 0;
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
        memcmp(head.sender, self->nodes[COORDINATOR].key.bytes, HASH_BYTES) != 0) return;
    const struct wire_beat *beat = body;
    bool there = beat->log_seq <= disk->count &&
                 hash_equal(&disk->log[beat->log_seq - 1].chain, &beat->chain);
    if (!there && !disk->behind)
        broken(self, "a coordinator halts only if its disk fell behind", "record %llu of %llu",
               (unsigned long long)beat->log_seq, (unsigned long long)disk->count);
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

void disk_store(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    if (effect->kind == FRAME_RECITE) {
        disk_recite(self, id,
                    unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes));
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
    struct disk *disk = &self->disk;
    ensure(disk->count < RECORDS_MAX);
    const struct hash none = { { 0 } };
    const struct hash before = disk->count ? disk->log[disk->count - 1].chain : none;
    struct stored *stored = &disk->log[disk->count++];
    *stored = (struct stored){ effect->kind, effect->bytes, malloc(effect->bytes),
                               run_chain(&before, disk->count, effect->kind, effect->body,
                                         effect->bytes) };
    ensure(stored->body);
    memcpy(stored->body, effect->body, effect->bytes);
    if (!disk->behind) check_record(self, effect->kind, record, effect->body, effect->bytes);
}

void disk_recite(struct sim *self, uint8_t id, const struct wire_recite *recite)
{
    for (uint64_t step = recite->from_step;
         step < recite->from_step + recite->count && step < ROUNDS_MAX; step++) {
        uint64_t seq = self->ghost.commit_of_step[step];
        if (seq == 0 || seq > self->disk.count) return;
        const struct stored *stored = &self->disk.log[seq - 1];
        struct parcel *parcel =
            parcel_new(self, &self->nodes[id], FRAME_COMMIT, stored->body, stored->bytes);
        network_mail(self, id, recite->to, parcel);
        parcel_release(parcel);
    }
}

static uint32_t pack_snapshot(struct sim *self, struct run *run, struct wire_interval *returned,
                              uint8_t *bytes, size_t bytes_max)
{
    struct wire_snapshot snapshot = run_to_snapshot(run, returned);
    size_t count = wire_pack_record(FRAME_SNAPSHOT, &snapshot, bytes, bytes_max);
    if (count == 0)
        broken(self, "a state packs", "snapshot after record %llu",
               (unsigned long long)run->log_seq);
    return (uint32_t)count;
}

// After a step whose effects were all performed.
void disk_snapshot(struct sim *self)
{
    struct coordinator *core = self->nodes[COORDINATOR].state;
    struct disk *disk = &self->disk;
    if (disk->behind) return;
    if (core->run.log_seq != disk->count ||
        (disk->count && !hash_equal(&core->run.chain, &disk->log[disk->count - 1].chain)))
        broken(self, "what is true is on disk", "the core has %llu records, the disk %llu",
               (unsigned long long)core->run.log_seq, (unsigned long long)disk->count);
    if (disk->count < disk->snapshot_seq + self->plan.snapshot_every) return;
    uint32_t bytes = pack_snapshot(self, &core->run, core->scratch, self->bytes, SCRATCH_BYTES);
    disk->snapshot = realloc(disk->snapshot, bytes);
    ensure(disk->snapshot);
    memcpy(disk->snapshot, self->bytes, bytes);
    disk->snapshot_bytes = bytes;
    disk->snapshot_seq = disk->count;
}

static void replay(struct sim *self, struct run *run, uint64_t from)
{
    for (uint64_t i = from; i < self->disk.count; i++) {
        const struct stored *stored = &self->disk.log[i];
        run_apply(run, stored->kind,
                  unpack(self, &self->scratch, stored->kind, stored->body, stored->bytes));
    }
}

// Recovers as the coordinator does, and holds what comes of it against a second state that never
// saw a snapshot: both must be the log's, to the last byte.
void disk_recover(struct sim *self, struct coordinator *core)
{
    struct disk *disk = &self->disk;
    struct run *run = &core->run, *whole = self->replayed;
    if (disk->snapshot_seq > 0) {
        struct wire_refusal refusal;
        uint16_t kind;
        const void *body;
        self->scratch.used = 0;
        if (!wire_unpack_record(disk->snapshot, disk->snapshot_bytes, WIRE_LOCAL, &self->scratch,
                                &kind, &body, &refusal))
            broken(self, "a snapshot can be read", "after record %llu",
                   (unsigned long long)disk->snapshot_seq);
        run_from_snapshot(run, body);
        uint32_t bytes = pack_snapshot(self, run, core->scratch, self->bytes, SCRATCH_BYTES);
        if (bytes != disk->snapshot_bytes || memcmp(self->bytes, disk->snapshot, bytes) != 0)
            broken(self, "a snapshot comes back as it went", "after record %llu",
                   (unsigned long long)disk->snapshot_seq);
    }
    replay(self, run, disk->snapshot_seq);
    if (disk->count) run->chain = disk->log[disk->count - 1].chain;
    memory_forget(whole, sizeof *whole);
    run_init(whole, self->plan.rules.snapshot_rounds);
    replay(self, whole, 0);
    size_t half = SCRATCH_BYTES / 2;
    uint32_t bytes = pack_snapshot(self, run, core->scratch, self->bytes, half);
    uint32_t again = pack_snapshot(self, whole, core->scratch, self->bytes + half, half);
    if (bytes != again || memcmp(self->bytes, self->bytes + half, bytes) != 0 ||
        !table_equal(&run->table, &whole->table))
        broken(self, "recovery is the log", "%llu records, snapshot after %llu",
               (unsigned long long)disk->count, (unsigned long long)disk->snapshot_seq);
    check_rebooted(self, COORDINATOR);
}
