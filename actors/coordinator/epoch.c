// epoch -- decides the phases around the steps.
//
// 1. enter is the only function here that changes the phase: it records it, sets the alarm and
//    tells it.
// 2. epoch_settle looks whether the present phase is over, by one look_ function a phase. In the
//    phases that make steps the pace decides, and only returns the reason.
// 3. Checkpoints and the owner's orders come last. A restore needs no quorum: the owner orders it.

#include "actors/coordinator/epoch.h"
#include "actors/coordinator/members.h"
#include "actors/coordinator/news.h"
#include "common/base/plain_name.h"
#include "common/pace/turn.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// A joiner fetches the model from peers if a member that took part in the newest step waits here.
static uint8_t model_source(const struct turn *turn)
{
    return turn->pace->peer_waits(turn->run) ? SOURCE_P2P : SOURCE_HUB;
}

static void enter(struct epoch *self, const struct turn *turn, uint8_t phase, const char *cause)
{
    const struct run *run = turn->run;
    struct wire_record_phase record = { .phase = phase,
                                        .epoch = run->epoch,
                                        .cold_start = run->cold_start,
                                        .source = run->source,
                                        .epoch_start_step = run->epoch_start_step };
    uint8_t from = run->phase;
    if (phase == PHASE_WARMUP) {
        record.source = model_source(turn);
        record.epoch_start_step = run->step;
        turn->presence->epoch_began_ms = turn->now_ms;
    }
    if (from == PHASE_COOLDOWN) { // The epoch is over
        record.epoch++;
        record.cold_start = phase == PHASE_PAUSED;
        record.source = SOURCE_P2P;
    } else if (phase == PHASE_PAUSED) {
        record.cold_start = true;
    }
    turn_enter(turn, &record, cause);
    turn->presence->wants_end = false;
    turn->presence->ready_ms = 0;
    // mutant: windows: an epoch waits for a trainer that cannot enter it
    for (uint32_t i = 0; phase == PHASE_WARMUP && i < run->roster.count; i++)
        if (turn->pace->stays_pending && role_takes_steps(run->roster.members[i].role) &&
            turn_is_live(turn, i) && turn->pace->stays_pending(turn, i))
            turn_set_state(turn, i, MEMBER_PENDING);
    if (phase == PHASE_WARMUP) warmup_begin(&self->warmup, turn);
    // mutant: warmup: a run that cannot begin still waits for no more than before
    if (from == PHASE_WARMUP && phase == PHASE_WAITING) warmup_forget(&self->warmup);
}

// ---- phases -------------------------------------------------------------------------------------

static const char *const split_cause = "no majority holds the same state";

_Static_assert(sizeof((struct wire_run *)0)->lacks == EPOCH_LACKS_MAX, "RUN has room for it");

// A member is here that has not said yet which step it holds: it has just come back. Its next PING says it, or its
// lease runs out (seed 80546).
static bool somebody_is_unheard(const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        // mutant: windows: a process that has just come back is not heard
        if (interval_length(pace_held_by(turn, i)) > 0 && !turn->presence->pinged[i]) return true;
    return false;
}

static uint64_t search_ms(const struct turn *turn)
{
    return PACE_SEARCH_LEASES * (uint64_t)turn->rules->lease_ms;
}

// The members have this very step in memory, in shares: they fetch it from one another.
static bool is_in_memory(const struct turn *turn)
{
    struct way_back way;
    return turn->pace->way_back && turn->pace->way_back(turn, &way) &&
           way.point.step == turn->run->step;
}

// Enough members are here, and none of them holds the newest step. Nobody else is waited for any more: each process
// that had it has been replaced by a newer one, or has had its time to come back.
static bool is_given_up(const struct epoch *self, const struct turn *turn)
{
    if (somebody_is_unheard(turn)) return false;
    return self->lost_ms &&
           (holdings_who_may(turn) == NO_MEMBER || turn->now_ms - self->lost_ms >= search_ms(turn));
}

// Nobody here holds the newest step, and somebody who may is waited for. Said after a lease: at the end of each epoch
// those that hold it say so within moments.
static bool is_searched(const struct epoch *self, const struct turn *turn)
{
    return self->lost_ms && turn->now_ms - self->lost_ms >= turn->rules->lease_ms &&
           !is_given_up(self, turn) && holdings_who_may(turn) != NO_MEMBER;
}

