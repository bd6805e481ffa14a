// learner_gather -- rounds of one vector, and the order of all vectors, in which the members agree.

#include "common/learner/learner_gather.h"
#include "common/base/ensure.h"
#include "common/learner/learner_away.h"
#include <inttypes.h>
#include <stdlib.h>
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

// ---- a vector ---------------------------------------------------------------------------------------

// A vector is gathered in rounds: in each of them every owner sends the next leaves of its share. So no member has to have
// room for all of it.
//
//     shares  [0 0 0 0 0|1 1 1 1 1|2 2 2 2]   round 1: [0 0|1 1|2 2]  2: [0 0|1 1|2 2]  3: [0|1|-]
//
// Each has as many leaves of a round, and of the last one some owners have none left: what lies there means nothing.
enum {
    ROUND_LEAVES = LEARNER_GATHER_MEMORY / STATE_LEAF_BYTES,
    LEAF_FLOATS = STATE_LEAF_BYTES / sizeof(float)
};

static uint32_t owners_of(const struct learner_gather *self)
{
    return self->owners ? self->owners : self->members;
}

// Of the longest share: they differ by a leaf.
static uint64_t share_leaves(const struct learner_gather *self, uint64_t floats)
{
    const uint64_t leaves = (floats + LEAF_FLOATS - 1) / LEAF_FLOATS;
    return (leaves + owners_of(self) - 1) / owners_of(self);
}

// Of each share in a round: what 8 MiB have room for, and at most a quarter of it.
static uint64_t round_leaves(const struct learner_gather *self, uint64_t floats)
{
    const uint64_t most = ROUND_LEAVES / owners_of(self), quarter = share_leaves(self, floats) / 4;
    const uint64_t leaves = quarter < most ? quarter : most;
    return leaves ? leaves : 1;
}

// What an owner sends in the round that begins `first` leaves behind the beginning of its share.
static struct interval part_of(struct interval share, uint64_t first, uint64_t leaves)
{
    const uint64_t begin = share.begin + first * LEAF_FLOATS, end = begin + leaves * LEAF_FLOATS;
    if (begin >= share.end) return (struct interval){ share.end, share.end };
    return (struct interval){ begin, end < share.end ? end : share.end };
}

// Takes a run of floats of the vector.
typedef int take_fn(void *arg, struct interval at, const float *values, struct why *why);

static int gather_round(struct learner_gather *self, const float *vector, uint64_t floats,
                        uint64_t first, uint64_t leaves, struct why *why,
                        struct group_blame *ret_blame)
{
    const uint32_t owners = owners_of(self);
    struct group_sum sum = next_sum(self, GROUP_GATHER, owners * leaves * LEAF_FLOATS);
    sum.result = self->room;
    for (uint32_t i = 0; i < owners; i++) {
        const struct interval share = group_interval(floats, i, owners);
        const struct interval at = part_of(share, first, leaves);
        if (share.begin == self->part.begin && share.end == self->part.end && !interval_empty(at))
            memcpy(self->room + i * leaves * LEAF_FLOATS, vector + at.begin,
                   interval_length(at) * sizeof *vector);
    }
    return group_add(self->group, &sum, why, ret_blame);
}

// `vector` has our part of it. `take` gets all of it.
static int gather_vector(struct learner_gather *self, const float *vector, uint64_t floats,
                         take_fn *take, void *arg, struct why *why, struct group_blame *ret_blame)
{
    const uint32_t owners = owners_of(self);
    const uint64_t most = share_leaves(self, floats), each = round_leaves(self, floats);
    int rc = 0;
    for (uint64_t first = 0; first < most && rc == 0; first += each) {
        const uint64_t leaves = most - first < each ? most - first : each;
        rc = gather_round(self, vector, floats, first, leaves, why, ret_blame);
        for (uint32_t i = 0; i < owners && rc == 0; i++) {
            // mutant: shares: each round brings the first leaves of the shares
            const struct interval at = part_of(group_interval(floats, i, owners), first, leaves);
            if (!interval_empty(at)) rc = take(arg, at, self->room + i * leaves * LEAF_FLOATS, why);
        }
    }
    return rc;
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

// ---- the state --------------------------------------------------------------------------------------

struct filling {
    struct learner_gather *gather;
    struct group_blame *blame;
};

static int take_parameters(void *arg, struct interval at, const float *values, struct why *why)
{
    struct learner *learner = arg;
    (void)why;
    memcpy(learner->params + at.begin, values, interval_length(at) * sizeof *values);
    return 0;
}

static int put_away(void *arg, struct interval at, const float *values, struct why *why)
{
    return learner_away_put(arg, at, values, why);
}

static int give(const struct learner_away_item *to, void *arg, struct why *why)
{
    const struct filling *filling = arg;
    struct learner *learner = to->learner;
    const float *vector =
        to->item ? compute_at(learner->compute, to->item->vector) : learner->params;
    struct learner_away_item item = *to;
    return gather_vector(filling->gather, vector, learner->floats, put_away, &item, why,
                         filling->blame);
}

// What all have alike. A trainer that came to the servers within the epoch has not, and asynchronous servers have
// each applied another number of pushes: it comes from the owner of the first share, as if it were floats.
static int fill_alike(const struct learner_away_item *to, void *values, void *arg, struct why *why)
{
    const struct filling *filling = arg;
    const uint64_t bytes = to->learner->cut.bytes[to->number];
    ensure(bytes % sizeof(float) == 0);
    // mutant: servers: a trainer that came within the epoch counts the steps since
    if (!filling->gather->alike) return 0;
    struct group_sum sum = next_sum(filling->gather, GROUP_GATHER, bytes / sizeof(float));
    sum.result = values;
    return group_add(filling->gather->group, &sum, why, filling->blame);
}

static int gather_all(struct learner *learner, struct learner_gather *self, struct why *why,
                      struct group_blame *ret_blame)
{
    struct filling filling = { self, ret_blame };
    const struct learner_away_source source = { .give = give, .fill = fill_alike, .arg = &filling };
    int rc = 0;
    if (!learner_away_takes_parameters(learner))
        rc = gather_vector(self, learner->params, learner->floats, take_parameters, learner, why,
                           ret_blame);
    return rc < 0 ? rc : learner_away_take(learner, &source, why);
}

void learner_gather_close(struct learner *learner)
{
    free(learner->gather_room);
    learner->gather_room = NULL;
    learner->gather_floats = 0;
}

int learner_gather_state(struct learner *learner, struct learner_gather *self, struct why *why,
                         struct group_blame *ret_blame)
{
    const uint64_t floats = owners_of(self) * round_leaves(self, learner->floats) * LEAF_FLOATS;
    if (learner->gather_floats != floats) {
        learner_gather_close(learner);
        learner->gather_room = calloc(floats, sizeof *learner->gather_room);
        learner->gather_floats = learner->gather_room ? floats : 0;
    }
    self->room = learner->gather_room;
    const int rc = self->room ? gather_all(learner, self, why, ret_blame)
                              : why_set(why, FAULT_MEMORY, "%" PRIu64 " floats of others", floats);
    learner->share_only = rc < 0;
    return rc < 0 ? rc : meet(self, why, ret_blame);
}
