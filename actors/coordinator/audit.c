// audit -- results are recomputed by chance, and who lied is ejected.
//
//   commit ─▶ the next round draws auditors ─▶ FINDING same: nothing more
//                                           └▶ different, withheld: the round after draws judges, who
//                                              recompute it too; most of them decide
//
//     the judges say      the accused                     the accuser
//     different           ejected                         -
//     same                -                               ejected, if it had said "different"
//     withheld            loses its place for the epoch   -
//     no verdict          judged again, AUDIT_TRIES_MAX times, then left
//
// and a judge who said "same" of what the verdict finds different, or the other way, is ejected too.
//
// Nobody is ejected for what was not shown: a slow line, or a crash, looks like a liar's silence.
// But whose result was not shown, whatever the reason, owes audits, 8 and each time twice as many,
// up to 64, until it shows one: as many of its results begin with the declared zero and are
// recomputed without being drawn by chance, and without its help: one a round, or a quarter of the
// clients' number, drawn among those who owe. So who hides, or goes away, whenever it is drawn lies
// until then (four times at 25 %, a hundred times at 1 %) and then in none of 64 unless it risks to
// be ejected, and what nobody has verified leads to nothing. (A result that began with zero has
// nothing to be shown.) Who is left alone with such a word, as there is no judge or no verdict,
// owes one.
//
// "Withheld" costs whoever says it nothing, as it may be true. So such cases come last, have half of
// the clients at most, and where it is not found true either party may have hidden something from the
// other: that counts against both, as most of the rounds that may be missed.
//
// A round waits for its auditors as it waits for its trainers. Two different claims of one round,
// both signed by their author, eject it at once: that needs no judge.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/verdict.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/run/committee.h"
#include "common/run/quorum.h"
#include "common/wire/claims.h"
#include <string.h>

enum { PRODUCES_MAX = 512 }; // Of one vote: a liar names what nobody claimed

// ---- drawing --------------------------------------------------------------------------------------

struct draw {
    struct coordinator *self;
    struct wire_round *round; // About to be opened: clients and seed are there
    uint32_t free;            // Clients that may still be taken from training
};

static bool has_room(const struct draw *draw)
{
    return draw->free > 0 && draw->round->audits_count < AUDITS_MAX;
}

// Takes the client as an auditor. The samples are already behind those of the others.
static void appoint(struct draw *draw, const struct wire_audit *audit, uint32_t client,
                    const struct interval *samples)
{
    struct coordinator *self = draw->self;
    struct wire_round *round = draw->round;
    ensure(has_room(draw));
    memcpy(self->audited + round->audited_count, samples, audit->intervals * sizeof *samples);
    round->audited_count += audit->intervals;
    self->audits[round->audits_count] = *audit;
    self->audits[round->audits_count++].auditor = client;
    draw->self->taken[client] = true;
    draw->free--;
}

static bool may_judge(const struct draw *draw, uint32_t client, const struct wire_audit *audit)
{
    uint32_t member = draw->round->clients[client].member;
    // mutant: audit: the accused judges itself
    return !draw->self->taken[client] && member != audit->member && member != audit->accuser;
}

// The first of the committee who are neither party. One judge alone would be one word against
// another; but with three members there is no other.
static void appoint_judges(struct draw *draw, const struct wire_audit *audit,
                           const struct interval *samples, struct outbox *out)
{
    const uint32_t due = verdict_judges(draw->round->trainers, audit->accusation, audit->tries);
    uint32_t judges = 0;
    for (uint32_t i = 0; i < draw->round->clients_count && judges < due; i++) {
        uint32_t client = draw->self->order[i];
        if (!has_room(draw)) break;
        if (!may_judge(draw, client, audit)) continue;
        appoint(draw, audit, client, samples);
        judges++;
    }
    const uint32_t needed = verdict_needed(audit, draw->round->trainers, judges, audit->accusation);
    if (judges == 0)
        outbox_note(out, "audit.no_judge round=%llu accused=%u accuser=%u; nobody else takes part",
                    (unsigned long long)audit->round, audit->member, audit->accuser);
    else if (judges < needed)
        outbox_note(out,
                    "audit.few_judges round=%llu accused=%u accuser=%u; %u judges, a verdict "
                    "needs %u: of %u trainers a third may lie",
                    (unsigned long long)audit->round, audit->member, audit->accuser, judges, needed,
                    draw->round->trainers);
}

