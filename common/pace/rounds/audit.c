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

#include "common/pace/rounds/audit.h"
#include "common/base/bytes.h"
#include "common/pace/rounds/rounds_run.h"
#include "common/pace/turn.h"
#include "common/pace/rounds/verdict.h"
#include "common/pace/rounds/claims.h"
#include <inttypes.h>
#include <string.h>

enum { PRODUCES_MAX = 512 }; // Of one vote: a liar names what nobody claimed

// ---- drawing --------------------------------------------------------------------------------------

static bool is_ejected(const struct run *run, uint32_t member)
{
    return run->roster.members[member].state == MEMBER_EJECTED;
}

// Known to the coordinator alone until the round's commit. Nothing is kept for it: it follows from a
// secret that the run's key makes again.
static struct hash audit_key(const struct turn *turn, uint64_t round)
{
    uint8_t number[8];
    le_put(number, round, sizeof number);
    return hash_of_two(turn->rules->audit_secret.bytes, HASH_BYTES, number, sizeof number);
}

struct hash audit_lock(const struct turn *turn, uint64_t round)
{
    static const struct hash none;
    if (rounds_config(turn->rules)->verification_percent == 0) return none;
    const struct hash key = audit_key(turn, round);
    return hash_of(key.bytes, HASH_BYTES);
}

struct hash audit_reveal(const struct turn *turn)
{
    const struct round *round = round_of(turn->run);
    static const struct hash none;
    // mutant: audit: the key is not that of the lock
    return hash_is_none(&round->opened.audit_lock) ? none : audit_key(turn, round->opened.round);
}

// One of the two hid something from the other, or says so falsely, and nobody knows which. Once is never
// too much: it may be an honest party's first.
static void blame_both(struct audit *self, const struct turn *turn, const struct wire_audit *audit)
{
    const uint32_t fault_score = 2 * FAULT_ROUND * turn->rules->unhealthy_rounds / 3;
    if (audit->accusation != FINDING_WITHHELD) return;
    // They do not add up: a few who each quarrel now and then would have all others lose their places.
    const uint32_t parties[] = { audit->member, audit->accuser };
    for (int i = 0; i < 2; i++)
        if (self->fault_score[parties[i]] < fault_score)
            self->fault_score[parties[i]] = fault_score;
}

void audit_hear_draw(struct audit *self, const struct turn *turn, const struct wire_round *drawn)
{
    const struct draw *draw = &self->draw;
    for (uint32_t i = 0; i < draw->cases_count; i++) {
        const struct draw_case *at = &draw->cases[i];
        const struct wire_audit *audit = &at->audit;
        if (at->left) {
            outbox_note(turn->out,
                        "audit.undecided round=%" PRIu64 " accused=%u accuser=%u tries=%u",
                        audit->round, audit->member, audit->accuser, audit->tries);
            blame_both(self, turn, audit);
        } else if (at->judges == 0) {
            outbox_note(turn->out,
                        "audit.no_judge round=%" PRIu64
                        " accused=%u accuser=%u; nobody else takes part",
                        audit->round, audit->member, audit->accuser);
        } else if (at->judges < at->needed) {
            outbox_note(turn->out,
                        "audit.few_judges round=%" PRIu64
                        " accused=%u accuser=%u; %u judges, a verdict "
                        "needs %u: of %u trainers a third may lie",
                        audit->round, audit->member, audit->accuser, at->judges, at->needed,
                        drawn->trainers);
        }
    }
}

// ---- findings -------------------------------------------------------------------------------------

static void eject(const struct turn *turn, const struct wire_record_ejection *record)
{
    const struct wire_member *member = &turn->run->roster.members[record->member];
    if (member->state == MEMBER_EJECTED) return;
    turn_put(turn, FRAME_RECORD_EJECTION, record);
    turn_tell_roster(turn);
    char hex[HASH_HEX];
    outbox_note(turn->out,
                "member.ejected name=%s index=%u guilt=%s round=%" PRIu64 " result=%.16s",
                member->name, record->member, wire_enum_name(&wire_enum_guilt, record->guilt),
                record->round, hash_to_hex(&record->result, hex));
    turn_mail_refusal(turn, member->name, FRAME_CLAIM, REFUSAL_EJECTED, record->round,
                      "this identity was ejected; give up");
}

