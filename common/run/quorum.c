// quorum -- the rounding of quorum.h; K = 0 has no quorum, so no count of votes reaches it.

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
