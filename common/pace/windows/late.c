// late -- whose word counts, and the sentence.

#include "common/pace/windows/late.h"
#include "common/pace/windows/window.h"
#include "common/pace/windows/windows_run.h"
#include <inttypes.h>
#include <stdio.h>

// The late member, by the word of one that is in its group. NO_MEMBER: it names nobody.
static uint32_t member_of(const struct run *run, uint32_t by, const struct wire_stands *said)
{
    const struct wire_window *first = windows_first(run), *newest = windows_newest(run);
    // Places are those of the window that it names: a trainer may have entered the one behind
    const struct wire_window *window = said->window == newest->number ? newest : first;
    if (windows_run_of(run)->open == 0 || said->window < first->number ||
        said->window > newest->number || said->late == 0 || said->late > window->group_count ||
        window_place(window, by, said->instance) == NO_MEMBER)
        return NO_MEMBER;
    const uint32_t member = window->group[said->late - 1].member;
    return member == by ? NO_MEMBER : member;
}

void late_hear(struct late *self, const struct turn *turn, uint32_t by,
               const struct wire_stands *said)
{
    const struct wire_member *members = turn->run->roster.members;
    const uint32_t member = member_of(turn->run, by, said);
    if (self->words[0] && self->by == by && self->member != member) late_forget(self);
    if (self->words[0] || member == NO_MEMBER) return;
    self->by = by;
    self->member = member;
    snprintf(self->words, sizeof self->words,
             "%s is late: its part of a step took %.3g s, those of the others %.3g s",
             members[member].name, said->late_ms / 1000.0, said->usual_ms / 1000.0);
    const uint32_t limit_ms = windows_config(turn->rules)->step_timeout_ms;
    // mutant: windows: a member that always names another as late fills the log
    if (self->noted_ms && turn->now_ms - self->noted_ms < limit_ms) return;
    self->noted_ms = turn->now_ms;
    outbox_note(turn->out,
                "member.late name=%s by=%s took_ms=%" PRIu32 " others_ms=%" PRIu32
                "; it is left out when a step takes longer than step_timeout",
                members[member].name, members[by].name, said->late_ms, said->usual_ms);
}

bool late_is_said(const struct late *self, uint32_t member)
{
    return self->words[0] && self->member == member;
}

void late_forget(struct late *self) { self->words[0] = 0; }

const char *late_words(const struct late *self) { return self->words[0] ? self->words : NULL; }
