// check_guilt -- see check_guilt.h. The ghost counts debts and verdicts on its own.

#include "tests/sim/check_guilt.h"
#include "common/pace/rounds/claims.h"
#include <inttypes.h>
#include <string.h>

enum {
    WRONG_MAX = 10,         // Committed results, of one liar without accomplices
    WRONG_COVERED_MAX = 40, // ... with
    TWICE_ROUNDS_MAX = 2,   // An equivocation is punished within so many rounds
    CALM_MS = 30000,        // After the healing: what was down then is up again
};

uint32_t check_member(const struct sim *sim, uint8_t id)
{
    for (uint32_t i = 0; i < sim->ghost.members_count; i++)
        if (key_equal(&sim->ghost.members[i].key, &sim->nodes[id].key)) return i;
    return UINT32_MAX;
}

uint8_t check_node(const struct sim *sim, uint32_t member)
{
    if (member >= sim->ghost.members_count) return NOBODY;
    for (uint8_t i = 0; i < sim->nodes_count; i++)
        if (key_equal(&sim->ghost.members[member].key, &sim->nodes[i].key) &&
            sim->nodes[i].role != ACTOR_OPERATOR)
            return i;
    return NOBODY;
}

static bool is_ejected(const struct sim *sim, uint32_t member)
{
    return member < sim->ghost.members_count && sim->ghost.members[member].state == MEMBER_EJECTED;
}

bool check_ejected(const struct sim *sim, uint8_t id)
{
    return is_ejected(sim, check_member(sim, id));
}

static bool is_judged(const struct ghost *ghost, uint32_t place);

// ---- the audits of a round ----------------------------------------------------------------------

static const struct ghost_accepted *accepted_named(const struct ghost *ghost,
                                                   const struct hash *result)
{
    for (uint32_t i = ghost->accepted_count; i-- > 0;)
        if (hash_equal(&ghost->accepted[i].result, result)) return &ghost->accepted[i];
    return NULL;
}

// Each audit is of a committed result of somebody else; who judges is neither party.
static void check_drawn(struct sim *sim, const struct wire_round *round)
{
    const struct ghost *ghost = &sim->ghost;
    uint32_t auditors = 0, owed = 0;
    hold(round->audits_count < round->clients_count, "somebody trains", "%u audits",
         round->audits_count);
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const struct wire_audit *audit = &round->audits[i];
        const struct ghost_accepted *accepted = accepted_named(ghost, &audit->result);
        hold(accepted && accepted->round == audit->round && accepted->member == audit->member &&
                 hash_equal(&accepted->payload, &audit->payload) &&
                 hash_equal(&accepted->residual_from, &audit->residual_from) &&
                 hash_equal(&accepted->residual_to, &audit->residual_to),
             "what is audited was committed", "round %" PRIu64 " place %u", round->round, i);
        hold(!accepted->given_up, "nobody answers for what was given up",
             "round %" PRIu64 " place %u", round->round, i);
        hold(check_is_digest(sim, audit->step, &audit->base), "a base is the digest of its step",
             "audit of step %" PRIu64, audit->step);
        uint32_t auditor = round->clients[audit->auditor].member;
        hold(auditor != audit->member && (!audit->judges || auditor != audit->accuser),
             "nobody judges a case of its own", "round %" PRIu64 " place %u", round->round, i);
        hold(ghost->members[audit->member].state != MEMBER_EJECTED, "who was ejected is left alone",
             "round %" PRIu64 " place %u", round->round, i);
        if (audit->judges) continue;
        auditors++;
        owed += ghost->members[audit->member].owed > 0;
    }
    // Those who owe are audited besides, a quarter of the clients at most
    const uint32_t most = round->clients_count < 8 ? 1 : round->clients_count / 4,
                   besides = owed < most ? owed : most;
    hold(100 * (auditors - besides) <
             round->clients_count * rounds_config(&sim->plan.rules)->verification_percent + 100,
         "no more audit than the rules say", "%u of %u", auditors, round->clients_count);
    hold(hash_is_none(&round->audit_lock) ==
             (rounds_config(&sim->plan.rules)->verification_percent == 0),
         "draws are locked before results are made", "round %" PRIu64, round->round);
}

