// march -- opens a march, commits as far as the slowest has come, and opens the next one.

#include "tests/pace/march.h"
#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include "common/pace/pace.h"
#include <inttypes.h>
#include <string.h>

// ---- the durable half ---------------------------------------------------------------------------

static struct march_run *own(const struct run *run)
{
    return (struct march_run *)(uintptr_t)run->pace_state;
}

static bool is_open(const struct run *run) { return march_has(&own(run)->march, run->step); }

static void keep(struct march_run *self, const struct wire_march *march)
{
    memmove(self->samples, march->samples, march->samples_count * sizeof *march->samples);
    self->march = *march;
    self->march.samples = self->samples;
}

static void apply_march(struct run *run, const struct wire_march *march)
{
    ensure(march->number == run->number + 1 && march->step == run->step && !is_open(run));
    if (run->phase != PHASE_TRAIN) run_enter(run, PHASE_TRAIN);
    ensure(table_deal_again(&run->table, march->number, march->samples, march->samples_count) ==
           TABLE_OK);
    keep(own(run), march);
    run->number = march->number;
    run->epoch_elapsed_ms = march->epoch_elapsed_ms;
}

// What is not yet committed stays pending under the same number.
static void apply_steps(struct run *run, const struct wire_march *steps)
{
    ensure(is_open(run) && steps->number == run->number && steps->step == run->step);
    ensure(table_done(&run->table, steps->number, steps->samples, steps->samples_count) ==
           TABLE_OK);
    // mutant: march: the rest goes back with a commit
    run_advance(run, steps->steps, (uint64_t)steps->steps * steps->batch);
    own(run)->since = steps->epoch;
}

static bool apply(struct run *run, uint16_t kind, const void *record)
{
    struct march_run *self = own(run);
    switch (kind) {
    case FRAME_RECORD_MARCH: apply_march(run, record); return true;
    case FRAME_RECORD_MARCHED: apply_steps(run, record); return true;
    case FRAME_RECORD_CHECKPOINT: // Of the present step: that is the run's restore point from now on
        if (((const struct wire_checkpoint *)record)->step == run->step)
            self->restore_point_since = self->since;
        return false;
    case FRAME_RECORD_RESTORE:
        self->march = (struct wire_march){ 0 };
        self->since = self->restore_point_since;
        return false;
    default: return false;
    }
}

static struct wire_part store(const struct run *run, void *memory)
{
    const struct march_run *self = own(run);
    *(struct wire_march_snapshot *)memory =
        (struct wire_march_snapshot){ self->march, self->since, self->restore_point_since };
    return (struct wire_part){ FRAME_MARCH_SNAPSHOT, memory };
}

static bool load(struct run *run, const struct wire_part *part)
{
    const struct wire_march_snapshot *from = part->body;
    if (part->kind != FRAME_MARCH_SNAPSHOT) return false;
    // mutant: march: a snapshot forgets the march
    if (from->march.steps > 0) keep(own(run), &from->march);
    own(run)->since = from->since;
    own(run)->restore_point_since = from->restore_point_since;
    return true;
}

// ---- the phase that makes steps -----------------------------------------------------------------

static void open_march(const struct turn *turn)
{
    struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    const uint32_t steps = ((const struct wire_march_config *)rules_strategy(rules))->steps;
    const uint64_t left = rules->total_steps - run->step;
    struct wire_march march = {
        .number = run->number + 1,
        .epoch = run->epoch,
        .since = own(run)->since,
        .step = run->step,
        .steps = left < steps ? (uint32_t)left : steps,
        .batch =
            schedule_batch_size(rules->batch_start, rules->batch_end, rules->batch_warmup_tokens,
                                run->samples_done * rules->seq_len),
        .samples = run->scratch,
        .epoch_elapsed_ms = turn->now_ms - turn->presence->epoch_began_ms,
    };
    // The table is asked and put back: only the record, applied, changes it.
    ensure(table_deal(&run->table, march.number, (uint64_t)march.steps * march.batch, run->scratch,
                      TABLE_INTERVALS_MAX, &march.samples_count) == TABLE_OK);
    ensure(table_return_rest(&run->table, march.number) == TABLE_OK);
    turn_put(turn, FRAME_RECORD_MARCH, &march);
    turn_arm(turn);
}

// A trainer counts if it was here when the march was opened; one that joined since, once it has been in step.
static bool counts(const struct march_live *self, const struct turn *turn, uint32_t member)
{
    const struct wire_member *place = &turn->run->roster.members[member];
    // mutant: march: a trainer that is silent since the restart is not waited for
    // mutant: march: a joiner is never waited for
    return place->role == ACTOR_TRAINER && turn_is_live(turn, member) &&
           (place->joined_number < turn->run->number || self->in_step[member]);
}

// How far the slowest has come that counts. If nobody is left who does: no further.
static uint64_t slowest(struct march_live *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const uint64_t held = turn->presence->step_held[i];
        if (turn_is_live(turn, i) && held >= run->step && held > 0) self->in_step[i] = true;
        // mutant: march: the fastest says what is committed
        if (counts(self, turn, i) && held < least) least = held;
    }
    return least == UINT64_MAX ? run->step : least;
}