// The run is at a save that somebody cannot read, nobody here holds that state, and no memory save takes its place.
static bool is_unread(const struct epoch *self, const struct turn *turn)
{
    char text[EPOCH_LACKS_MAX];
    struct way_back way;
    return unread_print(&self->unread, turn, text, sizeof text)[0] &&
           !holdings_somebody_says(&self->holdings, turn) &&
           !(turn->pace->way_back && turn->pace->way_back(turn, &way));
}

// The run has to go back, as nobody is left that holds its newest step, and more trainers must be here before it does:
// those that are may be cut off from the others. How many. Said after a lease, as is_searched.
static uint32_t missing_to_go_back(const struct epoch *self, const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    const uint32_t here = roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY) +
                          roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING);
    const uint32_t wanted = turn->rules->init_min_clients;
    const bool is_long = self->few_ms && turn->now_ms - self->few_ms >= turn->rules->lease_ms;
    return turn->run->phase == PHASE_COOLDOWN && is_long && here < wanted ? wanted - here : 0;
}

static bool all_done(const struct turn *turn)
{
    // mutant: a run ends a step early
    return turn->run->step >= turn->rules->total_steps;
}

// Where members trust one another the last state lies in their memory alone, and nothing leads out of Finished. So a run
// that has a checkpointer is not finished before the state is in a checkpoint or a save (seed 65150). One that is away may
// come back, and any other may write it. The name of the first that has not left; NULL: none is waited for.
static const char *last_writer(const struct turn *turn)
{
    const struct run *run = turn->run;
    if (!all_done(turn) || !turn->pace->trusted || holdings_saved(turn)) return NULL;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct wire_member *member = &run->roster.members[i];
        if (member->role == ACTOR_CHECKPOINTER && member->state != MEMBER_WITHDRAWN &&
            member->state != MEMBER_EJECTED)
            return member->name;
    }
    return NULL;
}

char *epoch_lacks(const struct epoch *self, const struct turn *turn, char text[EPOCH_LACKS_MAX])
{
    const uint8_t phase = turn->run->phase;
    const uint16_t missing = (uint16_t)turn_count_missing(turn);
    const uint16_t to_go_back = (uint16_t)missing_to_go_back(self, turn);
    const bool may_lack = phase == PHASE_WAITING || phase == PHASE_WARMUP || phase == PHASE_TRAIN;
    const bool rests = phase == PHASE_COOLDOWN || phase == PHASE_PAUSED;
    const char *lacks = may_lack ? pace_lacks(turn) : rests ? pace_why_paused(turn) : NULL;
    // mutant: windows: a run whose newest step is lost does not say so
    const bool is_over =
        is_given_up(self, turn) && !run_has_checkpoint(turn->run) && !is_in_memory(turn);
    if (missing) // At most MEMBERS_MAX, as the other number
        snprintf(text, EPOCH_LACKS_MAX, "waiting for %u more trainer%s (init_min_clients %u)",
                 missing, missing == 1 ? "" : "s", (uint16_t)turn->rules->init_min_clients);
    // mutant: windows: a run that goes back once more trainers are here does not say so
    else if (to_go_back)
        snprintf(text, EPOCH_LACKS_MAX,
                 "nobody here holds the run's state of step %" PRIu64
                 ": it goes back once %u more trainer%s here (init_min_clients %u)",
                 turn->run->step, to_go_back, to_go_back == 1 ? " is" : "s are",
                 (uint16_t)turn->rules->init_min_clients);
    else if (rests && holdings_are_split(&self->holdings, turn))
        holdings_print_sides(&self->holdings, turn, text, EPOCH_LACKS_MAX);
    else if (is_over)
        snprintf(text, EPOCH_LACKS_MAX,
                 "nobody here holds the run's state of step %" PRIu64
                 ": waiting for a process that does. There is no checkpoint: if all have lost it, "
                 "the run begins again",
                 turn->run->step);
    else if ((phase == PHASE_WAITING || phase == PHASE_WARMUP) && is_unread(self, turn))
        unread_print(&self->unread, turn, text, EPOCH_LACKS_MAX);
    // mutant: windows: a run that waits for who may hold its newest step does not say so
    else if (is_searched(self, turn))
        snprintf(text, EPOCH_LACKS_MAX,
                 "nobody here holds the run's state of step %" PRIu64 ": waiting up to %" PRIu64
                 " s for %s, which may hold it",
                 turn->run->step, search_ms(turn) / 1000,
                 turn->run->roster.members[holdings_who_may(turn)].name);
    else if (phase == PHASE_COOLDOWN && !lacks && run_has_digest(turn->run) && last_writer(turn))
        snprintf(text, EPOCH_LACKS_MAX,
                 "waiting for %s to write the checkpoint of step %" PRIu64 ", the last one",
                 last_writer(turn), turn->run->step);
    else if (phase == PHASE_WARMUP && !lacks)
        warmup_print_awaited(&self->warmup, &self->holdings, turn, text, EPOCH_LACKS_MAX);
    else snprintf(text, EPOCH_LACKS_MAX, "%s", lacks ? lacks : "");
    return text;
}

