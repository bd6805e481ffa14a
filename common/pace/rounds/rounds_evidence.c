// rounds_evidence -- checks each record of a round against the state that the records before it
// lead to (the roster, the newest round, the step), then applies it to that state. One function a
// kind of record; the counts say what was verified.

#include "common/pace/rounds/rounds_evidence.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/pace/rounds/verdict.h"
#include <inttypes.h>
#include <string.h>

static struct rounds_evidence *own(struct evidence *evidence)
{
    return (struct rounds_evidence *)(void *)evidence->pace_state;
}

// ---- draws --------------------------------------------------------------------------------------

// Compares one part after the other, so that the text can name the part that differs.
static bool is_as_drawn(struct evidence *evidence, const struct wire_round *round,
                        const struct wire_round *drawn)
{
    const uint64_t number = round->round;
    struct wire_round mixed = *round;
    if (round->seed != drawn->seed)
        return evidence_refuse(evidence,
                               "the seed of round %" PRIu64 " is %" PRIu64
                               "; run, round, step, the commit and the key before it "
                               "lead to %" PRIu64,
                               number, round->seed, drawn->seed);
    mixed.clients = drawn->clients, mixed.clients_count = drawn->clients_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return evidence_refuse(evidence,
                               "the clients of round %" PRIu64
                               " are not the %u healthy trainers in order of identity",
                               number, drawn->clients_count);
    mixed.witnesses = drawn->witnesses, mixed.witnesses_count = drawn->witnesses_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return evidence_refuse(
            evidence, "the witnesses of round %" PRIu64 " are not those that its seed elects",
            number);
    mixed.trainers = drawn->trainers;
    mixed.audits = drawn->audits, mixed.audits_count = drawn->audits_count;
    mixed.audited = drawn->audited, mixed.audited_count = drawn->audited_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return evidence_refuse(
            evidence, "the %u auditors of round %" PRIu64 " are not the %u that its seed draws",
            round->audits_count, number, drawn->audits_count);
    return true;
}

static bool hear_round(struct evidence *evidence, const struct wire_round *round)
{
    struct rounds_evidence *self = own(evidence);
    if (self->round.open || round->round != self->round.opened.round + 1 ||
        round->step != evidence->step || !hash_equal(&round->previous, &self->round.last_commit))
        return evidence_refuse(evidence,
                               "round %" PRIu64 " at step %" PRIu64
                               " does not follow round %" PRIu64 ", step %" PRIu64
                               " and the commit "
                               "before it",
                               round->round, round->step, self->round.opened.round, evidence->step);
    if (roster_count(&evidence->roster, ACTOR_TRAINER, MEMBER_HEALTHY) == 0)
        return evidence_refuse(evidence, "round %" PRIu64 " has no healthy trainer", round->round);
    if (hash_is_none(&round->audit_lock) !=
        (rounds_config(&evidence->rules)->verification_percent == 0))
        return evidence_refuse(evidence,
                               "round %" PRIu64 " has %s lock, with verification_percent %u",
                               round->round, hash_is_none(&round->audit_lock) ? "no" : "a",
                               rounds_config(&evidence->rules)->verification_percent);
    const struct draw_rules rules = draw_rules(&evidence->rules);
    const struct draw_from from = { .rules = &rules,
                                    .run_seed = evidence->run_seed,
                                    .step = evidence->step,
                                    .roster = &evidence->roster,
                                    .round = &self->round,
                                    .debts = self->debts };
    struct wire_round drawn = { 0 };
    draw_round(&self->draw, &from, &drawn);
    if (!is_as_drawn(evidence, round, &drawn)) return false;
    round_add_debts(&self->round, round, self->debts);
    round_open(&self->round, round);
    evidence->number = round->round;
    evidence->counts[ROUNDS_COUNT_DRAWS]++;
    evidence->counts[ROUNDS_COUNT_AUDITS] += round->audits_count;
    return true;
}

static bool hear_commit(struct evidence *evidence, const struct wire_commit *commit)
{
    struct rounds_evidence *self = own(evidence);
    const uint64_t number = commit->round;
    const struct hash lock = hash_of(commit->audit_key.bytes, HASH_BYTES);
    const bool locked = !hash_is_none(&self->round.opened.audit_lock);
    if (!self->round.open || commit->round != self->round.opened.round ||
        commit->step != evidence->step || !hash_equal(&commit->previous, &self->round.last_commit))
        return evidence_refuse(
            evidence, "the commit of round %" PRIu64 " does not end the open round", number);
    if (locked ? !hash_equal(&lock, &self->round.opened.audit_lock)
               : !hash_is_none(&commit->audit_key))
        return evidence_refuse(evidence, "the key of round %" PRIu64 " does not fit its lock",
                               number);
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        if (commit->accepted[i].client >= self->round.clients_count)
            return evidence_refuse(
                evidence, "the commit of round %" PRIu64 " accepts a result of client %u of %u",
                number, commit->accepted[i].client, self->round.clients_count);
    round_close(&self->round, commit);
    evidence->step += commit->outcome == OUTCOME_COMMITTED;
    evidence->counts[ROUNDS_COUNT_KEYS] += locked;
    return true;
}

// ---- what others signed -------------------------------------------------------------------------

