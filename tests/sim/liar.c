// liar -- members that lie, each with its own valid key: what goes out in place of the truth, or
// beside it. As a witness one names results that nobody claimed, swaps payloads, leaves out what
// it holds, says that nothing is missing, votes twice differently. As a trainer it claims one
// thing here and another there, from parameters or a residual that it never had; makes results up,
// copies them from others or says again what was true once; serves some and not others. As an
// auditor it says what it did not find; audited itself, it is silent, or shows something else. As
// the checkpointer it registers what nobody committed. What the others wait for it says late.
// Those who collude cover for one another. What no core would send at all is in intruder.c.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <string.h>

bool is_liar(const struct sim *self, uint8_t id) { return self->plan.liars >> id & 1; }

bool lying(struct sim *self, uint8_t id, enum lie lie, uint32_t of_1000)
{
    if (!is_liar(self, id) || !(self->plan.lies & lie)) return false;
    return (faulty(self) || self->plan.stubborn) && roll(self, 1000) < of_1000;
}

struct hash invent(struct sim *self) { return hash_number("lie", roll(self, 0)); }

struct parcel *lie_pack(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    size_t bytes = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    self->faults[LIE]++;
    return parcel_new(self, &self->nodes[id], kind, self->bytes, (uint32_t)bytes);
}

// ---- results ------------------------------------------------------------------------------------

// Another's result of this round, or whatever was accepted once.
static bool copy_result(struct sim *self, uint8_t id, uint64_t round, struct hash *payload)
{
    const struct ghost *ghost = &self->ghost;
    for (uint32_t i = ghost->claims_count; i-- > 0 && ghost->claims[i].round == round;)
        if (ghost->claims[i].author != id) {
            *payload = ghost->claims[i].payload;
            return true;
        }
    if (ghost->accepted_count == 0) return false;
    *payload = ghost->accepted[roll(self, ghost->accepted_count)].payload;
    return true;
}

// Someone else's name for the bytes of something else: no result has them.
static bool is_no_result(const struct sim *self, const struct hash *payload)
{
    for (uint8_t id = 0; id < self->nodes_count; id++) {
        const struct store *store = &self->nodes[id].store;
        if (store_has(store, payload) &&
            !store_holds(store, payload, rounds_config(&self->plan.rules)->payload_bytes))
            return true;
    }
    return false;
}

bool liar_makes_up(struct sim *self, uint8_t id, uint64_t round, struct hash *payload)
{
    if (!lying(self, id, LIES_IN_RESULTS, 800)) return false;
    const struct hash truth = *payload;
    const uint64_t way = roll(self, 4);
    if (way == 0 || !copy_result(self, id, round, payload) || is_no_result(self, payload))
        *payload = hash_of_two("wrong", 5, truth.bytes, HASH_BYTES);
    if (way == 1) *payload = hash_number("nothing was done", 0);
    if (hash_equal(payload, &truth)) return false;
    self->faults[WRONG]++;
    self->ghost.made_up[id] = *payload;
    return true;
}

// The same to whoever hears of the same round: no equivocation, only untrue.
static uint64_t whim(const struct sim *self, uint8_t id, uint64_t round)
{
    const uint64_t words[3] = { self->seed, id, round };
    struct hash hash = hash_of(words, sizeof words);
    return hash.bytes[0];
}

// Its newest result that a restore gave up.
static const struct ghost_accepted *given_up(const struct sim *self, uint8_t id)
{
    const struct ghost *ghost = &self->ghost;
    for (uint32_t i = ghost->accepted_count; i-- > 0;)
        if (ghost->accepted[i].given_up && check_node(self, ghost->accepted[i].member) == id)
            return &ghost->accepted[i];
    return NULL;
}

