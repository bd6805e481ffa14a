// check_rounds -- what only rounds know of a simulated run: what a ROUND and a COMMIT on record may say. The
// words of their members are in check_words.c, audits and ejections in check_guilt.c, what their learner
// computes in learner.c.

#include "common/pace/rounds/claims.h"
#include "common/run/lateness.h"
#include "common/run/table.h"
#include "tests/sim/check_guilt.h"
#include <inttypes.h>
#include <string.h>

enum { ON_ITS_WAY_MS = 300, LATE_ROUNDS_MAX = LATENESS_TURNS / 2 + 3 };

static struct ghost_point *now(struct ghost *ghost) { return &ghost->points[ghost->records]; }

static uint32_t count_cut_off(const struct ghost *ghost, uint64_t round)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ghost->members_count; i++)
        count += ghost->members[i].role == ACTOR_TRAINER &&
                 ghost->members[i].state == MEMBER_DROPPED &&
                 round - ghost->members[i].dropped_number < ROSTER_DROPPED_ROUNDS;
    return count;
}

// ---- rounds -------------------------------------------------------------------------------------

// Trainers healthy at the opening, all of them, in order of identity.
static void check_clients(struct sim *sim, const struct wire_round *round)
{
    const struct ghost *ghost = &sim->ghost;
    const struct key *previous = NULL;
    for (uint32_t i = 0; i < round->clients_count; i++) {
        hold(round->clients[i].member < ghost->members_count, "clients are members", "%u",
             round->clients[i].member);
        const struct ghost_member *member = &ghost->members[round->clients[i].member];
        hold(member->role == ACTOR_TRAINER && member->state == MEMBER_HEALTHY,
             "clients are healthy trainers", "%u", round->clients[i].member);
        hold(!previous || key_compare(previous, &member->key) < 0,
             "clients stand in order of identity", "%u", i);
        previous = &member->key;
    }
    hold(round->clients_count == check_members(ghost, ACTOR_TRAINER, MEMBER_HEALTHY),
         "every healthy trainer is a client", "%u", round->clients_count);
    hold(round->clients_count >= sim->plan.rules.min_clients, "a round has min_clients", "%u",
         round->clients_count);
}

static void check_witnesses(struct sim *sim, const struct wire_round *round)
{
    const struct rules *rules = &sim->plan.rules;
    const struct ghost *ghost = &sim->ghost;
    uint8_t role = rounds_config(rules)->witness_standalone ? ACTOR_WITNESS : ACTOR_TRAINER;
    uint32_t able = check_members(ghost, role, MEMBER_HEALTHY);
    uint32_t due = rounds_config(rules)->witness_nodes && rounds_config(rules)->witness_nodes < able
                       ? rounds_config(rules)->witness_nodes
                       : able;
    hold(round->witnesses_count == due, "as many are elected as the rules say", "%u of %u",
         round->witnesses_count, able);
    for (uint32_t i = 0; i < round->witnesses_count; i++) {
        uint32_t index = round->witnesses[i].member;
        hold(index < ghost->members_count && ghost->members[index].role == role &&
                 ghost->members[index].state == MEMBER_HEALTHY,
             "the elected are at work", "%u", index);
        for (uint32_t j = 0; j < i; j++)
            hold(round->witnesses[j].member != index, "nobody is elected twice", "%u", index);
    }
}

// Its commit teaches something, until the schedule has ended.
static void check_rate(struct sim *sim, const struct wire_round *round)
{
    float rate;
    memcpy(&rate, &round->lr_bits, sizeof rate);
    hold(rate > 0 || round->step >= sim->plan.rules.lr.total_steps, "no round has the rate 0",
         "round %" PRIu64 " of step %" PRIu64, round->round, round->step);
}