// An honest judge never contradicts a verdict: one of those who made it is honest, and what both have
// recomputed is the same to the bit.
static void eject_false_judges(const struct turn *turn, uint32_t place, uint8_t word)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (verdict_same_case(round, i, place) &&
            verdict_contradicts(word, round->findings[i].finding))
            eject(turn, &(struct wire_record_ejection){
                            .member = round->clients[round->audits[i].auditor].member,
                            .guilt = GUILT_FALSE_FINDING,
                            .round = round->audits[i].round,
                            .result = round->audits[i].result });
}

// Carries out the verdict on the case at `place`, whatever of it was done before.
static void conclude(const struct turn *turn, uint32_t place, uint8_t word)
{
    const struct wire_audit *audit = &round_of(turn->run)->audits[place];
    struct wire_record_ejection ejection = { .member = audit->member,
                                             .guilt = GUILT_WRONG_RESULT,
                                             .round = audit->round,
                                             .result = audit->result };
    // mutant: audit: silence ejects the third time
    if (word == FINDING_DIFFERENT) {
        // mutant: audit: a verdict of "different" lets the accused go
        eject(turn, &ejection);
    } else if (word == FINDING_SAME) {
        ejection.member = audit->accuser, ejection.guilt = GUILT_FALSE_ACCUSATION;
        // mutant: audit: a verdict of "same" lets the accuser go
        if (audit->accusation == FINDING_DIFFERENT) eject(turn, &ejection);
    } else if (turn_is_live(turn, audit->member)) {
        turn_set_state(turn, audit->member, MEMBER_DROPPED);
    }
    // mutant: guilt: a judge against the verdict stays
    eject_false_judges(turn, place, word);
}

void audit_resume(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const uint8_t word = verdict_of(round, i);
        if (verdict_is_first(round, i) && word != FINDING_PENDING) conclude(turn, i, word);
    }
}

static void take_finding(struct audit *self, const struct turn *turn, const struct msg *in,
                         uint32_t place)
{
    const struct wire_finding *finding = in->body;
    const struct run *run = turn->run;
    const struct wire_audit *audit = &round_of(run)->audits[place];
    const uint8_t before = verdict_of(round_of(run), place);
    struct wire_record_finding record = { .round = finding->round,
                                          .place = place,
                                          .finding = finding->finding };
    if (in->frame_bytes <= 1024) record.frame = (struct wire_bytes){ in->frame, in->frame_bytes };
    // mutant: audit: a finding is stored after it is acted upon
    turn_put(turn, FRAME_RECORD_FINDING, &record);
    outbox_note(turn->out,
                "audit.%s round=%" PRIu64 " of=%" PRIu64 " member=%u by=%u%s reason=\"%s\"",
                wire_enum_name(&wire_enum_finding, finding->finding), finding->round, audit->round,
                audit->member, round_of(run)->clients[audit->auditor].member,
                audit->judges ? " judge" : "", finding->reason);
    const uint8_t word = verdict_of(round_of(run), place);
    if (before == FINDING_PENDING && word != FINDING_PENDING)
        outbox_note(turn->out, "audit.judged round=%" PRIu64 " accused=%u accuser=%u verdict=%s",
                    audit->round, audit->member, audit->accuser,
                    wire_enum_name(&wire_enum_finding, word));
    // mutant: audit: a quarrel costs neither party anything
    if (before == FINDING_PENDING && word == FINDING_SAME) blame_both(self, turn, audit);
    // mutant: audit: an accusation alone ejects
    // mutant: audit: a finding is stored after it is acted upon (2)
    if (word != FINDING_PENDING) conclude(turn, place, word);
}

