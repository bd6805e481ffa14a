// greedy -- an honest trainer that says all that it says as often as the broker lets it (broker/gate.c): in
// POUR_S seconds while all breaks, and in POUR_S after all is healed. In each of them it repeats one of its
// newest letters to the coordinator, or asks for one of the topics.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"

enum { BUDGET_S = 2000, POUR_S = 3, CALM_S = 4 };

void greedy_keep(struct sim *self, uint8_t id, const char *to, struct parcel *parcel)
{
    if (id != self->plan.greedy || strcmp(to, self->nodes[COORDINATOR].name) != 0) return;
    uint32_t place = 0;
    while (place < GREEDY_KEPT && self->greedy[place] && self->greedy[place]->kind != parcel->kind)
        place++;
    if (place == GREEDY_KEPT) return;
    parcel_release(self->greedy[place]);
    self->greedy[place] = parcel;
    parcel->refs++;
}

void greedy_clear(struct sim *self)
{
    for (uint32_t i = 0; i < GREEDY_KEPT; i++) {
        parcel_release(self->greedy[i]);
        self->greedy[i] = NULL;
    }
}

static struct parcel *ask(struct sim *self, uint8_t id)
{
    const struct wire_ask body = { .topic = (uint8_t)roll(self, TOPIC_COUNT) };
    const size_t count = wire_pack_body(FRAME_ASK, &body, self->bytes, SCRATCH_BYTES);
    ensure(count > 0);
    return parcel_new(self, &self->nodes[id], FRAME_ASK, self->bytes, (uint32_t)count);
}

static bool pours_now(const struct sim *self)
{
    const uint64_t first = self->plan.heal_ms / 2, second = self->plan.heal_ms + CALM_S * 1000;
    return (self->now_ms >= first && self->now_ms < first + POUR_S * 1000) ||
           (self->now_ms >= second && self->now_ms < second + POUR_S * 1000);
}

void greedy_act(struct sim *self)
{
    const uint8_t id = (uint8_t)self->plan.greedy;
    if (id == NOBODY || !pours_now(self) || !self->nodes[id].up) return;
    const uint64_t choice = roll(self, GREEDY_KEPT + TOPIC_COUNT);
    struct parcel *kept = choice < GREEDY_KEPT ? self->greedy[choice] : NULL;
    struct parcel *made = kept ? NULL : ask(self, id);
    for (uint32_t i = 0; i < BUDGET_S; i++)
        network_fly(self, i * 1000 / BUDGET_S, TO_NODE_MAIL, COORDINATOR,
                    self->nodes[COORDINATOR].life, self->nodes[id].name, kept ? kept : made);
    parcel_release(made);
    self->faults[GREED]++;
}