static void hear_round(struct sim *sim, const struct wire_round *round)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = now(ghost);
    const struct rules *rules = &sim->plan.rules;
    hold(point->phase == PHASE_WARMUP || point->phase == PHASE_WITNESS, "phases move as drawn",
         "%s to RoundTrain", run_phase_name(point->phase));
    hold(!ghost->round_open, "one round at a time", "%" PRIu64, round->round);
    hold(round->round == point->round + 1 && round->round < ROUNDS_MAX, "rounds count up",
         "%" PRIu64 " after %" PRIu64, round->round, point->round);
    hold(round->step == point->step && round->epoch == point->epoch,
         "a round is of the present step", "%" PRIu64, round->step);
    hold(point->step < rules->total_steps, "no round after the last step", "%" PRIu64,
         round->round);
    hold(hash_is_none(&round->base) || hash_equal(&round->base, &ghost->digest[point->step]),
         "a base is the digest of its step", "round %" PRIu64, round->round);
    check_clients(sim, round);
    check_witnesses(sim, round);
    check_audits(sim, round);
    check_rate(sim, round);
    hold(hash_equal(&round->previous, &ghost->last_commit), "each state links the one before",
         "round %" PRIu64, round->round);
    ghost->audit_lock = round->audit_lock;
    ghost->trainers = round->trainers;
    hold(rounds_config(&sim->plan.rules)->verification_percent == 0 ||
             round->trainers == check_members(ghost, ACTOR_TRAINER, MEMBER_HEALTHY) +
                                    check_members(ghost, ACTOR_TRAINER, MEMBER_PENDING) +
                                    count_cut_off(ghost, point->round),
         "a round counts its trainers", "%u", round->trainers);
    const uint64_t dealt = check_dealt(sim, round->dealt, round->dealt_count);
    hold(dealt == round->batch_size, "a batch has its size", "%" PRIu64 " of %u", dealt,
         round->batch_size);
    point->phase = PHASE_TRAIN;
    point->round = round->round;
    ghost->round_open = true;
    ghost->round_record[round->round] = ghost->records;
    hold(round->dealt_count <= 512 && round->clients_count <= NODES_MAX, "a round is small here",
         "%u", round->dealt_count);
    memcpy(ghost->dealt, round->dealt, round->dealt_count * sizeof *round->dealt);
    ghost->dealt_count = round->dealt_count;
    ghost->batch_size = round->batch_size;
    ghost->lr_bits = round->lr_bits;
    for (uint32_t i = 0; i < round->clients_count; i++)
        ghost->clients[i] = round->clients[i].member;
    for (uint32_t i = 0; i < round->witnesses_count; i++)
        ghost->witnesses[i] = round->witnesses[i].member;
    ghost->clients_count = round->clients_count;
    ghost->witnesses_count = round->witnesses_count;
    memset(ghost->votes, 0, sizeof ghost->votes);
    ghost->promised_count = 0;
}

// ---- commits ------------------------------------------------------------------------------------

static const struct ghost_claim *claim_named(const struct ghost *ghost, const struct hash *name)
{
    for (uint32_t i = ghost->claims_count; i-- > 0;)
        if (hash_equal(&ghost->claims[i].name, name)) return &ghost->claims[i];
    return NULL;
}

// How many of the elected named this very result, in any vote of theirs that the coordinator heard.
static uint32_t count_votes(const struct ghost *ghost, const struct wire_accepted *accepted)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < ghost->witnesses_count; w++) {
        const struct ghost_vote *vote = &ghost->votes[w];
        bool named = false;
        for (uint32_t i = 0; i < vote->count; i++)
            named |= vote->seen[i].client == accepted->client &&
                     hash_equal(&vote->seen[i].result, &accepted->result) &&
                     hash_equal(&vote->seen[i].payload, &accepted->payload);
        count += named;
    }
    return count;
}

// It starts from where the member's last accepted result led, or from zero: the only way for who owes,
// unless there is nobody else.
static void check_residual(struct sim *sim, const struct wire_commit *commit,
                           const struct wire_accepted *accepted)
{
    struct ghost *ghost = &sim->ghost;
    const uint32_t member = ghost->clients[accepted->client];
    const struct hash last = check_residual_of(sim, member);
    hold(hash_is_none(&accepted->residual_from) ||
             ((!ghost->members[member].owed || ghost->clients_count == 1) &&
              hash_equal(&last, &accepted->residual_from)),
         "nobody invents a residual", "round %" PRIu64 " client %u", commit->round,
         accepted->client);
    hold(ghost->accepted_count < CLAIMS_MAX, "a simulation has few claims", "%u",
         ghost->accepted_count);
    ghost->accepted[ghost->accepted_count++] = (struct ghost_accepted){ accepted->result,
                                                                        accepted->payload,
                                                                        accepted->residual_from,
                                                                        accepted->residual_to,
                                                                        member,
                                                                        commit->round,
                                                                        commit->step,
                                                                        false };
}

