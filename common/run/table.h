#pragma once
// table -- the data position of a run: the state of every sample position, as one map over
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
// A table that is made again from a record begins with all samples done, and table_restore puts back those that were not.
//
// Position p is sample p mod pass_length of pass p / pass_length. The data have no end: the next
// pass follows, and one deal may contain the end of one pass and the beginning of the next. A
// permutation of the samples within a pass is applied elsewhere, to the positions that are dealt.
//
// The form is canonical: neighbours in equal state are one interval, and returned samples that
// touch the cursor move it back. So equal states are equal structs, and a deal that is returned
// whole leaves the table as it was before.
//
// The caller gives the memory, 2 · capacity entries: an operation reads one half and writes the
// other, so one that is refused changes nothing. While one number is open at a time, the todo and
// pending samples below the cursor are never more than the largest batch, because returned samples
// are dealt first. So a capacity of the largest batch plus the failed intervals always suffices.
//
// Pure; one thread at a time. Each operation reads the entries once: O(entries + list).
// Lists are tidy lists of intervals of positions (common/base/interval.h).

#include "common/base/interval.h"
#include "common/wire/wire.h"

enum table_answer {
    TABLE_OK,
    TABLE_FULL,      // More intervals than the capacity. The table is unchanged, as in all below
    TABLE_UNTIDY,    // The list is not tidy
    TABLE_STATE,     // A sample of the list is not in the state that the operation starts from
    TABLE_LIST_FULL, // The list for the result is too short
    TABLE_EXHAUSTED, // Fewer positions are left below 2^64 − 1 than were asked for
};

struct table {
    uint64_t pass_length;             // Samples in one pass, at least 1
    uint64_t cursor;                  // All positions from here on are todo
    uint32_t count, capacity;         // Entries in use; entries at most
    struct wire_table_entry *entries; // [capacity] below the cursor, rising; done ones not listed
    struct wire_table_entry *spare;   // [capacity] where the next operation writes
};

// Positions below `cursor` are done, the others todo. Borrows memory[2 · capacity] for its life.
void table_init(struct table *self, struct wire_table_entry *memory, uint32_t capacity,
                uint64_t pass_length, uint64_t cursor);

// Deals the lowest `count` todo samples to `number`, which makes them pending, and writes them as a
// tidy list; `list_max` = count always suffices.
enum table_answer table_deal(struct table *self, uint64_t number, uint64_t count,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// Deals the samples of a given list to `number`: for the replay of a record.
enum table_answer table_deal_again(struct table *self, uint64_t number, const struct interval *list,
                                   uint32_t count);

// Makes the listed samples done or failed. All of them must be pending under `number`. table_fail
// is for a task that failed too often (leases.h).
enum table_answer table_done(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count);
enum table_answer table_fail(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count);

// Makes all samples todo that are still pending under `number`. Returns TABLE_OK or TABLE_FULL.
enum table_answer table_return_rest(struct table *self, uint64_t number);

// Loads stored entries into a table that table_init made with their cursor. False: no table can
// have these entries (table_check), and this one must not be used.
bool table_load(struct table *self, const struct wire_table_entry *entries, uint32_t count);

// Writes all intervals of a state (if pending: under that number) as a tidy list. `state` is not
// done; `number` is 0 unless the state is pending.
enum table_answer table_list(const struct table *self, uint8_t state, uint64_t number,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// Of a table that is made from a record: moves the listed samples from done to this state. `number` is 0 unless the
// state is pending.
enum table_answer table_restore(struct table *self, uint8_t state, uint64_t number,
                                const struct interval *list, uint32_t count);

// The data position if no pending sample gets done: all positions from *ret_cursor on, and the list
// below it, will be trained. A checkpoint stores it, so it says where the data stood before the
// open round. A list with room for as many intervals as the table has entries always suffices.
enum table_answer table_undealt(const struct table *self, uint64_t *ret_cursor,
                                struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// The first position that is neither done nor failed. Divided by pass_length, it is the number of
// complete passes.
uint64_t table_frontier(const struct table *self);

// ---- For the simulator's checker and tests; the product calls table_check alone ----

uint8_t table_state_at(const struct table *self, uint64_t position); // O(log entries)
bool table_equal(const struct table *a, const struct table *b);      // Capacities may differ
bool table_check(const struct table *self); // Whether the entries are canonical and in range
