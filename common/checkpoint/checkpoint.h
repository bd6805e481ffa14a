#pragma once
// checkpoint -- directories from which a run can be restored and which other tools can read.
//
//      <root>/step-00000120/               a Hugging Face folder, readable by their tools
//          config.json                     the model, as the caller gave it
//          model.safetensors               the parameters, F32, the exact bits
//          tokenizer.json ...              if there were any
//          state-<item>.bin                the optimizer's state, one file per saved item
//          shoal.json                      the manifest: run, epoch, step, digest, layout hash,
//                                          position in the data, tags, SHA-256 of every other file
//      <root>/step-00000130.tmp-<pid>/     being written, or left by a writer that died
//
// A checkpoint is visible under its final name only when all of it is durable: every file is
// synced, then the directory; it is renamed, then the root is synced. An older checkpoint is
// deleted only after that, and it is renamed to a .tmp name first, so an incomplete checkpoint is
// never visible. Writing a step again swaps the two in one rename. A root belongs to one run and
// has one writer at a time (flock on the root; another writer gets FAULT_BUSY).
//
// A checkpoint is opened only if every file has the size and SHA-256 of the manifest, and the
// manifest has the SHA-256 of its own last line. A damaged one is refused by name; only the caller
// may choose an older one, from checkpoint_list. An empty root is FAULT_NOT_FOUND: nothing here
// starts from random weights. A forged checkpoint is found by the digest of its state, which the caller
// makes from what was loaded and compares with the run's.
//
// Names are made of checked parts only: no name from a file or a caller can leave its directory.
// Links inside checkpoints are not followed. One thread per open checkpoint.

#include "common/base/dirfile.h"
#include "common/base/fault.h"
#include "common/vector/layout.h"
#include "common/vector/state_cut.h"
#include "common/vector/tags.h"
#include <limits.h>

enum {
    CHECKPOINT_STEP_MAX = 99999999,
    CHECKPOINT_RUN_MAX = 63,                // Bytes of a run's id: A-Z a-z 0-9 . _ -
    CHECKPOINT_DONE_MAX = 65536,            // Intervals of each list of samples
    CHECKPOINT_FILES_MAX = 64,              // Files in one checkpoint, the manifest aside
    CHECKPOINT_ITEMS_MAX = 32,              // State items
    CHECKPOINT_LIST_MAX = 4096,             // Checkpoints in one root
    CHECKPOINT_SMALL_BYTES_MAX = 256 << 20, // Of any file except parameters and state
};
#define CHECKPOINT_NUMBER_MAX (((uint64_t)1 << 53) - 1) // Exact in any JSON reader

#define CHECKPOINT_MANIFEST "shoal.json"
#define CHECKPOINT_CONFIG   "config.json"
#define CHECKPOINT_PARAMS   "model.safetensors"

// What a manifest says of the run at this step. All numbers up to CHECKPOINT_NUMBER_MAX.
struct checkpoint_info {
    char run[CHECKPOINT_RUN_MAX + 1];
    uint64_t born_unix_ms; // When the run began: earlier ones may have its id. 0: not said
    uint64_t epoch;
    uint64_t step;      // Up to CHECKPOINT_STEP_MAX
    struct hash digest; // Of the state: checkpoint_digest. Of parameters alone: digest_of them
    struct hash params; // digest_of the parameters (merkle.h); filled in by checkpoint_write
    struct hash layout; // layout_hash; filled in by checkpoint_write
    uint64_t created_unix_s;
    uint64_t protocol; // WIRE_PROTOCOL when it was written
    // Position in the data: in this pass of pass_length samples, those below `cursor` were dealt
    // out. Two tidy lists of samples, with none in common: `done` were trained by commits; `failed`
    // lie below the cursor and were given up, so nobody is to train them. All others are still to
    // be trained.
    uint64_t pass, pass_length, cursor;
    const struct interval *done, *failed;
    size_t done_count, failed_count;
};

struct checkpoint_file {
    const char *name;
    const void *bytes;
    size_t count;
};

