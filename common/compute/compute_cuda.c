// A GPU behind compute.h: finds libshoal-cuda.so, brings it plain data, and does on the host what
// only the host does: the encoding of payloads, and the roots of digests.
#include "common/compute/compute_cuda.h"
#include "common/crypto/merkle.h"
#include "common/model/rope.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 256 };

// ---- the library and the device

static const struct cuda_plugin *load_plugin(struct why *why)
{
    void *library = dlopen(CUDA_PLUGIN_NAME, RTLD_NOW | RTLD_LOCAL);
    const struct cuda_plugin *plugin = library ? dlsym(library, CUDA_PLUGIN_SYMBOL) : NULL;
    const char *error = plugin ? NULL : dlerror();
    if (!plugin)
        why_set(why, FAULT_NOT_FOUND, "%s; where nvcc is, make CUDA=1 builds it",
                error ? error : "no " CUDA_PLUGIN_SYMBOL);
    return plugin;
}

int compute_cuda_find(struct why *why, struct compute_device *ret_device, bool *ret_there)
{
    const struct cuda_plugin *plugin = load_plugin(why);
    struct cuda_device device;
    *ret_there = false;
    if (!plugin) return 0;
    if (plugin->version != CUDA_PLUGIN_VERSION)
        return why_set(why, FAULT_UNSUPPORTED,
                       CUDA_PLUGIN_NAME " has version %" PRIu32 ", this program needs %d; install"
                                        " both from one build",
                       plugin->version, CUDA_PLUGIN_VERSION);
    if (plugin->find(0, why, &device) < 0) return 0;
    if (device.major < 8) {
        why_set(why, FAULT_UNSUPPORTED, "%s has compute capability %d.%d, 8.0 or newer is needed",
                device.name, device.major, device.minor);
        return 0;
    }
    *ret_device = (struct compute_device){ .kind = COMPUTE_CUDA, .plugin = plugin };
    snprintf(ret_device->text, sizeof ret_device->text,
             "%s (compute capability %d.%d, %" PRIu64 " of %" PRIu64 " MiB free, driver for CUDA"
             " %d.%d)",
             device.name, device.major, device.minor, device.free_bytes >> 20,
             device.memory_bytes >> 20, device.driver / 1000, device.driver % 1000 / 10);
    *ret_there = true;
    return 0;
}

// ---- the life of a replica

static void destroy(compute_t *base)
{
    struct cuda *self = cuda_of(base);
    self->plugin->close(&self->replica);
    plan_destroy(&self->plan);
    adamw_destroy(&self->base.adamw);
    free(self->bare), free(self->base.residual);
    free(self->chosen.counts), free(self->chosen.numbers), free(self->chosen.values);
    free(self->leaves);
    free(self->base.host);
    free(self);
}

static struct cuda_config config_of(const struct compute_config *config, const struct plan *plan,
                                    const float *cosine, const float *sine)
{
    return (struct cuda_config){ .shape = config->shape,
                                 .micro_batch = config->micro_batch,
                                 .seq = config->seq,
                                 .cosine = cosine,
                                 .sine = sine,
                                 .plan = plan,
                                 .decay = config->decay,
                                 .trains = config->trains,
                                 .float32 = config->float32,
                                 .graph = true,
                                 .adamw = config->adamw != NULL };
}

struct compute_memory compute_cuda_memory(const struct cuda_plugin *plugin,
                                          const struct compute_config *config)
{
    struct why why = { 0 };
    struct plan *plan = NULL;
    const uint64_t floats = model_parameter_count(&config->shape);
    struct compute_memory memory = { .host = floats * sizeof(float) };
    if (config->adamw) memory.host += adamw_memory_bytes(floats);
    if (config->form && plan_new(config->form, &why, &plan) < 0) return memory;
    struct cuda_config cuda = config_of(config, plan, NULL, NULL);
    if (config->adamw) cuda.bare_count = cuda_list_bare(config->layout, NULL);
    memory.device = plugin->memory_bytes(&cuda);
    plan_destroy(&plan);
    return memory;
}

static bool take_chosen(struct cuda *self)
{
    const struct plan *plan = self->plan;
    self->chosen.counts = malloc(plan->chunks * sizeof *self->chosen.counts);
    self->chosen.numbers = malloc(plan->slots * sizeof *self->chosen.numbers);
    self->chosen.values = malloc(plan->slots * sizeof *self->chosen.values);
    return self->chosen.counts && self->chosen.numbers && self->chosen.values;
}

static int take_memory(struct cuda *self, struct why *why)
{
    const struct compute_config *config = &self->base.config;
    self->base.host = malloc(self->base.floats * sizeof(float));
    self->leaves = malloc(digest_leaf_count(self->base.floats) * sizeof *self->leaves);
    bool all = self->base.host && self->leaves;
    if (config->trains && config->form) all = take_chosen(self) && all;
    if (!all)
        return why_set(why, FAULT_MEMORY, "the host's side of a replica of %" PRIu64 " floats",
                       self->base.floats);
    return config->adamw ? cuda_take_adamw(self, why) : 0;
}

static int open_replica(struct cuda *self, struct why *why)
{
    const struct compute_config *config = &self->base.config;
    const struct model_shape *shape = &config->shape;
    const size_t turns = (size_t)config->seq * shape->head_dim / 2;
    float *tables = malloc(2 * turns * sizeof *tables);
    if (!tables) return why_set(why, FAULT_MEMORY, "tables of %zu rotations", turns);
    rope_fill_tables(&shape->rope_scaling, shape->rope_theta, shape->head_dim, config->seq, tables,
                     tables + turns);
    struct cuda_config cuda = config_of(config, self->plan, tables, tables + turns);
    cuda.bare = self->bare, cuda.bare_count = self->bare_count;
    const int rc = self->plugin->open(&cuda, why, &self->replica);
    free(tables);
    return rc;
}

