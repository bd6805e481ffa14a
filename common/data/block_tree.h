#pragma once
// block_tree -- the hashes of one dataset's blocks (manifest.h), computed when they are needed: any
// subtree of any file, for proofs, and any block, to check bytes that are read.
//
// The manifest has one hash for each MiB. The levels above are computed once, at opening: 32 bytes for each MiB. The
// levels below come from the bytes of that MiB or from hashes that a server sent, and are compared with the manifest.
// There are 4096 places of 16 KiB for them. A MiB's place is its number modulo 4096, counted over all files: what is
// learned of it replaces what stood there, and a failed comparison empties the place. Not for two threads at once.

#include "common/crypto/merkle.h"
#include "common/data/manifest.h"

struct block_tree;

// Keeps the pointer to the manifest, which must outlive the tree. FAULT_MEMORY.
int block_tree_new(const struct manifest *manifest, struct why *why, struct block_tree **ret_self);
void block_tree_destroy(struct block_tree **self_p);

// The hashes of a MiB of a file, one for each of its blocks; valid until the next _check, _take, _learn or _prove. NULL:
// they are not known. `file` and `leaf` must exist.
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

// The path that proves blocks [first, end) of a file: merkle_make_range; first < end, within the file (ensured). Reads
// the MiB at either end of the range if its hashes are not known. Faults as _learn; ret_path has no meaning then.
int block_tree_prove(struct block_tree *self, uint32_t file, uint64_t first, uint64_t end, int fd,
                     const char *path, struct why *why, struct hash ret_path[MERKLE_RANGE_MAX],
                     size_t *ret_count);
