#pragma once
// warp -- what 32 threads do together with the tensor cores: PTX's mma.m16n8k16 on bf16, ldmatrix,
// and copies to shared memory that go on while others compute (compute capability 8.0 and newer).
//
// Lane l holds, with g = l / 4 and t = l % 4 (PTX ISA, "Matrix fragments for mma.m16n8k16"):
//
//     A [16][16]   a0 (g, 2t..)  a1 (g+8, 2t..)  a2 (g, 2t+8..)  a3 (g+8, 2t+8..)     two bf16 each
//     B [16][8]    b0 (2t.., g)  b1 (2t+8.., g)                                    (k, n); two each
//     C [16][8]    c0 (g, 2t)  c1 (g, 2t+1)  c2 (g+8, 2t)  c3 (g+8, 2t+1)                   float32
//
// ldmatrix reads four 8 x 8 matrices; lane 8 i + r gives the address of row r of matrix i, and
// register i then holds (g, 2t..) of matrix i, or with `turned` (2t.., g).

#include "common/compute/cuda/numbers.cuh"

#include <string.h>

#ifdef SHOAL_EMULATED
#include <emulated_warp.h>
#else

__device__ inline void warp_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void warp_load(uint32_t (&to)[4], const bf16 *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ inline void warp_load_turned(uint32_t (&to)[4], const bf16 *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

// 16 bytes to shared memory, zeros instead if not `there` (`from` is then not read).
__device__ inline void copy_begin(bf16 *to, const bf16 *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
// Waits until at most `open` of this thread's committed groups are still under way.
template <int open> __device__ inline void copy_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(open) : "memory");
}

// 2^x to about 2 units in the last place, denormals as zero; 0 for minus infinity.
__device__ inline float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif

__device__ inline uint32_t pack_two(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &both, sizeof bits);
    return bits;
}

// The fragment of A for rows [0, 16) and columns [0, 16) of a tile in shared memory.
__device__ inline void load_a(uint32_t (&a)[4], const bf16 *tile, int stride)
{
    const int lane = threadIdx.x % WARP;
    warp_load(a, tile + (lane & 15) * stride + (lane >> 4) * 8);
}

// The fragments of B for two neighbours of 8 columns: registers 0 and 1, 2 and 3. The tile holds B
// turned, [n][k].
__device__ inline void load_b(uint32_t (&b)[4], const bf16 *tile, int stride)
{
    const int lane = threadIdx.x % WARP;
    warp_load(b, tile + ((lane & 7) + (lane >> 4) * 8) * stride + (lane >> 3 & 1) * 8);
}

// The same where the tile holds B as it is, [k][n].
__device__ inline void load_b_turned(uint32_t (&b)[4], const bf16 *tile, int stride)
{
    const int lane = threadIdx.x % WARP;
    warp_load_turned(b, tile + (lane & 15) * stride + (lane >> 4) * 8);
}
