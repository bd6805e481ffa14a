#pragma once
// pin_fixture -- pins a state in a blob store, as a learner does, and returns its digest.

#include "common/base/ensure.h"
#include "common/bulk/blob_store.h"
#include <stdlib.h>

static inline struct hash pin_state(blob_store_t *store, uint64_t step, const struct state_cut *cut,
                                    const void *const *items)
{
    const uint64_t count = state_cut_leaves(cut);
    struct hash *leaves = malloc(count * sizeof *leaves + 1), *at = leaves;
    ensure(leaves);
    for (uint32_t i = 0; i < cut->count; i++) {
        state_item_fill(items[i], cut->bytes[i], at);
        at += state_item_leaves(cut->bytes[i]);
    }
    const struct blob_snapshot state = { step, state_cut_root(cut, leaves), *cut };
    ensure(blob_store_pin(store, &state, items, leaves, NULL) == 0);
    free(leaves);
    return state.digest;
}

static inline struct hash pin_vector(blob_store_t *store, uint64_t step, const float *floats,
                                     uint64_t count)
{
    const struct state_cut cut = state_cut_of_floats(count);
    return pin_state(store, step, &cut, (const void *[]){ floats });
}
