// check_words -- what may be said and when: nothing before the record that justifies it, one claim
// and one vote a round, and every replica at the digest that the commits lead to.

#include "common/base/ensure.h"
#include "common/run/table.h"
#include "common/pace/rounds/claims.h"
#include "tests/sim/check_guilt.h"
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

enum { SAID_MAX = 512 }; // Effects of one step

// ---- the coordinator's words --------------------------------------------------------------------

// The same bytes as the record of that number, which therefore is on disk.
void check_recorded(struct sim *sim, uint64_t record, const struct effect *effect)
{
    const char *kind = wire_kind_name(effect->kind);
    hold(record > 0 && record <= sim->disk.count, "nothing is published before it is durable", "%s",
         kind);
    const struct stored *stored = &sim->disk.log[record - 1];
    hold(stored->bytes == effect->bytes && memcmp(stored->body, effect->body, effect->bytes) == 0,
         "what is published is what is on record", "%s, record %" PRIu64, kind, record);
}

static void check_run(struct sim *sim, const struct wire_run *run)
{
    struct ghost *ghost = &sim->ghost;
    ghost->is_split = strstr(run->lacks, "no majority holds the same state") != NULL;
    hold(run->log_seq <= ghost->records, "nothing is published before it is durable",
         "RUN %" PRIu64 ", on disk %" PRIu64, run->log_seq, ghost->records);
    const struct ghost_point *point = &ghost->points[run->log_seq];
    hold(run->phase == point->phase && run->epoch == point->epoch && run->round == point->round &&
             run->step == point->step && run->samples_done == point->samples_done,
         "what is published is what is on record", "RUN %" PRIu64, run->log_seq);
    hold(run->digest_step > run->step || hash_is_none(&run->digest) ||
             hash_equal(&run->digest, &ghost->digest[run->digest_step]),
         "a digest is that of its step", "%" PRIu64, run->digest_step);
    hold(run->pin_step <= run->step &&
             (hash_is_none(&run->pin_digest) ||
              hash_equal(&run->pin_digest, &ghost->digest[run->pin_step])),
         "a digest is that of its step", "pin %" PRIu64, run->pin_step);
}

static void check_roster(struct sim *sim, const struct wire_roster *roster)
{
    const struct ghost *ghost = &sim->ghost;
    hold(roster->members_count == ghost->members_count, "nothing is published before it is durable",
         "a roster of %u", roster->members_count);
    for (uint32_t i = 0; i < roster->members_count; i++) {
        const struct wire_member *said = &roster->members[i];
        const struct ghost_member *member = &ghost->members[i];
        hold(said->role == member->role && said->state == member->state &&
                 said->instance == member->instance && key_equal(&said->key, &member->key),
             "what is published is what is on record", "roster, %s", said->name);
    }
}

static void check_lines(struct sim *sim, const struct wire_members *change)
{
    const struct ghost *ghost = &sim->ghost;
    for (uint32_t i = 0; i < change->members_count; i++) {
        const struct wire_member *said = &change->members[i];
        hold(said->index < ghost->members_count, "nothing is published before it is durable",
             "a change of member %u", said->index);
        const struct ghost_member *member = &ghost->members[said->index];
        hold(said->role == member->role && said->state == member->state &&
                 said->instance == member->instance && key_equal(&said->key, &member->key),
             "what is published is what is on record", "a change, %s", said->name);
    }
}

// A member whose roster has the coordinator's version has the same lines.
static void check_same_roster(struct sim *sim, const struct node *node, const struct member *member)
{
    const struct node *keeper = &sim->nodes[COORDINATOR];
    const struct roster *has = &member->roster;
    if (!keeper->up || sim->disk.behind || sim->hears_forked) return;
    const struct run *run = &((const struct coordinator *)keeper->state)->run;
    const struct roster *all = &run->roster;
    if (has->version == 0 || has->version != all->version ||
        member->roster_incarnation != keeper->incarnation)
        return;
    hold(has->count == all->count, "equal versions, equal rosters", "%s has %u of %u", node->name,
         has->count, all->count);
    for (uint32_t i = 0; i < has->count; i++)
        hold(wire_equal(FRAME_RECORD_MEMBER, &has->members[i], &all->members[i]),
             "equal versions, equal rosters", "%s, member %u", node->name, i);
}

