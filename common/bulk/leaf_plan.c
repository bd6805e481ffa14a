// leaf_plan -- sets of leaves are bits. What is sought is a leaf that is to be asked for and that the holder has not
// said no of: the first one from some leaf on, or the last one before it. The window of a holder is never made
// larger by a guess: each of its ends is a leaf that the holder lacks, or an end of the state.

#include "common/bulk/leaf_plan.h"
#include "common/base/ensure.h"
#include <stdlib.h>

// ---- bits ---------------------------------------------------------------------------------------

static uint32_t words_of(const struct leaf_plan *self) { return self->leaves / 64 + 1; }

static bool has(const uint64_t *bits, uint32_t leaf) { return bits[leaf / 64] >> leaf % 64 & 1; }

static void set(uint64_t *bits, uint32_t leaf) { bits[leaf / 64] |= UINT64_C(1) << leaf % 64; }

static void clear(uint64_t *bits, uint32_t leaf) { bits[leaf / 64] &= ~(UINT64_C(1) << leaf % 64); }

// The leaves of a word that are in `bits` and not in `without`, which may be NULL.
static uint64_t word(const uint64_t *bits, const uint64_t *without, uint32_t i)
{
    return without ? bits[i] & ~without[i] : bits[i];
}

// The first leaf in [from, end). False: there is none.
static bool find_up(const uint64_t *bits, const uint64_t *without, uint32_t from, uint32_t end,
                    uint32_t *ret_leaf)
{
    if (from >= end) return false;
    uint32_t i = from / 64;
    uint64_t found = word(bits, without, i) & UINT64_MAX << from % 64;
    while (!found && ++i <= (end - 1) / 64) found = word(bits, without, i);
    if (!found) return false;
    *ret_leaf = i * 64 + (uint32_t)__builtin_ctzll(found);
    return *ret_leaf < end;
}

// The last leaf in [from, end).
static bool find_down(const uint64_t *bits, const uint64_t *without, uint32_t from, uint32_t end,
                      uint32_t *ret_leaf)
{
    if (from >= end) return false;
    uint32_t i = (end - 1) / 64;
    uint64_t found = word(bits, without, i) & UINT64_MAX >> (63 - (end - 1) % 64);
    while (!found && i-- > from / 64) found = word(bits, without, i);
    if (!found) return false;
    *ret_leaf = i * 64 + 63 - (uint32_t)__builtin_clzll(found);
    return *ret_leaf >= from;
}

// ---- its life -----------------------------------------------------------------------------------

struct leaf_plan *leaf_plan_new(uint32_t leaves)
{
    struct leaf_plan *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->leaves = leaves;
    self->missing = calloc(words_of(self), sizeof *self->missing);
    self->todo = calloc(words_of(self), sizeof *self->todo);
    if (!self->missing || !self->todo) leaf_plan_destroy(&self);
    return self;
}

void leaf_plan_destroy(struct leaf_plan **self_p)
{
    struct leaf_plan *self = *self_p;
    if (!self) return;
    for (uint32_t i = 0; i < PLAN_HOLDERS_MAX; i++) free(self->holders[i].lacks);
    free(self->missing), free(self->todo);
    free(self);
    *self_p = NULL;
}

// ---- leaves -------------------------------------------------------------------------------------

bool leaf_plan_misses(const struct leaf_plan *self, uint32_t leaf)
{
    return has(self->missing, leaf);
}

static void take_todo(struct leaf_plan *self, uint32_t leaf)
{
    self->todo_count -= has(self->todo, leaf);
    clear(self->todo, leaf);
}

void leaf_plan_want(struct leaf_plan *self, uint32_t leaf)
{
    ensure(leaf < self->leaves);
    self->missing_count += !has(self->missing, leaf);
    set(self->missing, leaf);
}

void leaf_plan_came(struct leaf_plan *self, uint32_t leaf)
{
    self->missing_count -= has(self->missing, leaf);
    clear(self->missing, leaf);
    take_todo(self, leaf);
}

void leaf_plan_open(struct leaf_plan *self)
{
    for (uint32_t i = 0; i < words_of(self); i++) self->todo[i] = self->missing[i];
    self->todo_count = self->missing_count;
    for (uint32_t i = 0; i < PLAN_HOLDERS_MAX; i++) leaf_plan_leave(self, i);
    self->doubtful = 0;
    self->has_left = false;
}

void leaf_plan_put_back(struct leaf_plan *self, uint32_t leaf)
{
    if (!has(self->missing, leaf) || has(self->todo, leaf)) return;
    set(self->todo, leaf);
    self->todo_count++;
}

// ---- asking -------------------------------------------------------------------------------------

void leaf_plan_leave(struct leaf_plan *self, uint32_t holder)
{
    struct plan_holder *at = &self->holders[holder];
    if (!at->is_in) return;
    free(at->lacks);
    *at = (struct plan_holder){ .is_in = false };
    self->has_left = true;
    // What it had is with others, or with nobody: they are asked again
    for (uint32_t i = 0; i < PLAN_HOLDERS_MAX; i++) self->holders[i].misses = 0;
}

void leaf_plan_join(struct leaf_plan *self, uint32_t holder)
{
    leaf_plan_leave(self, holder);
    self->holders[holder].is_in = true;
    self->holders[holder].high = self->leaves;
}

static bool is_in_window(const struct plan_holder *holder, uint32_t leaf)
{
    return leaf >= holder->low && leaf < holder->high;
}

