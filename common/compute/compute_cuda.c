// A GPU behind compute.h: finds libshoal-cuda.so, checks its version and the device, and hands it
// plain data. Never run on a GPU (plugin.h): tests load the same sources on a device that the
// processor emulates.
#include "common/compute/compute_device.h"
#include "common/compute/cuda/plugin.h"
#include "common/kernel/kernels.h"
#include "common/model/rope.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda {
    struct compute base;
    const struct cuda_plugin *plugin;
    struct cuda_replica *replica;
};

static struct cuda *cuda_of(compute_t *self) { return (struct cuda *)(void *)self; }

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
    *ret_device = (struct compute_device){ .kind = COMPUTE_CUDA,
                                           .plugin = plugin,
                                           .free_bytes = device.free_bytes };
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
    free(self->base.host);
    free(self);
}

static struct cuda_config config_of(const struct compute_config *config, const float *cosine,
                                    const float *sine)
{
    return (struct cuda_config){ .shape = config->shape,
                                 .micro_batch = config->micro_batch,
                                 .seq = config->seq,
                                 .cosine = cosine,
                                 .sine = sine,
                                 .plan = config->plan,
                                 .trains = config->trains,
                                 .float32 = config->precision == GEMM_FLOAT32,
                                 .graph = true,
                                 .vectors = config->vectors,
                                 .state_begin = config->state.begin,
                                 .state_floats = interval_length(config->state),
                                 .bare = config->bare,
                                 .bare_count = config->bare_count };
}

struct compute_memory compute_cuda_memory(const struct cuda_plugin *plugin,
                                          const struct compute_config *config)
{
    const struct cuda_config cuda = config_of(config, NULL, NULL);
    return (struct compute_memory){ .host = model_parameter_count(&config->shape) * sizeof(float),
                                    .device = plugin->memory_bytes(&cuda) };
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
    const struct cuda_config cuda = config_of(config, tables, tables + turns);
    const int rc = self->plugin->open(&cuda, why, &self->replica);
    free(tables);
    return rc;
}

// ---- what compute.h promises

static int put(compute_t *base, uint32_t vector, const float *from, struct why *why)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->put(self->replica, vector, from, why);
}

static int get(compute_t *base, uint32_t vector, struct why *why, float *ret_floats)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->get(self->replica, vector, ret_floats, why);
}

static int leaves(compute_t *base, uint32_t vector, struct why *why, struct hash *ret_leaves)
{
    struct cuda *self = cuda_of(base);
    return self->plugin->leaves(self->replica, vector, ret_leaves[0].bytes, why);
}

static int gradient(compute_t *base, const float *params, const uint32_t *tokens, uint32_t count,
                    struct why *why, double *ret_loss)
{
    struct cuda *self = cuda_of(base);
    if (params) return why_set(why, FAULT_UNSUPPORTED, "a GPU cannot make a CPU's bits again");
    return self->plugin->loss(self->replica, tokens, count, true, why, ret_loss);
}

// The whole batch is what `gradient` computes. A part is its samples' mean, weighed on the host.
static int gradient_lanes(compute_t *base, const struct compute_lanes *lanes, struct why *why,
                          double *ret_losses)
{
    const struct lane_node node = lanes->node;
    const uint32_t all = base->config.lanes, batch = lanes->batch;
    const uint32_t count = (uint32_t)interval_length(lane_samples(all, batch, node));
    double mean;
    if (count < batch && !lanes->sum)
        return why_set(
            why, FAULT_UNSUPPORTED,
            "lanes %" PRIu32 "..%" PRIu32 " of %" PRIu32
            ": a GPU keeps only the whole batch as its gradient; a part goes to the host",
            node.first, node.end - 1, all);
    int rc = gradient(base, NULL, lanes->tokens, count, why, &mean);
    if (rc == 0 && lanes->sum) rc = get(base, COMPUTE_GRADIENT, why, lanes->sum);
    if (rc < 0) return rc;
    if (count < batch)
        kernels_chosen()->scale(base->floats, (float)count / (float)batch, lanes->sum);
    for (uint32_t i = node.first; i < node.end; i++) {
        const struct interval at = lane_samples(all, batch, (struct lane_node){ i, i + 1 });
        ret_losses[i - node.first] = mean * (double)interval_length(at);
    }
    return 0;
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

static const struct compute_ops ops = {
    .destroy = destroy,
    .put = put,
    .get = get,
    .leaves = leaves,
    .gradient = gradient,
    .gradient_lanes = gradient_lanes,
    .loss = loss,
    .clip = clip,
};

int compute_cuda_new(const struct cuda_plugin *plugin, const struct compute_config *config,
                     struct why *why, compute_t **ret_compute)
{
    struct cuda *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a replica");
    const uint64_t floats = model_parameter_count(&config->shape);
    self->base = (struct compute){ .ops = &ops, .config = *config, .floats = floats };
    self->plugin = plugin;
    self->base.host = malloc(floats * sizeof(float));
    int rc = self->base.host
                 ? open_replica(self, why)
                 : why_set(why, FAULT_MEMORY, "the host's side of a replica of %" PRIu64 " floats",
                           floats);
    self->base.far = (struct compute_far){ plugin, self->replica };
    if (rc < 0) destroy(&self->base);
    else *ret_compute = &self->base;
    return rc;
}
