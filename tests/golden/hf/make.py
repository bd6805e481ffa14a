#!/usr/bin/env python3
"""Writes the model folders beside this file with transformers, and what it says of them.

    python3 tests/golden/hf/make.py BUILD_DIR         (needs torch and transformers)

Each folder: config.json and weights by save_pretrained; logits.f32, transformers' logits after each
of TOKENS tokens (tests/peers/hf_models.py), float32 [TOKENS][vocab]; exported.f32, likewise of what
"shoal export" makes of the folder; exported.sha256, the files of weights that it made.
tests/unit/model_folder_test.c reads them, and has the same table of exports.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "peers"))
import hf_models  # noqa: E402
from hf_models import LLAMA3, YARN, config  # noqa: E402

TOKENS = 50
SMALL = dict(vocab_size=40, hidden_size=16, num_attention_heads=2, num_key_value_heads=1,
             head_dim=8, intermediate_size=24)
#  name, config, saved as, bytes per file; exported as, bytes per file
FOLDERS = [
    ("llama3", config(rope_parameters=LLAMA3, **SMALL), torch.float32, "1GB", "bf16", 3000),
    ("tied", config(tie_word_embeddings=True, **SMALL), torch.bfloat16, "3KB", "f32", 1000000),
    ("mistral", config("mistral", rope_parameters=YARN, **SMALL), torch.float16, "1GB", "f16", 4000),
]


def logits(folder, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return hf_models.logits(model.eval(), ids).astype("<f4").tobytes()


def put(folder, name, bytes):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(bytes)


for number, (name, made, dtype, shard, kind, limit) in enumerate(FOLDERS):
    folder = os.path.join(here, name)
    shutil.rmtree(folder, ignore_errors=True)
    ids = hf_models.tokens(TOKENS, made.vocab_size)
    hf_models.model(made, number).to(dtype).save_pretrained(folder, max_shard_size=shard)
    os.remove(os.path.join(folder, "generation_config.json"))
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "out")
        subprocess.run([sys.argv[1] + "/bin/shoal", "export", "--model", folder, "--dtype", kind,
                        "--max-shard-bytes", str(limit), "--out", out], check=True)
        sums = ""
        for file in sorted(f for f in os.listdir(out) if f.startswith("model")):
            with open(os.path.join(out, file), "rb") as bytes:
                sums += f"{hashlib.sha256(bytes.read()).hexdigest()}  {file}\n"
        put(folder, "exported.f32", logits(out, ids))
    put(folder, "exported.sha256", sums.encode())
    put(folder, "logits.f32", logits(folder, ids))
