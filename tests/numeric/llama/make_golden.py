#!/usr/bin/env python3
"""Writes the golden gradients beside this file: a Llama in float64 by PyTorch's autograd, with
nothing of ours in it.

    python3 tests/numeric/llama/make_golden.py        (needs torch and numpy)

Parameters are not stored: they are genesis numbers, computed here a second time, with matrices
times 8 (so that attention is far from uniform) and norms 1 + (k mod 7 - 3) / 16. Each .golden file,
little-endian:

    "SHOALNUM"; u32 vocab dim layers heads kv_heads head_dim ffn seq batch flags;
    f64 rope_theta rms_eps; u64 seed; 32 bytes SHA-256 of the N genesis floats; f64 loss; u64 N;
    u32 tokens[batch][seq + 1]; f32 gradient[N] in the order of common/model/model_layout.h

flags: 1 for a tied head, plus 256 times the rope_type (0 default, 1 linear, 2 llama3, 3 yarn). If
that is not 0, the file ends with eight f64: factor, low_freq_factor, high_freq_factor, original
positions, beta_fast, beta_slow, attention_factor, truncate (0 where the type has none).
tests/peers/gradients.py holds all of it against transformers.
"""
import hashlib
import math
import os
import struct

import numpy as np
import torch
import torch.nn.functional as F

np.seterr(over="ignore")     # Hashes wrap around

#          vocab dim layers heads kv head_dim ffn seq batch tied theta     eps
CONFIGS = {
    "gqa": (48, 24, 2, 4, 2, 6, 40, 20, 2, 0, 10000.0, 1e-5),
    "tied": (50, 20, 2, 2, 1, 10, 36, 37, 2, 1, 500000.0, 1e-6),
    "untied": (32, 16, 2, 4, 4, 4, 32, 70, 1, 0, 10000.0, 1e-5),
    "llama3": (40, 16, 2, 2, 1, 16, 24, 60, 1, 0, 5000.0, 1e-5),
    "yarn": (40, 24, 2, 4, 2, 12, 24, 40, 2, 1, 10000.0, 1e-6),
    "linear": (30, 12, 1, 3, 1, 8, 20, 50, 1, 1, 10000.0, 1e-5),
}
# As a config.json has them; what is absent is 0 in the file.
SCALINGS = {
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
             "beta_fast": 4.0, "beta_slow": 0.5, "attention_factor": 0.1 * math.log(4.0) + 1.0,
             "truncate": True},
    "linear": {"rope_type": "linear", "factor": 2.5},
}
ROPE_TYPES = ["default", "linear", "llama3", "yarn"]
ROPE_FIELDS = ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
               "beta_fast", "beta_slow", "attention_factor", "truncate"]
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


def frequencies(head_dim, theta, scaling):
    """Per pair, after scaling, and what sines and cosines are multiplied with."""
    f = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    kind = scaling.get("rope_type", "default")
    if kind == "default":
        return f, 1.0
    slow = f / scaling["factor"]
    if kind == "linear":
        return slow, 1.0
    original = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = ((original * f / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
        return kept * f + (1 - kept) * slow, 1.0
    assert kind == "yarn"

    def pair_of(turns):
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
    first, last = pair_of(scaling["beta_fast"]), pair_of(scaling["beta_slow"])
    if scaling["truncate"]:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    last += 0.001 if first == last else 0
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return ramp * slow + (1 - ramp) * f, scaling["attention_factor"]


def loss_of(w, tokens, config, scaling):
    vocab, dim, layers, heads, kv, head_dim, ffn, seq, batch, tied, theta, eps = config
    x = w["model.embed_tokens.weight"][tokens[:, :-1]]
    frequency, gain = frequencies(head_dim, theta, scaling)
    angle = torch.arange(seq, dtype=torch.float64)[:, None] * frequency[None]
    cosine, sine = angle.cos() * gain, angle.sin() * gain
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


def parameters_of(config):
    """{name: float64 tensor}, and the SHA-256 of the genesis they are made from."""
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
    return w, digest


def tokens_of(config):
    vocab, seq, batch = config[0], config[7], config[8]
    count = batch * (seq + 1)
    return (mix(np.arange(1, count + 1, dtype=np.uint64)) % np.uint64(vocab)).astype(np.uint32)


def golden(name):
    """The bytes of the file, the loss and the gradient."""
    config, scaling = CONFIGS[name], SCALINGS.get(name, {})
    w, digest = parameters_of(config)
    tokens = tokens_of(config)
    ids = torch.from_numpy(tokens.astype(np.int64)).view(config[8], config[7] + 1)
    loss = loss_of(w, ids, config, scaling)
    loss.backward()
    gradient = np.concatenate([t.grad.reshape(-1).numpy() for t in w.values()]).astype("<f4")
    flags = config[9] + 256 * ROPE_TYPES.index(scaling.get("rope_type", "default"))
    out = b"SHOALNUM" + struct.pack("<10I2dQ", *config[:9], flags, *config[10:], SEED) + digest
    out += struct.pack("<dQ", loss.item(), gradient.size)
    out += tokens.astype("<u4").tobytes() + gradient.tobytes()
    if scaling:
        out += struct.pack("<8d", *(float(scaling.get(f, 0)) for f in ROPE_FIELDS))
    return out, loss.item(), gradient


def path_of(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".golden")


if __name__ == "__main__":
    for name in CONFIGS:
        out, loss, gradient = golden(name)
        with open(path_of(name), "wb") as file:
            file.write(out)
        print(f"{name}: {gradient.size} parameters, loss {loss:.9f}")
