// run -- applies each kind of record in a function of its own. Members and rounds change in roster.c and
// round.c; here stand the phases, the table of samples, pins, checkpoints, the way back, and snapshots.

#include "common/run/run.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/claims.h"
#include <string.h>

void run_init(struct run *self, uint32_t snapshot_rounds)
{
    self->snapshot_rounds = snapshot_rounds;
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX, 1, 0);
}

const char *run_phase_name(uint8_t phase) { return wire_enum_name(&wire_enum_phase, phase); }

// ---- members ------------------------------------------------------------------------------------

static bool is_gone(uint8_t state) { return state == MEMBER_DROPPED || state == MEMBER_WITHDRAWN; }

// Nobody inherits what is said against another.
uint32_t run_free_place(const struct run *self)
{
    if (self->roster.count < MEMBERS_MAX) return self->roster.count;
    for (uint32_t i = 0; i < self->roster.count; i++)
        if (is_gone(self->roster.members[i].state) &&
            round_client_place(&self->round, i) == NO_MEMBER && !round_is_party(&self->round, i))
            return i;
    return NO_MEMBER;
}

static void apply_member(struct run *self, const struct wire_member *member)
{
    const struct roster *roster = &self->roster;
    if (member->index < roster->count &&
        !key_equal(&roster->members[member->index].key, &member->key)) { // A place handed on
        self->residuals[member->index] = (struct wire_residual){ { { 0 } } };
        self->way_back_residuals[member->index] = (struct wire_residual){ { { 0 } } };
    }
    roster_put(&self->roster, member);
}

static void apply_ejection(struct run *self, const struct wire_record_ejection *record)
{
    ensure(self->roster.members[record->member].state != MEMBER_EJECTED);
    roster_set_state(&self->roster, record->member, MEMBER_EJECTED);
}

// ---- phases -------------------------------------------------------------------------------------

static const unsigned becomes[PHASE_COUNT] = {
    [PHASE_WAITING] = 1 << PHASE_WARMUP | 1 << PHASE_PAUSED,
    [PHASE_WARMUP] = 1 << PHASE_TRAIN | 1 << PHASE_WAITING | 1 << PHASE_PAUSED,
    [PHASE_TRAIN] = 1 << PHASE_WITNESS,
    [PHASE_WITNESS] = 1 << PHASE_TRAIN | 1 << PHASE_COOLDOWN,
    [PHASE_COOLDOWN] = 1 << PHASE_WAITING | 1 << PHASE_FINISHED | 1 << PHASE_PAUSED,
    [PHASE_PAUSED] = 1 << PHASE_WAITING,
    [PHASE_FINISHED] = 0,
};

// The only writer of `phase`.
static void enter(struct run *self, uint8_t phase)
{
    ensure(phase < PHASE_COUNT && becomes[self->phase] & 1u << phase);
    self->phase = phase;
}

static void apply_phase(struct run *self, const struct wire_record_phase *record)
{
    enter(self, record->phase);
    self->epoch = record->epoch;
    self->cold_start = record->cold_start;
    self->source = record->source;
    self->epoch_start_step = record->epoch_start_step;
    if (record->phase == PHASE_WARMUP) {
        self->epoch_start_round = self->round.opened.round + 1;
        self->epoch_elapsed_ms = 0;
        roster_move_trainers(&self->roster, MEMBER_PENDING, MEMBER_HEALTHY);
    }
    if (record->phase == PHASE_PAUSED) self->pausing = false;
    if (record->phase == PHASE_WAITING || record->phase == PHASE_PAUSED)
        roster_move_trainers(&self->roster, MEMBER_HEALTHY, MEMBER_PENDING);
}

// ---- rounds -------------------------------------------------------------------------------------

// An empty list may have no address.
static void copy_list(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

static void apply_round(struct run *self, const struct wire_round *round)
{
    ensure(round->round == self->round.opened.round + 1 && !self->round.open);
    if (self->phase != PHASE_TRAIN) enter(self, PHASE_TRAIN);
    ensure(table_deal_again(&self->table, round->round, round->dealt, round->dealt_count) ==
           TABLE_OK);
    round_leave_cases(&self->round, round, &self->roster);
    round_open(&self->round, round);
    self->epoch_elapsed_ms = round->epoch_elapsed_ms;
}

// A commit ends its round: what it accepted is done, all else goes back to the table.
static void apply_commit(struct run *self, const struct wire_commit *commit)
{
    ensure(self->round.open && commit->round == self->round.opened.round &&
           commit->step == self->step);
    ensure(hash_equal(&commit->previous, &self->round.last_commit) && commit_is_sound(commit));
    struct interval_walk walk = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        count += (uint32_t)interval_list_slice(self->round.dealt, self->round.dealt_count,
                                               commit->accepted[i].begin, commit->accepted[i].end,
                                               &walk, self->scratch + count);
    // mutant: a batch is dealt twice
    ensure(table_done(&self->table, commit->round, self->scratch, count) == TABLE_OK);
    // mutant: a batch is lost: what was not accepted is done
    ensure(table_return_rest(&self->table, commit->round) == TABLE_OK);
    round_close(&self->round, commit);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        self->residuals[self->round.clients[accepted->client].member].hash = accepted->residual_to;
    }
    if (self->phase == PHASE_TRAIN) enter(self, PHASE_WITNESS);
    if (commit->outcome == OUTCOME_VOID) return;
    self->digest_step = commit->step;
    self->digest = commit->base;
    if (commit->step % self->snapshot_rounds == 0) {
        self->pin_step = commit->step;
        self->pin_digest = commit->base;
    }
    self->samples_done += commit->samples;
    self->step++;
}