// The other contents of a checkpoint. All borrowed for the call.
struct checkpoint_parts {
    const char *config_json;             // The text of config.json
    const char *tokenizer_dir;           // Or NULL. Of hf_folder_beside, the files that are there
                                         // are copied
    const struct checkpoint_file *files; // More files, with any contents
    size_t file_count;
    const struct tags *state;  // Registered items, or NULL
    const void *const *values; // For each item its whole value, or NULL: not saved
    unsigned keep;             // Checkpoints that stay, this one included; at least 1
    uint64_t spare;            // The checkpoint of this step stays too; 0: none
};

// ---- Writing ----

// Removes the .tmp folders of writers that died. FAULT_BUSY if a writer is at work in the root.
int checkpoint_clean(const char *root, struct why *why);

// The digest of the state that members hold alike (common/vector/state_cut.h): the parameters, and the
// saved items of parts->state without those of the tag drop, in their order. FAULT_LIMIT for more than
// STATE_ITEMS_MAX.
int checkpoint_digest(const struct checkpoint_parts *parts, const struct layout *layout,
                      const float *params, struct why *why, struct hash *ret_digest);

// Writes the checkpoint of info->step. The layout must be all F32, and the state must have
// info->digest (FAULT_DIGEST). On failure (such as FAULT_DISK_FULL) older checkpoints are unchanged
// and nothing of the new one is left; only if the very last fsync fails does it stay, visible but
// perhaps not durable. If only the removal of an old checkpoint failed, the result is 0 and
// `why` says so; else `why` is empty.
int checkpoint_write(const char *root, const struct checkpoint_info *info,
                     const struct checkpoint_parts *parts, const struct layout *layout,
                     const float *params, struct why *why);

// ---- Reading ----

struct checkpoint_seen {
    uint64_t born_unix_ms, step, epoch;
    int fault;
}; // fault 0: valid, and of this run

// All checkpoints in the root, newest step first, each completely verified. There must be room for
// CHECKPOINT_LIST_MAX.
int checkpoint_list(const char *root, const char *run, struct why *why,
                    struct checkpoint_seen *ret_list, size_t *ret_count);

typedef struct checkpoint checkpoint_t;

// Takes the path of a checkpoint or of a save in pieces apart: "<root>/step-00000120", with or without a slash behind
// it. FAULT_USAGE: it does not end so.
int checkpoint_split(const char *folder, struct why *why, char ret_root[PATH_MAX],
                     uint64_t *ret_step);

// Opens and verifies. FAULT_NOT_FOUND: there is none. FAULT_CORRUPT, FAULT_DIGEST: it is damaged,
// and `why` says where. FAULT_FOREIGN: it is of another run; `run` NULL: of any. FAULT_UNSUPPORTED: of another version.
// The newest is the one of the highest step.
int checkpoint_open(const char *root, uint64_t step, const char *run, struct why *why,
                    checkpoint_t **ret_checkpoint);
int checkpoint_open_newest(const char *root, const char *run, struct why *why,
                           checkpoint_t **ret_checkpoint);
void checkpoint_close(checkpoint_t **self);

const struct checkpoint_info *checkpoint_info(const checkpoint_t *self); // Lives as long as self

// All parameters (layout->total floats), with info->params as their digest, or FAULT_DIGEST; a layout
// of another hash is FAULT_FOREIGN, a number that is not finite FAULT_NAN. After a fault `params` must
// not be used.
int checkpoint_load_params(const checkpoint_t *self, const struct layout *layout, float *params,
                           struct why *why);

// The elements `want` of the parameters, for a member that holds an interval only. The file's
// SHA-256 was checked when the checkpoint was opened. No caller yet but checkpoint_load_params: a
// member that holds a share will load its interval only.
int checkpoint_load_interval(const checkpoint_t *self, const struct layout *layout,
                             struct interval want, float *values, struct why *why);

// The elements `want` of a state item, as registered now: tag and sizes must be the saved ones
// (FAULT_FOREIGN), a value must have been saved (FAULT_NOT_FOUND). No caller yet that wants a part:
// a member that holds a share will load its interval alone.
int checkpoint_load_state(const checkpoint_t *self, const struct tags_item *item,
                          struct interval want, void *value, struct why *why);

// Any small file of the checkpoint (config.json, an extra), with a zero behind it that is not
// counted. The caller frees it.
int checkpoint_load_file(const checkpoint_t *self, const char *name, struct why *why,
                         char **ret_bytes, size_t *ret_count);