static void check_admitted(struct sim *sim, const struct wire_admitted *admitted)
{
    const struct ghost *ghost = &sim->ghost;
    hold(admitted->index < ghost->members_count &&
             ghost->members[admitted->index].instance == admitted->instance,
         "nobody is admitted before it is durable", "%u", admitted->index);
}

static void check_coordinator(struct sim *sim, const struct effect *effect)
{
    const struct ghost *ghost = &sim->ghost;
    const void *body = unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    const struct wire_commit *commit = body;
    const struct wire_round *round = body;
    const struct wire_epoch_end *end = body;
    switch (effect->kind) {
    case FRAME_RUN: check_run(sim, body); break;
    case FRAME_ROSTER: check_roster(sim, body); break;
    case FRAME_MEMBERS: check_lines(sim, body); break;
    case FRAME_ADMITTED: check_admitted(sim, body); break;
    case FRAME_EPOCH_END: // To who asks, as it stands; as news, as it is on record
        hold(hash_equal(&end->digest, &ghost->digest[end->step]) && end->step == check_step(sim),
             "the pinned digest is that of the commits", "step %" PRIu64, end->step);
        if (effect->port == PORT_NEWS) check_recorded(sim, ghost->epoch_end_record, effect);
        break;
    case FRAME_ROUND:
        hold(round->round < ROUNDS_MAX, "rounds count up", "%" PRIu64, round->round);
        check_recorded(sim, ghost->round_record[round->round], effect);
        break;
    case FRAME_COMMIT:
        hold(commit->round < ROUNDS_MAX, "rounds count up", "%" PRIu64, commit->round);
        check_recorded(sim, ghost->commit_record[commit->round], effect);
        break;
    case FRAME_BEAT:
        hold(((const struct wire_beat *)body)->log_seq <= ghost->records,
             "nothing is published before it is durable", "BEAT");
        break;
    }
}

// ---- the members' words -------------------------------------------------------------------------

// One for each member and round, for ever: a restart says the same again or nothing.
static bool once(struct sim *sim, struct hash *kept, const struct hash *said, const char *invariant,
                 uint64_t round)
{
    if (hash_is_none(kept)) {
        *kept = *said;
        return true;
    }
    hold(hash_equal(kept, said), invariant, "round %" PRIu64, round);
    return false;
}

// A result is of the samples that the seed deals to its author.
static void check_share(struct sim *sim, uint8_t id, const struct wire_claim *claim)
{
    const struct ghost *ghost = &sim->ghost;
    const struct ghost_job *job = &ghost->jobs[id];
    if (claim->round != check_round(sim)) return;
    hold(job->round == claim->round, "a result is of a round that was trained", "round %" PRIu64,
         claim->round);
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < ghost->dealt_count; i++)
        for (uint64_t p = ghost->dealt[i].begin; p < ghost->dealt[i].end; p++, at++) {
            bool trained = false;
            for (uint32_t j = 0; j < job->count; j++)
                trained |= job->samples[j].begin <= p && p < job->samples[j].end;
            hold(trained == (claim->begin <= at && at < claim->end),
                 "a result is of the samples it claims", "round %" PRIu64 " sample %" PRIu64,
                 claim->round, p);
            count += trained;
        }
    hold(count == job->total, "a result is of the samples it claims", "round %" PRIu64,
         claim->round);
}

static void keep_claim(struct sim *sim, uint8_t id, const struct wire_claim *claim,
                       uint64_t generation)
{
    struct ghost *ghost = &sim->ghost;
    hold(ghost->claims_count < CLAIMS_MAX, "a simulation has few claims", "%u",
         ghost->claims_count);
    ghost->claims[ghost->claims_count++] =
        (struct ghost_claim){ .name = claim_hash(claim),
                              .payload = claim->payload,
                              .residual_from = claim->residual_from,
                              .residual_to = claim->residual_to,
                              .round = claim->round,
                              .generation = generation,
                              .author = id,
                              .wrong = generation == 0 ||
                                       hash_equal(&claim->payload, &ghost->made_up[id]) };
}

