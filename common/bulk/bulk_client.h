#pragma once
// bulk_client -- samples from data providers, for a thread that can wait for them (the learner's).
//
//     provider 0 ─silent▶ provider 1 ─NO_SAMPLES▶ provider 2 ─samples▶ asked first next time
//     slow (a third of the patience or more, or much slower than another):
//         next time one that was not asked yet, or the fastest seen
//     all failed: wait 100, 200, 400 .. 2000 ms, then retry, `rounds_max` times in all
//
// A provider that gave samples is asked first, whether it is named or not, until it fails or is
// slow; a provider that failed lately is asked last. Now and then another one is tried first
// (providers.h).
//
// For one thread. A call blocks it, for each BULK_SAMPLES_BYTES of tokens, at most read_ms_max
// (after which no further provider is asked) plus patience_ms.

#include <stdint.h>

#include "common/base/fault.h"
#include "common/crypto/identity.h"
#include "common/wire/wire.h"

struct bulk_client_options {
    const struct identity *identity; // Borrowed for the client's life
    const char *run;
    uint32_t seq_len;     // 1 .. 1048575: a sample is seq_len + 1 tokens
    uint32_t patience_ms; // Of one answer; 0: 5000
    uint32_t rounds_max;  // Through all endpoints; 0: 5
    uint32_t read_ms_max; // Of one question to all of them; 0: three times patience_ms
    // Decodes an answer into count * (seq_len + 1) tokens, or returns a fault: then the answer is
    // refused and the next provider is asked.
    int (*take)(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                size_t bytes_count, uint32_t *tokens, struct why *why);
    // Takes the description of a dataset, or returns a fault, with the same effect.
    int (*know)(void *arg, const uint8_t *bytes, size_t count, struct why *why);
    // Called with the provider whose answer was refused and the reason; may be NULL.
    void (*refused)(void *arg, const char *endpoint, const char *reason);
    void *arg;
};

struct bulk_client;

// FAULT_RANGE.
int bulk_client_new(const struct bulk_client_options *options, struct why *why,
                    struct bulk_client **ret_self);
void bulk_client_destroy(struct bulk_client **self_p);

// The providers to ask from now on: at most PROVIDERS_NAMED_MAX, the rest is ignored. Copied.
void bulk_client_set_providers(struct bulk_client *self, const struct wire_holder *providers,
                               uint32_t count);

// Fills tokens[count][seq_len + 1] with the samples from `position` on. FAULT_UNREACHABLE: no provider
// answered; FAULT_DIGEST: at least one did, and said that it has not got them, or sent others. Both quote
// the last reply of each provider; *tokens then has no particular value.
int bulk_read_samples(struct bulk_client *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why);

// Asks for the description of the dataset until `know` takes one. FAULT_UNREACHABLE: none was taken.
int bulk_know_dataset(struct bulk_client *self, struct why *why);
