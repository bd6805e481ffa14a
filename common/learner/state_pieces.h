#pragma once
// state_pieces -- what a replica is made of, as parts of a save in pieces, and back from one.
//
//     parameters    reshard     the share of the worker
//     adamw-m ...   as its tag  what the optimizer lists (optimizer.h); of what reshards, the share
//
// A part points to where the values are: nothing is copied here. The callers add items of their
// own.

#include "common/checkpoint/pieces.h"
#include "common/learner/state.h"

enum { STATE_PARTS_MAX = 1 + OPTIMIZER_ITEMS_MAX };

#define STATE_PARAMETERS "parameters"

// The parts of one worker, from what state_save gave. `params` points to the first parameter of
// all; `share` are the worker's. Items without values are left out. Returns the number of parts.
size_t state_parts(optimizer_t *optimizer, const struct state *state, const float *params,
                   struct interval share, struct pieces_part ret_parts[STATE_PARTS_MAX]);

// The most bytes that they have together.
uint64_t state_parts_bytes(optimizer_t *optimizer, struct interval share);

// FAULT_NOT_FOUND: the save has no parameters. FAULT_FOREIGN: they are those of a model of another
// shape.
int state_check_params(const pieces_t *pieces, const struct layout *layout, struct why *why);

// The digest of the state that all members hold alike (common/vector/state_cut.h), from the hashes
// in the save: of the parameters, and of the optimizer's items without the tag drop. Reads no more
// hashes than a state of this model has; `layout` NULL: than one of the parameters that the save
// says it has. Faults of pieces_root and state_check_params; FAULT_FOREIGN: an item has more bytes
// than the parameters.
int state_pieces_digest(const pieces_t *pieces, const struct layout *layout, struct why *why,
                        struct hash *ret_digest);

// Reads all of that state and compares it with the hashes in the save. What else lies in the save is not looked at: it may
// be larger than the state. Faults of state_pieces_digest and pieces_walk.
int state_verify_pieces(const pieces_t *pieces, struct why *why);

// Checks them, and reads those of the interval `share` to params[0, length).
int state_read_params(const pieces_t *pieces, const struct layout *layout, struct interval share,
                      float *params, struct why *why);

// Checks an item of the optimizer, and reads all of it to `values`. FAULT_NOT_FOUND, FAULT_FOREIGN as below.
int state_read_item(const pieces_t *pieces, const struct state_item *item, void *values,
                    struct why *why);

// The leaves of an item of the optimizer, state_item_leaves of its bytes, from the hashes in the save. Reads all of the
// item and compares it with them, and floats with what the optimizer leaves behind; keeps nothing of it in memory.
// Faults as above; FAULT_NAN.
int state_check_pieces(const pieces_t *pieces, const struct state_item *item, struct why *why,
                       struct hash *ret_leaves);

// A view of the state in a save (state_copy.h): nothing is read now. Takes *pieces_p if it succeeds. The parameters were
// checked as above, and `cut` is that of the optimizer. FAULT_NOT_FOUND, FAULT_FOREIGN: the save has no such item, or
// another. What is read is compared with the save's hashes each time; a save that has
// been removed since cannot be read any more: FAULT_CORRUPT.
int state_view_pieces(pieces_t **pieces_p, optimizer_t *optimizer, const struct state_cut *cut,
                      struct why *why, struct state_copy *ret_copy);

// Has the optimizer take its items of the scope from a save, those that reshard for its interval.
// An item with the tag drop is taken only if the save has one worker; else it begins with zeros,
// and *ret_is_fresh is true. FAULT_NOT_FOUND, FAULT_FOREIGN: the save has no such item, or another.
// After a fault all state is zero.
int state_read_pieces(optimizer_t *optimizer, enum optimizer_scope scope, const pieces_t *pieces,
                      struct why *why, bool *ret_is_fresh);