// Its own residual does not follow from it, whatever becomes of the claim.
void check_claimed_falsely(struct sim *sim, uint8_t id, const struct wire_claim *claim)
{
    const struct ghost *ghost = &sim->ghost;
    const struct hash name = claim_hash(claim);
    for (uint32_t i = ghost->claims_count; i-- > 0 && ghost->claims[i].round + 2 > claim->round;)
        if (hash_equal(&ghost->claims[i].name, &name)) return; // Told somebody else already
    keep_claim(sim, id, claim, 0);
}

// Who does as he should begins with the residual that his newest accepted result led to, or zero.
static void check_begun(struct sim *sim, uint8_t id, const struct wire_claim *claim)
{
    const struct ghost *ghost = &sim->ghost;
    const struct hash last = check_residual_of(sim, check_member(sim, id));
    if (claim->round != check_round(sim) || !ghost->round_open || is_liar(sim, id)) return;
    hold(hash_is_none(&claim->residual_from) || hash_equal(&claim->residual_from, &last),
         "an honest result can be accepted", "%s, round %" PRIu64, sim->nodes[id].name,
         claim->round);
}

static void check_claim(struct sim *sim, uint8_t id, const struct wire_claim *claim)
{
    struct ghost *ghost = &sim->ghost;
    const struct node *node = &sim->nodes[id];
    struct hash name = claim_hash(claim);
    hold(claim->round < ROUNDS_MAX && node->has_journal &&
             node->journal.first.number == claim->round &&
             hash_equal(&node->journal.first.what, &name),
         "a claim is journalled before it is sent", "round %" PRIu64, claim->round);
    if (!once(sim, &ghost->claimed[id][claim->round], &name, "one claim for each member and round",
              claim->round))
        return;
    keep_claim(sim, id, claim, node->learner.generation);
    ghost->before[id] = ghost->newest[id];
    ghost->newest[id] = *claim;
    check_share(sim, id, claim);
    check_begun(sim, id, claim);
}

static void check_vote(struct sim *sim, uint8_t id, const struct effect *effect)
{
    struct ghost *ghost = &sim->ghost;
    const struct node *node = &sim->nodes[id];
    const struct wire_vote *vote =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    struct hash name = hash_of(effect->body, effect->bytes);
    hold(vote->round < ROUNDS_MAX && node->has_journal &&
             node->journal.second.number == vote->round,
         "a vote is journalled before it is sent", "round %" PRIu64, vote->round);
    if (vote->round <= node->promised_round) return;
    once(sim, &ghost->voted[id][vote->round], &name, "one vote for each member and round",
         vote->round);
    for (uint32_t i = 0; i < vote->seen_count; i++) {
        hold(store_holds(&node->store, &vote->seen[i].payload, vote->seen[i].payload_bytes),
             "a vote names what is held", "round %" PRIu64 " client %u", vote->round,
             vote->seen[i].client);
        if (ghost->promised_count < CLAIMS_MAX)
            ghost->promised[ghost->promised_count++] = vote->seen[i].payload;
    }
}

static void keep_unread(struct sim *sim, const struct wire_unread *said)
{
    if (said->step < ROUNDS_MAX) sim->ghost.is_unread[said->step] = true;
}

void check_said(struct sim *sim, uint8_t id, const struct effect *effect)
{
    if (effect->port != PORT_MAIL && effect->port != PORT_NEWS) return;
    if (id == COORDINATOR && sim->disk.behind) return;
    if (check_is_of_before(sim, id)) return; // It speaks to nobody who would listen
    if (sim->pace->said) sim->pace->said(sim, id, effect);
    if (id == COORDINATOR) check_coordinator(sim, effect);
    else if (effect->kind == FRAME_VOTE) check_vote(sim, id, effect);
    else if (effect->kind == FRAME_UNREAD)
        keep_unread(sim, unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes));
    else if (effect->kind == FRAME_CLAIM)
        check_claim(sim, id, unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes));
}

static const struct member *member_of(const struct node *node)
{
    return node->role == ACTOR_COORDINATOR ? NULL : node->state;
}

