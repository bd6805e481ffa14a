// The table of calls, and a replica's life: find a device, plan and take its memory in one piece,
// bring tables and plan there, move vectors. Training and results are in train.cu and exchange.cu.
#include "common/compute/cuda/replica.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROCESSORS_MAX = 512, // More than any device has; sizes are computed before it is known
    STATE_ALIGN = 4,      // Kernels read as many floats at once
};

static int find(int32_t number, struct why *why, struct cuda_device *ret_device)
{
    int count = 0, driver = 0;
    struct cudaDeviceProp properties;
    size_t free_bytes = 0, bytes = 0;
    cudaError_t error = cudaDriverGetVersion(&driver);
    if (error == cudaSuccess && driver == 0)
        return why_set(why, FAULT_UNREACHABLE,
                       "there is no NVIDIA driver; install the one for this GPU");
    if (error == cudaSuccess) error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && number >= count) error = cudaErrorNoDevice;
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, number);
    if (error == cudaSuccess) error = cudaSetDevice(number);
    if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &bytes);
    if (error != cudaSuccess)
        return why_set(why, FAULT_UNREACHABLE, "GPU %d: %s (error %d)", number,
                       cudaGetErrorString(error), (int)error);
    *ret_device = cuda_device{};
    snprintf(ret_device->name, sizeof ret_device->name, "%.200s", properties.name);
    ret_device->memory_bytes = bytes, ret_device->free_bytes = free_bytes;
    ret_device->major = properties.major, ret_device->minor = properties.minor;
    ret_device->driver = driver, ret_device->processors = properties.multiProcessorCount;
    return 0;
}

// ---- one allocation

static void carve_plan(struct cuda_replica *self, struct arena *arena)
{
    struct plan *plan = &self->plan;
    plan->parts = arena_take<struct plan_part>(arena, plan->parts_count);
    plan->tables = arena_take<struct plan_table>(arena, plan->tables_count);
    plan->floats = arena_take<float>(arena, plan->floats_count);
    const size_t scratch = distro_scratch_bytes(&self->device, plan);
    self->scratch = scratch ? arena_take<char>(arena, scratch) : NULL;
    if (!self->config.trains) return;
    self->chosen.counts = arena_take<uint16_t>(arena, plan->chunks);
    self->chosen.numbers = arena_take<uint16_t>(arena, plan->slots);
    self->chosen.values = arena_take<float>(arena, plan->slots);
    self->largest = arena_take<uint32_t>(arena, 1);
}

static void carve_state(struct cuda_replica *self, struct arena *arena)
{
    for (uint32_t i = 0; i < self->config.vectors; i++)
        self->state[i] = arena_take<float>(arena, self->config.state_floats);
    if (self->config.bare_count)
        self->bare = arena_take<uint64_t>(arena, 2 * (uint64_t)self->config.bare_count);
}

template <typename T>
static void carve_model(struct cuda_replica *self, struct llama<T> *model, const T *weights,
                        struct arena *arena)
{
    const size_t rows = self->words.rows;
    model->shape = self->config.shape;
    model->batch_max = self->config.micro_batch, model->seq = self->config.seq;
    model->weights = weights, model->gradient = self->gradient;
    model->inputs = self->words.at, model->targets = model->inputs + rows;
    model->buckets.token = model->targets + rows;
    model->buckets.order = model->buckets.token + rows;
    model->buckets.start = model->buckets.order + rows;
    model->buckets.count = model->buckets.start + rows + 1;
    model->weight = self->weight, model->loss = self->loss;
    const size_t turns = (size_t)self->config.seq * self->config.shape.head_dim / 2;
    model->cosine = arena_take<float>(arena, turns);
    model->sine = arena_take<float>(arena, turns);
    llama_carve<T>(model, arena, self->config.trains);
}

static void carve(struct cuda_replica *self, struct arena *arena)
{
    const size_t words = batch_words_count(self->words.rows);
    self->parameters = arena_take<float>(arena, self->floats);
    if (!self->config.float32) self->weights = arena_take<bf16>(arena, self->floats);
    if (self->config.trains) self->gradient = arena_take<float>(arena, self->floats);
    carve_state(self, arena);
    self->words.at = arena_take<uint32_t>(arena, words);
    for (struct staged &staged : self->staged) staged.device = arena_take<uint32_t>(arena, words);
    self->weight = arena_take<float>(arena, 1);
    self->loss = arena_take<double>(arena, 1);
    self->losses = arena_take<double>(arena, CUDA_SAMPLES_MAX);
    self->norm = arena_take<double>(arena, 1);
    self->parts = arena_take<double>(arena, VECTOR_PARTS);
    self->leaves = arena_take<uint8_t>(arena, (self->floats + 16383) / 16384 * 32);
    if (self->config.plan) carve_plan(self, arena);
    if (self->config.float32) carve_model(self, &self->wide, self->parameters, arena);
    else carve_model(self, &self->narrow, self->weights, arena);
}

