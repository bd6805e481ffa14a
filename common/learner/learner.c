// The life of a replica: build a model for a CONFIG, and hand each further job to its file, in the
// order of learner.h. Each hear_ function does one job and answers it, also when it failed. BUILD
// decides how gradients are computed before it takes memory. What a replica does besides follows
// from the run's strategy: strategies[] names its jobs, and the jobs are in a file of their own.
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/patience.h"
#include "common/compute/compute.h"
#include "common/kernel/kernels.h"
#include "common/learner/learner_away.h"
#include "common/learner/learner_gather.h"
#include "common/learner/products.h"
#include "common/model/model_tensors.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- BUILD --------------------------------------------------------------------------------------

static void drop_model(struct learner *self)
{
    learner_pin_wait(self);
    learner_save_wait(self); // Its thread reads the model's layout
    learner_away_drop(self);
    if (self->strategy) self->strategy->close(self);
    learner_gather_close(self);
    learner_close_data(self);
    compute_destroy(&self->compute);
    optimizer_destroy(&self->optimizer);
    free(self->tensors), free(self->leaves), free(self->tokens);
    self->params = NULL;
    self->tensors = NULL, self->leaves = NULL, self->tokens = NULL;
    self->tokens_max = 0;
    self->built = self->holding = false;
}

static int fill_layout(struct learner *self, struct why *why)
{
    const uint32_t count = model_tensor_count(&self->shape);
    self->tensors = calloc(count, sizeof *self->tensors);
    if (!self->tensors) return why_set(why, FAULT_MEMORY, "%u tensors", count);
    return model_tensors_layout(&self->shape, self->tensors, why, &self->layout);
}

// The bits of a gradient depend on it. Where trainers must agree to the bit all use the run's value;
// in any other run each uses its own.
static uint32_t micro_batch(const struct learner *self)
{
    return self->same_bits ? self->config.micro_batch : self->options->micro_batch;
}

static int open_optimizer(struct learner *self, struct why *why)
{
    const struct optimizer_place place = { .shape = &self->shape,
                                           .layout = &self->layout,
                                           .at = { 0, self->floats },
                                           .pool = self->pool };
    return optimizer_new(self->optimizer_kind, &place, &self->settings, why, &self->optimizer);
}

// The code and its libraries, as the system counts them: 15 to 16 MiB of a trainer and of a server.
enum { PROGRAM_MEMORY = 16 << 20 };

static uint32_t pins_of(const struct learner *self)
{
    return self->strategy->pins ? self->strategy->pins : 1;
}

