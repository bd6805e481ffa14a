// The largest k of a chunk: part of distro_kernels_template.h; no #pragma once. A key is the bits
// of a magnitude: it orders as the magnitude does.

enum { GROUPS_FEW = 64, GROUPS = 256, BLOCK = 16 };

static uint32_t count_reaching(const uint32_t *keys, uint32_t count, uint32_t threshold)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i += BLOCK)
        sum += (uint32_t)__builtin_popcount(REACHING(keys + i, threshold));
    return sum;
}

// The largest threshold, in the bits from `lowest_bit` up, that at least `top_k` keys reach. Keys
// are padded with zeros to a multiple of BLOCK.
static uint32_t threshold_of(const uint32_t *keys, uint32_t count, uint32_t top_k, int lowest_bit)
{
    uint32_t threshold = 0;
    for (int bit = 30; bit >= lowest_bit; bit--) {
        const uint32_t higher = threshold | 1u << bit;
        if (count_reaching(keys, count, higher) >= top_k) threshold = higher;
    }
    return threshold;
}

// The largest key of each of `groups` groups; value i is in group i % groups. A last row that does
// not fill all groups is not looked at.
ALWAYS void group_maxima(const float *values, uint32_t count, uint32_t groups, uint32_t *ret_keys)
{
    key_vector largest[GROUPS / LANES];
    for (uint32_t g = 0; g < groups / LANES; g++) largest[g] = KEYS(values + g * LANES);
    for (uint32_t i = groups; i + groups <= count; i += groups)
        for (uint32_t g = 0; g < groups / LANES; g++)
            largest[g] = LARGER(largest[g], KEYS(values + i + g * LANES));
    for (uint32_t g = 0; g < groups / LANES; g++) STORE_KEYS(ret_keys + g * LANES, largest[g]);
}

// A threshold that at least top_k keys reach, and few others: top_k of the groups' maxima reach it.
// 0 if there are too few values, or top_k is too large, for that to help.
static uint32_t rough_threshold(const float *values, uint32_t count, uint32_t top_k)
{
    uint32_t largest[GROUPS];
    const uint32_t groups = top_k <= GROUPS_FEW / 4 ? GROUPS_FEW : GROUPS;
    if (count < 2 * groups || top_k > groups / 2) return 0;
    if (groups == GROUPS_FEW) group_maxima(values, count, GROUPS_FEW, largest);
    else group_maxima(values, count, GROUPS, largest);
    return threshold_of(largest, groups, top_k, 16); // A hundredth too low is near enough
}

// One bit for each of 64 values, or of the `count` of them that are left.
ALWAYS uint64_t reaching_of(const float *values, uint32_t count, uint32_t threshold)
{
    float last[4 * BLOCK];
    if (count < 4 * BLOCK) {
        memset(last, 0, sizeof last);
        values = memcpy(last, values, count * sizeof *last);
    }
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 4; i++)
        mask |= (uint64_t)REACHING(values + i * BLOCK, threshold) << (i * BLOCK);
    return mask;
}

// The keys that reach the threshold, which is not 0, and their numbers, ascending.
static uint32_t collect(const float *values, uint32_t count, uint32_t threshold,
                        struct distro_scratch *ret)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i += 4 * BLOCK) {
        uint64_t mask = reaching_of(values + i, count - i, threshold);
        for (; mask != 0; mask &= mask - 1) {
            const uint32_t number = i + (uint32_t)__builtin_ctzll(mask);
            memcpy(&ret->keys[found], values + number, sizeof ret->keys[0]);
            ret->keys[found] &= 0x7fffffffu;
            ret->found[found++] = (uint16_t)number;
        }
    }
    return found;
}

// For at most BLOCK keys: counts for each how many come before it, all at once.
static uint32_t rank_few(const struct distro_scratch *scratch, uint32_t found, uint32_t top_k,
                         uint16_t *ret_numbers)
{
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < found; i++) {
        const uint32_t key = scratch->keys[i], above = REACHING(scratch->keys, key + 1);
        const uint32_t equal = REACHING(scratch->keys, key) & ~above, earlier = (1u << i) - 1;
        const uint32_t before = (uint32_t)__builtin_popcount(above | (equal & earlier));
        if (before < top_k) ret_numbers[chosen++] = scratch->found[i];
    }
    return chosen;
}

static uint32_t select_top(uint32_t count, const float *values, uint32_t top_k,
                           struct distro_scratch *scratch, uint16_t *ret_numbers)
{
    const uint32_t rough = rough_threshold(values, count, top_k), *keys = scratch->keys;
    const uint32_t found = collect(values, count, rough ? rough : 1, scratch); // 1: no zeros
    uint32_t padded = found;
    while (padded % BLOCK != 0) scratch->keys[padded++] = 0;

    if (found <= BLOCK) return rank_few(scratch, found, top_k, ret_numbers);
    const uint32_t threshold = threshold_of(keys, padded, top_k, 0);
    uint32_t equal = top_k - count_reaching(keys, padded, threshold + 1), chosen = 0;
    for (uint32_t i = 0; i < found; i++) {
        if (keys[i] < threshold) continue;
        if (keys[i] == threshold) {
            if (equal == 0) continue;
            equal--;
        }
        ret_numbers[chosen++] = scratch->found[i];
    }
    return chosen;
}
