#pragma once
// gemm_blas -- the float32 products of gemm.h by OpenBLAS instead of our own kernels: only in a
// build of `make BLAS=1`, to see what a library would do. Its order of operations is its own, so
// its bits differ from ours, from processor to processor and with the number of threads: what is
// computed with it cannot be recomputed by others. Such a program says so when it starts.

#include "common/kernel/gemm.h"

const char *gemm_blas_name(void); // "OpenBLAS 0.3.21"

// gemm_run of a FLOAT32 product: rows of c are dealt to the threads of the pool, and each calls the
// library for its own. The library's threads are never used; they sleep.
void gemm_blas_run(pool_t *pool, const struct gemm *job);
