#pragma once
// table -- where the run stands in its data: the state of every sample position, as one map over
// [0, 2^64 − 1) that is kept as a few intervals.
//
//         done           todo        done      pending      failed             todo
//     0 ─────────────┬───────────┬─────────┬───────────┬───────────┬──────────────────────── ∞
//                    └ returned ─┘         └ round 7 ──┘           └ cursor
//
//     todo ───table_deal───▶ pending ──table_done──▶ done       A sample goes this way once.
//       ▲                       │ └────table_fail──▶ failed     Failed: given up, not dealt again
//       └──table_return_rest──┘
//
// A position p is sample p mod pass_length of pass p / pass_length: the data have no end, the next
// pass follows, and one deal may lie on both sides of a boundary. Who permutes the samples of a
// pass does so behind this.
//
// Canonical: neighbours in equal state are one interval, and returned samples that touch the cursor
// draw it back. So equal states are equal structs, and a deal that is returned whole leaves the
// table as it was before.
//
// Memory is the caller's: 2 · capacity entries (one half is read while the other is written, so an
// operation that is refused has changed nothing). Todo and pending samples below the cursor are
// never more than the largest batch while one number is open at a time, because what was returned is
// dealt first; so a capacity of the largest batch plus the failed intervals is never full.
//
// Pure; one thread at a time. Each operation reads the entries once: O(entries + list).
// Lists are tidy lists of intervals of positions (common/base/interval.h).

#include "common/base/interval.h"
#include "common/wire/wire.h"

enum table_answer {
    TABLE_OK,
    TABLE_FULL,      // More intervals than the capacity; nothing was changed, as in all below
    TABLE_UNTIDY,    // The list is not tidy
    TABLE_STATE,     // A sample of the list is not in the state that the operation starts from
    TABLE_LIST_FULL, // The list for the result is too short
    TABLE_EXHAUSTED, // Fewer positions are left than asked for, 2^64 being near
};

struct table {
    uint64_t pass_length;             // Samples in one pass, at least 1
    uint64_t cursor;                  // From here on all is todo
    uint32_t count, capacity;         // Entries in use; entries at most
    struct wire_table_entry *entries; // [capacity] below the cursor, rising; never a done one
    struct wire_table_entry *spare;   // [capacity] where the next operation writes
};

// Everything below `cursor` is done, the rest todo. Borrows memory[2 · capacity] for its life.
void table_init(struct table *self, struct wire_table_entry *memory, uint32_t capacity,
                uint64_t pass_length, uint64_t cursor);

// Deals the lowest `count` todo samples to `number`: first those that were returned, then from the
// cursor. They become a tidy list; `list_max` = count always suffices.
enum table_answer table_deal(struct table *self, uint64_t number, uint64_t count,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// The same for a list that was dealt before: todo becomes pending when a record is played again.
enum table_answer table_deal_again(struct table *self, uint64_t number, const struct interval *list,
                                   uint32_t count);

// What becomes of the listed samples, all of which must be pending under `number`. For table_fail, no
// caller yet: a pace of leases gives up a task that failed too often.
enum table_answer table_done(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count);
enum table_answer table_fail(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count);

// Returns whatever is still pending under `number`. Only TABLE_FULL is possible.
enum table_answer table_return_rest(struct table *self, uint64_t number);

// Takes entries that were stored, onto table_init with their cursor. False: they are not what a table
// can have (table_check), and it must not be used.
bool table_load(struct table *self, const struct wire_table_entry *entries, uint32_t count);

// Writes the intervals in a state (pending: of that number) as a tidy list; and declares that the
// listed samples, done until now, are in that state. `number` is 0 unless the state is pending.
enum table_answer table_list(const struct table *self, uint8_t state, uint64_t number,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);
enum table_answer table_put(struct table *self, uint8_t state, uint64_t number,
                            const struct interval *list, uint32_t count);

// What will be trained if nothing that is pending gets done: all from *ret_cursor on, and the list
// below it. So a checkpoint says where the data stood before the open round. Room for as many
// intervals as the table has entries always suffices.
enum table_answer table_undealt(const struct table *self, uint64_t *ret_cursor,
                                struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// Below it all is done or failed; divided by pass_length, how many passes are complete.
uint64_t table_frontier(const struct table *self);

// ---- For the simulator's checker; the product calls none of these ----

uint8_t table_state_at(const struct table *self, uint64_t position); // O(log entries)
bool table_equal(const struct table *a, const struct table *b);      // Capacities may differ
bool table_check(const struct table *self); // Whether it keeps all that is promised above
