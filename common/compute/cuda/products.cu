// A product is looked up by its shape, types and alignment; a new one asks cuBLASLt for an
// algorithm and keeps it. Where the library has none, a plain kernel does the product.
#include "common/compute/cuda/numbers.cuh"
#include "common/compute/cuda/products.cuh"

#include <stdlib.h>
#include <string.h>

enum { PRODUCTS_MAX = 256 };

// Everything that the choice of an algorithm depends on. Compared as bytes: no padding inside.
struct key {
    uint64_t m, n, k;
    uint32_t alignment[4]; // Of a, b, c, d
    uint32_t form, narrow, narrow_sums, adds;
};

struct entry {
    struct key key;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    bool plain; // The library has none
};

struct products {
    uint32_t count;
    struct entry entry[PRODUCTS_MAX];
};

static void forget(struct entry *entry)
{
    if (entry->matmul) cublasLtMatmulDescDestroy(entry->matmul);
    if (entry->a) cublasLtMatrixLayoutDestroy(entry->a);
    if (entry->b) cublasLtMatrixLayoutDestroy(entry->b);
    if (entry->d) cublasLtMatrixLayoutDestroy(entry->d);
    memset(entry, 0, sizeof *entry);
}

struct products *products_new(void)
{
    return (struct products *)calloc(1, sizeof(struct products));
}

void products_destroy(struct products **self)
{
    for (uint32_t i = 0; *self && i < (*self)->count; i++) forget(&(*self)->entry[i]);
    free(*self);
    *self = NULL;
}

static uint32_t alignment_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p;
    return at % 256 == 0 ? 256 : (uint32_t)(at & -at);
}

// Row-major is the transpose of column-major, which the library wants: D' = B' A', so that its
// first operand is our second.
static void describe(struct device *device, const struct product *product, struct entry *entry)
{
    const cudaDataType type = product->narrow ? CUDA_R_16BF : CUDA_R_32F;
    const cudaDataType sums = product->narrow_sums ? CUDA_R_16BF : CUDA_R_32F;
    const size_t m = product->m, n = product->n, k = product->k;
    const cublasOperation_t first = product->form == PRODUCT_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = product->form == PRODUCT_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    const bool turned_b = product->form == PRODUCT_NT, turned_a = product->form == PRODUCT_TN;
    DEVICE_TRY_PRODUCT(device,
                       cublasLtMatmulDescCreate(&entry->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    DEVICE_TRY_PRODUCT(device,
                       cublasLtMatmulDescSetAttribute(entry->matmul, CUBLASLT_MATMUL_DESC_TRANSA,
                                                      &first, sizeof first));
    DEVICE_TRY_PRODUCT(device,
                       cublasLtMatmulDescSetAttribute(entry->matmul, CUBLASLT_MATMUL_DESC_TRANSB,
                                                      &second, sizeof second));
    DEVICE_TRY_PRODUCT(device,
                       cublasLtMatrixLayoutCreate(&entry->a, type, turned_b ? k : n,
                                                  turned_b ? n : k, (int64_t)(turned_b ? k : n)));
    DEVICE_TRY_PRODUCT(device,
                       cublasLtMatrixLayoutCreate(&entry->b, type, turned_a ? m : k,
                                                  turned_a ? k : m, (int64_t)(turned_a ? m : k)));
    DEVICE_TRY_PRODUCT(device, cublasLtMatrixLayoutCreate(&entry->d, sums, n, m, (int64_t)n));
}

static void prefer(struct device *device, cublasLtMatmulPreference_t preference,
                   const uint32_t alignment[4])
{
    const size_t workspace = DEVICE_WORKSPACE_BYTES;
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                   sizeof workspace));
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                   sizeof schemes));
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                   &alignment[1], sizeof alignment[1]));
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                   &alignment[0], sizeof alignment[0]));
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                   &alignment[2], sizeof alignment[2]));
    DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceSetAttribute(
                                   preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                   &alignment[3], sizeof alignment[3]));
}