// Nobody who does as he should is ever told to give up.
void check_quit(struct sim *sim, uint8_t id, const struct wire_quit *quit)
{
    const bool was_ejected = check_ejected(sim, id) || sim->nodes[id].was_ejected;
    if (was_ejected && quit->code == EX_NOPERM) return;
    if (check_is_of_before(sim, id) && (quit->code == EX_TEMPFAIL || quit->code == EX_UNAVAILABLE))
        return;
    if (sim->nodes[id].learner.tasks_failed >= 3 && quit->code == EX_TEMPFAIL) return;
    hold(quit->code == EX_OK || quit->code == EX_UNAVAILABLE,
         "no honest process is told to give up", "%s: %s", sim->nodes[id].name, quit->text);
    const struct member *member = member_of(&sim->nodes[id]);
    const bool behind = member && member->now.log_seq < sim->ghost.restore_record;
    hold(quit->code == EX_OK || check_commits(sim) > 0 || behind || !sim->nodes[id].has_genesis,
         "who has a folder with genesis begins with it", "%s: %s", sim->nodes[id].name, quit->text);
    // Before the first commit nobody may have the first parameters.
    bool early = faulty(sim) || sim->ghost.all_lost || sim->now_ms < sim->plan.heal_ms + 60000 ||
                 check_commits(sim) == 0;
    hold(quit->code == EX_OK || early, "no honest process is told to give up", "%s: %s",
         sim->nodes[id].name, quit->text);
}

// ---- what is heard ------------------------------------------------------------------------------

static void hear_vote(struct sim *sim, const struct msg *in)
{
    struct ghost *ghost = &sim->ghost;
    const struct wire_vote *vote = in->body;
    if (!ghost->round_open || vote->round != check_round(sim)) return;
    for (uint32_t i = 0; i < ghost->members_count; i++) // Nobody hears an ejected member
        if (ghost->members[i].state == MEMBER_EJECTED &&
            key_equal(&ghost->members[i].key, &in->sender))
            return;
    for (uint32_t w = 0; w < ghost->witnesses_count; w++) {
        if (!key_equal(&ghost->members[ghost->witnesses[w]].key, &in->sender)) continue;
        struct ghost_vote *kept = &ghost->votes[w];
        kept->voted = true;
        for (uint32_t i = 0; i < vote->seen_count && kept->count < GHOST_SEEN_MAX; i++)
            kept->seen[kept->count++] = vote->seen[i];
    }
}

void check_heard(struct sim *sim, uint8_t id, const struct msg *in)
{
    if (sim->pace->heard) sim->pace->heard(sim, id, in);
    if (id == COORDINATOR && in->kind == FRAME_VOTE && !sim->disk.behind) hear_vote(sim, in);
    if (in->kind == FRAME_CLAIM && in->frame) check_claim_heard(sim, id, in);
    if (id == COORDINATOR && in->kind == FRAME_CLAIM_COPY) check_claim_copy_heard(sim, in);
    const struct member *member = member_of(&sim->nodes[id]);
    sim->incarnation_before = member ? member->incarnation : 0;
    sim->log_seq_before = member ? member->now.log_seq : 0;
    sim->had_run = member && member->has_run;
    sim->epoch_before = member ? member->now.epoch : 0;
    sim->step_before = member ? member->now.step : 0;
}

// ---- what is held -------------------------------------------------------------------------------

const struct replica *check_replica(const struct node *node)
{
    if (role_takes_steps(node->role)) return &((const struct trainer *)node->state)->replica;
    if (node->role == ACTOR_CHECKPOINTER)
        return &((const struct checkpointer *)node->state)->replica;
    return NULL;
}

static const struct replay *replay_of(const struct node *node)
{
    if (node->role == ACTOR_TRAINER)
        return &rounds_of(&((const struct trainer *)node->state)->pace)->replay;
    if (node->role == ACTOR_CHECKPOINTER)
        return &rounds_of(&((const struct checkpointer *)node->state)->pace)->replay;
    return NULL;
}