// Decides how the replica computes, and logs what memory that takes before any is taken. `copies` are all pins, a
// state that is fetched meanwhile, and one that is written to a checkpoint; they take none if pins lie in files.
// Memory that is taken only when the group needs it (`later`) must be free as well, and is logged again when it is
// taken. Activations that do not fit are not kept but computed again in the backward pass. Refuses a run whose
// trainers must agree to the bit if this build's products are those of a BLAS library: their bits are not
// reproducible.
static int plan_memory(struct learner *self, struct why *why)
{
    const struct learner_options *options = self->options;
    const uint64_t free_bytes = memory_available_bytes();
    struct compute_config *config = &self->compute_config;
    struct compute_memory memory;
    char free_mib[24] = "unknown";
    *config = (struct compute_config){ .shape = self->shape,
                                       .micro_batch = micro_batch(self),
                                       .seq = self->config.seq_len,
                                       .trains = options->trains,
                                       .precision = products_precision(self->config.products),
                                       .pool = self->pool };
    config->sparse = learner_away_is_on(self);
    config->serves = options->serves;
    if (self->strategy->plan) self->strategy->plan(self, config);
    optimizer_ask(self->optimizer, config);
    const uint64_t saved = options->checkpoint_root != NULL;
    const uint64_t copies =
        self->pins_in_files ? 0 : (pins_of(self) + 1 + saved) * state_cut_room(&self->cut);
    uint64_t beside = copies + state_cut_leaves(&self->cut) * sizeof *self->leaves +
                      optimizer_memory(self->optimizer, &options->device);
    uint64_t later = 0;
    if (self->strategy->memory) beside += self->strategy->memory(self, &later);
    // What a run begins with comes to a server in one piece; in its first group it has a share of that
    uint64_t whole =
        self->config.first_state[0] ? state_cut_room(&self->cut) : self->floats * sizeof(float);
    if (!learner_away_takes_parameters(self)) whole = 0;
    later = later > whole ? later : whole;
    for (int less = 0; less <= 1; less++) {
        config->recompute = less;
        memory = compute_memory(&options->device, config);
        // What members share out takes memory as far as it is written to. The strategy counts it
        memory.host -= learner_away_bytes(self, (struct interval){ 0, self->floats });
        if (free_bytes == 0 || memory.host + beside + later <= free_bytes) break;
    }
    const uint64_t host = memory.host + beside;
    self->memory_bytes = host + PROGRAM_MEMORY; // Which is taken already
    if (free_bytes) snprintf(free_mib, sizeof free_mib, "%" PRIu64, (uint64_t)free_bytes >> 20);
    log_line(LOG_INFO,
             "learner.memory parameters=%" PRIu64 " host_mib=%" PRIu64 " later_mib=%" PRIu64
             " free_mib=%s device_mib=%" PRIu64 " activations=%s copies_mib=%" PRIu64 "%s",
             self->floats, memory_mib_needed(host), memory_mib_needed(later), free_mib,
             memory_mib_needed(memory.device), config->recompute ? "recomputed" : "kept",
             memory_mib_needed(copies),
             free_bytes ? "" : "; the free memory cannot be read here and is not checked");
    log_line(LOG_INFO, "learner.compute products=%s threads=%u kernels=%s",
             wire_enum_name(&wire_enum_products, self->config.products), options->threads,
             options->device.kind == COMPUTE_CPU ? kernels_chosen()->name : "cuda");
    const char *library = gemm_library(config->precision);
    if (library && options->trains && self->same_bits)
        return why_set(
            why, FAULT_CONFIG,
            "the trainers of this run compute the same bits, and the float32 products of this "
            "build are those of %s, which no other build gives to the bit; take a build without "
            "BLAS=1",
            library);
    if (library && options->trains && options->device.kind == COMPUTE_CPU)
        log_line(LOG_WARNING,
                 "learner.not_reproducible products_of=\"%s\": no other member can recompute "
                 "these gradients to the bit; a build without BLAS=1 has products of its own",
                 library);
    if (free_bytes == 0 || host + later <= free_bytes) return 0;
    const bool less = options->trains && options->micro_batch > 1;
    return why_set(
        why, FAULT_MEMORY, "the model needs %" PRIu64 " MiB and there are %" PRIu64 "; %s",
        (host + later) >> 20, (uint64_t)free_bytes >> 20,
        less ? "--micro-batch-size 1 takes the least" : "free some, or take a larger machine");
}

static int take_memory(struct learner *self, struct why *why)
{
    self->cut = state_cut_of_floats(self->floats);
    optimizer_cut(self->optimizer, &self->cut);
    self->pins_in_files =
        blob_store_plan_pins(self->options->store, pins_of(self),
                             self->options->trains && self->strategy->pins_in_files &&
                                 self->strategy->pins_in_files(self));
    int rc = plan_memory(self, why);
    if (rc < 0) return rc;
    self->leaves = calloc(state_cut_leaves(&self->cut), sizeof *self->leaves);
    if (!self->leaves)
        return why_set(why, FAULT_MEMORY, "%" PRIu64 " leaves of the state",
                       state_cut_leaves(&self->cut));
    rc = compute_new(&self->options->device, &self->compute_config, why, &self->compute);
    if (rc == 0) rc = optimizer_begin(self->optimizer, self->compute, why);
    if (rc == 0) self->params = compute_host(self->compute);
    return rc;
}

static const struct learner_strategy *strategy_of(const struct wire_config *config)
{
    static const struct learner_strategy *const strategies[] = { &learner_results, &learner_windows,
                                                                 &learner_leases };
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        if (strategies[i]->config == config->strategy.kind) return strategies[i];
    return NULL;
}

