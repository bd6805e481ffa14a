// dataset -- two hashes, each with a domain tag of its own.

#include "common/run/dataset.h"

struct hash dataset_order(const struct hash *positions, uint64_t samples)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, "shoal-order-2", 13);
    hasher_add(&hasher, positions->bytes, HASH_BYTES);
    // mutant: data: a pass has as many samples as somebody said
    hasher_add_number(&hasher, samples, 8);
    return hasher_end(&hasher);
}

struct hash dataset_digest(const struct hash *manifest, const struct hash *order)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, "shoal-dataset-1", 15);
    hasher_add(&hasher, manifest->bytes, HASH_BYTES);
    hasher_add(&hasher, order->bytes, HASH_BYTES);
    return hasher_end(&hasher);
}
