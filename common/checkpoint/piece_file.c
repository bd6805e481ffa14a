// A write goes by pairs of leaves: it hashes two and gives them to the kernel, while they are still in
// the cache. Leaves that are wanted whole are read to their place, some at a time; the two at the ends,
// if they are wanted in part, are read beside it.
#include "common/checkpoint/piece_file.h"
#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/vector/state_cut.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)PIECE_LEAF_BYTES == (int)STATE_LEAF_BYTES,
               "a leaf of a file is one of the state's digest");

// A mebibyte: few system calls, and it is in the cache when it is hashed.
enum { LEAVES_AT_ONCE = 16 };

static uint64_t leaves_of(uint64_t count)
{
    return count / PIECE_LEAF_BYTES + (count % PIECE_LEAF_BYTES != 0);
}

static size_t leaf_bytes(uint64_t count, uint64_t leaf)
{
    const uint64_t rest = count - leaf * PIECE_LEAF_BYTES;
    return rest < PIECE_LEAF_BYTES ? (size_t)rest : PIECE_LEAF_BYTES;
}

uint64_t piece_file_bytes(uint64_t count) { return count + leaves_of(count) * HASH_BYTES; }

// Hashes the leaf `first`, and with it the next one if both are whole: two at once (merkle.h). Returns how
// many.
static uint64_t hash_next(const uint8_t *bytes, uint64_t count, uint64_t first,
                          struct hash ret_leaves[2])
{
    const uint64_t leaves = (first + 2) * PIECE_LEAF_BYTES <= count ? 2 : 1;
    merkle_leaves(bytes + first * PIECE_LEAF_BYTES, leaf_bytes(count, first), leaves, ret_leaves);
    return leaves;
}

struct hash piece_root(const void *bytes, uint64_t count)
{
    struct merkle tree = { 0 };
    struct hash next[2];
    for (uint64_t i = 0, leaves; i < leaves_of(count); i += leaves) {
        leaves = hash_next(bytes, count, i, next);
        for (uint64_t k = 0; k < leaves; k++) merkle_add(&tree, &next[k]);
    }
    return merkle_end(&tree);
}

// ---- writing ------------------------------------------------------------------------------------

static int write_leaves(struct dirfile *file, const uint8_t *bytes, uint64_t count,
                        struct hash *leaves, struct why *why)
{
    for (uint64_t i = 0, done; i < leaves_of(count); i += done) {
        done = hash_next(bytes, count, i, leaves + i);
        const uint64_t at = i * PIECE_LEAF_BYTES, end = (i + done) * PIECE_LEAF_BYTES;
        const int rc =
            dirfile_add(file, bytes + at, (size_t)((end < count ? end : count) - at), why);
        if (rc < 0) return rc;
    }
    return dirfile_add(file, leaves, (size_t)leaves_of(count) * HASH_BYTES, why);
}

int piece_file_write(int dir, const char *name, const void *bytes, uint64_t count, struct why *why,
                     struct hash *ret_root)
{
    ensure(count > 0);
    struct dirfile file;
    struct hash *leaves = malloc((size_t)leaves_of(count) * HASH_BYTES);
    if (!leaves) return why_set(why, FAULT_MEMORY, "%s: no memory for its hashes", name);
    int rc = dirfile_begin_direct(&file, dir, name, why);
    if (rc == 0) {
        uint64_t written;
        rc = write_leaves(&file, bytes, count, leaves, why);
        if (rc < 0) dirfile_abandon(&file);
        else rc = dirfile_end(&file, why, NULL, &written);
    }
    if (rc == 0) *ret_root = merkle_root(leaves, (size_t)leaves_of(count));
    free(leaves);
    return rc;
}

// ---- reading ------------------------------------------------------------------------------------

static int read_hashes(struct piece_file *self, const struct hash *root, uint64_t bytes,
                       struct why *why)
{
    char has[HASH_HEX], wants[HASH_HEX];
    const size_t leaves = (size_t)leaves_of(self->count);
    if (bytes != piece_file_bytes(self->count))
        return why_set(why, FAULT_CORRUPT,
                       "%s has %" PRIu64 " bytes; a piece of %" PRIu64 " bytes has %" PRIu64
                       " with its hashes; refused",
                       self->name, bytes, self->count, piece_file_bytes(self->count));
    self->leaves = malloc(leaves * HASH_BYTES);
    if (!self->leaves)
        return why_set(why, FAULT_MEMORY, "%s: no memory for its hashes", self->name);
    const int rc =
        dirfile_read(self->fd, self->name, self->count, self->leaves, leaves * HASH_BYTES, why);
    if (rc < 0) return rc;
    const struct hash is = merkle_root(self->leaves, leaves);
    if (hash_equal(&is, root)) return 0;
    return why_set(why, FAULT_DIGEST,
                   "%s: its hashes have the root %s, the manifest says %s; refused", self->name,
                   hash_to_hex(&is, has), hash_to_hex(root, wants));
}

