#pragma once
// ngram -- how well a byte can be predicted from the 0, 1 or 2 bytes before it: the baselines that
// a trained model is compared with. Witten-Bell interpolation (Witten, Bell 1991, method C):
//
//   p_k(c | h) = ( n(h c) + t(h) p_{k-1}(c | h') ) / ( n(h) + t(h) ),      p_{-1}(c) = 1/256
//
// h: the last k bytes; h': h without its oldest; n: how often seen in training; t(h): how many
// different bytes followed h. A context never seen leaves p_{k-1} as it is. Order 0 is nearly the
// entropy of the bytes, order 1 that of a byte given the one before.
//
// 64 MiB of address space, of which only seen contexts are touched; 6 MB are fitted and scored in
// about 0.1 s. Not for two threads at once. Uses libm, whose last bits differ between machines: the
// result is for display, never for values on which replicas must agree.

#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { NGRAM_ORDERS = 3 }; // 0, 1 and 2 bytes of context

typedef struct ngram ngram_t;

int ngram_new(struct why *why, ngram_t **ret_self);
void ngram_destroy(ngram_t **self);

// Counts; may be called again for more text, whose first bytes then have no context. FAULT_LIMIT
// above 2^32 - 1 bytes in all.
int ngram_fit(ngram_t *self, const uint8_t *bytes, size_t count, struct why *why);

// Mean of -ln p over all `count` bytes (1 or more), in nats per byte, for each order. The first
// bytes, which lack context, are scored by the order they have context for.
void ngram_score(const ngram_t *self, const uint8_t *bytes, size_t count,
                 double ret_nats[NGRAM_ORDERS]);