// What a verdict demands is done, and two claims are punished, before the run goes on.
static void check_punished(struct sim *sim, uint64_t round)
{
    struct ghost *ghost = &sim->ghost;
    for (uint32_t i = 0; i < ghost->members_count; i++)
        hold(!(ghost->due >> i & 1) || is_ejected(sim, i), "a verdict is carried out",
             "member %u, before round %" PRIu64, i, round);
    ghost->due = 0;
    for (uint8_t id = 0; id < sim->nodes_count; id++)
        hold(!ghost->twice_round[id] || round <= ghost->twice_round[id] + TWICE_ROUNDS_MAX ||
                 check_ejected(sim, id),
             "who signs two claims of a round is ejected", "%s, round %" PRIu64,
             sim->nodes[id].name, ghost->twice_round[id]);
}

// Whose residual was not shown, and whom nobody judges any more, is audited once more before it is believed.
static void leave_cases(struct ghost *ghost, const struct wire_round *round)
{
    for (uint32_t i = 0; i < ghost->audits_count; i++) {
        const struct wire_audit *audit = &ghost->audits[i];
        bool goes_on = false;
        for (uint32_t k = 0; k < round->audits_count; k++)
            goes_on |=
                round->audits[k].judges && hash_equal(&round->audits[k].result, &audit->result);
        const bool unshown = audit->judges
                                 ? audit->accusation == FINDING_WITHHELD && !is_judged(ghost, i)
                                 : ghost->findings[i] == FINDING_WITHHELD;
        if (unshown && !goes_on && !ghost->members[audit->member].owed)
            ghost->members[audit->member].owed = 1;
    }
}

void check_audits(struct sim *sim, const struct wire_round *round)
{
    struct ghost *ghost = &sim->ghost;
    check_punished(sim, round->round);
    leave_cases(ghost, round);
    check_drawn(sim, round);
    for (uint32_t i = 0; i < round->clients_count; i++) {
        const struct wire_client *client = &round->clients[i];
        const uint32_t owed = ghost->members[client->member].owed;
        hold(client->debt == owed, "an audit debt is not forgotten", "member %u: %u, it was %u",
             client->member, client->debt, owed);
    }
    ghost->audits_count = round->audits_count;
    if (round->audits_count)
        memcpy(ghost->audits, round->audits, round->audits_count * sizeof *round->audits);
    memset(ghost->findings, FINDING_PENDING, sizeof ghost->findings);
}

// ---- findings and verdicts ----------------------------------------------------------------------

static bool same_case(const struct wire_audit *a, const struct wire_audit *b)
{
    return a->judges && b->judges && a->accuser == b->accuser && hash_equal(&a->result, &b->result);
}

// Judges of this case who were appointed, and those who are on record as saying `finding`.
static uint32_t count_judges(const struct ghost *ghost, uint32_t place, uint8_t finding,
                             uint32_t *ret_said)
{
    uint32_t judges = 0;
    *ret_said = 0;
    for (uint32_t i = 0; i < ghost->audits_count; i++) {
        if (!same_case(&ghost->audits[i], &ghost->audits[place])) continue;
        judges++;
        *ret_said += ghost->findings[i] == finding;
    }
    return judges;
}

// With so many votes a verdict has at least one honest judge: of all trainers a third may lie, and
// one of those is a party to the case, unless all that the accuser says is that it was shown nothing.
static uint32_t needed(const struct ghost *ghost, uint32_t place, uint32_t judges, uint8_t finding)
{
    const bool both_honest =
        ghost->audits[place].accusation == FINDING_WITHHELD && finding == FINDING_DIFFERENT;
    const uint32_t most = judges / 2 + 1, liars = ghost->trainers / 3 + both_honest;
    return most > liars ? most : liars;
}

