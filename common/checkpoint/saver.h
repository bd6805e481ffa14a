#pragma once
// saver -- saves a worker's part of a state (pieces.h) while the work goes on.
//
//     saver_take    the parts are copied: this is all that the work waits for
//         │
//         ▼ the saver's thread
//     pieces_clean_attempts ─▶ pieces_write ─▶ pieces_seal ─▶ pieces_clean, if this call made the
//     save whole
//         │
//         ▼
//     saver_result  what became of it
//
// There is memory for one copy, taken and touched in saver_new, so that saver_take costs a memcpy
// and no page faults. While a save is being written, or its result has not been read, another one
// is refused: the caller skips it. If several workers save together, all must skip the same ones.
//
// A save that fails leaves those before it as they were. Its attempt is removed: at once if no other
// worker takes part in it, else before the next save is written. So no save may begin while another
// worker still writes an earlier one.
// Each function may be called by one thread, the caller's.

#include "common/checkpoint/pieces.h"

typedef struct saver saver_t;

struct saver_options {
    const char *root; // An existing folder; copied
    bool makes_root;  // If it is not there, each save makes it; the folder above it must be there
    const char *run;  // Its id; copied
    uint64_t born_unix_ms; // As in struct pieces_save
    // The tensors of the items that have layout->total elements, or NULL. Borrowed for the saver's
    // life.
    const struct layout *layout;
    uint64_t bytes; // The most that the parts of one save have together
    unsigned keep;  // How many saves stay, at least 1
    // Called by the saver's thread for a save that it has made whole: its digest, as the caller counts it. Or NULL.
    int (*digest)(const struct pieces_save *save, struct why *why, struct hash *ret_digest);
    // Called by the saver's thread when a save has ended, so that the caller asks for its result. Or NULL.
    void (*ended)(void *arg);
    void *arg;
};

struct saver_result {
    int rc;         // 0, or the fault of why
    struct why why; // Also of a rc 0: what could not be cleaned; "": nothing
    uint64_t step, attempt;
    uint64_t bytes;    // Of the parts
    uint64_t write_us; // How long the thread took
    // The first worker that has not written its part yet; `workers`: none, the save is whole. The
    // worker that writes last makes it whole.
    uint32_t missing, workers;
    // The save before this one did not become whole: its step, and the first worker whose part is not there. All have
    // written by now, so that one writes elsewhere, or failed. Step 0: it did, or nobody can tell any more.
    uint64_t unfinished;
    uint32_t unfinished_missing;
    struct hash digest;    // Of one that is whole; none: `digest` of the options failed
    struct why digest_why; // How it failed; "": it did not
};

// FAULT_MEMORY, FAULT_RANGE (keep 0, root or run too long).
int saver_new(const struct saver_options *options, struct why *why, saver_t **ret_saver);

// Ends what is being written first. NULL is allowed.
void saver_destroy(saver_t **self);

// Copies the parts and begins to write them as this worker's part of the save. `save->root`, `run`,
// `born_unix_ms` and `layout` do not matter. FAULT_BUSY: see above; nothing is copied. FAULT_RANGE:
// the parts are more than PIECES_ITEMS_MAX, or more bytes than the options say. What else may be
// wrong with them is found by pieces_write, in the thread.
int saver_take(saver_t *self, const struct pieces_save *save, const struct pieces_part *parts,
               size_t count, struct why *why);

bool saver_is_writing(saver_t *self);
bool saver_has_ended(saver_t *self); // There is a result to ask for

// True if a save has ended since the last call: *ret_result says how.
bool saver_result(saver_t *self, struct saver_result *ret_result);

// The same, but waits for a save that is being written. False: there is none.
bool saver_wait(saver_t *self, struct saver_result *ret_result);
