#!/usr/bin/env python3
"""Writes what torch's optimizers do, in float64, beside this file.

    python3 tests/numeric/optimizers/make_golden.py        (needs torch)

NAME.golden, little-endian: "SHOALOPT"; u32 rows cols count steps moments; f64 beta1 beta2 eps
momentum weight_decay; the N = rows * cols + count parameters before, f32: a matrix, which decays,
and a vector, which does not; per step f32 rate and f32 gradient[N]; per step f64 parameters[N], and
in the end each moment, f64[N]. What an optimizer does not have is 0.
"""
import os
import struct

import torch

ROWS, COLS, COUNT, STEPS = 5, 7, 11, 12
BETAS, EPS, DECAY, MOMENTUM = (0.9, 0.95), 1e-8, 0.1, 0.9

OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, dict(betas=BETAS, eps=EPS), ("exp_avg", "exp_avg_sq")),
    "adam": (torch.optim.Adam, dict(betas=BETAS, eps=EPS), ("exp_avg", "exp_avg_sq")),
    "sgd": (torch.optim.SGD, dict(momentum=0), ()),
    "sgd-momentum": (torch.optim.SGD, dict(momentum=MOMENTUM), ("momentum_buffer",)),
    "sgd-nesterov": (torch.optim.SGD, dict(momentum=MOMENTUM, nesterov=True), ("momentum_buffer",)),
}


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def write(name):
    kind, options, moments = OPTIMIZERS[name]
    torch.manual_seed(20240607)
    start = [torch.randn(ROWS, COLS) * 0.5, torch.randn(COUNT) * 0.1 + 1]
    params = [torch.nn.Parameter(t.double()) for t in start]
    optimizer = kind([{"params": [params[0]], "weight_decay": DECAY},
                      {"params": [params[1]], "weight_decay": 0.0}], lr=1.0, **options)
    inputs, outputs = [], []
    for step in range(STEPS):
        rate = torch.tensor(3e-3 * (step + 1) if step < 4 else 1e-2 / (step - 2)).item()
        # Magnitudes from 1e-6 to 10, and every fifth number zero in odd steps
        gradient = [torch.randn_like(t) * 10.0 ** torch.randint(-6, 2, t.shape) for t in start]
        if step % 2:
            for g in gradient:
                g.view(-1)[::5] = 0
        for group in optimizer.param_groups:
            group["lr"] = rate
        for p, g in zip(params, gradient):
            p.grad = g.double()
        optimizer.step()
        inputs.append(struct.pack("<f", rate) + flat(gradient).float().numpy().astype("<f4").tobytes())
        outputs.append(flat(params).numpy().astype("<f8").tobytes())
    for key in moments:
        outputs.append(flat([optimizer.state[p][key] for p in params]).numpy().astype("<f8").tobytes())
    betas, eps = options.get("betas", (0.0, 0.0)), options.get("eps", 0.0)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".golden")
    with open(path, "wb") as file:
        file.write(b"SHOALOPT" + struct.pack("<5I5d", ROWS, COLS, COUNT, STEPS, len(moments), *betas,
                                             eps, options.get("momentum", 0.0), DECAY))
        file.write(flat(start).float().numpy().astype("<f4").tobytes())
        file.write(b"".join(inputs) + b"".join(outputs))


for optimizer_name in OPTIMIZERS:
    write(optimizer_name)