// Shown to some and hidden from others, and those who have not spoken cannot make it "different".
static bool is_split(const struct ghost *ghost, uint32_t place)
{
    uint32_t hidden, different, silent;
    const uint32_t judges = count_judges(ghost, place, FINDING_WITHHELD, &hidden);
    count_judges(ghost, place, FINDING_DIFFERENT, &different);
    count_judges(ghost, place, FINDING_PENDING, &silent);
    return judges > 0 && hidden + different >= needed(ghost, place, judges, FINDING_WITHHELD) &&
           different + silent < needed(ghost, place, judges, FINDING_DIFFERENT);
}

static bool is_decided(const struct ghost *ghost, uint32_t place, uint8_t finding)
{
    uint32_t said, judges = count_judges(ghost, place, finding, &said);
    if (finding == FINDING_WITHHELD && is_split(ghost, place)) return true;
    return judges > 0 && said >= needed(ghost, place, judges, finding);
}

// Some word of the judges is the verdict.
static bool is_judged(const struct ghost *ghost, uint32_t place)
{
    return is_decided(ghost, place, FINDING_SAME) || is_decided(ghost, place, FINDING_DIFFERENT) ||
           is_decided(ghost, place, FINDING_WITHHELD);
}

// Who began with the declared zero had nothing to show, and has not shown anything.
static void find_same(struct ghost *ghost, const struct wire_audit *audit)
{
    if (!hash_is_none(&audit->residual_from)) ghost->unshown[audit->member] = 0;
    if (ghost->members[audit->member].owed) ghost->members[audit->member].owed--;
}

// To be called when the word that has just been put on record made it a verdict.
static void take_verdict(struct ghost *ghost, uint32_t place)
{
    const struct wire_audit *audit = &ghost->audits[place];
    uint8_t finding = FINDING_WITHHELD;
    if (is_decided(ghost, place, FINDING_SAME)) finding = FINDING_SAME;
    else if (is_decided(ghost, place, FINDING_DIFFERENT)) finding = FINDING_DIFFERENT;
    if (finding == FINDING_DIFFERENT) ghost->due |= 1u << audit->member;
    if (finding == FINDING_SAME) find_same(ghost, audit);
    if (finding == FINDING_SAME && audit->accusation == FINDING_DIFFERENT)
        ghost->due |= 1u << audit->accuser;
    static const uint32_t debts[] = { 8, 16, 32, 64 };
    if (finding != FINDING_WITHHELD) return;
    uint32_t *unshown = &ghost->unshown[audit->member];
    ghost->members[audit->member].owed = debts[*unshown];
    *unshown += *unshown < 3;
}

static bool is_contradicted(const struct ghost *ghost, uint32_t place)
{
    const uint8_t said = ghost->findings[place];
    return (said == FINDING_SAME && is_decided(ghost, place, FINDING_DIFFERENT)) ||
           (said == FINDING_DIFFERENT && is_decided(ghost, place, FINDING_SAME));
}

static void take_contradictions(struct ghost *ghost)
{
    for (uint32_t i = 0; i < ghost->audits_count; i++)
        if (ghost->audits[i].judges && is_contradicted(ghost, i))
            ghost->due |= 1u << ghost->clients[ghost->audits[i].auditor];
}