static bool is_ejected(const struct run *run, uint32_t member)
{
    return run->members[member].state == MEMBER_EJECTED;
}

// The case that the audit at `place` of the round before leaves to judges; false: it leaves none.
static bool case_at(const struct run *run, uint32_t place, struct wire_audit *ret_audit)
{
    struct wire_audit *audit = ret_audit;
    const uint8_t finding = run->findings[place].finding;
    *audit = run->audits[place];
    if (audit->judges) {
        if (!verdict_is_first(run, place) || verdict_of(run, place) != FINDING_PENDING)
            return false;
        audit->tries++;
    } else {
        if (finding != FINDING_DIFFERENT && finding != FINDING_WITHHELD) return false;
        audit->judges = true;
        audit->accuser = run->clients[audit->auditor].member;
        audit->accusation = finding;
        audit->tries = 0;
    }
    return !is_ejected(run, audit->member) && !is_ejected(run, audit->accuser);
}

// One of the two hid something from the other, or says so falsely, and nobody knows which. Once is never
// too much: it may be an honest party's first.
static void blame_both(struct coordinator *self, const struct wire_audit *audit)
{
    const uint32_t amiss = 2 * AMISS_ROUND * self->rules.unhealthy_rounds / 3;
    if (audit->accusation != FINDING_WITHHELD) return;
    // They do not add up: a few who each quarrel now and then would have all others lose their places.
    const uint32_t parties[] = { audit->member, audit->accuser };
    for (int i = 0; i < 2; i++)
        if (self->amiss[parties[i]] < amiss) self->amiss[parties[i]] = amiss;
}

static void leave_undecided(struct draw *draw, const struct wire_audit *audit, struct outbox *out)
{
    outbox_note(out, "audit.undecided round=%llu accused=%u accuser=%u tries=%u",
                (unsigned long long)audit->round, audit->member, audit->accuser, audit->tries);
    blame_both(draw->self, audit);
}

// Disputes of the round before that are not decided: those with this accusation.
static void draw_judges(struct draw *draw, uint8_t accusation, struct outbox *out)
{
    const struct run *run = &draw->self->run;
    const struct wire_round before = run_round(run);
    struct wire_audit audit;
    for (uint32_t i = 0; i < run->audits_count; i++) {
        if (!case_at(run, i, &audit) || audit.accusation != accusation) continue;
        const uint32_t due = verdict_judges(draw->round->trainers, accusation, audit.tries),
                       taken = draw->round->audits_count;
        const bool crowded = accusation == FINDING_WITHHELD && taken > 0 &&
                             taken + due > draw->round->clients_count / 2;
        if (audit.tries >= AUDIT_TRIES_MAX || crowded) leave_undecided(draw, &audit, out);
        else appoint_judges(draw, &audit, audits_samples(&before, i), out);
    }
}

// Known to the coordinator alone until the round's commit. Nothing is kept for it: it follows from a
// secret that the run's key makes again.
static struct hash audit_key(const struct coordinator *self, uint64_t round)
{
    uint8_t number[8];
    le_put(number, round, sizeof number);
    return hash_of_two(self->rules.audit_secret.bytes, HASH_BYTES, number, sizeof number);
}

struct hash audit_reveal(const struct coordinator *self)
{
    static const struct hash none;
    // mutant: audit: the key is not that of the lock
    return hash_is_none(&self->run.round.audit_lock) ? none
                                                     : audit_key(self, self->run.round.round);
}

static uint64_t chance(const struct wire_round *round)
{
    static const char domain[] = "shoal audits 1";
    uint8_t seed[8];
    le_put(seed, round->seed, sizeof seed);
    const struct hash hash = hash_of_two(domain, sizeof domain, seed, sizeof seed);
    return hash_to_number(&hash);
}

