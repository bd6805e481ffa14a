// Takes a claim if everything that can be checked without its payload is right, fetches the
// payload, and acknowledges the claim. Votes once: when every expected result is here, when those
// that are not are late, or when RoundWitness begins. It keeps the claims of this round and the
// previous one as their authors signed them, and sends them to the coordinator as equivocation
// evidence: when a client claims twice, when a commit names another claim, on request.

#include "common/pace/rounds/witness.h"
#include "common/member/replica.h"
#include "common/run/phase.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds_config.h"
#include <inttypes.h>
#include <string.h>

// ---- who is late --------------------------------------------------------------------------------

// Whether a result that is not here by now is late.
static bool rest_is_late(const struct witness *self, uint64_t now_ms)
{
    // mutant: late: what most are late with is late
    // mutant: late: a witness waits for every result
    return self->half_ms > 0 &&
           now_ms - self->began_ms > lateness_from(&self->lateness, self->half_ms);
}

// ---- claims -------------------------------------------------------------------------------------

void witness_begin(struct witness *self, const struct round_view *view, const struct member *member,
                   uint64_t now_ms)
{
    const uint32_t least_ms = rounds_config_of(&member->config)->least_train_ms;
    if (self->lateness.floor != least_ms || self->lateness.ceiling == 0)
        lateness_init(&self->lateness, least_ms, UINT32_MAX);
    // mutant: late: nobody learns what is usual
    if (self->half_ms) lateness_add(&self->lateness, self->half_ms);
    self->half_ms = self->here = self->last = self->last_ms = 0;
    self->began_ms = now_ms;
    self->round_before = self->round;
    self->sightings_before = self->sightings;
    self->clients_before = self->clients;
    self->clients = view->round.clients_count;
    self->sightings = self->memory[self->sightings == self->memory[0]];
    self->round = view->round.opened.round;
    self->voted = self->acknowledged = false;
    self->refused = 0;
    self->resend_ms = 0;
    for (uint32_t i = 0; i < view->round.clients_count; i++) {
        const struct wire_member *client = round_view_client(view, member, i);
        self->sightings[i].claimed = self->sightings[i].is_coming = false;
        self->sightings[i].is_here = false;
        self->sightings[i].answers = self->sightings[i].shown = 0;
        self->sightings[i].instance = client ? client->instance : 0;
    }
}

// True if the signed frame can be kept and shown later. Without it an author could sign a second
// claim and nothing would prove it, so such a claim is refused. A frame may be longer than the part
// that we decode; and a frame whose head names another run proves nothing in this one (audit.c).
static bool can_be_shown(const struct member *member, const struct msg *in)
{
    const bool is_ours = key_equal(&in->sender, &member->key);
    // mutant: guilt: a claim in a frame of another run is taken
    return in->frame_bytes <= CLAIM_FRAME_MAX &&
           (is_ours || (in->frame_bytes > 0 && strcmp(in->run, member->run) == 0));
}

// Everything that must be true of a claim before its payload is fetched.
static bool is_sound(const struct round_view *view, const struct member *member,
                     const struct msg *in, const struct wire_claim *claim)
{
    const struct wire_member *author = round_view_client(view, member, claim->client);
    struct share share;
    // mutant: a witness takes a claim of any size
    return author && key_equal(&author->key, &in->sender) &&
           key_equal(&claim->author, &in->sender) && strcmp(claim->run, member->run) == 0 &&
           claim->epoch == view->round.opened.epoch && claim->step == view->round.opened.step &&
           deal_of_trainer(&view->deal, claim->client, &share) && share.begin == claim->begin &&
           share.end == claim->end && claim->payload_bytes > 0 &&
           claim->born_unix_ms == member->born_unix_ms &&
           claim->payload_bytes == rounds_config_of(&member->config)->payload_bytes &&
           (hash_is_none(&view->round.opened.base) ||
            hash_equal(&view->round.opened.base, &claim->base));
}

// A member that does not vote in this round only begins to fetch the payload. It believes the
// commit alone, which names the payload again. So it does not need the signature of a claim, and
// its shell does not verify it (member->hint_kind).
static void fetch_early(struct witness *self, const struct round_view *view,
                        const struct member_turn *turn, const struct wire_claim *claim)
{
    struct sighting *sighting = &self->sightings[claim->client];
    if (sighting->is_coming) return;
    sighting->is_coming = true;
    sighting->seen.payload = claim->payload;
    sighting->seen.payload_bytes = claim->payload_bytes;
    blobs_want(turn->blobs, &(struct wire_blob){ claim->payload, claim->payload_bytes },
               claim->step, view->round.clients[claim->client].member);
}

