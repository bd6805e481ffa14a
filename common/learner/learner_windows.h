#pragma once
// learner_windows -- what the files of the strategy `allreduce` share: learner_windows.c, which hears
// what the core says of windows, learner_step.c, which takes one step, learner_squares.c, the pieces of
// its norm, learner_check.c, the check of the state before it, learner_late.c, which says who was late
// in it, learner_pieces.c, the saves after it, learner_shares.c, what `sharded` adds, and learner_windows_copies.c, its
// copies in memory; for them alone.

#include "common/group/group.h"
#include "common/learner/learner_copies.h"
#include "common/learner/learner_inside.h"
#include "common/learner/learner_saver.h"
#include "common/run/holder.h"
#include "common/run/lateness.h"
#include <limits.h>

enum { EARLY_MAX = 2048 }; // Bytes of a HAVE without squares, or with those of a few shares

// A window as the core gave it; its lists lie behind it in one piece of memory.
struct learner_window {
    struct wire_take_window said;
    struct group_member members[GROUP_MEMBERS_MAX];
};

// The saves of a run, in pieces (learner_pieces.c).
struct learner_pieces {
    struct learner_saver saver;
    uint64_t taken,
        taken_window; // The newest step of which our part was taken, and in which window; 0: none
    bool somebody_writes; // By the words of the step in hand, a member still writes an earlier save
};

// The copies of our share in memory (learner_windows_copies.c).
struct learner_window_copies {
    struct learner_copies of;
    uint64_t copied, copied_window;       // The newest that was made
    uint32_t place;                       // Ours, when it was
    struct hash lists[GROUP_MEMBERS_MAX]; // By place, of those in `listed`
    uint64_t listed;
    bool told; // LISTED
    // By the words of the step in hand, a member has a copy that is not on record
    bool somebody_waits;
};

// Whether the same processes are in the same places. `a` NULL: no.
bool learner_same_group(const struct learner_window *a, const struct learner_window *b);

struct learner_window_work {
    struct wire_windows_config config;
    struct learner_pieces pieces;
    struct learner_window_copies copies;
    group_t *group;
    struct wire_links links; // What was answered last: where our links end, and which stand
    // The newest list of trainers to link with, taken up between two steps. number 0: it has been.
    uint64_t expect_number;
    struct group_member expect[GROUP_MEMBERS_MAX];
    uint32_t expect_count;
    bool idle;                         // There is no step to take: any job ends the wait
    struct learner_window *now, *next; // NULL: none. The next one follows the one in hand
    bool formed;                       // The group is that of the window in hand
    bool placed;                       // Its places are: it was formed, or could not be
    uint64_t sums; // Sums of that group in this window so far: the number of the next
    bool ends;     // Somebody knows no window behind the step in hand, its last one
    // We hold share `owner` of `owners` of the moments; owners 0: none yet. OWNER_NONE: we own none.
    uint32_t owner, owners;
    bool lost;           // Our share of the moments is not here
    struct why lost_why; // Because
    bool waits;          // It is frozen or broken: nothing is done until the core closes the window
    struct holder holder;
    struct hash *check_leaves;             // Room for those that the check of a step hashes
    uint64_t samples_done;                 // At that step
    uint32_t batch;                        // Of that step
    float *more[LANE_NODES_MAX];           // Vectors for the member's nodes after the first
    struct group_sum sum;                  // Of that step
    uint64_t waited_us[GROUP_MEMBERS_MAX]; // In it, for each member (group_sum)
    const float *nodes[LANE_NODES_MAX];
    bool adding;              // The sum has begun, and our last node is still being computed
    double losses[LANES_MAX]; // Of each lane: the sum over its samples
    double *squares;          // Of each piece of the whole gradient
    uint64_t squares_count;
    uint64_t squares_left[GROUP_MEMBERS_MAX]; // That a member has not told yet
    bool has_squares;                         // All are known here: nobody has to tell them
    uint8_t *word, *told;                     // Room for a HAVE, and for its squares
    struct wire_arena heard;                  // And for one that was heard
    // HAVE of the step after the one in hand, of each member, as they came; 0: none.
    uint8_t early[GROUP_MEMBERS_MAX][EARLY_MAX];
    uint16_t early_count[GROUP_MEMBERS_MAX];
    uint64_t told_us;                 // When the newest STEPPED was said
    uint64_t began_us;                // The step in hand
    uint64_t computed_us, applied_us; // How long our part of it took, and applying the sum
    uint64_t tried;                   // 1 + the step that was begun last; 0: none
    bool again;      // The step in hand was begun before: our part is looked at before it is sent
    uint8_t unsound; // UNSOUND_ of the step in hand
    struct lateness lateness;            // In microseconds
    uint8_t late_row[GROUP_MEMBERS_MAX]; // Steps in a row that the member was late
    uint32_t late;                       // 1 + the place of the one that is late; 0: nobody is
    uint32_t late_ms, usual_ms;          // What its part took, and those of the others
};

// The fewest members that a group of this run has, as far as that is known; at least 1.
static inline uint32_t learner_members_least(const struct learner *self)
{
    const uint32_t least = self->window->config.members_least;
    return least ? least : 1;
}

// Without servers each member of a window computes lanes and owns a share. With `servers` of the run's configuration
// the last places of a window are servers, which own the shares. The places before them are trainers, which compute.

