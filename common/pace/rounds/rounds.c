// rounds -- decides when a round opens, when it ends, and what its commit accepts.
//
// 1. open_round draws the round (draw.h), deals its samples and puts the record. prepare then
//    computes from the record which client trains what; a restart calls it as well.
// 2. hear_vote counts the votes of elected witnesses (tally.h). Findings and equivocation evidence
//    go to audit.h.
// 3. settle moves from RoundTrain to RoundWitness, then commits, then opens the next round unless
//    the epoch is over.
// 4. commit accepts a result if a quorum of witnesses saw it, it started from the committed
//    parameters, and may_count allows it. Clients that miss too many rounds are dropped (health.h).

#include "common/pace/rounds/rounds.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/health.h"
#include "common/pace/rounds/rounds_evidence.h"
#include "common/run/lateness.h"
#include "common/run/quorum.h"
#include <inttypes.h>
#include <string.h>

// ---- opening ------------------------------------------------------------------------------------

// The commit of this round makes the step after run->step.
static float learning_rate(const struct turn *turn)
{
    const struct run *run = turn->run;
    struct cold_start cold = { (uint32_t)run->epoch_start_step, turn->rules->cold_start_steps };
    return schedule_rate(&turn->rules->lr, (uint32_t)run->step + 1, run->cold_start ? &cold : NULL);
}

// Computes from the open round's record which client trains which samples.
static void prepare(struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    const uint32_t trainers = round_trainers(round, self->trainers);
    for (uint32_t i = 0; i < round->clients_count; i++) {
        self->items[i] =
            hash_of(run->roster.members[round->clients[i].member].key.bytes, HASH_BYTES);
    }
    self->deal = (struct deal){ .capacity = MEMBERS_MAX,
                                .shares = self->shares,
                                .by_trainer = self->by_trainer };
    assignment_deal(round->opened.seed, self->trainers, trainers, round->opened.batch_size,
                    &self->deal);
    tally_init(&self->tally, round->clients_count, round->witnesses_count,
               &turn->rules->audit_secret);
    findings_begin(&self->findings);
}

static void resume_round(struct rounds *self, const struct turn *turn)
{
    prepare(self, turn);
    self->round_began_ms = self->trained_ms = turn->now_ms;
    self->is_late = false;
    turn_arm(turn);
}

static void open_round(struct rounds *self, const struct turn *turn)
{
    struct run *run = turn->run;
    const struct draw_rules rules = draw_rules(turn->rules);
    // mutant: a deadline is kept over a reboot
    struct wire_round round = {
        .epoch = run->epoch,
        .step = run->step,
        .batch_size = schedule_batch_size(turn->rules->batch_start, turn->rules->batch_end,
                                          turn->rules->batch_warmup_tokens,
                                          run->samples_done * turn->rules->seq_len),
        .roster_version = run->roster.version,
        .previous = round_of(run)->last_commit,
        .epoch_elapsed_ms = turn->now_ms - turn->presence->epoch_began_ms,
    };
    float rate = learning_rate(turn);
    memcpy(&round.lr_bits, &rate, sizeof rate);
    if (run->digest_step == run->step) round.base = run->digest;
    // mutant: audit: draws follow from what no record says
    const struct draw_from from = { .rules = &rules,
                                    .run_seed = run->run_seed,
                                    .step = run->step,
                                    .roster = &run->roster,
                                    .round = round_of(run),
                                    .debts = rounds_run_of(run)->debts };
    // mutant: round: the witnesses follow from what no record says
    draw_round(&self->audit.draw, &from, &round);
    round.audit_lock = audit_lock(turn, round.round);
    audit_hear_draw(&self->audit, turn, &round);

    const struct wire_data_position data_position = run_data_position(run, turn->lists);
    round.cursor = data_position.cursor;
    round.returned = data_position.returned, round.returned_count = data_position.returned_count;

    // Deal to learn the samples, then return them: only applying the record may change the table.
    uint32_t dealt = 0;
    ensure(table_deal(&run->table, round.round, round.batch_size, run->scratch, TABLE_INTERVALS_MAX,
                      &dealt) == TABLE_OK);
    ensure(table_return_rest(&run->table, round.round) == TABLE_OK);
    round.dealt = run->scratch, round.dealt_count = dealt;

    turn_put(turn, FRAME_RECORD_ROUND, &round);
    resume_round(self, turn);
}