static bool bend(const struct sim *self, uint8_t id, struct wire_claim *claim)
{
    const struct ghost *ghost = &self->ghost;
    const uint32_t lies = self->plan.lies & (LIES_IN_BASES | LIES_IN_RESIDUALS);
    const uint64_t way = whim(self, id, claim->round);
    const struct ghost_accepted *gone = given_up(self, id);
    if (!lies || way % 3 == 0) return false;
    if (way % 8 == 2) claim->payload_bytes = 1u << 30; // As much as a blob may be
    else if (way % 8 == 4 && !hash_is_none(&ghost->revealed)) claim->payload = ghost->revealed;
    else if (lies & LIES_IN_BASES && (way & 1 || lies == LIES_IN_BASES))
        claim->base = hash_number("lie", claim->round);
    else if (way & 4 && gone) claim->residual_from = gone->residual_to;
    else if (way & 2 && ghost->accepted_count) // Another's, or one of its own long ago
        claim->residual_from = ghost->accepted[way % ghost->accepted_count].residual_to;
    else claim->residual_from = hash_number("lie", way);
    return true;
}

// One claim to some and another one to the others, none to all: nobody hears both.
bool liar_keeps_apart(const struct sim *self, uint8_t id)
{
    return self->plan.lies & LIES_TWICE && whim(self, id, check_round(self)) & 1;
}

// An honest trainer writes to a witness only when the news may be lost. Who says two things writes at once.
bool liar_writes_to_each(const struct sim *self, uint8_t id, const struct effect *effect)
{
    return is_liar(self, id) && self->plan.lies & LIES_TWICE && effect->kind == FRAME_CLAIM &&
           effect->port == PORT_NEWS && (faulty(self) || self->plan.stubborn);
}

static bool hears_other(struct sim *self, uint8_t id, const struct effect *effect)
{
    const bool apart = liar_keeps_apart(self, id);
    if (effect->port != PORT_MAIL || !lying(self, id, LIES_TWICE, apart ? 1000 : 700)) return false;
    return !apart || node_named(self, effect->to) & 1;
}

static struct parcel *twist_claim(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    struct wire_claim claim = *(const struct wire_claim *)unpack(self, &self->scratch, effect->kind,
                                                                 effect->body, effect->bytes);
    const bool lasts = faulty(self) || self->plan.stubborn;
    struct wire_claim *said = &self->ghost.bent[id];
    // Who lies to all alike goes on with it while the round lasts, all else healed or not
    const bool again = !(self->plan.lies & LIES_TWICE) && said->round == claim.round &&
                       said->born_unix_ms == claim.born_unix_ms;
    bool bent = again || (lasts && bend(self, id, &claim));
    if (again) claim = *said;
    else if (bent) *said = claim;
    if (hears_other(self, id, effect)) {
        claim.payload = hash_of_two("other", 5, claim.payload.bytes, HASH_BYTES);
        claim.residual_to = claim.payload;
        store_add(self, &node->store, &claim.payload,
                  rounds_config(&self->plan.rules)->payload_bytes);
        bent = true;
    }
    if (!bent) return NULL;
    check_claimed_falsely(self, id, &claim);
    if (effect->port == PORT_MAIL && liar_keeps_apart(self, id) && roll(self, 4) == 0)
        intruder_send_claim_copy(self, id, &claim);
    return lie_pack(self, id, FRAME_CLAIM, &claim);
}

// ---- votes, digests -----------------------------------------------------------------------------

static uint32_t leave_out(struct sim *self, struct wire_seen *seen, uint32_t count)
{
    uint32_t gone = (uint32_t)roll(self, count);
    memmove(seen + gone, seen + gone + 1, (count - gone - 1) * sizeof *seen);
    return count - 1;
}