// Our share in this window.
struct learner_owner learner_owner_in(const struct learner *self,
                                      const struct wire_take_window *window);

// How many members of the window in hand compute: the first ones.
static inline uint32_t learner_computers(const struct learner *self)
{
    return self->window->now->said.group_count - self->window->config.servers;
}

// The lanes of a member; none of one that does not compute.
struct lane_node learner_lanes(const struct learner *self, uint32_t place);

// A sum of the window in hand, of so many floats, with the next number. What else it has is the caller's.
struct group_sum learner_sum(struct learner *self, enum group_way way, uint64_t floats);

// Takes one step of the window in hand: applies it, then saves and copies what is due. self->step moves when it is
// applied, also if a fault comes behind that. FAULT_INTERRUPTED: a job waits. Any other fault: the window is broken;
// `unsound` says whether that is because the step is void.
int learner_step(struct learner *self, struct why *why, struct group_blame *ret_blame);

// The check of our state as it is now, for HAVE of self->step (learner_check.c).
int learner_step_check(struct learner *self, struct why *why, struct hash *ret_check);

// Applies the summed gradient that is here. Of a step that all holders have.
int learner_step_apply(struct learner *self, struct why *why);

// Of a step whose sum is here, and that another member has applied: hears the squared norms of the shares that have
// not been told yet. Whoever has applied it has told them to all before. Up to two seconds.
int learner_step_hear_out(struct learner *self, struct why *why);

// The members that are late, by the rule of common/run/lateness.h.
// learner_late_open: once, when the run's configuration is known.
// learner_late_begin: before `next` replaces the window in hand. Another group begins without a late member.
// learner_late_note: after each sum. We computed for computed_us; then the sum waited waited_us[i] for member i.
void learner_late_open(struct learner_window_work *work);
void learner_late_begin(struct learner_window_work *work, const struct learner_window *next);
void learner_late_note(struct learner *self, uint64_t computed_us, const uint64_t *waited_us);

// The saves. _check: whether the shared folder serves. _memory: what a copy of a share takes. _begin: a window has begun.
// _is_busy: an earlier save is being written here. _stepped: a step has been applied that all have told; saves if one is
// due, and the step's HAVE of all said that nobody writes. _has_ended: one has, and _look says what became of it. _close: waits
// for it.
int learner_pieces_check(const struct learner *self, struct why *why);
uint64_t learner_pieces_memory(const struct learner *self, struct interval share);
void learner_pieces_begin(struct learner *self, const struct wire_take_window *window);
bool learner_pieces_is_busy(struct learner *self);
void learner_pieces_stepped(struct learner *self);
bool learner_pieces_has_ended(const struct learner *self);
void learner_pieces_look(struct learner *self);
void learner_pieces_close(struct learner *self);

// Copies of our share in memory. _memory: the most that they take in a group of so many. _begin: a window has begun.
// _step: a step begins. _tell, _hear: its HAVE. _stepped: it is applied; copies, if that is due. _look: has the newest
// copy been hashed? _kept: a memory save is on record. _close: the run's end.
uint64_t learner_window_copies_memory(const struct learner *self, uint32_t members);
void learner_window_copies_begin(struct learner *self, const struct wire_take_window *window);
void learner_window_copies_step(struct learner *self);
void learner_window_copies_tell(struct learner *self, struct wire_have *have);
void learner_window_copies_hear(struct learner *self, uint32_t from, const struct wire_have *have);
void learner_window_copies_stepped(struct learner *self);
void learner_window_copies_look(struct learner *self);
void learner_window_copies_kept(struct learner *self, const struct wire_kept *said);
void learner_window_copies_close(struct learner *self);

// Shares of the state, with `sharded` and `server` (learner_shares.c). With `allreduce` the actions do nothing, _part is
// the whole vector, _has is true, and _memory has the saves alone.
// _begin: a window has begun; takes up our share, if all of the state is here. Else, if the share is another one, the
// state is lost. _part: the floats whose sum we need. _gather: the parameters, before a step. _applied: one has been.
// _has: all is here to apply the step in memory. _close: gathers all of the state, if the group ends here.
bool learner_shares_are_on(const struct learner *self);
void learner_shares_begin(struct learner *self, const struct wire_take_window *window);
struct interval learner_shares_part(const struct learner *self);
int learner_shares_gather(struct learner *self, struct why *why, struct group_blame *ret_blame);
void learner_shares_applied(struct learner *self);
bool learner_shares_has(const struct learner *self);
int learner_shares_close(struct learner *self, struct why *why, struct group_blame *ret_blame);
// What depends on the number of members: the moments, if they are shared out, and room for saves.
struct learner_shares_memory {
    uint64_t moments, saves;
};
struct learner_shares_memory learner_shares_memory(struct learner *self, uint32_t members);

// What is to be told of the squares of the step whose sum is work->sum.
void learner_squares_begin(struct learner *self);
uint64_t learner_squares_of(const struct learner *self, uint32_t member); // How many it measures
double learner_squares_sum(const struct learner *self, uint32_t member);  // Their sum
// Squares `at` of those that a member measures, counted through all buckets: from our table to the bytes
// of a HAVE (8 each), or back. `at` lies within [0, learner_squares_of), or the process ends.
enum squares_way { SQUARES_TELL, SQUARES_TAKE };
void learner_squares_move(struct learner *self, uint32_t member, struct interval at,
                          enum squares_way way, uint8_t *bytes);
