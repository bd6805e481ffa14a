// What a run demands of its members, by the part of CONFIG that belongs to its strategy: one line of a
// table for each.

#include "actors/shoal/run/doctor.h"
#include "common/bulk/blob_store.h"
#include "common/group/group.h"
#include "common/kernel/gradient.h"
#include "common/learner/products.h"
#include "common/learner/windows_optimizer.h"
#include "common/model/model_config.h"

// What the learner plans (common/learner): memory_of_results, and the pins of rounds.
static uint64_t beside_results(const struct wire_rounds_config *rounds, uint64_t floats)
{
    return rounds->payload_bytes + (rounds->verification_percent ? floats * sizeof(float) : 0);
}

// And those of windows: vectors for more nodes than one, the group's own, pieces of the norm, a copy for saves, two
// generations of copies in memory.
static uint64_t beside_windows(const struct wire_windows_config *windows, uint64_t floats)
{
    const uint32_t least = windows->members_least ? windows->members_least : 1;
    // Where parameter servers own the shares, a trainer has none
    const uint64_t state = windows_optimizer_floats(windows) * floats * sizeof(float);
    const uint64_t share = windows->servers ? 0 : (state + least - 1) / least;
    const uint32_t held = windows->buddies + 1 < least ? windows->buddies + 1 : least;
    const uint64_t copy = windows->save_steps || windows->save_passes ? share : 0;
    const uint64_t kept = windows->memory_every ? 2 * held * share : 0;
    return copy + kept + (lane_nodes_most(windows->lanes, least) - 1) * floats * sizeof(float) +
           GROUP_MEMORY + gradient_piece_count(floats) * sizeof(double);
}

// A replica has parameters alone: the residual of a trainer is its own.
static void of_rounds(const void *part, const struct wire_config *config,
                      struct doctor_demands *demands)
{
    const struct wire_rounds_config *rounds = part;
    demands->optimizer = &optimizer_distro;
    demands->settings =
        (struct optimizer_settings){ .weight_decay = (double)config->weight_decay,
                                     .decay = rounds->compression_decay,
                                     .keeps_former = rounds->verification_percent > 0,
                                     .chunk = rounds->chunk,
                                     .topk = rounds->topk,
                                     .one_bit = rounds->one_bit };
    demands->verification_percent = rounds->verification_percent;
    demands->same_bits = rounds->verification_percent > 0;
    demands->result_bytes = rounds->payload_bytes;
    demands->state_floats = 1;
    demands->disk_copies = BLOB_PINS_MAX + 1;
    demands->beside = beside_results(rounds, model_parameter_count(&demands->shape));
}

// The state is parameters and what the optimizer keeps. No result is kept.
static void of_windows(const void *part, const struct wire_config *config,
                       struct doctor_demands *demands)
{
    const struct wire_windows_config *windows = part;
    (void)config;
    demands->optimizer = windows_optimizer(windows, &demands->settings);
    demands->same_bits = demands->no_gpu = demands->links = true;
    demands->lanes = windows->lanes;
    demands->batch = windows->batch_end;
    demands->state_floats = windows_optimizer_floats(windows);
    demands->copies = 2;
    demands->beside = beside_windows(windows, model_parameter_count(&demands->shape));
}

// What of them says how the optimizer goes, as windows have it.
static struct wire_windows_config as_windows(const struct wire_leases_config *leases)
{
    return (struct wire_windows_config){ .weight_decay = leases->weight_decay,
                                         .beta1 = leases->beta1,
                                         .beta2 = leases->beta2,
                                         .eps = leases->eps,
                                         .optimizer = leases->optimizer,
                                         .momentum = leases->momentum,
                                         .nesterov = leases->nesterov };
}

// A trainer computes whole batches: no lanes. If a push has several, it sums them.
static void of_leases(const void *part, const struct wire_config *config,
                      struct doctor_demands *demands)
{
    const struct wire_leases_config *leases = part;
    const struct wire_windows_config windows = as_windows(leases);
    const uint64_t floats = model_parameter_count(&demands->shape);
    (void)config;
    demands->optimizer = windows_optimizer(&windows, &demands->settings);
    demands->no_gpu = demands->links = true;
    demands->batch = leases->batch_end;
    demands->state_floats = windows_optimizer_floats(&windows);
    demands->copies = 2;
    const bool sums = leases->push_every > 1 || leases->pull_every > 1;
    const bool halves = leases->transfer == TRANSFER_BF16;
    demands->beside =
        GROUP_MEMORY + (sums ? floats * sizeof(float) : 0) + (halves ? floats * 2 : 0);
}

static const struct {
    uint16_t kind;
    void (*fill)(const void *part, const struct wire_config *config,
                 struct doctor_demands *demands);
} strategies[] = {
    { FRAME_ROUNDS_CONFIG, of_rounds },
    { FRAME_WINDOWS_CONFIG, of_windows },
    { FRAME_LEASES_CONFIG, of_leases },
};

bool doctor_demands_of(const struct wire_config *config, struct doctor_demands *ret_demands)
{
    struct doctor_demands demands = {
        .known = true,
        .seq_len = config->seq_len,
        .micro_batch = config->micro_batch,
        .snapshot_rounds = config->snapshot_rounds,
        .trainers = ret_demands->trainers,         // CONFIG does not name their number,
        .ledger_bytes = ret_demands->ledger_bytes, // nor this
        .precision = products_precision(config->products),
    };
    if (model_shape_from_config_json((const char *)config->model.data, config->model.count, NULL,
                                     &demands.shape) < 0)
        return false;
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        if (strategies[i].kind != config->strategy.kind) continue;
        strategies[i].fill(config->strategy.body, config, &demands);
        *ret_demands = demands;
        return true;
    }
    return false;
}
