// The emulated device: coroutines for the threads of a block, and the matrix product.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

typedef __nv_bfloat16 bf16;
#include <emulated_warp.h>

#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { THREADS_MAX = 1024, STACK_BYTES = 1 << 18, SHARED_MAX = 232448 };

dim3 threadIdx, blockIdx, blockDim, gridDim;
unsigned char *emulated_shared;

// The compiler's own setjmp, since libc's takes three times as long. It comes back only from calls of functions
// that are not inlined.
typedef void *jump[5];
#define NOT_INLINED __attribute__((noinline))

struct coroutine { // Made once, then used for every block: a jump costs no system call
    jump place;
    bool made;
    dim3 index;
    bool done;
    const uint64_t *waits_for; // A generation, or NULL
    uint64_t seen;             // What it was when the wait began
};
struct warp {
    uint64_t generation, arrived, place[2][32][4];
};

static coroutine threads[THREADS_MAX];
static warp warps[THREADS_MAX / 32];
static uint64_t block_generation;
static unsigned thread_count, arrived, finished, current;
static char *stacks;
static emulated_copies copies[THREADS_MAX];
static jump scheduler;
static const std::function<void()> *running;

static void fail(const char *what)
{
    fprintf(stderr, "emulated device: %s (block %u,%u,%u of %u threads)\n", what, blockIdx.x,
            blockIdx.y, blockIdx.z, thread_count);
    abort();
}

static NOT_INLINED void leap(jump to) { __builtin_longjmp(to, 1); }

static NOT_INLINED void leave(coroutine *self)
{
    if (__builtin_setjmp(self->place) == 0) leap(scheduler);
}

static void body()
{
    for (;;) {
        (*running)();
        threads[current].done = true;
        finished++;
        leave(&threads[current]);
    }
}

static void wait_for(const uint64_t *generation, uint64_t seen)
{
    coroutine *self = &threads[current];
    self->waits_for = generation;
    self->seen = seen;
    leave(self);
}

void __syncthreads()
{
    const uint64_t seen = block_generation;
    if (++arrived == thread_count - finished) {
        arrived = 0;
        block_generation++;
    } else {
        wait_for(&block_generation, seen);
    }
}

emulated_copies &emulated_copies_of_thread() { return copies[current]; }

unsigned emulated_lane() { return current % 32; }

const uint64_t (*emulated_exchange(const void *value, size_t bytes))[4]
{
    warp *warp = &warps[current / 32];
    const uint64_t seen = warp->generation;
    uint64_t(*place)[4] = warp->place[seen % 2];
    if (bytes > sizeof place[0]) fail("a value too wide for a shuffle");
    memcpy(place[current % 32], value, bytes);
    const unsigned left = thread_count - current / 32 * 32, lanes = left < 32 ? left : 32;
    if (lanes != 32) fail("a shuffle in a warp of fewer than 32 threads");
    if (++warp->arrived == lanes) {
        warp->arrived = 0;
        warp->generation++;
    } else {
        wait_for(&warp->generation, seen);
    }
    return place;
}

static void start(unsigned i)
{
    coroutine *self = &threads[i];
    self->index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
    self->done = false;
    self->waits_for = NULL;
    copies[i].open.clear();
    copies[i].groups = 0;
}

// Its first entry: onto a stack of its own.
static NOT_INLINED void make(coroutine *self, unsigned i)
{
    ucontext_t context;
    self->made = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)i * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, body, 0);
    setcontext(&context);
}

static NOT_INLINED bool resume(unsigned i)
{
    coroutine *self = &threads[i];
    if (self->done || (self->waits_for && *self->waits_for == self->seen)) return false;
    self->waits_for = NULL;
    current = i;
    threadIdx = self->index;
    if (__builtin_setjmp(scheduler) == 0) {
        if (self->made) leap(self->place);
        else make(self, i);
    }
    return true;
}

static bool run_warp(unsigned warp, bool reverse)
{
    bool ever = false;
    for (bool moved = true; moved; ever |= moved) {
        moved = false;
        for (unsigned i = 0; i < 32; i++) {
            const unsigned thread = warp * 32 + (reverse ? 31 - i : i);
            if (thread < thread_count) moved |= resume(thread);
        }
    }
    return ever;
}

