#pragma once
// gemm_blas -- the float32 products of gemm.h by OpenBLAS instead of our own kernels. It is only in
// a build of `make BLAS=1`, to compare the speed. OpenBLAS chooses its order of operations, so its
// bits differ from ours, from processor to processor and with the number of threads: other members
// cannot recompute such results. A program built so prints a warning when it starts.

#include "common/kernel/gemm.h"

const char *gemm_blas_name(void); // "OpenBLAS 0.3.21"

// gemm_run for a FLOAT32 product: the rows of c are dealt to the threads of the pool, and each
// thread calls the library for its rows. The library's own threads are not used.
void gemm_blas_run(pool_t *pool, const struct gemm *job);