// The audit of an accepted result, its samples in self->scratch. False: it cannot be audited.
static bool audit_of(struct coordinator *self, const struct wire_accepted *accepted,
                     struct wire_audit *ret_audit)
{
    struct run *run = &self->run;
    const uint32_t member = run->clients[accepted->client].member;
    // mutant: audit: an ejected member is audited again
    if (is_ejected(run, member)) return false;
    uint32_t intervals = run_samples_at(run, accepted->begin, accepted->end, self->scratch);
    if (intervals == 0 || intervals > AUDIT_INTERVALS_MAX) return false;
    // mutant: audit: the base is not that of the result
    // mutant: audit: an audit names the residual that it leads to
    *ret_audit = (struct wire_audit){ .member = member,
                                      .round = run->last.round,
                                      .step = run->last.step,
                                      .lr_bits = run->last.lr_bits,
                                      .result = accepted->result,
                                      .payload = accepted->payload,
                                      .payload_bytes = accepted->payload_bytes,
                                      .base = run->last.base,
                                      .residual_from = accepted->residual_from,
                                      .residual_to = accepted->residual_to,
                                      .intervals = intervals };
    return true;
}

// Has the client recompute this result of the commit before, unless it is its own, or somebody does.
static bool give(struct draw *draw, uint32_t client, const struct wire_accepted *accepted)
{
    const struct wire_round *round = draw->round;
    struct wire_audit audit;
    // mutant: audit: a member audits itself
    if (draw->self->run.clients[accepted->client].member == round->clients[client].member)
        return false;
    for (uint32_t a = 0; a < round->audits_count; a++)
        if (hash_equal(&draw->self->audits[a].result, &accepted->result)) return false;
    if (!audit_of(draw->self, accepted, &audit)) return false;
    appoint(draw, &audit, client, draw->self->scratch);
    return true;
}

static uint32_t results_before(const struct coordinator *self)
{
    return self->accepted_round == self->run.last.round ? self->accepted_count : 0;
}

// Those who owe audits, besides those drawn by chance: nobody can make that there are fewer of
// these, or know who is left out where more owe than can be audited.
static void draw_owed(struct draw *draw)
{
    const struct coordinator *self = draw->self;
    const struct wire_round *round = draw->round;
    const uint32_t most = round->clients_count < 8 ? 1 : round->clients_count / 4;
    const uint32_t results = results_before(self);
    const uint64_t first = chance(round) / 100;
    uint32_t given = 0;
    for (uint32_t t = 0; t < results && given < most; t++) {
        const struct wire_accepted *accepted = &self->accepted[(first + t) % results];
        if (!self->run.members[self->run.clients[accepted->client].member].owed) continue;
        for (uint32_t i = 0; i < round->clients_count && has_room(draw); i++)
            if (!self->taken[self->order[i]] && give(draw, self->order[i], accepted)) {
                given++;
                break;
            }
    }
}

// Each verifier gets a result of the commit before that is not its own, and no two the same one.
static void draw_verifiers(struct draw *draw)
{
    struct coordinator *self = draw->self;
    const uint32_t results = results_before(self);
    uint32_t given = 0;
    const uint32_t train = draw->round->clients_count - draw->round->audits_count;
    const uint64_t number = chance(draw->round),
                   hundredths = (uint64_t)train * self->rules.verification_percent;
    // In the mean exactly the share that was asked for, also where it is less than one of them.
    // mutant: audit: more are drawn than the rules say
    uint64_t verifiers = hundredths / 100 + (number % 100 < hundredths % 100);
    uint64_t first = number / 100;
    for (uint32_t i = 0; i < draw->round->clients_count && given < verifiers; i++) {
        const uint32_t client = self->order[i];
        if (!has_room(draw)) return;
        if (self->taken[client]) continue;
        for (uint32_t t = 0; t < results; t++)
            if (give(draw, client, &self->accepted[(first + given + t) % results])) {
                given++;
                break;
            }
    }
}

void audit_draw(struct coordinator *self, struct wire_round *round, struct outbox *out)
{
    struct draw draw = { .self = self, .round = round };
    // One trains at least; and where the witnesses hold no parameters, so many that not all may lie.
    // mutant: audit: nobody is left to train
    draw.free = round->clients_count - 1;
    if (self->rules.witness_standalone) draw.free -= quorum_liars(round->clients_count);
    round->audits = self->audits, round->audited = self->audited;
    if (self->rules.verification_percent == 0) return;
    round->trainers = run_trainers(&self->run);
    const struct hash key = audit_key(self, round->round);
    round->audit_lock = hash_of(key.bytes, HASH_BYTES);
    // mutant: audit: draws follow from what no record says
    committee_positions(round->seed, SALT_COMMITTEE, round->clients_count, self->positions);
    for (uint32_t c = 0; c < round->clients_count; c++) self->order[self->positions[c]] = c;
    memset(self->taken, 0, round->clients_count);
    draw_judges(&draw, FINDING_DIFFERENT, out);
    draw_judges(&draw, FINDING_WITHHELD, out);
    draw_verifiers(&draw);
    // mutant: audit: a member that owes is drawn like the others
    draw_owed(&draw);
}

