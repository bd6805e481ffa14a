#include "common/pace/rounds/claims.h"
#include "common/base/ensure.h"

static void add_hash(struct hasher *hasher, const struct hash *hash)
{
    hasher_add(hasher, hash->bytes, HASH_BYTES);
}

struct hash claim_hash(const struct wire_claim *claim)
{
    static const char domain[] = "shoal claim 1";
    uint8_t bytes[1024];
    struct wire_claim timeless = *claim;
    timeless.born_unix_ms = 0;
    size_t count = wire_pack_body(FRAME_CLAIM, &timeless, bytes, sizeof bytes);
    ensure(count > 0);
    return hash_of_two(domain, sizeof domain, bytes, count);
}

struct hash commit_hash(const struct wire_commit *commit)
{
    static const char domain[] = "shoal commit 1";
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, domain, sizeof domain);
    add_hash(&hasher, &commit->previous);
    hasher_add_number(&hasher, commit->round, 8);
    hasher_add_number(&hasher, commit->step, 8);
    hasher_add_number(&hasher, commit->outcome, 8);
    hasher_add_number(&hasher, commit->lr_bits, 8);
    add_hash(&hasher, &commit->base);
    hasher_add_number(&hasher, commit->accepted_count, 8);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        hasher_add_number(&hasher, (uint64_t)accepted->begin << 32 | accepted->end, 8);
        hasher_add_number(&hasher, accepted->payload_bytes, 8);
        add_hash(&hasher, &accepted->result);
        add_hash(&hasher, &accepted->payload);
    }
    return hasher_end(&hasher);
}

bool commit_is_sound(const struct wire_commit *commit)
{
    uint32_t end = 0;
    if ((commit->outcome == OUTCOME_COMMITTED) != (commit->accepted_count > 0)) return false;
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        if (accepted->begin < end || accepted->end <= accepted->begin) return false;
        end = accepted->end;
    }
    return true;
}
