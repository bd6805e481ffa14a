// draw -- draws a round in this order: the seed; clients and witnesses; then, in a run with audits,
// judges for disputes ("different" before "withheld"), verifiers by chance, auditors for members
// with audit debt. A client that is appointed as an auditor does not train. At least one client
// trains. If the witnesses hold no parameters (witness_standalone), more clients train than may
// lie.

#include "common/pace/rounds/draw.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/run/committee.h"
#include "common/run/quorum.h"
#include "common/pace/rounds/verdict.h"
#include <string.h>

struct drawing {
    struct draw *self;
    const struct draw_from *from;
    struct wire_round *round; // The part that has been drawn so far
    uint32_t free;            // Clients that may still become auditors
};

// ---- seed, clients, witnesses -------------------------------------------------------------------

static uint64_t draw_seed(const struct draw_from *from, uint64_t round)
{
    const struct hash *commit = &from->round->last_commit, *key = &from->round->audit_key;
    uint8_t bytes[24];
    le_put(bytes, from->run_seed, 8);
    le_put(bytes + 8, round, 8);
    le_put(bytes + 16, from->step, 8);
    struct hash hash = hash_of_two(bytes, sizeof bytes, commit->bytes, HASH_BYTES);
    if (!hash_is_none(key)) hash = hash_of_two(hash.bytes, HASH_BYTES, key->bytes, HASH_BYTES);
    return hash_to_number(&hash) >> 1; // Some JSON readers cannot read 2^63 and above
}

// Healthy members of a role, in order of their keys.
static uint32_t live(const struct roster *roster, uint8_t role, struct wire_client *ret_list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        const uint32_t index = roster->by_key[i];
        if (roster->members[index].role == role && roster->members[index].state == MEMBER_HEALTHY)
            ret_list[count++] = (struct wire_client){ .member = index };
    }
    return count;
}

// Elects witnesses among the candidates, keeping their order. Returns how many.
static uint32_t elect(struct drawing *at, const struct wire_client *candidates, uint32_t count)
{
    struct draw *self = at->self;
    uint32_t nodes = at->from->rules->witness_nodes, elected = 0;
    if (nodes == 0 || nodes > count) nodes = count < WITNESSES_OPEN ? count : WITNESSES_OPEN;
    committee_positions(at->round->seed, SALT_WITNESS, count, self->positions);
    for (uint32_t i = 0; i < count; i++)
        if (self->positions[i] < nodes) self->witnesses[elected++] = candidates[i];
    return elected;
}

// Witness actors are candidates if witness_standalone is set, else the clients are. In the first
// case the list of clients is scratch memory for the candidates before it is filled.
static void draw_members(struct drawing *at)
{
    const struct roster *roster = at->from->roster;
    struct wire_client *clients = at->self->clients;
    struct wire_round *round = at->round;
    const bool standalone = at->from->rules->witness_standalone;
    if (standalone)
        round->witnesses_count = elect(at, clients, live(roster, ACTOR_WITNESS, clients));
    round->clients_count = live(roster, ACTOR_TRAINER, clients);
    if (!standalone) round->witnesses_count = elect(at, clients, round->clients_count);
    round->clients = clients, round->witnesses = at->self->witnesses;
}

// ---- auditors -----------------------------------------------------------------------------------

static bool has_room(const struct drawing *at)
{
    return at->free > 0 && at->round->audits_count < AUDITS_MAX;
}

// Appoints the client as an auditor, and appends the samples of its audit to the list.
static void appoint(struct drawing *at, const struct wire_audit *audit, uint32_t client,
                    const struct interval *samples)
{
    struct draw *self = at->self;
    struct wire_round *round = at->round;
    ensure(has_room(at));
    memcpy(self->audited + round->audited_count, samples, audit->intervals * sizeof *samples);
    round->audited_count += audit->intervals;
    self->audits[round->audits_count] = *audit;
    self->audits[round->audits_count++].auditor = client;
    self->taken[client] = true;
    at->free--;
}

static bool is_ejected(const struct drawing *at, uint32_t member)
{
    return at->from->roster->members[member].state == MEMBER_EJECTED;
}

// ---- judges -------------------------------------------------------------------------------------

static bool may_judge(const struct drawing *at, uint32_t client, const struct wire_audit *audit)
{
    const uint32_t member = at->round->clients[client].member;
    // mutant: audit: the accused judges itself
    return !at->self->taken[client] && member != audit->member && member != audit->accuser;
}

