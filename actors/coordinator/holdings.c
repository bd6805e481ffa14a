// holdings -- counts reports, and what PINGs say.
//
// 1. A report (HOLDS) counts if its trainer is here and not doubted by the pace (speaks).
// 2. Among strangers two thirds of the live trainers must name one digest; where members trust one
//    another, more than half of the reports. holdings_pin records it, and the run is bound to it.
// 3. The rest asks whether the newest step lives on: in whose memory, or as a checkpoint.

#include "actors/coordinator/holdings.h"
#include "actors/coordinator/news.h"
#include "common/pace/turn.h"
#include "common/run/quorum.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- reports -----------------------------------------------------------------------------------

bool holdings_have(const struct holdings *self, const struct turn *turn, uint32_t member,
                   const struct hash *digest)
{
    const struct holding *holding = &self->of[member];
    return holding->known && holding->step == turn->run->step &&
           hash_equal(&holding->digest, digest);
}

// In a Cooldown with fewer than min_clients healthy trainers, those that returned and wait count
// too: after the last step no further epoch would admit them. Where members trust one another they count there however
// many are healthy: newer processes may have taken the places of those that held the step.
static bool returned_speak(const struct turn *turn)
{
    const uint32_t healthy = roster_count(&turn->run->roster, ACTOR_TRAINER, MEMBER_HEALTHY);
    const bool is_last = turn->run->step >= turn->rules->total_steps;
    // mutant: leases: who returned with the last step has no say beside those that never held it
    return turn->run->phase == PHASE_COOLDOWN &&
           (healthy < turn->rules->min_clients || (turn->pace->trusted && is_last));
}

// It is not known yet which digest the run has, and this member's is none that can be right.
static bool is_doubted(const struct turn *turn, uint32_t member)
{
    return !run_has_digest(turn->run) && pace_is_doubted(turn, member);
}

// Whether this member's report counts for the digest of the present step.
static bool speaks(const struct turn *turn, uint32_t member)
{
    const struct wire_member *place = &turn->run->roster.members[member];
    const bool pending_speak = turn->run->phase == PHASE_PAUSED || returned_speak(turn);
    // mutant: a checkpointer speaks for the trainers
    return role_takes_steps(place->role) &&
           (place->state == MEMBER_HEALTHY || (place->state == MEMBER_PENDING && pending_speak)) &&
           !is_doubted(turn, member);
}

uint32_t holdings_count(const struct holdings *self, const struct turn *turn,
                        const struct hash *digest, uint64_t since_ms)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (speaks(turn, i) && holdings_have(self, turn, i, digest) &&
            turn->presence->heard_ms[i] >= since_ms)
            count++;
    return count;
}

// If more than half of the counted reports for the present step name one digest, this is it; NULL
// without reports. The caller counts its holders (the majority of Boyer and Moore, 1981).
static const struct hash *candidate_digest(const struct holdings *self, const struct turn *turn)
{
    const struct hash *candidate = NULL;
    uint32_t lead = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        const struct holding *holding = &self->of[i];
        if (!speaks(turn, i) || !holding->known || holding->step != turn->run->step) continue;
        if (lead == 0) candidate = &holding->digest;
        lead += hash_equal(candidate, &holding->digest) ? 1 : UINT32_MAX;
    }
    return candidate;
}

// Where members trust one another, a few may be all that hold the newest step: they need no quorum.
// The others are waited for until the phase's time is up. But once one that took part in that step has
// reported, from then on only those that took part in it are waited for: a process that began later holds nothing,
// and can fetch nothing before the pin. Returns how many reports there are; 0: too few.
static uint32_t trusted_reports(const struct holdings *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    uint32_t reports = 0, missing = 0, began_later = 0;
    bool knew = run->phase == PHASE_COOLDOWN;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const bool holds_step = self->of[i].known && self->of[i].step == run->step;
        const bool took_part = pace_took_part(turn, i);
        if (!speaks(turn, i)) continue;
        knew |= holds_step && took_part;
        if (holds_step) reports++;
        else if (took_part) missing++;
        else began_later++;
    }
    if (!knew) missing += began_later;
    const bool is_late = turn->now_ms >= turn->presence->deadline_ms;
    return missing == 0 || is_late || run->phase == PHASE_PAUSED ? reports : 0;
}

bool holdings_are_split(const struct holdings *self, const struct turn *turn)
{
    if (!turn->pace->trusted || run_has_digest(turn->run)) return false;
    const uint32_t reports = trusted_reports(self, turn);
    const struct hash *digest = candidate_digest(self, turn);
    // mutant: windows: a run without a majority goes on
    return reports > 1 && (!digest || 2 * holdings_count(self, turn, digest, 0) <= reports);
}