// ---- parameters

static int push(compute_t *base, struct why *why)
{
    struct cuda *self = cuda_of(base);
    self->residual = (struct hash){ 0 };
    int rc = self->plugin->put(self->replica, CUDA_PARAMETERS, base->host, why);
    if (rc == 0 && base->config.trains && base->config.form)
        rc = self->plugin->put(self->replica, CUDA_RESIDUAL, NULL, why);
    if (rc == 0 && base->adamw) rc = self->plugin->put(self->replica, CUDA_FIRST_MOMENT, NULL, why);
    if (rc == 0 && base->adamw)
        rc = self->plugin->put(self->replica, CUDA_SECOND_MOMENT, NULL, why);
    return rc;
}

static int pull(compute_t *base, struct why *why)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->get(self->replica, CUDA_PARAMETERS, base->host, why);
}

static int leaves(compute_t *base, struct why *why, struct hash *ret_leaves)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->leaves(self->replica, CUDA_PARAMETERS, ret_leaves[0].bytes, why);
}

// ---- training

static int gradient(compute_t *base, const uint32_t *tokens, uint32_t count, struct why *why,
                    double *ret_loss)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->loss(self->replica, tokens, count, true, why, ret_loss);
}

static int loss(compute_t *base, const uint32_t *tokens, uint32_t count, struct why *why,
                double *ret_loss)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->loss(self->replica, tokens, count, false, why, ret_loss);
}

static int clip(compute_t *base, double limit, struct why *why, double *ret_norm)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->clip(self->replica, limit, why, ret_norm);
}

struct encode_job {
    const struct cuda *self;
    uint8_t *payload;
    uint32_t tasks;
};

static void encode_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct encode_job *job = arg;
    const payload_form_t *form = job->self->base.config.form;
    const struct pool_share share = pool_share_of(job->self->plan->chunks, 1, job->tasks, task);
    const uint32_t end = payload_group(form, (uint32_t)share.end);
    for (uint32_t chunk = payload_group(form, (uint32_t)share.first); chunk < end; chunk++) {
        const uint64_t slot = cuda_slot_of(job->self, chunk);
        payload_write(form, chunk, job->self->chosen.numbers + slot,
                      job->self->chosen.values + slot, job->self->chosen.counts[chunk],
                      job->payload);
    }
}

static int compress(compute_t *base, float rate, struct why *why, uint8_t *ret_payload)
{
    struct cuda *self = cuda_of(base);
    const int rc = self->plugin->compress(self->replica, rate, &self->chosen, why);
    if (rc < 0) return rc;
    const uint32_t chunks = self->plan->chunks;
    struct encode_job job = { self, ret_payload, chunks < TASKS_MAX ? chunks : TASKS_MAX };
    payload_clear(base->config.form, ret_payload);
    pool_run(base->config.pool, job.tasks, encode_task, &job);
    self->candidate = (struct hash){ 0 };
    return 0;
}

static void adopt(compute_t *base)
{
    struct cuda *self = cuda_of(base);
    self->plugin->adopt(self->replica);
    self->residual = self->candidate;
}

static void discard(compute_t *base) { (void)base; } // The next one overwrites it

static int hash_vector(struct cuda *self, enum cuda_vector which, struct why *why,
                       struct hash *hash)
{
    if (!hash_is_none(hash)) return 0;
    const int rc = self->plugin->leaves(self->replica, which, self->leaves[0].bytes, why);
    if (rc == 0) *hash = merkle_root(self->leaves, digest_leaf_count(self->base.floats));
    return rc;
}

static int residual_hashes(compute_t *base, struct why *why, struct hash *ret_from,
                           struct hash *ret_to)
{
    struct cuda *self = cuda_of(base);
    int rc = hash_vector(self, CUDA_RESIDUAL, why, &self->residual);
    if (rc == 0) rc = hash_vector(self, CUDA_CANDIDATE, why, &self->candidate);
    if (rc < 0) return rc;
    *ret_from = self->residual, *ret_to = self->candidate;
    return 0;
}

static const struct compute_ops ops = {
    .destroy = destroy,
    .push = push,
    .pull = pull,
    .leaves = leaves,
    .gradient = gradient,
    .loss = loss,
    .clip = clip,
    .compress = compress,
    .adopt = adopt,
    .discard = discard,
    .residual_hashes = residual_hashes,
    .apply = cuda_apply,
    .adamw = cuda_adamw,
    .pull_state = cuda_pull_state,
    .push_state = cuda_push_state,
};

int compute_cuda_new(const struct cuda_plugin *plugin, const struct compute_config *config,
                     struct why *why, compute_t **ret_compute)
{
    struct cuda *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a replica");
    self->base = (struct compute){ .ops = &ops,
                                   .config = *config,
                                   .floats = model_parameter_count(&config->shape) };
    self->plugin = plugin;
    int rc = config->form ? plan_new(config->form, why, &self->plan) : 0;
    if (rc == 0) rc = take_memory(self, why);
    if (rc == 0) rc = open_replica(self, why);
    if (rc < 0) destroy(&self->base);
    else *ret_compute = &self->base;
    return rc;
}