static void look_waiting(struct epoch *self, const struct turn *turn)
{
    if (turn->run->pausing) { // Asked for in a Cooldown that a restore has ended
        enter(self, turn, PHASE_PAUSED, "a pause was asked for");
        return;
    }
    if (turn_count_missing(turn) == 0 && !pace_lacks(turn) &&
        turn->now_ms >= turn->presence->deadline_ms)
        enter(self, turn, PHASE_WARMUP, "enough members");
}

static void note_ready(const struct turn *turn, bool ready)
{
    struct presence *presence = turn->presence;
    presence->ready_ms = !ready ? 0 : presence->ready_ms ? presence->ready_ms : turn->now_ms;
}

// Those without the model wait an epoch; those that are left begin it, unless they lack something now:
// they may be others than those that are linked.
static void begin_epoch(struct epoch *self, void *pace_live, const struct turn *turn, bool late)
{
    struct run *run = turn->run;
    // mutant: a checkpointer speaks for the trainers (2)
    for (uint32_t i = 0; i < run->roster.count; i++)
        if (role_takes_steps(run->roster.members[i].role) && turn_is_live(turn, i) &&
            !holdings_have(&self->holdings, turn, i, &run->digest))
            turn_set_state(turn, i, MEMBER_PENDING);
    const char *lacks = pace_lacks(turn);
    if (!lacks) {
        warmup_end(&self->warmup, &self->holdings, turn);
        turn->pace->begin(pace_live, turn);
    } else if (late) enter(self, turn, PHASE_WAITING, lacks);
}

// Parameter servers that are not there.
static bool lacks_servers(const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    return turn->pace->servers &&
           roster_count(roster, ACTOR_SERVER, MEMBER_HEALTHY) < turn->pace->servers(turn->rules);
}

static void look_warmup(struct epoch *self, void *pace_live, const struct turn *turn)
{
    struct run *run = turn->run;
    const uint32_t trainers = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY);
    const uint32_t live = trainers + roster_count(&run->roster, ACTOR_SERVER, MEMBER_HEALTHY);
    const uint32_t needed = turn->rules->min_clients;
    const bool late = turn->now_ms >= turn->presence->deadline_ms;
    if (trainers < needed || lacks_servers(turn)) {
        enter(self, turn, PHASE_WAITING,
              trainers < needed ? "too few members" : "a parameter server is missing");
        return;
    }
    if (!late && !turn->pace->trusted &&
        !warmup_have_reported(&self->warmup, &self->holdings, turn))
        return;
    const uint32_t ready = holdings_pin(&self->holdings, turn)
                               ? holdings_count(&self->holdings, turn, &run->digest, 0)
                               : 0;
    note_ready(turn, ready == live);
    const char *lacks = pace_lacks(turn);
    if (holdings_are_split(&self->holdings, turn)) enter(self, turn, PHASE_PAUSED, split_cause);
    else if (late && (ready < needed || lacks))
        enter(self, turn, PHASE_WAITING, lacks ? lacks : "too few hold the model");
    else if (late || (ready >= needed && warmup_have_model(&self->warmup, &self->holdings, turn)))
        begin_epoch(self, pace_live, turn, late);
}

