#pragma once
// remote_files -- the dataset of token files behind URLs, as samples (samples.h says which tokens
// are sample p): the same files give the same samples here as in a local folder, if they stand in
// the same order. Format by the end of the URL's path: .npy has a NumPy header, all else is raw
// tokens.
//
// Sizes are asked for at open (one HEAD each), samples by Range GET; neighbours in one file are one
// request, up to REMOTE_RUN_BYTES. Unshuffled positions are neighbours; shuffled ones seldom are
// and cost a request each. How requests fail and are repeated: http_range.h.
//
// Not for two threads at once.

#include "common/data/http_range.h"
#include "common/data/samples.h"

enum { REMOTE_RUN_BYTES = 8 << 20, REMOTE_PAD_MAX = 20 };

enum remote_kind {
    REMOTE_SINGLE_URL,
    REMOTE_NUMBERED_FILES,          // url has one {}, where the number goes, zeros in front
    REMOTE_GCP,                     // A bucket to be listed: FAULT_UNSUPPORTED
};

struct remote_source {              // Psyche's HttpTrainingDataLocation
    enum remote_kind kind;
    const char *url;
    uint32_t start_index, num_files;        // num_files 1 .. SAMPLES_FILES_MAX
    uint32_t n_left_pad_zeros;              // Digits in all: 3 gives 007; 0 .. REMOTE_PAD_MAX
};

typedef struct remote_files remote_files_t;

// Keeps nothing of its arguments. FAULT_CONFIG, FAULT_RANGE, FAULT_FORMAT, and what http_range_size
// gives.
int remote_files_open(const struct remote_source *source, const struct http_config *http,
                      const struct samples_config *config, struct why *why,
                      remote_files_t **ret_self);
void remote_files_close(remote_files_t **self);

uint64_t remote_files_count(const remote_files_t *self);   // Samples in one pass, 1 or more

// As token_files_read. FAULT_CORRUPT if a file's size changed since open.
int remote_files_read(remote_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why);
