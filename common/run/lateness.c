// The ring holds one median a turn. A turn is judged by those before it, then its own is added. The
// medians of slow turns are added like all others: a run that becomes slower for good has a new
// limit after more than half a ring.

#include "common/run/lateness.h"
#include "common/base/ensure.h"
#include <stdlib.h>
#include <string.h>

void lateness_init(struct lateness *self, uint32_t floor, uint32_t ceiling)
{
    ensure(floor <= ceiling);
    *self = (struct lateness){ .floor = floor, .ceiling = ceiling };
}

static int by_size(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Sorts the values.
static uint32_t lower_median(uint32_t *values, uint32_t count)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, by_size);
    return values[(count - 1) / 2];
}

static uint32_t times(uint32_t median)
{
    const uint64_t product = (uint64_t)median * LATENESS_TIMES;
    return product < UINT32_MAX ? (uint32_t)product : UINT32_MAX;
}

uint32_t lateness_limit(const struct lateness *self)
{
    uint32_t medians[LATENESS_TURNS];
    if (self->turns < LATENESS_FIRST) return self->ceiling;
    const uint32_t count =
        self->turns < LATENESS_TURNS ? (uint32_t)self->turns : (uint32_t)LATENESS_TURNS;
    memcpy(medians, self->medians, sizeof medians);
    const uint32_t limit = times(lower_median(medians, count));
    return limit < self->floor ? self->floor : limit < self->ceiling ? limit : self->ceiling;
}

uint32_t lateness_from(const struct lateness *self, uint32_t median)
{
    const uint32_t limit = lateness_limit(self);
    return limit > times(median) ? limit : times(median);
}

void lateness_add(struct lateness *self, uint32_t median)
{
    self->medians[self->turns++ % LATENESS_TURNS] = median;
}

static uint32_t median_of(const uint32_t *took, uint32_t count)
{
    uint32_t sorted[LATENESS_MEMBERS_MAX], parts = 0;
    for (uint32_t i = 0; i < count; i++)
        if (took[i] != LATENESS_NO_PART) sorted[parts++] = took[i];
    return lower_median(sorted, parts);
}

uint32_t lateness_turn(struct lateness *self, const uint32_t *took, uint8_t *row, uint32_t count)
{
    ensure(count > 0 && count <= LATENESS_MEMBERS_MAX);
    const uint32_t median = median_of(took, count), late_from = lateness_from(self, median);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (took[i] == LATENESS_NO_PART) continue;
        any = true;
        if (took[i] <= late_from) row[i] = 0;
        else if (row[i] < LATENESS_ROW) row[i]++;
    }
    if (any) lateness_add(self, median);
    return median;
}
