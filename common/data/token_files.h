#pragma once
// token_files -- the dataset of a local folder: its *.bin, *.npy and *.ds files in ascending order
// of name, as samples (samples.h says which tokens are sample p).
//
// .bin and .ds are raw unsigned little-endian tokens of 2 or 4 bytes; .npy has a NumPy header
// (npy.h). Refused by name at open: a size that is not a multiple of the token size, a file too
// short for one sample, a .npy of another type, a folder that differs from its manifest.
//
// Read with pread, never through a mapping: a file that shrinks under a mapping kills the process
// (SIGBUS), here it is FAULT_CORRUPT. A file that was replaced, resized or written to since open is
// FAULT_CORRUPT as well: two readers of one position must not see two samples.
//
// With a manifest.json beside the files (manifest.h) every block of 4 KiB is compared with its hash
// each time it is read, so that damage on the disk is found whenever it happens: about 2 us a
// block, and 0.7 ms for the first block of each MiB. Without a manifest, bytes are not checked.
//
// Not for two threads at once. Keeps one file open at a time, however many there are.

#include "common/base/hash.h"
#include "common/data/manifest.h"
#include "common/data/proof.h"
#include "common/data/samples.h"

typedef struct token_files token_files_t;

// Copies `config`. FAULT_NOT_FOUND, FAULT_FORMAT, FAULT_RANGE, FAULT_LIMIT, FAULT_DIGEST, FAULT_IO.
int token_files_open(const char *dir, const struct samples_config *config, struct why *why,
                     token_files_t **ret_self);
void token_files_close(token_files_t **self);

// How many bytes a token of the folder has, 2 or 4: its manifest says it, or the headers of its
// .npy files. FAULT_USAGE, with what to do, if nothing says it: both widths give token ids, and
// only one of them those that were written. FAULT_FORMAT for a bad manifest or header.
int token_files_width(const char *dir, struct why *why, uint32_t *ret_token_bytes);

uint64_t token_files_count(const token_files_t *self); // Samples in one pass, 1 or more

// The manifest's digest, which names the dataset; NULL if there is no manifest.
const struct hash *token_files_digest(const token_files_t *self);

// Fills tokens[count][seq_len + 1] with the samples at position, position + 1, ... FAULT_RANGE for
// a token outside the vocabulary, FAULT_CORRUPT for a file that changed, FAULT_DIGEST for one that
// differs from the manifest; then *tokens is in no particular state and the next call may succeed.
int token_files_read(token_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                     struct why *why);

// Adds the proved samples at position, position + 1 .. (proof.h). Needs a manifest:
// FAULT_NOT_FOUND.
int token_files_prove(token_files_t *self, uint64_t position, uint32_t count, struct proof *proof,
                      struct why *why);

const struct samples *token_files_samples(const token_files_t *self);   // Borrowed
const struct manifest *token_files_manifest(const token_files_t *self); // The same; NULL: none
