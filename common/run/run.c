// run -- run_apply gives each record to the pace first. If the record is not the pace's own, one
// function a kind applies it. roster.c changes the members; this file changes the phase, the table
// of samples, the pins, the checkpoint and the state that a restore goes back to. Snapshots come
// last.

#include "common/run/run.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void run_init(struct run *self, const struct run_pace *pace, uint32_t snapshot_rounds)
{
    ensure(pace->bytes <= sizeof self->pace_state);
    self->pace = pace;
    self->snapshot_rounds = snapshot_rounds;
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX, 1, 0);
}

const char *run_phase_name(uint8_t phase) { return wire_enum_name(&wire_enum_phase, phase); }

// ---- members ------------------------------------------------------------------------------------

static bool refers_to(const struct run *self, uint32_t member)
{
    return self->pace->refers_to && self->pace->refers_to(self, member);
}

static bool is_gone(uint8_t state) { return state == MEMBER_DROPPED || state == MEMBER_WITHDRAWN; }

// A newcomer must not inherit what is recorded against the member before it: hence refers_to.
uint32_t run_free_place(const struct run *self)
{
    if (self->roster.count < MEMBERS_MAX) return self->roster.count;
    for (uint32_t i = 0; i < self->roster.count; i++)
        if (is_gone(self->roster.members[i].state) && !refers_to(self, i)) return i;
    return NO_MEMBER;
}

// ---- phases -------------------------------------------------------------------------------------

static const unsigned becomes[PHASE_COUNT] = {
    [PHASE_WAITING] = 1 << PHASE_WARMUP | 1 << PHASE_PAUSED,
    [PHASE_WARMUP] = 1 << PHASE_TRAIN | 1 << PHASE_WAITING | 1 << PHASE_PAUSED,
    [PHASE_TRAIN] = 1 << PHASE_WITNESS | 1 << PHASE_COOLDOWN,
    [PHASE_WITNESS] = 1 << PHASE_TRAIN | 1 << PHASE_COOLDOWN,
    [PHASE_COOLDOWN] = 1 << PHASE_WAITING | 1 << PHASE_FINISHED | 1 << PHASE_PAUSED,
    [PHASE_PAUSED] = 1 << PHASE_WAITING,
    [PHASE_FINISHED] = 0,
};

void run_enter(struct run *self, uint8_t phase)
{
    ensure(phase < PHASE_COUNT && becomes[self->phase] & 1u << phase);
    self->phase = phase;
}

static void apply_phase(struct run *self, const struct wire_record_phase *record)
{
    run_enter(self, record->phase);
    self->epoch = record->epoch;
    self->cold_start = record->cold_start;
    self->source = record->source;
    self->epoch_start_step = record->epoch_start_step;
    if (record->phase == PHASE_WARMUP) {
        self->epoch_start_number = self->number + 1;
        self->epoch_elapsed_ms = 0;
        roster_move_trainers(&self->roster, MEMBER_PENDING, MEMBER_HEALTHY);
    }
    if (record->phase == PHASE_PAUSED) self->pausing = false;
    if (record->phase == PHASE_WAITING || record->phase == PHASE_PAUSED)
        roster_move_trainers(&self->roster, MEMBER_HEALTHY, MEMBER_PENDING);
}

// ---- steps --------------------------------------------------------------------------------------

// The first digest of the run's first step is that of its beginning.
static void know_first(struct run *self, uint64_t step, const struct hash *digest)
{
    if (step == self->first_point.step && hash_is_none(&self->first_point.digest))
        self->first_point.digest = *digest;
}

void run_know_digest(struct run *self, uint64_t step, const struct hash *digest)
{
    self->digest_step = step;
    self->digest = *digest;
    know_first(self, step, digest);
    if (step % self->snapshot_rounds != 0) return;
    self->pin_step = step;
    self->pin_digest = *digest;
}

void run_advance(struct run *self, uint64_t steps, uint64_t samples)
{
    self->step += steps;
    self->samples_done += samples;
}

// ---- points -------------------------------------------------------------------------------------

// The address of an empty list may be NULL, which memcpy does not allow.
static void copy_list(struct interval *to, const struct interval *from, uint32_t count)
{
    if (count) memcpy(to, from, count * sizeof *to);
}

void run_point_take(const struct run *run, const struct hash *digest, struct run_point *ret)
{
    ret->at = (struct wire_record_restore){
        .epoch = run->epoch, .step = run->step, .digest = *digest, .samples_done = run->samples_done
    };
    ret->at.data_position = run_data_position(run, &ret->lists);
    ret->at.data_position.returned = ret->at.data_position.failed = NULL;
}

