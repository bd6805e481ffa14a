// The gradient of a batch, micro-batch after micro-batch: the host sorts the tokens of the next one
// while the device computes. A size that comes again is replayed from a captured graph. After it,
// the norm with clipping, and AdamW.
#include "common/compute/cuda/replica.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool replica_open_batches(struct cuda_replica *self)
{
    struct device *device = &self->device;
    const size_t bytes = batch_words_count(self->words.rows) * sizeof(uint32_t);
    DEVICE_TRY(device, cudaStreamCreateWithFlags(&self->copies, cudaStreamNonBlocking));
    for (struct staged &staged : self->staged) {
        DEVICE_TRY(device, cudaHostAlloc(&staged.host, bytes, cudaHostAllocDefault));
        DEVICE_TRY(device, cudaEventCreateWithFlags(&staged.copied, cudaEventDisableTiming));
        DEVICE_TRY(device, cudaEventCreateWithFlags(&staged.consumed, cudaEventDisableTiming));
    }
    const size_t most = self->config.micro_batch + 1;
    self->next = (uint32_t *)malloc(self->config.shape.vocab * sizeof *self->next);
    bool room = self->next != NULL;
    for (struct graphs &graphs : self->graphs) {
        graphs.exec = (cudaGraphExec_t *)calloc(most, sizeof *graphs.exec);
        graphs.seen = (bool *)calloc(most, sizeof *graphs.seen);
        room = room && graphs.exec && graphs.seen;
    }
    return room;
}

void replica_close_batches(struct cuda_replica *self)
{
    for (struct graphs &graphs : self->graphs) {
        for (uint32_t i = 0; graphs.exec && i <= self->config.micro_batch; i++)
            if (graphs.exec[i]) cudaGraphExecDestroy(graphs.exec[i]);
        free(graphs.exec);
        free(graphs.seen);
    }
    for (struct staged &staged : self->staged) {
        if (staged.copied) cudaEventDestroy(staged.copied);
        if (staged.consumed) cudaEventDestroy(staged.consumed);
        if (staged.host) cudaFreeHost(staged.host);
    }
    if (self->copies) cudaStreamDestroy(self->copies);
    free(self->next);
}

// Inputs, targets, and the rows of each token in ascending order (a counting sort).
static void fill_words(const struct cuda_replica *self, const uint32_t *tokens, uint32_t sequences,
                       uint32_t *words)
{
    const size_t seq = self->config.seq, all = self->words.rows, rows = sequences * seq;
    const uint32_t vocab = self->config.shape.vocab;
    uint32_t *inputs = words, *targets = inputs + all, *token = targets + all;
    uint32_t *order = token + all, *start = order + all, *count = start + all + 1;
    uint32_t *next = self->next; // First how many, then where the next one goes
    for (uint32_t s = 0; s < sequences; s++) {
        memcpy(inputs + s * seq, tokens + s * (seq + 1), seq * sizeof *tokens);
        memcpy(targets + s * seq, tokens + s * (seq + 1) + 1, seq * sizeof *tokens);
    }
    memset(next, 0, vocab * sizeof *next);
    for (size_t r = 0; r < rows; r++) next[inputs[r]]++;
    uint32_t buckets = 0, placed = 0;
    for (uint32_t t = 0; t < vocab; t++) {
        const uint32_t here = next[t];
        if (here == 0) continue;
        token[buckets] = t, start[buckets] = placed, buckets++;
        next[t] = placed;
        placed += here;
    }
    start[buckets] = placed;
    *count = buckets;
    for (size_t r = 0; r < rows; r++) order[next[inputs[r]]++] = (uint32_t)r;
}

// Fills and copies while the previous micro-batch is computed; the model reads it when both are
// done.
static void bring_words(struct cuda_replica *self, uint32_t number, const uint32_t *tokens,
                        uint32_t sequences)
{
    struct device *device = &self->device;
    struct staged *staged = &self->staged[number % 2];
    const size_t bytes = batch_words_count(self->words.rows) * sizeof(uint32_t);
    DEVICE_TRY(device, cudaEventSynchronize(staged->copied)); // Its words are on the device
    if (device->fault != 0) return;
    fill_words(self, tokens, sequences, staged->host);
    DEVICE_TRY(device, cudaStreamWaitEvent(self->copies, staged->consumed, 0));
    DEVICE_TRY(device, cudaMemcpyAsync(staged->device, staged->host, bytes, cudaMemcpyHostToDevice,
                                       self->copies));
    DEVICE_TRY(device, cudaEventRecord(staged->copied, self->copies));
    DEVICE_TRY(device, cudaStreamWaitEvent(device->stream, staged->copied, 0));
    DEVICE_TRY(device, cudaMemcpyAsync(self->words.at, staged->device, bytes,
                                       cudaMemcpyDeviceToDevice, device->stream));
    DEVICE_TRY(device, cudaEventRecord(staged->consumed, device->stream));
}

static void run_model(struct cuda_replica *self, uint32_t sequences, bool gradient)
{
    if (self->config.float32) llama_run(&self->wide, &self->device, sequences, gradient);
    else llama_run(&self->narrow, &self->device, sequences, gradient);
}

static void capture(struct cuda_replica *self, uint32_t sequences, bool gradient,
                    cudaGraphExec_t *ret_exec)
{
    struct device *device = &self->device;
    cudaGraph_t graph = NULL;
    if (!DEVICE_TRY(device,
                    cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal)))
        return;
    run_model(self, sequences, gradient);
    const cudaError_t ended = cudaStreamEndCapture(device->stream, &graph); // Also after a fault
    DEVICE_TRY(device, ended);
    DEVICE_TRY(device, cudaGraphInstantiate(ret_exec, graph, 0));
    if (graph) cudaGraphDestroy(graph);
}

