#pragma once
// provider -- samples, wherever they come from. Three kinds have one interface:
//
//   local   a folder on this machine              token_files.h
//   http    files behind URLs                     remote_files.h
//   fetch   a callback, for example one that asks another actor
//
// A read gives every sample that was asked for, in order, or a fault: never fewer samples, and
// never a token outside the vocabulary. Position p means the same sample to every provider over the
// same files with the same configuration (samples.h). Reads block: use them in the thread of a job.
// One provider serves one thread at a time.

#include "common/data/http_range.h"
#include "common/data/remote_files.h"
#include "common/data/samples.h"
#include "common/data/token_files.h"

typedef struct provider provider_t;

struct provider_fetch {
    // Fills tokens[count][seq_len + 1] with all samples from `position` on, or returns a fault with
    // its reason in *why. Called in the thread that reads.
    int (*fetch)(void *context, uint64_t position, uint32_t count, uint32_t *tokens,
                 struct why *why);
    void (*close)(void *context); // Called once by provider_close; may be NULL
    void *context;
    uint64_t count; // Samples in one pass, 1 or more, as the source claims
};

int provider_open_local(const char *dir, const struct samples_config *config, struct why *why,
                        provider_t **ret_self);
int provider_open_http(const struct remote_source *source, const struct http_config *http,
                       const struct samples_config *config, struct why *why, provider_t **ret_self);

// Copies both structs. Of `config`, seq_len and vocab_size matter; order and shuffle are the
// source's.
int provider_open_fetch(const struct provider_fetch *fetch, const struct samples_config *config,
                        struct why *why, provider_t **ret_self);
void provider_close(provider_t **self);

uint64_t provider_count(const provider_t *self); // Samples in one pass
uint32_t provider_seq_len(const provider_t *self);

// The dataset's digest if a manifest vouches for it (local, http), else NULL.
const struct hash *provider_digest(const provider_t *self);

// The digest that state.toml pins (data.dataset_digest), if this is a local provider with a
// manifest; else all zero.
struct hash provider_dataset_digest(provider_t *self);

// The files behind a local provider, needed to prove their samples to others; else NULL.
token_files_t *provider_files(provider_t *self);

// Fills tokens[count][seq_len + 1]; count 0 does nothing. Positions go on over passes without end.
// On a fault *tokens is in no particular state; the provider stays usable.
int provider_read(provider_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                  struct why *why);
