#pragma once
// replica_fixture -- a small model with an optimizer on the CPU, of more than two leaves of the
// digest, and steps on made-up tokens.

#include "common/compute/compute.h"
#include "common/learner/state.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/optimizer.h"
#include "tests/test.h"

#include <stdlib.h>

enum { SEQ = 12, BATCH = 4, TENSORS_MAX = 64 };

// More than one leaf of the digest.
static const struct model_shape shape = { .vocab = 300,
                                          .dim = 48,
                                          .layers = 1,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 12,
                                          .ffn = 40,
                                          .seq_len_max = SEQ,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static const struct optimizer_settings settings = { .weight_decay = 0.1,
                                                    .keeps_former = true,
                                                    .beta1 = 0.9,
                                                    .beta2 = 0.95,
                                                    .eps = 1e-8,
                                                    .momentum = 0.9,
                                                    .decay = 0.9f,
                                                    .chunk = 16,
                                                    .topk = 4,
                                                    .one_bit = true };

struct world {
    struct layout_tensor room[TENSORS_MAX];
    struct layout layout;
    compute_t *compute;
    optimizer_t *optimizer;
};

static inline struct world *world_of(const struct optimizer_kind *kind, struct interval at,
                                     bool trains)
{
    struct world *self = calloc(1, sizeof *self);
    struct compute_device device;
    assert_non_null(self);
    assert_true(model_tensor_count(&shape) <= TENSORS_MAX);
    assert_int_equal(model_tensors_layout(&shape, self->room, NULL, &self->layout), 0);
    assert_int_equal(compute_find("cpu", NULL, &device), 0);
    const struct optimizer_place place = { &shape, &self->layout, at, NULL };
    assert_int_equal(optimizer_new(kind, &place, &settings, NULL, &self->optimizer), 0);
    struct compute_config config = {
        .shape = shape, .micro_batch = BATCH, .seq = SEQ, .trains = trains
    };
    optimizer_ask(self->optimizer, &config);
    assert_int_equal(compute_new(&device, &config, NULL, &self->compute), 0);
    assert_int_equal(optimizer_begin(self->optimizer, self->compute, NULL), 0);
    genesis_fill(&shape, 5, compute_host(self->compute));
    assert_int_equal(compute_push(self->compute, NULL), 0);
    return self;
}

static inline void world_free(struct world *self)
{
    compute_destroy(&self->compute);
    optimizer_destroy(&self->optimizer);
    free(self);
}

static inline struct interval all(void)
{
    return (struct interval){ 0, model_parameter_count(&shape) };
}

static inline void fill_tokens(uint32_t tokens[BATCH * (SEQ + 1)])
{
    for (uint32_t i = 0; i < BATCH * (SEQ + 1); i++) tokens[i] = (i * i + i / 5) % shape.vocab;
}

static inline void run(struct world *self, int steps)
{
    uint32_t tokens[BATCH * (SEQ + 1)];
    double loss, norm;
    fill_tokens(tokens);
    for (int i = 0; i < steps; i++) {
        assert_int_equal(compute_gradient(self->compute, tokens, BATCH, NULL, &loss), 0);
        assert_int_equal(compute_clip(self->compute, 1.0, NULL, &norm), 0);
        assert_int_equal(optimizer_step(self->optimizer, 0.01f, NULL), 0);
    }
}