// ---- votes --------------------------------------------------------------------------------------

// Only clients that were dealt a batch can have a result, and every result of the run has one size.
static bool names_only_dealt(const struct rounds *self, const struct turn *turn,
                             const struct wire_vote *vote)
{
    struct share share;
    // mutant: a vote for a result of any size is counted
    for (uint32_t i = 0; i < vote->seen_count; i++)
        if (vote->seen[i].client >= round_of(turn->run)->clients_count ||
            !deal_of_trainer(&self->deal, vote->seen[i].client, &share) ||
            vote->seen[i].payload_bytes != rounds_config(turn->rules)->payload_bytes)
            return false;
    return true;
}

// Psyche's trainer_healthy_score_by_witnesses: one point for each client that this witness saw take
// part.
static void score_health(struct rounds *self, const struct turn *turn, const struct wire_vote *vote)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    struct bloom bloom;
    if (!bloom_load(vote->participants.data, vote->participants.count, round->clients_count,
                    self->bloom_words, &bloom))
        return;
    for (uint32_t c = 0; c < round->clients_count; c++) {
        if (bloom_has(&bloom, &self->items[c])) self->tally.health[c]++;
    }
}

// Notes how long a new finding took.
static void hear_finding(struct rounds *self, const struct turn *turn, const struct msg *in)
{
    const struct round *round = round_of(turn->run);
    const uint32_t member = roster_find(&turn->run->roster, &in->sender);
    const uint32_t client = member == NO_MEMBER ? member : round_client_place(round, member);
    const uint32_t place = client == NO_MEMBER ? UINT32_MAX : round_audit_place(round, client);
    const bool was_missing =
        place != UINT32_MAX && round->findings[place].finding == FINDING_PENDING;
    audit_hear_finding(&self->audit, turn, in);
    if (was_missing && round->findings[place].finding != FINDING_PENDING)
        findings_hear(&self->findings, place, turn->now_ms - self->round_began_ms);
}

static void hear_vote(struct rounds *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_vote *vote = in->body;
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    if (!round->open || vote->round != round->opened.round) {
        turn_refuse(turn, in, REFUSAL_STALE, vote->round, "round %" PRIu64 " is not open",
                    vote->round);
        return;
    }
    // mutant: an unelected vote is counted
    uint32_t place = round_witness_place(round, member);
    if (place == NO_MEMBER) {
        // mutant: guilt: a member that is refused a vote hears nothing
        turn_refuse(turn, in, REFUSAL_NOT_ELECTED, vote->round, "not a witness of round %" PRIu64,
                    vote->round);
        return;
    }
    const bool enough = quorum_reached(self->tally.voted, self->tally.elected);
    enum tally_verdict verdict = names_only_dealt(self, turn, vote)
                                     ? tally_count(&self->tally, place, vote)
                                     : TALLY_MALFORMED;
    if (verdict == TALLY_MALFORMED) {
        turn_refuse(turn, in, REFUSAL_MALFORMED, vote->round,
                    "a vote names each dealt client at "
                    "most once, in rising order, with results of %u bytes",
                    rounds_config(turn->rules)->payload_bytes);
        return;
    }
    if (verdict == TALLY_COUNTED) {
        if (run->phase == PHASE_WITNESS && enough)
            health_add_wait(self, turn, member, turn->now_ms - self->trained_ms);
        score_health(self, turn, vote);
        audit_ask_rivals(&self->tally, turn, place, vote);
    }
    turn_ack(turn, in, vote->round, NULL);
}

