#pragma once
// block_tree -- the hashes of one dataset's blocks (manifest.h), computed when they are needed: any
// subtree of any file, for proofs, and any block, to check bytes that are read.
//
// The levels from a MiB upward are computed once, at opening: 64 bytes for each MiB. The levels
// below come from reading that MiB and comparing it with the manifest (about 0.8 ms); the newest
// 4096 MiB stay in memory, 16 KiB each. Not for two threads at once.

#include "common/crypto/merkle.h"
#include "common/data/manifest.h"

struct block_tree;

// Borrows the manifest. FAULT_MEMORY.
int block_tree_new(const struct manifest *manifest, struct why *why, struct block_tree **ret_self);
void block_tree_destroy(struct block_tree **self_p);

// The block hashes of a MiB of a file, or NULL while they are not known.
const struct hash *block_tree_known(const struct block_tree *self, uint32_t file, uint64_t leaf);

// Three functions make them known: _check from the bytes of that MiB, as manifest_check_leaf; _take
// from hashes that a server sent; _learn by reading the file, which is open as `fd`. `path` is for
// error texts. FAULT_DIGEST, FAULT_MEMORY, FAULT_CORRUPT, FAULT_IO.
int block_tree_check(struct block_tree *self, uint32_t file, uint64_t leaf, const uint8_t *bytes,
                     const char *path, struct why *why);
int block_tree_take(struct block_tree *self, uint32_t file, uint64_t leaf,
                    const struct hash *blocks, const char *path, struct why *why);
int block_tree_learn(struct block_tree *self, uint32_t file, uint64_t leaf, int fd,
                     const char *path, struct why *why, const struct hash **ret_blocks);

// The path that proves blocks [first, end) of a file: merkle_make_range. Reads a MiB of the file if
// the hashes of its blocks are not known.
int block_tree_prove(struct block_tree *self, uint32_t file, uint64_t first, uint64_t end, int fd,
                     const char *path, struct why *why, struct hash ret_path[MERKLE_RANGE_MAX],
                     size_t *ret_count);

uint64_t block_count(uint64_t bytes); // ⌈bytes / MANIFEST_BLOCK_BYTES⌉
