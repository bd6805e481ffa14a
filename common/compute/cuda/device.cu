// Opens and closes the device, and records its first fault with the call that it came from.
#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/products.cuh"

#include <stdio.h>
#include <string.h>

bool device_check(struct device *self, cudaError_t error, const char *what, const char *file,
                  int line)
{
    if (error == cudaSuccess) return self->fault == 0;
    if (self->fault == 0)
        self->fault = why_set(&self->why,
                              error == cudaErrorMemoryAllocation ? FAULT_MEMORY : FAULT_UNREACHABLE,
                              "GPU: %s (error %d) at %s:%d, %s; nothing more is computed on it",
                              cudaGetErrorString(error), (int)error, file, line, what);
    return false;
}

bool device_check_product(struct device *self, cublasStatus_t status, const char *what,
                          const char *file, int line)
{
    if (status == CUBLAS_STATUS_SUCCESS) return self->fault == 0;
    if (self->fault == 0)
        self->fault = why_set(&self->why, FAULT_UNREACHABLE,
                              "GPU: cuBLASLt says status %d at %s:%d, %s; nothing more is computed"
                              " on it",
                              (int)status, file, line, what);
    return false;
}

int device_wait(struct device *self, struct why *why)
{
    DEVICE_TRY(self, cudaStreamSynchronize(self->stream));
    if (self->fault != 0) return why_set(why, self->fault, "%s", self->why.text);
    return 0;
}

static int check_generation(struct device *self, int number, struct why *why)
{
    struct cudaDeviceProp properties;
    if (!DEVICE_TRY(self, cudaGetDeviceProperties(&properties, number)))
        return why_set(why, self->fault, "%s", self->why.text);
    self->processors = properties.multiProcessorCount;
    if (properties.major >= 8) return 0;
    return why_set(why, FAULT_UNSUPPORTED,
                   "GPU %d is %s of compute capability %d.%d, it must be 8.0 or newer; not used",
                   number, properties.name, properties.major, properties.minor);
}

int device_open(struct device *self, int number, struct why *why)
{
    memset(self, 0, sizeof *self);
    int count = 0;
    const cudaError_t found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || number >= count)
        return why_set(why, FAULT_UNREACHABLE, "GPU %d asked for, %d found (%s); not used", number,
                       count, cudaGetErrorString(found));
    int rc = check_generation(self, number, why);
    if (rc < 0) return rc;
    DEVICE_TRY(self, cudaSetDevice(number));
    DEVICE_TRY(self, cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
    DEVICE_TRY(self, cudaMalloc(&self->workspace, DEVICE_WORKSPACE_BYTES));
    DEVICE_TRY_PRODUCT(self, cublasLtCreate(&self->library));
    rc = device_wait(self, why);
    if (rc == 0 && !(self->products = products_new()))
        rc = why_set(why, FAULT_MEMORY, "the list of products");
    if (rc < 0) device_close(self);
    return rc;
}

void device_close(struct device *self)
{
    products_destroy(&self->products);
    if (self->library) cublasLtDestroy(self->library);
    if (self->workspace) cudaFree(self->workspace);
    if (self->stream) cudaStreamDestroy(self->stream);
    memset(self, 0, sizeof *self);
}