static void commit(const struct turn *turn, uint64_t end)
{
    struct run *run = turn->run;
    struct wire_march steps = own(run)->march;
    steps.samples_count = march_samples(&steps, run->step, end, run->scratch);
    steps.samples = run->scratch;
    steps.steps = (uint32_t)(end - run->step);
    steps.step = run->step;
    // mutant: march: a commit is told before it is stored
    turn_put(turn, FRAME_RECORD_MARCHED, &steps);
    outbox_news(turn->out, FRAME_MARCHED, &steps);
}

static const char *why_over(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    if (run->step >= rules->total_steps) return "all steps are done";
    if (rules->epoch_rounds && run->number + 1 - run->epoch_start_number >= rules->epoch_rounds)
        return "the epoch's marches are done";
    if (rules->epoch_ms && turn->now_ms - turn->presence->epoch_began_ms >= rules->epoch_ms)
        return "the epoch's time is up";
    if (roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY) < rules->min_clients)
        return "too few members";
    return run->pausing ? "a pause was asked for" : NULL;
}

static const char *settle(void *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const uint64_t held = is_open(run) ? slowest(self, turn) : 0;
    if (held > run->step) commit(turn, held);
    // mutant: march: an epoch ends in the middle of one
    if (is_open(run)) return NULL;
    const char *cause = why_over(turn);
    if (!cause) open_march(turn);
    return cause;
}

static void begin(void *self, const struct turn *turn)
{
    (void)self;
    open_march(turn);
}

// ---- what is told, and members ------------------------------------------------------------------

static uint64_t open_number(const struct run *run) { return is_open(run) ? run->number : 0; }

static void tell(const struct turn *turn, const char *to)
{
    const struct wire_march *march = &own(turn->run)->march;
    if (to) outbox_mail(turn->out, to, FRAME_MARCH, march);
    else outbox_news(turn->out, FRAME_MARCH, march);
}

static struct interval commits(uint16_t kind, const void *record)
{
    const struct wire_march *steps = record;
    if (kind != FRAME_RECORD_MARCHED) return (struct interval){ 0, 0 };
    return (struct interval){ steps->step, steps->step + steps->steps };
}

// mutant: march: nobody may be ahead
static uint64_t ahead(const struct run *run)
{
    const struct wire_march *march = &own(run)->march;
    return is_open(run) ? march->step + march->steps - run->step : 0;
}

// mutant: march: nobody is let in in the middle of one
static bool admits(const struct turn *turn) { return is_open(turn->run); }

static bool peer_waits(const struct run *run)
{
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct wire_member *member = &run->roster.members[i];
        if (member->role == ACTOR_TRAINER && member->state == MEMBER_PENDING &&
            member->joined_number < run->number)
            return true;
    }
    return false;
}

static void hear_arrival(void *self, uint32_t member, bool takes_place)
{
    (void)takes_place;
    ((struct march_live *)self)->in_step[member] = false;
}

// ---- evidence: steps follow one another, each with its samples ----------------------------------

static bool verifies(struct evidence *evidence, uint16_t kind, const void *record)
{
    struct march_run *self = (struct march_run *)(void *)evidence->pace_state;
    const struct wire_march *said = record, *march = &self->march;
    static struct interval list[TABLE_INTERVALS_MAX];
    if (kind == FRAME_RECORD_RESTORE) self->march = (struct wire_march){ 0 };
    if (kind != FRAME_RECORD_MARCH && kind != FRAME_RECORD_MARCHED) return true;
    if (said->step != evidence->step || said->steps == 0 || said->batch == 0 ||
        interval_list_total(said->samples, said->samples_count) !=
            (uint64_t)said->steps * said->batch)
        return evidence_refuse(evidence, "steps %" PRIu64 " and after do not follow step %" PRIu64,
                               said->step, evidence->step);
    if (kind == FRAME_RECORD_MARCH) {
        if (said->number != evidence->number + 1 || march_has(march, evidence->step))
            return evidence_refuse(evidence, "march %" PRIu64 " does not follow march %" PRIu64,
                                   said->number, evidence->number);
        keep(self, said);
        evidence->number = said->number;
        evidence->counts[0]++;
        return true;
    }
    const uint64_t end = said->step + said->steps;
    if (said->number != evidence->number || !march_has(march, end - 1) ||
        march_samples(march, said->step, end, list) != said->samples_count ||
        memcmp(list, said->samples, said->samples_count * sizeof *list) != 0)
        return evidence_refuse(evidence, "step %" PRIu64 " is not of march %" PRIu64, said->step,
                               said->number);
    evidence->step = end;
    evidence->counts[1] += said->steps;
    return true;
}

_Static_assert(sizeof(struct march_run) <= RUN_PACE_BYTES, "the durable half has room in a run");

const struct pace pace_march = {
    .name = "march",
    .config = FRAME_MARCH_CONFIG,
    .live_bytes = sizeof(struct march_live),
    .run = { .bytes = sizeof(struct march_run), .apply = apply, .store = store, .load = load },
    .begin = begin,
    .settle = settle,
    .open_number = open_number,
    .tell = tell,
    .commits = commits,
    .commit_frame = FRAME_MARCHED,
    .peer_waits = peer_waits,
    .needs = pace_alone_is_as_far,
    .admits = admits,
    .hear_arrival = hear_arrival,
    .ahead = ahead,
    .evidence_counts = { "marches", "committed steps" },
    .evidence_bytes = sizeof(struct march_run),
    .verifies = verifies,
};
