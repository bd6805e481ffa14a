#pragma once
// cuda_runtime (emulated) -- enough of CUDA, on the processor, to run our kernels where there is no
// GPU.
//
//     g++ -x c++ -Itests/gpu/emulated common/compute/cuda/norm.cu ...
//
// A block's threads are coroutines in one thread of the processor: each runs until it has to wait
// for others (__syncthreads, a shuffle, a matrix product of a warp), then the next one goes on.
// Blocks run one after the other. Device memory is host memory; it and shared memory start as NaN,
// so a number that was never written shows. A warp goes as far as it can before the next one moves;
// EMULATED_ORDER=reverse begins with the last warp and the last thread, and makes copies to shared
// memory at once instead of late: a missing barrier comes out wrong in one of the two. A barrier
// that some threads never reach ends the program with a word.
//
// It knows nothing of time, and nothing of what a real GPU forbids (registers, alignment, more
// shared memory than there is): a kernel that is right here still has to run on one.

#include <functional>
#include <vector>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SHOAL_EMULATED 1

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __constant__ static
#define __shared__   static

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint4 {
    unsigned x, y, z, w;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

void emulated_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &body);
extern unsigned char *emulated_shared; // Dynamic shared memory of the running block
void __syncthreads();

// Puts `value` in this lane's place, waits for the 32 lanes of the warp, and returns all places.
const uint64_t (*emulated_exchange(const void *value, size_t bytes))[4];
unsigned emulated_lane();
inline void __syncwarp(unsigned = ~0u) { emulated_exchange("", 1); }

template <typename T> T __shfl_sync(unsigned, T value, int lane)
{
    T result;
    memcpy(&result, emulated_exchange(&value, sizeof value)[lane & 31], sizeof result);
    return result;
}
template <typename T> T __shfl_xor_sync(unsigned mask, T value, int bits)
{
    return __shfl_sync(mask, value, (int)emulated_lane() ^ bits);
}
template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned by)
{
    const int lane = (int)emulated_lane();
    return __shfl_sync(mask, value, lane >= (int)by ? lane - (int)by : lane);
}

// Arithmetic with one written rounding
#include <math.h>
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline uint32_t __float_as_uint(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
inline float __uint_as_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, unsigned by)
{
    by &= 31;
    return by ? high << by | low >> (32 - by) : high;
}
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(both >> (8 * (selector >> 4 * i & 7)) & 0xff) << 8 * i;
    return result;
}
template <typename T> T __ldg(const T *p) { return *p; }
inline uint32_t atomicMax(uint32_t *to, uint32_t value)
{
    const uint32_t old = *to;
    return *to = old > value ? old : value, old;
}

// ---- The runtime library: one device, in order, always done

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation = 2, cudaErrorNoDevice = 100 };
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum {
    cudaFuncAttributeMaxDynamicSharedMemorySize,
    cudaEventDisableTiming = 2,
    cudaStreamNonBlocking = 1,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaHostAllocDefault = 0,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76
};
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_graph *cudaGraph_t;
typedef struct emulated_graph *cudaGraphExec_t;
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};

inline const char *cudaGetErrorString(cudaError_t) { return "emulated error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int *n) { return *n = 1, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int *v) { return *v = 13000, cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = { "emulated", (size_t)1 << 34, 9, 0, 4 };
    return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 34;
    return cudaSuccess;
}
inline cudaError_t emulated_alloc(void **ret, size_t bytes)
{
    *ret = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*ret) return cudaErrorMemoryAllocation;
    memset(*ret, 0xff, bytes);
    return cudaSuccess;
}
template <typename T> cudaError_t cudaMalloc(T **ret, size_t n)
{
    return emulated_alloc((void **)ret, n);
}
template <typename T> cudaError_t cudaHostAlloc(T **ret, size_t n, unsigned)
{
    return emulated_alloc((void **)ret, n);
}
inline cudaError_t cudaFree(void *p) { return free(p), cudaSuccess; }
inline cudaError_t cudaFreeHost(void *p) { return free(p), cudaSuccess; }
// While a graph is captured nothing runs: what would have is done at each launch of the graph.
struct emulated_graph {
    std::vector<std::function<void()>> steps;
};
extern emulated_graph *emulated_capture;
inline bool emulated_recorded(const std::function<void()> &step)
{
    if (emulated_capture) emulated_capture->steps.push_back(step);
    return emulated_capture != NULL;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind,
                                   cudaStream_t)
{
    if (!emulated_recorded([=] { memcpy(to, from, n); })) memcpy(to, from, n);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind)
{
    return memcpy(to, from, n), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *to, int v, size_t n, cudaStream_t)
{
    if (!emulated_recorded([=] { memset(to, v, n); })) memset(to, v, n);
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    return *s = NULL, cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0)
{
    return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    return *e = NULL, cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *e) { return *e = NULL, cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    return *ms = 1, cudaSuccess;
}
template <typename F> cudaError_t cudaFuncSetAttribute(F *, int, int) { return cudaSuccess; }
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, int)
{
    return emulated_capture = new emulated_graph, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    return *graph = emulated_capture, emulated_capture = NULL, cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                        unsigned long long)
{
    return *exec = new emulated_graph(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    for (const auto &step : exec->steps) step();
    return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }
