#!/usr/bin/env python3
"""Writes the golden gradients beside this file: a Llama in float64 by PyTorch's autograd, with
nothing of ours in it.

    python3 tests/numeric/llama/make_golden.py        (needs torch and numpy)

Parameters are not stored: they are genesis numbers, computed here a second time, with matrices
times 8 (so that attention is far from uniform) and norms 1 + (k mod 7 - 3) / 16. Each .golden file,
little-endian:

    "SHOALNUM"; u32 vocab dim layers heads kv_heads head_dim ffn seq batch tied;
    f64 rope_theta rms_eps; u64 seed; 32 bytes SHA-256 of the N genesis floats; f64 loss; u64 N;
    u32 tokens[batch][seq + 1]; f32 gradient[N] in the order of common/learn/model_layout.h
"""
import hashlib
import math
import os
import struct

import numpy as np
import torch
import torch.nn.functional as F

#          vocab dim layers heads kv head_dim ffn seq batch tied theta     eps
CONFIGS = {
    "gqa": (48, 24, 2, 4, 2, 6, 40, 20, 2, 0, 10000.0, 1e-5),
    "tied": (50, 20, 2, 2, 1, 10, 36, 37, 2, 1, 500000.0, 1e-6),
    "untied": (32, 16, 2, 4, 4, 4, 32, 70, 1, 0, 10000.0, 1e-5),
}
SEED = 20240607


def layout(vocab, dim, layers, heads, kv, head_dim, ffn, tied):
    q, k = heads * head_dim, kv * head_dim
    tensors = [("model.embed_tokens.weight", (vocab, dim))]
    for i in range(layers):
        p = f"model.layers.{i}."
        tensors += [(p + "input_layernorm.weight", (dim,)),
                    (p + "self_attn.q_proj.weight", (q, dim)),
                    (p + "self_attn.k_proj.weight", (k, dim)),
                    (p + "self_attn.v_proj.weight", (k, dim)),
                    (p + "self_attn.o_proj.weight", (dim, q)),
                    (p + "post_attention_layernorm.weight", (dim,)),
                    (p + "mlp.gate_proj.weight", (ffn, dim)),
                    (p + "mlp.up_proj.weight", (ffn, dim)),
                    (p + "mlp.down_proj.weight", (dim, ffn))]
    tensors.append(("model.norm.weight", (dim,)))
    return tensors + ([] if tied else [("lm_head.weight", (vocab, dim))])


def mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def normal(seed, first, count):
    """Twelve 16-bit uniforms per number, less their mean: exact integers."""
    index = np.arange(first, first + count, dtype=np.uint64)
    base = mix(np.array([seed], dtype=np.uint64))
    total = np.full(count, -12 * 65535 // 2, dtype=np.int64)
    for word in range(3):
        counter = index * np.uint64(3) + np.uint64(word + 1)
        bits = mix(base + counter * np.uint64(0x9E3779B97F4A7C15))
        for shift in (0, 16, 32, 48):
            total += ((bits >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
    return total


def genesis(tensors, layers, seed):
    offset, parts = 0, []
    for name, shape in tensors:
        count = int(np.prod(shape))
        if "norm" in name:
            part = np.ones(count, dtype=np.float32)
        else:
            residual = name.endswith(("o_proj.weight", "down_proj.weight"))
            unit = np.float32((0.02 / math.sqrt(2.0 * layers) if residual else 0.02) / 65536.0)
            part = normal(seed, offset, count).astype(np.float32) * unit
        parts.append(part)
        offset += count
    return parts


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rope(x, cosine, sine):
    """x [B, heads, T, head_dim], rotated as halves."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def loss_of(w, tokens, config):
    vocab, dim, layers, heads, kv, head_dim, ffn, seq, batch, tied, theta, eps = config
    x = w["model.embed_tokens.weight"][tokens[:, :-1]]
    frequency = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.arange(seq, dtype=torch.float64)[:, None] * frequency[None]
    cosine, sine = angle.cos(), angle.sin()
    future = torch.triu(torch.full((seq, seq), float("-inf"), dtype=torch.float64), 1)
    for i in range(layers):
        p = f"model.layers.{i}."
        h = rms_norm(x, w[p + "input_layernorm.weight"], eps)
        q, k, v = (F.linear(h, w[p + f"self_attn.{n}_proj.weight"]) for n in "qkv")
        q, k, v = (t.view(batch, seq, -1, head_dim).transpose(1, 2) for t in (q, k, v))
        q, k = rope(q, cosine, sine), rope(k, cosine, sine)
        k, v = (t.repeat_interleave(heads // kv, 1) for t in (k, v))
        p_attention = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(head_dim) + future, -1)
        o = (p_attention @ v).transpose(1, 2).reshape(batch, seq, heads * head_dim)
        x = x + F.linear(o, w[p + "self_attn.o_proj.weight"])
        h = rms_norm(x, w[p + "post_attention_layernorm.weight"], eps)
        gate = F.linear(h, w[p + "mlp.gate_proj.weight"])
        up = F.linear(h, w[p + "mlp.up_proj.weight"])
        x = x + F.linear(F.silu(gate) * up, w[p + "mlp.down_proj.weight"])
    x = rms_norm(x, w["model.norm.weight"], eps)
    logits = F.linear(x, w["model.embed_tokens.weight" if tied else "lm_head.weight"])
    return F.cross_entropy(logits.reshape(-1, vocab), tokens[:, 1:].reshape(-1))


def write(name, config):
    vocab, dim, layers, heads, kv, head_dim, ffn, seq, batch, tied, theta, eps = config
    tensors = layout(vocab, dim, layers, heads, kv, head_dim, ffn, tied)
    parts = genesis(tensors, layers, SEED)
    digest = hashlib.sha256(b"".join(p.tobytes() for p in parts)).digest()
    w = {}
    for (tensor, shape), part in zip(tensors, parts):
        if "norm" in tensor:
            part = part + ((np.arange(part.size) % 7 - 3) / 16).astype(np.float32)
        else:
            part = part * np.float32(8)
        w[tensor] = torch.from_numpy(part.astype(np.float64)).view(shape).requires_grad_()
    count = batch * (seq + 1)
    tokens = (mix(np.arange(1, count + 1, dtype=np.uint64)) % np.uint64(vocab)).astype(np.uint32)
    loss = loss_of(w, torch.from_numpy(tokens.astype(np.int64)).view(batch, seq + 1), config)
    loss.backward()
    gradient = np.concatenate([w[t].grad.reshape(-1).numpy() for t, _ in tensors]).astype("<f4")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".golden")
    with open(path, "wb") as file:
        file.write(b"SHOALNUM" + struct.pack("<10I2dQ", *config[:10], theta, eps, SEED) + digest)
        file.write(struct.pack("<dQ", loss.item(), gradient.size))
        file.write(tokens.astype("<u4").tobytes() + gradient.tobytes())
    print(f"{name}: {gradient.size} parameters, loss {loss.item():.9f}")


if __name__ == "__main__":
    np.seterr(over="ignore")
    for name, config in CONFIGS.items():
        write(name, config)
