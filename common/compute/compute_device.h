#pragma once
// compute_device -- the devices behind compute.h; for the files compute_*.c alone.
//
// Each device has a struct that begins with a struct compute. compute.c itself does what all have
// in common: the checks of tokens and vectors. No optimizer is named here: a new one adds nothing
// to a device, except a GPU kernel if it needs one.

#include "common/compute/compute.h"

struct compute {
    const struct compute_ops *ops;
    struct compute_config config;
    uint64_t floats;                                // N
    float *host;                                    // As compute_host says
    float *at[COMPUTE_STATE + COMPUTE_VECTORS_MAX]; // As compute_at says: NULL on a GPU
    float *lent;                                    // By compute_lend
    void (*between)(void *arg);                     // By compute_between
    void *between_arg;
    struct compute_far far; // Its plugin is NULL on a CPU
};

struct compute_ops {
    void (*destroy)(compute_t *self);
    int (*put)(compute_t *self, uint32_t vector, const float *from, struct why *why);
    int (*get)(compute_t *self, uint32_t vector, struct why *why, float *ret_floats);
    int (*leaves)(compute_t *self, uint32_t vector, struct why *why, struct hash *ret_leaves);
    // At `params`, or at its own if NULL.
    int (*gradient)(compute_t *self, const float *params, const uint32_t *tokens, uint32_t count,
                    struct why *why, double *ret_loss);
    int (*gradient_lanes)(compute_t *self, const struct compute_lanes *lanes, struct why *why,
                          double *ret_losses);
    int (*loss)(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                double *ret_loss);
    int (*clip)(compute_t *self, double limit, struct why *why, double *ret_norm);
};

// Floats that a vector has.
static inline uint64_t compute_floats(const compute_t *self, uint32_t vector)
{
    return vector < COMPUTE_STATE ? self->floats : interval_length(self->config.state);
}

struct compute_memory compute_cpu_memory(const struct compute_config *config);
int compute_cpu_new(const struct compute_config *config, struct why *why, compute_t **ret_compute);

// Looks for the library and the device. *ret_there is false, and *why says why, if something is
// missing; a fault is returned only for what "auto" must not pass over.
int compute_cuda_find(struct why *why, struct compute_device *ret_device, bool *ret_there);
struct compute_memory compute_cuda_memory(const struct cuda_plugin *plugin,
                                          const struct compute_config *config);
int compute_cuda_new(const struct cuda_plugin *plugin, const struct compute_config *config,
                     struct why *why, compute_t **ret_compute);
