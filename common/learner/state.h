#pragma once
// state -- what an optimizer keeps, to and from a checkpoint or a copy that peers serve. The optimizer
// lists the items and says what each is (optimizer.h); nothing here names one.
//
//     optimizer ─ state_save ─▶ tags and values ─▶ checkpoint_write, blob_store_pin
//     optimizer ◀─ state_load ─ checkpoint
//     optimizer ◀─ state_take ─ a copy (common/vector/state_cut.h), from the stage

#include "common/bulk/state_copy.h"
#include "common/checkpoint/checkpoint.h"
#include "common/optimizer/optimizer.h"

struct state { // The fields `state` and `values` of struct checkpoint_parts
    struct tags tags;
    struct tags_item items[OPTIMIZER_ITEMS_MAX];
    const void *values[OPTIMIZER_ITEMS_MAX];
};

// As optimizer_pull; good until the next step. Do not move *ret_state: its tags point into it.
int state_save(optimizer_t *optimizer, enum optimizer_scope scope, struct why *why,
               struct state *ret_state);

// Takes the items of the scope from a checkpoint that saved them. Items that the scope leaves out
// stay as they are. After a fault (those of checkpoint_load_state and optimizer_push) all state is
// zero.
int state_load(optimizer_t *optimizer, enum optimizer_scope scope, const checkpoint_t *checkpoint,
               struct why *why);

// ---- OPTIMIZER_SHARED and a copy of the state, whose item 0 is the parameters and whose others are
// ---- those of optimizer_cut

// Takes the items from a copy. After a fault (of optimizer_push, or of the disk) all state is zero.
int state_take(optimizer_t *optimizer, const struct state_cut *cut, const struct state_copy *copy,
               struct why *why);

// Has the values of a state that state_save gave point into a copy instead: of an earlier step.
void state_point(struct state *self, const struct state_cut *cut, const uint8_t *copy);
