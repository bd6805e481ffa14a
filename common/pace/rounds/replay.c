// Keeps the commits from the replica's step on and fetches their payloads. When all payloads of the
// next commit are here, the learner applies them, and its answer moves the replica one step on.
// Before anything else it forgets commits that were kept for parameters that the replica has
// dropped.

#include "common/pace/rounds/replay.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds_config.h"
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

static const struct replay_commit *commit_of(const struct replay *self, uint64_t step)
{
    const struct replay_commit *kept = &self->ahead[step % REPLAY_AHEAD];
    return kept->known && kept->commit.step == step ? kept : NULL;
}

bool replay_knows_commit(const struct replay *self, const struct replica *replica, uint64_t step)
{
    const struct replay_commit *kept = commit_of(self, step);
    // mutant: a payload is forgotten before it is applied
    return (replica->holding && step < replica->step) || kept;
}

static void forget_commits(struct replay *self)
{
    for (uint32_t i = 0; i < REPLAY_AHEAD; i++) self->ahead[i].known = false;
    self->entries_used = 0;
}

// Room for a list of results: behind the newest list, or at the start again once no commit is kept.
static struct wire_accepted *room(struct replay *self, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < REPLAY_AHEAD; i++) any |= self->ahead[i].known;
    if (!any) self->entries_used = 0;
    if (count > REPLAY_ENTRIES_MAX - self->entries_used) return NULL;
    struct wire_accepted *list = self->entries + self->entries_used;
    self->entries_used += count;
    return list;
}

// Every result of the run has the same size. A commit that names another size is not fetched.
static bool is_of_size(const struct wire_commit *commit, uint32_t payload_bytes)
{
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        if (commit->accepted[i].payload_bytes != payload_bytes) return false;
    return true;
}

static struct wire_blob payload_of(const struct wire_accepted *accepted)
{
    return (struct wire_blob){ accepted->payload, accepted->payload_bytes };
}

static void want_all(struct blobs *blobs, const struct wire_commit *commit)
{
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_blob payload = payload_of(&commit->accepted[i]);
        blobs_want(blobs, &payload, commit->step, UINT32_MAX);
    }
}

static void hear_commit(struct replay *self, const struct member_turn *turn)
{
    const struct wire_commit *commit = turn->in->body;
    const struct replica *replica = turn->replica;
    if (commit->outcome != OUTCOME_COMMITTED) return;
    // mutant: a commit of any size is fetched
    if (!commit_is_sound(commit) ||
        !is_of_size(commit, rounds_config_of(&turn->member->config)->payload_bytes)) {
        outbox_note(turn->out, "commit.unsound step=%" PRIu64 "; ignored", commit->step);
        return;
    }
    if (!replica->holding || commit->step < replica->step ||
        commit->step >= replica->step + REPLAY_AHEAD || commit_of(self, commit->step))
        return;
    struct wire_accepted *list = room(self, commit->accepted_count);
    if (!list) return; // Asked for again when the next step is due
    memcpy(list, commit->accepted, commit->accepted_count * sizeof *list);
    struct replay_commit *kept = &self->ahead[commit->step % REPLAY_AHEAD];
    *kept = (struct replay_commit){ *commit, true };
    kept->commit.accepted = list;
    want_all(turn->blobs, &kept->commit);
}

static void hear_applied(struct replay *self, const struct member_turn *turn)
{
    const struct wire_applied *applied = turn->in->body;
    struct replica *replica = turn->replica;
    replica->applying = false;
    if (!applied->ok) {
        outbox_quit(turn->out, EX_SOFTWARE,
                    "applying commit %" PRIu64 " failed: %s; restart fetches what differs",
                    replica->step, applied->reason);
        return;
    }
    const struct replay_commit *kept = commit_of(self, replica->step);
    ensure(kept && applied->step == replica->step + 1);
    memcpy(&turn->member->step_lr, &kept->commit.lr_bits, sizeof turn->member->step_lr);
    self->ahead[replica->step % REPLAY_AHEAD].known = false;
    replica_move(replica, turn->member, applied->step, &applied->digest, kept->commit.epoch);
}

