// evidence -- takes the records one by one. Each is first held against what the records before it leave
// (the roster, the newest round, the step), then applied to them. What is not checked here (phases,
// the table of samples, checkpoints) is not kept here either.

#include "common/pace/evidence.h"
#include "common/pace/rounds/verdict.h"
#include "common/pace/rounds/claims.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void evidence_init(struct evidence *self, const struct rules *rules, evidence_verify_fn *verify)
{
    self->rules = *rules;
    self->verify = verify;
}

static bool bad(struct evidence *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool bad(struct evidence *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->text, sizeof self->text, format, args);
    va_end(args);
    return false;
}

// ---- the beginning, members ---------------------------------------------------------------------

static bool hear_genesis(struct evidence *self, const struct wire_record_genesis *genesis)
{
    const struct rules *rules = &self->rules;
    if (strcmp(genesis->run, rules->run_id) != 0 || !hash_equal(&genesis->config, &rules->config))
        return bad(self, "the run was begun with another configuration than the one beside it");
    if (genesis->seed != rules->run_seed)
        return bad(self, "the run's seed is %llu; from its name follows %llu",
                   (unsigned long long)genesis->seed, (unsigned long long)rules->run_seed);
    if (genesis->epoch != rules->first_epoch || genesis->step != rules->first_step ||
        genesis->cursor != rules->first_position ||
        !hash_equal(&genesis->digest, &rules->genesis_digest))
        return bad(
            self,
            "the run was begun at epoch %llu, step %llu, sample %llu; the configuration says "
            "%llu, %llu, %llu (or another digest)",
            (unsigned long long)genesis->epoch, (unsigned long long)genesis->step,
            (unsigned long long)genesis->cursor, (unsigned long long)rules->first_epoch,
            (unsigned long long)rules->first_step, (unsigned long long)rules->first_position);
    self->run_seed = genesis->seed;
    self->step = genesis->step;
    return true;
}

// A new life has forgotten what the last commit accepted, so nobody audits it.
static bool hear_start(struct evidence *self, const struct wire_record_start *start)
{
    round_forget(&self->round);
    if (!self->born_unix_ms) self->born_unix_ms = start->unix_ms;
    return true;
}

static bool hear_member(struct evidence *self, const struct wire_member *member)
{
    if (member->index > self->roster.count || member->index >= MEMBERS_MAX)
        return bad(self, "place %u is taken before place %u", member->index, self->roster.count);
    const uint32_t known = roster_find(&self->roster, &member->key);
    if (known != NO_MEMBER && known != member->index)
        return bad(self, "a key has the places %u and %u", known, member->index);
    if (member->state == MEMBER_EJECTED ||
        (member->index < self->roster.count &&
         self->roster.members[member->index].state == MEMBER_EJECTED))
        return bad(self, "member %u is %s without an ejection, or in spite of one", member->index,
                   wire_enum_name(&wire_enum_member_state, member->state));
    static const struct wire_member newcomer;
    const struct wire_member *was = known == NO_MEMBER ? &newcomer : &self->roster.members[known];
    if (member->unshown != was->unshown || member->owed != was->owed)
        return bad(self, "%s owes %u audits; from what was found of it follow %u", member->name,
                   member->owed, was->owed);
    const bool lives_on = known != NO_MEMBER && member->instance == was->instance;
    if (member->joined_round != (lives_on ? was->joined_round : self->round.opened.round))
        return bad(self, "%s joined in round %llu; the open one is %llu", member->name,
                   (unsigned long long)member->joined_round,
                   (unsigned long long)self->round.opened.round);
    roster_put(&self->roster, member);
    return true;
}

static bool hear_phase(struct evidence *self, const struct wire_record_phase *record)
{
    if (record->phase == PHASE_WARMUP)
        roster_move_trainers(&self->roster, MEMBER_PENDING, MEMBER_HEALTHY);
    if (record->phase == PHASE_WAITING || record->phase == PHASE_PAUSED)
        roster_move_trainers(&self->roster, MEMBER_HEALTHY, MEMBER_PENDING);
    return true;
}

static bool hear_restore(struct evidence *self, const struct wire_record_restore *restore)
{
    if (self->round.open || restore->step > self->step)
        return bad(self, "step %llu is restored in step %llu", (unsigned long long)restore->step,
                   (unsigned long long)self->step);
    self->step = restore->step;
    round_give_up(&self->round);
    return true;
}

// ---- draws --------------------------------------------------------------------------------------