void check_finding(struct sim *sim, const struct wire_record_finding *record)
{
    struct ghost *ghost = &sim->ghost;
    hold(ghost->round_open && record->round == check_round(sim) &&
             record->place < ghost->audits_count,
         "a finding is of an audit of the open round", "round %" PRIu64 " place %u", record->round,
         record->place);
    const struct wire_audit *audit = &ghost->audits[record->place];
    const uint32_t auditor = ghost->clients[audit->auditor];
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    sim->inside.used = 0;
    hold(wire_unpack(record->frame.data, record->frame.count, WIRE_MAIL, &sim->inside, &head, &body,
                     &refusal) &&
             head.kind == FRAME_FINDING && key_equal(&head.sender, &ghost->members[auditor].key) &&
             ((const struct wire_finding *)body)->finding == record->finding &&
             hash_equal(&((const struct wire_finding *)body)->result, &audit->result),
         "a finding is its auditor's, of that result", "round %" PRIu64 " place %u", record->round,
         record->place);
    hold(record->finding != FINDING_WITHHELD || !hash_is_none(&audit->residual_from),
         "who began with zero has nothing to withhold", "round %" PRIu64 " place %u", record->round,
         record->place);
    hold(ghost->findings[record->place] == FINDING_PENDING && record->finding != FINDING_PENDING,
         "the first finding counts", "round %" PRIu64 " place %u", record->round, record->place);
    hold(!is_ejected(sim, auditor), "nobody hears an ejected member", "a finding of member %u",
         auditor);
    const bool was_open = audit->judges && !is_judged(ghost, record->place);
    ghost->findings[record->place] = record->finding;
    if (was_open && is_judged(ghost, record->place)) take_verdict(ghost, record->place);
    if (!audit->judges && record->finding == FINDING_SAME) find_same(ghost, audit);
    take_contradictions(ghost);
}

// ---- ejections ----------------------------------------------------------------------------------

static const struct wire_claim *claim_in(struct sim *sim, const struct wire_bytes *frame,
                                         const struct key *author, struct wire_arena *arena)
{
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body = NULL;
    arena->used = 0;
    hold(wire_unpack(frame->data, frame->count, WIRE_MAIL, arena, &head, &body, &refusal) &&
             head.kind == FRAME_CLAIM && key_equal(&head.sender, author),
         "an equivocation is proven", "what is in the record is no claim of that member's%s", "");
    return body;
}

static void check_proof(struct sim *sim, const struct wire_record_ejection *record)
{
    const struct key *key = &sim->ghost.members[record->member].key;
    const struct wire_claim first = *claim_in(sim, &record->first, key, &sim->inside);
    const struct wire_claim second = *claim_in(sim, &record->second, key, &sim->inside);
    const struct hash a = claim_hash(&first), b = claim_hash(&second);
    hold(first.round == second.round && !hash_equal(&a, &b) &&
             first.born_unix_ms == second.born_unix_ms && strcmp(first.run, second.run) == 0,
         "an equivocation is proven", "round %" PRIu64, record->round);
}

// Some case of the open round has come to it, by what is on record.
static bool was_judged(const struct ghost *ghost, const struct wire_record_ejection *record)
{
    for (uint32_t i = 0; i < ghost->audits_count; i++) {
        const struct wire_audit *audit = &ghost->audits[i];
        const bool accused = audit->member == record->member;
        if (!audit->judges) continue;
        if (record->guilt == GUILT_WRONG_RESULT && accused &&
            is_decided(ghost, i, FINDING_DIFFERENT))
            return true;
        if (record->guilt == GUILT_FALSE_ACCUSATION && audit->accuser == record->member &&
            is_decided(ghost, i, FINDING_SAME))
            return true;
        if (record->guilt == GUILT_FALSE_FINDING && is_contradicted(ghost, i) &&
            ghost->clients[audit->auditor] == record->member)
            return true;
    }
    return false;
}

void check_ejection(struct sim *sim, const struct wire_record_ejection *record)
{
    struct ghost *ghost = &sim->ghost;
    const char *guilt = wire_enum_name(&wire_enum_guilt, record->guilt);
    hold(record->member < ghost->members_count, "who is ejected is a member", "%u", record->member);
    struct ghost_member *member = &ghost->members[record->member];
    const uint8_t node = check_node(sim, record->member);
    hold(node != NOBODY && is_liar(sim, node), "no honest member is ejected", "member %u for %s",
         record->member, guilt);
    hold(member->state != MEMBER_EJECTED, "nobody is ejected twice", "%u", record->member);
    if (record->guilt == GUILT_EQUIVOCATION) check_proof(sim, record);
    else
        hold(was_judged(ghost, record), "who is ejected was judged", "member %u for %s",
             record->member, guilt);
    member->state = MEMBER_EJECTED;
    sim->faults[EJECTION]++;
}