static void set_up(struct cuda_replica *self, const struct cuda_config *config)
{
    self->config = *config;
    self->floats = model_parameter_count(&config->shape);
    self->words.rows = (size_t)config->micro_batch * config->seq;
    if (config->plan) self->plan = *config->plan;
}

static uint64_t memory_bytes(const struct cuda_config *config)
{
    struct cuda_replica *self = (struct cuda_replica *)calloc(1, sizeof *self);
    if (!self) return 0;
    struct arena arena = {};
    set_up(self, config);
    self->device.processors = PROCESSORS_MAX;
    carve(self, &arena);
    free(self);
    return arena.used + DEVICE_WORKSPACE_BYTES;
}

// ---- open and close

static void close(struct cuda_replica **self)
{
    struct cuda_replica *replica = *self;
    if (!replica) return;
    if (replica->device.stream) cudaStreamSynchronize(replica->device.stream);
    replica_close_batches(replica);
    if (replica->sent) cudaFree(replica->sent);
    if (replica->memory) cudaFree(replica->memory);
    device_close(&replica->device);
    free(replica);
    *self = NULL;
}

static void upload(struct cuda_replica *self, const void *to, const void *from, size_t bytes)
{
    DEVICE_TRY(&self->device, cudaMemcpyAsync((void *)to, from, bytes, cudaMemcpyHostToDevice,
                                              self->device.stream));
}

static void clear(struct cuda_replica *self, uint32_t vector)
{
    DEVICE_TRY(&self->device,
               cudaMemsetAsync(replica_vector(self, vector), 0,
                               replica_floats(self, vector) * sizeof(float), self->device.stream));
}

// Brings what never changes: tables, intervals, plan. Sets the vectors of state to zero.
static void bring_constants(struct cuda_replica *self, const struct cuda_config *config)
{
    const size_t turns = (size_t)config->seq * config->shape.head_dim / 2 * sizeof(float);
    upload(self, config->float32 ? self->wide.cosine : self->narrow.cosine, config->cosine, turns);
    upload(self, config->float32 ? self->wide.sine : self->narrow.sine, config->sine, turns);
    for (uint32_t i = 0; i < config->vectors; i++) clear(self, CUDA_STATE + i);
    if (config->bare_count)
        upload(self, self->bare, config->bare, 2 * config->bare_count * sizeof *config->bare);
    const struct plan *plan = config->plan;
    if (!plan) return;
    upload(self, self->plan.parts, plan->parts, plan->parts_count * sizeof *plan->parts);
    upload(self, self->plan.tables, plan->tables, plan->tables_count * sizeof *plan->tables);
    upload(self, self->plan.floats, plan->floats, plan->floats_count * sizeof *plan->floats);
}

// Rows times the widest row are counted in 32 bits (rows.cuh).
static int check_config(const struct cuda_config *config, struct why *why)
{
    const int rc = model_shape_check(&config->shape, why);
    if (rc < 0) return rc;
    const struct model_shape *shape = &config->shape;
    uint64_t widest = 2 * (uint64_t)shape->ffn;
    const uint64_t heads =
        ((uint64_t)shape->heads + 2 * (uint64_t)shape->kv_heads) * shape->head_dim;
    if (heads > widest) widest = heads;
    if (shape->dim > widest) widest = shape->dim;
    const uint64_t floats = model_parameter_count(shape), begin = config->state_begin;
    if (config->vectors > CUDA_STATE_MAX || begin % STATE_ALIGN != 0 || begin > floats ||
        config->state_floats > floats - begin)
        return why_set(why, FAULT_RANGE,
                       "GPU: %u vectors of the floats [%llu, +%llu) of %llu; nothing is allocated",
                       config->vectors, (unsigned long long)begin,
                       (unsigned long long)config->state_floats, (unsigned long long)floats);
    if (config->micro_batch >= 1 && config->seq >= 1 && config->seq <= shape->seq_len_max &&
        config->micro_batch <= UINT32_MAX / widest / config->seq &&
        config->micro_batch * (uint64_t)shape->heads <= 65535)
        return 0;
    return why_set(why, FAULT_RANGE,
                   "GPU: %u sequences of %u at a time, too many for this model; nothing is"
                   " allocated; a smaller micro-batch will do",
                   config->micro_batch, config->seq);
}

