#pragma once
// compute_device -- what stands behind compute.h; for the files compute_*.c alone.
//
// Each device has a struct that begins with a struct compute. What all have in common (the bounds
// of tokens, whether there is a candidate) compute.c does itself.

#include "common/compute/compute.h"

struct compute {
    const struct compute_ops *ops;
    struct compute_config config;
    uint64_t floats;         // N
    float *host;             // As compute_host says
    adamw_t *adamw;          // Or NULL. On a GPU its moments are a copy
    float *residual;         // Where pull_state brings it; not freed by compute.c
    bool candidate, adopted; // There is one; one has been adopted since the last push
};

struct compute_ops {
    void (*destroy)(compute_t *self);
    int (*push)(compute_t *self, struct why *why);
    int (*pull)(compute_t *self, struct why *why);
    int (*leaves)(compute_t *self, struct why *why, struct hash *ret_leaves);
    int (*gradient)(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                    double *ret_loss);
    int (*loss)(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                double *ret_loss);
    int (*clip)(compute_t *self, double limit, struct why *why, double *ret_norm);
    int (*compress)(compute_t *self, float rate, struct why *why, uint8_t *ret_payload);
    void (*adopt)(compute_t *self);
    void (*discard)(compute_t *self);
    int (*residual_hashes)(compute_t *self, struct why *why, struct hash *ret_from,
                           struct hash *ret_to);
    const float *(*residual_of)(compute_t *self, const struct hash *digest); // Or NULL
    int (*again)(compute_t *self, const struct compute_work *work, struct why *why,
                 uint8_t *ret_payload, struct hash *ret_to); // Likewise
    int (*apply)(compute_t *self, const struct apply_result *results, uint32_t count,
                 const struct apply_step *step, struct why *why);
    int (*adamw)(compute_t *self, float rate, struct why *why);
    // The moments to and from base.adamw, or the residual to and from base.residual.
    int (*pull_state)(compute_t *self, struct why *why);
    int (*push_state)(compute_t *self, struct why *why);
};

struct compute_memory compute_cpu_memory(const struct compute_config *config);
int compute_cpu_new(const struct compute_config *config, struct why *why, compute_t **ret_compute);

// Looks for the library and the device. *ret_there is false, and *why says why, if something is
// missing; a fault is only what nobody should pass over.
int compute_cuda_find(struct why *why, struct compute_device *ret_device, bool *ret_there);
struct compute_memory compute_cuda_memory(const struct cuda_plugin *plugin,
                                          const struct compute_config *config);
int compute_cuda_new(const struct cuda_plugin *plugin, const struct compute_config *config,
                     struct why *why, compute_t **ret_compute);
