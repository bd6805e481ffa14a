// check_records -- what a record may say, judged by what all records before it said: those of all
// paces here, those of one pace in its own file (sim_pace). The ghost is written anew from the phases
// of the README: it shares no code with the run that it judges. Beside it the evidence: that all
// draws follow from the records alone.

#include "common/base/ensure.h"
#include "common/run/table.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <string.h>

// The moves that a PHASE record may make. A record of the pace makes steps of Warmup; how those phases end,
// it knows.
static bool may_enter(const struct sim *sim, uint8_t from, uint8_t to)
{
    switch (from) {
    case PHASE_WAITING: return to == PHASE_WARMUP || to == PHASE_PAUSED;
    case PHASE_WARMUP: return to == PHASE_WAITING || to == PHASE_PAUSED;
    case PHASE_TRAIN:
    case PHASE_WITNESS: return sim->pace->may_enter(sim, from, to);
    case PHASE_COOLDOWN: return to == PHASE_WAITING || to == PHASE_FINISHED || to == PHASE_PAUSED;
    case PHASE_PAUSED: return to == PHASE_WAITING;
    default: return false;
    }
}

static struct ghost_point *now(struct ghost *ghost) { return &ghost->points[ghost->records]; }

uint32_t check_members(const struct ghost *ghost, uint8_t role, uint8_t state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ghost->members_count; i++)
        count += ghost->members[i].role == role && ghost->members[i].state == state;
    return count;
}

static void move_trainers(struct ghost *ghost, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < ghost->members_count; i++)
        if (role_takes_steps(ghost->members[i].role) && ghost->members[i].state == from)
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
    bool enters = role_takes_steps(record->role) && record->state == MEMBER_HEALTHY;
    hold(!enters || member->state == MEMBER_HEALTHY ||
             (record->role == ACTOR_TRAINER && sim->pace->admits && sim->pace->admits(sim)),
         "a trainer enters at an epoch's border", "%s in %s", record->name, run_phase_name(phase));
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
    hold(may_enter(sim, from, to) || (ghost->records == 2 && to == PHASE_PAUSED),
         "phases move as drawn", "%s to %s", run_phase_name(from), run_phase_name(to));
    if (to == PHASE_WARMUP)
        hold(check_members(ghost, ACTOR_TRAINER, MEMBER_PENDING) >= rules->init_min_clients,
             "an epoch begins with enough members", "%u",
             check_members(ghost, ACTOR_TRAINER, MEMBER_PENDING));
    hold(to != PHASE_FINISHED || point->step >= rules->total_steps,
         "a run ends when all steps are done", "step %" PRIu64, point->step);
    hold(record->epoch == point->epoch + (from == PHASE_COOLDOWN), "epochs count up",
         "%" PRIu64 " after %" PRIu64, record->epoch, point->epoch);
    point->phase = to;
    point->epoch = record->epoch;
    if (to == PHASE_WARMUP) move_trainers(ghost, MEMBER_PENDING, MEMBER_HEALTHY);
    if (to == PHASE_WAITING || to == PHASE_PAUSED)
        move_trainers(ghost, MEMBER_HEALTHY, MEMBER_PENDING);
    const bool by_itself = sim->pace->may_pause && sim->pace->may_pause(sim);
    hold(to != PHASE_PAUSED || ghost->pause_asked || rules->start_paused || by_itself,
         "only the owner pauses a run", "from %s", run_phase_name(from));
    if (to == PHASE_PAUSED) ghost->pausing = false;
    if (sim->pace->entered) sim->pace->entered(sim, to);
}

// ---- samples ------------------------------------------------------------------------------------

uint64_t check_dealt(struct sim *sim, const struct interval *list, uint32_t list_count)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < list_count; i++)
        for (uint64_t p = list[i].begin; p < list[i].end; p++, at++, count++) {
            hold(p < POSITIONS_MAX, "positions stay within the simulation", "%" PRIu64, p);
            for (; at < p; at++)
                hold(ghost->samples[at] != TABLE_TODO, "what was returned is dealt first",
                     "sample %" PRIu64 " was left out", at);
            hold(ghost->samples[p] == TABLE_TODO, "no sample is dealt twice", "sample %" PRIu64, p);
            ghost->samples[p] = TABLE_PENDING;
            if (p >= ghost->cursor) ghost->cursor = p + 1;
        }
    return count;
}

void check_done(struct sim *sim, uint64_t position)
{
    struct ghost *ghost = &sim->ghost;
    hold(ghost->samples[position] == TABLE_PENDING, "no sample is committed twice",
         "sample %" PRIu64, position);
    ghost->samples[position] = TABLE_DONE;
    ghost->done_step[position] = (uint16_t)now(ghost)->step;
    ghost->done++;
    now(ghost)->samples_done++;
}

static bool has(const struct interval *list, uint32_t count, uint64_t position)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].begin <= position && position < list[i].end) return true;
    return false;
}

