// audit -- randomly chosen results are recomputed, and liars are ejected.
//
//   commit ─▶ the next round draws auditors ─▶ FINDING same: nothing more
//                                           └▶ different, withheld: the round after draws judges, who
//                                              recompute it too; enough of them decide (verdict.h)
//
//     the judges say      the accused                     the accuser
//     different           ejected                         -
//     same                -                               ejected, if it had said "different"
//     withheld            loses its place for the epoch   -
//     no verdict          judged again, AUDIT_TRIES_MAX times, then left
//
// A judge that found "same" where the verdict is "different", or the reverse, is ejected too.
//
// Nobody is ejected for a starting residual it did not produce: a slow connection or a crash looks the
// same. A verdict of "withheld" gives audit debt instead: 8 audits, doubled by each further one, at most
// 64. Each audit that finds "same" pays one; if that result had a starting residual, the next debt is 8
// again. A trainer in debt starts from zero, so it has nothing to withhold. Its audits are drawn beside
// those by chance: one a round, or from 8 clients on up to a quarter as many as clients. So a trainer
// that hides when it is drawn can lie until then (about 4 times at 25 %, 100 at 1 %), and then not in
// the next 8 to 64 results without risking ejection; and while it is in debt, no result of it builds on
// an unaudited one. A "withheld" case without judge or verdict leaves a debt of one, if there is none.
//
// An accuser that says "withheld" risks no ejection. So these cases are drawn last and take at most half
// of the clients, but for a first one that needs more. If the verdict is "same", or there is none in the
// end, both parties get a fault score of at least two thirds of the limit.
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

enum {
    CLAIM_REQUESTS_MAX = 512, // Of one vote: a liar names what nobody claimed
    FINDING_FRAME_MAX = 1024, // What the record of a finding has room for (rounds.def)
    CLAIM_ARENA_BYTES = 2048, // An unpacked claim
};

// ---- drawing --------------------------------------------------------------------------------------

static bool is_ejected(const struct run *run, uint32_t member)
{
    return run->roster.members[member].state == MEMBER_EJECTED;
}

// Secret until the round's commit. Not stored: it is derived from the run's audit secret.
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

// One of the two parties hid something from the other, or says so falsely, and nobody knows which. One
// such case is never enough to be dropped, since either party may be honest.
static void blame_both(struct audit *self, const struct turn *turn, const struct wire_audit *audit)
{
    const uint32_t fault_score = 2 * FAULT_ROUND * turn->rules->unhealthy_rounds / 3;
    if (audit->accusation != FINDING_WITHHELD) return;
    // The scores of several cases do not add up: else a few liars could get all others dropped by
    // accusing each of them now and then
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

// An honest judge never contradicts a verdict: at least one judge that shares the verdict is honest, and
// what two honest judges recompute is the same to the bit.
static void eject_false_judges(const struct turn *turn, uint32_t place, uint8_t verdict)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (verdict_same_case(round, i, place) &&
            verdict_contradicts(verdict, round->findings[i].finding))
            eject(turn, &(struct wire_record_ejection){
                            .member = round->clients[round->audits[i].auditor].member,
                            .guilt = GUILT_FALSE_FINDING,
                            .round = round->audits[i].round,
                            .result = round->audits[i].result });
}

// Carries out the verdict on the case at `place`. A second call does nothing that was done before.
static void conclude(const struct turn *turn, uint32_t place, uint8_t verdict)
{
    const struct wire_audit *audit = &round_of(turn->run)->audits[place];
    struct wire_record_ejection ejection = { .member = audit->member,
                                             .guilt = GUILT_WRONG_RESULT,
                                             .round = audit->round,
                                             .result = audit->result };
    // mutant: audit: silence ejects the third time
    if (verdict == FINDING_DIFFERENT) {
        // mutant: audit: a verdict of "different" lets the accused go
        eject(turn, &ejection);
    } else if (verdict == FINDING_SAME) {
        ejection.member = audit->accuser, ejection.guilt = GUILT_FALSE_ACCUSATION;
        // mutant: audit: a verdict of "same" lets the accuser go
        if (audit->accusation == FINDING_DIFFERENT) eject(turn, &ejection);
    } else if (turn_is_live(turn, audit->member)) {
        turn_set_state(turn, audit->member, MEMBER_DROPPED);
    }
    // mutant: guilt: a judge against the verdict stays
    eject_false_judges(turn, place, verdict);
}

void audit_resume(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const uint8_t verdict = verdict_of(round, i);
        if (verdict_is_first(round, i) && verdict != FINDING_PENDING) conclude(turn, i, verdict);
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
    if (in->frame_bytes <= FINDING_FRAME_MAX)
        record.frame = (struct wire_bytes){ in->frame, in->frame_bytes };
    // mutant: audit: a finding is stored after it is acted upon
    turn_put(turn, FRAME_RECORD_FINDING, &record);
    outbox_note(turn->out,
                "audit.%s round=%" PRIu64 " of=%" PRIu64 " member=%u by=%u%s reason=\"%s\"",
                wire_enum_name(&wire_enum_finding, finding->finding), finding->round, audit->round,
                audit->member, round_of(run)->clients[audit->auditor].member,
                audit->judges ? " judge" : "", finding->reason);
    const uint8_t verdict = verdict_of(round_of(run), place);
    if (before == FINDING_PENDING && verdict != FINDING_PENDING)
        outbox_note(turn->out, "audit.judged round=%" PRIu64 " accused=%u accuser=%u verdict=%s",
                    audit->round, audit->member, audit->accuser,
                    wire_enum_name(&wire_enum_finding, verdict));
    // mutant: audit: a quarrel costs neither party anything
    if (before == FINDING_PENDING && verdict == FINDING_SAME) blame_both(self, turn, audit);
    // mutant: audit: an accusation alone ejects
    // mutant: audit: a finding is stored after it is acted upon (2)
    if (verdict != FINDING_PENDING) conclude(turn, place, verdict);
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
    // The frame is stored as it was signed, as evidence; so it must name the run
    if (strcmp(in->run, turn->rules->run_id) != 0) {
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

bool audit_is_over(const struct turn *turn, bool is_late)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t i = 0; i < round->audits_count; i++)
        // mutant: findings: a late one is waited for though it needs no author
        if (round->findings[i].finding == FINDING_PENDING &&
            turn_is_live(turn, round->clients[round->audits[i].auditor].member) &&
            (!is_late || !hash_is_none(&round->audits[i].residual_from)))
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

// The author of the claim in this frame, a member; the claim goes to *ret_claim. NO_MEMBER: it is no
// claim of a member of this run, or too old.
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

// If this member's accepted claim is not the one shown, asks the witnesses of that round for the accepted
// one. The member has signed both, so the answer ejects it.
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
        if (!roster_is_here(witness)) continue;
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

// Where to store the next claim that `shower` shows: in place of one that proves nothing any more, in a
// place never used, or in place of the oldest of the member that has shown the most (audit.h).
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
    _Alignas(8) uint8_t bytes[CLAIM_ARENA_BYTES];
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
        while (asked < CLAIM_REQUESTS_MAX && tally_ask(tally, client, &witness)) {
            asked++;
            outbox_mail(turn->out, run->roster.members[round->witnesses[witness].member].name,
                        FRAME_SEND_CLAIM, &(struct wire_send_claim){ round->opened.round, client });
        }
    }
}