// Keeps the claim as its author signed it, as evidence.
static void keep_frame(struct sighting *sighting, const struct msg *in)
{
    sighting->frame_bytes = in->frame_bytes; // 0: our own
    if (in->frame_bytes) memcpy(sighting->frame, in->frame, in->frame_bytes);
}

static void send_claim_copy(const uint8_t *frame, uint32_t bytes, struct outbox *out)
{
    if (bytes == 0 || bytes > CLAIM_FRAME_MAX) return;
    outbox_mail(out, "coordinator", FRAME_CLAIM_COPY,
                &(struct wire_claim_copy){ .claim = { frame, bytes } });
}

// The claim of a client in this round or in the previous one; NULL: none is kept.
static struct sighting *sighting_of(const struct witness *self, uint64_t round, uint32_t client)
{
    struct sighting *sightings = NULL;
    const uint32_t clients = round == self->round ? self->clients : self->clients_before;
    // mutant: a witness forgets the claims of the round before
    if (round == self->round) sightings = self->sightings;
    else if (round == self->round_before) sightings = self->sightings_before;
    return sightings && client < clients && sightings[client].claimed ? &sightings[client] : NULL;
}

void witness_hear_send_claim(const struct witness *self, const struct wire_send_claim *asked,
                             struct outbox *out)
{
    const struct sighting *sighting = sighting_of(self, asked->round, asked->client);
    if (sighting) send_claim_copy(sighting->frame, sighting->frame_bytes, out);
}

void witness_hear_commit(struct witness *self, const struct wire_commit *commit, struct outbox *out)
{
    // mutant: guilt: a witness keeps to itself what was not committed
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        struct sighting *sighting = sighting_of(self, commit->round, accepted->client);
        if (!sighting || hash_equal(&sighting->seen.result, &accepted->result) ||
            sighting->shown == PROOFS_MAX)
            continue;
        sighting->shown++;
        outbox_note(out, "claim.equivocation round=%" PRIu64 " client=%u; another one is committed",
                    commit->round, accepted->client);
        // mutant: guilt: a witness keeps one of two claims to itself
        send_claim_copy(sighting->frame, sighting->frame_bytes, out);
    }
}

void witness_hear_claim(struct witness *self, const struct round_view *view,
                        const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const struct msg *in = turn->in;
    struct outbox *out = turn->out;
    const struct wire_claim *claim = in->body;
    if (!member->has_round || claim->round != self->round ||
        self->round != view->round.opened.round)
        return;
    const bool is_witness = round_view_elects_us(view, member),
               fits = is_sound(view, member, in, claim);
    // mutant: who does not vote takes claims
    if (fits && !is_witness) {
        fetch_early(self, view, turn, claim);
        return;
    }
    // mutant: guilt: what could not be shown is a claim
    if (!fits || !can_be_shown(member, in)) {
        if (self->refused++ < REFUSALS_NOTED_MAX)
            outbox_note(out, "claim.refused round=%" PRIu64 " client=%u from=%s", claim->round,
                        claim->client, in->from);
        return;
    }
    struct sighting *sighting = &self->sightings[claim->client];
    struct hash name = claim_hash(claim);
    if (!sighting->claimed) {
        sighting->claimed = true;
        sighting->seen = (struct wire_seen){ .client = claim->client,
                                             .result = name,
                                             .payload = claim->payload,
                                             .payload_bytes = claim->payload_bytes,
                                             .base = claim->base,
                                             .residual_from = claim->residual_from,
                                             .residual_to = claim->residual_to };
        keep_frame(sighting, in);
        blobs_want(turn->blobs, &(struct wire_blob){ claim->payload, claim->payload_bytes },
                   claim->step, view->round.clients[claim->client].member);
    }
    // mutant: a witness answers without end
    if (!hash_equal(&sighting->seen.result, &name)) {
        if (sighting->shown == PROOFS_MAX) return;
        sighting->shown++;
        outbox_note(out, "claim.equivocation round=%" PRIu64 " client=%u; the first one counts",
                    claim->round, claim->client);
        send_claim_copy(sighting->frame, sighting->frame_bytes, out);
        send_claim_copy(in->frame, in->frame_bytes, out);
    } else if (in->from[0] && sighting->answers < ANSWERS_MAX) {
        sighting->answers++;
        outbox_mail(out, in->from, FRAME_ACK,
                    &(struct wire_ack){ .kind = FRAME_CLAIM, .round = claim->round, .hash = name });
    }
}

