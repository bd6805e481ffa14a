// intruder -- what no honest core would send at all, by a member with a valid key: votes and
// findings that nobody elected it to, orders to the run, claims for others' batches, old letters
// of its own said again, claims of others from another round, another run, or the same run before
// it was begun anew, and very many letters. The broker passes on nothing under a key other than
// the sender's (see network.c), so what others signed travels only inside a CLAIM_COPY.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <string.h>

static void post(struct sim *self, uint8_t id, const char *to, uint16_t kind, const void *body)
{
    struct parcel *parcel = lie_pack(self, id, kind, body);
    network_mail(self, id, to, parcel);
    parcel_release(parcel);
}

static void tell_coordinator(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    self->faults[FORGERY]++;
    post(self, id, "coordinator", kind, body);
}

// ---- unbidden -----------------------------------------------------------------------------------

static bool is_elected(const struct sim *self, uint8_t id)
{
    const struct ghost *ghost = &self->ghost;
    for (uint32_t i = 0; i < ghost->witnesses_count; i++)
        if (ghost->witnesses[i] == check_member(self, id)) return true;
    return false;
}

// A vote for its own result by one that nobody elected.
void intruder_vote(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (effect->kind != FRAME_CLAIM || effect->port != PORT_NEWS || is_elected(self, id) ||
        !lying(self, id, LIES_UNBIDDEN, 1000))
        return;
    const struct wire_claim *claim =
        unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
    struct wire_seen seen = { .client = claim->client,
                              .result = invent(self),
                              .payload = claim->payload,
                              .payload_bytes = claim->payload_bytes,
                              .base = claim->base };
    tell_coordinator(self, id, FRAME_VOTE,
                     &(struct wire_vote){
                         .round = claim->round, .complete = true, .seen = &seen, .seen_count = 1 });
}

// Of an audit that is somebody else's to do.
static void find_unasked(struct sim *self, uint8_t id)
{
    const struct ghost *ghost = &self->ghost;
    if (ghost->audits_count == 0) return;
    const struct wire_audit *audit = &ghost->audits[roll(self, ghost->audits_count)];
    if (ghost->clients[audit->auditor] == check_member(self, id)) return;
    tell_coordinator(self, id, FRAME_FINDING,
                     &(struct wire_finding){
                         .round = check_round(self),
                         .result = audit->result,
                         .finding = (uint8_t)between(self, FINDING_SAME, FINDING_WITHHELD) });
}

static void claim_for_another(struct sim *self, uint8_t id)
{
    const uint8_t other = (uint8_t)between(self, 1, self->plan.trainers);
    struct wire_claim claim = self->ghost.newest[other];
    if (other == id || claim.round == 0 || claim.round != check_round(self)) return;
    claim.payload = invent(self);
    if (roll(self, 2)) claim.author = self->nodes[id].key;
    self->faults[FORGERY]++;
    for (uint8_t to = 1; to <= self->plan.trainers + self->plan.witnesses; to++)
        if (to != id) post(self, id, self->nodes[to].name, FRAME_CLAIM, &claim);
}

static void act_unbidden(struct sim *self, uint8_t id)
{
    struct wire_seen seen = { .client = 0, .result = invent(self), .payload = invent(self) };
    const uint64_t round = check_round(self);
    switch (roll(self, 8)) {
    case 0: // All is right but for the signature
        tell_coordinator(
            self, id, FRAME_CONTROL,
            &(struct wire_control){ .action = (uint8_t)roll(self, ACTION_RESTORE + 1),
                                    .number = self->now_ms + 1,
                                    .incarnation = self->nodes[COORDINATOR].incarnation });
        break;
    case 1:
        tell_coordinator(self, id, FRAME_CHECKPOINT,
                         &(struct wire_checkpoint){ .step = check_step(self),
                                                    .digest = invent(self),
                                                    .name = "step-lie" });
        break;
    case 2: // Of a round that is not, or not yet
        tell_coordinator(self, id, FRAME_VOTE,
                         &(struct wire_vote){ .round = round + 1 + roll(self, 3),
                                              .complete = true,
                                              .seen = &seen,
                                              .seen_count = 1 });
        break;
    case 3:
        tell_coordinator(self, id, FRAME_HOLDS,
                         &(struct wire_holds){ .step = check_step(self) + 1 + roll(self, 2),
                                               .digest = invent(self) });
        break;
    case 4:
        tell_coordinator(self, id, FRAME_PING,
                         &(struct wire_ping){ .instance = UINT64_MAX,
                                              .round = UINT64_MAX,
                                              .step = UINT64_MAX,
                                              .tokens_per_s = 1e38f,
                                              .loss = -1e38f });
        break;
    case 5: claim_for_another(self, id); break;
    default: find_unasked(self, id);
    }
}

