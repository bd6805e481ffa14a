// audits -- the auditors of a round are read from its record alone. The coordinator, the members
// and the verifier of a ledger all call these functions, so they cannot disagree.

#include "common/pace/rounds/audits.h"

uint32_t audits_of(const struct wire_round *round, uint32_t client)
{
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (round->audits[i].auditor == client) return i;
    return UINT32_MAX;
}

bool audits_are_sound(const struct wire_round *round)
{
    uint64_t intervals = 0;
    // mutant: audit: nobody is left to train (2)
    if (round->audits_count > 0 && round->audits_count >= round->clients_count) return false;
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const struct wire_audit *audit = &round->audits[i];
        if (audit->auditor >= round->clients_count || audit->round >= round->round ||
            audits_of(round, audit->auditor) != i)
            return false;
        intervals += audit->intervals;
    }
    for (uint32_t i = 0; i < round->audited_count; i++)
        if (round->audited[i].begin >= round->audited[i].end) return false;
    return intervals == round->audited_count;
}

uint32_t audits_trainers(const struct wire_round *round, uint32_t *ret_clients)
{
    uint32_t count = 0;
    // mutant: audit: auditors train, too
    for (uint32_t c = 0; c < round->clients_count; c++)
        if (audits_of(round, c) == UINT32_MAX) ret_clients[count++] = c;
    return count;
}

const struct interval *audits_samples(const struct wire_round *round, uint32_t place)
{
    const struct interval *samples = round->audited;
    for (uint32_t i = 0; i < place; i++) samples += round->audits[i].intervals;
    return samples;
}
