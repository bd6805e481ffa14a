#pragma once
// adamw_factors -- what is the same for all parameters in one step of adamw.h, for the kernels of
// every device. With these rounded once, on the host, and
//
//     m ← fma(one_less_beta1, g − m, m)
//     v ← fma(beta2, v, one_less_beta2 · (g · g))
//     p ← fma(−step, m / fma(√v, root_factor, eps), keep · p)
//
// each operation rounded to nearest, a parameter has the same bits on a CPU and on a GPU, as long
// as the gradient has.

struct adamw_factors {
    float keep; // 1 - rate * weight_decay of a matrix; of others it is 1
    float one_less_beta1, beta2, one_less_beta2;
    float root_factor; // 1 / sqrt(1 - beta2^t)
    float eps;
    float step; // rate / (1 - beta1^t)
};