// Who holds the newest step reports its digest within moments. One whose learner hangs goes on saying by its PINGs that
// it holds the step: it is believed for as long as one is searched for that may hold it. But if most say so, it is us whom
// they do not hear: they report once they do (seed 57974).
static bool are_pings_believed(const struct epoch *self, const struct turn *turn)
{
    // mutant: windows: who says that it holds the step and never reports it is believed for ever
    return !self->claimed_ms || turn->now_ms - self->claimed_ms < search_ms(turn) ||
           // mutant: windows: most hold the step and do not hear us, and the run goes back
           holdings_most_have(turn);
}

// A Cooldown that can never end: nobody holds the present step, and it has no digest, or it is the
// last one and nobody keeps its parameters.
static bool is_stuck(const struct epoch *self, const struct turn *turn)
{
    const bool is_here = holdings_somebody_has(turn) && are_pings_believed(self, turn);
    // mutant: restore: a last cooldown that nobody keeps has no restore point
    return turn->run->phase == PHASE_COOLDOWN && !is_here &&
           (!run_has_digest(turn->run) ||
            (all_done(turn) && !holdings_are_kept(&self->holdings, turn)));
}

enum { WAY_WORDS_MAX = 160 };
static struct wire_record_restore way_back(const struct epoch *self, const struct turn *turn,
                                           char ret_words[WAY_WORDS_MAX]);
static bool restore(struct epoch *self, const struct turn *turn, struct wire_record_restore back);

// Those that have said what they hold. One that JOINs again and again, as it hears no answer, may hold anything.
static uint32_t trainers_heard(const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    uint32_t heard = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct wire_member *member = &roster->members[i];
        // mutant: windows: members that have said nothing are enough to give a step up
        const bool said = turn->presence->pinged[i];
        heard += member->role == ACTOR_TRAINER && roster_is_here(member) && said;
    }
    return heard;
}

// Somebody here holds the newest step.
static bool is_held(struct epoch *self, const struct turn *turn)
{
    // mutant: windows: who has reported the step is not among those that hold it
    const bool is_here = holdings_somebody_says(&self->holdings, turn);
    if (!is_here || holdings_somebody_reports(&self->holdings, turn)) self->claimed_ms = 0;
    else if (!self->claimed_ms) self->claimed_ms = turn->now_ms;
    return is_here && are_pings_believed(self, turn);
}

// No process is left that holds the newest step: it lay in the memory of processes that have died or were stopped.
// Enough members are here to go on, so it is not the coordinator that is cut off. Members that may only be late get
// their time; if each of them has been replaced by a newer process, none is waited for.
static bool look_lost(struct epoch *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const bool is_here = is_held(self, turn);
    const bool few = trainers_heard(turn) < turn->rules->init_min_clients;
    if (!turn->pace->trusted || is_here || !few) self->few_ms = 0;
    else if (!self->few_ms) self->few_ms = turn->now_ms;
    if (!turn->pace->trusted || is_here || few) {
        self->lost_ms = 0;
        return false;
    }
    const uint64_t since_ms = turn->pace->waited_since ? turn->pace->waited_since(turn) : 0;
    // mutant: windows: who was waited for in vain is waited for again
    if (!self->lost_ms) self->lost_ms = since_ms ? since_ms : turn->now_ms;
    const uint64_t from = run->step;
    char words[WAY_WORDS_MAX];
    if (!is_given_up(self, turn)) return false;
    const bool unread = unread_by_all(&self->unread, turn);
    if (!restore(self, turn, way_back(self, turn, words))) return false;
    self->lost_ms = 0;
    if (unread)
        outbox_note(turn->out,
                    "save.unread step=%" PRIu64 " because=\"%s\"; nobody here can read it", from,
                    self->unread.because);
    outbox_note(turn->out,
                "run.lost_steps count=%" PRIu64 ": no process that held them is left; %s",
                from - run->step, words);
    return true;
}

