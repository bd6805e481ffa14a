// liar -- one member that lies, with its own valid key. As a witness it names results that nobody
// claimed, swaps payloads, leaves out what it holds, says that nothing is missing, votes twice
// differently, votes though nobody elected it. As a trainer it claims one thing here and another
// there, makes results up (learner.c), and says that it holds what it does not. As an auditor it says
// what it did not find; audited itself, it is silent.

#include "common/ensure.h"
#include "tests/sim/sim.h"
#include <string.h>

static struct hash invent(struct sim *self) { return hash_number("lie", roll(self, 0)); }

static uint32_t leave_out(struct sim *self, struct wire_seen *seen, uint32_t count)
{
    uint32_t gone = (uint32_t)roll(self, count);
    memmove(seen + gone, seen + gone + 1, (count - gone - 1) * sizeof *seen);
    return count - 1;
}

static struct parcel *pack(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    size_t bytes = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    self->faults[LIE]++;
    return parcel_new(self, &self->nodes[id], kind, self->bytes, (uint32_t)bytes);
}

// Another result for the same batch, which it serves as well.
static struct parcel *twist_claim(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    struct wire_claim claim = *(const struct wire_claim *)unpack(self, &self->scratch, effect->kind,
                                                                 effect->body, effect->bytes);
    claim.payload = hash_of_two("other", 5, claim.payload.bytes, HASH_BYTES);
    claim.residual_to = claim.payload;
    store_add(self, &node->store, &claim.payload);
    check_claimed_falsely(self, id, &claim);
    return pack(self, id, FRAME_CLAIM, &claim);
}

static struct parcel *twist_holds(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_holds holds = *(const struct wire_holds *)unpack(self, &self->scratch, effect->kind,
                                                                 effect->body, effect->bytes);
    holds.digest = hash_number("lie", self->seed);
    return pack(self, id, FRAME_HOLDS, &holds);
}

static struct parcel *twist_vote(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_vote vote = *(const struct wire_vote *)unpack(self, &self->scratch, effect->kind,
                                                              effect->body, effect->bytes);
    struct wire_seen seen[NODES_MAX];
    uint32_t count = vote.seen_count;
    ensure(count < NODES_MAX);
    if (count) memcpy(seen, vote.seen, count * sizeof *seen);
    switch (roll(self, 5)) {
    case 0:
        if (count) count = leave_out(self, seen, count);
        break;
    case 1:
        if (count) seen[roll(self, count)].result = invent(self);
        break;
    case 2:
        if (count) seen[roll(self, count)].payload = invent(self);
        break;
    case 3:                                         // A client that the round may not even have
        seen[count++] = (struct wire_seen){ .client = (uint32_t)roll(self, 8),
                                           .result = invent(self),
                                           .payload = invent(self),
                                           .payload_bytes = 1000,
                                           .base = invent(self) };
        break;
    default: count = 0;
    }
    vote.complete = roll(self, 2);
    vote.seen = seen;
    vote.seen_count = count;
    return pack(self, id, FRAME_VOTE, &vote);
}

static struct parcel *twist_finding(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_finding finding = *(const struct wire_finding *)unpack(
        self, &self->scratch, effect->kind, effect->body, effect->bytes);
    finding.finding = (uint8_t)between(self, FINDING_SAME, FINDING_UNABLE);
    finding.payload = invent(self);
    return pack(self, id, FRAME_FINDING, &finding);
}

bool liar_withholds(struct sim *self, uint8_t id, const struct effect *effect)
{
    return id == self->plan.liar && self->plan.lies & LIES_BY_SILENCE && faulty(self) &&
           effect->kind == FRAME_REVEAL;
}

struct parcel *liar_twist(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (id != self->plan.liar || effect->port != PORT_MAIL || !chance(self, 700)) return NULL;
    const uint32_t lies = self->plan.lies;
    switch (effect->kind) {
    case FRAME_VOTE:
        if (!(lies & LIES_IN_VOTES) || self->ghost.witnesses_count < 2) return NULL;
        return twist_vote(self, id, effect);
    case FRAME_CLAIM:   return lies & LIES_TWICE ? twist_claim(self, id, effect) : NULL;
    case FRAME_HOLDS:   return lies & LIES_ABOUT_DIGESTS ? twist_holds(self, id, effect) : NULL;
    case FRAME_FINDING: return lies & LIES_IN_FINDINGS ? twist_finding(self, id, effect) : NULL;
    default:            return NULL;
    }
}

// A vote for its own result by one that nobody elected.
void liar_intrude(struct sim *self, uint8_t id, const struct effect *effect)
{
    const struct ghost *ghost = &self->ghost;
    if (id != self->plan.liar || effect->kind != FRAME_CLAIM || effect->port != PORT_NEWS ||
        !faulty(self) || !(self->plan.lies & LIES_IN_VOTES))
        return;
    for (uint32_t i = 0; i < ghost->witnesses_count; i++)
        if (hash_equal(&ghost->members[ghost->witnesses[i]].key, &self->nodes[id].key)) return;
    const struct wire_claim *claim =
        unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
    struct wire_seen seen = { .client = claim->client,
                             .result = invent(self),
                             .payload = claim->payload,
                             .payload_bytes = claim->payload_bytes,
                             .base = claim->base };
    struct wire_vote vote = {
        .round = claim->round, .complete = true, .seen = &seen, .seen_count = 1 };
    struct parcel *parcel = pack(self, id, FRAME_VOTE, &vote);
    network_mail(self, id, "coordinator", parcel);
    parcel_release(parcel);
}
