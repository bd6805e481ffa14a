#pragma once
// device -- one GPU as the rest of this folder sees it: a stream, its memory, and the first thing
// that went wrong.
//
// The fault is sticky. Every call is checked; after the first one that failed nothing more is
// started, and the caller asks once, at the end, with device_wait. So the code between reads as a
// plain sequence of launches. One thread at a time.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "common/base/fault.h"
}

// A block has 48 KiB of shared memory unless more is asked for; some of it may be a kernel's own.
enum { DEVICE_WORKSPACE_BYTES = 32 << 20, DEVICE_SHARED_DEFAULT = 40 << 10 };

struct products; // products.cuh

struct device {
    cudaStream_t stream;
    cublasLtHandle_t library;
    struct products *products; // Descriptors and algorithms found so far
    void *workspace;           // DEVICE_WORKSPACE_BYTES, of the library
    int processors;
    int fault; // 0, or the first fault
    struct why why;
};

// Takes device number `number`. 0, FAULT_UNREACHABLE without driver or device, FAULT_MEMORY,
// FAULT_UNSUPPORTED for a GPU older than compute capability 8.0.
int device_open(struct device *self, int number, struct why *why);
void device_close(struct device *self); // All zero is allowed

// True while all is well. `what` is the call, in words.
bool device_check(struct device *self, cudaError_t error, const char *what, const char *file,
                  int line);
bool device_check_product(struct device *self, cublasStatus_t status, const char *what,
                          const char *file, int line);
// Waits for all work. 0, or the sticky fault with its place in *why.
int device_wait(struct device *self, struct why *why);

#define DEVICE_TRY(device, call)                                                                   \
    ((device)->fault == 0 && device_check(device, call, #call, __FILE__, __LINE__))
#define DEVICE_TRY_PRODUCT(device, call)                                                           \
    ((device)->fault == 0 && device_check_product(device, call, #call, __FILE__, __LINE__))

// Starts a kernel on the device's stream: DEVICE_LAUNCH(device, grid, block, shared bytes,
// (kernel<float, 4>), arguments...). An empty grid is no work.
#define DEVICE_LAUNCH(device, grid, block, shared, kernel, ...)                                    \
    device_launch(device, #kernel, __FILE__, __LINE__, grid, block, shared, kernel, __VA_ARGS__)

template <typename... P, typename... A>
void device_launch(struct device *self, const char *name, const char *file, int line, dim3 grid,
                   dim3 block, size_t shared, void (*kernel)(P...), A... args)
{
    if (self->fault != 0 || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    if (shared > DEVICE_SHARED_DEFAULT &&
        !device_check(
            self,
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
            name, file, line))
        return;
#ifdef SHOAL_EMULATED
    emulated_launch(grid, block, shared, [=] { kernel((P)args...); });
#else
    kernel<<<grid, block, shared, self->stream>>>((P)args...);
#endif
    device_check(self, cudaGetLastError(), name, file, line);
}

// Dynamic shared memory, as floats or whatever a kernel wants.
#ifdef SHOAL_EMULATED
#define DEVICE_SHARED(type, name) type *name = reinterpret_cast<type *>(emulated_shared)
#else
extern __shared__ __align__(128) unsigned char device_shared[];
#define DEVICE_SHARED(type, name) type *name = reinterpret_cast<type *>(device_shared)
#endif

static inline unsigned device_blocks(size_t count, size_t per_block)
{
    return (unsigned)((count + per_block - 1) / per_block);
}
