// check_records -- what a record may say, judged by what all records before it said. The ghost is
// written anew from the phases of the README: it shares no code with the run that it judges. Beside
// it the evidence: that all draws follow from the records alone.

#include "common/base/ensure.h"
#include "common/run/table.h"
#include "common/pace/rounds/claims.h"
#include "tests/sim/check_guilt.h"
#include <string.h>

// The moves that a PHASE record may make. RoundTrain is entered by a ROUND record.
static bool may_enter(uint8_t from, uint8_t to)
{
    switch (from) {
    case PHASE_WAITING: return to == PHASE_WARMUP || to == PHASE_PAUSED;
    case PHASE_WARMUP: return to == PHASE_WAITING || to == PHASE_PAUSED;
    case PHASE_TRAIN: return to == PHASE_WITNESS;
    case PHASE_WITNESS: return to == PHASE_COOLDOWN;
    case PHASE_COOLDOWN: return to == PHASE_WAITING || to == PHASE_FINISHED || to == PHASE_PAUSED;
    case PHASE_PAUSED: return to == PHASE_WAITING;
    default: return false;
    }
}

static struct ghost_point *now(struct ghost *ghost) { return &ghost->points[ghost->records]; }

static uint32_t count_members(const struct ghost *ghost, uint8_t role, uint8_t state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ghost->members_count; i++)
        count += ghost->members[i].role == role && ghost->members[i].state == state;
    return count;
}

static uint32_t count_cut_off(const struct ghost *ghost, uint64_t round)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ghost->members_count; i++)
        count += ghost->members[i].role == ACTOR_TRAINER &&
                 ghost->members[i].state == MEMBER_DROPPED &&
                 round - ghost->members[i].dropped_number < ROSTER_DROPPED_ROUNDS;
    return count;
}

static void move_trainers(struct ghost *ghost, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < ghost->members_count; i++)
        if (ghost->members[i].role == ACTOR_TRAINER && ghost->members[i].state == from)
            ghost->members[i].state = to;
}

// ---- members and phases -------------------------------------------------------------------------

static void hear_member(struct sim *sim, const struct wire_member *record)
{
    struct ghost *ghost = &sim->ghost;
    hold(record->index <= ghost->members_count && record->index < NODES_MAX,
         "places are taken in order", "%u", record->index);
    struct ghost_member *member = &ghost->members[record->index];
    if (record->index == ghost->members_count) ghost->members_count++;
    else {
        hold(key_equal(&member->key, &record->key), "a place is not taken from a member", "%u",
             record->index);
        hold(record->instance >= member->instance, "an older process never replaces a newer", "%s",
             record->name);
    }
    uint8_t phase = now(ghost)->phase;
    hold(member->state != MEMBER_EJECTED || !member->known, "who is ejected stays ejected", "%s",
         record->name);
    bool enters = record->role == ACTOR_TRAINER && record->state == MEMBER_HEALTHY;
    hold(!enters || member->state == MEMBER_HEALTHY, "a trainer enters at an epoch's border",
         "%s in %s", record->name, run_phase_name(phase));
    const uint64_t joined_number = member->known && member->instance == record->instance
                                       ? member->joined_number
                                       : check_round(sim);
    hold(record->joined_number == joined_number, "a member's life began when it joined", "%s",
         record->name);
    *member = (struct ghost_member){ true,
                                     record->role,
                                     record->state,
                                     record->key,
                                     record->instance,
                                     joined_number,
                                     record->state == MEMBER_DROPPED ? check_round(sim)
                                                                     : member->dropped_number,
                                     member->owed };
}

static void hear_phase(struct sim *sim, const struct wire_record_phase *record)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = now(ghost);
    const struct rules *rules = &sim->plan.rules;
    uint8_t from = point->phase, to = record->phase;
    hold(may_enter(from, to) || (ghost->records == 2 && to == PHASE_PAUSED), "phases move as drawn",
         "%s to %s", run_phase_name(from), run_phase_name(to));
    hold((to == PHASE_WITNESS) == ghost->round_open, "a round ends before its phase does", "%s",
         run_phase_name(to));
    if (to == PHASE_WARMUP)
        hold(count_members(ghost, ACTOR_TRAINER, MEMBER_PENDING) >= rules->init_min_clients,
             "an epoch begins with enough members", "%u",
             count_members(ghost, ACTOR_TRAINER, MEMBER_PENDING));
    hold(to != PHASE_FINISHED || point->step >= rules->total_steps,
         "a run ends when all steps are done", "step %llu", (unsigned long long)point->step);
    hold(record->epoch == point->epoch + (from == PHASE_COOLDOWN), "epochs count up",
         "%llu after %llu", (unsigned long long)record->epoch, (unsigned long long)point->epoch);
    point->phase = to;
    point->epoch = record->epoch;
    if (to == PHASE_WARMUP) move_trainers(ghost, MEMBER_PENDING, MEMBER_HEALTHY);
    if (to == PHASE_WAITING || to == PHASE_PAUSED)
        move_trainers(ghost, MEMBER_HEALTHY, MEMBER_PENDING);
    hold(to != PHASE_PAUSED || ghost->pause_asked || rules->start_paused,
         "only the owner pauses a run", "from %s", run_phase_name(from));
    if (to == PHASE_PAUSED) ghost->pausing = false;
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
    hold(round->clients_count == count_members(ghost, ACTOR_TRAINER, MEMBER_HEALTHY),
         "every healthy trainer is a client", "%u", round->clients_count);
    hold(round->clients_count >= sim->plan.rules.min_clients, "a round has min_clients", "%u",
         round->clients_count);
}

