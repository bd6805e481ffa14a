#pragma once
// adamw_factors -- the factors that all parameters share in one step of adamw.h, for the kernels of
// every device. They are rounded once, on the host. With them, and with
//
//     m ← fma(one_less_beta1, g − m, m)
//     v ← fma(beta2, v, one_less_beta2 · (g · g))
//     p ← fma(−step, m / fma(√v, root_factor, eps), keep · p)
//
// each operation rounded to nearest, a parameter has the same bits on a CPU and on a GPU if the
// gradient has the same bits.

struct adamw_factors {
    float keep; // 1 - rate * weight_decay for a matrix; 1 for other tensors
    float one_less_beta1, beta2, one_less_beta2;
    float root_factor; // 1 / sqrt(1 - beta2^t)
    float eps;
    float step; // rate / (1 - beta1^t)
};