// ---- the end of a round -------------------------------------------------------------------------

// Whether every witness that is still healthy has voted.
static bool all_live_voted(const struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->witnesses_count; i++)
        if (!self->tally.has_voted[i] && turn_is_live(turn, round->witnesses[i].member))
            return false;
    return true;
}

// Whether no result can come, and none is known: there is no vote, and each client has left, was dropped or began
// again. So it is when all are started again.
static bool is_deserted(const struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    if (self->tally.voted > 0) return false;
    for (uint32_t i = 0; i < round->clients_count; i++) {
        const uint32_t member = round->clients[i].member;
        if (turn_is_live(turn, member) && round_is_for(run, member)) return false;
    }
    return true;
}

// From when on a result is late: by the same rule as that of the witnesses (witness.h), with what the
// votes say that half of the results took. UINT64_MAX: none says it.
static uint64_t late_from_ms(const struct rounds *self, const struct turn *turn)
{
    const uint64_t least_ms = rounds_config(turn->rules)->least_train_ms;
    const uint64_t limit_ms = (uint64_t)LATENESS_TIMES * tally_half_ms(&self->tally);
    if (limit_ms == 0) return UINT64_MAX;
    return self->round_began_ms + (limit_ms > least_ms ? limit_ms : least_ms);
}

static bool rest_is_late(const struct rounds *self, const struct turn *turn)
{
    return turn->now_ms >= late_from_ms(self, turn);
}

// How many votes may still come for the result of this client. Once results are late, its own is not
// counted: a client that tells only some witnesses of its result and holds its vote back would be
// waited for in each round.
static uint32_t votes_left(const struct rounds *self, const struct round *round, uint32_t client,
                           bool is_late)
{
    const uint32_t left = self->tally.elected - self->tally.voted;
    const uint32_t own = round_witness_place(round, round->clients[client].member);
    // mutant: late: a witness is waited for because of its own result
    // mutant: late: the vote of a slow one is not waited for
    return is_late && own != NO_MEMBER && !self->tally.has_voted[own] ? left - 1 : left;
}

// Whether no further vote can change what is accepted: of every healthy client that was dealt samples either a
// result is, or so few witnesses are left to vote that none can be.
static bool all_live_decided(const struct rounds *self, const struct turn *turn)
{
    const struct round *round = round_of(turn->run);
    const struct tally *tally = &self->tally;
    const bool is_late = rest_is_late(self, turn);
    for (uint32_t i = 0; i < self->deal.count; i++) {
        const uint32_t client = self->deal.shares[i].trainer;
        if (turn_is_live(turn, round->clients[client].member) && !tally_accepted(tally, client) &&
            quorum_reached(tally_most(tally, client) + votes_left(self, round, client, is_late),
                           tally->elected))
            return false;
    }
    return true;
}

// Whether the commit may accept this result.
//
// - An ejected member's result is not accepted. In a run with audits, neither is that of a member
//   that has left: it could not be audited.
// - The starting residual must be the one that the member's newest accepted result led to, or zero.
//   Otherwise a member could invent a residual that explains a wrong result.
// - A member with audit debt must start from zero. It did not produce a starting residual, so it
//   may have invented the one that it has now. A client that is alone in the round is exempt:
//   nobody can audit it, and there is nobody to deceive.
static bool may_count(const struct turn *turn, uint32_t client, const struct wire_seen *seen)
{
    const struct round *round = round_of(turn->run);
    const uint32_t member = round->clients[client].member;
    // mutant: guilt: what an ejected member did is accepted
    // mutant: guilt: a member that left before the commit is believed
    const bool there = rounds_config(turn->rules)->verification_percent
                           ? turn_is_live(turn, member)
                           : turn->run->roster.members[member].state != MEMBER_EJECTED;
    // mutant: audit: what nobody has verified is a beginning
    // mutant: guilt: a residual may be anything
    return there &&
           (hash_is_none(&seen->residual_from) ||
            ((rounds_run_of(turn->run)->debts[member].audits == 0 || round->clients_count == 1) &&
             hash_equal(&seen->residual_from, &rounds_run_of(turn->run)->residuals[member].hash)));
}

