// lags -- a bin is found by the length of the lag in bits.

#include "common/run/lags.h"
#include "common/base/ensure.h"

static uint64_t *bin_at(struct wire_lags *self, uint32_t bin)
{
    uint64_t *const bins[LAGS_BINS] = { &self->of_0, &self->of_1,  &self->of_2,  &self->of_4,
                                        &self->of_8, &self->of_16, &self->of_32, &self->of_64 };
    ensure(bin < LAGS_BINS);
    return bins[bin];
}

uint64_t lags_first(uint32_t bin)
{
    ensure(bin < LAGS_BINS);
    return bin ? (uint64_t)1 << (bin - 1) : 0;
}

void lags_count(struct wire_lags *self, uint64_t lag)
{
    uint32_t bin = 0;
    while (bin + 1 < LAGS_BINS && lag >= lags_first(bin + 1)) bin++;
    ++*bin_at(self, bin);
}

uint64_t lags_at(const struct wire_lags *self, uint32_t bin)
{
    struct wire_lags lags = *self;
    return *bin_at(&lags, bin);
}

struct wire_lags lags_sum(const struct wire_lags *a, const struct wire_lags *b)
{
    struct wire_lags sum = *a;
    for (uint32_t bin = 0; bin < LAGS_BINS; bin++) *bin_at(&sum, bin) += lags_at(b, bin);
    return sum;
}