static int take_memory(struct cuda_replica *self, struct why *why)
{
    struct arena arena = {};
    carve(self, &arena);
    const uint64_t bytes = arena.used;
    size_t free_bytes = 0, all = 0;
    DEVICE_TRY(&self->device, cudaMemGetInfo(&free_bytes, &all));
    if (self->device.fault == 0 && bytes > free_bytes)
        return why_set(why, FAULT_MEMORY,
                       "GPU: %llu MiB are needed, %llu of %llu MiB are free; nothing is allocated;"
                       " a smaller micro-batch takes less",
                       (unsigned long long)(bytes >> 20), (unsigned long long)(free_bytes >> 20),
                       (unsigned long long)(all >> 20));
    DEVICE_TRY(&self->device, cudaMalloc(&self->memory, bytes));
    arena.base = self->memory, arena.used = 0;
    if (self->device.fault == 0) carve(self, &arena);
    if (self->device.fault == 0 && !replica_open_batches(self))
        return why_set(why, FAULT_MEMORY, "GPU: the host's side of the batches");
    return 0;
}

static int open(const struct cuda_config *config, struct why *why, struct cuda_replica **ret)
{
    int rc = check_config(config, why);
    if (rc < 0) return rc;
    struct cuda_replica *self = (struct cuda_replica *)calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "GPU: a replica");
    rc = device_open(&self->device, config->device, why);
    if (rc == 0) {
        set_up(self, config);
        rc = take_memory(self, why);
    }
    if (rc == 0) {
        bring_constants(self, config);
        rc = device_wait(&self->device, why); // From here on the arguments are not needed
        self->config.plan = NULL, self->config.cosine = self->config.sine = NULL;
        self->config.bare = NULL;
    }
    if (rc < 0) close(&self);
    else *ret = self;
    return rc;
}

// ---- vectors

float *replica_vector(struct cuda_replica *self, uint32_t vector)
{
    if (vector == CUDA_PARAMETERS) return self->parameters;
    if (vector == CUDA_GRADIENT) return self->gradient;
    return vector - CUDA_STATE < self->config.vectors ? self->state[vector - CUDA_STATE] : NULL;
}

uint64_t replica_floats(const struct cuda_replica *self, uint32_t vector)
{
    return vector < CUDA_STATE ? self->floats : self->config.state_floats;
}

static int check_vector(struct cuda_replica *self, uint32_t vector, struct why *why)
{
    if (replica_vector(self, vector)) return 0;
    return why_set(why, FAULT_UNSUPPORTED, "GPU: vector %u of a replica that has none", vector);
}

int replica_check_state(struct cuda_replica *self, uint32_t vector, uint64_t floats,
                        struct why *why)
{
    if (vector >= CUDA_STATE && replica_vector(self, vector) &&
        replica_floats(self, vector) == floats)
        return 0;
    return why_set(why, FAULT_UNSUPPORTED, "GPU: vector %u is none of state, of %llu floats",
                   vector, (unsigned long long)floats);
}

static int put(struct cuda_replica *self, uint32_t vector, const float *from, struct why *why)
{
    const int rc = check_vector(self, vector, why);
    if (rc < 0) return rc;
    const size_t bytes = replica_floats(self, vector) * sizeof(float);
    if (from) upload(self, replica_vector(self, vector), from, bytes);
    else clear(self, vector);
    if (vector == CUDA_PARAMETERS) self->weights_stale = true;
    return device_wait(&self->device, why);
}

static int get(struct cuda_replica *self, uint32_t vector, float *to, struct why *why)
{
    const int rc = check_vector(self, vector, why);
    if (rc < 0) return rc;
    DEVICE_TRY(&self->device, cudaMemcpyAsync(to, replica_vector(self, vector),
                                              replica_floats(self, vector) * sizeof(float),
                                              cudaMemcpyDeviceToHost, self->device.stream));
    return device_wait(&self->device, why);
}

static int leaves(struct cuda_replica *self, uint32_t vector, uint8_t *ret_leaves, struct why *why)
{
    const int rc = check_vector(self, vector, why);
    return rc < 0 ? rc : replica_leaves(self, vector, ret_leaves, why);
}

static int wait(struct cuda_replica *self, struct why *why)
{
    return device_wait(&self->device, why);
}

extern "C" __attribute__((visibility("default"))) const struct cuda_plugin shoal_cuda_plugin;
const struct cuda_plugin shoal_cuda_plugin = {
    CUDA_PLUGIN_VERSION,
    find,
    memory_bytes,
    open,
    close,
    put,
    get,
    leaves,
    replica_loss,
    replica_clip,
    replica_compress,
    replica_apply,
    replica_adamw,
    wait,
};