// ---- findings -------------------------------------------------------------------------------------

static void eject(struct coordinator *self, const struct wire_record_ejection *record,
                  struct outbox *out)
{
    const struct wire_member *member = &self->run.members[record->member];
    if (member->state == MEMBER_EJECTED) return;
    coordinator_put(self, FRAME_RECORD_EJECTION, record, out);
    members_tell(self);
    char hex[HASH_HEX];
    outbox_note(out, "member.ejected name=%s index=%u guilt=%s round=%llu result=%.16s",
                member->name, record->member, wire_enum_name(&wire_enum_guilt, record->guilt),
                (unsigned long long)record->round, hash_to_hex(&record->result, hex));
    coordinator_mail_refusal(out, member->name, FRAME_CLAIM, REFUSAL_EJECTED, record->round,
                             "this identity was ejected; give up");
}

// An honest judge never contradicts a verdict: one of those who made it is honest, and what both have
// recomputed is the same to the bit.
static void eject_false_judges(struct coordinator *self, uint32_t place, uint8_t word,
                               struct outbox *out)
{
    const struct run *run = &self->run;
    for (uint32_t i = 0; i < run->audits_count; i++)
        if (verdict_same_case(run, i, place) && verdict_contradicts(word, run->findings[i].finding))
            eject(self,
                  &(struct wire_record_ejection){ .member =
                                                      run->clients[run->audits[i].auditor].member,
                                                  .guilt = GUILT_FALSE_FINDING,
                                                  .round = run->audits[i].round,
                                                  .result = run->audits[i].result },
                  out);
}

// Carries out the verdict on the case at `place`, whatever of it was done before.
static void conclude(struct coordinator *self, uint32_t place, uint8_t word, struct outbox *out)
{
    const struct wire_audit *audit = &self->run.audits[place];
    struct wire_record_ejection ejection = { .member = audit->member,
                                             .guilt = GUILT_WRONG_RESULT,
                                             .round = audit->round,
                                             .result = audit->result };
    // mutant: audit: silence ejects the third time
    if (word == FINDING_DIFFERENT) {
        // mutant: audit: a verdict of "different" lets the accused go
        eject(self, &ejection, out);
    } else if (word == FINDING_SAME) {
        ejection.member = audit->accuser, ejection.guilt = GUILT_FALSE_ACCUSATION;
        // mutant: audit: a verdict of "same" lets the accuser go
        if (audit->accusation == FINDING_DIFFERENT) eject(self, &ejection, out);
    } else if (members_is_live(self, audit->member)) {
        members_set_state(self, audit->member, MEMBER_DROPPED, out);
    }
    // mutant: guilt: a judge against the verdict stays
    eject_false_judges(self, place, word, out);
}

void audit_resume(struct coordinator *self, struct outbox *out)
{
    const struct run *run = &self->run;
    for (uint32_t i = 0; i < run->audits_count; i++) {
        const uint8_t word = verdict_of(run, i);
        if (verdict_is_first(run, i) && word != FINDING_PENDING) conclude(self, i, word, out);
    }
}

