#pragma once
// optimizer_factors -- the factors that all parameters share in one step of an optimizer, for the kernels of every
// device. They are rounded once, on the host. With them, and with the lines below, each operation rounded to nearest,
// a parameter has the same bits on every device if the gradient has the same bits.

#include <stdbool.h>

// AdamW and Adam (adamw.h):
//
//     Adam alone: g ← fma(pull, p, g)
//     m ← fma(one_less_beta1, g − m, m)
//     v ← fma(beta2, v, one_less_beta2 · (g · g))
//     p ← fma(−step, m / fma(√v, root_factor, eps), keep · p)
struct adamw_factors {
    float keep; // AdamW: 1 - rate * weight_decay for a matrix. Else 1
    float one_less_beta1, beta2, one_less_beta2;
    float root_factor; // 1 / sqrt(1 - beta2^t)
    float eps;
    float step; // rate / (1 - beta1^t)
    float pull; // Adam: weight_decay for a matrix. Else 0
};

// SGD (sgd.h):
//
//     g ← fma(pull, p, g)
//     with momentum:  v ← fma(momentum, v, g),  then  g ← v,  or with nesterov  g ← fma(momentum, v, g)
//     p ← fma(−step, g, p)
struct sgd_factors {
    float pull; // weight_decay for a matrix. Else 0
    float momentum;
    bool nesterov;
    float step; // The rate
};
