#pragma once
// pieces -- state that W workers write side by side into a folder that all of them see, and that
// any number of workers reads.
//
//     <root>/                           of one run: <shared_dir>/<run>-<born>
//         meta-0123456789abcdef.json    the cut: items, tags, sizes, pieces, tensors. Named by
//                                       its SHA-256
//         step-00000120/                a whole save
//             adamw-m.0-16384           a piece: elements [0, 16384) of the item (piece_file.h)
//             adamw-m.16384-30000
//             schedule                  replicate: one copy for all
//             timer.worker-3            drop, custom: the value of one worker
//             shoal.json                the manifest: run, step, the hash of the cut, the root of
//                                       each piece
//         step-00000130.save-2/         being written: attempt 2
//             adamw-m.worker-0          a piece whose place follows from those before it
//             NOTE.worker-0             worker 0 is done
//
// Each worker calls pieces_write: it writes its pieces and then its note. The note says how many
// elements the worker has of each item, so no worker needs to know the sizes of the others. When
// all notes are there, one of them (or several, at the same time) calls pieces_seal. It adds the
// sizes up, names each piece by its interval, writes the cut if no file has it yet, then the
// manifest, and gives the folder its final name. So a save is whole or not there.
//
// What it asks of a shared file system (NFS, CephFS, GlusterFS): rename and mkdir are atomic, fsync
// works, and a file that was closed is seen by the others. It takes no lock.
//
// A reader checks each leaf of 64 KiB that it reads against the manifest (piece_file.h). So it
// reads what it asked for, the rest of the leaves at both ends, and 32 bytes for each leaf of the
// pieces that it touches.
//
// Names are made of checked parts: no name from a file or a caller leaves its folder. Links are not
// followed; only a reader's root may be one. All return 0 or a negative enum fault.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include "common/base/interval.h"
#include "common/checkpoint/checkpoint.h"
#include "common/vector/layout.h"
#include "common/vector/tags.h"

enum {
    PIECES_WORKERS_MAX = 1024,
    PIECES_ITEMS_MAX = 32,
    PIECES_ELEMENT_BYTES_MAX = 1 << 20, // A row of a table may be one element
};
#define PIECES_ELEMENTS_MAX ((uint64_t)1 << 40) // Of an item, and PIECES_BYTES_MAX of a piece
#define PIECES_BYTES_MAX    ((uint64_t)1 << 46)

// Which save, and who takes part. All workers of a save give the same, but for `worker`.
struct pieces_save {
    const char *root;      // An existing folder
    const char *run;       // Its id, as in checkpoint.h
    uint64_t born_unix_ms; // When the run began
    uint64_t step;         // Up to CHECKPOINT_STEP_MAX
    uint32_t attempt;      // From 1: a save that failed is begun again under the next number
    // For pieces_clean: it removes no save of this step or a later one. 0: none at all; UINT64_MAX: all but
    // the newest.
    uint64_t spare;
    uint32_t worker, workers;
    const struct layout
        *layout; // The tensors of the items that have layout->total elements, or NULL
};

// An item as one worker has it. Reshard: its part of the elements, perhaps none; the parts of the
// workers follow one another. Drop, custom: a value of its own, of any size. Replicate: the value
// that all have; worker 0 writes it, and pieces_seal refuses if another worker has other bytes.
struct pieces_part {
    const char *name; // As in tags.h
    enum tag tag;
    uint32_t element_bytes; // 1 to PIECES_ELEMENT_BYTES_MAX, the same for all workers
    uint64_t elements;
    const void *bytes; // Borrowed for the call
};

// ---- Writing ------------------------------------------------------------------------------------

// Writes what this worker has, then its note. FAULT_RANGE for an item without a tag, a bad name or
// size, one name twice; nothing is written then. After another fault the attempt is lost for all:
// see pieces_clean.
int pieces_write(const struct pieces_save *save, const struct pieces_part *parts, size_t count,
                 struct why *why);

// Makes the save visible if all workers have written; else *ret_missing is the first one that has
// not, and nothing is done. `*ret_missing` is save->workers if it is visible now, made so by this
// call or another. `save->worker` does not matter. FAULT_FOREIGN: the notes do not fit together,
// and `why` names the item and the two workers. A save of this step by an earlier attempt is
// replaced. FAULT_BUSY: it is by a later one, or cannot be read; it stays.
int pieces_seal(const struct pieces_save *save, struct why *why, uint32_t *ret_missing);