// The bits of a number turned round are a place between 0 and 1: 1/2, 1/4, 3/4, 1/8, 5/8 ..
static uint32_t place_of(uint32_t number, uint32_t leaves)
{
    uint32_t turned = 0;
    for (int bit = 0; bit < 32; bit++) turned |= (number >> bit & 1) << (31 - bit);
    return (uint32_t)((uint64_t)turned * leaves >> 32);
}

static bool may_scout(const struct leaf_plan *self, const struct plan_holder *holder)
{
    const bool is_out = holder->scout && has(self->missing, holder->scout - 1);
    return !is_out && holder->misses < PLAN_MISSES_MAX;
}

bool leaf_plan_next(const struct leaf_plan *self, uint32_t holder, bool is_quiet,
                    uint32_t *ret_leaf)
{
    const struct plan_holder *at = &self->holders[holder];
    const uint64_t *todo = self->todo, *lacks = at->lacks;
    if (!at->is_in || self->todo_count == 0) return false;
    if (find_up(todo, lacks, at->home, at->high, ret_leaf)) return true;
    if (find_down(todo, lacks, at->low, at->home, ret_leaf)) return true;
    // Nothing is on its way: each is asked for another leaf, so it is soon known whether anybody has one
    if (is_quiet) return find_up(todo, lacks, 0, self->leaves, ret_leaf);
    if (!may_scout(self, at)) return false;
    const uint32_t place = place_of(at->scouts, self->leaves);
    return find_up(todo, lacks, place, self->leaves, ret_leaf) ||
           find_up(todo, lacks, 0, place, ret_leaf);
}

void leaf_plan_asked(struct leaf_plan *self, uint32_t holder, uint32_t leaf)
{
    struct plan_holder *at = &self->holders[holder];
    take_todo(self, leaf);
    if (is_in_window(at, leaf)) return;
    at->scout = leaf + 1;
    at->scouts++;
}

bool leaf_plan_may_have(const struct leaf_plan *self, uint32_t holder, uint32_t leaf)
{
    const struct plan_holder *at = &self->holders[holder];
    // mutant: fetch: what a holder lacks is asked of it again
    if (!at->is_in || (at->lacks && has(at->lacks, leaf))) return false;
    return is_in_window(at, leaf) || may_scout(self, at);
}

// ---- hearing ------------------------------------------------------------------------------------

void leaf_plan_had(struct leaf_plan *self, uint32_t holder, uint32_t leaf)
{
    struct plan_holder *at = &self->holders[holder];
    uint32_t lacked;
    leaf_plan_came(self, leaf);
    if (!at->is_in) return;
    at->misses = 0;
    if (at->scout == leaf + 1) at->scout = 0;
    if (is_in_window(at, leaf)) return;
    at->home = leaf;
    at->low = at->lacks && find_down(at->lacks, NULL, 0, leaf, &lacked) ? lacked + 1 : 0;
    at->high =
        at->lacks && find_up(at->lacks, NULL, leaf, self->leaves, &lacked) ? lacked : self->leaves;
}

static bool is_lost(const struct leaf_plan *self, uint32_t leaf)
{
    bool is_any = false;
    for (uint32_t i = 0; i < PLAN_HOLDERS_MAX; i++) {
        const struct plan_holder *at = &self->holders[i];
        if (!at->is_in) continue;
        if (!at->lacks || !has(at->lacks, leaf)) return false;
        is_any = true;
    }
    return is_any && has(self->missing, leaf);
}

void leaf_plan_lacked(struct leaf_plan *self, uint32_t holder, uint32_t leaf)
{
    struct plan_holder *at = &self->holders[holder];
    if (!at->is_in) return;
    if (!at->lacks) at->lacks = calloc(words_of(self), sizeof *at->lacks);
    ensure(at->lacks);
    set(at->lacks, leaf);
    at->misses++;
    if (at->scout == leaf + 1) at->scout = 0;
    if (is_in_window(at, leaf) && leaf >= at->home) at->high = leaf;
    else if (is_in_window(at, leaf)) at->low = leaf + 1;
    if (is_lost(self, leaf)) self->doubtful = leaf + 1;
}

bool leaf_plan_is_of_use(const struct leaf_plan *self, uint32_t holder)
{
    uint32_t leaf;
    return find_up(self->missing, self->holders[holder].lacks, 0, self->leaves, &leaf);
}

// The first leaf that is missing and that each holder lacks: 64 at a time.
static bool look_for_lost(const struct leaf_plan *self, uint32_t *ret_leaf)
{
    bool is_any = false;
    for (uint32_t i = 0; i < PLAN_HOLDERS_MAX; i++) {
        if (self->holders[i].is_in && !self->holders[i].lacks) return false; // It may have any
        is_any |= self->holders[i].is_in;
    }
    for (uint32_t n = 0; n < words_of(self) && is_any; n++) {
        uint64_t lost = self->missing[n];
        for (uint32_t i = 0; i < PLAN_HOLDERS_MAX && lost; i++)
            if (self->holders[i].is_in) lost &= self->holders[i].lacks[n];
        if (!lost) continue;
        *ret_leaf = n * 64 + (uint32_t)__builtin_ctzll(lost);
        return true;
    }
    return false;
}

bool leaf_plan_find_lost(struct leaf_plan *self, uint32_t *ret_leaf)
{
    const bool look = self->has_left;
    const uint32_t doubtful = self->doubtful;
    self->has_left = false;
    self->doubtful = 0;
    // mutant: fetch: what nobody has is waited for
    if (doubtful && is_lost(self, doubtful - 1)) return *ret_leaf = doubtful - 1, true;
    return look && look_for_lost(self, ret_leaf);
}