void holdings_print_sides(const struct holdings *self, const struct turn *turn, char *text,
                          size_t max)
{
    const struct run *run = turn->run;
    size_t used = (size_t)snprintf(
        text, max, "no majority holds the same state of step %" PRIu64 ":", run->step);
    bool named[MEMBERS_MAX] = { false };
    for (uint32_t i = 0; i < run->roster.count && used < max; i++) {
        if (named[i] || !speaks(turn, i) || !holdings_have(self, turn, i, &self->of[i].digest))
            continue;
        const char *between = memchr(named, true, sizeof named) ? " |" : "";
        for (uint32_t j = i; j < run->roster.count && used < max; j++) {
            if (!speaks(turn, j) || !holdings_have(self, turn, j, &self->of[i].digest)) continue;
            used += (size_t)snprintf(text + used, max - used, "%s %s", between,
                                     run->roster.members[j].name);
            named[j] = true;
            between = "";
        }
    }
    const char *resume = run->phase == PHASE_PAUSED ? ", then shoal resume" : "";
    // mutant: windows: the owner is told to stop all, and there is no checkpoint
    const bool may_go_back = run_has_checkpoint(run);
    if (used < max)
        snprintf(text + used, max - used, "; test their memory and stop the wrong ones%s%s", resume,
                 may_go_back ? ", or shoal restore" : "; leave one, as there is no checkpoint");
}

// Where some may lie, two thirds of the live trainers must have reported. Returns how many live; 0: too
// few of them have, or fewer than min_clients live: so few decide nothing for the run.
static uint32_t quorum_reports(const struct holdings *self, const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    uint32_t live = roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY);
    if (returned_speak(turn)) live += roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING);
    // mutant: a trainer that is left alone speaks for the run
    if (live < turn->rules->min_clients ||
        3 * (uint64_t)holdings_reports(self, turn->run) < 2 * (uint64_t)live)
        return 0;
    return live;
}

// How many members may report something false.
static uint32_t liars(const struct turn *turn, uint32_t members)
{
    return turn->pace->trusted ? 0 : quorum_liars(members);
}

bool holdings_pin(struct holdings *self, const struct turn *turn)
{
    struct run *run = turn->run;
    if (run_has_digest(run)) return true;
    const uint32_t live =
        turn->pace->trusted ? trusted_reports(self, turn) : quorum_reports(self, turn);
    if (live == 0) return false;
    const struct hash *digest = candidate_digest(self, turn);
    const uint64_t holders = digest ? holdings_count(self, turn, digest, 0) : 0;
    if (turn->pace->trusted ? 2 * holders <= live : 3 * holders < 2 * (uint64_t)live) return false;
    struct wire_epoch_end end = news_epoch_end(turn, run->epoch, digest);
    turn_put(turn, FRAME_RECORD_EPOCH_END, &end);
    self->pinned_ms = turn->now_ms;
    outbox_news(turn->out, FRAME_EPOCH_END, &end);
    char hex[HASH_HEX];
    outbox_note(turn->out, "digest.pinned step=%" PRIu64 " digest=%.16s", end.step,
                hash_to_hex(&end.digest, hex));
    return true;
}

void holdings_hear(struct holdings *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_holds *said = in->body;
    const struct run *run = turn->run;
    uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    if (said->step == run->digest_step && !hash_is_none(&run->digest) &&
        !hash_equal(&said->digest, &run->digest)) {
        char hex[HASH_HEX];
        turn_refuse(turn, in, REFUSAL_WRONG_MODEL, said->step,
                    "the digest of step %" PRIu64 " is %s; fetch "
                    "the intervals that differ",
                    said->step, hash_to_hex(&run->digest, hex));
        return;
    }
    // What a restore gave up does not count: the run may get to its step with other bits, and may have done so
    // by the time a late report comes (seed 1007)
    // mutant: restore: what was held before it counts
    const bool is_given_up = run_gave_up(run, said->step, said->epoch);
    if (said->step > run->step + pace_ahead(turn) || is_given_up) {
        turn_refuse(turn, in, REFUSAL_STALE, said->step,
                    "the run knows no step %" PRIu64 " of epoch %" PRIu64 "; it is at step %" PRIu64
                    " of epoch %" PRIu64,
                    said->step, said->epoch, run->step, run->epoch);
        return;
    }
    struct holding *holding = &self->of[member];
    const bool is_late = holding->known && in->seq < holding->seq;
    if (!is_late) *holding = (struct holding){ said->step, said->digest, true, in->seq };
    turn_ack(turn, in, said->step, &said->digest);
}

