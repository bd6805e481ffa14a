#pragma once
// result_inside -- DisTrO's optimizer in its two forms; for result.c and result_cuda.c alone, which
// are one object: result.c decides, and result_cuda.c does on a GPU what distro.h and apply.h do on
// a CPU.

#include "common/optimizer/distro.h"
#include "common/optimizer/optimizer_kind.h"
#include "common/optimizer/result.h"

struct result_far; // The host's part of it on a GPU

struct results {
    struct optimizer base;
    float decay, weight_decay;
    bool keeps_former;
    chunks_t *chunks;
    payload_form_t *form;
    struct plan *plan; // The form, for a device
    uint8_t *payload;  // Of optimizer_step; made at the first one
    bool candidate;
    bool adopted;           // False: the residual is still the declared zero
    distro_t *near;         // On a CPU, if it trains
    struct result_far *far; // On a GPU
};

int result_far_new(struct results *self, struct why *why, struct result_far **ret_far);
void result_far_destroy(struct result_far **self); // NULL is allowed

uint32_t result_far_adopted(const struct result_far *self); // Which of the two residuals: 0 or 1
int result_far_make(struct results *self, float rate, struct why *why, uint8_t *ret_payload);
void result_far_adopt(struct result_far *self);
void result_far_changed(struct result_far *self); // The adopted residual has other values
int result_far_hashes(struct results *self, struct why *why, struct hash *ret_from,
                      struct hash *ret_to);
int result_far_apply(struct results *self, const struct apply_result *results, uint32_t count,
                     const struct apply_step *step, struct why *why);
