#pragma once
// rounds_learner_fixture -- the learner's thread under rounds, on a tiny model, driven as its core drives it.

#include "common/crypto/merkle.h"
#include "common/data/manifest.h"
#include "common/learner/learner.h"
#include "common/learner/state.h"
#include "common/model/genesis.h"
#include "common/model/model_config.h"
#include "common/wire/wire.h"
#include "tests/unit/folder_fixture.h"

#include <string.h>
#include <zmq.h>

enum { WAIT_MS = 60000 };

static const struct model_shape shape = { .vocab = 16,
                                          .dim = 8,
                                          .layers = 1,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 4,
                                          .ffn = 8,
                                          .seq_len_max = 8,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

// A file of so many tokens in the folder, all zero or of the model's vocabulary, and its manifest.
static void write_tokens(uint32_t count, bool random)
{
    uint16_t tokens[1024] = { 0 };
    struct manifest manifest;
    assert_true(count <= sizeof tokens / sizeof *tokens);
    for (uint32_t i = 0; random && i < count; i++)
        tokens[i] = (uint16_t)((i * 7919 + i * i / 3) % shape.vocab);
    put("a.bin", tokens, count * sizeof *tokens);
    assert_int_equal(manifest_build(folder, 2, NULL, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, NULL), 0);
    manifest_free(&manifest);
}

static void tell(struct worker *worker, uint16_t kind, const void *job)
{
    _Alignas(8) static uint8_t packed[1 << 16];
    const size_t count = wire_pack_body(kind, job, packed, sizeof packed);
    assert_true(count > 0);
    worker_send(worker, kind, packed, count);
}

static const void *hear(struct worker *worker, uint16_t kind)
{
    _Alignas(8) static uint8_t room[1 << 16];
    struct wire_arena arena = { .bytes = room, .max = sizeof room };
    zmq_pollitem_t item = { .fd = worker_answers_fd(worker), .events = ZMQ_POLLIN };
    const void *body;
    uint16_t came;
    assert_int_equal(zmq_poll(&item, 1, 2 * WAIT_MS), 1);
    assert_true(worker_take(worker, &arena, &came, &body));
    assert_int_equal(came, kind);
    return body;
}

// The run's results are recomputed by this many of a hundred clients.
static void build(struct worker *worker, uint32_t percent)
{
    const struct wire_rounds_config rounds = { .compression_decay = 0.9f,
                                               .topk = 2,
                                               .chunk = 4,
                                               .payload_bytes = 1,
                                               .verification_percent = percent };
    char *json = model_shape_to_config_json(&shape);
    struct wire_config config = {
        .run = "r",
        .model = { (const uint8_t *)json, (uint32_t)strlen(json) },
        .seq_len = 8,
        .heartbeat_ms = 1,
        .lease_ms = 1,
        .snapshot_rounds = 1,
        .total_steps = 1,
        .micro_batch = 1,
        .data = { .kind = DATA_LOCAL, .token_bytes = 2 },
        .strategy = { FRAME_ROUNDS_CONFIG, &rounds },
    };
    snprintf(config.data.where, sizeof config.data.where, "%.200s", folder);
    tell(worker, FRAME_BUILD, &config);
    const struct wire_built *built = hear(worker, FRAME_BUILT);
    assert_string_equal(built->reason, "");
    free(json);
}

// Puts other parameters into the stage, as the fetcher does, and has them loaded as this step.
static struct hash load(struct worker *worker, blob_store_t *store, uint64_t step)
{
    struct blob_snapshot state = { .step = step,
                                   .cut = state_cut_of_floats(model_parameter_count(&shape)) };
    struct state_copy copy;
    assert_int_equal(state_copy_new(-1, state_cut_room(&state.cut), NULL, &copy), 0);
    genesis_fill(&shape, step, (float *)(void *)copy.bytes);
    state.digest = digest_of((float *)(void *)copy.bytes, state.cut.bytes[0] / sizeof(float));
    blob_store_stage(store, &state, &copy);
    tell(worker, FRAME_LOAD, &(struct wire_load){ .step = step });
    const struct wire_loaded *loaded = hear(worker, FRAME_LOADED);
    assert_true(loaded->ok && hash_equal(&loaded->digest, &state.digest));
    return state.digest;
}
