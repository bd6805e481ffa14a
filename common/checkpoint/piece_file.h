#pragma once
// piece_file -- one file of a save: the bytes of a piece and behind them the hash of each of their
// leaves. So a reader of a few bytes can check them without reading all others.
//
//     | leaf 0, 64 KiB | leaf 1, 64 KiB | .. | last leaf, 1 byte to 64 KiB | hash 0 | hash 1 | .. |
//
// A leaf has STATE_LEAF_BYTES (common/vector/state_cut.h), its hash is merkle_leaf of it, and the
// root of the hashes, merkle_root, is the name of the piece. The manifest has it. A piece of no
// bytes has no file.
//
// All return 0 or a negative enum fault. Any thread, one file at a time.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <stdint.h>

enum { PIECE_LEAF_BYTES = 65536 };

// Creates `name`, which must not exist, in the open folder `dir`, and makes it durable. Hashes
// while it writes, in this thread. After a fault what was written stays: the caller removes the
// folder.
int piece_file_write(int dir, const char *name, const void *bytes, uint64_t count, struct why *why,
                     struct hash *ret_root);

// The root that piece_file_write would return. None for no bytes.
struct hash piece_root(const void *bytes, uint64_t count);

uint64_t piece_file_bytes(uint64_t count); // Of the file of a piece of so many bytes

struct piece_file {
    int fd;
    const char *name;    // Borrowed until piece_file_close
    uint64_t count;      // Bytes of the piece
    struct hash *leaves; // Owned
};

// Opens a piece of `count` bytes with this root. Reads the hashes alone. FAULT_CORRUPT: the file is
// missing or has another size; FAULT_DIGEST: the hashes do not have the root.
int piece_file_open(int dir, const char *name, uint64_t count, const struct hash *root,
                    struct why *why, struct piece_file *ret_file);

// Reads bytes [offset, offset + count), and of the leaves at the two ends the rest too, which it
// checks and leaves out. FAULT_DIGEST: a leaf has another hash; `bytes` must not be used then.
int piece_file_read(const struct piece_file *self, uint64_t offset, void *bytes, uint64_t count,
                    struct why *why);

void piece_file_close(struct piece_file *self);
