#pragma once
// products -- matrix products by cuBLASLt, on row-major matrices without gaps between their rows.
//
//     PRODUCT_NT   D[m][n] = A[m][k] · B[n][k]ᵀ (+ C)         forward: rows · weightsᵀ
//     PRODUCT_NN   D[m][n] = A[m][k] · B[k][n]  (+ C)         gradient of the input
//     PRODUCT_TN   D[m][n] = A[k][m]ᵀ · B[k][n] (+ C)         gradient of the weights
//
// A and B are bf16 or float32 alike, D is that or float32; sums are float32 (no TF32). A descriptor
// and an algorithm are searched once per shape, alignment and type, and kept; algorithms that add
// up in an order that depends on timing are excluded, so the same GPU and library give the same
// bits.
//
// device and products are one object in two files: device_open makes what products keeps, and a
// product runs on a device.

#include "common/compute/cuda/device.cuh"

enum product_form { PRODUCT_NT, PRODUCT_NN, PRODUCT_TN };

struct product {
    enum product_form form;
    size_t m, n, k;
    const void *a, *b;
    const void *c; // Added, of D's type and shape; NULL: nothing. May be d itself
    void *d;
    bool narrow;      // A and B are bf16, else float32
    bool narrow_sums; // D and C are bf16, else float32
};

void product_run(struct device *device, const struct product *product);
// The same without the library, slowly: what product_run does where the library has no algorithm.
void product_run_plain(struct device *device, const struct product *product);

struct products *products_new(void); // NULL for want of memory
void products_destroy(struct products **self);