static void look_cooldown(struct epoch *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    bool pinned = holdings_pin(&self->holdings, turn);
    // The next epoch does not wait until the checkpoint is written. The end of the run and a pause do: the trainers
    // may be stopped then.
    // mutant: a run is finished before its checkpoint is written
    bool goes_on = !all_done(turn) && !run->pausing;
    bool written = holdings_checkpointed(turn);
    bool soon = goes_on && pinned && holdings_are_saved_soon(&self->holdings, turn);
    bool awaited =
        roster_count(&run->roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) > 0 && !written && !soon;
    if (!all_done(turn) && holdings_are_split(&self->holdings, turn)) {
        enter(self, turn, PHASE_PAUSED, split_cause);
        return;
    }
    if (turn->now_ms < turn->presence->deadline_ms && (!pinned || awaited)) return;
    // mutant: a run is finished and nobody has its parameters
    if (all_done(turn) && (!pinned || !holdings_are_kept(&self->holdings, turn))) {
        // A finished run needs a digest and a copy of its parameters: give it more time
        if (turn->now_ms < turn->presence->deadline_ms) return;
        outbox_note(turn->out,
                    "run.unfinished step=%" PRIu64 ": too few members hold the last parameters and "
                    "agree on them; waiting for more. If all copies are lost, %s",
                    run->step,
                    run_has_checkpoint(run) ? "shoal restore goes back to the newest checkpoint"
                    : turn->pace->trusted   ? "this run begins again: it has no checkpoint"
                                            : "begin another run: this one has no checkpoint");
        turn_arm(turn);
        return;
    }
    // mutant: a run is finished while its checkpointer is away
    if (last_writer(turn)) {
        if (turn->now_ms < turn->presence->deadline_ms) return;
        outbox_note(turn->out,
                    "run.unfinished step=%" PRIu64
                    ": the last parameters are in memory alone; waiting for %s, or another "
                    "checkpointer, to write them: is one running, and has its disk room?",
                    run->step, last_writer(turn));
        turn_arm(turn);
        return;
    }
    // Nothing leads out of Finished. Members that spoke within two heartbeats may all have died since (seed 123661:
    // all were killed while the checkpoint was awaited). So without a checkpoint a run finishes only in the turn in
    // which a holder speaks.
    // mutant: a run is finished without a checkpoint while no holder speaks
    if (all_done(turn) && !written &&
        holdings_count(&self->holdings, turn, &run->digest, turn->now_ms) == 0)
        return;
    // mutant: a pause outlives the last step
    uint8_t next = all_done(turn) ? PHASE_FINISHED : run->pausing ? PHASE_PAUSED : PHASE_WAITING;
    const char *cause = !pinned   ? "the time is up, no digest yet"
                        : awaited ? "the time is up, no checkpoint"
                        : written ? "checkpointed"
                        : soon    ? "a checkpoint is being written"
                                  : "no checkpointer to wait for";
    enter(self, turn, next, cause);
}

void epoch_settle(struct epoch *self, void *live, const struct turn *turn)
{
    const char *cause;
    const uint8_t phase = turn->run->phase;
    const bool waits = phase == PHASE_WAITING || phase == PHASE_WARMUP || phase == PHASE_COOLDOWN;
    // mutant: windows: a search of an earlier epoch goes on
    if (!waits) self->lost_ms = self->claimed_ms = 0;
    if (waits && look_lost(self, turn)) return;
    switch (phase) {
    case PHASE_FINISHED:
    case PHASE_PAUSED: break;
    case PHASE_WAITING: look_waiting(self, turn); break;
    case PHASE_WARMUP: look_warmup(self, live, turn); break;
    case PHASE_COOLDOWN: look_cooldown(self, turn); break;
    default: // The phases that make steps belong to the pace
        cause = turn->pace->settle(live, turn);
        if (cause) enter(self, turn, PHASE_COOLDOWN, cause);
    }
}

void epoch_hear_arrival(struct epoch *self, uint32_t member, bool is_new_member)
{
    self->holdings.of[member].known = false; // The old process held it
    unread_forget_member(&self->unread, member);
    if (is_new_member) warmup_forget_member(&self->warmup, member);
}

