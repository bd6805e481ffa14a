#pragma once
// result -- DisTrO above a device: what a run does with it beyond the steps of optimizer.h.
//
//     gradient of the device ─ result_make ─▶ payload, and a candidate residual
//         committed: result_adopt      not committed: result_discard
//     payloads of a commit ─ result_apply ─▶ parameters of the device
//     another member's samples ─ result_gradient_again ─▶ gradient of the device
//         with its residual ─ result_again ─▶ the payload that it should have made
//
// For a single trainer optimizer_step does all of it: make, apply that one result, adopt. The CPU
// uses distro.h and apply.h on plain memory; a GPU transforms, chooses and applies with its own
// kernels, and the host encodes and decodes payloads for it (result_cuda.c).
//
// Every optimizer_t here is one of optimizer_distro (ensured), and has begun.

#include "common/optimizer/apply.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/payload.h"

// The form of its payloads, which it owns; also before optimizer_begin.
const payload_form_t *result_form(const optimizer_t *self);

// As distro_compress: payload_bytes(form) bytes of the gradient, and a candidate residual. Adopt or discard the
// candidate before the next gradient is computed: unless the settings say keeps_former, that gradient overwrites
// a residual's vector (compute_lend).
int result_make(optimizer_t *self, float rate, struct why *why, uint8_t *ret_payload);
bool result_has_candidate(const optimizer_t *self);
void result_adopt(optimizer_t *self); // There is a candidate (ensured)
void result_discard(optimizer_t *self);

// Digests of the residual that a result starts from, and of the candidate it leads to. (Before a
// first candidate was adopted it starts from the declared zero, whose digest is none.)
int result_hashes(optimizer_t *self, struct why *why, struct hash *ret_from, struct hash *ret_to);

// The residual of that digest: the one that results start from now, or the one before it, which is
// there until the next result_make. NULL if it is neither, and always unless the settings say
// keeps_former. Lives until then. CPU only: a GPU's gradients differ from those of other devices, so
// they are not audited.
const float *result_residual(optimizer_t *self, const struct hash *digest);

// As apply_commit.
int result_apply(optimizer_t *self, const struct apply_result *results, uint32_t count,
                 const struct apply_step *step, struct why *why);

// Another member's result, made again: what compute_gradient, compute_clip and result_make give on
// these parameters and this residual.
struct result_work {
    const float *params;    // N, of the step that the result was made on
    const uint32_t *tokens; // As of compute_gradient
    uint32_t count;
    double clip;           // 0: no clipping
    const float *residual; // N, finite (FAULT_NAN); NULL: zero
    float rate;
};
// First its gradient, of `params`, `tokens` and `clip`. Of this replica only the gradient changes.
// FAULT_UNSUPPORTED on a GPU, or the faults of the two.
int result_gradient_again(optimizer_t *self, const struct result_work *work, struct why *why);
// Then the rest, of that gradient, `residual` and `rate`. Takes two vectors of memory while it works.
int result_again(optimizer_t *self, const struct result_work *work, struct why *why,
                 uint8_t *ret_payload, struct hash *ret_to);