// What one step may say, and what a member may keep for later, whatever it is told.
static void check_room(struct sim *sim, const struct node *node)
{
    const struct blobs *blobs = NULL;
    if (role_takes_steps(node->role)) blobs = &((const struct trainer *)node->state)->blobs;
    if (node->role == ACTOR_WITNESS) blobs = &((const struct witness_actor *)node->state)->blobs;
    if (node->role == ACTOR_CHECKPOINTER)
        blobs = &((const struct checkpointer *)node->state)->blobs;
    hold(!blobs || blobs->count <= BLOBS_KEPT_MAX, "queues are bounded", "%s knows %u blobs",
         node->name, blobs->count);
    hold(sim->out.count <= SAID_MAX, "queues are bounded", "%s says %u things at once", node->name,
         sim->out.count);
}

// Commits that are not there yet, or no more, cannot be told: who asks for them has to ask again.
static bool asks_too_early(const struct sim *sim, const struct msg *in)
{
    const struct wire_ask *ask = in->body;
    return in->kind == FRAME_ASK && ask->topic == TOPIC_COMMITS &&
           (ask->from >= check_step(sim) || sim->disk.behind);
}

// By mail, or by the ledger's keeper, who sends commits to who asks for them.
static bool is_answer(struct sim *sim, const struct effect *effect, const struct msg *in)
{
    if (effect->port == PORT_MAIL) return strcmp(effect->to, in->from) == 0;
    if (effect->kind != FRAME_SEND_COMMITS || in->kind != FRAME_ASK) return false;
    const struct wire_send_commits *send_commits =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    return strcmp(send_commits->to, in->from) == 0 && send_commits->count > 0 &&
           send_commits->from_step == ((const struct wire_ask *)in->body)->from;
}

// Whoever asks the coordinator for something is answered: done, refused, or what it asked for. PING
// and CLAIM_COPY ask for nothing.
static void check_answered(struct sim *sim, const struct msg *in)
{
    static const uint16_t asking[] = { FRAME_JOIN,     FRAME_LEAVE,      FRAME_HOLDS,   FRAME_VOTE,
                                       FRAME_FINDING,  FRAME_CHECKPOINT, FRAME_CONTROL, FRAME_ASK,
                                       FRAME_POSITION, FRAME_UNREAD };
    bool asks = false, answered = false;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) asks |= in->kind == asking[i];
    if (!asks || asks_too_early(sim, in)) return;
    for (uint32_t i = 0; i < sim->out.count; i++)
        answered |= is_answer(sim, &sim->out.effects[i], in);
    hold(answered, "every request is answered", "%s of %s", wire_kind_name(in->kind), in->from);
}

// Who knows of a restore holds nothing that it gave up: nothing beyond the run but what the run itself
// has been.
static void check_let_go(struct sim *sim, const struct node *node, const struct member *member,
                         const struct replica *replica)
{
    const struct ghost *ghost = &sim->ghost;
    const bool busy = replica->loading || replica->applying || !replica->built ||
                      !member->admitted || !member->has_run;
    // Without a digest it is known only how far the run has been.
    const bool is_settled = hash_is_none(&replica->digest)
                                ? replica->step <= check_step(sim) + ghost->ahead
                                : check_is_settled(sim, replica->step, &replica->digest);
    // A share that went a step too far (check_windows.c) is dropped once its digest is asked for
    const bool is_share =
        node->learner.exchange.shares.only && replica->step == member->now.step + 1;
    hold(busy || is_share || node->learner.differs || member->now.log_seq < ghost->restore_record ||
             replica->step <= member->now.step || is_settled,
         "what was given up is let go", "%s at %" PRIu64, node->name, replica->step);
}

static const struct blobs *blobs_of(const struct node *node)
{
    switch (node->role) {
    case ACTOR_TRAINER:
    case ACTOR_SERVER: return &((const struct trainer *)node->state)->blobs;
    case ACTOR_CHECKPOINTER: return &((const struct checkpointer *)node->state)->blobs;
    default: return NULL;
    }
}

