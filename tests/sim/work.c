// work -- what it costs the coordinator to hear and to answer: it has one processor, in which letters wait for
// one another. So a seed can see what an actor's bounds on frames and bytes do not show.
//
//     a letter of a member    HEAR_US: its signature is checked, its body unpacked
//     a letter or news out    SAY_US and its bytes: it is packed and signed
//     a commit out of the ledger    READ_US more
//
// The costs are those of one core of a server of 2021 (cost_bench), rounded up. Once all is healed, no letter
// may wait longer than WAIT_MS, whatever a greedy member sends (greedy.c).

#include "tests/sim/sim.h"
#include <inttypes.h>

enum { HEAR_US = 100, SAY_US = 50, BYTES_A_US = 50, READ_US = 30, WAIT_MS = 1000 };

bool work_must_wait(struct sim *self, const struct flight *flight)
{
    if (flight->node != COORDINATOR || flight->to != TO_NODE_MAIL || flight->waited) return false;
    const uint64_t now_us = self->now_ms * 1000;
    const uint64_t from_us = self->busy_until_us > now_us ? self->busy_until_us : now_us;
    const uint64_t wait_ms = from_us / 1000 - self->now_ms;
    // What came while it was frozen is there at once
    const bool thawed = self->now_ms < self->nodes[COORDINATOR].frozen_ms + 5 * WAIT_MS;
    if (wait_ms > WAIT_MS && !faulty(self) && !thawed)
        broken(self, "no letter to the coordinator waits for long",
               "a %s of %s has to wait %" PRIu64 " ms", wire_kind_name(flight->parcel->kind),
               flight->name, wait_ms);
    self->busy_until_us = from_us + HEAR_US;
    if (wait_ms == 0) return false;
    network_wait(self, wait_ms, flight);
    return true;
}

void work_done(struct sim *self, uint8_t id, uint32_t bytes, bool from_ledger)
{
    if (id != COORDINATOR) return;
    const uint64_t now_us = self->now_ms * 1000;
    if (self->busy_until_us < now_us) self->busy_until_us = now_us;
    self->busy_until_us += SAY_US + bytes / BYTES_A_US + (from_ledger ? READ_US : 0);
}