static void apply_epoch_end(struct run *self, const struct wire_epoch_end *end)
{
    ensure(end->step == self->step);
    self->digest_step = self->pin_step = end->step;
    self->digest = self->pin_digest = end->digest;
}

// ---- the beginning, and the way back ------------------------------------------------------------

static void set_table(struct run *self, uint64_t cursor, const struct interval *returned,
                      uint32_t count)
{
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX,
               self->pass_samples ? self->pass_samples : 1, cursor);
    ensure(table_put(&self->table, TABLE_TODO, 0, returned, count) == TABLE_OK);
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
    set_table(self, genesis->cursor, NULL, 0);
}

static void apply_data(struct run *self, const struct wire_record_data *data)
{
    self->pass_samples = self->table.pass_length = data->samples;
    self->data = data->data;
    self->order = data->order;
}

// A checkpoint of the present step is a way back: its data position is known here, and only here.
static void apply_checkpoint(struct run *self, const struct wire_checkpoint *checkpoint)
{
    self->checkpoint = *checkpoint;
    // mutant: restore: the way back is that of any checkpoint
    if (checkpoint->step != self->step) return;
    struct wire_record_restore *way_back = &self->way_back;
    *way_back = (struct wire_record_restore){ .epoch = self->epoch,
                                              .step = self->step,
                                              .digest = checkpoint->digest,
                                              .cursor = self->table.cursor,
                                              .samples_done = self->samples_done,
                                              .residuals_count = self->roster.count };
    copy_list(self->way_back_residuals, self->residuals,
              self->roster.count * sizeof *self->residuals);
    if (self->round.open) { // What is dealt now had not been, at this step
        // mutant: restore: what is dealt now is forgotten
        way_back->cursor = self->round.opened.cursor;
        way_back->returned_count = self->round.returned_count;
        copy_list(self->way_back_returned, self->round.returned,
                  self->round.returned_count * sizeof *self->round.returned);
    } else {
        way_back->returned_count = run_returned(self, self->way_back_returned);
    }
}

static void apply_restore(struct run *self, const struct wire_record_restore *restore)
{
    ensure(restore->step <= self->step && !self->round.open);
    self->epoch = self->restored_epoch = restore->epoch;
    self->restored_step = restore->step;
    self->step = self->epoch_start_step = restore->step;
    // mutant: restore: the pinned step stays
    self->digest_step = self->pin_step = restore->step;
    // mutant: restore: the pinned step stays (2)
    self->digest = self->pin_digest = restore->digest;
    self->samples_done = restore->samples_done;
    if (self->checkpoint.step > restore->step) // One without a data position: given up as well
        self->checkpoint = (struct wire_checkpoint){ .epoch = restore->epoch,
                                                     .step = restore->step,
                                                     .digest = restore->digest };
    self->cold_start = true;
    round_give_up(&self->round);
    // A member that was further loads, and begins at zero; one that was not goes on from where it stands.
    // mutant: restore: residuals stay
    memset(self->residuals, 0, sizeof self->residuals);
    // mutant: restore: residuals are forgotten
    // mutant: restore: residuals stay (2)
    copy_list(self->residuals, restore->residuals,
              restore->residuals_count * sizeof *restore->residuals);
    // mutant: restore: what was trained since stays done
    set_table(self, restore->cursor, restore->returned, restore->returned_count);
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
    switch (kind) {
    case FRAME_RECORD_GENESIS: apply_genesis(self, record); break;
    case FRAME_RECORD_START:
        self->incarnation = ((const struct wire_record_start *)record)->incarnation;
        round_forget(&self->round);
        if (!self->born_unix_ms)
            self->born_unix_ms = ((const struct wire_record_start *)record)->unix_ms;
        break;
    case FRAME_RECORD_MEMBER: apply_member(self, record); break;
    case FRAME_RECORD_PHASE: apply_phase(self, record); break;
    case FRAME_RECORD_ROUND: apply_round(self, record); break;
    case FRAME_RECORD_COMMIT: apply_commit(self, record); break;
    case FRAME_RECORD_EPOCH_END: apply_epoch_end(self, record); break;
    case FRAME_RECORD_CHECKPOINT: apply_checkpoint(self, record); break;
    case FRAME_RECORD_PAUSE:
        self->pausing = ((const struct wire_record_pause *)record)->pausing;
        break;
    case FRAME_RECORD_DATA: apply_data(self, record); break;
    case FRAME_RECORD_RESTORE: apply_restore(self, record); break;
    case FRAME_RECORD_FINDING: round_hear_finding(&self->round, record, &self->roster); break;
    case FRAME_RECORD_EJECTION: apply_ejection(self, record); break;
    default: ensure_failed("a record that is none", __FILE__, __LINE__);
    }
}

