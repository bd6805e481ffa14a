#pragma once
// solo -- one trainer alone: gradient, optimizer and update in one place, without another actor.
//
//     batch ─▶ gradient ─▶ norm, clip ─┬ SOLO_ADAMW   a step of adamw.h
//                                      └ SOLO_DISTRO  compress ─▶ apply that one result ─▶ adopt
//
// on whatever device compute.h has. SOLO_DISTRO is a run's arithmetic with one trainer in it. A step
// that fails leaves parameters and optimizer as they were. On the CPU the same bits for every number
// of threads and instruction set; they depend on micro_batch (batch.h).

#include "common/checkpoint/checkpoint.h"
#include "common/compute/compute.h"
#include "common/kernel/gemm.h"

enum solo_kind { SOLO_ADAMW, SOLO_DISTRO };

struct solo_options {
    enum solo_kind kind;
    struct adamw_options adamw; // weight_decay counts for SOLO_DISTRO too
    float compression_decay;    // SOLO_DISTRO: compute_config.decay
    uint32_t chunk, topk;       // Of payload_form_of_model
    bool one_bit;
    double clip_norm; // Above 0; 0: never
    uint32_t seq, batch_max, micro_batch;
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

// What solo_new will take. FAULT_RANGE, FAULT_MEMORY.
int solo_memory(const struct solo_place *place, const struct solo_options *options, struct why *why,
                struct compute_memory *ret_memory);

typedef struct solo solo_t;

// FAULT_RANGE, FAULT_MEMORY, FAULT_UNREACHABLE. Fill solo_params, then solo_push.
int solo_new(const struct solo_place *place, const struct solo_options *options, struct why *why,
             solo_t **ret_solo);
void solo_destroy(solo_t **self); // NULL is allowed

// The parameters on this side: compute_host, compute_push (the optimizer forgets), compute_pull.
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

// The loss on `count` samples that nothing is learned from.
int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss);

// The optimizer's state by tag, to be saved: compute_pull_state.
enum { SOLO_ITEMS = COMPUTE_ITEMS };
int solo_pull_state(solo_t *self, struct tags *tags, struct why *why,
                    const void *ret_values[SOLO_ITEMS]);

// Takes the state back from a checkpoint that saved it, after solo_push. After a fault the state is
// that of solo_new.
int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why);