// ---- claim_copy ----------------------------------------------------------------------------------

// The claim as its author signed it, or would have in another life.
void intruder_send_claim_copy(struct sim *self, uint8_t id, const struct wire_claim *claim)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES] = { 1 };
    uint8_t frame[1024];
    struct wire_head head = { .kind = FRAME_CLAIM, .run = "sim", .incarnation = 1, .seq = 1 };
    head.sender = claim->author;
    size_t count = wire_pack(&head, claim, frame, sizeof frame);
    ensure(count > 0);
    count = wire_put_signature(frame, count, signature, sizeof frame);
    tell_coordinator(self, id, FRAME_CLAIM_COPY,
                     &(struct wire_claim_copy){ .claim = { frame, (uint32_t)count } });
}

static void bear_false_witness(struct sim *self, uint8_t id)
{
    const uint8_t other = (uint8_t)between(self, 1, self->plan.trainers);
    const struct wire_claim *newest = &self->ghost.newest[other];
    if (is_liar(self, other) || newest->round == 0) return;
    struct wire_claim elsewhere = *newest;
    elsewhere.payload = invent(self);
    elsewhere.born_unix_ms--; // The same run, before it was begun anew
    if (roll(self, 2)) {
        elsewhere.born_unix_ms++;
        memcpy(elsewhere.run, "another", 8);
    }
    intruder_send_claim_copy(self, id, newest);
    intruder_send_claim_copy(self, id, &elsewhere);
    if (self->ghost.before[other].round)
        intruder_send_claim_copy(self, id, &self->ghost.before[other]);
}

// ---- old letters, many letters ------------------------------------------------------------------

void intruder_keep(struct sim *self, uint8_t id, const char *to, struct parcel *parcel)
{
    if (!is_liar(self, id) || !(self->plan.lies & LIES_BY_REPLAY)) return;
    struct letter *letter = &self->letters[roll(self, LETTERS_MAX)];
    parcel_release(letter->parcel);
    *letter = (struct letter){ .node = id, .parcel = parcel };
    memcpy(letter->to, to, strlen(to) + 1);
    parcel->refs++;
}

void intruder_clear(struct sim *self)
{
    for (uint32_t i = 0; i < LETTERS_MAX; i++) {
        parcel_release(self->letters[i].parcel);
        self->letters[i].parcel = NULL;
    }
}

static void replay(struct sim *self, uint8_t id)
{
    for (int i = 0; i < 4; i++) {
        const struct letter *letter = &self->letters[roll(self, LETTERS_MAX)];
        if (!letter->parcel || letter->node != id) continue;
        network_mail(self, id, letter->to, letter->parcel);
        self->faults[REPLAY]++;
    }
}

static void spam(struct sim *self, uint8_t id)
{
    const struct hash lie = invent(self);
    struct wire_seen seen[NODES_MAX];
    for (uint32_t i = 0; i < NODES_MAX; i++)
        seen[i] = (struct wire_seen){ .client = i, .result = lie, .payload = lie, .base = lie };
    for (int i = 0; i < 8; i++) {
        const uint64_t round = check_round(self) + roll(self, 2);
        self->faults[SPAM] += 4;
        post(self, id, "coordinator", FRAME_ASK, &(struct wire_ask){ (uint8_t)roll(self, 3), 0 });
        post(self, id, "coordinator", FRAME_HOLDS,
             &(struct wire_holds){ roll(self, 4), roll(self, 100), lie });
        if (!is_elected(self, id) && round)
            post(self, id, "coordinator", FRAME_VOTE,
                 &(struct wire_vote){
                     .round = round, .complete = true, .seen = seen, .seen_count = NODES_MAX });
        const struct wire_claim claim = { .run = "sim",
                                          .step = check_step(self),
                                          .round = round + 1,
                                          .client = (uint32_t)roll(self, 16384),
                                          .end = 1,
                                          .author = self->nodes[id].key,
                                          .payload = lie,
                                          .payload_bytes = UINT32_MAX };
        post(self, id, self->nodes[between(self, 1, self->plan.trainers)].name, FRAME_CLAIM,
             &claim);
    }
    post(self, id, "coordinator", FRAME_ASK, &(struct wire_ask){ .topic = TOPIC_COMMITS });
}

void intruder_act(struct sim *self, uint8_t id)
{
    if (!self->nodes[id].up || self->nodes[id].frozen_ms > self->now_ms) return;
    if (lying(self, id, LIES_UNBIDDEN, 700)) act_unbidden(self, id);
    if (lying(self, id, LIES_IN_TESTIMONY, 300)) bear_false_witness(self, id);
    if (lying(self, id, LIES_BY_REPLAY, 700)) replay(self, id);
    if (lying(self, id, LIES_BY_SPAM, 200)) spam(self, id);
}