void epoch_hear_holds(struct epoch *self, const struct turn *turn, const struct msg *in)
{
    holdings_hear(&self->holdings, turn, in);
    // Who could not read the save has got that state from somebody (seed 97010)
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (self->holdings.of[i].known && self->holdings.of[i].step == turn->run->step)
            unread_forget_member(&self->unread, i);
}

// ---- checkpoints and control --------------------------------------------------------------------

void epoch_hear_checkpoint(const struct turn *turn, const struct msg *in)
{
    const struct wire_checkpoint *said = in->body;
    const struct run *run = turn->run;
    uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    bool committed = (said->step == run->digest_step && hash_equal(&said->digest, &run->digest)) ||
                     (said->step == run->pin_step && hash_equal(&said->digest, &run->pin_digest)) ||
                     run_is_end(run, said->step, &said->digest); // Written beside the next epoch
    // mutant: a checkpointer is believed any digest
    if (run->roster.members[member].role != ACTOR_CHECKPOINTER) {
        turn_refuse(turn, in, REFUSAL_WRONG_ROLE, said->step,
                    "only a checkpointer registers checkpoints");
    } else if (!committed || hash_is_none(&said->digest)) {
        turn_refuse(turn, in, REFUSAL_WRONG_MODEL, said->step,
                    "no such digest is on record for step %" PRIu64, said->step);
    } else if (strchr(".-", said->name[0]) || !plain_name(said->name, sizeof said->name - 1)) {
        // It is shown to people in commands and in paths, and its sender may be anybody.
        turn_refuse(turn, in, REFUSAL_MALFORMED, said->step,
                    "the name of a checkpoint has 1 to %zu of " PLAIN_NAME_RULE
                    ", and begins with a letter, a digit or _",
                    sizeof said->name - 1);
    } else {
        // mutant: saves: a checkpoint of a step that is saved in pieces is not registered
        // One of a step that is saved in pieces takes its place: it is what other tools read
        if (said->step > run->checkpoint.step || hash_is_none(&run->checkpoint.digest) ||
            (said->step == run->checkpoint.step && run->checkpoint.pieces)) {
            struct wire_checkpoint record = *said;
            record.pieces = false;
            turn_put(turn, FRAME_RECORD_CHECKPOINT, &record);
            outbox_note(turn->out, "checkpoint.registered step=%" PRIu64 " name=%s", said->step,
                        said->name);
        }
        turn_ack(turn, in, said->step, &said->digest);
    }
}

static void set_pausing(const struct turn *turn, bool pausing)
{
    turn_put(turn, FRAME_RECORD_PAUSE, &(struct wire_record_pause){ pausing });
}

// The newest save or checkpoint. Without one the run can begin again, once no process may come back that holds a later
// step.
static bool begins_again(const struct turn *turn)
{
    // mutant: restore: a run begins again although somebody may hold its state
    return !run_has_checkpoint(turn->run) && turn->pace->trusted &&
           holdings_who_may(turn) == NO_MEMBER;
}

static struct wire_record_restore saved_point(const struct turn *turn)
{
    return begins_again(turn) ? turn->run->first_point : run_restore_point(turn->run);
}

// The same where the newest save may be one that nobody can read. None: nor can anybody read an older one.
static struct wire_record_restore readable_point(const struct epoch *self, const struct turn *turn)
{
    if (!unread_by_all(&self->unread, turn)) return saved_point(turn);
    const struct run_point *older = unread_older(&self->unread, turn);
    return older ? run_point_whole(older) : (struct wire_record_restore){ 0 };
}