int piece_file_open(int dir, const char *name, uint64_t count, const struct hash *root,
                    struct why *why, struct piece_file *ret_file)
{
    uint64_t bytes;
    struct piece_file self = { .fd = -1, .name = name, .count = count };
    ensure(count > 0);
    int rc = dirfile_open(dir, name, false, why, &self.fd, &bytes);
    if (rc == FAULT_NOT_FOUND) return why_wrap(why, FAULT_CORRUPT, "a piece is missing");
    if (rc < 0) return rc;
    rc = read_hashes(&self, root, bytes, why);
    if (rc < 0) piece_file_close(&self);
    else *ret_file = self;
    return rc;
}

// Of leaves that were read whole; `first` is the first of them. By pairs, as they were written.
static int check_leaves(const struct piece_file *self, uint64_t first, uint64_t end,
                        const uint8_t *bytes, struct why *why)
{
    const uint64_t begins = first * PIECE_LEAF_BYTES;
    const uint64_t rest = self->count - begins, all = (end - first) * PIECE_LEAF_BYTES;
    struct hash next[2];
    for (uint64_t i = 0, done; i < end - first; i += done) {
        done = hash_next(bytes, all < rest ? all : rest, i, next);
        for (uint64_t k = 0; k < done; k++) {
            const uint64_t leaf = first + i + k;
            // mutant: pieces: a leaf of another hash is taken
            if (hash_equal(&next[k], &self->leaves[leaf])) continue;
            return why_set(why, FAULT_DIGEST,
                           "%s: bytes %" PRIu64 " to %" PRIu64
                           " are not those that were written; refused",
                           self->name, leaf * PIECE_LEAF_BYTES,
                           leaf * PIECE_LEAF_BYTES + leaf_bytes(self->count, leaf));
        }
    }
    return 0;
}

// Leaves [first, end), which lie whole in what is wanted, to their place.
static int read_whole(const struct piece_file *self, uint64_t first, uint64_t end, uint8_t *bytes,
                      struct why *why)
{
    const uint64_t begins = first * PIECE_LEAF_BYTES, ends = end * PIECE_LEAF_BYTES;
    const uint64_t count = (ends < self->count ? ends : self->count) - begins;
    const int rc = dirfile_read(self->fd, self->name, begins, bytes, (size_t)count, why);
    return rc < 0 ? rc : check_leaves(self, first, end, bytes, why);
}

// The part of one leaf that lies in [offset, end), to where it belongs in `bytes`, which begins at
// `offset`.
static int read_part(const struct piece_file *self, uint64_t leaf, uint64_t offset, uint64_t end,
                     uint8_t *bytes, uint8_t *beside, struct why *why)
{
    const uint64_t begins = leaf * PIECE_LEAF_BYTES, has = leaf_bytes(self->count, leaf);
    const uint64_t from = begins > offset ? begins : offset;
    const uint64_t to = begins + has < end ? begins + has : end;
    const int rc = read_whole(self, leaf, leaf + 1, beside, why);
    if (rc == 0) memcpy(bytes + (from - offset), beside + (from - begins), (size_t)(to - from));
    return rc;
}

int piece_file_read(const struct piece_file *self, uint64_t offset, void *bytes, uint64_t count,
                    struct why *why)
{
    ensure(offset <= self->count && count <= self->count - offset);
    if (count == 0) return 0;
    uint8_t *beside = malloc(PIECE_LEAF_BYTES), *to = bytes;
    if (!beside) return why_set(why, FAULT_MEMORY, "%s: no memory for a leaf", self->name);
    const uint64_t end = offset + count,
                   last = end == self->count ? leaves_of(end) : end / PIECE_LEAF_BYTES;
    uint64_t leaf = offset / PIECE_LEAF_BYTES;
    int rc = 0;
    if (offset % PIECE_LEAF_BYTES) rc = read_part(self, leaf++, offset, end, to, beside, why);
    while (rc == 0 && leaf < last) {
        const uint64_t next = last - leaf < LEAVES_AT_ONCE ? last : leaf + LEAVES_AT_ONCE;
        rc = read_whole(self, leaf, next, to + (leaf * PIECE_LEAF_BYTES - offset), why);
        leaf = next;
    }
    if (rc == 0 && leaf * PIECE_LEAF_BYTES < end)
        rc = read_part(self, leaf, offset, end, to, beside, why);
    free(beside);
    return rc;
}

void piece_file_close(struct piece_file *self)
{
    if (self->fd >= 0) close(self->fd);
    free(self->leaves);
    *self = (struct piece_file){ .fd = -1 };
}
