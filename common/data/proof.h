#pragma once
// proof -- samples with what it takes to believe them, and the dataset they are held against.
//
//     provider   token_files ─▶ dataset_describe ─▶ bytes ─▶ dataset_parse   whoever trains on it
//                token_files_prove ─▶ bytes ─▶ dataset_check ─▶ tokens, or who lied
//
// A description is the manifest without its leaves, and the order that positions stand for:
//
//     LE32 token_bytes ‖ LE32 seq_len ‖ LE32 shuffled ‖ seed 32 ‖ LE32 files
//     ‖ for each file: LE32(length of name) ‖ name ‖ LE64 bytes ‖ LE64 offset of its tokens ‖ root 32
//
// Two hashes name it, and a run is bound to both (common/run/dataset.h): the manifest's digest
// (manifest.h) and the order, made of the count of samples and of
//
//     positions = SHA-256( "shoal-positions-1" ‖ LE32 seq_len ‖ LE32 shuffled ‖ seed
//                          ‖ LE64 offset of each file )
//
// Tokens begin where their file does, in a .npy after a header of at most NPY_HEADER_MAX bytes, at a
// multiple of their size, and are whole to the file's end: what else is described is refused.
//
// A proved sample is LE32(hashes) ‖ hashes ‖ the blocks of 4 KiB that it lies in: a path of
// merkle_check_range under its file's root. Which file, and which blocks, follows from the position,
// shuffled or not, so a true proof of another place proves nothing. 12 MB of tokens: 0.4 kB and a block.

#include "common/base/hash.h"
#include "common/data/manifest.h"
#include "common/data/samples.h"
#include "common/run/dataset.h"

enum { DESCRIPTION_MAX = 4 << 20 };

struct proof {
    uint8_t *bytes;
    size_t count, max;
}; // Bytes owned; zero it, free(bytes)

int proof_add(struct proof *self, const struct hash *path, size_t path_count, const uint8_t *blocks,
              size_t bytes, struct why *why);

struct dataset {
    struct samples samples;
    struct manifest manifest; // Without leaves
    struct hash order;
};

// FAULT_LIMIT: more than DESCRIPTION_MAX bytes. The caller frees ret_bytes.
int dataset_describe(const struct samples *samples, const struct manifest *manifest,
                     struct why *why, uint8_t **ret_bytes, size_t *ret_count);

struct hash dataset_positions(const struct samples *samples);
struct hash dataset_order_of(const struct samples *samples);

// What state.toml pins (data.dataset_digest).
struct hash dataset_digest_of(const struct samples *samples, const struct manifest *manifest);

// Any bytes. FAULT_FORMAT; FAULT_RANGE; FAULT_DIGEST if they are not those of `data` and `order`.
int dataset_parse(const uint8_t *bytes, size_t count, const struct hash *data,
                  const struct hash *order, struct why *why, struct dataset *ret_dataset);
void dataset_free(struct dataset *self); // Also of one that is all zero

// Any bytes. Fills tokens[count][seq_len + 1], each proved to be the one at its position; else
// FAULT_DIGEST, or FAULT_FORMAT for what is no proof. Tokens are below samples.config.vocab_size.
int dataset_check(struct dataset *self, uint64_t position, uint32_t count, const uint8_t *bytes,
                  size_t bytes_count, uint32_t *tokens, struct why *why);