static void check_here(struct sim *sim, uint8_t id)
{
    const struct node *node = &sim->nodes[id];
    const struct blobs *blobs = blobs_of(node);
    for (uint32_t i = blobs ? blobs->wanted : 0; blobs && i < blobs->count; i++)
        hold(store_holds(&node->store, &blobs->entries[i].hash, blobs->entries[i].bytes),
             "what is said to be here is here", "%s: of step %" PRIu64, node->name,
             blobs->entries[i].step);
}

// Rounds, roster, promises and parameters of one run are not taken into another of its name.
static void check_one_run(struct sim *sim, uint8_t id, const struct member *member,
                          const struct replica *replica)
{
    struct node *node = &sim->nodes[id];
    if (!node->born_unix_ms) node->born_unix_ms = member->born_unix_ms;
    hold(member->born_unix_ms == node->born_unix_ms, "a process takes part in one run", "%s",
         node->name);
    if (check_is_of_before(sim, id)) return;
    hold(member->now.log_seq <= sim->ghost.records, "nobody knows what is not on disk", "%s",
         node->name);
    hold(!member->has_round || member->round <= check_round(sim),
         "nobody knows what is not on disk", "%s, round %" PRIu64, node->name, member->round);
    hold(!replica || !replica->holding || !member->born_unix_ms || hash_is_none(&replica->digest) ||
             node->learner.differs || check_was_of_run(sim, replica->step, &replica->digest),
         "only parameters of the run are held", "%s at %" PRIu64, node->name, replica->step);
}

void check_stepped(struct sim *sim, uint8_t id, const struct msg *in)
{
    if (id == COORDINATOR) check_answered(sim, in);
    if ((in->kind == FRAME_CLAIM && in->frame) || in->kind == FRAME_COMMIT)
        check_shown(sim, id, in);
    if (id == COORDINATOR && in->kind == FRAME_CLAIM_COPY) check_claim_copy(sim);
    if (in->kind == FRAME_TRAINED || in->kind == FRAME_FETCHED) check_here(sim, id);
    const struct node *node = &sim->nodes[id];
    const struct member *member = member_of(node);
    const struct replica *replica = check_replica(node);
    if (!member) return;
    if (in->kind == FRAME_MEMBERS) check_same_roster(sim, node, member);
    hold(key_is_none(&member->coordinator) ||
             key_equal(&member->coordinator, &sim->nodes[COORDINATOR].key),
         "nobody follows another coordinator than the owner", "%s hears %s", node->name,
         wire_kind_name(in->kind));
    hold(!sim->hears_forked || (member->now.log_seq == sim->log_seq_before &&
                                member->incarnation == sim->incarnation_before),
         "nobody follows a coordinator whose disk fell behind", "%s hears %s", node->name,
         wire_kind_name(in->kind));
    hold(member->incarnation >= sim->incarnation_before, "an older incarnation is not listened to",
         "%s hears %s", node->name, wire_kind_name(in->kind));
    hold(in->incarnation >= sim->incarnation_before || in->kind == FRAME_ADMITTED ||
             member->now.log_seq == sim->log_seq_before ||
             !key_equal(&in->sender, &member->coordinator),
         "an older incarnation is not listened to", "%s hears %s", node->name,
         wire_kind_name(in->kind));
    check_one_run(sim, id, member, replica);
    hold(!sim->had_run || !member->has_run || member->now.log_seq < sim->log_seq_before ||
             member->now.epoch > sim->epoch_before ||
             (member->now.epoch == sim->epoch_before && member->now.step >= sim->step_before),
         "epoch and step never go back", "%s", node->name);
    check_room(sim, node);
    if (!replica || !replica->holding) return;
    // A pace may not know it yet: then the learner's is held against the commits.
    hold(hash_is_none(&replica->digest) || node->learner.differs ||
             check_was_digest(sim, replica->step, &replica->digest),
         "equal steps are equal bits", "%s at %" PRIu64, node->name, replica->step);
    if (check_is_of_before(sim, id)) return;
    check_let_go(sim, node, member, replica);
    if (sim->pace->stepped) sim->pace->stepped(sim, id);
}

