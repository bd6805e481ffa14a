// Task i hashes leaves 2 i and 2 i + 1; the last task may have one leaf.
#include "common/kernel/digest.h"

enum { PAIR = 2 };

struct job {
    const float *values;
    uint64_t count;
    struct hash *leaves;
};

static void hash_pair(void *arg, uint32_t task, uint32_t worker)
{
    const struct job *job = arg;
    const size_t first = (size_t)PAIR * task, rest = digest_leaf_count(job->count) - first;
    (void)worker;
    digest_fill_leaves(job->values, job->count, first, rest < PAIR ? rest : PAIR,
                       job->leaves + first);
}

void digest_leaves(const float *values, uint64_t count, pool_t *pool, struct hash *ret_leaves)
{
    struct job job = { values, count, ret_leaves };
    pool_run(pool, (uint32_t)((digest_leaf_count(count) + PAIR - 1) / PAIR), hash_pair, &job);
}