static bool hear_finding(struct evidence *evidence, const struct wire_record_finding *record)
{
    struct rounds_evidence *self = own(evidence);
    const uint64_t number = record->round;
    if (!self->round.open || record->round != self->round.opened.round ||
        record->place >= self->round.audits_count || record->finding == FINDING_PENDING ||
        self->round.findings[record->place].finding != FINDING_PENDING)
        return evidence_refuse(evidence, "finding %u of round %" PRIu64 " answers no open audit",
                               record->place, number);
    const struct wire_audit *audit = &self->round.audits[record->place];
    const struct wire_member *auditor =
        &evidence->roster.members[self->round.clients[audit->auditor].member];
    const struct wire_finding *said =
        evidence_signed(evidence, 0, &record->frame, FRAME_FINDING, &auditor->key);
    if (!said)
        return evidence_refuse(evidence,
                               "finding %u of round %" PRIu64 " is not signed by its auditor, %s",
                               record->place, number, auditor->name);
    if (said->round != record->round || said->finding != record->finding ||
        !hash_equal(&said->result, &audit->result) || auditor->state == MEMBER_EJECTED ||
        (said->finding == FINDING_WITHHELD && hash_is_none(&audit->residual_from)))
        return evidence_refuse(
            evidence, "finding %u of round %" PRIu64 " is not what %s signed about that result",
            record->place, number, auditor->name);
    round_hear_finding(&self->round, record, self->debts);
    evidence->counts[ROUNDS_COUNT_FINDINGS]++;
    return true;
}

static bool is_equivocation(struct evidence *evidence, const struct wire_record_ejection *record,
                            const struct key *key)
{
    const struct wire_claim *one = evidence_signed(evidence, 0, &record->first, FRAME_CLAIM, key);
    const struct wire_claim *other =
        evidence_signed(evidence, 1, &record->second, FRAME_CLAIM, key);
    if (!one || !other) return false;
    const struct hash a = claim_hash(one), b = claim_hash(other);
    return one->round == record->round && other->round == record->round && !hash_equal(&a, &b) &&
           hash_equal(&b, &record->result) && key_equal(&one->author, key) &&
           key_equal(&other->author, key) && strcmp(one->run, evidence->rules.run_id) == 0 &&
           strcmp(other->run, evidence->rules.run_id) == 0 &&
           one->born_unix_ms == evidence->born_unix_ms &&
           other->born_unix_ms == evidence->born_unix_ms;
}

// Whether the verdict on the audit at this index justifies the ejection.
static bool justifies(const struct round *round, uint32_t place,
                      const struct wire_record_ejection *record)
{
    const struct wire_audit *audit = &round->audits[place];
    const uint8_t word = verdict_of(round, place);
    const bool is_accused = audit->member == record->member;
    if (word == FINDING_PENDING || audit->round != record->round ||
        !hash_equal(&audit->result, &record->result))
        return false;
    switch (record->guilt) {
    case GUILT_WRONG_RESULT: return is_accused && word == FINDING_DIFFERENT;
    case GUILT_FALSE_ACCUSATION:
        return audit->accuser == record->member && word == FINDING_SAME &&
               audit->accusation == FINDING_DIFFERENT;
    case GUILT_FALSE_FINDING:
        return round->clients[audit->auditor].member == record->member &&
               verdict_contradicts(word, round->findings[place].finding);
    default: return false;
    }
}

static bool hear_ejection(struct evidence *evidence, const struct wire_record_ejection *record)
{
    struct rounds_evidence *self = own(evidence);
    const bool twice = record->guilt == GUILT_EQUIVOCATION;
    if (record->member >= evidence->roster.count ||
        evidence->roster.members[record->member].state == MEMBER_EJECTED)
        return evidence_refuse(evidence, "an ejection of member %u of %u, or a second one of it",
                               record->member, evidence->roster.count);
    const struct wire_member *member = &evidence->roster.members[record->member];
    bool justified = twice && is_equivocation(evidence, record, &member->key);
    for (uint32_t i = 0; !twice && i < self->round.audits_count; i++)
        justified |= justifies(&self->round, i, record);
    if (!justified)
        return evidence_refuse(evidence, "%s is ejected for %s in round %" PRIu64 ", and %s",
                               member->name, wire_enum_name(&wire_enum_guilt, record->guilt),
                               record->round,
                               twice ? "it did not sign two claims of it that differ"
                                     : "no verdict of the judges says so");
    roster_set_state(&evidence->roster, record->member, MEMBER_EJECTED);
    evidence->counts[ROUNDS_COUNT_EJECTIONS]++;
    evidence->counts[ROUNDS_COUNT_EQUIVOCATIONS] += twice;
    return true;
}

// A place that is handed on has no debts.
static bool hear_member(struct evidence *evidence, const struct wire_member *member)
{
    const struct roster *roster = &evidence->roster;
    if (member->index < roster->count &&
        !key_equal(&roster->members[member->index].key, &member->key))
        own(evidence)->debts[member->index] = (struct wire_debt){ 0 };
    return true;
}

// A restore gives up the results that the audits are about.
static bool hear_restore(struct evidence *evidence)
{
    struct rounds_evidence *self = own(evidence);
    if (self->round.open)
        return evidence_refuse(evidence, "a restore while round %" PRIu64 " is open",
                               evidence->number);
    round_give_up(&self->round);
    return true;
}

bool rounds_verifies(struct evidence *evidence, uint16_t kind, const void *record)
{
    switch (kind) {
    case FRAME_RECORD_ROUND: return hear_round(evidence, record);
    case FRAME_RECORD_COMMIT: return hear_commit(evidence, record);
    case FRAME_RECORD_FINDING: return hear_finding(evidence, record);
    case FRAME_RECORD_EJECTION: return hear_ejection(evidence, record);
    case FRAME_RECORD_MEMBER: return hear_member(evidence, record);
    case FRAME_RECORD_RESTORE: return hear_restore(evidence);
    case FRAME_RECORD_START: // A restart forgets what the last commit accepted: nobody audits it
        round_forget(&own(evidence)->round);
        return true;
    default: return true; // Nothing to check
    }
}