void check_rebooted(struct sim *sim, uint8_t id)
{
    memset(sim->ghost.heard[id], 0, sizeof sim->ghost.heard[id]);
    if (sim->pace->rebooted) sim->pace->rebooted(sim, id);
    if (id != COORDINATOR) return;
    memset(sim->ghost.votes, 0, sizeof sim->ghost.votes); // It has forgotten them
    memset(sim->ghost.shown, 0, sizeof sim->ghost.shown);
    sim->ghost.committed_round = 0;
}

void check_loaded(struct sim *sim, uint8_t id)
{
    const struct learner *learner = &sim->nodes[id].learner;
    hold(check_was_digest(sim, learner->step, &learner->digest),
         "only committed parameters are loaded", "%s at %" PRIu64, sim->nodes[id].name,
         learner->step);
    sim->ghost.residual[id] = (struct hash){ 0 };
}

// Nobody else trains any of these in the same round.
static void check_alone(struct sim *sim, uint8_t id, uint64_t round, const struct interval *samples)
{
    for (uint8_t other = 0; other < sim->nodes_count; other++) {
        const struct ghost_job *job = &sim->ghost.jobs[other];
        for (uint32_t i = 0; other != id && job->round == round && i < job->count; i++)
            hold(samples->end <= job->samples[i].begin || samples->begin >= job->samples[i].end,
                 "a sample has one owner in a round", "round %" PRIu64 ", %s and %s", round,
                 sim->nodes[id].name, sim->nodes[other].name);
    }
}

void check_trained(struct sim *sim, uint8_t id, const struct wire_train *job)
{
    struct ghost_job *kept = &sim->ghost.jobs[id];
    if (check_is_of_before(sim, id)) return;
    hold(job->samples_count <= GHOST_JOB_MAX, "a share is small here", "%u", job->samples_count);
    *kept = (struct ghost_job){ .round = job->round, .count = job->samples_count };
    for (uint32_t i = 0; i < job->samples_count; i++) {
        check_alone(sim, id, job->round, &job->samples[i]);
        kept->samples[i] = job->samples[i];
        kept->total += job->samples[i].end - job->samples[i].begin;
    }
}

// A residual is adopted if and only if the commit accepted the result that leads to it.
static void follow_residual(struct sim *sim, uint8_t id, uint64_t step,
                            const struct ghost_commit *commit)
{
    struct ghost *ghost = &sim->ghost;
    const struct learner *learner = &sim->nodes[id].learner;
    for (uint32_t i = ghost->claims_count; i-- > 0;) {
        const struct ghost_claim *claim = &ghost->claims[i];
        if (claim->round != commit->round || claim->author != id ||
            claim->generation != learner->generation)
            continue;
        for (uint32_t j = 0; j < commit->accepted; j++)
            if (hash_equal(&commit->results[j], &claim->name))
                ghost->residual[id] = claim->residual_to;
    }
    hold(hash_equal(&ghost->residual[id], &learner->residual),
         "a residual is adopted with its commit, and only then", "%s, commit %" PRIu64,
         sim->nodes[id].name, step);
}

// The commit of that step as the replica has heard it, until it has applied it; NULL: none yet.
static const struct wire_commit *heard_commit(const struct sim *sim, uint8_t id, uint64_t step)
{
    const struct replay *replay = replay_of(&sim->nodes[id]);
    const struct replay_commit *kept = replay ? &replay->ahead[step % REPLAY_AHEAD] : NULL;
    return kept && kept->known && kept->commit.step == step ? &kept->commit : NULL;
}

void check_applied(struct sim *sim, uint8_t id, const struct wire_apply *job)
{
    const struct learner *learner = &sim->nodes[id].learner;
    const char *name = sim->nodes[id].name;
    if (check_is_of_before(sim, id)) return;
    hold(job->step < check_step(sim) || sim->ghost.restores > 0, "nobody is ahead of the ledger",
         "%s applies %" PRIu64, name, job->step);
    const struct wire_commit *heard = heard_commit(sim, id, job->step);
    const struct ghost_commit *commit =
        heard ? check_commit_to(sim, job->step, heard->round, &learner->digest) : NULL;
    hold(commit, "equal steps are equal bits", "%s at %" PRIu64, name, learner->step);
    bool same = job->payloads_count == commit->accepted && job->lr_bits == commit->lr_bits;
    for (uint32_t i = 0; same && i < commit->accepted; i++)
        same = hash_equal(&job->payloads[i].hash, &commit->payloads[i]);
    hold(same, "a replica applies the commit and nothing else", "%s, commit %" PRIu64, name,
         job->step);
    follow_residual(sim, id, job->step, commit);
}

