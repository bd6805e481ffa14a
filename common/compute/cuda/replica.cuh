#pragma once
// replica -- all that lies on the device for one replica, and the files that work on it.
//
//     plugin.cu    find, open, close; vectors there and back; the table of calls
//     train.cu     loss and gradient of a batch, clip, AdamW
//     exchange.cu  compress, apply, and the leaves of a digest

#include "common/compute/cuda/distro.cuh"
#include "common/compute/cuda/llama.cuh"
#include "common/compute/cuda/vector.cuh"

extern "C" {
#include "common/compute/cuda/plugin.h"
}

// Tokens of one micro-batch and what is sorted from them, as one piece of words; R = rows at most:
// inputs [R], targets [R], token [R], order [R], start [R + 1], count [1].
struct batch_words {
    size_t rows;
    uint32_t *at;
};
static inline size_t batch_words_count(size_t rows) { return 5 * rows + 2; }

struct staged { // One of two: while one is computed on, the other is filled and copied
    uint32_t *host, *device;
    cudaEvent_t copied, consumed;
};

struct graphs { // By the number of sequences
    cudaGraphExec_t *exec;
    bool *seen; // Already run once, so that capturing needs no set-up
};

struct cuda_replica {
    struct device device;
    struct cuda_config config; // Its pointers are not kept
    uint64_t floats;           // N
    char *memory;              // The arena's

    float *parameters; // [N]
    bf16 *weights;     // [N], unless float32
    bool weights_stale;
    float *gradient;              // [N], if it trains
    float *state[CUDA_STATE_MAX]; // [config.state_floats], config.vectors of them
    uint64_t *bare;               // [config.bare_count][2]
    struct llama<bf16> narrow;    // One of the two is in use
    struct llama<float> wide;

    struct batch_words words; // What the model reads
    struct staged staged[2];
    cudaStream_t copies;
    uint32_t *next;          // [vocab] on the host, to sort tokens
    struct graphs graphs[2]; // Without and with the gradient
    float *weight;
    double *loss, *losses; // Of the micro-batch; [CUDA_SAMPLES_MAX]
    double *norm, *parts;

    struct plan plan; // With all it points to on the device; parts_count 0: none
    void *scratch;
    struct coefficients chosen;
    uint32_t *largest;
    uint8_t *leaves;
    char *sent; // Of a commit, sent_bytes
    size_t sent_bytes;
};

int replica_loss(struct cuda_replica *self, const uint32_t *tokens, uint32_t count, bool gradient,
                 struct why *why, double *ret_loss);
int replica_clip(struct cuda_replica *self, double limit, struct why *why, double *ret_norm);
int replica_adamw(struct cuda_replica *self, const struct adamw_factors *by, uint32_t first_moment,
                  uint32_t second_moment, struct why *why);
int replica_compress(struct cuda_replica *self, const struct cuda_compression *job,
                     const struct cuda_coefficients *ret, struct why *why);
int replica_apply(struct cuda_replica *self, const struct cuda_commit *commit, struct why *why);
int replica_leaves(struct cuda_replica *self, uint32_t vector, uint8_t *ret_leaves,
                   struct why *why);
float *replica_vector(struct cuda_replica *self, uint32_t vector); // NULL: it has none
uint64_t replica_floats(const struct cuda_replica *self, uint32_t vector);
// FAULT_UNSUPPORTED for a vector of state that is not there, or has not `floats` floats.
int replica_check_state(struct cuda_replica *self, uint32_t vector, uint64_t floats,
                        struct why *why);

// Events, pinned memory and the lists of graphs, beside the arena.
bool replica_open_batches(struct cuda_replica *self);
void replica_close_batches(struct cuda_replica *self);