static struct parcel *twist_vote(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_vote vote = *(const struct wire_vote *)unpack(self, &self->scratch, effect->kind,
                                                              effect->body, effect->bytes);
    struct wire_seen seen[NODES_MAX + 1];
    uint32_t count = vote.seen_count;
    ensure(count <= NODES_MAX);
    if (count) memcpy(seen, vote.seen, count * sizeof *seen);
    struct wire_seen *one = count ? &seen[roll(self, count)] : NULL;
    switch (roll(self, 8)) {
    case 0:
        if (count) count = leave_out(self, seen, count);
        break;
    case 1:
        if (one) one->result = self->plan.collude ? hash_number("lie", vote.round) : invent(self);
        break;
    case 2:
        if (one) one->payload = invent(self);
        break;
    case 3: // A client that the round may not even have
        seen[count++] =
            (struct wire_seen){ .client = (uint32_t)roll(self, roll(self, 2) ? 16 : 16384),
                                .result = invent(self),
                                .payload = invent(self),
                                .payload_bytes = 1000,
                                .base = invent(self) };
        break;
    case 4: // One client twice
        if (one) seen[count++] = *one;
        break;
    case 5:
        if (one) one->residual_from = invent(self);
        break;
    case 6:
        if (one) one->base = hash_number("lie", vote.round);
        break;
    default: count = 0;
    }
    vote.complete = roll(self, 2);
    if (roll(self, 3) == 0)
        memset((uint8_t *)(uintptr_t)vote.participants.data, 0, vote.participants.count);
    vote.seen = seen;
    vote.seen_count = count;
    return lie_pack(self, id, FRAME_VOTE, &vote);
}

static struct parcel *twist_holds(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_holds holds = *(const struct wire_holds *)unpack(self, &self->scratch, effect->kind,
                                                                 effect->body, effect->bytes);
    holds.digest = hash_number("lie", self->seed);
    if (roll(self, 4) == 0) holds.step += roll(self, 3);
    return lie_pack(self, id, FRAME_HOLDS, &holds);
}

// A digest that nobody committed, of the step or of another, or the right one under another step.
static struct parcel *twist_checkpoint(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_checkpoint said = *(const struct wire_checkpoint *)unpack(
        self, &self->scratch, effect->kind, effect->body, effect->bytes);
    const uint64_t way = roll(self, 3);
    if (way < 2) said.digest = invent(self);
    if (way > 0) said.step = check_step(self) - roll(self, check_step(self) + 1) + roll(self, 3);
    return lie_pack(self, id, FRAME_CHECKPOINT, &said);
}

// ---- audits -------------------------------------------------------------------------------------

static bool is_accomplice(const struct sim *self, uint32_t member)
{
    const uint8_t node = check_node(self, member);
    return node != NOBODY && is_liar(self, node);
}

// The word that helps whoever lies, and harms whoever does not.
static uint8_t partial(const struct sim *self, const struct hash *result, uint8_t truth)
{
    const struct ghost *ghost = &self->ghost;
    for (uint32_t i = 0; i < ghost->audits_count; i++) {
        const struct wire_audit *audit = &ghost->audits[i];
        if (!hash_equal(&audit->result, result)) continue;
        if (is_accomplice(self, audit->member)) return FINDING_SAME;
        if (audit->judges && !is_accomplice(self, audit->accuser)) return FINDING_SAME;
        return audit->judges                ? audit->accusation
               : audit->result.bytes[0] & 1 ? FINDING_DIFFERENT
                                            : FINDING_WITHHELD;
    }
    return truth;
}

static struct parcel *twist_finding(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_finding finding = *(const struct wire_finding *)unpack(
        self, &self->scratch, effect->kind, effect->body, effect->bytes);
    finding.finding = self->plan.collude ? partial(self, &finding.result, finding.finding)
                                         : (uint8_t)between(self, FINDING_PENDING, FINDING_UNABLE);
    finding.payload = invent(self);
    return lie_pack(self, id, FRAME_FINDING, &finding);
}

