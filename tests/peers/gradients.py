#!/usr/bin/env python3
"""The golden gradients of tests/numeric/llama, computed again, and by transformers' own model.

    gradients.py                            prints TAP lines

Of each golden: the file is what torch computes here and now in float64 (to a rounding of float32),
and LlamaForCausalLM in float64 has the same gradient within 1e-5 of every tensor's length. Theirs
rounds the rotation's frequencies and angles to float32 on the way, so it is not closer than about
1e-7 times the number of positions.
"""
import os
import sys

import numpy as np
import torch
import transformers

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "numeric", "llama"))
import make_golden  # noqa: E402

BOUND = 1e-5
count = failures = 0


def say(good, text):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {text}")


def model_of(config, scaling):
    vocab, dim, layers, heads, kv, head_dim, ffn, seq, batch, tied, theta, eps = config
    rope = {"rope_type": "default", **scaling, "rope_theta": theta}
    positions = 4 * rope.get("original_max_position_embeddings", seq)
    made = transformers.LlamaConfig(
        vocab_size=vocab, hidden_size=dim, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv, head_dim=head_dim, intermediate_size=ffn, rms_norm_eps=eps,
        max_position_embeddings=positions, tie_word_embeddings=bool(tied), rope_parameters=rope)
    return transformers.AutoModelForCausalLM.from_config(made, dtype=torch.float64,
                                                         attn_implementation="eager")


def theirs(config, scaling):
    """Loss and gradient per tensor by transformers."""
    model = model_of(config, scaling)
    weights, _ = make_golden.parameters_of(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights.pop(name))
    assert not weights
    ids = torch.from_numpy(make_golden.tokens_of(config).astype(np.int64))
    ids = ids.view(config[8], config[7] + 1)
    logits = model(ids[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, config[0]), ids[:, 1:].reshape(-1))
    loss.backward()
    return loss.item(), {name: p.grad.reshape(-1).numpy() for name, p in model.named_parameters()}


for name, config in make_golden.CONFIGS.items():
    scaling = make_golden.SCALINGS.get(name, {})
    out, loss, gradient = make_golden.golden(name)
    with open(make_golden.path_of(name), "rb") as file:
        kept = file.read()
    tail = gradient.nbytes + (64 if scaling else 0)
    head = len(out) - tail
    known = np.frombuffer(kept[head:head + gradient.nbytes], dtype="<f4")
    apart = np.abs(known - gradient).max() / np.abs(gradient).max() if len(kept) == len(out) else 9
    say(apart < 1e-6, f"{name}.golden is what torch {torch.__version__} computes: {apart:.2g} apart")

    their_loss, their_gradient = theirs(config, scaling)
    worst, at = abs(their_loss / loss - 1), 0
    layout = make_golden.layout(*config[:7], config[9])
    for tensor, shape in layout:
        size = int(np.prod(shape))
        ours = gradient[at:at + size].astype(np.float64)
        worst = max(worst, np.linalg.norm(their_gradient[tensor] - ours) / np.linalg.norm(ours))
        at += size
    say(worst < BOUND, f"{name}: transformers {transformers.__version__} differs by {worst:.2g}")
sys.exit(failures > 0)