static void check_witnesses(struct sim *sim, const struct wire_round *round)
{
    const struct rules *rules = &sim->plan.rules;
    const struct ghost *ghost = &sim->ghost;
    uint8_t role = rounds_config(rules)->witness_standalone ? ACTOR_WITNESS : ACTOR_TRAINER;
    uint32_t able = count_members(ghost, role, MEMBER_HEALTHY);
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

// The lowest samples that are still to do, and exactly as many as a batch has.
static void deal(struct sim *sim, const struct wire_round *round)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < round->dealt_count; i++)
        for (uint64_t p = round->dealt[i].begin; p < round->dealt[i].end; p++, at++, count++) {
            hold(p < POSITIONS_MAX, "positions stay within the simulation", "%llu",
                 (unsigned long long)p);
            for (; at < p; at++)
                hold(ghost->samples[at] != TABLE_TODO, "what was returned is dealt first",
                     "sample %llu was left out", (unsigned long long)at);
            hold(ghost->samples[p] == TABLE_TODO, "no sample is dealt twice", "sample %llu",
                 (unsigned long long)p);
            ghost->samples[p] = TABLE_PENDING;
            if (p >= ghost->cursor) ghost->cursor = p + 1;
        }
    hold(count == round->batch_size, "a batch has its size", "%llu of %u",
         (unsigned long long)count, round->batch_size);
}

static void hear_round(struct sim *sim, const struct wire_round *round)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = now(ghost);
    const struct rules *rules = &sim->plan.rules;
    hold(point->phase == PHASE_WARMUP || point->phase == PHASE_WITNESS, "phases move as drawn",
         "%s to RoundTrain", run_phase_name(point->phase));
    hold(!ghost->round_open, "one round at a time", "%llu", (unsigned long long)round->round);
    hold(round->round == point->round + 1 && round->round < ROUNDS_MAX, "rounds count up",
         "%llu after %llu", (unsigned long long)round->round, (unsigned long long)point->round);
    hold(round->step == point->step && round->epoch == point->epoch,
         "a round is of the present step", "%llu", (unsigned long long)round->step);
    hold(point->step < rules->total_steps, "no round after the last step", "%llu",
         (unsigned long long)round->round);
    hold(hash_is_none(&round->base) || hash_equal(&round->base, &ghost->digest[point->step]),
         "a base is the digest of its step", "round %llu", (unsigned long long)round->round);
    check_clients(sim, round);
    check_witnesses(sim, round);
    check_audits(sim, round);
    hold(hash_equal(&round->previous, &ghost->last_commit), "each state links the one before",
         "round %llu", (unsigned long long)round->round);
    ghost->audit_lock = round->audit_lock;
    ghost->trainers = round->trainers;
    hold(rounds_config(&sim->plan.rules)->verification_percent == 0 ||
             round->trainers == count_members(ghost, ACTOR_TRAINER, MEMBER_HEALTHY) +
                                    count_members(ghost, ACTOR_TRAINER, MEMBER_PENDING) +
                                    count_cut_off(ghost, point->round),
         "a round counts its trainers", "%u", round->trainers);
    deal(sim, round);
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
         "nobody invents a residual", "round %llu client %u", (unsigned long long)commit->round,
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
         "a result needs two thirds of the elected", "round %llu client %u: %u of %u",
         (unsigned long long)commit->round, accepted->client, votes, ghost->witnesses_count);
    hold(accepted->payload_bytes == rounds_config(&sim->plan.rules)->payload_bytes,
         "every result of the run has one size", "round %llu client %u: %u bytes",
         (unsigned long long)commit->round, accepted->client, accepted->payload_bytes);
    const struct ghost_claim *claim = claim_named(ghost, &accepted->result);
    const struct key *key = &ghost->members[ghost->clients[accepted->client]].key;
    hold(claim && claim->round == commit->round &&
             hash_equal(&claim->payload, &accepted->payload) &&
             key_equal(&sim->nodes[claim->author].key, key),
         "what is accepted was claimed", "round %llu client %u", (unsigned long long)commit->round,
         accepted->client);
    hold(hash_equal(&claim->residual_from, &accepted->residual_from) &&
             hash_equal(&claim->residual_to, &accepted->residual_to),
         "what is accepted was claimed", "residual, round %llu client %u",
         (unsigned long long)commit->round, accepted->client);
    hold(ghost->members[ghost->clients[accepted->client]].state != MEMBER_EJECTED,
         "nothing of an ejected member is accepted", "round %llu client %u",
         (unsigned long long)commit->round, accepted->client);
    hold(rounds_config(&sim->plan.rules)->verification_percent == 0 ||
             ghost->members[ghost->clients[accepted->client]].state == MEMBER_HEALTHY,
         "who could not be audited is not believed", "round %llu client %u",
         (unsigned long long)commit->round, accepted->client);
    for (uint32_t i = 0; i < ghost->audits_count; i++)
        hold(ghost->audits[i].auditor != accepted->client, "who audits does not train",
             "round %llu client %u", (unsigned long long)commit->round, accepted->client);
    check_wrong(sim, claim);
    check_residual(sim, commit, accepted);
}