// True if the result is based on our parameters of the step. Without a replica every base passes.
static bool is_of_base(const struct witness *self, uint32_t client)
{
    // mutant: a member that is behind votes for any base
    return !self->has_replica || (!hash_is_none(&self->base) &&
                                  hash_equal(&self->sightings[client].seen.base, &self->base));
}

static bool is_false(const struct witness *self, uint32_t client)
{
    return self->sightings[client].claimed && !hash_is_none(&self->base) &&
           !is_of_base(self, client);
}

// Its payload is here: of a claim that we took or, if we do not vote, of one that nobody verified.
static bool has_come(const struct witness *self, const struct blobs *blobs, uint32_t client)
{
    const struct sighting *sighting = &self->sightings[client];
    const struct wire_blob payload = { sighting->seen.payload, sighting->seen.payload_bytes };
    // mutant: late: only the elected learn what is usual
    if (!sighting->claimed && !sighting->is_coming) return false;
    // mutant: a vote names what is only on its way
    return blobs_state(blobs, &payload) == BLOB_HERE;
}

static bool is_seen(const struct witness *self, const struct blobs *blobs, uint32_t client)
{
    return self->sightings[client].claimed && has_come(self, blobs, client);
}

// True if no more results are expected. None is expected of a trainer that left, was dropped or
// restarted, nor of one that joined during this round, since it does not train in it. In a roster
// older than that of the round a trainer is still pending, or gone, that trains in it: MEMBERS may
// come after ROUND.
static bool is_complete(const struct witness *self, const struct round_view *view,
                        const struct blobs *blobs, const struct member *member)
{
    // mutant: a witness with an older roster than the round's awaits nobody
    if (member->roster.version < view->round.opened.roster_version) return false;
    for (uint32_t i = 0; i < view->deal.count; i++) {
        uint32_t client = view->deal.shares[i].trainer;
        const struct wire_member *author = round_view_client(view, member, client);
        uint64_t instance = self->sightings[client].instance;
        bool awaited =
            !author || (author->state == MEMBER_HEALTHY && author->joined_number < self->round &&
                        (instance == 0 || author->instance == instance));
        if (!awaited || is_false(self, client)) continue;
        if (!is_seen(self, blobs, client) || !is_of_base(self, client)) return false;
    }
    return true;
}

void witness_note(struct witness *self, const struct round_view *view, const struct blobs *blobs,
                  uint64_t now_ms)
{
    if (self->round != view->round.opened.round || self->here == view->deal.count) return;
    for (uint32_t i = 0; i < view->deal.count; i++) {
        struct sighting *sighting = &self->sightings[view->deal.shares[i].trainer];
        if (sighting->is_here || !has_come(self, blobs, view->deal.shares[i].trainer)) continue;
        sighting->is_here = true;
        self->last = view->deal.shares[i].trainer;
        self->last_ms = now_ms > self->began_ms ? (uint32_t)(now_ms - self->began_ms) : 1;
        if (++self->here == (view->deal.count + 1) / 2) self->half_ms = self->last_ms;
    }
}

bool witness_is_due(const struct witness *self, const struct round_view *view,
                    const struct blobs *blobs, const struct member *member, uint64_t now_ms)
{
    if (!round_view_elects_us(view, member) || self->round != view->round.opened.round ||
        self->voted)
        return false;
    // mutant: a restart forgets that it has voted
    if (member->journal.second.number >= self->round || member->now.round != self->round)
        return false;
    if (member->now.phase == PHASE_WITNESS) return true;
    return member->now.phase == PHASE_TRAIN &&
           (is_complete(self, view, blobs, member) || rest_is_late(self, now_ms));
}

