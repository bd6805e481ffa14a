#pragma once
// compute_cuda -- the host's side of a replica on a GPU; for compute_cuda*.c alone.
//
//     compute_cuda.c         the library, the life of a replica, training, digests
//     compute_cuda_apply.c   a commit, decoded on the host and applied on the device
//     compute_cuda_state.c   AdamW, and the optimizer's state there and back

#include "common/compute/compute_device.h"
#include "common/compute/compute_plan.h"
#include "common/compute/cuda/plugin.h"

struct cuda {
    struct compute base;
    const struct cuda_plugin *plugin;
    struct cuda_replica *replica;
    struct plan *plan; // NULL: no results, no commits
    uint64_t *bare;    // For AdamW: intervals of what does not decay
    uint32_t bare_count;
    struct cuda_coefficients chosen; // Of one result
    struct hash *leaves;
    struct hash residual; // Of the adopted one; none: not asked for yet
    struct hash candidate;
};

static inline struct cuda *cuda_of(compute_t *self) { return (struct cuda *)(void *)self; }

// First slot of a chunk, also of the one past the last.
static inline uint64_t cuda_slot_of(const struct cuda *self, uint32_t chunk)
{
    if (chunk == self->plan->chunks) return self->plan->slots;
    const struct plan_part *part =
        &self->plan->parts[chunks_part_of(payload_chunks(self->base.config.form), chunk)];
    return part->slot + (uint64_t)(chunk - part->first) * part->top_k;
}

// compute_ops.apply
int cuda_apply(compute_t *base, const struct apply_result *results, uint32_t count,
               const struct apply_step *step, struct why *why);

// compute_ops.adamw, pull_state, push_state
int cuda_adamw(compute_t *base, float rate, struct why *why);
int cuda_pull_state(compute_t *base, struct why *why);
int cuda_push_state(compute_t *base, struct why *why);

// Lists the intervals that do not decay (adamw.h) and makes the host's copy of the moments.
int cuda_take_adamw(struct cuda *self, struct why *why);
// How many they are, and, if wanted, [..][2] of them.
uint32_t cuda_list_bare(const struct layout *layout, uint64_t *ret_bare);