// ---- nobody stays who was caught ----------------------------------------------------------------

// Only where each result that can be is audited, and the liar goes on when all else is healed.
static bool is_wanted(const struct sim *sim, uint8_t id)
{
    return sim->plan.stubborn && sim->plan.lies == LIES_IN_RESULTS && is_liar(sim, id) &&
           rounds_config(&sim->plan.rules)->verification_percent == 100 && !faulty(sim) &&
           sim->nodes[id].role == ACTOR_TRAINER;
}

void check_wrong(struct sim *sim, const struct ghost_claim *claim)
{
    // Among three there may be no judge: one word against another is left. And few of many who take
    // part cannot convict, where more may lie than can judge.
    const uint32_t clients = sim->ghost.clients_count;
    if (!claim->wrong || clients < 4 || clients < 2 + sim->ghost.trainers / 3 ||
        !is_wanted(sim, claim->author))
        return;
    const uint32_t most = sim->plan.collude && (sim->plan.liars & (sim->plan.liars - 1))
                              ? WRONG_COVERED_MAX
                              : WRONG_MAX;
    hold(++sim->ghost.wrong_accepted[claim->author] <= most, "a maker of wrong results is ejected",
         "%s: %u since all was healed", sim->nodes[claim->author].name,
         sim->ghost.wrong_accepted[claim->author]);
}

bool check_at_large(const struct sim *sim)
{
    for (uint8_t id = 0; id < sim->nodes_count; id++)
        if (is_wanted(sim, id) && !check_ejected(sim, id)) return true;
    return false;
}

// The claim in a claim_copy, borrowed until the next one is unpacked; NULL: something else.
static const struct wire_claim *claim_shown(struct sim *sim, const struct wire_bytes *frame,
                                            struct wire_head *ret_head)
{
    struct wire_refusal refusal;
    const void *body;
    sim->inside.used = 0;
    bool whole =
        wire_unpack(frame->data, frame->count, WIRE_MAIL, &sim->inside, ret_head, &body, &refusal);
    return whole && ret_head->kind == FRAME_CLAIM ? body : NULL;
}

static uint32_t member_of_key(const struct sim *sim, const struct key *key)
{
    for (uint32_t i = 0; i < sim->ghost.members_count; i++)
        if (key_equal(&sim->ghost.members[i].key, key)) return i;
    return UINT32_MAX;
}

// For the same batch as the true one, and no witness has a reason to look away.
static bool is_for_slot(const struct wire_claim *claim, const struct wire_claim *truth)
{
    struct wire_claim same = *claim;
    same.payload = truth->payload;
    same.residual_from = truth->residual_from;
    same.residual_to = truth->residual_to;
    return wire_equal(FRAME_CLAIM, &same, truth);
}

static uint8_t trainer_of_key(const struct sim *sim, const struct key *key)
{
    for (uint8_t id = 0; id < sim->nodes_count; id++)
        if (sim->nodes[id].role == ACTOR_TRAINER && key_equal(&sim->nodes[id].key, key)) return id;
    return NOBODY;
}

static const struct rounds_member *rounds_at(const struct node *node)
{
    return rounds_of(node->role == ACTOR_TRAINER
                         ? &((const struct trainer *)node->state)->pace
                         : &((const struct witness_actor *)node->state)->pace);
}

// It has the round, the author's line of the roster and the size of a result. Who lacks one of them
// is not a witness of anything yet: claims are sent to it again. And it votes: who does not believes no
// claim.
static bool can_tell(const struct node *node, const struct wire_claim *claim)
{
    const struct member *member = node->state;
    const struct round_view *view = &rounds_at(node)->view;
    const struct wire_member *author = round_view_client(view, member, claim->client);
    return member->has_config && member->has_round && claim->round == member->round && author &&
           key_equal(&author->key, &claim->author) && round_view_elects_us(view, member);
}

