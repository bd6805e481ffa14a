// tally -- a vote is held against the result that leads, which it names nearly always. Only another result
// costs a hash: that of its name, which finds it among the rivals.

#include "common/pace/rounds/tally.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/run/lateness.h"
#include "common/run/quorum.h"
#include <string.h>

void tally_init(struct tally *self, uint32_t clients, uint32_t elected, const struct hash *secret)
{
    ensure(clients <= MEMBERS_MAX && elected <= WITNESSES_MAX);
    self->clients = clients;
    self->elected = elected;
    self->voted = self->complete = 0;
    self->secret = *secret;
    // mutant: votes of the last round count in the next
    memset(self->has_voted, 0, sizeof self->has_voted);
    memset(self->rivals_count, 0, clients);
    memset(self->choices, RIVAL_NONE, clients * sizeof *self->choices);
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

static struct rival rival_of(const struct tally *self, const struct wire_seen *seen)
{
    static const char domain[] = "shoal rival 1";
    const struct hash *hashes[] = { &self->secret, &seen->result,        &seen->payload,
                                    &seen->base,   &seen->residual_from, &seen->residual_to };
    enum { HASHES = sizeof hashes / sizeof *hashes };
    uint8_t bytes[sizeof domain + HASHES * HASH_BYTES + 4], *at = bytes + sizeof domain;
    struct rival rival;
    memcpy(bytes, domain, sizeof domain);
    for (size_t i = 0; i < HASHES; i++, at += HASH_BYTES) memcpy(at, hashes[i], HASH_BYTES);
    le_put(at, seen->payload_bytes, 4);
    const struct hash hash = hash_of(bytes, sizeof bytes);
    memcpy(rival.name, hash.bytes, sizeof rival.name);
    return rival;
}

// The number of this result among those named for its client; a new one if there is room, or RIVAL_NONE.
static uint8_t find_rival(struct tally *self, const struct wire_seen *seen)
{
    const struct wire_seen *leading = &self->leading[seen->client];
    struct rival *rivals = self->rivals[seen->client];
    uint8_t *count = &self->rivals_count[seen->client];
    if (same(leading, seen)) return self->leader[seen->client];
    if (*count == 1) rivals[0] = rival_of(self, leading);
    const struct rival rival = rival_of(self, seen);
    for (uint8_t i = 0; i < *count; i++)
        if (memcmp(rivals[i].name, rival.name, sizeof rival.name) == 0) return i;
    if (*count == TALLY_RIVALS_MAX) return RIVAL_NONE;
    rivals[*count] = rival;
    return (*count)++;
}

static uint8_t votes_for(const struct tally *self, uint32_t client, uint8_t rival)
{
    uint32_t votes = 0;
    for (uint32_t w = 0; w < WITNESSES_MAX; w++) votes += self->choices[client][w] == rival;
    return (uint8_t)votes;
}

static void count_one(struct tally *self, uint32_t witness, const struct wire_seen *seen)
{
    const uint32_t client = seen->client;
    if (self->rivals_count[client] == 0) {
        self->leading[client] = *seen;
        self->leader[client] = self->leader_votes[client] = 0;
        self->rivals_count[client] = 1;
    }
    const uint8_t rival = find_rival(self, seen);
    if (rival == RIVAL_NONE) return;
    self->choices[client][witness] = rival;
    if (rival == self->leader[client]) {
        self->leader_votes[client]++;
        return;
    }
    const uint8_t votes = votes_for(self, client, rival);
    if (votes <= self->leader_votes[client]) return;
    self->leader[client] = rival;
    self->leader_votes[client] = votes;
    self->leading[client] = *seen;
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
    self->half_ms[witness] = vote->half_ms;
    self->last[witness] = vote->last;
    self->last_ms[witness] = vote->last_ms;
    for (uint32_t i = 0; i < vote->seen_count; i++) count_one(self, witness, &vote->seen[i]);
    return TALLY_COUNTED;
}

bool tally_ask(struct tally *self, uint32_t client, uint32_t *ret_witness)
{
    const int enough = (int)quorum_liars(self->elected) + 1;
    const uint8_t *choices = self->choices[client];
    uint64_t *asked = &self->asked[client], voters[TALLY_RIVALS_MAX] = { 0 }; // A bit each
    if (self->rivals_count[client] < 2) return false;
    for (uint32_t w = 0; w < self->elected; w++)
        if (choices[w] != RIVAL_NONE) voters[choices[w]] |= (uint64_t)1 << w;
    for (uint8_t i = 0; i < self->rivals_count[client]; i++) {
        if (__builtin_popcountll(voters[i] & *asked) >= enough || !(voters[i] & ~*asked)) continue;
        *ret_witness = (uint32_t)__builtin_ctzll(voters[i] & ~*asked);
        // mutant: a witness is asked again and again
        *asked |= (uint64_t)1 << *ret_witness;
        return true;
    }
    return false;
}

uint32_t tally_most(const struct tally *self, uint32_t client)
{
    return self->rivals_count[client] ? self->leader_votes[client] : 0;
}

// A result with a quorum leads: no two have one.
const struct wire_seen *tally_accepted(const struct tally *self, uint32_t client)
{
    return quorum_reached(tally_most(self, client), self->elected) ? &self->leading[client] : NULL;
}

uint32_t tally_half_ms(const struct tally *self)
{
    uint32_t sorted[WITNESSES_MAX], count = 0;
    for (uint32_t w = 0; w < self->elected; w++) {
        if (!self->has_voted[w] || self->half_ms[w] == 0) continue;
        uint32_t at = count++;
        for (; at > 0 && sorted[at - 1] > self->half_ms[w]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = self->half_ms[w];
    }
    return count ? sorted[(count - 1) / 2] : 0;
}

// How long this vote says that the last result was waited for; 0: it does not call it late.
static uint32_t waited_by(const struct tally *self, uint32_t witness)
{
    const uint32_t half_ms = self->half_ms[witness], last_ms = self->last_ms[witness];
    const bool is_late =
        self->has_voted[witness] && half_ms > 0 && last_ms > (uint64_t)LATENESS_TIMES * half_ms;
    return is_late ? last_ms - half_ms : 0;
}

bool tally_waited_for(const struct tally *self, uint32_t *ret_client, uint32_t *ret_waited_ms)
{
    uint32_t longest = 0;
    for (uint32_t w = 0; w < self->elected; w++) {
        const uint32_t waited_ms = waited_by(self, w);
        uint32_t votes = 0;
        for (uint32_t v = 0; v < self->elected; v++)
            votes += self->last[v] == self->last[w] && waited_by(self, v) >= waited_ms;
        // mutant: waits: one liar says whom the rounds wait for
        if (waited_ms <= longest || votes <= quorum_liars(self->elected)) continue;
        longest = *ret_waited_ms = waited_ms;
        *ret_client = self->last[w];
    }
    return longest > 0;
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