void check_position(struct sim *sim, const char *what, const struct wire_data_position *said)
{
    for (uint64_t p = 0; p < said->cursor; p++) {
        const uint8_t state = has(said->returned, said->returned_count, p) ? TABLE_TODO
                              : has(said->failed, said->failed_count, p)   ? TABLE_FAILED
                                                                           : TABLE_DONE;
        hold(sim->ghost.samples[p] == state, what, "sample %" PRIu64 " is %u and not %u", p,
             sim->ghost.samples[p], state);
    }
    for (uint64_t p = said->cursor; p < sim->ghost.cursor; p++)
        hold(sim->ghost.samples[p] == TABLE_TODO, what, "sample %" PRIu64 " beyond the cursor", p);
}

static void hear_epoch_end(struct sim *sim, const struct wire_epoch_end *end)
{
    struct ghost *ghost = &sim->ghost;
    hold(end->step == now(ghost)->step && !ghost->round_open, "an epoch ends between rounds",
         "%" PRIu64, end->step);
    if (sim->pace->pinned) sim->pace->pinned(sim, end);
    hold(hash_equal(&end->digest, &ghost->digest[end->step]),
         "the pinned digest is that of the commits", "step %" PRIu64, end->step);
    check_position(sim, "an epoch end has the data position", &end->data_position);
    ghost->pin_step = end->step;
    ghost->end_point = (struct pin){ .step = end->step, .digest = end->digest };
    ghost->epoch_end_record = ghost->records;
}

static void be_restore_point(struct ghost *ghost, const struct wire_checkpoint *record)
{
    if (ghost->is_saved && record->step == ghost->restore_point.step &&
        hash_equal(&record->digest, &ghost->restore_point.digest))
        return;
    if (ghost->is_saved) {
        memmove(&ghost->older[1], &ghost->older[0], sizeof ghost->older - sizeof *ghost->older);
        ghost->older[0] = ghost->restore_point;
    }
    // The others are gone from the disk
    for (uint32_t i = record->keep > 0 ? record->keep - 1 : 0;
         record->pieces && i < OLDER_SAVES_MAX; i++)
        ghost->older[i] = (struct pin){ 0 };
    ghost->restore_point = (struct pin){ .step = record->step, .digest = record->digest };
    ghost->is_saved = record->pieces;
    ghost->may_decay |= record->pieces;
}

static void hear_checkpoint(struct sim *sim, const struct wire_checkpoint *record)
{
    hold(record->step <= check_step(sim) &&
             hash_equal(&record->digest, &sim->ghost.digest[record->step]),
         "a checkpoint is of committed parameters", "step %" PRIu64 " on record", record->step);
    const struct pin *end = &sim->ghost.end_point;
    if (record->pieces)
        hold(saves_have(sim, record->step, &record->digest), "a save on record is whole",
             "step %" PRIu64, record->step);
    if (record->pieces || record->step == check_step(sim) ||
        (record->step == end->step && hash_equal(&record->digest, &end->digest)))
        be_restore_point(&sim->ghost, record);
}

// Of a record of several steps, the last one leads to it, as in the ledger's index.
static void keep_commits(struct sim *sim, uint16_t kind, const void *record)
{
    const struct pace *pace = pace_of(&sim->plan.rules);
    const struct interval steps = pace->commits(kind, record);
    if (interval_length(steps) == 0) return;
    hold(steps.end == now(&sim->ghost)->step && steps.end < ROUNDS_MAX,
         "a commit is of the steps that follow", "%" PRIu64, steps.end);
    sim->ghost.commit_of_step[steps.end - 1] = sim->ghost.records;
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
         "record %" PRIu64, ghost->records);
    hold(evidence_hear(sim->evidence, ghost->records, kind, record),
         "who has the records can draw again", "%s", sim->evidence->text);
    switch (kind) {
    case FRAME_RECORD_MEMBER: hear_member(sim, record); break;
    case FRAME_RECORD_PHASE: hear_phase(sim, record); break;
    case FRAME_RECORD_CHECKPOINT: hear_checkpoint(sim, record); break;
    case FRAME_RECORD_RESTORE: check_restore(sim, record); break;
    case FRAME_RECORD_EPOCH_END: hear_epoch_end(sim, record); break;
    case FRAME_RECORD_START:
        if (!ghost->born_unix_ms)
            ghost->born_unix_ms = ((const struct wire_record_start *)record)->unix_ms;
        break;
    case FRAME_RECORD_PAUSE:
        ghost->pausing = ((const struct wire_record_pause *)record)->pausing;
        hold(!ghost->pausing || ghost->pause_asked, "only the owner pauses a run",
             "record %" PRIu64, ghost->records);
        break;
    default: sim->pace->hear_record(sim, kind, record);
    }
    keep_commits(sim, kind, record);
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