// Positions [begin, end) of the round's list are done.
static uint64_t finish(struct sim *sim, uint32_t begin, uint32_t end)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < ghost->dealt_count; i++)
        for (uint64_t p = ghost->dealt[i].begin; p < ghost->dealt[i].end; p++, at++) {
            if (at < begin || at >= end) continue;
            hold(ghost->samples[p] == TABLE_PENDING, "no sample is committed twice", "sample %llu",
                 (unsigned long long)p);
            ghost->samples[p] = TABLE_DONE;
            ghost->done_step[p] = (uint16_t)now(ghost)->step;
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
         "each of the elected counts once", "round %llu: %u votes, %u heard of %u",
         (unsigned long long)commit->round, commit->votes, heard, commit->elected);
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
         "step %llu", (unsigned long long)step);
    ghost->commit_of_step[step] = ghost->records;
    ghost->digest[step + 1] =
        digest_after(&ghost->digest[step], kept->payloads, kept->accepted, kept->lr_bits);
    if (step % sim->plan.rules.snapshot_rounds == 0) ghost->pin_step = step;
    now(ghost)->step++;
}

static void hear_commit(struct sim *sim, const struct wire_commit *commit)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point *point = now(ghost);
    uint64_t samples = 0;
    hold(ghost->round_open && commit->round == point->round && commit->step == point->step &&
             commit->epoch == point->epoch,
         "a commit ends the open round", "%llu", (unsigned long long)commit->round);
    hold(point->phase == PHASE_WITNESS, "phases move as drawn", "a commit in %s",
         run_phase_name(point->phase));
    hold(commit->lr_bits == ghost->lr_bits, "a commit has its round's rate", "%llu",
         (unsigned long long)commit->round);
    hold((commit->outcome == OUTCOME_COMMITTED) == (commit->accepted_count > 0),
         "a void accepts nothing", "%llu", (unsigned long long)commit->round);
    hold(hash_equal(&commit->previous, &ghost->last_commit), "each state links the one before",
         "commit of round %llu", (unsigned long long)commit->round);
    ghost->last_commit = commit_hash(commit);
    check_voters(sim, commit);
    const struct hash lock = hash_of(commit->audit_key.bytes, HASH_BYTES);
    hold(hash_is_none(&ghost->audit_lock) || hash_equal(&lock, &ghost->audit_lock),
         "the key fits the lock", "round %llu", (unsigned long long)commit->round);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        check_accepted(sim, commit, &commit->accepted[i]);
        hold(i == 0 || commit->accepted[i].begin >= commit->accepted[i - 1].end,
             "results stand in order of position", "round %llu", (unsigned long long)commit->round);
        samples += finish(sim, commit->accepted[i].begin, commit->accepted[i].end);
    }
    hold(samples == commit->samples, "a commit counts its samples", "%llu",
         (unsigned long long)commit->round);
    return_rest(ghost);
    ghost->round_open = false;
    ghost->committed_round = commit->round;
    ghost->committed_by_count = ghost->witnesses_count;
    memcpy(ghost->committed_by, ghost->witnesses, sizeof ghost->witnesses);
    ghost->commit_record[commit->round] = ghost->records;
    ghost->done += samples;
    point->samples_done += samples;
    if (commit->outcome == OUTCOME_COMMITTED) keep_step(sim, commit);
    else ghost->voids++;
}