void audit_hear_finding(struct audit *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_finding *finding = in->body;
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    uint32_t member = turn_member(turn, in), place = 0;
    if (member == NO_MEMBER) return;
    if (!round->open || finding->round != round->opened.round) {
        turn_refuse(turn, in, REFUSAL_STALE, finding->round, "round %" PRIu64 " is not open",
                    finding->round);
        return;
    }
    if (strcmp(in->run, turn->rules->run_id) !=
        0) { // It is kept as it was signed, to prove something
        turn_refuse(turn, in, REFUSAL_WRONG_RUN, finding->round, "a finding names its run, \"%s\"",
                    turn->rules->run_id);
        return;
    }
    // mutant: audit: a finding of a member that was not asked counts
    while (place < round->audits_count &&
           round->clients[round->audits[place].auditor].member != member)
        place++;
    // mutant: audit: a finding of another result counts
    if (place == round->audits_count || finding->finding == FINDING_PENDING ||
        !hash_equal(&finding->result, &round->audits[place].result)) {
        turn_refuse(turn, in, REFUSAL_NOT_ELECTED, finding->round,
                    "no auditor of that result in round %" PRIu64, finding->round);
        return;
    }
    // mutant: audit: what began with zero can be withheld
    if (finding->finding == FINDING_WITHHELD && hash_is_none(&round->audits[place].residual_from)) {
        turn_refuse(turn, in, REFUSAL_MALFORMED, finding->round,
                    "that result began with zero: nothing of it can be withheld");
        return;
    }
    if (round->findings[place].finding == FINDING_PENDING) take_finding(self, turn, in, place);
    turn_ack(turn, in, finding->round, &finding->result);
}

bool audit_is_over(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (round->findings[i].finding == FINDING_PENDING &&
            turn_is_live(turn, round->clients[round->audits[i].auditor].member))
            return false;
    return true;
}

void audit_tell_missing(const struct turn *turn)
{
    const struct round *round = round_of(turn->run);
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (round->findings[i].finding == FINDING_PENDING)
            outbox_note(turn->out,
                        "audit.missing round=%" PRIu64 " of=%" PRIu64
                        " member=%u by=%u; round_witness_time "
                        "may be too short",
                        round->opened.round, round->audits[i].round, round->audits[i].member,
                        round->clients[round->audits[i].auditor].member);
}

// ---- two claims of one round ----------------------------------------------------------------------

// The claim inside, if it is one of a member of this run, and not of long ago.
static uint32_t claimant(const struct turn *turn, const struct wire_bytes *frame,
                         struct wire_arena *arena, const struct wire_claim **ret_claim)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    struct wire_head head;
    struct wire_refusal refusal;
    struct key author;
    const void *body;
    if (!wire_unpack(frame->data, frame->count, WIRE_MAIL, arena, &head, &body, &refusal) ||
        head.kind != FRAME_CLAIM || strcmp(head.run, turn->rules->run_id) != 0)
        return NO_MEMBER;
    const struct wire_claim *claim = *ret_claim = body;
    author = head.sender;
    // mutant: guilt: a claim of before the run was born counts
    // mutant: guilt: a claim of another run counts
    bool ours = strcmp(claim->run, turn->rules->run_id) == 0 &&
                claim->born_unix_ms == run->born_unix_ms && key_equal(&claim->author, &author);
    bool recent =
        claim->round <= round->opened.round && claim->round + CLAIM_AGE_MAX >= round->opened.round;
    return ours && recent ? roster_find(&run->roster, &author) : NO_MEMBER;
}

// Another claim of this member was accepted than the one shown: who voted for that one has it. Both are
// signed, so whoever makes us ask is ejected by the answer.
static void ask_for_accepted(struct audit *self, const struct turn *turn, uint32_t member,
                             struct claim_copy *shown)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    uint32_t i = 0;
    if (shown->asked || shown->round != round->last.round || is_ejected(run, member)) return;
    while (i < round->accepted_count && self->accepted_of[i] != member) i++;
    if (i == round->accepted_count || hash_equal(&round->accepted[i].result, &shown->name)) return;
    for (uint32_t w = 0; w < self->accepted_by_count; w++) {
        const struct wire_member *witness = &run->roster.members[self->accepted_by[w].member];
        if (witness->state != MEMBER_HEALTHY && witness->state != MEMBER_PENDING) continue;
        outbox_mail(turn->out, witness->name, FRAME_SEND_CLAIM,
                    &(struct wire_send_claim){ shown->round, round->accepted[i].client });
        shown->asked = true;
    }
}

// The first claim of the author and round that was shown by `shower`, or by anybody if that is NO_MEMBER;
// NULL: none is kept.
static struct claim_copy *find_shown(struct audit *self, uint32_t author, uint64_t round,
                                     uint32_t shower)
{
    struct claim_copy *first = NULL;
    for (uint32_t i = 0; i < self->claim_copies_count; i++) {
        struct claim_copy *at = &self->claim_copies[i];
        if (!at->number || (shower != NO_MEMBER && at->shower != shower)) continue;
        // mutant: guilt: claims of two rounds are called equivocation
        if (at->author == author && at->round == round && (!first || at->number < first->number))
            first = at;
    }
    return first;
}

