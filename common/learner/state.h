#pragma once
// state -- what an optimizer keeps, to and from a checkpoint. Which items those are, and what each of
// them is, the optimizer says (optimizer.h); nothing here names one.
//
//     optimizer ─ state_save ─▶ tags and values ─▶ checkpoint_write
//     optimizer ◀─ state_load ─ checkpoint

#include "common/checkpoint/checkpoint.h"
#include "common/optimizer/optimizer.h"

struct state { // The fields `state` and `values` of struct checkpoint_parts
    struct tags tags;
    struct tags_item room[OPTIMIZER_ITEMS_MAX];
    const void *values[OPTIMIZER_ITEMS_MAX];
};

// As optimizer_pull; good until the next step. `ret_state` stays where it is: its tags point into it.
int state_save(optimizer_t *optimizer, enum optimizer_scope scope, struct why *why,
               struct state *ret_state);

// Takes the items of the scope from a checkpoint that saved them. What the scope leaves out stays as it
// is. After a fault (those of checkpoint_load_state and optimizer_push) all is forgotten.
int state_load(optimizer_t *optimizer, enum optimizer_scope scope, const checkpoint_t *checkpoint,
               struct why *why);