struct wire_record_restore run_point_whole(const struct run_point *self)
{
    struct wire_record_restore whole = self->at;
    whole.data_position.returned = self->lists.returned;
    whole.data_position.failed = self->lists.failed;
    return whole;
}

void run_point_load(struct run_point *self, const struct wire_record_restore *from)
{
    const struct wire_data_position *position = &from->data_position;
    self->at = *from;
    self->at.data_position.returned = self->at.data_position.failed = NULL;
    copy_list(self->lists.returned, position->returned, position->returned_count);
    copy_list(self->lists.failed, position->failed, position->failed_count);
}

static void copy_point(struct run_point *to, const struct run_point *from)
{
    const struct wire_record_restore whole = run_point_whole(from);
    run_point_load(to, &whole);
}

// ---- epochs -------------------------------------------------------------------------------------

static void apply_epoch_end(struct run *self, const struct wire_epoch_end *end)
{
    ensure(end->step == self->step);
    self->digest_step = self->pin_step = end->step;
    self->digest = self->pin_digest = end->digest;
    know_first(self, end->step, &end->digest);
    run_point_take(self, &end->digest, &self->end_point);
}

bool run_is_end(const struct run *self, uint64_t step, const struct hash *digest)
{
    return step == self->end_point.at.step && !hash_is_none(digest) &&
           hash_equal(digest, &self->end_point.at.digest);
}

// ---- the beginning, checkpoints, restore --------------------------------------------------------

static void set_table(struct run *self, const struct wire_data_position *data_position)
{
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX,
               self->pass_samples ? self->pass_samples : 1, data_position->cursor);
    ensure(table_restore(&self->table, TABLE_TODO, 0, data_position->returned,
                         data_position->returned_count) == TABLE_OK);
    // mutant: restore: what failed is trained again
    ensure(table_restore(&self->table, TABLE_FAILED, 0, data_position->failed,
                         data_position->failed_count) == TABLE_OK);
}

static void apply_genesis(struct run *self, const struct wire_record_genesis *genesis)
{
    ensure(self->log_seq == 1);
    memcpy(self->run_id, genesis->run, sizeof self->run_id);
    self->config = genesis->config;
    self->run_seed = genesis->seed;
    self->epoch = genesis->epoch;
    self->step = self->epoch_start_step = self->digest_step = self->pin_step = genesis->step;
    self->digest = self->pin_digest = genesis->digest;
    self->source = SOURCE_HUB;
    self->cold_start = true;
    set_table(self, &(struct wire_data_position){ .cursor = genesis->cursor });
    self->first_point = (struct wire_record_restore){ .epoch = genesis->epoch,
                                                      .step = genesis->step,
                                                      .digest = genesis->digest,
                                                      .data_position.cursor = genesis->cursor };
}

static void apply_data(struct run *self, const struct wire_record_data *data)
{
    self->pass_samples = self->table.pass_length = data->samples;
    self->data = data->data;
    self->order = data->order;
}

void run_note_save(struct run *self)
{
    run_point_take(self, &(struct hash){ { 0 } }, &self->save_point);
}

// The restore point is about to be a newer one.
static void keep_older(struct run *self)
{
    // mutant: older: a save is forgotten once there is a newer one
    if (!self->restore_point.at.pieces) return;
    for (unsigned i = OLDER_SAVES_MAX - 1; i > 0; i--)
        copy_point(&self->older[i], &self->older[i - 1]);
    copy_point(&self->older[0], &self->restore_point);
}

// Of the saves on record `keep` stay on disk, the new one among them.
static void forget_removed(struct run *self, uint32_t keep)
{
    static const struct run_point no_point;
    // mutant: older: a save that was removed is offered
    for (unsigned i = keep > 0 ? keep - 1 : 0; i < OLDER_SAVES_MAX; i++)
        copy_point(&self->older[i], &no_point);
}

// The run goes back to `step`, or further: what was saved later is given up.
static void drop_newer(struct run *self, uint64_t step)
{
    static const struct run_point no_point;
    // mutant: older: a save that was given up is gone back to
    while (self->restore_point.at.step > step) {
        copy_point(&self->restore_point, &self->older[0]);
        for (unsigned i = 0; i + 1 < OLDER_SAVES_MAX; i++)
            copy_point(&self->older[i], &self->older[i + 1]);
        copy_point(&self->older[OLDER_SAVES_MAX - 1], &no_point);
    }
}

