#pragma once
// samples -- which tokens are sample p, over an ordered list of token files. Does no I/O: local and
// remote files share it, so that a position means the same sample wherever the files lie.
//
//   file a   t0 t1 t2 t3 t4 t5 t6 t7        seq_len 3: samples [t0..t3] [t3..t6], t7 is never read
//   file b   u0 u1 u2 u3                    sample [u0..u3]: just enough tokens for one sample
//
// A sample is seq_len + 1 tokens: tokens [0 .. seq_len-1] are the inputs, [1 .. seq_len] their
// targets. Samples start every seq_len tokens: neighbours share one token, and no token is a target
// twice in a pass; no sample crosses from file to file; a rest of fewer than seq_len tokens at the
// end of a file is never read. With n samples in all, position p lies in pass p / n; if shuffled,
// index p % n goes through that pass's shuffle first.
//
// Not for two threads at once: the shuffle of the last pass asked for is cached.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/data/shuffle.h"

enum { SAMPLES_SEQ_MAX = 1 << 20, SAMPLES_FILES_MAX = 65536 };

struct samples_config {
    uint32_t token_bytes; // 2 or 4
    uint32_t seq_len;     // 1 .. SAMPLES_SEQ_MAX
    uint32_t vocab_size;  // Every token is below it; 0: not checked
    bool shuffled;
    uint8_t seed[SHUFFLE_SEED_BYTES]; // Of the shuffle, if there is one
};

struct samples_file {
    char *name;      // For texts; owned
    uint64_t offset; // Of its first token, in bytes
    uint64_t first;  // How many samples the files before it have
};

struct samples {
    struct samples_config config;
    struct samples_file *files; // Owned
    uint32_t file_count;
    uint64_t count; // Samples in one pass; below 2^62
    uint64_t pass;  // The pass that `shuffle` is for
    struct shuffle shuffle;
};

struct sample_place {
    uint64_t position;
    uint64_t offset; // In bytes, in the file, of the sample's first token
    uint64_t token;  // The same, counted in tokens
    uint32_t file;   // Index into samples.files
};

// FAULT_RANGE with the key, its value and its range.
int samples_init(struct samples *self, const struct samples_config *config, struct why *why);

// Appends a file; copies the name. FAULT_RANGE if it is too short for one sample, FAULT_LIMIT if
// there are too many files or samples.
int samples_add(struct samples *self, const char *name, uint64_t offset, uint64_t tokens,
                struct why *why);

void samples_free(struct samples *self);

size_t samples_tokens(const struct samples *self); // Of one sample: seq_len + 1
size_t samples_bytes(const struct samples *self);  // The same in a file

// Any position; there must be a file.
struct sample_place samples_locate(struct samples *self, uint64_t position);

// Turns samples_bytes() bytes of a file into samples_tokens() tokens. FAULT_RANGE, and *tokens in
// no particular state, at the first token that is not below vocab_size.
int samples_decode(const struct samples *self, const struct sample_place *place,
                   const uint8_t *bytes, uint32_t *tokens, struct why *why);

// The blocks [first, end) of 4 KiB (manifest.h) that the sample lies in, for a file of `size`
// bytes: the number of bytes in them, and the number of those that stand before the sample.
struct sample_blocks {
    uint64_t first, end;
    size_t bytes, skip;
};
struct sample_blocks samples_blocks(const struct samples *self, const struct sample_place *place,
                                    uint64_t size);
