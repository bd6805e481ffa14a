#include "common/run/quorum.h"
#include "common/base/ensure.h"

uint32_t quorum_of(uint32_t elected)
{
    ensure(elected <= WITNESSES_MAX);
    // mutant: a quorum is rounded down
    return elected ? (2 * elected + 2) / 3 : QUORUM_NONE;
}

uint32_t quorum_liars(uint32_t members) { return members / 3; }

bool quorum_reached(uint32_t votes, uint32_t elected)
{
    return elected > 0 && votes >= quorum_of(elected);
}

uint32_t quorum_health_score(const struct bloom *filters, uint32_t count,
                             const uint8_t signer_key[32])
{
    const struct hash participant = hash_of(signer_key, 32);
    uint32_t score = 0;
    for (uint32_t i = 0; i < count; i++) score += bloom_has(&filters[i], &participant);
    return score;
}

bool quorum_is_healthy(const struct bloom *filters, uint32_t count, uint32_t elected,
                       const uint8_t signer_key[32])
{
    return quorum_reached(quorum_health_score(filters, count, signer_key), elected);
}