// All is healed: nothing stands between its proof and the coordinator.
static bool can_prove(const struct sim *sim, uint8_t id)
{
    const uint32_t place = check_member(sim, id);
    return sim->now_ms >= sim->plan.heal_ms + CALM_MS && place != UINT32_MAX &&
           sim->ghost.members[place].state == MEMBER_HEALTHY && sim->nodes[COORDINATOR].up;
}

static void must_be_ejected(struct sim *sim, uint8_t author, uint64_t round)
{
    if (!sim->ghost.twice_round[author]) sim->ghost.twice_round[author] = round;
}

void check_claim_heard(struct sim *sim, uint8_t id, const struct msg *in)
{
    const struct wire_claim *claim = in->body;
    struct ghost *ghost = &sim->ghost;
    const struct node *node = &sim->nodes[id];
    const uint8_t author = trainer_of_key(sim, &in->sender);
    if (is_liar(sim, id) || check_is_of_before(sim, id) || author == NOBODY ||
        (node->role != ACTOR_TRAINER && node->role != ACTOR_WITNESS))
        return;
    if (!can_tell(node, claim) || !is_for_slot(claim, &ghost->newest[author])) return;
    struct ghost_heard *heard = &ghost->heard[id][author];
    const struct hash name = claim_hash(claim);
    if (heard->round != claim->round) *heard = (struct ghost_heard){ claim->round, name, false, 0 };
    if (hash_equal(&heard->name, &name)) return;
    heard->twice = true;
    if (ghost->round_open && claim->round == check_round(sim) && can_prove(sim, id))
        must_be_ejected(sim, author, claim->round);
}

static const struct ghost_accepted *accepted_of(const struct ghost *ghost, uint32_t member,
                                                uint64_t round)
{
    for (uint32_t i = ghost->accepted_count; i-- > 0;)
        if (ghost->accepted[i].round == round && ghost->accepted[i].member == member)
            return &ghost->accepted[i];
    return NULL;
}

// Another claim than the one it heard is committed, of this round or the one before it.
static void check_rivals(struct sim *sim, uint8_t id, const struct wire_commit *commit)
{
    const struct node *node = &sim->nodes[id];
    const struct witness *witness = &rounds_at(node)->witness;
    if (commit->round != witness->round && commit->round != witness->round_before) return;
    for (uint8_t author = 0; author < sim->nodes_count; author++) {
        const struct ghost_heard *heard = &sim->ghost.heard[id][author];
        const uint32_t member = check_member(sim, author);
        if (heard->round != commit->round || member == UINT32_MAX) continue;
        const struct ghost_accepted *accepted = accepted_of(&sim->ghost, member, heard->round);
        if (!accepted || hash_equal(&heard->name, &accepted->result)) continue;
        hold(heard->shown > 0, "who holds another claim than the one committed shows it",
             "%s, of %s in round %" PRIu64, node->name, sim->nodes[author].name, heard->round);
        if (heard->round + 1 >= check_round(sim) && can_prove(sim, id))
            must_be_ejected(sim, author, heard->round);
    }
}

void check_shown(struct sim *sim, uint8_t id, const struct msg *in)
{
    struct ghost_heard *heard = sim->ghost.heard[id];
    const uint8_t role = sim->nodes[id].role;
    if (role != ACTOR_TRAINER && role != ACTOR_WITNESS) return;
    if (is_liar(sim, id) || check_is_of_before(sim, id)) return;
    for (uint32_t i = 0; i < sim->out.count; i++) {
        const struct effect *effect = &sim->out.effects[i];
        struct wire_head head;
        if (effect->kind != FRAME_CLAIM_COPY) continue;
        const struct wire_claim_copy *claim_copy =
            unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
        const struct wire_claim *claim = claim_shown(sim, &claim_copy->claim, &head);
        const uint8_t author = claim ? trainer_of_key(sim, &head.sender) : NOBODY;
        if (author != NOBODY && claim->round == heard[author].round) heard[author].shown++;
    }
    for (uint8_t author = 0; author < sim->nodes_count; author++)
        hold(!heard[author].twice || heard[author].shown > 1,
             "who hears two claims of a round shows them", "%s, of %s in round %" PRIu64,
             sim->nodes[id].name, sim->nodes[author].name, heard[author].round);
    const struct member *member = sim->nodes[id].state;
    if (in->kind == FRAME_COMMIT && member_is_coordinator(member, in) && member->has_round &&
        in->incarnation == member->proved_incarnation)
        check_rivals(sim, id, in->body);
}