// How many results must name one base. Witness actors hold no parameters, so they cannot tell
// whether a base is right: more trainers must name it than may lie. Elected trainers vote only for
// results on the base that they hold themselves.
static uint32_t bases_needed(const struct turn *turn)
{
    // mutant: guilt: one liar names the parameters of the run
    return rounds_config(turn->rules)->witness_standalone
               ? quorum_liars(round_of(turn->run)->clients_count) + 1
               : 1;
}

// Fills self->accepted, in order of `begin`. Returns how many; with 0 the round is void.
static uint32_t collect(struct rounds *self, const struct turn *turn, struct hash *ret_base,
                        uint64_t *ret_samples)
{
    static const struct hash any;
    const struct run *run = turn->run;
    uint32_t count = 0;
    *ret_samples = 0;
    *ret_base = any;
    if (!quorum_reached(self->tally.voted, self->tally.elected)) return 0;
    const struct hash *only = run->digest_step == run->step ? &run->digest : &any;
    if (!tally_base(&self->tally, only, bases_needed(turn), ret_base)) return 0;
    for (uint32_t i = 0; i < self->deal.count; i++) {
        const struct share *share = &self->deal.shares[i];
        const struct wire_seen *seen = tally_accepted(&self->tally, share->trainer);
        if (!seen || !hash_equal(&seen->base, ret_base) || !may_count(turn, share->trainer, seen))
            continue;
        self->audit.accepted_of[count] = round_of(run)->clients[share->trainer].member;
        self->accepted[count++] = (struct wire_accepted){ .client = share->trainer,
                                                          .begin = share->begin,
                                                          .end = share->end,
                                                          .result = seen->result,
                                                          .payload = seen->payload,
                                                          .payload_bytes = seen->payload_bytes,
                                                          .residual_from = seen->residual_from,
                                                          .residual_to = seen->residual_to };
        *ret_samples += share->end - share->begin;
    }
    return count;
}

// ---- the commit ---------------------------------------------------------------------------------

// Every data provider that was admitted has the data of the run.
static bool has_data(const struct turn *turn)
{
    return turn->rules->frame.data.kind != DATA_SERVER ||
           roster_count(&turn->run->roster, ACTOR_PROVIDER, MEMBER_HEALTHY) > 0;
}

static void commit(struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    struct wire_commit commit = {
        .round = round_of(run)->opened.round,
        .epoch = run->epoch,
        .step = run->step,
        .lr_bits = round_of(run)->opened.lr_bits,
        .previous = round_of(run)->last_commit,
        .accepted = self->accepted,
        .votes = self->tally.voted,
        .elected = self->tally.elected,
        .train_ms = (uint32_t)(self->trained_ms - self->round_began_ms),
        .witness_ms = (uint32_t)(turn->now_ms - self->trained_ms),
    };
    self->audit.accepted_by_count = round_of(run)->witnesses_count;
    memcpy(self->audit.accepted_by, round_of(run)->witnesses,
           round_of(run)->witnesses_count * sizeof *round_of(run)->witnesses);
    commit.accepted_count = collect(self, turn, &commit.base, &commit.samples);
    // Nobody is late for samples that nobody could give
    const bool data = has_data(turn);
    if (data) health_count_waits(self, turn, all_live_decided(self, turn));
    if (data) health_say_missed(self, turn);
    else self->missed[0] = 0; // What the run lacks is a data-provider
    commit.audit_key = audit_reveal(turn);
    audit_tell_missing(turn);
    commit.outcome = commit.accepted_count > 0 ? OUTCOME_COMMITTED : OUTCOME_VOID;
    bool proved = quorum_reached(self->tally.voted, self->tally.elected);
    // mutant: a commit is published before it is stored
    turn_put(turn, FRAME_RECORD_COMMIT, &commit);
    outbox_news(turn->out, FRAME_COMMIT, &commit);
    outbox_note(turn->out,
                "round.%s round=%" PRIu64 " step=%" PRIu64
                " accepted=%u/%u votes=%u/%u train_ms=%u witness_ms=%u",
                wire_enum_name(&wire_enum_outcome, commit.outcome), commit.round, commit.step,
                commit.accepted_count, self->deal.count, commit.votes, commit.elected,
                commit.train_ms, commit.witness_ms);
    if (commit.outcome == OUTCOME_VOID && self->deal.count < bases_needed(turn))
        outbox_note(
            turn->out,
            "round.too_few_results %u clients are dealt samples, and with witness_standalone at "
            "least %u must agree on the parameters; raise global_batch_size",
            self->deal.count, bases_needed(turn));
    // mutant: data: without it everybody has missed the round
    if (proved && data) health_judge(self, turn);
    self->lacked_quorum = !proved;
    self->lacked_data = commit.outcome == OUTCOME_VOID && !data;
}