uint32_t holdings_reports(const struct holdings *self, const struct run *run)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->roster.count; i++)
        count += self->of[i].known && self->of[i].step == run->step;
    return count;
}

void holdings_forget(struct holdings *self)
{
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) self->of[i].known = false;
}

// ---- does the newest step live on? --------------------------------------------------------------

bool holdings_saved(const struct turn *turn)
{
    const struct run *run = turn->run;
    return run->checkpoint.step == run->step && hash_equal(&run->checkpoint.digest, &run->digest);
}

bool holdings_checkpointed(const struct turn *turn)
{
    // mutant: saves: a run is finished without a checkpoint that other tools read
    return holdings_saved(turn) && !turn->run->checkpoint.pieces;
}

bool holdings_are_saved_soon(const struct holdings *self, const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    bool soon = false;
    for (uint32_t i = 0; i < roster->count; i++)
        soon |= roster->members[i].role == ACTOR_CHECKPOINTER &&
                roster->members[i].state == MEMBER_HEALTHY &&
                holdings_have(self, turn, i, &turn->run->digest);
    return soon;
}

// Members that are here, keep parameters, and hold the newest step by their reports, if `self` has them, or by their
// PINGs, if `heeds_pings`.
static bool enough_say(const struct holdings *self, bool heeds_pings, const struct turn *turn)
{
    const struct run *run = turn->run;
    uint32_t holders = 0;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        // Behind its report a member may have given all but its part away again
        const bool has_part = turn->pace->has_part && turn->pace->has_part(turn, i);
        const bool reports =
            self && self->of[i].known && self->of[i].step == run->step && !has_part;
        holders += interval_length(pace_held_by(turn, i)) > 0 && !is_doubted(turn, i) &&
                   (reports || (heeds_pings && turn->presence->step_held[i] >= run->step));
    }
    return holders > liars(turn, roster_trainers(&run->roster, run->number));
}

bool holdings_most_have(const struct turn *turn)
{
    uint32_t have = 0, heard = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        const struct wire_member *member = &turn->run->roster.members[i];
        // mutant: those who wait for an epoch do not count among those that hold the step
        if (!role_takes_steps(member->role) || !turn->presence->pinged[i] ||
            !roster_is_here(member))
            continue;
        heard++;
        have += turn->presence->step_held[i] >= turn->run->step && !is_doubted(turn, i);
    }
    return 2 * have > heard;
}

bool holdings_somebody_has(const struct turn *turn) { return enough_say(NULL, true, turn); }

bool holdings_somebody_says(const struct holdings *self, const struct turn *turn)
{
    return enough_say(self, true, turn);
}

bool holdings_somebody_reports(const struct holdings *self, const struct turn *turn)
{
    return enough_say(self, false, turn);
}

bool holdings_are_kept(const struct holdings *self, const struct turn *turn)
{
    const uint64_t recent_ms = 2 * (uint64_t)turn->rules->heartbeat_ms;
    uint64_t since_ms = turn->now_ms > recent_ms ? turn->now_ms - recent_ms : 0;
    // One holder is enough where none lies; but all may have died since they reported it.
    if (turn->pace->trusted && self->pinned_ms >= since_ms) since_ms = self->pinned_ms + 1;
    uint32_t speakers = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) speakers += speaks(turn, i);
    return holdings_checkpointed(turn) ||
           holdings_count(self, turn, &turn->run->digest, since_ms) > liars(turn, speakers);
}

uint32_t holdings_who_may(const struct turn *turn)
{
    const struct run *run = turn->run;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct wire_member *member = &run->roster.members[i];
        const bool has_left = member->state == MEMBER_WITHDRAWN || member->state == MEMBER_EJECTED;
        const bool trains = role_takes_steps(member->role);
        const bool knew = trains && pace_took_part(turn, i);
        if (has_left || is_doubted(turn, i) || (!trains && member->role != ACTOR_CHECKPOINTER))
            continue;
        const bool has_part = turn->pace->has_part && turn->pace->has_part(turn, i);
        const bool had_it = turn->presence->step_held[i] >= run->step && !has_part;
        // A process that was dropped before the newest two windows had no part in their steps. After a restart of the
        // coordinator it has said nothing, as it may have died long ago.
        const bool is_old =
            member->state == MEMBER_DROPPED && member->dropped_number + 1 < run->number;
        // It was left out of a later window, and can make the step all the same (seed 64099)
        const bool is_near = trains && turn->pace->is_near && turn->pace->is_near(turn, i);
        // mutant: windows: who can make the newest step is not waited for
        if (is_near) return i;
        // mutant: windows: a process that may come back is not waited for
        if (knew || (!turn->presence->pinged[i] && !is_old) || had_it) return i;
    }
    return NO_MEMBER;
}
