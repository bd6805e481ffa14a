#!/usr/bin/env python3
"""Writes what torch.optim.AdamW does, in float64, beside this file.

    python3 tests/numeric/adamw/make_golden.py        (needs torch)

adamw.golden, little-endian: "SHOALADW"; u32 rows cols count steps; f64 beta1 beta2 eps
weight_decay; the N = rows * cols + count parameters before, f32: a matrix, which decays, and a
vector, which does not; per step f32 rate and f32 gradient[N]; per step f64 parameters[N], and in
the end f64 m[N], v[N].
"""
import os
import struct

import torch

ROWS, COLS, COUNT, STEPS = 5, 7, 11, 12
BETAS, EPS, DECAY = (0.9, 0.95), 1e-8, 0.1


def main():
    torch.manual_seed(20240607)
    start = [torch.randn(ROWS, COLS) * 0.5, torch.randn(COUNT) * 0.1 + 1]
    params = [torch.nn.Parameter(t.double()) for t in start]
    optimizer = torch.optim.AdamW([{"params": [params[0]], "weight_decay": DECAY},
                                   {"params": [params[1]], "weight_decay": 0.0}],
                                  lr=1.0, betas=BETAS, eps=EPS)
    flat = lambda tensors: torch.cat([t.detach().reshape(-1) for t in tensors])
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
    state = [optimizer.state[p] for p in params]
    for key in ("exp_avg", "exp_avg_sq"):
        outputs.append(flat([s[key] for s in state]).numpy().astype("<f8").tobytes())
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adamw.golden")
    with open(path, "wb") as file:
        file.write(b"SHOALADW" + struct.pack("<4I4d", ROWS, COLS, COUNT, STEPS, *BETAS, EPS, DECAY))
        file.write(flat(start).float().numpy().astype("<f4").tobytes())
        file.write(b"".join(inputs) + b"".join(outputs))


main()