// One after the other, so that the text can say which is not as drawn.
static bool is_as_drawn(struct evidence *self, const struct wire_round *round,
                        const struct wire_round *drawn)
{
    const unsigned long long number = round->round;
    struct wire_round mixed = *round;
    if (round->seed != drawn->seed)
        return bad(self,
                   "the seed of round %llu is %llu; from run, round, step, the commit and the key "
                   "before it follows %llu",
                   number, (unsigned long long)round->seed, (unsigned long long)drawn->seed);
    mixed.clients = drawn->clients, mixed.clients_count = drawn->clients_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return bad(self,
                   "the clients of round %llu are not the %u healthy trainers in order of identity",
                   number, drawn->clients_count);
    mixed.witnesses = drawn->witnesses, mixed.witnesses_count = drawn->witnesses_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return bad(self, "the witnesses of round %llu are not those that its seed elects", number);
    mixed.trainers = drawn->trainers;
    mixed.audits = drawn->audits, mixed.audits_count = drawn->audits_count;
    mixed.audited = drawn->audited, mixed.audited_count = drawn->audited_count;
    if (!wire_equal(FRAME_RECORD_ROUND, round, &mixed))
        return bad(self, "the %u auditors of round %llu are not the %u that its seed draws",
                   round->audits_count, number, drawn->audits_count);
    return true;
}

static bool hear_round(struct evidence *self, const struct wire_round *round)
{
    if (self->round.open || round->round != self->round.opened.round + 1 ||
        round->step != self->step || !hash_equal(&round->previous, &self->round.last_commit))
        return bad(self,
                   "round %llu at step %llu does not follow round %llu, step %llu and the commit "
                   "before it",
                   (unsigned long long)round->round, (unsigned long long)round->step,
                   (unsigned long long)self->round.opened.round, (unsigned long long)self->step);
    if (roster_count(&self->roster, ACTOR_TRAINER, MEMBER_HEALTHY) == 0)
        return bad(self, "round %llu has no healthy trainer", (unsigned long long)round->round);
    if (hash_is_none(&round->audit_lock) != (self->rules.draw.verification_percent == 0))
        return bad(self, "round %llu has %s lock, with verification_percent %u",
                   (unsigned long long)round->round, hash_is_none(&round->audit_lock) ? "no" : "a",
                   self->rules.draw.verification_percent);
    const struct draw_from from = { .rules = &self->rules.draw,
                                    .run_seed = self->run_seed,
                                    .step = self->step,
                                    .roster = &self->roster,
                                    .round = &self->round };
    struct wire_round drawn = { 0 };
    draw_round(&self->draw, &from, &drawn);
    if (!is_as_drawn(self, round, &drawn)) return false;
    round_leave_cases(&self->round, round, &self->roster);
    round_open(&self->round, round);
    self->found.rounds++;
    self->found.audits += round->audits_count;
    return true;
}

static bool hear_commit(struct evidence *self, const struct wire_commit *commit)
{
    const unsigned long long number = commit->round;
    const struct hash lock = hash_of(commit->audit_key.bytes, HASH_BYTES);
    const bool locked = !hash_is_none(&self->round.opened.audit_lock);
    if (!self->round.open || commit->round != self->round.opened.round ||
        commit->step != self->step || !hash_equal(&commit->previous, &self->round.last_commit))
        return bad(self, "the commit of round %llu does not end the open round", number);
    if (locked ? !hash_equal(&lock, &self->round.opened.audit_lock)
               : !hash_is_none(&commit->audit_key))
        return bad(self, "the key of round %llu does not fit its lock", number);
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        if (commit->accepted[i].client >= self->round.clients_count)
            return bad(self, "the commit of round %llu accepts a result of client %u of %u", number,
                       commit->accepted[i].client, self->round.clients_count);
    round_close(&self->round, commit);
    self->step += commit->outcome == OUTCOME_COMMITTED;
    self->found.keys += locked;
    return true;
}

// ---- what others signed -------------------------------------------------------------------------

// The body of a frame of this kind and run that the key's owner signed, until the next in this
// place.
static const void *signed_body(struct evidence *self, unsigned place,
                               const struct wire_bytes *frame, uint16_t kind, const struct key *key)
{
    struct wire_arena arena = { .bytes = self->frames[place], .max = sizeof self->frames[place] };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    if (!wire_unpack(frame->data, frame->count, WIRE_MAIL, &arena, &head, &body, &refusal) ||
        head.kind != kind || strcmp(head.run, self->rules.run_id) != 0 ||
        !key_equal(&head.sender, key) ||
        !self->verify(key, frame->data, wire_signed_bytes(frame->data, frame->count),
                      wire_signature(frame->data, frame->count)))
        return NULL;
    return body;
}