// The save of the newest step that is saved is whole. Of an older one the data position is not known any more.
static void apply_pieces(struct run *self, const struct wire_checkpoint *checkpoint)
{
    ensure(checkpoint->step == self->save_point.at.step);
    if (checkpoint->step > self->restore_point.at.step) keep_older(self);
    forget_removed(self, checkpoint->keep);
    copy_point(&self->restore_point, &self->save_point);
    self->restore_point.at.digest = checkpoint->digest;
    self->restore_point.at.pieces = true;
}

// A restore can go back to a checkpoint only if its data position is known, and that is known only
// of the present step, of the newest end of an epoch and of the newest save.
static void apply_checkpoint(struct run *self, const struct wire_checkpoint *checkpoint)
{
    self->checkpoint = *checkpoint;
    if (checkpoint->pieces) {
        apply_pieces(self, checkpoint);
        return;
    }
    // The same state is saved in pieces already, and its data position is known
    if (self->restore_point.at.pieces && checkpoint->step == self->restore_point.at.step &&
        hash_equal(&checkpoint->digest, &self->restore_point.at.digest))
        return;
    // mutant: restore: a checkpoint that was written beside the next epoch is none
    if (run_is_end(self, checkpoint->step, &checkpoint->digest)) {
        keep_older(self);
        // Of a pace without rounds the present position may be behind it: samples are done, and no step is yet
        // mutant: restore: samples of no step are done at the restore point
        copy_point(&self->restore_point, &self->end_point);
        return;
    }
    // mutant: restore: the restore point is that of any checkpoint
    if (checkpoint->step != self->step) return;
    keep_older(self);
    run_point_take(self, &checkpoint->digest, &self->restore_point);
}

static void apply_restore(struct run *self, const struct wire_record_restore *restore)
{
    static const struct wire_record_restore no_point;
    ensure(restore->step <= self->step);
    // First: its lists may be those of an older save, which takes another's place below
    // mutant: restore: what was trained since stays done
    set_table(self, &restore->data_position);
    self->epoch = self->restored_epoch = restore->epoch;
    self->restored_step = restore->step;
    self->step = self->epoch_start_step = restore->step;
    // mutant: restore: the pinned step stays
    self->digest_step = self->pin_step = restore->step;
    // mutant: restore: the pinned step stays (2)
    self->digest = self->pin_digest = restore->digest;
    self->samples_done = restore->samples_done;
    drop_newer(self, restore->step);
    if (self->checkpoint.step > restore->step) // A later one without a data position: unusable
        self->checkpoint = (struct wire_checkpoint){ .epoch = restore->epoch,
                                                     .step = restore->step,
                                                     .digest = restore->digest,
                                                     .pieces = restore->pieces };
    if (self->checkpoint.pieces && !self->checkpoint.name[0])
        snprintf(self->checkpoint.name, sizeof self->checkpoint.name, "step-%08" PRIu64,
                 restore->step);
    self->cold_start = true;
    // mutant: restore: an end of an epoch that was given up is gone back to
    if (self->end_point.at.step > restore->step) self->end_point.at = no_point;
    // mutant: saves: a save that was given up is gone back to
    if (self->save_point.at.step > restore->step) self->save_point.at = no_point;
}

struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes)
{
    struct hasher hasher;
    uint8_t number[8], head[3] = { 0x92, 0xcc, (uint8_t)kind }; // [kind, body], as it is stored
    ensure(kind >= 128 && kind < 256);
    be_put(number, seq, sizeof number);
    hasher_init(&hasher);
    hasher_add(&hasher, previous->bytes, HASH_BYTES);
    hasher_add(&hasher, number, sizeof number);
    hasher_add(&hasher, head, sizeof head);
    // mutant: a torn record is taken for whole
    hasher_add(&hasher, body, bytes);
    return hasher_end(&hasher);
}

void run_apply(struct run *self, uint16_t kind, const void *record)
{
    self->log_seq++;
    if (self->pace->apply(self, kind, record)) return;
    switch (kind) {
    case FRAME_RECORD_GENESIS: apply_genesis(self, record); break;
    case FRAME_RECORD_START:
        self->incarnation = ((const struct wire_record_start *)record)->incarnation;
        if (!self->born_unix_ms)
            self->born_unix_ms = ((const struct wire_record_start *)record)->unix_ms;
        break;
    case FRAME_RECORD_MEMBER: roster_put(&self->roster, record); break;
    case FRAME_RECORD_PHASE: apply_phase(self, record); break;
    case FRAME_RECORD_EPOCH_END: apply_epoch_end(self, record); break;
    case FRAME_RECORD_CHECKPOINT: apply_checkpoint(self, record); break;
    case FRAME_RECORD_PAUSE:
        self->pausing = ((const struct wire_record_pause *)record)->pausing;
        break;
    case FRAME_RECORD_DATA: apply_data(self, record); break;
    case FRAME_RECORD_RESTORE: apply_restore(self, record); break;
    default: ensure_failed("not a kind of record", __FILE__, __LINE__);
    }
}

