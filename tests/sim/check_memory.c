// check_memory -- what must hold of memory saves, whatever the pace: whoever is on record as a keeper has its share and
// those of its predecessors, as long as the save is the newest; and a run that has lost its state goes back there.
//
//    W6  a step is put on record as kept once all owners have it in memory      check_memory_kept
//    W8  a run goes back no further than to what its members have in memory     check_memory_back

#include "tests/sim/sim.h"
#include <inttypes.h>
#include <string.h>

static bool is_process(const struct sim *sim, const struct wire_place *place)
{
    const uint8_t id = check_node(sim, place->member);
    return id != NOBODY && sim->nodes[id].up && sim->nodes[id].instance == place->instance;
}

// Whoever of the group is up has its share, and those of its predecessors.
static void check_keepers(struct sim *sim)
{
    const struct ghost_memory *self = &sim->ghost.memory;
    const uint32_t count = self->keepers_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_process(sim, &self->keepers[i])) continue;
        const struct node *node = &sim->nodes[check_node(sim, self->keepers[i].member)];
        const struct sim_copies *copies = &node->learner.exchange.copies;
        const struct sim_copy *copy =
            copies->newest.step == self->kept.step ? &copies->newest : &copies->kept;
        bool has = copy->step == self->kept.step && copy->window == self->kept_in;
        for (uint32_t j = 0; j <= self->buddies && j < count; j++)
            has = has && copy->has >> ((i + count - j) % count) & 1;
        hold(has, "each keeps its share of a memory save, and its buddies'", "%s at %" PRIu64,
             node->name, self->kept.step);
    }
}

void check_memory_kept(struct sim *sim, const struct wire_record_kept *said,
                       const struct wire_place *owners, uint32_t count, uint32_t buddies)
{
    struct ghost_memory *self = &sim->ghost.memory;
    *self = (struct ghost_memory){ .kept = { .step = said->step, .digest = said->digest },
                                   .kept_in = said->window,
                                   .keepers_count = count,
                                   .buddies = buddies };
    memcpy(self->keepers, owners, count * sizeof *owners);
    check_keepers(sim);
    sim->faults[COPIED]++;
}

// To a memory save, if that is newer, as far as the coordinator can know that it lies whole in the members' memory: a
// process that has died in silence is found when its share cannot be fetched. If it lies in theirs that are up, and
// of the roster, the run goes back no further.
void check_memory_back(struct sim *sim, const struct wire_record_restore *record, bool lost,
                       bool is_own, struct pin *back)
{
    struct pin *kept = &sim->ghost.memory.kept;
    if (kept->step == 0 || sim->disk.behind) return;
    const bool is_newer = kept->step >= back->step;
    hold(!is_own || !is_newer || record->step == kept->step ||
             !copies_lie(sim, kept->step, &kept->digest),
         "a run goes back to what its members have in memory", "step %" PRIu64 " and not %" PRIu64,
         record->step, kept->step);
    if (lost && is_newer && record->step == kept->step) {
        check_keepers(sim); // They still do
        *back = *kept;
    }
    if (record->step < kept->step) *kept = (struct pin){ 0 };
}