bool run_is_pinned(const struct run *self)
{
    return self->digest_step == self->step && !hash_is_none(&self->digest);
}

// ---- snapshots ----------------------------------------------------------------------------------

uint32_t run_returned(struct run *self, struct interval *ret_list)
{
    uint32_t count = 0;
    ensure(table_list(&self->table, TABLE_TODO, 0, ret_list, TABLE_INTERVALS_MAX, &count) ==
           TABLE_OK);
    return count;
}

struct wire_record_restore run_way_back(const struct run *self)
{
    struct wire_record_restore way_back = self->way_back;
    way_back.returned = self->way_back_returned;
    way_back.residuals = self->way_back_residuals;
    return way_back;
}

struct wire_snapshot run_to_snapshot(struct run *self, struct interval *returned)
{
    struct wire_snapshot snapshot = {
        .config = self->config,
        .run_seed = self->run_seed,
        .incarnation = self->incarnation,
        .log_seq = self->log_seq,
        .phase = self->phase,
        .epoch = self->epoch,
        .epoch_start_step = self->epoch_start_step,
        .epoch_start_round = self->epoch_start_round,
        .epoch_elapsed_ms = self->epoch_elapsed_ms,
        .step = self->step,
        .samples_done = self->samples_done,
        .cold_start = self->cold_start,
        .pausing = self->pausing,
        .source = self->source,
        .round = round_frame(&self->round),
        .round_open = self->round.open,
        .digest_step = self->digest_step,
        .digest = self->digest,
        .pin_step = self->pin_step,
        .pin_digest = self->pin_digest,
        .checkpoint = self->checkpoint,
        .last_commit = self->round.last_commit,
        .pass_samples = self->pass_samples,
        .data = self->data,
        .cursor = self->table.cursor,
        .returned = returned,
        .returned_count = run_returned(self, returned),
        .roster_version = self->roster.version,
        .members = self->roster.members,
        .members_count = self->roster.count,
        .way_back = run_way_back(self),
        .born_unix_ms = self->born_unix_ms,
        .audit_key = self->round.audit_key,
        .order = self->order,
        .findings = self->round.findings,
        .findings_count = self->round.audits_count,
        .residuals = self->residuals,
        .residuals_count = self->roster.count,
        .restored_step = self->restored_step,
        .restored_epoch = self->restored_epoch,
    };
    memcpy(snapshot.run, self->run_id, sizeof snapshot.run);
    if (snapshot.round.round == 0) snapshot.round.round = snapshot.round.batch_size = 1; // None yet
    return snapshot;
}

void run_from_snapshot(struct run *self, const struct wire_snapshot *from)
{
    memcpy(self->run_id, from->run, sizeof self->run_id);
    self->config = from->config, self->run_seed = from->run_seed;
    self->incarnation = from->incarnation, self->log_seq = from->log_seq;
    self->phase = from->phase, self->epoch = from->epoch;
    self->epoch_start_step = from->epoch_start_step;
    self->epoch_start_round = from->epoch_start_round;
    self->epoch_elapsed_ms = from->epoch_elapsed_ms;
    self->step = from->step, self->samples_done = from->samples_done;
    self->cold_start = from->cold_start, self->pausing = from->pausing, self->source = from->source;
    self->digest_step = from->digest_step, self->digest = from->digest;
    self->pin_step = from->pin_step, self->pin_digest = from->pin_digest;
    // mutant: a snapshot forgets the chain of commits
    self->checkpoint = from->checkpoint, self->round.last_commit = from->last_commit;
    self->pass_samples = from->pass_samples, self->data = from->data;
    self->order = from->order;
    self->restored_step = from->restored_step, self->restored_epoch = from->restored_epoch;
    ensure(roster_load(&self->roster, from->roster_version, from->members, from->members_count));
    self->born_unix_ms = from->born_unix_ms;
    self->round.audit_key = from->audit_key;
    // mutant: guilt: a snapshot forgets where residuals led
    copy_list(self->residuals, from->residuals, from->residuals_count * sizeof *from->residuals);
    // mutant: restore: a snapshot forgets the way back
    self->way_back = from->way_back;
    self->way_back.returned = NULL, self->way_back.residuals = NULL;
    copy_list(self->way_back_returned, from->way_back.returned,
              from->way_back.returned_count * sizeof *from->way_back.returned);
    copy_list(self->way_back_residuals, from->way_back.residuals,
              from->way_back.residuals_count * sizeof *from->way_back.residuals);
    set_table(self, from->cursor, from->returned, from->returned_count);
    if (from->round.clients_count == 0) return; // Before the first round
    round_open(&self->round, &from->round);
    copy_list(self->round.findings, from->findings, from->findings_count * sizeof *from->findings);
    self->round.open = from->round_open;
    if (!self->round.open) return;
    // mutant: a snapshot forgets what is pending
    ensure(table_put(&self->table, TABLE_PENDING, from->round.round, from->round.dealt,
                     from->round.dealt_count) == TABLE_OK);
}