static struct parcel *twist_reveal(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct wire_reveal reveal = *(const struct wire_reveal *)unpack(
        self, &self->scratch, effect->kind, effect->body, effect->bytes);
    switch (roll(self, 4)) {
    case 0: reveal.residual.hash = invent(self); break;
    case 2: // Another's, which that one may have to show, too
        reveal.residual = (struct wire_blob){ self->ghost.revealed, RESIDUAL_BYTES };
        break;
    case 1: // What it has, of one size for all who make it up
        reveal.residual.hash = hash_number("shown", reveal.residual.bytes);
        store_add(self, &self->nodes[id].store, &reveal.residual.hash, reveal.residual.bytes);
        break;
    default: reveal.claim.payload = invent(self);
    }
    return lie_pack(self, id, FRAME_REVEAL, &reveal);
}

void liar_overhears(struct sim *self, const struct effect *effect)
{
    if (effect->kind != FRAME_REVEAL) return;
    const struct wire_reveal *reveal =
        unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
    if (!hash_is_none(&reveal->residual.hash)) self->ghost.revealed = reveal->residual.hash;
}

// ---- silence ------------------------------------------------------------------------------------

bool liar_withholds(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (effect->kind == FRAME_CLAIM && effect->port == PORT_NEWS && liar_keeps_apart(self, id))
        return lying(self, id, LIES_TWICE, 1000);
    if (effect->kind != FRAME_REVEAL && effect->kind != FRAME_FINDING) return false;
    if (!lying(self, id, LIES_BY_SILENCE, 1000)) return false;
    const uint64_t way = whim(self, id, check_round(self));
    if (effect->kind == FRAME_FINDING) return way % 3 == 0;
    return way & 1 ? way >> 1 & 1 : (way >> 2 & node_named(self, effect->to)) % 2;
}

// Half of the others get it, and not the same half of everything.
bool liar_serves(const struct sim *self, uint8_t id, uint8_t to, const struct hash *blob)
{
    if (!is_liar(self, id) || !(self->plan.lies & LIES_BY_SILENCE)) return true;
    if (!faulty(self) && !self->plan.stubborn) return true;
    return (blob->bytes[0] + to) & 1;
}

// ---- delay --------------------------------------------------------------------------------------

uint64_t liar_delay_ms(struct sim *self, uint8_t id, uint16_t kind)
{
    const struct rules *rules = &self->plan.rules;
    const bool is_by_time = kind == FRAME_VOTE || kind == FRAME_HOLDS || kind == FRAME_FINDING;
    if (!is_by_time || !lying(self, id, LIES_BY_DELAY, 700)) return 0;
    self->faults[LIE]++;
    switch (kind) {
    case FRAME_VOTE: return roll(self, 2 * rules->witness_ms);
    case FRAME_HOLDS: return roll(self, 2 * rules->cooldown_ms);
    default: return roll(self, 2 * rules->train_ms);
    }
}

// ---- by kind ------------------------------------------------------------------------------------

struct parcel *liar_twist(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct parcel *twisted = self->pace->twist ? self->pace->twist(self, id, effect) : NULL;
    if (twisted) return twisted;
    if (!is_liar(self, id)) return NULL;
    if (effect->kind == FRAME_CLAIM) return twist_claim(self, id, effect);
    if (effect->port != PORT_MAIL) return NULL;
    switch (effect->kind) {
    case FRAME_VOTE:
        return self->ghost.witnesses_count > 1 && lying(self, id, LIES_IN_VOTES, 700)
                   ? twist_vote(self, id, effect)
                   : NULL;
    case FRAME_HOLDS:
        return lying(self, id, LIES_ABOUT_DIGESTS, 700) ? twist_holds(self, id, effect) : NULL;
    case FRAME_CHECKPOINT:
        return lying(self, id, LIES_ABOUT_DIGESTS, 700) ? twist_checkpoint(self, id, effect) : NULL;
    case FRAME_FINDING:
        return lying(self, id, LIES_IN_FINDINGS, 700) ? twist_finding(self, id, effect) : NULL;
    case FRAME_REVEAL:
        return lying(self, id, LIES_IN_REVEALS, 700) ? twist_reveal(self, id, effect) : NULL;
    default: return NULL;
    }
}