static bool has_witness(const struct turn *turn)
{
    return !rounds_config(turn->rules)->witness_standalone ||
           roster_count(&turn->run->roster, ACTOR_WITNESS, MEMBER_HEALTHY) > 0;
}

static const char *lacks(const struct turn *turn)
{
    // mutant: data: a round opens before anybody has the data
    return !has_witness(turn) ? "no witness is in the run"
           : !has_data(turn)  ? "no data-provider is in the run"
                              : NULL;
}

// Why the epoch is over, after a commit; NULL: the next round may open. A data provider that is
// restarted ends no epoch: trainers wait for it, for as long as a round lasts, and no longer.
static const char *why_over(const struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    const char *cause = NULL;
    // mutant: a run ends a step early (2)
    // mutant: a round goes on without min_clients
    if (run->step >= rules->total_steps) cause = "all steps are done";
    else if (rules->epoch_rounds &&
             run->number + 1 - run->epoch_start_number >= rules->epoch_rounds)
        cause = "the epoch's rounds are done";
    else if (rules->epoch_ms && turn->now_ms - turn->presence->epoch_began_ms >= rules->epoch_ms)
        cause = "the epoch's time is up";
    else if (roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY) < rules->min_clients)
        cause = "too few members";
    else if (self->lacked_quorum) cause = "too few votes";
    // mutant: data: the last provider ends the epoch
    else if (!has_witness(turn) || self->lacked_data) cause = lacks(turn);
    else if (run->pausing) cause = "a pause was asked for";
    return cause;
}

static bool findings_are_late(const struct rounds *self, const struct turn *turn)
{
    return turn->now_ms - self->round_began_ms > health_findings_limit_ms(self, turn, false);
}

// Whether the commit still waits for findings. An auditor that gets no starting residual says so
// within its lease. If it gets one at the end of its lease, it then needs as much time as training
// takes. That wait does not depend on the length of the round: otherwise a trainer that reveals late
// would never be found out. Where no residual is needed, a late finding is not waited for.
static bool awaits_audits(const struct rounds *self, const struct turn *turn)
{
    const uint64_t lease_ms = turn->rules->lease_ms, train_ms = turn->rules->train_ms;
    const uint64_t work_ms = train_ms > lease_ms / 2 ? train_ms : lease_ms / 2;
    return !audit_is_over(turn, findings_are_late(self, turn)) &&
           turn->now_ms < self->round_began_ms + lease_ms + work_ms;
}

static void enter_witness(struct rounds *self, const struct turn *turn, const char *cause)
{
    const struct run *run = turn->run;
    const struct wire_record_phase record = { .phase = PHASE_WITNESS,
                                              .epoch = run->epoch,
                                              .cold_start = run->cold_start,
                                              .source = run->source,
                                              .epoch_start_step = run->epoch_start_step };
    self->trained_ms = turn->now_ms;
    turn_enter(turn, &record, cause);
}

