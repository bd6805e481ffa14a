#pragma once
// lateness -- who is late: one rule for windows and rounds.
//
// A *turn* is what all members do once and wait for: a step of a window, a round. Of each member it
// is known how long it took, in a unit of the caller's (milliseconds, say). Then
//
//     median    of a turn: the lower median of what its members took
//     usual     the lower median of the medians of the newest LATENESS_TURNS turns before it
//     limit     3 x usual, at least `floor`, at most `ceiling`; `ceiling` until LATENESS_FIRST
//               turns are known
//     late      took > limit, and took > 3 x median: where all are slow, nobody is late
//     is said   late in two turns in a row; once, until it is on time again
//
// The median is that of the members, not the mean: up to half of them may be late and change
// nothing. `floor` keeps the noise of a busy machine out: of turns that take milliseconds, a member
// that is held up for a tenth of a second now and then is nobody's concern.
//
// Nobody is put out here. In windows the learner tells each turn (lateness_turn); in rounds each witness
// does not wait for who is late (lateness_from). Pure; a value; any thread, one at a time.

#include <stdbool.h>
#include <stdint.h>

enum {
    LATENESS_TIMES = 3,  // So many medians
    LATENESS_ROW = 2,    // So many turns in a row
    LATENESS_TURNS = 16, // That are remembered
    LATENESS_FIRST = 3,  // Turns before `usual` is known
    LATENESS_MEMBERS_MAX = 16384,
};

// What a member took that had no part in a turn: it is not judged, and does not count.
#define LATENESS_NO_PART UINT32_MAX

struct lateness {
    uint32_t floor, ceiling;
    uint32_t medians[LATENESS_TURNS]; // A ring
    uint64_t turns; // All that were told; the next one goes to turns % LATENESS_TURNS
};

// floor <= ceiling.
void lateness_init(struct lateness *self, uint32_t floor, uint32_t ceiling);

uint32_t lateness_limit(const struct lateness *self);

// In a turn with this median, who takes longer than this is late: UINT32_MAX is nobody.
uint32_t lateness_from(const struct lateness *self, uint32_t median);

// A turn is over, and its median is all that the caller needs to tell.
void lateness_add(struct lateness *self, uint32_t median);

// A turn is over. took[i]: what member i took; row[i]: in how many turns in a row it was late, up to
// LATENESS_ROW, which the caller keeps for it and sets to 0 for a new member. count is
// 1..LATENESS_MEMBERS_MAX. Returns the median of the turn; 0: nobody had a part in it. A member is to
// be said when row[i] becomes LATENESS_ROW, and is on time again when it falls from there to 0.
uint32_t lateness_turn(struct lateness *self, const uint32_t *took, uint8_t *row, uint32_t count);
