#pragma once
// tensor_pieces -- gives an interval of the vector to a pool of threads in pieces, each within one tensor: for
// optimizers that treat each parameter by itself, and matrices otherwise than the weights of norms.
//
// Parameters are independent there, so any cut into pieces gives the same bits.

#include "common/base/interval.h"
#include "common/kernel/pool.h"
#include "common/vector/layout.h"

#include <stdbool.h>

// Calls `move` for pieces that tile `at`, an interval of the layout's vector; it may be empty. `pool` NULL: on this
// thread. Several threads call at once, each for pieces of its own. Returns when all are done.
typedef void (*tensor_piece_fn)(const void *arg, bool is_matrix, struct interval piece);
void tensor_pieces(pool_t *pool, const struct layout *layout, struct interval at,
                   tensor_piece_fn move, const void *arg);
