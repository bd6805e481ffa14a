#pragma once
// manifest -- names, sizes and hashes of a folder's token files, so that a reader can check them.
// It is written last, beside them, as manifest.json:
//
//   { "format": "shoal-manifest-2", "token_bytes": 2, "leaf_bytes": 1048576, "digest": "<64 hex>",
//     "files": [ { "name": "train.bin", "bytes": 11562324, "root": "<64 hex>",
//                  "leaves": "<64 hex for each leaf, one after the other>" }, ... ] }
//
// A file is cut into blocks of 4 KiB (the last may be shorter); its root is the Merkle root over
// them (common/crypto/merkle.h), header included, whatever the sequence length: so a sample is
// proved by the blocks it lies in and one hash for each level. The manifest has one level of that
// tree, the root of each MiB, here called its leaves. The digest names the whole dataset in one
// hash:
//
//   SHA-256( "shoal-manifest-2" ‖ LE32(token_bytes) ‖ LE32(files)
//            ‖ for each file: LE32(length of name) ‖ name ‖ LE64(bytes) ‖ root )
//
// Beside a file there may be NAME.blocks: the hashes of its blocks, 32 bytes each, one after the
// other (0.8 % of the data). With it a reader over HTTP need not fetch a whole MiB to check one
// block.
//
// Files stand in ascending order of name. A manifest that is read is not trusted: its text is
// bounded before it is parsed, every root is recomputed from its leaves, and the digest from the
// roots.

#include <stdint.h>

#include "common/base/fault.h"
#include "common/base/hash.h"

enum {
    MANIFEST_LEAF_BYTES = 1 << 20,
    MANIFEST_BLOCK_BYTES = 4096,
    MANIFEST_LEAF_BLOCKS = MANIFEST_LEAF_BYTES / MANIFEST_BLOCK_BYTES,
    MANIFEST_TEXT_MAX = 64 << 20, // Bytes of manifest.json: a dataset of about 1 TiB
};
#define MANIFEST_NAME   "manifest.json"
#define MANIFEST_BLOCKS ".blocks"

struct manifest_file {
    char *name;     // Owned; as token_dir_is_name allows
    uint64_t bytes; // 1 or more
    struct hash root;
    struct hash *leaves; // Owned
    uint64_t leaf_count; // ⌈bytes / MANIFEST_LEAF_BYTES⌉
};

struct manifest {
    uint32_t token_bytes;        // 2 or 4
    uint32_t file_count;         // 1 or more
    struct manifest_file *files; // Owned
    struct hash digest;
};

// Reads every byte of the token files in `dir`: about 0.7 GB/s, hashing included.
int manifest_build(const char *dir, uint32_t token_bytes, struct why *why,
                   struct manifest *ret_manifest);
void manifest_free(struct manifest *self); // Also of one that is all zero

// Durable before it returns.
int manifest_write(const struct manifest *self, const char *dir, struct why *why);

// Writes NAME.blocks for each file in `dir`, durably, and compares the files with the manifest.
int manifest_write_blocks(const struct manifest *self, const char *dir, struct why *why);

// FAULT_NOT_FOUND if there is none; FAULT_FORMAT, FAULT_LIMIT, FAULT_DIGEST for a bad one. Looks at
// no token file.
int manifest_read(const char *dir, struct why *why, struct manifest *ret_manifest);

// The same, for bytes from anywhere; `name` is for the text in *why.
int manifest_parse(const char *text, size_t count, const char *name, struct why *why,
                   struct manifest *ret_manifest);

// Compares the manifest with the files in `dir`: names, sizes, every leaf. FAULT_DIGEST with file
// and byte.
int manifest_verify(const struct manifest *self, const char *dir, struct why *why);

// How many bytes a leaf has: the last one fewer than MANIFEST_LEAF_BYTES.
size_t manifest_leaf_bytes(const struct manifest_file *file, uint64_t leaf);
uint64_t manifest_block_count(uint64_t bytes); // ⌈bytes / MANIFEST_BLOCK_BYTES⌉

// Compares the bytes of one leaf, wherever they come from, and gives the hashes of its blocks.
// FAULT_DIGEST.
int manifest_check_leaf(const struct manifest_file *file, uint64_t leaf, const uint8_t *bytes,
                        const char *path, struct why *why,
                        struct hash ret_blocks[MANIFEST_LEAF_BLOCKS]);

// The digest, from token_bytes and the names, bytes and roots of the files.
struct hash manifest_digest(const struct manifest *self);
