#pragma once
// proof -- samples with the hashes that prove them, and the description of the dataset that they
// are checked against.
//
//     provider   token_files ─▶ dataset_describe ─▶ bytes ─▶ dataset_parse           trainer
//                token_files_prove ─▶ bytes ─▶ dataset_check ─▶ tokens, or a fault
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
// Tokens begin at the start of their file; in a .npy, after a header of at most NPY_HEADER_MAX
// bytes, at a multiple of their size. Whole tokens reach to the end of the file. Any other
// description is refused.
//
// A proved sample is LE32(hashes) ‖ hashes ‖ the blocks of 4 KiB that it lies in: a path of
// merkle_check_range under its file's root. The position decides which file and which blocks,
// shuffled or not, so a true proof of other blocks is refused. For 12 MB of tokens the path takes
// 0.4 kB.

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

// The bytes may be anything. FAULT_FORMAT, FAULT_RANGE; FAULT_DIGEST if their hashes are not `data`
// and `order`.
int dataset_parse(const uint8_t *bytes, size_t count, const struct hash *data,
                  const struct hash *order, struct why *why, struct dataset *ret_dataset);
void dataset_free(struct dataset *self); // Also of one that is all zero

// The bytes may be anything. Fills tokens[count][seq_len + 1], each sample proved to be the one at
// its position; else FAULT_DIGEST, or FAULT_FORMAT for bytes that are not a proof. Every token is
// below samples.config.vocab_size, else FAULT_RANGE.
int dataset_check(struct dataset *self, uint64_t position, uint32_t count, const uint8_t *bytes,
                  size_t bytes_count, uint32_t *tokens, struct why *why);
