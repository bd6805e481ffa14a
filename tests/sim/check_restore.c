// check_restore -- restores: what a RESTORE record may say, and what it gives up.
//
//     steps   0 ─ 1 ─ 2 ─ 3 ─ 4 ─ 5 ─ 6      given up: 4 to 6, kept as ghost.past
//                         ↑           └── RESTORE
//                     checkpoint ─ 4' ─ 5'   the run
//
// A member hears of it late, or after a restart that finds an old folder. Until then it is right by
// what was true before; what it holds is the run's as it was at some time, never a mixture.

#include "common/run/table.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <string.h>

bool check_may_restore(const struct sim *sim)
{
    const struct pin *back = &sim->ghost.restore_point;
    if (sim->checkpointer_node == NOBODY || hash_is_none(&back->digest) || sim->disk.behind ||
        back->step >= check_step(sim))
        return false;
    return saves_have(sim, back->step, &back->digest) ||
           checkpoints_have(&sim->nodes[sim->checkpointer_node], back->step, &back->digest);
}

struct hash check_residual_of(const struct sim *sim, uint32_t member)
{
    const struct ghost *ghost = &sim->ghost;
    for (uint32_t i = ghost->accepted_count; i-- > 0;)
        if (ghost->accepted[i].member == member && !ghost->accepted[i].given_up)
            return ghost->accepted[i].residual_to;
    return (struct hash){ { 0 } };
}

bool check_is_digest(const struct sim *sim, uint64_t step, const struct hash *digest)
{
    return step <= check_step(sim) && hash_equal(digest, &sim->ghost.digest[step]);
}

bool check_is_settled(const struct sim *sim, uint64_t step, const struct hash *digest)
{
    return step <= check_step(sim) + sim->ghost.ahead &&
           hash_equal(digest, &sim->ghost.digest[step]);
}

static bool was_since(const struct sim *sim, uint32_t first, uint64_t step,
                      const struct hash *digest)
{
    bool was = check_is_settled(sim, step, digest);
    for (uint32_t i = first; i < sim->ghost.pasts; i++) {
        const struct ghost_past *past = &sim->ghost.past[i];
        was |= step <= past->steps && hash_equal(digest, &past->digest[step]);
    }
    return was;
}

bool check_was_digest(const struct sim *sim, uint64_t step, const struct hash *digest)
{
    return was_since(sim, 0, step, digest);
}

bool check_was_of_run(const struct sim *sim, uint64_t step, const struct hash *digest)
{
    return was_since(sim, sim->ghost.pasts_before, step, digest);
}

// Two rounds of a step may lead to the same digest: a restore has the same samples dealt again, and
// another trainer may have each of them (seed 13878: rounds 1 and 13). So the round says which
// commit is meant. A run whose ledger was lost may have had a round of that number, too: the newest
// such commit is taken.
const struct ghost_commit *check_commit_to(const struct sim *sim, uint64_t step, uint64_t round,
                                           const struct hash *digest)
{
    const struct ghost *ghost = &sim->ghost;
    if (check_is_digest(sim, step + 1, digest) && ghost->commits[step].round == round)
        return &ghost->commits[step];
    for (uint32_t i = ghost->pasts; i-- > 0;) {
        const struct ghost_past *past = &ghost->past[i];
        if (step < past->steps && past->commits[step].round == round &&
            hash_equal(digest, &past->digest[step + 1]))
            return &past->commits[step];
    }
    return NULL;
}

static void keep_past(struct sim *sim)
{
    struct ghost *ghost = &sim->ghost;
    hold(ghost->pasts < PASTS_MAX, "a simulation has few restores", "%u", ghost->pasts);
    struct ghost_past *past = &ghost->past[ghost->pasts++];
    past->steps = check_step(sim) + ghost->ahead;
    memcpy(past->digest, ghost->digest, (past->steps + 1) * sizeof *past->digest);
    memcpy(past->commits, ghost->commits, past->steps * sizeof *past->commits);
}

void check_begin_anew(struct sim *sim)
{
    struct ghost *ghost = &sim->ghost;
    keep_past(sim);
    for (uint8_t id = 0; id < sim->nodes_count; id++) {
        sim->nodes[id].was_ejected |= check_ejected(sim, id);
        sim->nodes[id].promised_round = 0;
    }
    const uint32_t pasts = ghost->pasts;
    const uint64_t rounds = ghost->rounds_before + check_round(sim);
    check_begin(sim);
    ghost->pasts = ghost->pasts_before = pasts;
    ghost->rounds_before = rounds;
}