static int build(struct learner *self, const struct wire_config *config, struct why *why)
{
    drop_model(self);
    self->strategy = strategy_of(config);
    if (!self->strategy)
        return why_set(why, FAULT_UNSUPPORTED,
                       "the run's strategy is none of this version; upgrade this program");
    self->config = *config;
    self->config.strategy.body = NULL; // Its strategy has read it
    int rc = self->strategy->read(self, config->strategy.body, why);
    if (rc < 0) return rc;
    if (self->same_bits && config->micro_batch == 0)
        return why_set(
            why, FAULT_RANGE,
            "the run's micro_batch_size is 0, allowed 1..4096; the coordinator's program "
            "is of another version");
    if (self->same_bits && config->micro_batch != self->options->micro_batch)
        log_line(LOG_INFO, "learner.micro_batch size=%u; the run's, since its bits depend on it",
                 config->micro_batch);
    if (config->model.count > MODEL_CONFIG_BYTES_MAX)
        return why_set(why, FAULT_LIMIT, "config.json of %u bytes", config->model.count);
    memcpy(self->config_json, config->model.data, config->model.count);
    self->config_json[config->model.count] = 0;
    rc = model_shape_from_config_json(self->config_json, config->model.count, why, &self->shape);
    if (rc < 0) return rc;
    if (config->seq_len > model_seq_len(&self->shape))
        return why_set(why, FAULT_RANGE, "max_seq_len %u, the model's config.json allows 1..%u",
                       config->seq_len, model_seq_len(&self->shape));
    self->floats = model_parameter_count(&self->shape);
    rc = fill_layout(self, why);
    if (rc == 0) rc = open_optimizer(self, why);
    if (rc == 0) rc = take_memory(self, why);
    if (rc == 0) rc = self->strategy->open(self, why);
    if (rc == 0 && self->options->trains) rc = learner_open_data(self, why);
    self->built = rc == 0;
    return rc;
}

// What a restart may find mended: a folder that is not mounted yet, a port that an earlier process still has. What
// the run's config or a file says stays as it is.
static bool may_pass(int rc)
{
    switch (rc) {
    case FAULT_MEMORY:
    case FAULT_IO:
    case FAULT_DISK_FULL:
    case FAULT_NOT_FOUND:
    case FAULT_BUSY:
    case FAULT_UNREACHABLE:
    case FAULT_TIMEOUT:
    case FAULT_UNAVAILABLE:
    case FAULT_NOT_NOW: return true;
    default: return false;
    }
}

static void hear_build(struct learner *self, const struct wire_config *config)
{
    struct why why = { 0 };
    failpoint("learner_build");
    const int rc = build(self, config, &why);
    struct wire_built built = { .ok = rc == 0, .floats = self->floats, .may_pass = may_pass(rc) };
    struct wire_state_item items[STATE_ITEMS_MAX];
    learner_put_reason(built.reason, &why);
    if (built.ok && self->form) built.payload_bytes = (uint32_t)payload_bytes(self->form);
    if (built.ok) {
        for (uint32_t i = 1; i < self->cut.count; i++) items[i - 1].bytes = self->cut.bytes[i];
        built.items = items, built.items_count = self->cut.count - 1;
    }
    if (!built.ok) drop_model(self);
    worker_answer(self->worker, FRAME_BUILT, &built);
    if (built.ok && self->strategy->built) self->strategy->built(self);
}

// ---- the thread ---------------------------------------------------------------------------------

static void hear_pin(struct learner *self, const struct wire_pin *job)
{
    if (self->holding && self->step == job->step) learner_offer(self);
}

static void hear(struct learner *self, const struct job *job)
{
    switch (job->kind) {
    case FRAME_BUILD: hear_build(self, job->body); break;
    case FRAME_LOAD: learner_load(self, job->body); break;
    case FRAME_PIN: hear_pin(self, job->body); break;
    case FRAME_SAVE: learner_save(self, job->body); break;
    default:
        if (!self->strategy || !self->strategy->hear(self, job))
            ensure_failed("a job that a learner knows", __FILE__, __LINE__);
    }
}

// A job goes before the strategy's own work, which goes on when there is none.
static bool do_next(struct learner *self)
{
    learner_save_look(self);
    const bool busy = self->built && self->strategy->busy && self->strategy->busy(self);
    const enum worker_turn turn = learner_next(self, busy ? 0 : -1);
    if (turn == WORKER_JOB) {
        self->has_job = false;
        hear(self, &self->job);
    } else if (turn == WORKER_QUIET && busy) { // Not busy: woken, or interrupted
        self->strategy->work(self);
    }
    return turn != WORKER_END;
}

void learner_body(struct worker *worker, void *arg)
{
    struct learner *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = arg;
    self->worker = worker;
    patience_set(false); // Others wait for what it computes
    self->pool = pool_new(self->options->threads);
    ensure(self->pool);
    while (do_next(self)) {
    }
    drop_model(self);
    pool_destroy(&self->pool);
    free(self);
}
