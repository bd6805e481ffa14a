#pragma once
// learner_gather -- the members of a group put their state together: each owner of a share sends it to all, so that
// each member holds all of the state: the parameters in their vector, the moments away (learner_away.h); a parameter
// server has all of it away. It takes LEARNER_GATHER_MEMORY beside that, however large the model is. For the
// learner's files alone; on its thread.

#include "common/group/group.h"
#include "common/learner/learner_inside.h"

enum { LEARNER_GATHER_MEMORY = 8 << 20 }; // At most, from the first call on

struct learner_gather {
    group_t *group;       // Formed, and in no window of questions
    uint32_t members;     // Of the group
    uint32_t owners;      // The last members, of which each owns a share; 0: all
    struct interval part; // Our own; empty: none
    bool alike; // What all have alike comes from the first owner; false: all have it alike already
    // What the sums of this group have in common; `number` is that of the next one.
    struct group_sum sum;
    float *room; // The learner's, for what comes in a round
};

// All of the state, also the parameters. Returns when all members have it: until then one whose own call failed may
// change what is still on its way to another one (group_add). 0: learner->away is true, and nothing is a share only.
// All of the state may be here after a fault, too; our part of it is. The room stays the learner's: after a fault bytes of it
// may still be on their way. FAULT_MEMORY, and those of group_add and learner_away_take.
int learner_gather_state(struct learner *learner, struct learner_gather *self, struct why *why,
                         struct group_blame *ret_blame);

// Gives the room back, when no bytes of it are on their way: the links have ended.
void learner_gather_close(struct learner *learner);