static void choose(struct device *device, struct entry *entry)
{
    cublasLtMatmulPreference_t preference = NULL;
    if (!DEVICE_TRY_PRODUCT(device, cublasLtMatmulPreferenceCreate(&preference))) return;
    prefer(device, preference, entry->key.alignment);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(device->library, entry->matmul, entry->a, entry->b, entry->d,
                                       entry->d, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    entry->plain = status == CUBLAS_STATUS_NOT_SUPPORTED || count < 1;
    if (!entry->plain) DEVICE_TRY_PRODUCT(device, status);
    entry->algorithm = found.algo;
}

static struct entry *entry_of(struct device *device, const struct product *product)
{
    struct products *self = device->products;
    struct key key;
    memset(&key, 0, sizeof key);
    key.m = product->m, key.n = product->n, key.k = product->k;
    key.alignment[0] = alignment_of(product->a);
    key.alignment[1] = alignment_of(product->b);
    key.alignment[2] = alignment_of(product->c ? product->c : product->d);
    key.alignment[3] = alignment_of(product->d);
    key.form = product->form, key.narrow = product->narrow;
    key.narrow_sums = product->narrow_sums, key.adds = product->c != NULL;
    for (uint32_t i = 0; i < self->count; i++)
        if (memcmp(&self->entry[i].key, &key, sizeof key) == 0) return &self->entry[i];
    if (self->count == PRODUCTS_MAX)
        forget(&self->entry[--self->count]); // A model has fewer shapes than that
    struct entry *entry = &self->entry[self->count++];
    entry->key = key;
    describe(device, product, entry);
    if (device->fault == 0) choose(device, entry);
    return entry;
}

// A thread makes one element. For shapes whose rows are aligned so that the library cannot take
// them.
template <typename T, typename S>
__global__ void plain_kernel(enum product_form form, size_t m, size_t n, size_t k, const T *a,
                             const T *b, const S *c, S *d)
{
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = at / n, column = at % n;
    if (row >= m) return;
    const size_t a_step = form == PRODUCT_TN ? m : 1, b_step = form == PRODUCT_NT ? 1 : n;
    a += form == PRODUCT_TN ? row : row * k;
    b += form == PRODUCT_NT ? column * k : column;
    float sum = 0.0f;
    for (size_t i = 0; i < k; i++) sum += to_float(a[i * a_step]) * to_float(b[i * b_step]);
    d[at] = from_float<S>(c ? sum + to_float(c[at]) : sum);
}

template <typename T, typename S>
static void run_plain(struct device *device, const struct product *product)
{
    DEVICE_LAUNCH(device, dim3(device_blocks(product->m * product->n, 256)), dim3(256), 0,
                  (plain_kernel<T, S>), product->form, product->m, product->n, product->k,
                  (const T *)product->a, (const T *)product->b, (const S *)product->c,
                  (S *)product->d);
}

void product_run_plain(struct device *device, const struct product *product)
{
    if (!product->narrow) run_plain<float, float>(device, product);
    else if (product->narrow_sums) run_plain<bf16, bf16>(device, product);
    else run_plain<bf16, float>(device, product);
}

void product_run(struct device *device, const struct product *product)
{
    if (device->fault != 0 || product->m == 0 || product->n == 0 || product->k == 0) return;
    const struct entry *entry = entry_of(device, product);
    if (entry->plain) {
        product_run_plain(device, product);
        return;
    }
    const float one = 1.0f, add = product->c ? 1.0f : 0.0f;
    DEVICE_TRY_PRODUCT(
        device, cublasLtMatmul(device->library, entry->matmul, &one, product->b, entry->a,
                               product->a, entry->b, &add, product->c ? product->c : product->d,
                               entry->d, product->d, entry->d, &entry->algorithm, device->workspace,
                               DEVICE_WORKSPACE_BYTES, device->stream));
}
