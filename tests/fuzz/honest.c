// honest -- one function for each kind of frame, in two halves: what the coordinator and the
// members say to a member, and what members say to the coordinator. Each derives its body from the
// state of the core itself.

#include "tests/fuzz/honest.h"
#include "common/pace/rounds/bloom.h"
#include "common/pace/rounds/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, TOTAL_STEPS = 6, SNAPSHOT_ROUNDS = 2, EPOCH_STEPS = 3, PLACES_MAX = 64 };
static const uint64_t BORN_UNIX_MS = 1800000000000u;

// Room for any one body: only the newest answer is borrowed.
static union {
    struct wire_welcome welcome;
    struct wire_admitted admitted;
    struct wire_ack ack;
    struct wire_refused refused;
    struct wire_config config;
    struct wire_send_claim send_claim;
    struct wire_run run;
    struct wire_roster roster;
    struct wire_round round;
    struct wire_commit commit;
    struct wire_epoch_end epoch_end;
    struct wire_beat beat;
    struct wire_claim claim;
    struct wire_reveal reveal;
    struct wire_control control;
    struct wire_join join;
    struct wire_ping ping;
    struct wire_holds holds;
    struct wire_vote vote;
    struct wire_checkpoint checkpoint;
    struct wire_finding finding;
    struct wire_claim_copy claim_copy;
    struct wire_position position;
    struct wire_leave leave;
} said;

struct hash honest_digest(uint64_t step) { return hash_of(&step, sizeof step); }

static struct hash made(const char *what, uint64_t number, uint8_t person)
{
    const uint64_t both = number << 8 | person;
    return hash_of_two(what, strlen(what), &both, sizeof both);
}

struct hash honest_payload(uint64_t round, uint8_t person)
{
    return made("payload", round, person);
}

struct hash honest_residual(uint64_t round, uint8_t person)
{
    return made("residual", round, person);
}

static const struct hash none;

// ---- to a member --------------------------------------------------------------------------------

// In the conversations of a member, a person's index in the roster is its number.
static const struct wire_roster *roster(const struct member *member)
{
    static struct wire_member members[EVENT_PEOPLE];
    for (uint8_t i = 0; i < EVENT_PEOPLE; i++) {
        const struct event_person *person = &event_people()[i];
        members[i] = (struct wire_member){ .index = i,
                                           .key = person->key,
                                           .role = person->role,
                                           .state = MEMBER_HEALTHY,
                                           .instance = person->instance };
        memcpy(members[i].name, person->name, sizeof person->name);
        snprintf(members[i].endpoint, sizeof members[i].endpoint, "tcp://127.0.0.1:4");
    }
    said.roster = (struct wire_roster){ .version = member->roster.version + 1,
                                        .members = members,
                                        .members_count = EVENT_PEOPLE };
    return &said.roster;
}

static const struct wire_config *config(void)
{
    static const char model[] = "{}";
    static const struct wire_rounds_config strategy = { .topk = 1,
                                                        .chunk = 1,
                                                        .witness_nodes = 3,
                                                        .verification_percent = 30,
                                                        .payload_bytes = EVENT_PAYLOAD_BYTES };
    said.config = (struct wire_config){ .run = "fuzz",
                                        .config = hash_of("config", 6),
                                        .genesis = "genesis",
                                        .seq_len = 16,
                                        .model = { (const uint8_t *)model, 2 },
                                        .heartbeat_ms = 500,
                                        .lease_ms = 4000,
                                        .snapshot_rounds = SNAPSHOT_ROUNDS,
                                        .total_steps = TOTAL_STEPS,
                                        .data = { .token_bytes = 2 },
                                        .data_digest = hash_of("data", 4),
                                        .strategy = { FRAME_ROUNDS_CONFIG, &strategy } };
    return &said.config;
}

static const struct wire_run *run(const struct honest *self, const struct member *member)
{
    const struct wire_run *last = &self->run;
    const bool is_at_end = self->step % EPOCH_STEPS == 0;
    const uint64_t pin = self->step - self->step % SNAPSHOT_ROUNDS;
    said.run = (struct wire_run){ .phase = self->is_open               ? PHASE_TRAIN
                                           : self->step >= TOTAL_STEPS ? PHASE_FINISHED
                                           : self->step                ? PHASE_COOLDOWN
                                                                       : PHASE_WARMUP,
                                  .epoch = last->epoch,
                                  .round = self->round,
                                  .step = self->step,
                                  .total_steps = TOTAL_STEPS,
                                  .log_seq = last->log_seq + 1,
                                  .healthy = BATCH,
                                  .roster_version = member->roster.version,
                                  .samples_done = BATCH * self->step,
                                  .digest_step = is_at_end ? self->step : 0,
                                  .digest = is_at_end ? honest_digest(self->step) : none,
                                  .pin_step = pin,
                                  .pin_digest = honest_digest(pin),
                                  .data = hash_of("data", 4),
                                  .restored_step = last->restored_step,
                                  .restored_epoch = last->restored_epoch };
    return &said.run;
}

