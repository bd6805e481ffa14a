#!/usr/bin/env python3
"""Held-out loss of a Hugging Face folder as transformers computes it, in nats per token.

    heldout_loss.py MODEL_DIR HELDOUT_BIN SEQ_LEN [SAMPLES]

Samples lie as shoal's do: seq_len + 1 tokens from every multiple of seq_len, 2 bytes a token.
"""
import sys

import numpy
import torch
import transformers


def main() -> None:
    folder, tokens_path, seq_len = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tokens = numpy.fromfile(tokens_path, dtype="<u2").astype(numpy.int64)
    count = (len(tokens) - 1) // seq_len
    count = min(count, int(sys.argv[4])) if len(sys.argv) > 4 else count
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    total = 0.0
    with torch.no_grad():
        for first in range(0, count, 32):
            rows = [tokens[i * seq_len : i * seq_len + seq_len + 1] for i in range(first, min(first + 32, count))]
            batch = torch.from_numpy(numpy.stack(rows))
            logits = model(batch[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]).double(), batch[:, 1:].reshape(-1), reduction="sum")
            total += loss.item()
    print(f"{total / (count * seq_len):.6f}")


main()
