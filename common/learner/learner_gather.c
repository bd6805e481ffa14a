#include "common/learner/learner_gather.h"
#include "common/base/ensure.h"
#include "common/learner/learner_away.h"
#include <string.h>

static struct group_sum next_sum(struct learner_gather *self, enum group_way way, uint64_t floats)
{
    struct group_sum sum = self->sum;
    self->sum.number++;
    sum.way = way;
    sum.floats = floats;
    sum.computers = 0; // Owners, too, take the shares of the others
    sum.owners = self->owners;
    return sum;
}

int learner_gather_vector(struct learner_gather *self, float *vector, uint64_t floats,
                          struct why *why, struct group_blame *ret_blame)
{
    struct group_sum sum = next_sum(self, GROUP_GATHER, floats);
    sum.result = vector;
    return group_add(self->group, &sum, why, ret_blame);
}

// Returns when all have come here, each with all that was gathered.
static int meet(struct learner_gather *self, struct why *why, struct group_blame *ret_blame)
{
    const float one = 1, *node = &one;
    float all = 0;
    struct group_sum sum = next_sum(self, GROUP_ALL, 1);
    sum.lanes = sum.batch = self->members; // A lane with a sample for each: all are waited for
    sum.owners = 0;
    sum.nodes = &node;
    sum.result = &all;
    const int rc = group_add(self->group, &sum, why, ret_blame);
    if (rc < 0 || all == (float)self->members) return rc;
    return why_set(
        why, FAULT_FORMAT,
        "the ones of %u members do not add up: a member of the group sent another number",
        self->members);
}

struct filling {
    struct learner_gather *gather;
    struct group_blame *blame;
};

// What all have alike. A trainer that came to the servers within the epoch has not, and asynchronous servers have
// each applied another number of pushes: it comes from the owner of the first share, as if it were floats.
static int fill_alike(struct learner *learner, uint32_t number, void *values,
                      const struct filling *filling, struct why *why)
{
    const uint64_t bytes = learner->cut.bytes[number];
    ensure(bytes % sizeof(float) == 0);
    // mutant: servers: a trainer that came within the epoch counts the steps since
    if (!filling->gather->alike) return 0;
    return learner_gather_vector(filling->gather, values, bytes / sizeof(float), why,
                                 filling->blame);
}

// Our share of the moment to its place in the gradient's vector, and those of the others beside it.
static int fill(struct learner *learner, const struct state_item *item, uint32_t number,
                void *values, void *arg, struct why *why)
{
    const struct filling *filling = arg;
    const struct interval part = filling->gather->part;
    // mutant: shares: the moments of the others are of an earlier step
    if (item->tag != TAG_RESHARD) return fill_alike(learner, number, values, filling, why);
    if (!interval_empty(part))
        memcpy((float *)values + part.begin,
               compute_at(learner->compute, item->vector) + part.begin,
               interval_length(part) * sizeof(float));
    return learner_gather_vector(filling->gather, values, learner->floats, why, filling->blame);
}

int learner_gather_state(struct learner *learner, struct learner_gather *self, struct why *why,
                         struct group_blame *ret_blame)
{
    struct filling filling = { self, ret_blame };
    const struct learner_away_source source = { .fill = fill, .arg = &filling };
    int rc = learner_gather_vector(self, learner->params, learner->floats, why, ret_blame);
    if (rc == 0) rc = learner_away_take(learner, &source, why);
    learner->share_only = rc < 0;
    return rc < 0 ? rc : meet(self, why, ret_blame);
}