// Of a result of the last commit, if there is one of this person: recomputed by another client.
static void add_audit(const struct honest *self, struct wire_round *round, uint8_t person,
                      uint32_t auditor)
{
    static struct wire_audit audit;
    static struct interval samples;
    const struct wire_claim *claim = &self->committed[person];
    if (claim->round == 0 || claim->step + 1 != self->step) return;
    audit = (struct wire_audit){ .auditor = auditor,
                                 .member = person,
                                 .round = claim->round,
                                 .step = claim->step,
                                 .result = claim_hash(claim),
                                 .payload = claim->payload,
                                 .base = claim->base,
                                 .payload_bytes = claim->payload_bytes,
                                 .residual_from = claim->residual_from,
                                 .residual_to = claim->residual_to,
                                 .intervals = 1 };
    samples = (struct interval){ BATCH * claim->round, BATCH * claim->round + 1 };
    round->audits = &audit, round->audited = &samples;
    round->audits_count = round->audited_count = 1;
}

// Trainers 1, 2 and 3. Every third round the first recomputes what the third did; in the others its
// own result is recomputed by the second, if the commit before has one.
static const struct wire_round *open_round(const struct honest *self, const struct member *member)
{
    static const struct wire_client clients[] = { { .member = 1 },
                                                  { .member = 2 },
                                                  { .member = 3 } };
    static const struct wire_client witnesses[] = { { .member = 1 },
                                                    { .member = 2 },
                                                    { .member = 4 } };
    static struct interval dealt;
    const uint64_t number = self->round + 1;
    dealt = (struct interval){ BATCH * number, BATCH * number + BATCH };
    said.round =
        (struct wire_round){ .round = number,
                             .epoch = self->run.epoch,
                             .step = self->step,
                             .seed = number,
                             .batch_size = BATCH,
                             .roster_version = member->roster.version,
                             .dealt = &dealt,
                             .dealt_count = 1,
                             .clients = clients,
                             .clients_count = 3,
                             .witnesses = witnesses,
                             .witnesses_count = 3,
                             .cursor = BATCH * number,
                             .trainers = 3,
                             .base = self->step % EPOCH_STEPS ? none : honest_digest(self->step) };
    if (number % 3 == 0) add_audit(self, &said.round, 3, 0);
    else add_audit(self, &said.round, 1, 1);
    return &said.round;
}

static bool claim_of(const struct honest *self, const struct member *member,
                     const struct round_view *view, uint8_t person, struct wire_claim *ret_claim)
{
    const struct wire_round *round = &view->round.opened;
    struct share share;
    uint32_t client = 0;
    while (client < view->round.clients_count && view->round.clients[client].member != person)
        client++;
    if (!member->has_round || client == view->round.clients_count ||
        !deal_of_trainer(&view->deal, client, &share))
        return false;
    if (person == member->index && self->own.round == round->round) {
        *ret_claim = self->own;
        return true;
    }
    const struct wire_claim *before = &self->committed[person];
    *ret_claim = (struct wire_claim){ .run = "fuzz",
                                      .epoch = round->epoch,
                                      .step = round->step,
                                      .round = round->round,
                                      .client = client,
                                      .begin = share.begin,
                                      .end = share.end,
                                      .author = event_people()[person].key,
                                      .base = honest_digest(round->step),
                                      .residual_from = before->residual_to,
                                      .residual_to = honest_residual(round->round, person),
                                      .payload = honest_payload(round->round, person),
                                      .payload_bytes = EVENT_PAYLOAD_BYTES,
                                      .loss = 2,
                                      .born_unix_ms = member->born_unix_ms };
    return true;
}

