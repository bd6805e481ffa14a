#include "common/pace/rounds/tally.h"
#include "common/base/ensure.h"
#include "common/run/quorum.h"
#include <string.h>

void tally_init(struct tally *self, uint32_t clients, uint32_t elected)
{
    ensure(clients <= MEMBERS_MAX && elected <= WITNESSES_MAX);
    self->clients = clients;
    self->elected = elected;
    self->voted = self->complete = 0;
    // mutant: votes of the last round count in the next
    memset(self->has_voted, 0, sizeof self->has_voted);
    memset(self->rivals_count, 0, clients);
    memset(self->asked, 0, clients * sizeof *self->asked);
    memset(self->health, 0, clients);
}

// Clients in rising order: cheap to check, and nobody can name one twice.
static bool well_formed(const struct tally *self, const struct wire_vote *vote)
{
    for (uint32_t i = 0; i < vote->seen_count; i++) {
        if (vote->seen[i].client >= self->clients) return false;
        if (i > 0 && vote->seen[i].client <= vote->seen[i - 1].client) return false;
    }
    return true;
}

static bool same(const struct wire_seen *a, const struct wire_seen *b)
{
    // mutant: votes are counted by batch, not by result
    return a->payload_bytes == b->payload_bytes && hash_equal(&a->result, &b->result) &&
           hash_equal(&a->payload, &b->payload) && hash_equal(&a->base, &b->base) &&
           hash_equal(&a->residual_from, &b->residual_from) &&
           hash_equal(&a->residual_to, &b->residual_to);
}

static void count_one(struct tally *self, uint32_t witness, const struct wire_seen *seen)
{
    struct rival *rivals = self->rivals[seen->client];
    uint8_t *count = &self->rivals_count[seen->client];
    for (uint8_t i = 0; i < *count; i++)
        if (same(&rivals[i].seen, seen)) {
            rivals[i].votes++;
            rivals[i].voters |= (uint64_t)1 << witness;
            return;
        }
    if (*count < TALLY_RIVALS_MAX)
        rivals[(*count)++] = (struct rival){ *seen, (uint64_t)1 << witness, 1 };
}

enum tally_verdict tally_count(struct tally *self, uint32_t witness, const struct wire_vote *vote)
{
    ensure(witness < self->elected);
    // mutant: a witness is counted twice
    if (self->has_voted[witness]) return TALLY_TWICE;
    if (!well_formed(self, vote)) return TALLY_MALFORMED;
    self->has_voted[witness] = 1;
    self->voted++;
    if (vote->complete) self->complete++;
    for (uint32_t i = 0; i < vote->seen_count; i++) count_one(self, witness, &vote->seen[i]);
    return TALLY_COUNTED;
}

bool tally_ask(struct tally *self, uint32_t client, uint32_t *ret_witness)
{
    uint64_t *asked = &self->asked[client];
    if (self->rivals_count[client] < 2) return false;
    for (uint8_t i = 0; i < self->rivals_count[client]; i++) {
        const uint64_t voters = self->rivals[client][i].voters;
        const int enough = (int)quorum_liars(self->elected) + 1;
        if (__builtin_popcountll(voters & *asked) >= enough || !(voters & ~*asked)) continue;
        *ret_witness = (uint32_t)__builtin_ctzll(voters & ~*asked);
        // mutant: a witness is asked again and again
        *asked |= (uint64_t)1 << *ret_witness;
        return true;
    }
    return false;
}

const struct wire_seen *tally_accepted(const struct tally *self, uint32_t client)
{
    for (uint8_t i = 0; i < self->rivals_count[client]; i++)
        if (quorum_reached(self->rivals[client][i].votes, self->elected))
            return &self->rivals[client][i].seen;
    return NULL;
}

bool tally_base(const struct tally *self, const struct hash *only, uint32_t least,
                struct hash *ret_base)
{
    // Majority vote of Boyer and Moore finds the only candidate in one pass, a second pass counts.
    const struct hash *candidate = NULL;
    uint32_t lead = 0, accepted = 0, share = 0;
    for (uint32_t c = 0; c < self->clients; c++) {
        const struct wire_seen *seen = tally_accepted(self, c);
        if (!seen) continue;
        accepted++;
        if (lead == 0) candidate = &seen->base;
        lead += hash_equal(candidate, &seen->base) ? 1 : UINT32_MAX;
    }
    if (!hash_is_none(only)) candidate = only;
    if (!candidate) return false;
    for (uint32_t c = 0; c < self->clients; c++) {
        const struct wire_seen *seen = tally_accepted(self, c);
        if (seen && hash_equal(candidate, &seen->base)) share++;
    }
    if (share == 0 ||
        (hash_is_none(only) && (share < least || 3 * (uint64_t)share < 2 * (uint64_t)accepted)))
        return false;
    *ret_base = *candidate;
    return true;
}
