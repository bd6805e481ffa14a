#pragma once
// learner_inside -- what the files of the learner's thread share; for common/learner alone.
//
//   learner.c          the thread: BUILD; it calls the others, none calls it
//   learner_load.c     LOAD, and the digest of what is held
//   learner_pin.c      PIN; where pins lie in files, on a thread of its own
//   learner_data.c     samples: a folder, files by HTTP, data-provider actors; each checked
//   learner_save.c     SAVE, on a thread of its own
//   learner_results.c  the strategy `distro`: TRAIN, APPLY
//   learner_audit.c      SHOW, RECOMPUTE
//   learner_windows.c  the strategies `allreduce` and `sharded`: windows, as the core gives, freezes and closes them
//   learner_step.c       one step of a window
//   learner_late.c       which member was late in it
//   learner_check.c      the part of the state that members compare before it
//   learner_pieces.c     our share of the state, saved beside the steps
//   learner_squares.c    who measures which piece of its norm
//   learner_shares.c     the strategy `sharded`: who holds which moments
//   learner_leases.c   the strategy of leases: a group of trainers and asynchronous servers
//   learner_leases_train.c, _serve.c, _settle.c, _save.c   what a trainer does in it, what a server does, how it
//                      ends, and how servers save it
//   learner_saver.c    our share of the state goes to the shared folder
//   learner_links.c    links of a group: opened, and where they end
//   learner_gather.c   the owners of shares send them to all
//   learner_away.c     what of a state is not in memory
//   learner_inside.c   what each job begins and ends with

#include "common/learner/learner.h"
#include "common/learner/past.h"
#include "common/bulk/bulk_client.h"
#include "common/checkpoint/pieces.h"
#include "common/data/proof.h"
#include "common/data/provider.h"
#include "common/model/model_config.h"
#include "common/optimizer/result.h"
#include "common/vector/layout.h"

enum { REASON_MAX = 191 };

struct learner;
struct learner_saving;
struct learner_pinning;

// What a replica does beyond holding a state: it follows from the run's strategy.
struct learner_strategy {
    uint16_t config; // The kind of its part of CONFIG
    // Reads the part: sets self->optimizer_kind, self->settings, self->same_bits, and what is its own. Refuses a run that
    // this member cannot take part in.
    int (*read)(struct learner *self, const void *part, struct why *why);
    void (*plan)(struct learner *self, struct compute_config *config); // Or NULL: as it is
    // Host bytes that `open` and the jobs take beside device, optimizer and `pins`; or NULL: a few.
    // *ret_later: what they take only when other members make it necessary, at most.
    uint64_t (*memory)(struct learner *self, uint64_t *ret_later);
    uint32_t pins; // Steps whose state the blob store keeps for peers, up to BLOB_PINS_MAX; 0: one
    // A trainer's pins lie in files; NULL: they do not. A checkpointer's lie in memory, from where it writes them to
    // checkpoints.
    bool (*pins_in_files)(const struct learner *self);
    // A trainer keeps only its share of the optimizer's state in memory (learner_away.c). NULL: all of it.
    bool (*shares_state)(const struct learner *self);
    int (*open)(struct learner *self, struct why *why); // The model has been built
    void (*close)(struct learner *self);                // Also after half an open
    void (*built)(struct learner *self);                // BUILT has been answered. Or NULL
    // A state has been loaded: from these pieces, of which it may keep what is its own; NULL: from elsewhere. Or NULL
    int (*loaded)(struct learner *self, const pieces_t *pieces, struct why *why);
    bool (*hear)(struct learner *self, const struct job *job); // False: it does not know the kind
    // Work that goes on while there is no job; NULL: it has none. `busy`: there is such work.
    bool (*busy)(const struct learner *self);
    void (*work)(struct learner *self);
};
extern const struct learner_strategy learner_results, learner_windows, learner_leases;