// All that was dealt, in order of position.
static const struct wire_commit *commit(const struct honest *self, const struct member *member,
                                        const struct round_view *view)
{
    static struct wire_accepted accepted[PLACES_MAX];
    const struct wire_round *round = &view->round.opened;
    if (!member->has_round) return NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->deal.count && count < PLACES_MAX; i++) {
        const struct share *share = &view->deal.shares[i];
        const uint32_t person = view->round.clients[share->trainer].member;
        struct wire_claim claim;
        if (person >= EVENT_PEOPLE || !claim_of(self, member, view, (uint8_t)person, &claim))
            continue;
        accepted[count++] = (struct wire_accepted){ .client = share->trainer,
                                                    .begin = share->begin,
                                                    .end = share->end,
                                                    .result = claim_hash(&claim),
                                                    .payload = claim.payload,
                                                    .payload_bytes = claim.payload_bytes,
                                                    .residual_from = claim.residual_from,
                                                    .residual_to = claim.residual_to };
    }
    said.commit = (struct wire_commit){ .round = round->round,
                                        .epoch = round->epoch,
                                        .step = round->step,
                                        .outcome = count ? OUTCOME_COMMITTED : OUTCOME_VOID,
                                        .lr_bits = round->lr_bits,
                                        .base = honest_digest(round->step),
                                        .accepted = accepted,
                                        .accepted_count = count,
                                        .samples = BATCH,
                                        .votes = 3,
                                        .elected = 3 };
    return &said.commit;
}

static const struct wire_ack *acknowledge(const struct honest *self, uint8_t signer)
{
    said.ack = self->asked;
    if (signer == 0) return &said.ack;
    if (self->own.round == 0) return NULL;
    said.ack = (struct wire_ack){ FRAME_CLAIM, self->own.round, claim_hash(&self->own) };
    return &said.ack;
}

static const struct wire_reveal *reveal(const struct honest *self, uint8_t signer)
{
    said.reveal = (struct wire_reveal){ .claim = self->committed[signer] };
    if (!hash_is_none(&said.reveal.claim.residual_from))
        said.reveal.residual =
            (struct wire_blob){ hash_of(said.reveal.claim.residual_from.bytes, HASH_BYTES),
                                HONEST_FLOATS * sizeof(float) };
    return said.reveal.claim.round ? &said.reveal : NULL;
}

const void *honest_to_member(const struct honest *self, const struct member *member,
                             const struct round_view *view, uint16_t kind, uint8_t signer)
{
    switch (kind) {
    case FRAME_ADMITTED:
        said.admitted = (struct wire_admitted){ .index = member->index,
                                                .state = MEMBER_HEALTHY,
                                                .instance = member->instance,
                                                .config = hash_of("config", 6),
                                                .born_unix_ms = BORN_UNIX_MS };
        for (uint8_t i = 0; i < EVENT_PEOPLE; i++)
            if (key_equal(&member->key, &event_people()[i].key)) said.admitted.index = i;
        return &said.admitted;
    case FRAME_CONFIG: return config();
    case FRAME_ROSTER: return roster(member);
    case FRAME_RUN: return run(self, member);
    case FRAME_ROUND: return open_round(self, member);
    case FRAME_COMMIT: return commit(self, member, view);
    case FRAME_EPOCH_END:
        said.epoch_end = (struct wire_epoch_end){ .epoch = self->run.epoch,
                                                  .step = self->step,
                                                  .digest = honest_digest(self->step),
                                                  .data_position.cursor = BATCH * self->step,
                                                  .samples_done = BATCH * self->step };
        return &said.epoch_end;
    case FRAME_BEAT:
        said.beat = (struct wire_beat){ .log_seq = self->run.log_seq,
                                        .phase = self->run.phase,
                                        .round = self->run.round,
                                        .step = self->run.step,
                                        .roster_version = self->run.roster_version,
                                        .chain = made("chain", self->run.log_seq, 0),
                                        .born_unix_ms = BORN_UNIX_MS };
        return &said.beat;
    case FRAME_ACK: return acknowledge(self, signer);
    case FRAME_REFUSED:
        said.refused = (struct wire_refused){ .kind = self->asked.kind,
                                              .text = "refused",
                                              .reason = REFUSAL_WRONG_MODEL,
                                              .round = self->asked.round };
        return &said.refused;
    case FRAME_SEND_CLAIM:
        said.send_claim = (struct wire_send_claim){ self->round ? self->round : 1, 1 };
        return &said.send_claim;
    case FRAME_CONTROL:
        said.control = (struct wire_control){ .action = ACTION_CHECKPOINT };
        return &said.control;
    case FRAME_CLAIM: return claim_of(self, member, view, signer, &said.claim) ? &said.claim : NULL;
    case FRAME_REVEAL: return reveal(self, signer);
    default: return NULL;
    }
}

static void note_commit(struct honest *self, const struct wire_commit *commit,
                        const struct member *member, const struct round_view *view)
{
    for (uint8_t i = 0; i < EVENT_PEOPLE; i++) {
        struct wire_claim claim;
        if (!claim_of(self, member, view, i, &claim)) continue;
        const struct hash name = claim_hash(&claim);
        for (uint32_t j = 0; j < commit->accepted_count; j++)
            if (hash_equal(&commit->accepted[j].result, &name)) self->committed[i] = claim;
    }
    self->step = commit->step + 1;
}