bool emulated_reverse()
{
    const char *order = getenv("EMULATED_ORDER");
    return order && strcmp(order, "reverse") == 0;
}

static void run_block(size_t shared, bool reverse)
{
    const unsigned all = (thread_count + 31) / 32;
    memset(emulated_shared, 0xff, shared);
    for (unsigned w = 0; w < all; w++) warps[w].generation = warps[w].arrived = 0;
    block_generation = arrived = finished = 0;
    for (unsigned i = 0; i < thread_count; i++) start(i);
    while (finished < thread_count) { // A warp goes as far as it can before the next one moves
        bool moved = false;
        for (unsigned w = 0; w < all; w++) moved |= run_warp(reverse ? all - 1 - w : w, reverse);
        if (!moved) fail("a barrier that not all threads reach");
    }
}

emulated_graph *emulated_capture;

void emulated_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel)
{
    if (emulated_recorded([=] { emulated_launch(grid, block, shared, kernel); })) return;
    const bool reverse = emulated_reverse();
    if (!stacks) {
        stacks = (char *)mmap(NULL, (size_t)THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        emulated_shared = (unsigned char *)aligned_alloc(1024, SHARED_MAX);
    }
    gridDim = grid;
    blockDim = block;
    thread_count = block.x * block.y * block.z;
    running = &kernel;
    if (thread_count < 1 || thread_count > THREADS_MAX) fail("a block with too many or no threads");
    if (shared > SHARED_MAX) fail("more shared memory than a block may have");
    if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffff) fail("a grid too large");
    memset(emulated_shared, 0xff, SHARED_MAX); // Behind a block's own part, too
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block(shared, reverse);
            }
}

// ---- the matrix product

static float element(const void *p, cudaDataType type, uint64_t i)
{
    return type == CUDA_R_32F ? ((const float *)p)[i]
                              : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *, void *,
                              size_t, cudaStream_t)
{
    const float factors[2] = { *(const float *)alpha, *(const float *)beta };
    if (emulated_recorded([=] {
            cublasLtMatmul(NULL, matmul, &factors[0], a, a_layout, b, b_layout, &factors[1], c,
                           c_layout, d, d_layout, NULL, NULL, 0, NULL);
        }))
        return CUBLAS_STATUS_SUCCESS;
    const uint64_t m = d_layout->rows, n = d_layout->columns;
    const uint64_t k = matmul->a == CUBLAS_OP_N ? a_layout->columns : a_layout->rows;
    const bool fits = (matmul->a == CUBLAS_OP_N ? a_layout->rows : a_layout->columns) == m &&
                      (matmul->b == CUBLAS_OP_N ? b_layout->columns : b_layout->rows) == n &&
                      (matmul->b == CUBLAS_OP_N ? b_layout->rows : b_layout->columns) == k &&
                      c_layout->rows == m && c_layout->columns == n;
    if (!fits || a_layout->stride < (int64_t)a_layout->rows ||
        b_layout->stride < (int64_t)b_layout->rows || d_layout->stride < (int64_t)m)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const uint64_t lda = (uint64_t)a_layout->stride, ldb = (uint64_t)b_layout->stride,
                   ldc = (uint64_t)c_layout->stride, ldd = (uint64_t)d_layout->stride;
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) {
            float sum = 0;
            for (uint64_t p = 0; p < k; p++)
                sum += element(a, a_layout->type,
                               matmul->a == CUBLAS_OP_N ? p * lda + i : i * lda + p) *
                       element(b, b_layout->type,
                               matmul->b == CUBLAS_OP_N ? j * ldb + p : p * ldb + j);
            sum *= *(const float *)alpha;
            const float factor = *(const float *)beta;
            if (factor != 0) sum += factor * element(c, c_layout->type, j * ldc + i);
            if (d_layout->type == CUDA_R_32F) ((float *)d)[j * ldd + i] = sum;
            else ((__nv_bfloat16 *)d)[j * ldd + i] = __float2bfloat16_rn(sum);
        }
    return CUBLAS_STATUS_SUCCESS;
}
