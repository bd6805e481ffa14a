#pragma once
// digest -- the leaves of a vector's digest (common/crypto/merkle.h), shared out over the threads of a pool.

#include "common/crypto/merkle.h"
#include "common/kernel/pool.h"

// Writes all digest_leaf_count(count) leaves of `count` floats. A task hashes two leaves, which takes hardly
// longer than one (merkle_leaves). The rules for callers are pool_run's; NULL: no threads.
void digest_leaves(const float *values, uint64_t count, pool_t *pool, struct hash *ret_leaves);
