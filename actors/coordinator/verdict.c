#include "actors/coordinator/verdict.h"
#include "common/run/quorum.h"

enum { JUDGES_MIN = 3, JUDGES_MAX = 15 };

uint32_t verdict_judges(uint32_t trainers, uint8_t accusation)
{
    const uint32_t liars = quorum_liars(trainers) + (accusation == FINDING_WITHHELD);
    if (2 * liars < JUDGES_MIN + 1) return JUDGES_MIN;
    return 2 * liars < JUDGES_MAX + 1 ? 2 * liars - 1 : JUDGES_MAX;
}

// How many of those appointed must say the same.
static uint32_t needed(uint32_t judges, uint32_t trainers, uint8_t accusation, uint8_t finding)
{
    const bool both_honest = accusation == FINDING_WITHHELD && finding == FINDING_DIFFERENT;
    const uint32_t most = judges / 2 + 1, liars = quorum_liars(trainers) + both_honest;
    const uint32_t least = liars < JUDGES_MAX / 2 + 1 ? liars : JUDGES_MAX / 2 + 1;
    return most > least ? most : least;
}

bool verdict_same_case(const struct run *run, uint32_t a, uint32_t b)
{
    const struct wire_audit *one = &run->audits[a], *other = &run->audits[b];
    return one->judges && other->judges && one->accuser == other->accuser &&
           hash_equal(&one->result, &other->result);
}

uint8_t verdict_of(const struct run *run, uint32_t place)
{
    uint32_t judges = 0, votes[FINDING_COUNT] = { 0 };
    for (uint32_t i = 0; i < run->audits_count; i++) {
        if (!verdict_same_case(run, i, place)) continue;
        judges++;
        votes[run->findings[i].finding]++;
    }
    static const uint8_t decisive[] = { FINDING_SAME, FINDING_DIFFERENT, FINDING_WITHHELD };
    for (size_t i = 0; judges && i < sizeof decisive; i++)
        if (votes[decisive[i]] >= needed(judges, run->round.trainers, run->audits[place].accusation,
                                         decisive[i])) return decisive[i];
    return FINDING_PENDING;
}

bool verdict_is_first(const struct run *run, uint32_t place)
{
    for (uint32_t i = 0; i < place; i++)
        if (verdict_same_case(run, i, place)) return false;
    return run->audits[place].judges;
}

bool verdict_contradicts(uint8_t verdict, uint8_t finding)
{
    return (verdict == FINDING_SAME && finding == FINDING_DIFFERENT) ||
           (verdict == FINDING_DIFFERENT && finding == FINDING_SAME);
}