// The replica has not heard of that commit: it may know the same bytes as another round's, said again.
static bool is_news(const struct sim *sim, uint8_t id, uint64_t step)
{
    return replay_of(&sim->nodes[id]) && !heard_commit(sim, id, step);
}

// Payloads are kept at least until they are applied here, unless all is fetched anew.
void check_forgotten(struct sim *sim, uint8_t id, const struct hash *payload)
{
    const struct learner *learner = &sim->nodes[id].learner;
    const struct replica *replica = check_replica(&sim->nodes[id]);
    if ((replica && !replica->holding) || check_is_of_before(sim, id)) return;
    if (!check_is_digest(sim, learner->step, &learner->digest)) return; // Given up
    const struct member *member = member_of(&sim->nodes[id]);
    for (uint64_t step = learner->step; learner->holding && step < check_step(sim); step++)
        // The very bytes of a void round may come again in the next, and are fetched again then.
        for (uint32_t i = 0; i < sim->ghost.commits[step].accepted &&
                             sim->ghost.commits[step].round < member->round;
             i++)
            hold(!hash_equal(&sim->ghost.commits[step].payloads[i], payload) ||
                     is_news(sim, id, step),
                 "what is still to be applied is not forgotten", "%s, commit %" PRIu64,
                 sim->nodes[id].name, step);
}

void check_saved(struct sim *sim, const struct wire_save *job)
{
    hold(check_was_digest(sim, job->step, &job->digest), "a checkpoint is of committed parameters",
         "step %" PRIu64, job->step);
}

// ---- at the end ---------------------------------------------------------------------------------

static void check_table(struct sim *sim)
{
    const struct ghost *ghost = &sim->ghost;
    const struct run *run = &((const struct coordinator *)sim->nodes[COORDINATOR].state)->run;
    if (!sim->nodes[COORDINATOR].up) return;
    hold(table_check(&run->table), "the table keeps its promises", "%u entries", run->table.count);
    uint64_t done = 0;
    for (uint64_t p = 0; p < ghost->cursor; p++) {
        hold(table_state_at(&run->table, p) == (enum table_state)ghost->samples[p],
             "no sample is lost", "sample %" PRIu64, p);
        done += ghost->samples[p] == TABLE_DONE;
    }
    hold(done == ghost->done && done == run->samples_done, "no sample is lost",
         "%" PRIu64 " done, %" PRIu64 " committed", done, ghost->done);
}

// A finished run has its last checkpoint, if there is a checkpointer to write it.
static void check_checkpoint(struct sim *sim)
{
    if (sim->checkpointer_node == NOBODY || !sim->nodes[sim->checkpointer_node].up) return;
    const struct node *node = &sim->nodes[sim->checkpointer_node];
    hold(node->checkpoints_count &&
             check_step(sim) == node->checkpoints[node->checkpoints_count - 1].step &&
             check_is_digest(sim, check_step(sim),
                             &node->checkpoints[node->checkpoints_count - 1].digest),
         "a finished run is on disk", "%" PRIu64 " steps", (uint64_t)check_step(sim));
}

void check_end(struct sim *sim)
{
    check_table(sim);
    if (check_phase(sim) != PHASE_FINISHED) return;
    check_checkpoint(sim);
    for (uint8_t i = 0; i < sim->nodes_count; i++) {
        const struct node *node = &sim->nodes[i];
        const struct replica *replica = check_replica(node);
        if (!replica || !node->up || is_liar(sim, i)) continue;
        hold(replica->holding && replica->step == check_step(sim) &&
                 check_is_digest(sim, replica->step, &replica->digest),
             "all end with the same parameters", "%s at %" PRIu64 " of %" PRIu64, node->name,
             replica->step, (uint64_t)check_step(sim));
    }
}
