#pragma once
// leaf_plan -- which leaf of a state is asked of which holder, when a holder need not have all of them.
//
//     holder a   . . . . 6 7 8 9 | x                 6: home, where it was found to have something
//     holder b   x | 1 2 3 . . . . .                 x: it said that it lacks this one
//
// A holder has leaves in long runs (common/vector/share_list.h), so what it said of one leaf is taken for true of the
// leaves around it. Its *window* is the run around its home up to the next leaf that it lacks, on both sides: leaves
// in there are asked of it, upwards from home, then downwards. When there is none left, it is asked for single
// leaves elsewhere, at places that halve what is left (Van der Corput, 1935), until it has one: that is
// its new home. After PLAN_MISSES_MAX of these in a row it is asked no more, unless nothing at all is on its way.
//
// A holder that has not answered yet is taken to have all. So holders of whole states share the first missing leaf
// and those behind it, and a faster one gets more of them.
//
// A leaf is asked of a holder again only if the holder has left and come back. A leaf that each holder lacks is
// lost, and that is known before everybody is asked for everything.
//
// Yardstick: of 4 holders, each of which has two shares of four of 50,000 leaves, the one that is asked most in vain
// says 205 times that it lacks a leaf (tests/unit/leaf_plan_test.c). A server gives 1000 such answers at once. To
// choose a leaf takes as long as to walk along the bits of the leaves, 6 KiB of them.
//
// Pure: no I/O, no clock. One thread.

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_HOLDERS_MAX = 256, PLAN_MISSES_MAX = 256 };

struct plan_holder {
    bool is_in;
    uint64_t *lacks;          // A bit a leaf; NULL: it has said no of none
    uint32_t low, home, high; // Its window is [low, high)
    uint32_t scout;           // The leaf elsewhere that it was asked for + 1, or 0
    uint32_t scouts,
        misses; // Leaves elsewhere that were asked; answers of no, since it last had one
};

struct leaf_plan {
    uint32_t leaves;
    uint64_t *missing, *todo; // A bit a leaf: not here; and not asked of anybody either
    uint32_t missing_count, todo_count;
    uint32_t doubtful; // A leaf that each holder said no of + 1, or 0
    bool has_left;     // A holder has left since leaf_plan_find_lost last looked
    struct plan_holder holders[PLAN_HOLDERS_MAX];
};

// All leaves are here. NULL: no memory.
struct leaf_plan *leaf_plan_new(uint32_t leaves);
void leaf_plan_destroy(struct leaf_plan **self_p); // NULL allowed

// ---- leaves -------------------------------------------------------------------------------------

void leaf_plan_want(struct leaf_plan *self,
                    uint32_t leaf); // It is missing. Before the first question
bool leaf_plan_misses(const struct leaf_plan *self, uint32_t leaf);
void leaf_plan_came(struct leaf_plan *self, uint32_t leaf); // It is here, from wherever
void leaf_plan_open(struct leaf_plan *self); // All that is missing is to be asked for
void leaf_plan_put_back(struct leaf_plan *self, uint32_t leaf); // So is this one again

// ---- holders ------------------------------------------------------------------------------------

void leaf_plan_join(struct leaf_plan *self, uint32_t holder);  // Nothing is known of it
void leaf_plan_leave(struct leaf_plan *self, uint32_t holder); // It is asked no more

// The leaf to ask of this holder now. `is_quiet`: nothing is on its way from anybody. False: none.
bool leaf_plan_next(const struct leaf_plan *self, uint32_t holder, bool is_quiet,
                    uint32_t *ret_leaf);
void leaf_plan_asked(struct leaf_plan *self, uint32_t holder, uint32_t leaf);

// Whether it is worth while to ask this holder for a leaf that was asked of another one.
bool leaf_plan_may_have(const struct leaf_plan *self, uint32_t holder, uint32_t leaf);

// What a holder says of a leaf: it has it, which then is here; or it lacks it.
void leaf_plan_had(struct leaf_plan *self, uint32_t holder, uint32_t leaf);
void leaf_plan_lacked(struct leaf_plan *self, uint32_t holder, uint32_t leaf);

// Whether there is a missing leaf of which this holder has not said no.
bool leaf_plan_is_of_use(const struct leaf_plan *self, uint32_t holder);

// A missing leaf of which each holder has said no. False: there is none, or no holder.
bool leaf_plan_find_lost(struct leaf_plan *self, uint32_t *ret_leaf);