static bool is_of_use(const struct turn *turn, const struct claim_copy *claim_copy)
{
    return claim_copy->number && claim_copy->round + CLAIM_AGE_MAX >= turn->run->number &&
           !is_ejected(turn->run, claim_copy->author);
}

// Where a claim_copy of `shower` may be put.
static struct claim_copy *make_room(struct audit *self, const struct turn *turn, uint32_t shower)
{
    struct claim_copy *all = self->claim_copies, *victim = all;
    for (uint32_t i = 0; i < self->claim_copies_count; i++)
        // mutant: guilt: one claim puts another out of the way
        if (!is_of_use(turn, &all[i])) return &all[i];
    if (self->claim_copies_count < CLAIM_COPIES_MAX) return &all[self->claim_copies_count++];
    uint16_t *held = self->held;
    memset(held, 0, sizeof self->held);
    for (uint32_t i = 0; i < CLAIM_COPIES_MAX; i++) held[all[i].shower]++;
    // mutant: guilt: a flood of claims puts another out of the way
    held[shower]++; // The one that it is about to show
    for (uint32_t i = 1; i < CLAIM_COPIES_MAX; i++) {
        const uint16_t most = held[victim->shower], its = held[all[i].shower];
        if (its > most || (its == most && all[i].number < victim->number)) victim = &all[i];
    }
    return victim;
}

void audit_forget(struct audit *self, uint32_t author)
{
    for (uint32_t i = 0; i < self->claim_copies_count; i++)
        if (self->claim_copies[i].author == author) self->claim_copies[i].number = 0;
}

void audit_hear_claim_copy(struct audit *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_claim_copy *claim_copy = in->body;
    const struct wire_claim *claim;
    _Alignas(8) uint8_t bytes[2048];
    struct wire_arena arena = { .bytes = bytes, .max = sizeof bytes };
    const uint32_t shower = turn_member(turn, in);
    if (shower == NO_MEMBER) return;
    const uint32_t author = claimant(turn, &claim_copy->claim, &arena, &claim);
    if (author == NO_MEMBER || claim_copy->claim.count > CLAIM_FRAME_MAX ||
        is_ejected(turn->run, author))
        return;
    struct claim_copy *known = find_shown(self, author, claim->round, NO_MEMBER);
    const struct hash name = claim_hash(claim);
    // mutant: guilt: two claims prove nothing
    if (known && !hash_equal(&known->name, &name)) {
        const struct wire_bytes first = { self->frames[known - self->claim_copies], known->bytes };
        eject(turn, &(struct wire_record_ejection){ .member = author,
                                                    .guilt = GUILT_EQUIVOCATION,
                                                    .round = claim->round,
                                                    .result = name,
                                                    .first = first,
                                                    .second = claim_copy->claim });
        return;
    }
    if (!known || !find_shown(self, author, claim->round, shower)) {
        struct claim_copy *kept = make_room(self, turn, shower);
        // mutant: guilt: a liar that shows its other claim itself is not asked about
        *kept = (struct claim_copy){ .number = ++self->shown,
                                     .round = claim->round,
                                     .author = author,
                                     .shower = shower,
                                     .name = name,
                                     .bytes = (uint16_t)claim_copy->claim.count };
        memcpy(self->frames[kept - self->claim_copies], claim_copy->claim.data, kept->bytes);
        if (!known) known = kept;
    }
    // mutant: guilt: the holder of the committed claim is not asked
    ask_for_accepted(self, turn, author,
                     known); // Also if it was shown before anything was accepted
}

void audit_ask_rivals(struct tally *tally, const struct turn *turn, uint32_t place,
                      const struct wire_vote *vote)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    const uint32_t count = vote->seen_count;
    const uint32_t first = (uint32_t)((uint64_t)count * place / round->witnesses_count);
    uint32_t witness, asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t client = vote->seen[(first + i) % count].client;
        if (is_ejected(run, round->clients[client].member)) continue;
        while (asked < PRODUCES_MAX && tally_ask(tally, client, &witness)) {
            asked++;
            outbox_mail(turn->out, run->roster.members[round->witnesses[witness].member].name,
                        FRAME_SEND_CLAIM, &(struct wire_send_claim){ round->opened.round, client });
        }
    }
}
