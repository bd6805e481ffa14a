#pragma once
// windows_member -- what the files of the member's half share: windows_member.c, which takes, follows and ends
// windows, windows_member_hear.c, which notes what the coordinator and the learner say, and windows_member_keep.c, its
// part of memory saves.
//
// Pure; one thread.

#include "common/member/keeper.h"
#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include "common/pace/windows/window.h"

struct windows_member {
    struct window kept[2]; // The two newest that were told: window N is at N % 2
    // The newest closing: windows `closed_from` to `closed` ended at `closed_at`. 0: none is known.
    uint64_t closed_from, closed, closed_at;
    uint64_t frozen, done; // Windows up to these are not begun (again)

    // The trainers to link with, as the newest LINKING has them, and the list that the learner was given. 0: none.
    uint64_t linking, expecting;
    uint32_t trainers_count;
    struct wire_place trainers[WINDOW_MEMBERS_MAX];

    // The windows in hand at the learner; first 0: none.
    uint64_t first, newest; // The windows that it has been given
    uint64_t first_step;    // Where the first of them begins
    uint64_t newest_end;    // Where the last of them ends
    uint64_t epoch;         // The epoch of that window
    bool closing;           // CLOSE_WINDOW is under way
    // The window in hand ended, and its end could not be reached or the run was further; no window was begun since
    bool lost;
    bool is_frozen; // The learner applies nothing more
    // Once it is frozen, enum commit: of the step that it applied last, and of the one that it has, and has not applied.
    uint8_t applied, memory;

    struct wire_stands stands; // The next STANDS; its `links` are kept when a window ends
    uint64_t level;            // The newest LEVEL; 0: none
    bool freezing;             // FREEZE is under way
    bool is_stopping;          // The learner was told that the group is to end
    uint64_t say_ms, ask_ms;

    struct keeper keeper;
};

// Whether a step was committed as one of the windows in hand.
enum commit { IS_OPEN, IS_THE_RUNS, IS_NOT_THE_RUNS };

// A window that was told. NULL: this one was not, or a later one has its place.
static inline const struct wire_window *windows_member_kept(const struct windows_member *self,
                                                            uint64_t number)
{
    const struct wire_window *window = &self->kept[number % 2].frame;
    return number && window->number == number ? window : NULL;
}

// Its number is 0 if none was.
static inline const struct wire_window *windows_member_newest(const struct windows_member *self)
{
    const struct wire_window *a = &self->kept[0].frame, *b = &self->kept[1].frame;
    return a->number > b->number ? a : b;
}

static inline bool windows_member_in_hand(const struct windows_member *self)
{
    return self->first > 0;
}

// The place of this process in the group; NO_MEMBER (UINT32_MAX): it is not in it.
static inline uint32_t windows_member_place(const struct wire_window *window,
                                            const struct member *member)
{
    return window_place(window, member->index, member->instance);
}

// Asks the learner to apply nothing more, and to say where exactly it stands (FROZEN).
void windows_member_freeze(struct windows_member *self, const struct member_turn *turn);

// Takes the message of this turn, if it concerns windows. Only for a member that takes steps (role_takes_steps) and has
// a replica.
void windows_member_hear(struct windows_member *self, const struct member_turn *turn);

// Takes what the learner and the fetcher say of memory saves.
void windows_member_keep_hear(struct windows_member *self, const struct member_turn *turn);

// Takes a WINDOW: of any role.
void windows_member_hear_window(struct windows_member *self, const struct member_turn *turn);