// Appoints the first clients of the committee that are not a party. One judge alone would decide
// between two members, but a run of three members has no more.
static void appoint_judges(struct drawing *at, struct draw_case *dispute,
                           const struct interval *samples)
{
    const struct wire_audit *audit = &dispute->audit;
    const uint32_t trainers = at->round->trainers;
    const uint32_t due = verdict_judges(trainers, audit->accusation, audit->tries);
    for (uint32_t i = 0; i < at->round->clients_count && dispute->judges < due; i++) {
        const uint32_t client = at->self->order[i];
        if (!has_room(at)) break;
        if (!may_judge(at, client, audit)) continue;
        appoint(at, audit, client, samples);
        dispute->judges++;
    }
    dispute->needed = verdict_needed(audit, trainers, dispute->judges, audit->accusation);
}

// The case for judges that follows from the audit at this index of the round before; false: none
// does.
static bool case_at(const struct drawing *at, uint32_t place, struct wire_audit *ret_audit)
{
    const struct round *before = at->from->round;
    struct wire_audit *audit = ret_audit;
    const uint8_t finding = before->findings[place].finding;
    *audit = before->audits[place];
    if (audit->judges) {
        if (!verdict_is_first(before, place) || verdict_of(before, place) != FINDING_PENDING)
            return false;
        audit->tries++;
    } else {
        if (finding != FINDING_DIFFERENT && finding != FINDING_WITHHELD) return false;
        audit->judges = true;
        audit->accuser = before->clients[audit->auditor].member;
        audit->accusation = finding;
        audit->tries = 0;
    }
    return !is_ejected(at, audit->member) && !is_ejected(at, audit->accuser);
}

// Draws judges for the undecided disputes of the round before that have this accusation. An accuser
// risks nothing by "withheld", so such cases may take at most half of the clients.
static void draw_judges(struct drawing *at, uint8_t accusation)
{
    const struct wire_round before = round_frame(at->from->round);
    struct wire_audit audit;
    for (uint32_t i = 0; i < before.audits_count; i++) {
        if (!case_at(at, i, &audit) || audit.accusation != accusation) continue;
        const uint32_t due = verdict_judges(at->round->trainers, accusation, audit.tries),
                       taken = at->round->audits_count;
        const bool crowded = accusation == FINDING_WITHHELD && taken > 0 &&
                             taken + due > at->round->clients_count / 2;
        struct draw_case *dispute = &at->self->cases[at->self->cases_count++];
        *dispute =
            (struct draw_case){ .audit = audit, .left = audit.tries >= AUDIT_TRIES_MAX || crowded };
        if (!dispute->left) appoint_judges(at, dispute, audits_samples(&before, i));
    }
}

// ---- results of the newest commit ---------------------------------------------------------------

static uint64_t chance(const struct wire_round *round)
{
    static const char domain[] = "shoal audits 1";
    uint8_t seed[8];
    le_put(seed, round->seed, sizeof seed);
    const struct hash hash = hash_of_two(domain, sizeof domain, seed, sizeof seed);
    return hash_to_number(&hash);
}

// The audit of an accepted result, its samples in self->samples. False: nobody can audit it.
static bool audit_of(struct drawing *at, const struct wire_accepted *accepted,
                     struct wire_audit *ret_audit)
{
    const struct round *before = at->from->round;
    const uint32_t member = before->clients[accepted->client].member;
    // mutant: audit: an ejected member is audited again
    if (is_ejected(at, member)) return false;
    const uint32_t intervals =
        round_samples_at(before, accepted->begin, accepted->end, at->self->samples);
    if (intervals == 0 || intervals > AUDIT_INTERVALS_MAX) return false;
    // mutant: audit: the base is not that of the result
    // mutant: audit: an audit names the residual that it leads to
    *ret_audit = (struct wire_audit){ .member = member,
                                      .round = before->last.round,
                                      .step = before->last.step,
                                      .lr_bits = before->last.lr_bits,
                                      .result = accepted->result,
                                      .payload = accepted->payload,
                                      .payload_bytes = accepted->payload_bytes,
                                      .base = before->last.base,
                                      .residual_from = accepted->residual_from,
                                      .residual_to = accepted->residual_to,
                                      .intervals = intervals };
    return true;
}