// The compact proof as a Bloom filter: of the participants, or of the broadcast results. A client
// whose payload never arrived is no participant, even if it claimed a result.
static struct wire_bytes prove(struct witness *self, const struct round_view *view,
                               const struct blobs *blobs, const struct member *member,
                               bool participants, uint8_t *bytes, size_t max)
{
    struct bloom bloom;
    uint32_t clients = view->round.clients_count;
    bloom_init(&bloom, clients, view->round.opened.seed + (participants ? 0 : 1), self->words);
    for (uint32_t c = 0; c < clients; c++) {
        const struct wire_member *author = round_view_client(view, member, c);
        const bool counts = participants ? is_seen(self, blobs, c) : self->sightings[c].claimed;
        if (!counts || !author) continue;
        struct hash item =
            participants ? hash_of(author->key.bytes, HASH_BYTES) : self->sightings[c].seen.result;
        bloom_add(&bloom, &item);
    }
    if (bloom_bytes(clients) > max) return (struct wire_bytes){ 0 };
    bloom_store(&bloom, bytes);
    return (struct wire_bytes){ bytes, (uint32_t)bloom_bytes(clients) };
}

struct hash witness_cast(struct witness *self, const struct round_view *view,
                         const struct blobs *blobs, const struct member *member, uint64_t now_ms)
{
    struct hasher hasher;
    hasher_init(&hasher);
    uint32_t count = 0;
    for (uint32_t c = 0; c < view->round.clients_count; c++)
        if (is_seen(self, blobs, c) && is_of_base(self, c)) {
            self->list[count++] = self->sightings[c].seen;
            hasher_add(&hasher, self->sightings[c].seen.result.bytes, HASH_BYTES);
        }
    self->vote = (struct wire_vote){ .round = self->round,
                                     .complete = is_complete(self, view, blobs, member) ||
                                                 rest_is_late(self, now_ms),
                                     .seen = self->list,
                                     .seen_count = count,
                                     .half_ms = self->half_ms,
                                     .last = self->last,
                                     .last_ms = self->last_ms };
    self->vote.participants =
        prove(self, view, blobs, member, true, self->participants, sizeof self->participants);
    self->vote.broadcasts =
        prove(self, view, blobs, member, false, self->broadcasts, sizeof self->broadcasts);
    self->voted = true;
    return hasher_end(&hasher);
}

static void send(struct witness *self, const struct round_view *view, const struct member *member,
                 uint64_t now_ms, struct outbox *out)
{
    bool open = phase_makes_steps(member->now.phase);
    if (!self->voted || self->acknowledged || self->round != view->round.opened.round) return;
    if (!open || member->now.round != self->round || now_ms < self->resend_ms) return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    outbox_mail(out, "coordinator", FRAME_VOTE, &self->vote);
}

static void hear_ack(struct witness *self, const struct wire_ack *ack)
{
    if (ack->kind == FRAME_VOTE && ack->round == self->round) self->acknowledged = true;
}

void witness_hear(struct witness *self, const struct round_view *view,
                  const struct member_turn *turn)
{
    const struct msg *in = turn->in;
    if (view->opened) witness_begin(self, view, turn->member, in->now_ms);
    if (turn->heard & HEARD_REBORN) { // The coordinator restarted and has lost the votes
        self->acknowledged = false;
        self->resend_ms = 0;
    }
    if (turn->heard & HEARD_PACE && in->kind == FRAME_COMMIT)
        witness_hear_commit(self, in->body, turn->out);
    if (turn->heard & HEARD_ACK) hear_ack(self, in->body);
    if (in->kind == FRAME_CLAIM) witness_hear_claim(self, view, turn);
    if (in->kind == FRAME_SEND_CLAIM && member_is_coordinator(turn->member, in))
        witness_hear_send_claim(self, in->body, turn->out);
}

void witness_look(struct witness *self, const struct round_view *view,
                  const struct member_turn *turn)
{
    struct member *member = turn->member;
    const struct replica *replica = turn->replica;
    const bool there = replica && replica->holding && replica->step == view->round.opened.step;
    self->has_replica = replica;
    self->base = there ? replica->digest : (struct hash){ { 0 } };
    const uint64_t now_ms = turn->in->now_ms;
    witness_note(self, view, turn->blobs, now_ms);
    if (witness_is_due(self, view, turn->blobs, member, now_ms)) {
        member->journal.second.what = witness_cast(self, view, turn->blobs, member, now_ms);
        member->journal.second.number = self->round;
        // mutant: a vote is sent before it is journalled
        member_promise(member, turn->out);
    }
    send(self, view, member, now_ms, turn->out);
}