static void check_accepted(struct sim *sim, const struct wire_commit *commit,
                           const struct wire_accepted *accepted)
{
    const struct ghost *ghost = &sim->ghost;
    uint32_t votes = count_votes(ghost, accepted);
    hold(accepted->client < ghost->clients_count, "what is accepted is of the round", "client %u",
         accepted->client);
    hold(votes > 0 && 3 * votes >= 2 * ghost->witnesses_count,
         "a result needs two thirds of the elected", "round %" PRIu64 " client %u: %u of %u",
         commit->round, accepted->client, votes, ghost->witnesses_count);
    hold(accepted->payload_bytes == rounds_config(&sim->plan.rules)->payload_bytes,
         "every result of the run has one size", "round %" PRIu64 " client %u: %u bytes",
         commit->round, accepted->client, accepted->payload_bytes);
    const struct ghost_claim *claim = claim_named(ghost, &accepted->result);
    const struct key *key = &ghost->members[ghost->clients[accepted->client]].key;
    hold(claim && claim->round == commit->round &&
             hash_equal(&claim->payload, &accepted->payload) &&
             key_equal(&sim->nodes[claim->author].key, key),
         "what is accepted was claimed", "round %" PRIu64 " client %u", commit->round,
         accepted->client);
    hold(hash_equal(&claim->residual_from, &accepted->residual_from) &&
             hash_equal(&claim->residual_to, &accepted->residual_to),
         "what is accepted was claimed", "residual, round %" PRIu64 " client %u", commit->round,
         accepted->client);
    hold(ghost->members[ghost->clients[accepted->client]].state != MEMBER_EJECTED,
         "nothing of an ejected member is accepted", "round %" PRIu64 " client %u", commit->round,
         accepted->client);
    hold(rounds_config(&sim->plan.rules)->verification_percent == 0 ||
             ghost->members[ghost->clients[accepted->client]].state == MEMBER_HEALTHY,
         "who could not be audited is not believed", "round %" PRIu64 " client %u", commit->round,
         accepted->client);
    for (uint32_t i = 0; i < ghost->audits_count; i++)
        hold(ghost->audits[i].auditor != accepted->client, "who audits does not train",
             "round %" PRIu64 " client %u", commit->round, accepted->client);
    check_wrong(sim, claim);
    check_residual(sim, commit, accepted);
}

// Positions [begin, end) of the round's list are done.
static uint64_t finish(struct sim *sim, uint32_t begin, uint32_t end)
{
    const struct ghost *ghost = &sim->ghost;
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < ghost->dealt_count; i++)
        for (uint64_t p = ghost->dealt[i].begin; p < ghost->dealt[i].end; p++, at++) {
            if (at < begin || at >= end) continue;
            check_done(sim, p);
            count++;
        }
    return count;
}

static void return_rest(struct ghost *ghost)
{
    for (uint32_t i = 0; i < ghost->dealt_count; i++)
        for (uint64_t p = ghost->dealt[i].begin; p < ghost->dealt[i].end; p++)
            if (ghost->samples[p] == TABLE_PENDING) ghost->samples[p] = TABLE_TODO;
}

static void check_voters(struct sim *sim, const struct wire_commit *commit)
{
    const struct ghost *ghost = &sim->ghost;
    uint32_t heard = 0;
    for (uint32_t w = 0; w < ghost->witnesses_count; w++) heard += ghost->votes[w].voted;
    hold(commit->elected == ghost->witnesses_count && commit->votes <= heard,
         "each of the elected counts once", "round %" PRIu64 ": %u votes, %u heard of %u",
         commit->round, commit->votes, heard, commit->elected);
}

static void keep_step(struct sim *sim, const struct wire_commit *commit)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t step = commit->step;
    struct ghost_commit *kept = &ghost->commits[step];
    *kept = (struct ghost_commit){ .round = commit->round,
                                   .accepted = commit->accepted_count,
                                   .lr_bits = commit->lr_bits };
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        kept->payloads[i] = commit->accepted[i].payload;
        kept->results[i] = commit->accepted[i].result;
    }
    hold(hash_equal(&commit->base, &ghost->digest[step]), "a base is the digest of its step",
         "step %" PRIu64, step);
    ghost->digest[step + 1] =
        digest_after(&ghost->digest[step], kept->payloads, kept->accepted, kept->lr_bits);
    if (step % sim->plan.rules.snapshot_rounds == 0) ghost->pin_step = step;
    now(ghost)->step++;
}

// True if this node is the only one that trains in the open round: each other client is an auditor.
static bool trains_alone(const struct sim *sim, uint8_t id)
{
    const struct ghost *ghost = &sim->ghost;
    const uint32_t member = check_member(sim, id);
    uint32_t others = 0;
    for (uint32_t c = 0; c < ghost->clients_count; c++) others += ghost->clients[c] != member;
    for (uint32_t i = 0; i < ghost->audits_count; i++)
        others -= ghost->clients[ghost->audits[i].auditor] != member;
    return others == 0;
}

