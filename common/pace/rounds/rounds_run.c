// rounds_run -- applies the records of a round. ROUND makes its samples pending. COMMIT makes the
// accepted ones done and the others todo again, and keeps the residual that each accepted result
// led to. A checkpoint of the present step copies these residuals, and a restore goes back to the
// copy. Snapshots come last.

#include "common/pace/rounds/rounds_run.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/claims.h"
#include <string.h>

_Static_assert(sizeof(struct rounds_run) <= RUN_PACE_BYTES,
               "the state of rounds has room in a run");

static struct rounds_run *own(struct run *run)
{
    return (struct rounds_run *)(void *)run->pace_state;
}

// The address of an empty list may be NULL, which memmove does not allow.
static void copy_list(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

// ---- a round ------------------------------------------------------------------------------------

static void apply_round(struct run *run, const struct wire_round *round)
{
    struct rounds_run *self = own(run);
    ensure(round->round == run->number + 1 && !self->round.open);
    if (run->phase != PHASE_TRAIN) run_enter(run, PHASE_TRAIN);
    ensure(table_deal_again(&run->table, round->round, round->dealt, round->dealt_count) ==
           TABLE_OK);
    round_add_debts(&self->round, round, self->debts);
    round_open(&self->round, round);
    run->number = round->round;
    run->epoch_elapsed_ms = round->epoch_elapsed_ms;
}

static void apply_commit(struct run *run, const struct wire_commit *commit)
{
    struct rounds_run *self = own(run);
    struct round *round = &self->round;
    ensure(round->open && commit->round == run->number && commit->step == run->step);
    ensure(hash_equal(&commit->previous, &round->last_commit) && commit_is_sound(commit));
    struct interval_walk walk = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        count += (uint32_t)interval_list_slice(round->dealt, round->dealt_count,
                                               commit->accepted[i].begin, commit->accepted[i].end,
                                               &walk, run->scratch + count);
    // mutant: a batch is dealt twice
    ensure(table_done(&run->table, commit->round, run->scratch, count) == TABLE_OK);
    // mutant: a batch is lost: what was not accepted is done
    ensure(table_return_rest(&run->table, commit->round) == TABLE_OK);
    round_close(round, commit);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        self->residuals[round->clients[accepted->client].member].hash = accepted->residual_to;
    }
    if (run->phase == PHASE_TRAIN) run_enter(run, PHASE_WITNESS);
    if (commit->outcome == OUTCOME_VOID) return;
    run_know_digest(run, commit->step, &commit->base);
    run_advance(run, 1, commit->samples);
}

static void apply_ejection(struct run *run, const struct wire_record_ejection *record)
{
    ensure(run->roster.members[record->member].state != MEMBER_EJECTED);
    roster_set_state(&run->roster, record->member, MEMBER_EJECTED);
}

// ---- records of all paces -----------------------------------------------------------------------

static void hear_member(struct run *run, const struct wire_member *member)
{
    struct rounds_run *self = own(run);
    const struct roster *roster = &run->roster;
    // mutant: guilt: a member that joins again has shown all
    if (member->index >= roster->count ||
        key_equal(&roster->members[member->index].key, &member->key))
        return;
    self->residuals[member->index] = (struct wire_residual){ { { 0 } } }; // The index changes hands
    self->restore_point[member->index] = (struct wire_residual){ { { 0 } } };
    self->end_point[member->index] = (struct wire_residual){ { { 0 } } };
    self->debts[member->index] = (struct wire_debt){ 0 };
}

// A member that holds a later step loads the older parameters and starts from zero; one that does
// not continues with its residual.
static void hear_restore(struct run *run)
{
    struct rounds_run *self = own(run);
    ensure(!self->round.open);
    round_give_up(&self->round);
    // mutant: restore: residuals are forgotten
    // mutant: restore: residuals stay
    memcpy(self->residuals, self->restore_point, sizeof self->residuals);
}

