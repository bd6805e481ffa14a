#pragma once
// solo -- one trainer alone: gradient, optimizer and update in one place, without another actor.
//
//     batch ─▶ gradient ─▶ norm, clip ─┬ SOLO_ADAMW   adamw_step                        (adamw.h)
//                                      └ SOLO_DISTRO  compress ─▶ apply that one result ─▶ adopt
//                                                                        (distro.h, apply.h)
//
// SOLO_DISTRO is a run's arithmetic with one trainer in it. A step that fails leaves parameters and
// optimizer as they were. The same bits for every number of threads and instruction set; the bits
// depend on micro_batch (batch.h).

#include "common/learn/adamw.h"
#include "common/learn/batch.h"
#include "common/vector/checkpoint.h"

enum solo_kind { SOLO_ADAMW, SOLO_DISTRO };

struct solo_options {
    enum solo_kind kind;
    struct adamw_options adamw;         // weight_decay counts for SOLO_DISTRO too
    float compression_decay;            // SOLO_DISTRO: of distro_new
    uint32_t chunk, topk;               // Of chunks_of_model and payload_form_new
    bool one_bit;
    double clip_norm;                   // Above 0; 0: never
    uint32_t seq, batch_max, micro_batch;
    enum gemm_precision precision;      // Of model_options, as is recompute
    bool recompute;
};

// What solo_new and its caller's N parameters take, in bytes; the tokens of a batch and what the
// compressor knows of its chunks are small beside it and left out.
struct solo_memory { uint64_t parameters, gradient, optimizer, activations, total; };
struct solo_memory solo_memory(const struct model_shape *shape, const struct solo_options *options,
                               uint32_t threads);

typedef struct solo solo_t;

// Borrows `layout` (that of the shape's tensors), `params` (N floats, which the steps change) and
// `pool` for its life. FAULT_RANGE, FAULT_MEMORY.
int solo_new(const struct model_shape *shape, const struct layout *layout, float *params,
             const struct solo_options *options, pool_t *pool, struct why *why, solo_t **ret_solo);
void solo_destroy(solo_t **self);       // NULL is allowed

struct solo_result { double loss, norm; };      // Before the update; norm: before it was clipped

// One step on `count` samples, 1..batch_max, at the learning rate `rate`. FAULT_NAN for a loss or a
// gradient that is not finite, FAULT_RANGE for a token outside the vocabulary.
int solo_step(solo_t *self, const uint32_t *tokens, uint32_t count, float rate, struct why *why,
              struct solo_result *ret_result);

// The loss on `count` samples that nothing is learned from.
int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss);

// The optimizer's state by tag (common/vector/tags.h): adamw.h's items, or DisTrO's residual, which
// drops: it belongs to this trainer. Registers them and gives their values, to be saved.
enum { SOLO_ITEMS = ADAMW_ITEMS };
int solo_add_state(const solo_t *self, struct tags *tags, struct why *why,
                   const void *ret_values[SOLO_ITEMS]);

// Takes the state back from a checkpoint that saved it. After a fault the state is that of
// solo_new.
int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why);