static bool may_answer(const struct ghost_member *member)
{
    return member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING;
}

void check_claim_copy_heard(struct sim *sim, const struct msg *in)
{
    struct ghost *ghost = &sim->ghost;
    sim->shown_guilty = UINT32_MAX;
    sim->unasked_round = 0;
    const struct wire_claim_copy *claim_copy = in->body;
    struct wire_head head;
    const struct wire_claim *claim = claim_shown(sim, &claim_copy->claim, &head);
    const uint32_t member = claim ? member_of_key(sim, &head.sender) : UINT32_MAX;
    const uint32_t sender = member_of_key(sim, &in->sender);
    if (sim->disk.behind || member == UINT32_MAX || sender == UINT32_MAX) return;
    const uint8_t state = ghost->members[sender].state;
    if ((state != MEMBER_HEALTHY && state != MEMBER_PENDING) ||
        in->incarnation < ghost->members[sender].instance ||
        !key_equal(&claim->author, &head.sender) || strcmp(claim->run, "sim") != 0 ||
        claim->born_unix_ms != ghost->born_unix_ms || claim->round > check_round(sim) ||
        claim->round + CLAIM_AGE_MAX < check_round(sim))
        return;
    struct ghost_claim_copy *first = &ghost->shown[member][claim->round % (CLAIM_AGE_MAX + 1)];
    const struct hash name = claim_hash(claim);
    if (first->round != claim->round)
        *first = (struct ghost_claim_copy){ claim->round, name, false };
    if (!hash_equal(&first->name, &name)) sim->shown_guilty = member;
    const struct ghost_accepted *accepted = accepted_of(ghost, member, ghost->committed_round);
    if (!accepted || ghost->committed_round != claim->round || first->asked ||
        hash_equal(&accepted->result, &name) || ghost->members[member].state == MEMBER_EJECTED ||
        sim->shown_guilty == member)
        return;
    sim->unasked_round = claim->round;
    for (uint32_t w = 0; w < ghost->committed_by_count; w++)
        first->asked |= may_answer(&ghost->members[ghost->committed_by[w]]);
}

static bool is_asked(struct sim *sim, const struct key *witness)
{
    for (uint32_t i = 0; i < sim->out.count; i++) {
        const struct effect *effect = &sim->out.effects[i];
        if (effect->port != PORT_MAIL || effect->kind != FRAME_SEND_CLAIM) continue;
        const struct wire_send_claim *asked =
            unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
        const uint32_t to = node_named(sim, effect->to);
        if (to < sim->nodes_count && key_equal(&sim->nodes[to].key, witness) &&
            asked->round == sim->unasked_round)
            return true;
    }
    return false;
}

void check_claim_copy(struct sim *sim)
{
    hold(sim->shown_guilty == UINT32_MAX || is_ejected(sim, sim->shown_guilty),
         "who is shown to have signed two claims is ejected", "member %u", sim->shown_guilty);
    const struct ghost *ghost = &sim->ghost;
    // Those who voted are known of the newest commit alone: not if the next one was in the same turn (seed 4107)
    const bool is_newest = sim->unasked_round && sim->unasked_round == ghost->committed_round;
    for (uint32_t w = 0; is_newest && w < ghost->committed_by_count; w++) {
        const struct ghost_member *witness = &ghost->members[ghost->committed_by[w]];
        hold(!may_answer(witness) || is_asked(sim, &witness->key),
             "who may hold the claim that was committed is asked for it",
             "member %u, round %" PRIu64, ghost->committed_by[w], sim->unasked_round);
    }
}