// Appoints the client to recompute this result. False: the result is its own, another client
// recomputes it, or nobody can.
static bool give(struct drawing *at, uint32_t client, const struct wire_accepted *accepted)
{
    const struct wire_round *round = at->round;
    struct wire_audit audit;
    // mutant: audit: a member audits itself
    if (at->from->round->clients[accepted->client].member == round->clients[client].member)
        return false;
    for (uint32_t a = 0; a < round->audits_count; a++)
        if (hash_equal(&at->self->audits[a].result, &accepted->result)) return false;
    if (!audit_of(at, accepted, &audit)) return false;
    appoint(at, &audit, client, at->self->samples);
    return true;
}

static void draw_verifiers(struct drawing *at)
{
    const struct round *before = at->from->round;
    const uint32_t results = before->accepted_count;
    const uint32_t train = at->round->clients_count - at->round->audits_count;
    const uint64_t number = chance(at->round),
                   hundredths = (uint64_t)train * at->from->rules->verification_percent;
    // On average exactly verification_percent of them, even if that is less than one client.
    // mutant: audit: more are drawn than the rules say
    const uint64_t verifiers = hundredths / 100 + (number % 100 < hundredths % 100);
    const uint64_t first = number / 100;
    uint32_t given = 0;
    for (uint32_t i = 0; i < at->round->clients_count && given < verifiers; i++) {
        const uint32_t client = at->self->order[i];
        if (!has_room(at)) return;
        if (at->self->taken[client]) continue;
        for (uint32_t t = 0; t < results; t++)
            if (give(at, client, &before->accepted[(first + given + t) % results])) {
                given++;
                break;
            }
    }
}

// Draws auditors for members with audit debt, in addition to the verifiers: so debts do not lower
// the number of results that are audited by chance. If more members have debt than can be audited,
// chance decides.
static void draw_debtors(struct drawing *at)
{
    const struct round *before = at->from->round;
    const struct wire_round *round = at->round;
    const uint32_t most = round->clients_count < 8 ? 1 : round->clients_count / 4;
    const uint32_t results = before->accepted_count;
    const uint64_t first = chance(round) / 100;
    uint32_t given = 0;
    for (uint32_t t = 0; t < results && given < most; t++) {
        const struct wire_accepted *accepted = &before->accepted[(first + t) % results];
        const uint32_t member = before->clients[accepted->client].member;
        if (!at->from->debts[member].audits) continue;
        for (uint32_t i = 0; i < round->clients_count && has_room(at); i++)
            if (!at->self->taken[at->self->order[i]] && give(at, at->self->order[i], accepted)) {
                given++;
                break;
            }
    }
}

static void draw_audits(struct drawing *at)
{
    struct draw *self = at->self;
    struct wire_round *round = at->round;
    // mutant: audit: nobody is left to train
    at->free = round->clients_count - 1;
    if (at->from->rules->witness_standalone) at->free -= quorum_liars(round->clients_count);
    round->trainers = roster_trainers(at->from->roster, at->from->round->opened.round);
    committee_positions(round->seed, SALT_COMMITTEE, round->clients_count, self->positions);
    for (uint32_t c = 0; c < round->clients_count; c++) self->order[self->positions[c]] = c;
    memset(self->taken, 0, round->clients_count);
    draw_judges(at, FINDING_DIFFERENT);
    draw_judges(at, FINDING_WITHHELD);
    draw_verifiers(at);
    // mutant: audit: a member that owes is drawn like the others
    draw_debtors(at);
}

struct draw_rules draw_rules(const struct rules *rules)
{
    const struct wire_rounds_config *config = rules_strategy(rules);
#define DRAW_RULE(type, name) .name = config->name,
    return (struct draw_rules){ DRAW_RULES(DRAW_RULE) };
#undef DRAW_RULE
}

void draw_round(struct draw *self, const struct draw_from *from, struct wire_round *ret_round)
{
    struct drawing at = { .self = self, .from = from, .round = ret_round };
    self->cases_count = 0;
    ret_round->round = from->round->opened.round + 1;
    ret_round->seed = draw_seed(from, ret_round->round);
    draw_members(&at);
    ensure(ret_round->clients_count > 0);
    ret_round->trainers = ret_round->audits_count = ret_round->audited_count = 0;
    ret_round->audits = self->audits, ret_round->audited = self->audited;
    if (from->rules->verification_percent) draw_audits(&at);
    memcpy(self->debts, from->debts, sizeof self->debts);
    round_add_debts(from->round, ret_round, self->debts);
    for (uint32_t c = 0; c < ret_round->clients_count; c++)
        self->clients[c].debt = self->debts[self->clients[c].member].audits;
}