bool run_has_checkpoint(const struct run *self)
{
    return !hash_is_none(&self->restore_point.at.digest);
}

bool run_has_digest(const struct run *self)
{
    return self->digest_step == self->step && !hash_is_none(&self->digest);
}

bool run_gave_up(const struct run *self, uint64_t step, uint64_t epoch)
{
    return step > self->restored_step && epoch < self->restored_epoch;
}

// ---- snapshots ----------------------------------------------------------------------------------

struct wire_data_position run_data_position(const struct run *self, struct run_lists *lists)
{
    struct wire_data_position data_position = { .returned = lists->returned,
                                                .failed = lists->failed };
    // mutant: restore: what is dealt now is forgotten
    ensure(table_undealt(&self->table, &data_position.cursor, lists->returned, TABLE_INTERVALS_MAX,
                         &data_position.returned_count) == TABLE_OK);
    ensure(table_list(&self->table, TABLE_FAILED, 0, lists->failed, TABLE_INTERVALS_MAX,
                      &data_position.failed_count) == TABLE_OK);
    return data_position;
}

struct wire_record_restore run_restore_point(const struct run *self)
{
    return run_point_whole(&self->restore_point);
}

const struct run_point *run_point_at(const struct run *self, uint64_t step)
{
    const struct run_point *point = &self->restore_point;
    if (point->at.step == step && !hash_is_none(&point->at.digest)) return point;
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) {
        point = &self->older[i];
        if (point->at.step == step && !hash_is_none(&point->at.digest)) return point;
    }
    return NULL;
}

static struct wire_saved_step saved_step(const struct run_point *point)
{
    return (struct wire_saved_step){ .step = point->at.step, .digest = point->at.digest };
}

struct wire_older_saves run_older_saves(const struct run *self)
{
    _Static_assert(OLDER_SAVES_MAX == 3, "RUN and SNAPSHOT have three");
    return (struct wire_older_saves){ .first = saved_step(&self->older[0]),
                                      .second = saved_step(&self->older[1]),
                                      .third = saved_step(&self->older[2]) };
}

// The scalars are the first members of struct run, in the same order and places.
enum { DURABLE_BYTES = offsetof(struct run, restored_epoch) + sizeof(uint64_t) };
_Static_assert(sizeof(struct wire_durable) == DURABLE_BYTES &&
                   offsetof(struct wire_durable, restored_epoch) ==
                       offsetof(struct run, restored_epoch),
               "struct run begins with the members of struct wire_durable");

struct wire_snapshot run_to_snapshot(const struct run *self, void *memory)
{
    struct wire_snapshot snapshot = {
        .restore_point = run_restore_point(self),
        .end_point = run_point_whole(&self->end_point),
        .save_point = run_point_whole(&self->save_point),
        .first_point = self->first_point,
        .cursor = self->table.cursor,
        .table = self->table.entries,
        .table_count = self->table.count,
        .roster_version = self->roster.version,
        .members = self->roster.members,
        .members_count = self->roster.count,
        .pace = self->pace->store(self, memory),
        .older_1 = run_point_whole(&self->older[0]),
        .older_2 = run_point_whole(&self->older[1]),
        .older_3 = run_point_whole(&self->older[2]),
    };
    memcpy(&snapshot.durable, self, DURABLE_BYTES);
    return snapshot;
}

bool run_from_snapshot(struct run *self, const struct wire_snapshot *from)
{
    memcpy(self, &from->durable, DURABLE_BYTES);
    ensure(roster_load(&self->roster, from->roster_version, from->members, from->members_count));
    // mutant: restore: a snapshot forgets the restore point
    run_point_load(&self->restore_point, &from->restore_point);
    // mutant: older: a snapshot forgets the older saves
    run_point_load(&self->older[0], &from->older_1);
    run_point_load(&self->older[1], &from->older_2);
    run_point_load(&self->older[2], &from->older_3);
    // mutant: restore: a snapshot forgets the end of the epoch
    run_point_load(&self->end_point, &from->end_point);
    // mutant: saves: a snapshot forgets the save that is being written
    run_point_load(&self->save_point, &from->save_point);
    // mutant: restore: a snapshot forgets the beginning
    self->first_point = from->first_point;
    set_table(self, &(struct wire_data_position){ .cursor = from->cursor });
    // mutant: a snapshot forgets what is pending
    // mutant: a snapshot forgets what failed
    ensure(table_load(&self->table, from->table, from->table_count));
    return self->pace->load(self, &from->pace);
}