static bool hear_finding(struct evidence *self, const struct wire_record_finding *record)
{
    const unsigned long long number = record->round;
    if (!self->round.open || record->round != self->round.opened.round ||
        record->place >= self->round.audits_count || record->finding == FINDING_PENDING ||
        self->round.findings[record->place].finding != FINDING_PENDING)
        return bad(self, "a finding at place %u of round %llu, where none is awaited",
                   record->place, number);
    const struct wire_audit *audit = &self->round.audits[record->place];
    const struct wire_member *auditor =
        &self->roster.members[self->round.clients[audit->auditor].member];
    const struct wire_finding *said =
        signed_body(self, 0, &record->frame, FRAME_FINDING, &auditor->key);
    if (!said)
        return bad(self, "the finding at place %u of round %llu is not signed by its auditor, %s",
                   record->place, number, auditor->name);
    if (said->round != record->round || said->finding != record->finding ||
        !hash_equal(&said->result, &audit->result) || auditor->state == MEMBER_EJECTED ||
        (said->finding == FINDING_WITHHELD && hash_is_none(&audit->residual_from)))
        return bad(self, "the finding at place %u of round %llu is not what %s said of that result",
                   record->place, number, auditor->name);
    round_hear_finding(&self->round, record, &self->roster);
    self->found.findings++;
    return true;
}

static bool is_equivocation(struct evidence *self, const struct wire_record_ejection *record,
                            const struct key *key)
{
    const struct wire_claim *one = signed_body(self, 0, &record->first, FRAME_CLAIM, key);
    const struct wire_claim *other = signed_body(self, 1, &record->second, FRAME_CLAIM, key);
    if (!one || !other) return false;
    const struct hash a = claim_hash(one), b = claim_hash(other);
    return one->round == record->round && other->round == record->round && !hash_equal(&a, &b) &&
           hash_equal(&b, &record->result) && key_equal(&one->author, key) &&
           key_equal(&other->author, key) && strcmp(one->run, self->rules.run_id) == 0 &&
           strcmp(other->run, self->rules.run_id) == 0 && one->born_unix_ms == self->born_unix_ms &&
           other->born_unix_ms == self->born_unix_ms;
}

// Whether the judges at this place have come to what the ejection says.
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

static bool hear_ejection(struct evidence *self, const struct wire_record_ejection *record)
{
    const bool twice = record->guilt == GUILT_EQUIVOCATION;
    if (record->member >= self->roster.count ||
        self->roster.members[record->member].state == MEMBER_EJECTED)
        return bad(self, "member %u of %u is ejected, or ejected again", record->member,
                   self->roster.count);
    const struct wire_member *member = &self->roster.members[record->member];
    bool justified = twice && is_equivocation(self, record, &member->key);
    for (uint32_t i = 0; !twice && i < self->round.audits_count; i++)
        justified |= justifies(&self->round, i, record);
    if (!justified)
        return bad(self, "%s is ejected for %s in round %llu, and %s", member->name,
                   wire_enum_name(&wire_enum_guilt, record->guilt),
                   (unsigned long long)record->round,
                   twice ? "there are no two claims of it that it signed"
                         : "no verdict of the judges says so");
    roster_set_state(&self->roster, record->member, MEMBER_EJECTED);
    self->found.ejections++;
    self->found.equivocations += twice;
    return true;
}

// ---- records ------------------------------------------------------------------------------------

static bool hear(struct evidence *self, uint16_t kind, const void *body)
{
    switch (kind) {
    case FRAME_RECORD_GENESIS: return hear_genesis(self, body);
    case FRAME_RECORD_START: return hear_start(self, body);
    case FRAME_RECORD_MEMBER: return hear_member(self, body);
    case FRAME_RECORD_PHASE: return hear_phase(self, body);
    case FRAME_RECORD_ROUND: return hear_round(self, body);
    case FRAME_RECORD_COMMIT: return hear_commit(self, body);
    case FRAME_RECORD_FINDING: return hear_finding(self, body);
    case FRAME_RECORD_EJECTION: return hear_ejection(self, body);
    case FRAME_RECORD_RESTORE: return hear_restore(self, body);
    default: return true; // Draws nothing, accuses nobody
    }
}

bool evidence_hear(struct evidence *self, uint64_t seq, uint16_t kind, const void *body)
{
    if ((kind == FRAME_RECORD_GENESIS) != (seq == 1))
        return bad(self, "record %llu is a %s: a run begins with its GENESIS, and once",
                   (unsigned long long)seq, wire_kind_name(kind));
    if (hear(self, kind, body)) return true;
    char text[EVIDENCE_TEXT_MAX];
    memcpy(text, self->text, sizeof text);
    return bad(self, "record %llu: %.350s", (unsigned long long)seq, text);
}