static void settle_open(struct rounds *self, const struct turn *turn)
{
    const struct tally *tally = &self->tally;
    const bool late = turn->now_ms >= turn->presence->deadline_ms;
    self->is_late |= late;
    // mutant: a round that all have left takes its whole time
    const bool deserted = is_deserted(self, turn);
    if (turn->run->phase == PHASE_TRAIN) {
        // A liar may call its vote complete at once, and votes that are hurried miss slow results. So
        // a round goes on when the votes also decide about each result, or what is open is late
        const bool done = quorum_reached(tally->complete, tally->elected);
        // mutant: late: one liar hurries the votes of all others
        const bool complete = done && all_live_decided(self, turn);
        // mutant: late: a witness that says nothing holds the round up
        const bool rest_late = done && rest_is_late(self, turn);
        // mutant: a round takes twice its time, and never less
        if (!late && !complete && !rest_late && !deserted && !all_live_voted(self, turn)) return;
        enter_witness(self, turn,
                      late        ? "the time is up"
                      : deserted  ? "each trainer has left or begun again"
                      : complete  ? "all results are there"
                      : rest_late ? "what is not there is late"
                                  : "all witnesses have voted");
        return; // The new phase is told first; the next call looks whether it is over at once
    }
    bool enough = quorum_reached(tally->voted, tally->elected);
    const bool decided = enough && (all_live_voted(self, turn) || all_live_decided(self, turn));
    if (enough && awaits_audits(self, turn)) return;
    if (late || deserted || (decided && audit_is_over(turn, findings_are_late(self, turn))))
        commit(self, turn);
}

static const char *settle(void *state, const struct turn *turn)
{
    struct rounds *self = state;
    const struct round *round = round_of(turn->run);
    if (round->open) settle_open(self, turn);
    if (round->open) return NULL;
    // mutant: a restart does not finish a half-finished move
    const char *cause = why_over(self, turn);
    if (!cause) open_round(self, turn);
    return cause;
}

// ---- what the coordinator asks of a pace --------------------------------------------------------

static void begin(void *state, const struct turn *turn) { open_round(state, turn); }

static void resume(void *state, const struct turn *turn)
{
    if (!round_of(turn->run)->open) return;
    // mutant: a deadline is kept over a reboot (2)
    resume_round(state, turn);
    // mutant: audit: a verdict that a crash cut off is forgotten
    audit_resume(turn);
}

// When what nobody waits for any longer is late: results, then findings.
static uint64_t due_ms(const void *state, const struct turn *turn)
{
    const struct rounds *self = state;
    if (!round_of(turn->run)->open) return 0;
    const uint64_t results_ms = late_from_ms(self, turn),
                   limit_ms = health_findings_limit_ms(self, turn, false);
    if (results_ms > turn->now_ms) return results_ms < UINT64_MAX ? results_ms : 0;
    return limit_ms < UINT64_MAX ? self->round_began_ms + limit_ms + 1 : 0;
}

static bool hear(void *state, const struct turn *turn, const struct msg *in)
{
    struct rounds *self = state;
    switch (in->kind) {
    case FRAME_VOTE: hear_vote(self, turn, in); return true;
    case FRAME_FINDING: hear_finding(self, turn, in); return true;
    case FRAME_CLAIM_COPY: audit_hear_claim_copy(&self->audit, turn, in); return true;
    default: return false;
    }
}

static uint64_t open_number(const struct run *run)
{
    const struct round *round = round_of(run);
    return round->open ? round->opened.round : 0;
}

static void tell(const struct turn *turn, const char *to)
{
    const struct wire_round round = round_frame(round_of(turn->run));
    if (to) outbox_mail(turn->out, to, FRAME_ROUND, &round);
    else outbox_news(turn->out, FRAME_ROUND, &round);
}

