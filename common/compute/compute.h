#pragma once
// compute -- what a device can do for a learner: hold one replica's parameters, find the gradient
// of a batch, make a result of it, apply a commit, or take a step of AdamW.
//
//     compute_find   "auto" | "cpu" | "cuda" ─▶ which device, in words
//     compute_new    room for parameters, and to train: model, gradient, residuals or moments
//     host ─ push ─▶ parameters ─ pull ─▶ host             leaves: their digest, where they lie
//     gradient ─▶ clip ─┬▶ compress ─▶ payload, candidate   adopt | discard
//                       └▶ adamw ─▶ parameters
//     payloads of a commit ─ apply ─▶ parameters
//     residual or moments ─ pull_state ─▶ a checkpoint ─ push_state ─▶ residual or moments
//
// Two stand behind it. The CPU (compute_cpu.c) is the reference, and reproducible: model.h,
// gradient.h, distro.h, apply.h, adamw.h. The GPU (compute_cuda.c, and libshoal-cuda.so, loaded at
// run time) computes the gradient in bf16 and its bits are its own; from equal gradients it makes
// the same parameters and moments as a CPU, and so it does from a commit. It has been compiled and
// tested on an emulated device, not yet run on a GPU. One thread at a time.

#include "common/base/hash.h"
#include "common/kernel/pool.h"
#include "common/model/model_layout.h"
#include "common/optimizer/adamw.h"
#include "common/optimizer/apply.h"
#include "common/optimizer/payload.h"

struct cuda_plugin;

enum compute_kind { COMPUTE_CPU, COMPUTE_CUDA };

struct compute_device {
    enum compute_kind kind;
    char text[512];                   // For people: what it is, or why it is not another
    const struct cuda_plugin *plugin; // Of COMPUTE_CUDA; loaded once, never unloaded
};

// "cpu", "cuda", or "auto": the GPU if there is one, else the CPU, and *text says why. FAULT_USAGE
// for another word. With "cuda", FAULT_UNREACHABLE where library, driver or device are missing,
// with what to do. A plugin that is there and of another version is an error for "auto" too.
int compute_find(const char *name, struct why *why, struct compute_device *ret_device);

struct compute_config {
    struct model_shape shape;          // Has passed model_shape_check
    uint32_t micro_batch, seq;         // Sequences at a time, and their length
    uint32_t batch_max;                // The most of a gradient; 0: any number
    const payload_form_t *form;        // To compress and apply; NULL: neither. Borrowed for
                                       // the life of the compute_t
    const struct adamw_options *adamw; // To step with AdamW; NULL: not. For compute_new alone
    const struct layout *layout;       // With adamw: of the shape's tensors. Borrowed likewise
    float decay;                       // Of the residual (distro.h)
    bool trains;                       // Else it only holds parameters and applies
    bool float32;                      // Products in float32 rather than bf16 (gemm.h)
    bool recompute;                    // CPU: of model_options
    pool_t *pool;                      // Borrowed likewise; NULL: no threads
};

typedef struct compute compute_t;

// What compute_new will take, on the device and beside it on the host.
struct compute_memory {
    uint64_t device, host;
};
struct compute_memory compute_memory(const struct compute_device *device,
                                     const struct compute_config *config);

// FAULT_RANGE, FAULT_MEMORY with the number needed and the knob, FAULT_UNREACHABLE.
int compute_new(const struct compute_device *device, const struct compute_config *config,
                struct why *why, compute_t **ret_compute);
void compute_destroy(compute_t **self); // NULL is allowed

// The vector of N floats on this side. Fill it and push, or pull and read it; in between it may be
// the parameters themselves, so nobody else writes to it.
float *compute_host(compute_t *self);
int compute_push(compute_t *self, struct why *why); // Residual, moments: zero. No candidate
int compute_pull(compute_t *self, struct why *why);

// Leaves of the digest of the parameters (merkle.h): digest_leaf_count(N) of them.
int compute_leaves(compute_t *self, struct why *why, struct hash *ret_leaves);

// Mean loss of `count` sequences [count][seq + 1], and its gradient, which stays on the device.
// FAULT_RANGE for a token outside the vocabulary, FAULT_NAN, both with the samples.
int compute_gradient(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                     double *ret_loss);
// The same loss without the gradient.
int compute_loss(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                 double *ret_loss);
// Scales the gradient to `limit` (above 0) if it is longer. FAULT_NAN if it is not finite.
int compute_clip(compute_t *self, double limit, struct why *why, double *ret_norm);

// As distro_compress: payload_bytes(form) bytes of the gradient, and a candidate residual.
int compute_compress(compute_t *self, float rate, struct why *why, uint8_t *ret_payload);
bool compute_has_candidate(const compute_t *self);
void compute_adopt(compute_t *self); // There is a candidate (ensured)
void compute_discard(compute_t *self);
// Digests of the residual that a result starts from, and of the candidate it leads to.
// (Before a first candidate was adopted it starts from the declared zero, whose digest is none.)
int compute_residual_hashes(compute_t *self, struct why *why, struct hash *ret_from,
                            struct hash *ret_to);

// The residual of that digest: the one that results start from now, or the one before it, which is
// there until the next compute_compress. NULL if it is neither. Lives until then. CPU only: a GPU's
// gradients are not those of another device, and nobody audits them.
const float *compute_residual_of(compute_t *self, const struct hash *digest);

// Somebody else's result, made again: what compute_gradient, _clip and _compress would have given on
// these parameters and this residual. Nothing of this replica changes.
struct compute_work {
    const float *params;    // N, of the step that the result was made on
    const float *residual;  // N, finite (FAULT_NAN); NULL: zero
    const uint32_t *tokens; // As of compute_gradient
    uint32_t count;
    double clip; // 0: not at all
    float rate;
};
// FAULT_UNSUPPORTED on a GPU; else as the three.
int compute_again(compute_t *self, const struct compute_work *work, struct why *why,
                  uint8_t *ret_payload, struct hash *ret_to);

// As apply_commit.
int compute_apply(compute_t *self, const struct apply_result *results, uint32_t count,
                  const struct apply_step *step, struct why *why);

// As adamw_step, with the gradient. `rate` is finite and >= 0, there is room for moments (ensured).
int compute_adamw(compute_t *self, float rate, struct why *why);

// What the optimizer remembers, by tag: adamw.h's items, or DisTrO's residual, which drops: it
// belongs to who made it. Registers them, and gives their values on the host: to be saved, or to be
// overwritten and pushed. They are good until the next call. FAULT_MEMORY on a GPU, too.
enum { COMPUTE_ITEMS = ADAMW_ITEMS };
int compute_pull_state(compute_t *self, struct tags *tags, struct why *why,
                       void *ret_values[COMPUTE_ITEMS]);
// FAULT_NAN for values that no optimizer left behind; then compute_push begins with zeros.
int compute_push_state(compute_t *self, struct why *why);