void honest_note_heard(struct honest *self, const struct member *member,
                       const struct round_view *view, uint16_t kind, const void *body)
{
    if (kind == FRAME_RUN) {
        self->run = *(const struct wire_run *)body;
        self->step = self->run.step;
    } else if (kind == FRAME_ROUND) {
        self->round = ((const struct wire_round *)body)->round;
        self->is_open = true;
    } else if (kind == FRAME_COMMIT) {
        const struct wire_commit *commit = body;
        self->is_open = false;
        if (commit->outcome == OUTCOME_COMMITTED) note_commit(self, commit, member, view);
    }
}

void honest_note_said(struct honest *self, uint16_t kind, const void *body)
{
    switch (kind) {
    case FRAME_CLAIM: self->own = *(const struct wire_claim *)body; return;
    case FRAME_HOLDS: {
        const struct wire_holds *holds = body;
        self->asked = (struct wire_ack){ kind, holds->step, holds->digest };
        return;
    }
    case FRAME_VOTE:
        self->asked =
            (struct wire_ack){ .kind = kind, .round = ((const struct wire_vote *)body)->round };
        return;
    case FRAME_CHECKPOINT: {
        const struct wire_checkpoint *checkpoint = body;
        self->asked = (struct wire_ack){ kind, checkpoint->step, checkpoint->digest };
        return;
    }
    case FRAME_FINDING: {
        const struct wire_finding *finding = body;
        self->asked = (struct wire_ack){ kind, finding->round, finding->result };
        return;
    }
    case FRAME_POSITION: {
        const struct wire_position *position = body;
        self->asked = (struct wire_ack){ kind, position->log_seq, position->chain };
        return;
    }
    case FRAME_LEAVE: self->asked = (struct wire_ack){ .kind = kind }; return;
    }
}

// ---- to the coordinator -------------------------------------------------------------------------

static struct wire_claim claim_in(const struct coordinator *core, uint32_t client, uint64_t other)
{
    const struct run *run = &core->run;
    const uint32_t member = round_of(run)->clients[client].member;
    const uint64_t round = round_of(run)->opened.round;
    struct wire_claim claim = { .run = "fuzz",
                                .epoch = run->epoch,
                                .step = run->step,
                                .round = round ? round : 1,
                                .client = client,
                                .end = 1,
                                .author = run->roster.members[member].key,
                                .base = honest_digest(run->step),
                                .residual_from = rounds_run_of(run)->residuals[member].hash,
                                .residual_to = made("residual", round, (uint8_t)member),
                                .payload = made("payload", round + other, (uint8_t)member),
                                .payload_bytes = EVENT_PAYLOAD_BYTES,
                                .loss = 2,
                                .born_unix_ms = run->born_unix_ms };
    struct share share;
    if (deal_of_trainer(&rounds_live(core->live)->deal, client, &share))
        claim.begin = share.begin, claim.end = share.end;
    return claim;
}

// All members have taken part.
static struct wire_bytes participants(const struct coordinator *core)
{
    static uint8_t bytes[256];
    static uint64_t words[BLOOM_WORDS(MEMBERS_MAX)];
    struct bloom bloom;
    const struct run *run = &core->run;
    if (round_of(run)->clients_count == 0 ||
        bloom_bytes(round_of(run)->clients_count) > sizeof bytes)
        return (struct wire_bytes){ 0 };
    bloom_init(&bloom, round_of(run)->clients_count, round_of(run)->opened.seed, words);
    for (uint32_t c = 0; c < round_of(run)->clients_count; c++)
        bloom_add(&bloom, &rounds_live(core->live)->items[c]);
    bloom_store(&bloom, bytes);
    return (struct wire_bytes){ bytes, (uint32_t)bloom_bytes(round_of(run)->clients_count) };
}

static int by_client(const void *a, const void *b)
{
    const struct wire_seen *one = a, *other = b;
    return (one->client > other->client) - (one->client < other->client);
}

