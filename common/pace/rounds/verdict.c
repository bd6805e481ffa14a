// verdict -- first the number of judges and the number that must agree, then the verdict: the first
// finding that enough judges share. Otherwise "withheld", if the "different" and "withheld"
// findings together are enough and the judges that have not answered cannot make "different"
// enough.

#include "common/pace/rounds/verdict.h"
#include "common/run/quorum.h"

enum { JUDGES_MIN = 3, JUDGES_FIRST = 21, JUDGES_MAX = 255 };
_Static_assert((int)JUDGES_MAX <= (int)AUDITS_MAX, "one round has room for all judges of a case");

// The least number of judges of which most are honest even if all liars that may judge are among
// them. If the accuser says "different", one liar is a party and does not judge; if "withheld",
// both parties may be honest.
static uint32_t safe_judges(uint32_t trainers, uint8_t accusation)
{
    const uint32_t liars = quorum_liars(trainers) + (accusation == FINDING_WITHHELD);
    return 2 * liars < JUDGES_MIN + 1 ? JUDGES_MIN : 2 * liars - 1;
}

uint32_t verdict_judges(uint32_t trainers, uint8_t accusation, uint32_t tries)
{
    const uint32_t safe = safe_judges(trainers, accusation);
    const uint32_t judges_max = tries ? JUDGES_MAX : JUDGES_FIRST;
    return safe < judges_max ? safe : judges_max;
}

uint32_t verdict_needed(const struct wire_audit *audit, uint32_t trainers, uint32_t judges,
                        uint8_t finding)
{
    const bool too_few_judges =
        audit->tries == 0 && safe_judges(trainers, audit->accusation) > JUDGES_FIRST;
    const bool may_both_be_honest =
        audit->accusation == FINDING_WITHHELD && finding == FINDING_DIFFERENT;
    const uint32_t majority = judges / 2 + 1, liars = quorum_liars(trainers) + may_both_be_honest;
    const uint32_t floor = liars < JUDGES_MAX / 2 + 1 ? liars : JUDGES_MAX / 2 + 1;
    // All but one of 21 must agree (verdict.h)
    // mutant: guilt: few judges decide for many
    if (too_few_judges) return JUDGES_FIRST - 1;
    // mutant: audit: one word is a verdict
    return majority > floor ? majority : floor;
}

bool verdict_same_case(const struct round *round, uint32_t a, uint32_t b)
{
    const struct wire_audit *one = &round->audits[a], *other = &round->audits[b];
    return one->judges && other->judges && one->accuser == other->accuser &&
           hash_equal(&one->result, &other->result);
}

uint8_t verdict_of(const struct round *round, uint32_t place)
{
    uint32_t judges = 0, votes[FINDING_COUNT] = { 0 };
    for (uint32_t i = 0; i < round->audits_count; i++) {
        if (!verdict_same_case(round, i, place)) continue;
        judges++;
        votes[round->findings[i].finding]++;
    }
    // mutant: audit: a majority is counted over those that spoke
    if (judges == 0) return FINDING_PENDING;
    uint32_t need[FINDING_COUNT];
    for (uint8_t finding = FINDING_SAME; finding <= FINDING_WITHHELD; finding++) {
        need[finding] =
            verdict_needed(&round->audits[place], round->opened.trainers, judges, finding);
        if (votes[finding] >= need[finding]) return finding;
    }
    const uint32_t different = votes[FINDING_DIFFERENT];
    const bool still_open = different + votes[FINDING_PENDING] >= need[FINDING_DIFFERENT];
    const bool shown_to_some = different + votes[FINDING_WITHHELD] >= need[FINDING_WITHHELD];
    // mutant: guilt: a liar that shows it to some goes free
    return shown_to_some && !still_open ? FINDING_WITHHELD : FINDING_PENDING;
}

bool verdict_is_first(const struct round *round, uint32_t place)
{
    for (uint32_t i = 0; i < place; i++)
        if (verdict_same_case(round, i, place)) return false;
    return round->audits[place].judges;
}

bool verdict_contradicts(uint8_t verdict, uint8_t finding)
{
    // mutant: guilt: a judge that was shown nothing is a liar
    return (verdict == FINDING_SAME && finding == FINDING_DIFFERENT) ||
           (verdict == FINDING_DIFFERENT && finding == FINDING_SAME);
}
