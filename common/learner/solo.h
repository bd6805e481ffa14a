#pragma once
// solo -- one trainer alone: gradient, optimizer and update in one place, without another actor.
//
//     batch ─▶ gradient ─▶ norm, clip ─▶ a step of the optimizer
//
// It works on any device of compute.h and with any optimizer of optimizer.h; neither is named here.
// With DisTrO and one lane it is the arithmetic of a run with one trainer; with AdamW that of a
// window, with any number of members, that has the same lanes (common/pace/windows). A step that
// fails leaves parameters and optimizer as they were. On the CPU the bits are the same for every
// number of threads and every instruction set; they depend on lanes and micro_batch (batch.h). A
// GPU promises no bits; lanes are nothing to it.

#include "common/kernel/gemm.h"
#include "common/learner/state_pieces.h"

struct solo_options {
    const struct optimizer_kind *optimizer;
    struct optimizer_settings settings;
    double clip_norm; // Above 0; 0: no clipping
    uint32_t seq, batch_max, micro_batch;
    uint32_t lanes; // 1..LANES_MAX: the parts that a batch is summed in
    enum gemm_precision precision;
    bool recompute; // Of compute_config
};

// What is trained, and on what. All of it is borrowed for the life of a solo_t.
struct solo_place {
    const struct compute_device *device;
    const struct model_shape *shape;
    const struct layout *layout; // Of the shape's tensors
    pool_t *pool;
};

// The memory that solo_new will take. FAULT_RANGE, FAULT_MEMORY.
int solo_memory(const struct solo_place *place, const struct solo_options *options, struct why *why,
                struct compute_memory *ret_memory);

typedef struct solo solo_t;

// FAULT_RANGE, FAULT_MEMORY, FAULT_UNREACHABLE. Fill solo_params, then solo_push.
int solo_new(const struct solo_place *place, const struct solo_options *options, struct why *why,
             solo_t **ret_solo);
void solo_destroy(solo_t **self); // NULL is allowed

// The parameters on this side (compute_host); solo_push brings them to the device, and the
// optimizer forgets its state; solo_pull brings them back.
float *solo_params(solo_t *self);
int solo_push(solo_t *self, struct why *why);
int solo_pull(solo_t *self, struct why *why);

struct solo_result {
    double loss, norm;
}; // Before the update; norm: before it was clipped

// One step on `count` samples, 1..batch_max, at the learning rate `rate`. FAULT_NAN for a loss or a
// gradient that is not finite, FAULT_RANGE for a token outside the vocabulary.
int solo_step(solo_t *self, const uint32_t *tokens, uint32_t count, float rate, struct why *why,
              struct solo_result *ret_result);

// The loss on `count` samples, without learning from them.
int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss);

// The digest of the parameters, and that of the state: of what members of a run with this optimizer
// hold alike (common/vector/state_cut.h), and so the digest that such a run names. With DisTrO they
// are equal. FAULT_MEMORY.
int solo_digest(solo_t *self, struct why *why, struct hash *ret_params, struct hash *ret_state);

// The optimizer's whole state, for a checkpoint (state_save), and back from one (state_load). Load
// after solo_push, which forgets.
int solo_save_state(solo_t *self, struct why *why, struct state *ret_state);
int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why);

// Parameters and the optimizer's state as the parts of a save with one worker (state_pieces.h), good
// until the next step; and the most bytes that they have together.
int solo_parts(solo_t *self, struct why *why, struct pieces_part ret_parts[STATE_PARTS_MAX],
               size_t *ret_count);
uint64_t solo_parts_bytes(solo_t *self);

// Both from a save with any number of workers, then solo_push is not needed. *ret_is_fresh: what the
// optimizer drops in another world begins with zeros.
int solo_load_pieces(solo_t *self, const pieces_t *pieces, const struct layout *layout,
                     struct why *why, bool *ret_is_fresh);