// Nobody late sets the pace: where all but one are on time, and nobody lies, few rounds last longer than three
// times what the others may take. Few: until half of what
// the witnesses remember is of the time since all was healed.
//
// A round in which the late trainer trains alone is not counted: the round cannot go on without its result. The
// rules allow such a round: with min_clients 1, or if every other client audits. In seed 4965 the leases of the
// other trainers ran out in Warmup. The epoch began with the late trainer alone, and lasted 15 rounds. The
// others waited for the next epoch.
static void check_pace(struct sim *sim, const struct wire_commit *commit)
{
    const struct plan *plan = &sim->plan;
    if (faulty(sim) || plan->late == NOBODY || plan->liars) return;
    const uint32_t on_time_ms = 3 * (plan->train_ms + ON_ITS_WAY_MS);
    const uint32_t least_ms = rounds_config(&plan->rules)->least_train_ms;
    const uint32_t most_ms = (on_time_ms > least_ms ? on_time_ms : least_ms) + ON_ITS_WAY_MS;
    if (commit->train_ms <= most_ms || trains_alone(sim, (uint8_t)plan->late)) return;
    hold(++sim->ghost.late_rounds <= LATE_ROUNDS_MAX, "nobody late sets the pace",
         "round %" PRIu64 " took %u ms, more than %u, as %d before it", commit->round,
         commit->train_ms, most_ms, LATE_ROUNDS_MAX);
}

static void hear_commit(struct sim *sim, const struct wire_commit *commit)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = now(ghost);
    uint64_t samples = 0;
    hold(ghost->round_open && commit->round == point->round && commit->step == point->step &&
             commit->epoch == point->epoch,
         "a commit ends the open round", "%" PRIu64, commit->round);
    hold(point->phase == PHASE_WITNESS, "phases move as drawn", "a commit in %s",
         run_phase_name(point->phase));
    hold(commit->lr_bits == ghost->lr_bits, "a commit has its round's rate", "%" PRIu64,
         commit->round);
    hold((commit->outcome == OUTCOME_COMMITTED) == (commit->accepted_count > 0),
         "a void accepts nothing", "%" PRIu64, commit->round);
    hold(hash_equal(&commit->previous, &ghost->last_commit), "each state links the one before",
         "commit of round %" PRIu64, commit->round);
    ghost->last_commit = commit_hash(commit);
    check_voters(sim, commit);
    check_pace(sim, commit);
    const struct hash lock = hash_of(commit->audit_key.bytes, HASH_BYTES);
    hold(hash_is_none(&ghost->audit_lock) || hash_equal(&lock, &ghost->audit_lock),
         "the key fits the lock", "round %" PRIu64, commit->round);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        check_accepted(sim, commit, &commit->accepted[i]);
        hold(i == 0 || commit->accepted[i].begin >= commit->accepted[i - 1].end,
             "results stand in order of position", "round %" PRIu64, commit->round);
        samples += finish(sim, commit->accepted[i].begin, commit->accepted[i].end);
    }
    hold(samples == commit->samples, "a commit counts its samples", "%" PRIu64, commit->round);
    return_rest(ghost);
    ghost->round_open = false;
    ghost->committed_round = commit->round;
    ghost->committed_by_count = ghost->witnesses_count;
    memcpy(ghost->committed_by, ghost->witnesses, sizeof ghost->witnesses);
    ghost->commit_record[commit->round] = ghost->records;
    if (commit->outcome == OUTCOME_COMMITTED) keep_step(sim, commit);
    else ghost->voids++;
}

// ---- what the simulator asks of a pace ----------------------------------------------------------

static bool may_enter(const struct sim *sim, uint8_t from, uint8_t to)
{
    if (from == PHASE_TRAIN) return to == PHASE_WITNESS && sim->ghost.round_open;
    return to == PHASE_COOLDOWN && !sim->ghost.round_open;
}

static void hear_record(struct sim *sim, uint16_t kind, const void *record)
{
    switch (kind) {
    case FRAME_RECORD_EJECTION: check_ejection(sim, record); break;
    case FRAME_RECORD_FINDING: check_finding(sim, record); break;
    case FRAME_RECORD_ROUND: hear_round(sim, record); break;
    case FRAME_RECORD_COMMIT: hear_commit(sim, record); break;
    }
}

const struct sim_pace sim_pace_rounds = { .may_enter = may_enter,
                                          .hear_record = hear_record,
                                          .learn = learner_of_rounds };