// The replica has begun with other parameters: forgets the commits that were kept for the previous
// ones.
static void begin_with(struct replay *self, const struct replica *replica)
{
    if (self->beginnings == replica->beginnings) return;
    self->beginnings = replica->beginnings;
    self->ask_ms = 0;
    forget_commits(self);
}

// The learner has built the model. Another version of the program may make results of another size.
static void hear_built(const struct member_turn *turn)
{
    const struct wire_built *built = turn->in->body;
    const uint32_t bytes = rounds_config_of(&turn->member->config)->payload_bytes;
    // mutant: a model of any size is trained
    if (!built->ok || built->payload_bytes == bytes) return;
    turn->replica->built = false;
    outbox_quit(turn->out, EX_CONFIG,
                "the results of the model built here have %u bytes, those of the run %u; take "
                "the version of this program that the coordinator is of",
                built->payload_bytes, bytes);
}

void replay_hear(void *state, const struct member_turn *turn)
{
    struct replay *self = state;
    begin_with(self, turn->replica);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_COMMIT) hear_commit(self, turn);
    if (turn->in->kind == FRAME_BUILT) hear_built(turn);
    if (turn->in->kind == FRAME_APPLIED) hear_applied(self, turn);
}

// ---- going on -----------------------------------------------------------------------------------

static bool all_here(const struct blobs *blobs, const struct wire_commit *commit)
{
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_blob payload = payload_of(&commit->accepted[i]);
        // mutant: own view is applied instead of the commit
        if (blobs_state(blobs, &payload) != BLOB_HERE) return false;
    }
    return true;
}

static void apply(struct replay *self, const struct member_turn *turn,
                  const struct wire_commit *commit)
{
    struct replica *replica = turn->replica;
    struct wire_apply job = { .step = commit->step,
                              .lr_bits = commit->lr_bits,
                              .payloads = self->payloads,
                              .payloads_count = commit->accepted_count };
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        self->payloads[i] = payload_of(accepted);
        // mutant: a residual is never adopted
        if (!hash_is_none(&self->own_result) && hash_equal(&accepted->result, &self->own_result))
            job.own_payload = accepted->payload;
    }
    // mutant: a residual is adopted before its commit
    job.pin = (commit->step + 1) % turn->member->config.snapshot_rounds == 0;
    if (job.pin) replica->pin_step = commit->step + 1;
    replica->applying = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_APPLY, &job);
}

// The commit that continues from the replica's step. NULL: none is kept, or a restore gave it up.
static const struct replay_commit *next_commit(struct replay *self, const struct member_turn *turn)
{
    const uint64_t step = turn->replica->step;
    const struct replay_commit *next = commit_of(self, step);
    if (!next || !replica_is_given_up(&turn->member->now, step + 1, next->commit.epoch))
        return next;
    forget_commits(self);
    return NULL;
}

void replay_look(void *state, const struct member_turn *turn)
{
    struct replay *self = state;
    struct replica *replica = turn->replica;
    const struct member *member = turn->member;
    const uint64_t now_ms = turn->in->now_ms;
    if (!replica->ready) return;
    const struct replay_commit *next = next_commit(self, turn);
    if (next && !hash_is_none(&next->commit.base) &&
        !hash_equal(&next->commit.base, &replica->digest)) {
        replica_repair(replica, turn->out); // Two thirds hold other bits
        return;
    }
    if (next && all_here(turn->blobs, &next->commit)) {
        // mutant: own view is applied instead of the commit (2)
        apply(self, turn, &next->commit);
    } else if (next) {
        if (!replica->stuck_ms) replica->stuck_ms = now_ms;
        want_all(turn->blobs, &next->commit); // Some may have been forgotten
    } else if (member->now.step > replica->step && now_ms >= self->ask_ms) {
        self->ask_ms = now_ms + REPLICA_RETRY_MS;
        outbox_mail(turn->out, "coordinator", FRAME_ASK,
                    &(struct wire_ask){ .topic = TOPIC_COMMITS, .from = replica->step });
    }
    replica_tell(replica, member, now_ms, turn->out);
}
