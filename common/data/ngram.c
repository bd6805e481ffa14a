#include "common/base/ensure.h"
#include "common/data/ngram.h"
#include <math.h>
#include <stdlib.h>

enum { BYTES = 256, CONTEXTS = 1 + BYTES + BYTES * BYTES };

// Contexts of all orders in one array: first the empty context, then 256, then 65536.
static const uint32_t first_context[NGRAM_ORDERS] = { 0, 1, 1 + BYTES };

struct ngram {
    uint32_t seen[CONTEXTS];         // n(h)
    uint16_t types[CONTEXTS];        // t(h), at most 256
    uint64_t bytes;                  // Fitted so far
    uint32_t count[CONTEXTS][BYTES]; // n(h c)
};

// The index of the context of an order. `pair` holds the two bytes before, the newer in its low
// byte.
static uint32_t context_of(int order, uint32_t pair)
{
    return first_context[order] + (pair & ((1u << 8 * order) - 1));
}

int ngram_new(struct why *why, ngram_t **ret_self)
{
    ngram_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "%zu bytes of counts", sizeof *self);
    *ret_self = self;
    return 0;
}

void ngram_destroy(ngram_t **self)
{
    free(*self);
    *self = NULL;
}

int ngram_fit(ngram_t *self, const uint8_t *bytes, size_t count, struct why *why)
{
    if (count > UINT32_MAX - self->bytes)
        return why_set(why, FAULT_LIMIT, "%zu more bytes of text; at most 2^32 - 1 can be counted",
                       count);
    self->bytes += count;
    uint32_t pair = 0;
    for (size_t i = 0; i < count; i++) {
        for (int order = 0; order < NGRAM_ORDERS && (size_t)order <= i; order++) {
            const uint32_t context = context_of(order, pair);
            self->seen[context]++;
            if (self->count[context][bytes[i]]++ == 0) self->types[context]++;
        }
        pair = (pair << 8 | bytes[i]) & 0xffff;
    }
    return 0;
}

void ngram_score(const ngram_t *self, const uint8_t *bytes, size_t count,
                 double ret_nats[NGRAM_ORDERS])
{
    ensure(count > 0);
    double sum[NGRAM_ORDERS] = { 0 };
    uint32_t pair = 0;
    for (size_t i = 0; i < count; i++) {
        double p = 1.0 / BYTES;
        for (int order = 0; order < NGRAM_ORDERS; order++) {
            const uint32_t context = context_of(order, pair);
            const double seen = self->seen[context], types = self->types[context];
            if ((size_t)order <= i && seen > 0)
                p = (self->count[context][bytes[i]] + types * p) / (seen + types);
            sum[order] -= log(p);
        }
        pair = (pair << 8 | bytes[i]) & 0xffff;
    }
    for (int order = 0; order < NGRAM_ORDERS; order++) ret_nats[order] = sum[order] / (double)count;
}
