// unread -- a word counts for the save that it names, as long as the run is at that save. A restore ends all words: the
// run may reach that step again, with the same digest, and write a new save of it (seed 52176).

#include "actors/coordinator/unread.h"
#include "common/pace/pace.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// The run is at the newest save on record, and it is in pieces.
static bool is_at_save(const struct run *run)
{
    const struct wire_record_restore *newest = &run->restore_point.at;
    return newest->pieces && newest->step == run->step && run_has_digest(run) &&
           hash_equal(&newest->digest, &run->digest);
}

void unread_hear(struct unread *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_unread *said = in->body;
    const struct run *run = turn->run;
    const uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    if (!role_takes_steps(run->roster.members[member].role)) {
        turn_refuse(turn, in, REFUSAL_WRONG_ROLE, said->step,
                    "only a trainer or a parameter server reads saves");
        return;
    }
    // mutant: older: a save that the run has left is given up
    if (!is_at_save(run) || said->step != run->step || !hash_equal(&said->digest, &run->digest)) {
        turn_refuse(turn, in, REFUSAL_STALE, said->step,
                    "the run is not at a save of step %" PRIu64 " with this digest", said->step);
        return;
    }
    self->of[member].step = said->step;
    self->of[member].digest = said->digest;
    self->of[member].readable = said->readable;
    self->newest = member;
    memcpy(self->because, said->because, sizeof self->because);
    turn_ack(turn, in, said->step, &said->digest);
}

void unread_forget_member(struct unread *self, uint32_t member)
{
    self->of[member].digest = (struct hash){ { 0 } };
}

void unread_forget(struct unread *self)
{
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) unread_forget_member(self, i);
}

static bool is_here(const struct turn *turn, uint32_t member)
{
    const struct wire_member *place = &turn->run->roster.members[member];
    return role_takes_steps(place->role) && turn->presence->pinged[member] && roster_is_here(place);
}

static bool says_so(const struct unread *self, const struct run *run, uint32_t member)
{
    return is_at_save(run) && self->of[member].step == run->step &&
           hash_equal(&self->of[member].digest, &run->digest);
}

static uint32_t count_speakers(const struct unread *self, const struct turn *turn,
                               uint32_t *ret_here)
{
    uint32_t speakers = 0;
    *ret_here = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        if (!is_here(turn, i)) continue;
        *ret_here += 1;
        speakers += says_so(self, turn->run, i);
    }
    return speakers;
}

// All that are here have been heard just now: one may have got the state since it said that it cannot read the save, and
// the broker was down (seed 97010).
static bool are_heard(const struct turn *turn)
{
    const uint64_t recent_ms = 2 * (uint64_t)turn->rules->heartbeat_ms;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (is_here(turn, i) && turn->now_ms > turn->presence->heard_ms[i] + recent_ms)
            return false;
    return true;
}

bool unread_by_all(const struct unread *self, const struct turn *turn)
{
    uint32_t here;
    const uint32_t speakers = count_speakers(self, turn, &here);
    // mutant: older: words of members that have not been heard since count
    if (!are_heard(turn)) return false;
    // mutant: older: one that cannot read the newest save takes the run back
    return speakers > 0 && speakers == here;
}

const struct run_point *unread_older(const struct unread *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct run_point *back = NULL;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        if (!is_here(turn, i) || !says_so(self, run, i) || self->of[i].readable >= run->step)
            continue;
        const struct run_point *point = run_point_at(run, self->of[i].readable);
        // mutant: older: a run goes back further than it must
        if (point && (!back || point->at.step > back->at.step)) back = point;
    }
    return back;
}

// The first trainer that is here and has not said UNREAD. It is still reading the save, or it holds the state.
static const char *first_silent(const struct unread *self, const struct turn *turn)
{
    uint32_t i = 0;
    while (i < turn->run->roster.count && (!is_here(turn, i) || says_so(self, turn->run, i))) i++;
    return i < turn->run->roster.count ? turn->run->roster.members[i].name : "nobody";
}

char *unread_print(const struct unread *self, const struct turn *turn, char *text, size_t max)
{
    const struct run *run = turn->run;
    uint32_t here;
    const uint32_t speakers = count_speakers(self, turn, &here);
    text[0] = 0;
    if (speakers == 0) return text;
    uint32_t speaker = self->newest; // It may have begun again since
    const bool is_known = is_here(turn, speaker) && says_so(self, run, speaker);
    for (speaker = is_known ? speaker : 0; !is_here(turn, speaker) || !says_so(self, run, speaker);)
        speaker++;
    const char *name = run->roster.members[speaker].name;
    const char *because = is_known ? self->because : "its log says why";
    const struct run_point *older = unread_older(self, turn);
    if (speakers < here)
        snprintf(text, max,
                 "%s cannot read the save of step %" PRIu64
                 " (%u of %u say so), %s has not said yet: %s",
                 name, run->step, speakers, here, first_silent(self, turn), because);
    else if (!older)
        snprintf(text, max,
                 "nobody can read the save of step %" PRIu64 ", nor an older one; put it back from "
                 "a copy. %s: %s",
                 run->step, name, because);
    else
        snprintf(text, max,
                 "nobody here can read the save of step %" PRIu64 "; soon back to step %" PRIu64
                 ". %s: %s",
                 run->step, older->at.step, name, because);
    return text;
}