static void take_finding(struct coordinator *self, const struct msg *in, uint32_t place,
                         struct outbox *out)
{
    const struct wire_finding *finding = in->body;
    const struct run *run = &self->run;
    const struct wire_audit *audit = &run->audits[place];
    const uint64_t version = run->roster_version;
    const uint8_t before = verdict_of(run, place);
    struct wire_record_finding record = { .round = finding->round,
                                          .place = place,
                                          .finding = finding->finding };
    if (in->frame_bytes <= 1024) record.frame = (struct wire_bytes){ in->frame, in->frame_bytes };
    // mutant: audit: a finding is stored after it is acted upon
    coordinator_put(self, FRAME_RECORD_FINDING, &record, out);
    outbox_note(out, "audit.%s round=%llu of=%llu member=%u by=%u%s reason=\"%s\"",
                wire_enum_name(&wire_enum_finding, finding->finding),
                (unsigned long long)finding->round, (unsigned long long)audit->round, audit->member,
                run->clients[audit->auditor].member, audit->judges ? " judge" : "",
                finding->reason);
    const uint8_t word = verdict_of(run, place);
    if (before == FINDING_PENDING && word != FINDING_PENDING)
        outbox_note(out, "audit.judged round=%llu accused=%u accuser=%u verdict=%s",
                    (unsigned long long)audit->round, audit->member, audit->accuser,
                    wire_enum_name(&wire_enum_finding, word));
    // mutant: audit: a quarrel costs neither party anything
    if (before == FINDING_PENDING && word == FINDING_SAME) blame_both(self, audit);
    // mutant: audit: an accusation alone ejects
    // mutant: audit: a finding is stored after it is acted upon (2)
    if (word != FINDING_PENDING) conclude(self, place, word, out);
    if (run->roster_version != version) members_tell(self);
}

void audit_hear_finding(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_finding *finding = in->body;
    const struct run *run = &self->run;
    uint32_t member = members_of(self, in, out), place = 0;
    if (member == NO_MEMBER) return;
    if (!run->round_open || finding->round != run->round.round) {
        coordinator_refuse(in, REFUSAL_STALE, finding->round, out, "round %llu is not open",
                           (unsigned long long)finding->round);
        return;
    }
    if (strcmp(in->run, self->rules.run_id) !=
        0) { // It is kept as it was signed, to prove something
        coordinator_refuse(in, REFUSAL_WRONG_RUN, finding->round, out,
                           "a finding names its run, \"%s\"", self->rules.run_id);
        return;
    }
    // mutant: audit: a finding of a member that was not asked counts
    while (place < run->audits_count && run->clients[run->audits[place].auditor].member != member)
        place++;
    // mutant: audit: a finding of another result counts
    if (place == run->audits_count || finding->finding == FINDING_PENDING ||
        !hash_equal(&finding->result, &run->audits[place].result)) {
        coordinator_refuse(in, REFUSAL_NOT_ELECTED, finding->round, out,
                           "no auditor of that result in round %llu",
                           (unsigned long long)finding->round);
        return;
    }
    // mutant: audit: what began with zero can be withheld
    if (finding->finding == FINDING_WITHHELD && hash_is_none(&run->audits[place].residual_from)) {
        coordinator_refuse(in, REFUSAL_MALFORMED, finding->round, out,
                           "that result began with zero: nothing of it can be withheld");
        return;
    }
    if (run->findings[place].finding == FINDING_PENDING) take_finding(self, in, place, out);
    coordinator_ack(in, finding->round, &finding->result, out);
    round_look(self, in->now_ms, out);
}

bool audit_is_over(const struct coordinator *self)
{
    const struct run *run = &self->run;
    for (uint32_t i = 0; i < run->audits_count; i++)
        if (run->findings[i].finding == FINDING_PENDING &&
            members_is_live(self, run->clients[run->audits[i].auditor].member))
            return false;
    return true;
}

void audit_tell_missing(const struct coordinator *self, struct outbox *out)
{
    const struct run *run = &self->run;
    for (uint32_t i = 0; i < run->audits_count; i++)
        if (run->findings[i].finding == FINDING_PENDING)
            outbox_note(out,
                        "audit.missing round=%llu of=%llu member=%u by=%u; round_witness_time "
                        "may be too short",
                        (unsigned long long)run->round.round,
                        (unsigned long long)run->audits[i].round, run->audits[i].member,
                        run->clients[run->audits[i].auditor].member);
}

// ---- two claims of one round ----------------------------------------------------------------------