static struct interval commits(uint16_t kind, const void *record)
{
    const struct wire_commit *commit = record;
    if (kind != FRAME_RECORD_COMMIT || commit->outcome != OUTCOME_COMMITTED)
        return (struct interval){ 0, 0 };
    return (struct interval){ commit->step, commit->step + 1 };
}

static struct commit_facts facts(const void *record)
{
    const struct wire_commit *commit = record;
    struct commit_facts facts = { .results = commit->accepted_count };
    memcpy(&facts.lr, &commit->lr_bits, sizeof facts.lr);
    return facts;
}

static bool peer_waits(const struct run *run)
{
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->clients_count; i++)
        if (run->roster.members[round->clients[i].member].state == MEMBER_PENDING) return true;
    return false;
}

// Of the newest commit. Behind a restart of the coordinator it takes the open round's.
static bool was_witness(const struct turn *turn, uint32_t member)
{
    const struct audit *audit = &rounds_live(turn->live)->audit;
    if (audit->accepted_by_count == 0)
        return round_witness_place(round_of(turn->run), member) != NO_MEMBER;
    for (uint32_t i = 0; i < audit->accepted_by_count; i++)
        if (audit->accepted_by[i].member == member) return true;
    return false;
}

// Whether this member must stay: it was the only witness of the newest commit, so it may be the
// only one that holds its payloads; and other members keep parameters, but none of them reports the
// present step. Seed 63409 of the simulator lost a committed step that way.
static bool needs(const struct turn *turn, uint32_t member)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    bool others = false;
    if (run->step == turn->rules->first_step || round->last.elected > 1 ||
        !was_witness(turn, member))
        return false;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        if (i == member || interval_length(pace_held_by(turn, i)) == 0) continue;
        if (turn->presence->step_held[i] >= run->step) return false;
        others = true;
    }
    return others;
}

static const char *missed(const void *state)
{
    const struct rounds *self = state;
    return self->missed[0] ? self->missed : NULL;
}

// A member that comes back is judged by what it missed before: else it could leave before each third miss.
static void hear_arrival(void *state, uint32_t member, bool is_new_member)
{
    struct audit *audit = &((struct rounds *)state)->audit;
    if (is_new_member) {
        audit_forget(audit, member);
        audit->missed_ms[member] = audit->probation[member] = audit->fault_score[member] = 0;
        audit->heal[member] = audit->healed[member] = 0;
        findings_forget(&((struct rounds *)state)->findings, member);
        waits_forget(&((struct rounds *)state)->waits, member);
    }
}

_Static_assert(sizeof(struct rounds) <= PACE_LIVE_BYTES,
               "a coordinator has room for struct rounds");

const struct pace pace_rounds = {
    .name = "rounds",
    .config = FRAME_ROUNDS_CONFIG,
    .live_bytes = sizeof(struct rounds),
    .run = { .bytes = sizeof(struct rounds_run),
             .apply = rounds_run_apply,
             .store = rounds_run_store,
             .load = rounds_run_load,
             .refers_to = rounds_run_refers_to },
    .lacks = lacks,
    .missed = missed,
    .begin = begin,
    .resume = resume,
    .hear = hear,
    .settle = settle,
    .due_ms = due_ms,
    .open_number = open_number,
    .tell = tell,
    .commits = commits,
    .facts = facts,
    .commit_frame = FRAME_COMMIT,
    .peer_waits = peer_waits,
    .needs = needs,
    .hear_arrival = hear_arrival,
#define ROUNDS_COUNT(NAME, text) [ROUNDS_COUNT_##NAME] = text,
    .evidence_counts = { ROUNDS_COUNTS(ROUNDS_COUNT) },
#undef ROUNDS_COUNT
    .evidence_bytes = sizeof(struct rounds_evidence),
    .verifies = rounds_verifies,
};