// Where a run goes on whose state is lost: at a memory save, unless what is saved is newer or a share of it is gone.
// *ret_words: where that state is.
static struct wire_record_restore way_back(const struct epoch *self, const struct turn *turn,
                                           char ret_words[WAY_WORDS_MAX])
{
    const struct run *run = turn->run;
    const struct wire_record_restore saved = readable_point(self, turn);
    struct way_back way = { .lost = NO_MEMBER };
    const bool in_memory = turn->pace->way_back && turn->pace->way_back(turn, &way);
    // mutant: keeping: a run goes back to an older step than it must
    if (in_memory && (!run_has_checkpoint(run) || way.point.step >= saved.step)) {
        const bool on_disk = run_has_checkpoint(run) && way.point.step == saved.step;
        snprintf(ret_words, WAY_WORDS_MAX, "going on from the memory of the others%s",
                 on_disk ? ", or from the newest save, which is of that step" : "");
        return way.point;
    }
    const char *where = begins_again(turn) ? "there is no checkpoint, and the run begins again"
                        : saved.pieces     ? "going on from disk: the newest save"
                                           : "going on from the newest checkpoint";
    // mutant: older: a run goes back to an older save and does not say so
    if (unread_by_all(&self->unread, turn))
        snprintf(ret_words, WAY_WORDS_MAX, "going on from disk: an older save");
    else if (way.lost == NO_MEMBER) snprintf(ret_words, WAY_WORDS_MAX, "%s", where);
    else
        snprintf(ret_words, WAY_WORDS_MAX,
                 "%s and its buddies are gone, so their memory does not do; %s",
                 run->roster.members[way.lost].name, where);
    return saved;
}

// All copies of the newest steps are lost: the owner says so, or look_lost finds it. The run goes back, and the
// samples of the later steps are todo again. Earlier reports of members are stale.
static bool restore(struct epoch *self, const struct turn *turn, struct wire_record_restore back)
{
    if (hash_is_none(&back.digest) || back.step > turn->run->step) return false;
    // The present step may be saved, and lie in no memory, before a quorum has given it a digest
    // mutant: saves: a save of the present step is no way out
    if (back.step == turn->run->step && run_has_digest(turn->run)) return false;
    if (turn->run->phase == PHASE_WARMUP || is_stuck(self, turn) ||
        (turn->run->phase == PHASE_COOLDOWN && holdings_are_split(&self->holdings, turn)))
        enter(self, turn, PHASE_WAITING, "restore");
    else if (turn->run->phase != PHASE_WAITING && turn->run->phase != PHASE_PAUSED) return false;
    outbox_note(turn->out, "run.restored from_step=%" PRIu64 " to_step=%" PRIu64, turn->run->step,
                back.step);
    // mutant: restore: no new epoch
    back.epoch = turn->run->epoch + 1;
    turn_put(turn, FRAME_RECORD_RESTORE, &back);
    // Who said before that it holds this very step holds it still, and may be the only one (seed 2779)
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (turn->presence->step_held[i] > back.step) turn->presence->step_held[i] = 0;
    holdings_forget(&self->holdings);
    unread_forget(&self->unread);
    turn_arm(turn);
    return true;
}

static void resume(struct epoch *self, const struct turn *turn)
{
    // One that was stopped meanwhile shall not differ for ever: those that are here report again
    if (turn->pace->trusted) holdings_forget(&self->holdings);
    enter(self, turn, PHASE_WAITING, "resume");
}

// Whether the owner's order names a save on record, or none.
static bool restore_to(struct epoch *self, const struct turn *turn, uint64_t step)
{
    if (step == 0) return restore(self, turn, saved_point(turn)); // As it is told
    const struct run_point *point = run_point_at(turn->run, step);
    return point && restore(self, turn, run_point_whole(point));
}

static bool control(struct epoch *self, const struct turn *turn, const struct wire_control *said,
                    const struct msg *in)
{
    const struct run *run = turn->run;
    uint8_t phase = run->phase;
    switch (said->action) {
    case ACTION_PAUSE:
        if (phase == PHASE_PAUSED || phase == PHASE_FINISHED) return false;
        if (phase == PHASE_WAITING || phase == PHASE_WARMUP)
            enter(self, turn, PHASE_PAUSED, "pause");
        else set_pausing(turn, true);
        return true;
    case ACTION_RESUME:
        if (phase == PHASE_PAUSED) resume(self, turn);
        else if (run->pausing) set_pausing(turn, false);
        else return false;
        return true;
    case ACTION_RESTORE: return restore_to(self, turn, said->step);
    case ACTION_CHECKPOINT:
        turn->presence->wants_end = phase_makes_steps(phase);
        for (uint32_t i = 0; i < run->roster.count; i++)
            if (run->roster.members[i].role == ACTOR_CHECKPOINTER && turn_is_live(turn, i))
                outbox_mail(turn->out, run->roster.members[i].name, FRAME_CONTROL, in->body);
        return roster_count(&run->roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) > 0;
    }
    return false;
}

