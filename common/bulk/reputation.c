#include "common/bulk/reputation.h"

bool reputation_has_failed(const struct reputation *self, uint64_t since_ms)
{
    return self->has_lied || self->failed_ms > since_ms;
}

bool reputation_is_before(const struct reputation *a, const struct reputation *b, uint64_t since_ms)
{
    const bool a_failed = reputation_has_failed(a, since_ms);
    const bool b_failed = reputation_has_failed(b, since_ms);
    // mutant: data: a silent provider costs the full patience each time
    if (a_failed != b_failed) return b_failed;
    if (!a->proven_ms != !b->proven_ms) return a->proven_ms;
    if (a->is_slow != b->is_slow) return b->is_slow;
    return a_failed && a->failed_ms < b->failed_ms;
}

bool reputation_is_doubtful(const struct reputation *self)
{
    return self->is_slow || reputation_has_failed(self, 0);
}