// Removes the attempts of this run below the step of `save` and, of that step, those below its attempt. Not while a
// worker may still write one of them. FAULT_FOREIGN: a save of another run is in the root; nothing is removed.
int pieces_clean_attempts(const struct pieces_save *save, struct why *why);

// The same; then removes all saves but the `keep` newest and those from the step save->spare on, the cuts that none of
// these has, and texts whose writer died. A save that is not whole is never counted. Not while a save is being sealed:
// its cut may be written and its manifest not.
int pieces_clean(const struct pieces_save *save, unsigned keep, struct why *why);

// ---- Reading ------------------------------------------------------------------------------------

// An item as it was saved: worker w had the elements [begins[w], begins[w + 1]) of it.
struct pieces_item {
    char name[TAGS_NAME_MAX + 1];
    enum tag tag;
    uint32_t element_bytes;
    uint64_t *begins; // workers + 1 of them; the last one is the number of all elements
};

struct pieces_meta {
    uint32_t workers;
    size_t count;
    struct pieces_item items[PIECES_ITEMS_MAX];
    struct layout layout; // No tensors: none was given
};

// What the manifest says of the save as a whole.
struct pieces_about {
    char run[CHECKPOINT_RUN_MAX + 1];
    uint64_t born_unix_ms, step, attempt, written_unix_s;
};

typedef struct pieces pieces_t;

// The steps of the saves in the root that are whole by their names and have a manifest, newest first. Room for
// CHECKPOINT_LIST_MAX.
int pieces_list(const char *root, struct why *why, uint64_t *ret_steps, size_t *ret_count);

// Whether this folder, <root>/step-00000120, is that of a save, whole or damaged. A checkpoint has a manifest as well, but
// also config.json.
bool pieces_is_save(const char *folder);

// Opens the save of a step: reads manifest and cut, and looks whether each piece is there in its
// size. FAULT_NOT_FOUND: there is no such step. FAULT_CORRUPT, FAULT_DIGEST, FAULT_FORMAT, FAULT_RANGE, FAULT_LIMIT: it
// is damaged, and `why` says where. FAULT_UNSUPPORTED: of a later version. FAULT_MEMORY. FAULT_FOREIGN: it is of another
// run. `run` NULL: of any.
int pieces_open(const char *root, uint64_t step, const char *run, struct why *why,
                pieces_t **ret_pieces);
void pieces_close(pieces_t **self);

// Both live as long as self.
const struct pieces_about *pieces_about(const pieces_t *self);
const struct pieces_meta *pieces_meta(const pieces_t *self);
const struct pieces_item *pieces_find(const pieces_t *self, const char *name); // Or NULL

// The elements `want` of an item, which lie within it (ensured), to `bytes`, from as many pieces as
// have some.
int pieces_read(const pieces_t *self, const struct pieces_item *item, struct interval want,
                void *bytes, struct why *why);

// The root of the leaves of an item as a whole, as in common/vector/state_cut.h, from the hashes
// behind its pieces: no leaf is read. So the digest of a state that was saved is known without its
// bytes. FAULT_UNSUPPORTED: a piece begins within a leaf.
int pieces_root(const pieces_t *self, const struct pieces_item *item, struct why *why,
                struct hash *ret_root);

// The leaves of an item as a whole, as many as its bytes have (common/vector/state_cut.h), from the same hashes; faults
// as pieces_root.
int pieces_leaves(const pieces_t *self, const struct pieces_item *item, struct why *why,
                  struct hash *ret_leaves);

// Reads and checks all of an item, a part at a time, in order. `visit` (NULL: none does) sees each part that is sound;
// `offset` is that of its first byte in the item. Its fault ends the walk.
typedef int pieces_visit(void *arg, uint64_t offset, const void *bytes, size_t count,
                         struct why *why);
int pieces_walk(const pieces_t *self, const struct pieces_item *item, pieces_visit *visit,
                void *arg, struct why *why);

// Reads and checks every leaf of every piece.
int pieces_verify(const pieces_t *self, struct why *why);
