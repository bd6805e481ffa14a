// What a replica does with results: compress, apply, and the leaves of a digest, as the calls of
// plugin.h. A commit's coefficients are copied into one piece of memory, which grows to the
// largest.
#include "common/compute/cuda/replica.cuh"

#include <stdlib.h>

enum { VALUE_LIMIT_BITS = 0x5f800000 }; // 2^64, as in distro_kernels.h

static int check_plan(const struct cuda_replica *self, struct why *why)
{
    if (self->plan.parts_count != 0) return 0;
    return why_set(why, FAULT_UNSUPPORTED, "a replica without a form of payloads");
}

int replica_compress(struct cuda_replica *self, const struct cuda_compression *by,
                     const struct cuda_coefficients *ret, struct why *why)
{
    struct device *device = &self->device;
    int rc = check_plan(self, why);
    if (rc == 0 && !self->chosen.counts)
        rc = why_set(why, FAULT_UNSUPPORTED, "a result of a replica that does not train");
    if (rc == 0) rc = replica_check_state(self, by->residual, self->floats, why);
    if (rc == 0) rc = replica_check_state(self, by->candidate, self->floats, why);
    if (rc < 0) return rc;
    const struct distro_compression job = { self->gradient,
                                            replica_vector(self, by->residual),
                                            replica_vector(self, by->candidate),
                                            by->decay,
                                            by->rate,
                                            self->chosen,
                                            self->largest };
    uint32_t largest = 0;
    const struct plan *plan = &self->plan;
    DEVICE_TRY(device, cudaMemsetAsync(self->largest, 0, sizeof largest, device->stream));
    distro_compress(device, plan, &job, self->scratch);
    DEVICE_TRY(device,
               cudaMemcpyAsync(ret->counts, self->chosen.counts, plan->chunks * sizeof *ret->counts,
                               cudaMemcpyDeviceToHost, device->stream));
    DEVICE_TRY(device, cudaMemcpyAsync(ret->numbers, self->chosen.numbers,
                                       plan->slots * sizeof *ret->numbers, cudaMemcpyDeviceToHost,
                                       device->stream));
    DEVICE_TRY(device,
               cudaMemcpyAsync(ret->values, self->chosen.values, plan->slots * sizeof *ret->values,
                               cudaMemcpyDeviceToHost, device->stream));
    DEVICE_TRY(device, cudaMemcpyAsync(&largest, self->largest, sizeof largest,
                                       cudaMemcpyDeviceToHost, device->stream));
    rc = device_wait(device, why);
    if (rc == 0 && largest >= VALUE_LIMIT_BITS)
        rc = why_set(why, FAULT_NAN,
                     "a momentum of magnitude 0x%08x (bits), it must be finite and below 2^64; no"
                     " result",
                     largest);
    return rc;
}

// Room on the device for what the results of a range sent, in one piece: values, numbers, counts.
static bool make_room(struct cuda_replica *self, size_t bytes)
{
    if (bytes <= self->sent_bytes) return true;
    DEVICE_TRY(&self->device, cudaStreamSynchronize(self->device.stream));
    if (self->sent) cudaFree(self->sent);
    self->sent = NULL, self->sent_bytes = 0;
    if (!DEVICE_TRY(&self->device, cudaMalloc(&self->sent, bytes))) return false;
    self->sent_bytes = bytes;
    return true;
}

int replica_apply(struct cuda_replica *self, const struct cuda_commit *commit, struct why *why)
{
    struct device *device = &self->device;
    int rc = check_plan(self, why);
    if (rc < 0) return rc;
    const size_t slots = commit->results * commit->slots;
    const size_t counts = (size_t)commit->results * (commit->end - commit->first);
    if (make_room(self, slots * (sizeof(float) + sizeof(uint16_t)) + counts * sizeof(uint16_t))) {
        const struct coefficients sent = {
            (uint16_t *)(self->sent + slots * (sizeof(float) + sizeof(uint16_t))),
            (uint16_t *)(self->sent + slots * sizeof(float)), (float *)self->sent
        };
        DEVICE_TRY(device, cudaMemcpyAsync(sent.values, commit->sent.values, slots * sizeof(float),
                                           cudaMemcpyHostToDevice, device->stream));
        DEVICE_TRY(device,
                   cudaMemcpyAsync(sent.numbers, commit->sent.numbers, slots * sizeof(uint16_t),
                                   cudaMemcpyHostToDevice, device->stream));
        DEVICE_TRY(device,
                   cudaMemcpyAsync(sent.counts, commit->sent.counts, counts * sizeof(uint16_t),
                                   cudaMemcpyHostToDevice, device->stream));
        const struct distro_application job = { commit->first, commit->end,   commit->results,
                                                commit->slot,  commit->slots, sent,
                                                commit->keep,  commit->rate,  self->parameters };
        self->weights_stale = true;
        distro_apply(device, &self->plan, &job, self->scratch);
    }
    if (device->fault == 0) return 0;
    return why_set(why, device->fault, "%s", device->why.text);
}

int replica_leaves(struct cuda_replica *self, uint32_t vector, uint8_t *ret_leaves, struct why *why)
{
    const uint64_t floats = replica_floats(self, vector);
    const size_t bytes = (floats + 16383) / 16384 * 32;
    digest_leaves(&self->device, self->leaves, replica_vector(self, vector), floats);
    DEVICE_TRY(&self->device, cudaMemcpyAsync(ret_leaves, self->leaves, bytes,
                                              cudaMemcpyDeviceToHost, self->device.stream));
    return device_wait(&self->device, why);
}