void check_position(struct sim *sim, const char *what, uint64_t cursor,
                    const struct interval *returned, uint32_t count)
{
    const struct ghost *ghost = &sim->ghost;
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        for (; at < returned[i].end; at++)
            hold((ghost->samples[at] == TABLE_TODO) == (at >= returned[i].begin), what,
                 "sample %llu", (unsigned long long)at);
    for (; at < cursor; at++)
        hold(ghost->samples[at] == TABLE_DONE, what, "sample %llu", (unsigned long long)at);
}

static void hear_epoch_end(struct sim *sim, const struct wire_epoch_end *end)
{
    struct ghost *ghost = &sim->ghost;
    hold(end->step == now(ghost)->step && !ghost->round_open, "an epoch ends between rounds",
         "%llu", (unsigned long long)end->step);
    hold(hash_equal(&end->digest, &ghost->digest[end->step]),
         "the pinned digest is that of the commits", "step %llu", (unsigned long long)end->step);
    check_position(sim, "an epoch end has the data position", end->undone.cursor,
                   end->undone.returned, end->undone.returned_count);
    ghost->pin_step = end->step;
    ghost->epoch_end_record = ghost->records;
}

static void hear_checkpoint(struct sim *sim, const struct wire_checkpoint *record)
{
    hold(record->step <= check_step(sim) &&
             hash_equal(&record->digest, &sim->ghost.digest[record->step]),
         "a checkpoint is of committed parameters", "step %llu on record",
         (unsigned long long)record->step);
    if (record->step == check_step(sim))
        sim->ghost.way_back = (struct pin){ .step = record->step, .digest = record->digest };
}

void check_record(struct sim *sim, uint16_t kind, const void *record, const uint8_t *body,
                  uint32_t bytes)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_point before = *now(ghost);
    ghost->records++;
    *now(ghost) = before;
    now(ghost)->kind = kind;
    now(ghost)->body = hash_of(body, bytes);
    hold((kind == FRAME_RECORD_GENESIS) == (ghost->records == 1), "a log begins once",
         "record %llu", (unsigned long long)ghost->records);
    hold(evidence_hear(sim->evidence, ghost->records, kind, record),
         "who has the records can draw again", "%s", sim->evidence->text);
    switch (kind) {
    case FRAME_RECORD_MEMBER: hear_member(sim, record); break;
    case FRAME_RECORD_PHASE: hear_phase(sim, record); break;
    case FRAME_RECORD_EJECTION: check_ejection(sim, record); break;
    case FRAME_RECORD_FINDING: check_finding(sim, record); break;
    case FRAME_RECORD_CHECKPOINT: hear_checkpoint(sim, record); break;
    case FRAME_RECORD_RESTORE: check_restore(sim, record); break;
    case FRAME_RECORD_ROUND: hear_round(sim, record); break;
    case FRAME_RECORD_COMMIT: hear_commit(sim, record); break;
    case FRAME_RECORD_EPOCH_END: hear_epoch_end(sim, record); break;
    case FRAME_RECORD_START:
        if (!ghost->born_unix_ms)
            ghost->born_unix_ms = ((const struct wire_record_start *)record)->unix_ms;
        break;
    case FRAME_RECORD_PAUSE:
        ghost->pausing = ((const struct wire_record_pause *)record)->pausing;
        hold(!ghost->pausing || ghost->pause_asked, "only the owner pauses a run", "record %llu",
             (unsigned long long)ghost->records);
        break;
    }
}

// ---- what is told of it -------------------------------------------------------------------------

// No signature is made here (world.c); what is signed, the unit test and the live ones check.
static bool is_signed(const struct key *key, const uint8_t *bytes, size_t count,
                      const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)key, (void)bytes, (void)count;
    return signature[0] == 1;
}

void check_begin(struct sim *sim)
{
    struct ghost *ghost = &sim->ghost;
    memory_forget(sim->evidence, sizeof *sim->evidence);
    evidence_init(sim->evidence, &sim->plan.rules, is_signed);
    memset(ghost, 0, offsetof(struct ghost, past));
    memset(ghost->samples, TABLE_TODO, sizeof ghost->samples);
    const uint64_t first = sim->plan.rules.first_step;
    ghost->points[0].step = ghost->pin_step = first;
    ghost->digest[first] = hash_number("genesis", 0);
}

uint64_t check_step(const struct sim *sim) { return sim->ghost.points[sim->ghost.records].step; }
uint64_t check_commits(const struct sim *sim)
{
    return check_step(sim) - sim->plan.rules.first_step;
}

uint8_t check_phase(const struct sim *sim) { return sim->ghost.points[sim->ghost.records].phase; }
uint64_t check_round(const struct sim *sim) { return sim->ghost.points[sim->ghost.records].round; }
