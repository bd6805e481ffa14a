// work -- what it costs the coordinator to hear and to answer: it has one processor, and letters wait in its inbox
// for the turns of their senders, as in the field (common/actor/inbox.h). So a seed can see what an actor's bounds
// on frames and bytes do not show.
//
// The costs are those of the field (common/actor/cost.h), `plan.work_times` times. Once all is healed, no letter
// may wait longer than WAIT_MS but those of a greedy member (greedy.c), whatever that one sends; and none is refused.

#include "common/actor/cost.h"
#include "common/actor/inbox.h"
#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 250, THAW_MS = 5000 };

// What came while it was frozen is there at once.
static bool is_free(const struct sim *self, const struct flight *flight)
{
    return faulty(self) || self->now_ms < self->nodes[COORDINATOR].frozen_ms + THAW_MS ||
           node_named(self, flight->name) == self->plan.greedy;
}

static const struct key *sender_of(const struct sim *self, const struct flight *flight)
{
    static const struct key broker;
    const uint32_t id = node_named(self, flight->name);
    return id < self->nodes_count ? &self->nodes[id].key : &broker;
}

static void begin(struct sim *self, const struct flight *flight)
{
    const struct parcel *parcel = flight->parcel;
    const uint64_t now_us = self->now_ms * 1000;
    if (self->busy_until_us < now_us) self->busy_until_us = now_us;
    self->work_us = cost_of_hearing(parcel->kind, parcel->bytes) * self->plan.work_times;
    self->busy_until_us += self->work_us;
}

bool work_must_wait(struct sim *self, const struct flight *flight)
{
    if (flight->node != COORDINATOR || flight->to != TO_NODE_MAIL) return false;
    struct flight *waits = malloc(sizeof *waits);
    ensure(waits);
    *waits = *flight;
    if (!inbox_put(self->inbox, sender_of(self, flight), waits, flight->parcel->bytes)) {
        if (!is_free(self, flight))
            broken(self, "no letter to the coordinator is refused", "a %s of %s",
                   wire_kind_name(flight->parcel->kind), flight->name);
        free(waits);
        return true;
    }
    waits->parcel->refs++;
    if (self->inbox->count > 1 || self->busy_until_us >= (self->now_ms + 1) * 1000) return true;
    network_done(self, inbox_next(self->inbox)); // The caller has it in hand
    begin(self, flight);
    return false;
}

uint64_t work_due_ms(const struct sim *self)
{
    return self->inbox->count ? self->busy_until_us / 1000 : UINT64_MAX;
}

struct flight *work_next(struct sim *self)
{
    struct flight *flight = inbox_next(self->inbox);
    const uint64_t waited_ms = self->now_ms - flight->at_ms;
    if (waited_ms > WAIT_MS && !is_free(self, flight))
        broken(self, "no letter to the coordinator waits for long",
               "a %s of %s waits %" PRIu64 " ms", wire_kind_name(flight->parcel->kind),
               flight->name, waited_ms);
    begin(self, flight);
    return flight;
}

void work_heard(struct sim *self)
{
    if (self->inbox->heard) inbox_charge(self->inbox, self->work_us);
}

void work_done(struct sim *self, uint8_t id, uint32_t bytes, bool from_ledger)
{
    if (id != COORDINATOR) return;
    const uint64_t now_us = self->now_ms * 1000;
    const uint64_t us = (COST_SAY_US + bytes / COST_BYTES_A_US + (from_ledger ? COST_READ_US : 0)) *
                        self->plan.work_times;
    if (self->busy_until_us < now_us) self->busy_until_us = now_us;
    self->busy_until_us += us;
    self->work_us += us;
}

void work_clear(struct sim *self)
{
    work_heard(self);
    for (struct flight *flight; (flight = inbox_next(self->inbox)); network_done(self, flight))
        inbox_charge(self->inbox, 0);
    memory_forget(self->inbox, sizeof *self->inbox);
    self->busy_until_us = self->work_us = 0;
}