// True if this order is new. A duplicate gets the answer of the first one. `round` of an answer is the number of the
// order that it is for, as it may reach the process that gives the next one. A stale order is refused: there `round` is
// the number of the newest order, which the next one must exceed. Its sender's clock may be behind another's.
static bool is_new_order(struct epoch *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_control *said = in->body;
    if (said->incarnation != turn->run->incarnation)
        turn_refuse(turn, in, REFUSAL_STALE, self->control_number,
                    "a stale order: it was given to incarnation %" PRIu64 ", this is %" PRIu64 "; "
                    "give it again",
                    said->incarnation, turn->run->incarnation);
    else if (said->number < self->control_number)
        turn_refuse(turn, in, REFUSAL_STALE, self->control_number,
                    "a later order has number %" PRIu64 ": give it again with a higher one",
                    self->control_number);
    else if (said->number > self->control_number) return true;
    else if (self->control_done) turn_ack(turn, in, said->number, NULL);
    else
        turn_refuse(turn, in, REFUSAL_NOT_NOW, said->number,
                    "a duplicate: the order was refused before");
    return false;
}

enum { REFUSAL_WORDS_MAX = 192 };

// The saves that a restore can go back to, for people: "300, 200, 100".
static void print_saves(const struct run *run, char *text, size_t max)
{
    const struct wire_older_saves older = run_older_saves(run);
    size_t used = (size_t)snprintf(text, max, "%" PRIu64, run->restore_point.at.step);
    for (unsigned i = 0; i < OLDER_SAVES_MAX && used < max; i++) {
        const struct wire_saved_step *save = older_saves_at(&older, i);
        if (hash_is_none(&save->digest)) break;
        used += (size_t)snprintf(text + used, max - used, ", %" PRIu64, save->step);
    }
}

// Why a restore does not take place now, and what would. `step` as in CONTROL.
static void print_no_restore(const struct turn *turn, uint64_t step, char text[REFUSAL_WORDS_MAX])
{
    const struct run *run = turn->run;
    char saves[96];
    print_saves(run, saves, sizeof saves);
    if (!run_has_checkpoint(run))
        snprintf(text, REFUSAL_WORDS_MAX, "there is no checkpoint to go back to");
    else if (step > 0 && !run_point_at(run, step))
        snprintf(text, REFUSAL_WORDS_MAX,
                 "no save of step %" PRIu64
                 " is on record that a restore can go back to; there are: "
                 "%s",
                 step, saves);
    else if (run->step == (step ? step : run->restore_point.at.step) && run_has_digest(run))
        snprintf(text, REFUSAL_WORDS_MAX,
                 "the run is at step %" PRIu64 " already; --step goes back to an older save. On "
                 "record are: %s",
                 run->step, saves);
    else
        snprintf(text, REFUSAL_WORDS_MAX, "cannot restore in phase %s; shoal pause first",
                 run_phase_name(run->phase));
}

void epoch_hear_control(struct epoch *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_control *said = in->body;
    const char *name = wire_enum_name(&wire_enum_action, said->action);
    if (!key_equal(&in->sender, &turn->rules->owner)) {
        turn_refuse(turn, in, REFUSAL_NOT_ALLOWED, said->number,
                    "only the owner of the run may %s it: sign with the coordinator's key", name);
        return;
    }
    if (!is_new_order(self, turn, in)) return;
    self->control_number = said->number;
    self->control_done = false;
    if (said->action == ACTION_CHECKPOINT &&
        roster_count(&turn->run->roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) == 0)
        turn_refuse(turn, in, REFUSAL_NOT_NOW, said->number,
                    "no checkpointer is in the run; start one");
    else if (!control(self, turn, said, in)) {
        char text[REFUSAL_WORDS_MAX];
        if (said->action == ACTION_RESTORE) print_no_restore(turn, said->step, text);
        else
            snprintf(text, sizeof text, "cannot %s in phase %s", name,
                     run_phase_name(turn->run->phase));
        turn_refuse(turn, in, REFUSAL_NOT_NOW, said->number, "%s", text);
    } else {
        self->control_done = true;
        turn_ack(turn, in, said->number, NULL);
    }
}
