// committee -- swap-or-not shuffles one index at a time; here it shuffles all n at once, round by
// round, so that each block of 256 random bits is hashed once and not once an index.

#include "common/base/bytes.h"
#include "common/run/committee.h"
#include "common/base/ensure.h"
#include <string.h>

enum { ROUNDS = 90, BLOCK_BITS = 256 };

static struct hash key_of(uint64_t seed, enum committee_salt salt)
{
    static const char *const salts[] = {
        [SALT_COMMITTEE] = "committee",
        [SALT_WITNESS] = "witness",
    };
    uint8_t bytes[8];
    le_put(bytes, seed, sizeof bytes);
    const struct hash base = hash_of(bytes, sizeof bytes);
    return hash_of_two(base.bytes, HASH_BYTES, salts[salt], strlen(salts[salt]));
}

// key ‖ round ‖ block, the block as 32 bits little-endian. The pivot of a round is the hash of the
// first 33 bytes, a block of 256 bits is the hash of all 37.
struct source {
    uint8_t bytes[HASH_BYTES + 1 + 4];
};

static uint32_t draw_pivot(struct source *source, int round, uint32_t n)
{
    source->bytes[HASH_BYTES] = (uint8_t)round;
    const struct hash hash = hash_of(source->bytes, HASH_BYTES + 1);
    return (uint32_t)(hash_to_number(&hash) % n);
}

static struct hash draw_bits(struct source *source, uint32_t block)
{
    le_put(source->bytes + HASH_BYTES + 1, block, 4);
    return hash_of(source->bytes, sizeof source->bytes);
}

static uint32_t bit_at(const struct hash *bits, uint32_t place)
{
    return (uint32_t)bits->bytes[place % BLOCK_BITS / 8] >> place % 8 & 1;
}

// Swaps each index with its mirror (the two add up to `sum`) if the bit of the larger one is set.
// The larger ones are (sum/2, last], so each block of bits is hashed once, and only if it is
// needed.
static void swap_or_not(struct source *source, uint32_t sum, uint32_t last, uint32_t *at)
{
    struct hash bits = { 0 };
    for (uint32_t high = sum / 2 + 1, start = high; high <= last; high++) {
        if (high == start || high % BLOCK_BITS == 0) bits = draw_bits(source, high / BLOCK_BITS);
        const uint32_t low = sum - high;
        const uint32_t both = (at[low] ^ at[high]) & (0 - bit_at(&bits, high));
        at[low] ^= both;
        at[high] ^= both;
    }
}

// Each round is its own inverse, and swapping the entries of an array composes from the right. So
// the rounds run from the last to the first, and the array ends as the shuffle itself.
static void shuffle(const struct hash *key, uint32_t n, uint32_t *ret_positions)
{
    struct source source;
    ensure(n <= MEMBERS_MAX);
    memcpy(source.bytes, key->bytes, HASH_BYTES);
    for (uint32_t i = 0; i < n; i++) ret_positions[i] = i;
    if (n < 2) return;
    for (int round = ROUNDS - 1; round >= 0; round--) {
        const uint32_t pivot = draw_pivot(&source, round, n);
        swap_or_not(&source, pivot, pivot, ret_positions);     // Mirrored about pivot/2
        swap_or_not(&source, pivot + n, n - 1, ret_positions); // And about (pivot + n)/2
    }
}

void committee_positions(uint64_t seed, enum committee_salt salt, uint32_t n,
                         uint32_t *ret_positions)
{
    const struct hash key = key_of(seed, salt);
    shuffle(&key, n, ret_positions);
}