bool check_is_of_before(const struct sim *sim, uint8_t id)
{
    const struct node *node = &sim->nodes[id];
    if (node->role == ACTOR_COORDINATOR || node->role == ACTOR_OPERATOR) return false;
    const struct member *member = node->state;
    return member->born_unix_ms && member->born_unix_ms != sim->ghost.born_unix_ms;
}

// What was committed, or given up, from that step on is todo again, and nothing else is. Returns how many stay.
static uint64_t return_later(struct ghost *ghost, uint64_t step)
{
    uint64_t done = 0;
    for (uint64_t p = 0; p < ghost->cursor; p++) {
        const bool is_done = ghost->samples[p] == TABLE_DONE;
        if (!is_done && ghost->samples[p] != TABLE_FAILED) continue;
        if (ghost->done_step[p] >= step) ghost->samples[p] = TABLE_TODO;
        else done += is_done;
    }
    return done;
}

static const struct pin *find_older(const struct ghost *ghost, uint64_t step)
{
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++)
        if (ghost->older[i].step <= step && !hash_is_none(&ghost->older[i].digest))
            return &ghost->older[i];
    return NULL;
}

static void drop_newer(struct ghost *ghost, uint64_t step)
{
    while (ghost->restore_point.step > step) {
        ghost->restore_point = ghost->older[0];
        ghost->is_saved = !hash_is_none(&ghost->restore_point.digest);
        memmove(&ghost->older[0], &ghost->older[1], sizeof ghost->older - sizeof *ghost->older);
        ghost->older[OLDER_SAVES_MAX - 1] = (struct pin){ 0 };
    }
}

void check_restore(struct sim *sim, const struct wire_record_restore *record)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = &ghost->points[ghost->records];
    const bool lost = sim->pace->may_restore && sim->pace->may_restore(sim);
    const bool asked = ghost->restores - ghost->restores_unasked < ghost->restores_asked;
    ghost->restores_unasked += lost; // Then it needs no order
    hold(lost || ghost->restores - ghost->restores_unasked < ghost->restores_asked,
         "only the owner takes a run back", "step %" PRIu64, record->step);
    hold(!ghost->round_open && (point->phase == PHASE_WAITING || point->phase == PHASE_PAUSED),
         "a run goes back between rounds", "%s", run_phase_name(point->phase));
    struct pin back = ghost->restore_point;
    if (lost && hash_is_none(&back.digest)) // It begins again
        back = (struct pin){ .step = sim->plan.rules.first_step,
                             .digest = ghost->digest[sim->plan.rules.first_step] };
    // Behind its newest save only if that cannot be read: then to an older one, or to a memory save
    const bool is_unread = lost && ghost->is_saved && record->step < back.step &&
                           point->step == back.step && ghost->is_unread[back.step];
    const struct pin *older = find_older(ghost, record->step);
    if (is_unread) back = older ? *older : (struct pin){ 0 };
    if (sim->pace->way_back) sim->pace->way_back(sim, record, lost, lost && !asked, &back);
    // To the present step only if nobody holds it: then no step is given up
    hold(record->step == back.step && record->step < point->step + lost &&
             hash_equal(&record->digest, &back.digest),
         "a run goes back to its newest checkpoint", "step %" PRIu64 " of %" PRIu64, record->step,
         point->step);
    hold(record->epoch == point->epoch + 1, "epochs count up", "%" PRIu64 " after %" PRIu64,
         record->epoch, point->epoch);
    keep_past(sim);
    ghost->restores++;
    ghost->done = return_later(ghost, record->step);
    check_position(sim, "a restore point has the data position", &record->data_position);
    hold(record->samples_done == ghost->done, "a restore point has the data position",
         "%" PRIu64 " samples done", record->samples_done);
    ghost->cursor = record->data_position.cursor;
    point->epoch = record->epoch;
    point->step = record->step;
    point->samples_done = record->samples_done;
    ghost->pin_step = record->step;
    drop_newer(ghost, record->step);
    if (ghost->end_point.step > record->step) ghost->end_point = (struct pin){ 0 };
    for (uint32_t i = 0; i < ghost->accepted_count; i++)
        ghost->accepted[i].given_up |= ghost->accepted[i].step >= record->step;
    ghost->audits_count = 0; // What they are about is given up
    ghost->committed_round = 0;
    ghost->restore_record = ghost->records;
    ghost->all_lost = false;
    sim->faults[RESTORE]++;
}