// A checkpoint of the present step, or of the newest end of an epoch, is from now on where a restore goes back to.
static void hear_checkpoint(struct run *run, const struct wire_checkpoint *checkpoint)
{
    struct rounds_run *self = own(run);
    const bool is_present = checkpoint->step == run->step;
    if (!is_present && !run_is_end(run, checkpoint->step, &checkpoint->digest)) return;
    memcpy(self->restore_point, is_present ? self->residuals : self->end_point,
           sizeof self->restore_point);
}

bool rounds_run_apply(struct run *run, uint16_t kind, const void *record)
{
    struct rounds_run *self = own(run);
    switch (kind) {
    case FRAME_RECORD_ROUND: apply_round(run, record); return true;
    case FRAME_RECORD_COMMIT: apply_commit(run, record); return true;
    case FRAME_RECORD_FINDING: round_hear_finding(&self->round, record, self->debts); return true;
    case FRAME_RECORD_EJECTION: apply_ejection(run, record); return true;
    case FRAME_RECORD_START: round_forget(&self->round); return false;
    case FRAME_RECORD_MEMBER: hear_member(run, record); return false;
    case FRAME_RECORD_EPOCH_END:
        memcpy(self->end_point, self->residuals, sizeof self->end_point);
        return false;
    case FRAME_RECORD_CHECKPOINT: hear_checkpoint(run, record); return false;
    case FRAME_RECORD_RESTORE: hear_restore(run); return false;
    default: return false;
    }
}

// ---- snapshots ----------------------------------------------------------------------------------

struct wire_part rounds_run_store(const struct run *run, void *memory)
{
    const struct rounds_run *self = rounds_run_of(run);
    struct wire_rounds_snapshot *snapshot = memory;
    *snapshot = (struct wire_rounds_snapshot){
        .round = round_frame(&self->round),
        .open = self->round.open,
        .last_commit = self->round.last_commit,
        .audit_key = self->round.audit_key,
        .findings = self->round.findings,
        .findings_count = self->round.audits_count,
        .residuals = self->residuals,
        .residuals_count = run->roster.count,
        .restore_point = self->restore_point,
        .restore_point_count = run->roster.count,
        .end_point = self->end_point,
        .end_point_count = run->roster.count,
        .debts = self->debts,
        .debts_count = run->roster.count,
    };
    struct wire_round *round = &snapshot->round;
    if (round->round == 0) round->round = round->batch_size = 1; // No round yet; 0 is out of range
    return (struct wire_part){ FRAME_ROUNDS_SNAPSHOT, snapshot };
}

bool rounds_run_load(struct run *run, const struct wire_part *part)
{
    struct rounds_run *self = own(run);
    const struct wire_rounds_snapshot *from = part->body;
    if (part->kind != FRAME_ROUNDS_SNAPSHOT) return false;
    // mutant: a snapshot forgets the chain of commits
    self->round.last_commit = from->last_commit;
    self->round.audit_key = from->audit_key;
    // mutant: guilt: a snapshot forgets where residuals led
    copy_list(self->residuals, from->residuals, from->residuals_count * sizeof *from->residuals);
    copy_list(self->restore_point, from->restore_point,
              from->restore_point_count * sizeof *from->restore_point);
    copy_list(self->end_point, from->end_point, from->end_point_count * sizeof *from->end_point);
    copy_list(self->debts, from->debts, from->debts_count * sizeof *from->debts);
    if (from->round.clients_count == 0) return true; // Before the first round
    round_open(&self->round, &from->round);
    copy_list(self->round.findings, from->findings, from->findings_count * sizeof *from->findings);
    self->round.open = from->open;
    return true;
}

bool rounds_run_refers_to(const struct run *run, uint32_t member)
{
    // A newcomer must not inherit what is recorded against the member before it, nor its vote.
    const struct round *round = round_of(run);
    // mutant: a newcomer inherits the vote of a witness that left
    return round_client_place(round, member) != NO_MEMBER ||
           round_witness_place(round, member) != NO_MEMBER || round_is_party(round, member);
}
