#!/usr/bin/env python3
"""Folders of models, theirs read by us and ours by them: the logits agree within 1e-4.

    folders.py BUILD_DIR WORK_DIR           prints TAP lines
"""
import json
import os
import subprocess
import sys

import numpy
import torch
import transformers

import hf_models
from hf_models import LINEAR, LLAMA3, YARN, config

build, work = sys.argv[1], sys.argv[2]
TOKENS, BOUND = 100, 1e-4

#  name, config, dtype it is saved as, bytes per file
THEIRS = [
    ("gqa, Llama 3 rotation", config(rope_parameters=LLAMA3), torch.float32, "1GB"),
    ("tied head, BF16, sharded", config(tie_word_embeddings=True), torch.bfloat16, "8KB"),
    ("yarn, F16", config(rope_parameters=YARN), torch.float16, "1GB"),
    ("linear, own head_dim, BF16, sharded", config(rope_parameters=LINEAR, head_dim=12),
     torch.bfloat16, "4KB"),
    ("Mistral without a window, F32, sharded", config("mistral", num_key_value_heads=1),
     torch.float32, "16KB"),
    ("Mistral, window as wide as its positions", config("mistral", sliding_window=128),
     torch.float32, "1GB"),
]
count = failures = 0


def say(name, apart, spread):
    global count, failures
    count += 1
    good = apart <= BOUND and spread > 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}: logits differ by {apart:.2g} of {spread:.3g}")


def run(*words, stdin=None):
    done = subprocess.run(words, input=stdin, capture_output=True)
    if done.returncode:
        print(f"# {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


def ours(folder, ids, vocab):
    out = run(f"{build}/tests/peers/logits", folder, stdin=ids.tobytes())
    values = numpy.frombuffer(out, dtype="<f4")
    return values.reshape(len(ids), vocab) if values.size == len(ids) * vocab else None


def theirs(folder, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return hf_models.logits(model.eval(), ids)


def compare(name, a, b):
    if a is None or b is None or not numpy.isfinite(a).all():
        return say(name, float("inf"), 0)
    say(name, float(numpy.abs(a - b).max()), float(b.max() - b.min()))


def old_spelling(folder):
    """config.json as transformers 4 wrote it: rope_scaling beside rope_theta."""
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        fields = json.load(file)
    rope = fields.pop("rope_parameters")
    fields["rope_theta"] = rope.pop("rope_theta")
    fields["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    fields["torch_dtype"] = fields.pop("dtype")
    with open(path, "w") as file:
        json.dump(fields, file)


for number, (name, made, dtype, shard) in enumerate(THEIRS):
    ids = hf_models.tokens(TOKENS, made.vocab_size)
    folder = os.path.join(work, f"theirs-{number}")
    hf_models.model(made, number).to(dtype).save_pretrained(folder, max_shard_size=shard)
    files = [f for f in os.listdir(folder) if f.endswith(".safetensors")]
    if (len(files) > 1) != (shard != "1GB"):
        print(f"# {name}: {len(files)} files")
        say(name, float("inf"), 0)
        continue
    reference = theirs(folder, ids)
    compare(f"theirs read by us: {name}", ours(folder, ids, made.vocab_size), reference)
    old_spelling(folder)
    compare(f"the same in the old spelling: {name}", ours(folder, ids, made.vocab_size), reference)
    for kind, limit in ("f32", "1000000"), ("bf16", "9000"), ("f16", "3000"):
        out = os.path.join(work, f"ours-{number}-{kind}")
        run(f"{build}/bin/shoal", "export", "--model", folder, "--dtype", kind,
            "--max-shard-bytes", limit, "--out", out)
        written = theirs(out, ids) if os.path.isdir(out) else None
        compare(f"ours read by them: {name}, as {kind}", ours(out, ids, made.vocab_size), written)
        if kind == "f32":
            compare("... and says what it said before", written, reference)
sys.exit(failures > 0)