// The claim inside, if it is one of a member of this run, and not of long ago.
static uint32_t claimant(struct coordinator *self, const struct wire_bytes *frame,
                         struct wire_arena *arena, const struct wire_claim **ret_claim)
{
    const struct run *run = &self->run;
    struct wire_head head;
    struct wire_refusal refusal;
    struct key author;
    const void *body;
    if (!wire_unpack(frame->data, frame->count, WIRE_MAIL, arena, &head, &body, &refusal) ||
        head.kind != FRAME_CLAIM || strcmp(head.run, self->rules.run_id) != 0)
        return NO_MEMBER;
    const struct wire_claim *claim = *ret_claim = body;
    author = head.sender;
    // mutant: guilt: a claim of before the run was born counts
    // mutant: guilt: a claim of another run counts
    bool ours = strcmp(claim->run, self->rules.run_id) == 0 &&
                claim->born_unix_ms == run->born_unix_ms && key_equal(&claim->author, &author);
    bool recent =
        claim->round <= run->round.round && claim->round + CLAIM_AGE_MAX >= run->round.round;
    return ours && recent ? run_find(run, &author) : NO_MEMBER;
}

// Another claim of this member was accepted than the one shown: who voted for that one has it. Both are
// signed, so whoever makes us ask is ejected by the answer.
static void ask_for_accepted(struct coordinator *self, uint32_t member, struct testimony *shown,
                             struct outbox *out)
{
    const struct run *run = &self->run;
    uint32_t i = 0;
    if (shown->asked || shown->round != self->accepted_round || is_ejected(run, member)) return;
    while (i < self->accepted_count && self->accepted_of[i] != member) i++;
    if (i == self->accepted_count || hash_equal(&self->accepted[i].result, &shown->name)) return;
    for (uint32_t w = 0; w < self->accepted_by_count; w++) {
        const struct wire_member *witness = &run->members[self->accepted_by[w].member];
        if (witness->state != MEMBER_HEALTHY && witness->state != MEMBER_PENDING) continue;
        outbox_mail(out, witness->name, FRAME_PRODUCE,
                    &(struct wire_produce){ shown->round, self->accepted[i].client });
        shown->asked = true;
    }
}

void audit_hear_testimony(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_testimony *testimony = in->body;
    const struct wire_claim *claim;
    _Alignas(8) uint8_t bytes[2048];
    struct wire_arena arena = { .bytes = bytes, .max = sizeof bytes };
    if (members_of(self, in, out) == NO_MEMBER) return;
    uint32_t member = claimant(self, &testimony->claim, &arena, &claim);
    if (member == NO_MEMBER || testimony->claim.count > CLAIM_FRAME_MAX) return;
    // mutant: guilt: one claim puts another out of the way
    struct testimony *known = &self->testimonies[member][claim->round % (CLAIM_AGE_MAX + 1)];
    struct hash name = claim_hash(claim);
    // mutant: guilt: claims of two rounds are called equivocation
    // mutant: guilt: two claims prove nothing
    if (known->round != claim->round) {
        // mutant: guilt: a liar that shows its other claim itself is not asked about
        *known = (struct testimony){ .round = claim->round,
                                     .name = name,
                                     .bytes = testimony->claim.count };
        memcpy(known->frame, testimony->claim.data, testimony->claim.count);
    } else if (!hash_equal(&known->name, &name)) {
        eject(self,
              &(struct wire_record_ejection){ .member = member,
                                              .guilt = GUILT_EQUIVOCATION,
                                              .round = claim->round,
                                              .result = name,
                                              .first = { known->frame, known->bytes },
                                              .second = testimony->claim },
              out);
        round_look(self, in->now_ms, out);
        return;
    }
    // mutant: guilt: the holder of the committed claim is not asked
    ask_for_accepted(self, member, known, out); // Also if it was shown before anything was accepted
}

void audit_ask_rivals(struct coordinator *self, uint32_t place, const struct wire_vote *vote,
                      struct outbox *out)
{
    const struct run *run = &self->run;
    const uint32_t count = vote->seen_count;
    const uint32_t first = (uint32_t)((uint64_t)count * place / run->witnesses_count);
    uint32_t witness, asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t client = vote->seen[(first + i) % count].client;
        if (is_ejected(run, run->clients[client].member)) continue;
        while (asked < PRODUCES_MAX && tally_ask(&self->tally, client, &witness)) {
            asked++;
            outbox_mail(out, run->members[run->witnesses[witness].member].name, FRAME_PRODUCE,
                        &(struct wire_produce){ run->round.round, client });
        }
    }
}