static const struct wire_vote *vote(const struct coordinator *core)
{
    static struct wire_seen seen[PLACES_MAX];
    const struct run *run = &core->run;
    uint32_t count = 0;
    for (uint32_t i = 0;
         round_of(run)->open && i < rounds_live(core->live)->deal.count && count < PLACES_MAX;
         i++) {
        const struct wire_claim claim =
            claim_in(core, rounds_live(core->live)->deal.shares[i].trainer, 0);
        seen[count++] = (struct wire_seen){ .client = claim.client,
                                            .result = claim_hash(&claim),
                                            .payload = claim.payload,
                                            .payload_bytes = claim.payload_bytes,
                                            .base = claim.base,
                                            .residual_from = claim.residual_from,
                                            .residual_to = claim.residual_to };
    }
    qsort(seen, count, sizeof *seen, by_client);
    said.vote =
        (struct wire_vote){ .round = round_of(run)->opened.round ? round_of(run)->opened.round : 1,
                            .complete = true,
                            .seen = seen,
                            .seen_count = count,
                            .participants = participants(core) };
    return &said.vote;
}

// The audit that this person has, or the first.
static const struct wire_finding *finding(const struct coordinator *core, uint32_t member)
{
    const struct run *run = &core->run;
    uint32_t place = 0;
    if (round_of(run)->audits_count == 0) return NULL;
    for (uint32_t i = 0; i < round_of(run)->audits_count; i++)
        if (round_of(run)->clients[round_of(run)->audits[i].auditor].member == member) place = i;
    const struct wire_audit *audit = &round_of(run)->audits[place];
    said.finding =
        (struct wire_finding){ .round =
                                   round_of(run)->opened.round ? round_of(run)->opened.round : 1,
                               .result = audit->result,
                               .finding = FINDING_SAME,
                               .payload = audit->payload,
                               .residual_to = audit->residual_to };
    return &said.finding;
}

// Equivocation evidence: the claim of the first client that was dealt samples. It made one claim to
// signers with an even number and another to those with an odd one.
static const struct wire_claim_copy *claim_copy(const struct coordinator *core, uint8_t signer)
{
    static uint8_t frame[CLAIM_FRAME_MAX];
    static const uint8_t signature[WIRE_SIGNATURE_BYTES]; // The shell has looked at it
    if (!round_of(&core->run)->open || rounds_live(core->live)->deal.count == 0) return NULL;
    const struct wire_claim claim =
        claim_in(core, rounds_live(core->live)->deal.shares[0].trainer, signer & 1);
    struct wire_head head = { .kind = FRAME_CLAIM, .run = "fuzz", .incarnation = 1, .seq = 1 };
    head.sender = claim.author;
    size_t count = wire_pack(&head, &claim, frame, sizeof frame);
    count = wire_put_signature(frame, count, signature, sizeof frame);
    said.claim_copy = (struct wire_claim_copy){ { frame, (uint32_t)count } };
    return &said.claim_copy;
}

const void *honest_to_coordinator(const struct coordinator *core, uint16_t kind, uint8_t signer)
{
    const struct run *run = &core->run;
    const struct event_person *person = &event_people()[signer];
    switch (kind) {
    case FRAME_JOIN:
        said.join = (struct wire_join){ .role = person->role,
                                        .endpoint = "tcp://127.0.0.1:4",
                                        .instance = person->instance };
        memcpy(said.join.name, person->name, sizeof person->name);
        if (person->role == ACTOR_PROVIDER) said.join.samples = 50;
        if (person->role == ACTOR_PROVIDER) said.join.data = hash_of("data", 4);
        return &said.join;
    case FRAME_PING:
        said.ping = (struct wire_ping){ .instance = person->instance,
                                        .round = run->number,
                                        .step = run->step,
                                        .tokens_per_s = 1,
                                        .loss = 2 };
        return &said.ping;
    case FRAME_HOLDS:
        said.holds = (struct wire_holds){ run->epoch, run->step, honest_digest(run->step) };
        return &said.holds;
    case FRAME_VOTE: return vote(core);
    case FRAME_FINDING: return finding(core, roster_find(&run->roster, &person->key));
    case FRAME_CLAIM_COPY: return claim_copy(core, signer);
    case FRAME_CHECKPOINT:
        said.checkpoint = (struct wire_checkpoint){
            .epoch = run->epoch, .step = run->digest_step, .digest = run->digest, .name = "step"
        };
        return &said.checkpoint;
    case FRAME_LEAVE: said.leave = (struct wire_leave){ person->instance }; return &said.leave;
    case FRAME_CONTROL:
        said.control = (struct wire_control){ .incarnation = run->incarnation,
                                              .number = core->epoch.control_number + 1 };
        return &said.control;
    case FRAME_POSITION:
        said.position = (struct wire_position){ .log_seq = run->log_seq,
                                                .chain = run->chain,
                                                .incarnation = run->incarnation,
                                                .born_unix_ms = run->born_unix_ms };
        return &said.position;
    default: return NULL;
    }
}