struct learner {
    const struct learner_options *options;
    struct worker *worker;
    bool built, holding;
    bool share_only; // Our share of the state is here, and not the rest (learner_shares.c)
    // All of the state is here, and what members share out of it lies in `moments`, or in the pin of this step
    // (learner_away.c). `has_share`: our share of it is in memory as well; it is not once a state has been loaded.
    bool away, has_moments, has_share;
    struct state_copy moments; // And a server's parameters
    float *gather_room;        // Of learner_gather.c; NULL: not taken yet
    uint64_t gather_floats;
    bool pins_in_files;        // Pins lie in files, and so does a state that is fetched
    struct job job;            // Taken and not yet done, if has_job
    bool has_job, has_ended;   // has_ended: the thread is asked to end
    struct wire_config config; // Without the strategy's part
    const struct learner_strategy *strategy;
    const struct optimizer_kind *optimizer_kind;
    struct optimizer_settings settings;
    bool same_bits;                     // All trainers of the run must compute the same bits
    struct wire_rounds_config rounds;   // Of learner_results
    struct learner_window_work *window; // Of learner_windows
    struct learner_lease_work *lease;   // Of learner_leases
    uint64_t pushes; // The number of the newest push of this process: a new model numbers them on
    char config_json[MODEL_CONFIG_BYTES_MAX + 1];
    struct model_shape shape;
    struct layout layout;
    struct layout_tensor *tensors;
    pool_t *pool;
    struct compute_config compute_config;
    uint64_t memory_bytes; // That it plans to take, without what the strategy takes later
    optimizer_t *optimizer;
    const payload_form_t *form; // Of results; NULL: the strategy has none
    compute_t *compute;
    provider_t *provider;
    struct bulk_client *client; // Of data-provider actors
    struct dataset dataset;     // Once known: their samples are checked against it
    struct hash data, order;    // The dataset and its order, by the TRAIN in hand
    uint64_t floats, step;
    struct hash digest;
    struct state_cut cut;  // The state that members hold alike: parameters, the optimizer's items
    struct hash *leaves;   // Of all of it, as of the newest digest
    float *params, *spare; // compute_host of the replica; of learner_results, for audits
    uint64_t spare_step; // The parameters in `spare` are of this step and digest; none: of no step
    struct hash spare_digest;
    struct hash
        gradient_of; // The gradient is that of this result of another member; none: of no such result
    uint32_t *tokens; // Of one batch
    uint64_t tokens_max;
    uint8_t *payload;
    struct past past;                 // For audits
    struct hash candidate;            // Payload that the candidate residual belongs to
    struct wire_holder providers[16]; // Of the TRAIN in hand
    uint32_t providers_count;
    struct learner_pinning *pinning; // The pin that is being written (learner_pin.c), or NULL
    struct learner_saving *saving; // The checkpoint that is being written (learner_save.c), or NULL
};

// A reason as a field of an answer: cut to fit, no control characters.
void learner_put_reason(char reason[REASON_MAX + 1], const struct why *why);

// Puts bytes that peers will ask for into the blob store. If the disk fails they are served from
// memory for as long as the process lives, and a line of the log says so. FAULT_LIMIT,
// FAULT_MEMORY: not kept.
int learner_keep(struct learner *self, const void *bytes, size_t count, struct why *why,
                 struct hash *ret_hash);

int learner_open_data(struct learner *self, struct why *why);
void learner_close_data(struct learner *self); // Closes what was opened

// Some samples, in self->tokens, and where to get them. FAULT_RANGE, FAULT_MEMORY, or what the
// source says.
struct learner_samples {
    const struct interval *list;
    uint32_t list_count;
    const struct wire_holder *providers;
    uint32_t providers_count;
    struct hash data, order;
};
int learner_read_samples(struct learner *self, const struct learner_samples *samples,
                         struct why *why, uint64_t *ret_count);

// Takes the next job into self->job, if none is there; waits up to timeout_ms, -1: for ever.
enum worker_turn learner_next(struct learner *self, int timeout_ms);

// The digest of the state as it is, to self->digest, and its leaves. FAULT_NOT_FOUND: not all of it is here.
int learner_take_digest(struct learner *self, struct why *why);
// Puts the held state, whose digest was taken, into the blob store for peers. A pin in a file is still being written
// when learner_pin returns 0; if that fails, a line of the log says so. Call _wait before the state or its leaves
// change: the thread that writes reads them.
int learner_pin(struct learner *self, struct why *why);
void learner_pin_wait(struct learner *self);
// The same where the member can go on without: a fault is a line in the log.
void learner_offer(struct learner *self);

void learner_load(struct learner *self, const struct wire_load *job);
void learner_show(struct learner *self, const struct wire_show *job);
void learner_recompute(struct learner *self, const struct wire_recompute *job);

// Begins to write a checkpoint; the next jobs go on meanwhile. _has_ended: a SAVE has ended and is not answered yet.
// _look answers it then. _wait waits for a SAVE that is under way, if there is one, and answers it.
void learner_save(struct learner *self, const struct wire_save *job);
bool learner_save_has_ended(const struct learner *self);
void learner_save_look(struct learner *self);
void learner_save_wait(struct learner *self);
