#pragma once
// state -- what an optimizer keeps, to and from a checkpoint. The optimizer lists the items and
// says what each is (optimizer.h); nothing here names one.
//
//     optimizer ─ state_save ─▶ tags and values ─▶ checkpoint_write
//     optimizer ◀─ state_load ─ checkpoint

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