static void run_micro_batch(struct cuda_replica *self, uint32_t sequences, bool gradient)
{
    struct graphs *graphs = &self->graphs[gradient];
    if (!self->config.graph || !graphs->seen[sequences]) {
        graphs->seen[sequences] = true;
        run_model(self, sequences, gradient);
        return;
    }
    if (!graphs->exec[sequences]) capture(self, sequences, gradient, &graphs->exec[sequences]);
    DEVICE_TRY(&self->device, cudaGraphLaunch(graphs->exec[sequences], self->device.stream));
}

static void begin_batch(struct cuda_replica *self, uint32_t count, bool gradient)
{
    struct device *device = &self->device;
    if (self->weights_stale && self->weights)
        vector_narrow(device, self->weights, self->parameters, self->floats);
    self->weights_stale = false;
    if (!gradient) return;
    const float weight = (float)(1.0 / ((double)count * self->config.seq));
    DEVICE_TRY(device, cudaMemcpyAsync(self->weight, &weight, sizeof weight, cudaMemcpyHostToDevice,
                                       device->stream));
    DEVICE_TRY(device,
               cudaMemsetAsync(self->gradient, 0, self->floats * sizeof(float), device->stream));
}

// The mean of the losses of all micro-batches.
static int take_losses(struct cuda_replica *self, uint32_t count, uint32_t portions,
                       struct why *why, double *ret_loss)
{
    double *losses = (double *)malloc(portions * sizeof *losses), sum = 0.0;
    if (!losses) return why_set(why, FAULT_MEMORY, "the losses of %u portions", portions);
    DEVICE_TRY(&self->device, cudaMemcpyAsync(losses, self->losses, portions * sizeof *losses,
                                              cudaMemcpyDeviceToHost, self->device.stream));
    int rc = device_wait(&self->device, why);
    for (uint32_t i = 0; rc == 0 && i < portions; i++) {
        const uint32_t first = i * self->config.micro_batch, left = count - first;
        const uint32_t n = left < self->config.micro_batch ? left : self->config.micro_batch;
        if (!isfinite(losses[i]))
            rc = why_set(why, FAULT_NAN,
                         "samples %u..%u of the batch: the loss is %g, allowed finite numbers; the"
                         " gradient is unusable",
                         first, first + n - 1, losses[i]);
        sum += losses[i];
    }
    free(losses);
    if (rc == 0) *ret_loss = sum / ((double)count * self->config.seq);
    return rc;
}

int replica_loss(struct cuda_replica *self, const uint32_t *tokens, uint32_t count, bool gradient,
                 struct why *why, double *ret_loss)
{
    if (count < 1 || count > CUDA_SAMPLES_MAX)
        return why_set(why, FAULT_RANGE, "%u samples, it must be 1..%d; nothing is computed", count,
                       CUDA_SAMPLES_MAX);
    if (gradient && !self->gradient)
        return why_set(why, FAULT_UNSUPPORTED, "a gradient of a replica that does not train");
    const size_t row = self->config.seq + 1;
    uint32_t portions = 0;
    begin_batch(self, count, gradient);
    for (uint32_t at = 0; at < count; at += self->config.micro_batch, portions++) {
        const uint32_t left = count - at;
        const uint32_t n = left < self->config.micro_batch ? left : self->config.micro_batch;
        bring_words(self, portions, tokens + at * row, n);
        run_micro_batch(self, n, gradient);
        DEVICE_TRY(&self->device,
                   cudaMemcpyAsync(self->losses + portions, self->loss, sizeof(double),
                                   cudaMemcpyDeviceToDevice, self->device.stream));
    }
    return take_losses(self, count, portions, why, ret_loss);
}

int replica_clip(struct cuda_replica *self, double limit, struct why *why, double *ret_norm)
{
    double norm = 0.0;
    vector_norm(&self->device, self->norm, self->parts, self->gradient, self->floats);
    DEVICE_TRY(&self->device, cudaMemcpyAsync(&norm, self->norm, sizeof norm,
                                              cudaMemcpyDeviceToHost, self->device.stream));
    const int rc = device_wait(&self->device, why);
    if (rc < 0) return rc;
    if (!isfinite(norm))
        return why_set(why, FAULT_NAN,
                       "gradient: its norm is %g, allowed finite numbers; the gradient is unusable",
                       norm);
    *ret_norm = norm;
    if (limit > 0.0 && norm > limit)
        vector_clip(&self->device, self->gradient, self->norm, limit, self->floats);
    return 0;
}

int replica_adamw(struct cuda_replica *self, const struct adamw_factors *by, uint32_t first_moment,
                  uint32_t second_moment, struct why *why)
{
    const uint64_t begin = self->config.state_begin, floats = self->config.state_floats;
    int rc = replica_check_state(self, first_moment, floats, why);
    if (rc == 0) rc = replica_check_state(self, second_moment, floats, why);
    if (rc == 0 && !self->gradient)
        rc = why_set(why, FAULT_UNSUPPORTED, "a step of a replica that does not train");
    if (rc < 0) return rc;
    const struct adamw_step step = { *by, self->bare, self->config.bare_count, begin };
    vector_adamw(&self->device, self->parameters + begin,
                 self->weights ? self->weights + begin : NULL, replica_vector(self, first_moment),
                 replica_vector(self, second_moment), self->gradient + begin, &step, floats);
    if (self->device.fault == 0) return 0;
    return why_set(why, self->device.fault, "%s", self->device.why.text);
}
