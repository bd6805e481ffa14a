#!/bin/bash
# What transformers says of a checkpoint of ours: it loads, and its held-out loss is ours within 1e-3.
# Needs a Python with torch and transformers from PyPI, named by SHOAL_PYTHON or found as python3;
# "make test-peers" makes one. Skipped, and said so, where there is none: the golden gradients and
# losses of tests/numeric stand in.
#
#     transformers_test.sh BUILD_DIR [CHECKPOINT HELDOUT_BIN]
set -u
B=$1
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, numpy' 2>/dev/null; then
    echo "ok 1 - held-out loss by transformers # SKIP no Python with torch and transformers; make test-peers installs them"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=${2:-} heldout=${3:-}
if [ -z "$model" ]; then
    "$B/bin/shoal" prepare-text --out "$work/text" > /dev/null 2>&1 &&
    "$B/bin/shoal" init-model --dim 64 --layers 2 --heads 4 --kv-heads 2 --ffn 128 --seq-len 64 --seed 3 --out "$work/model" > /dev/null 2>&1 ||
        { echo "not ok 1 - held-out loss by transformers"; echo "# no model could be made"; exit 1; }
    model=$work/model heldout=$work/text/heldout/heldout.bin
fi
seq_len=$(sed -n 's/.*"max_position_embeddings": \([0-9]*\).*/\1/p' "$model/config.json")
ours=$("$B/bin/shoal" eval --model "$model" --data "$(dirname "$heldout")" --seq-len "$seq_len" --json |
       sed -n 's/.*"nats_per_token":\([0-9.]*\).*/\1/p')
theirs=$("$python" tests/peers/heldout_loss.py "$model" "$heldout" "$seq_len" 2> "$work/log")
if awk -v a="${ours:-0}" -v b="${theirs:-9}" 'BEGIN { d = a - b; exit !(d < 1e-3 && d > -1e-3) }'; then
    echo "ok 1 - held-out loss by transformers: $theirs, ours $ours"
else
    echo "not ok 1 - held-out loss by transformers: $theirs, ours $ours"
    tail -n 5 "$work/log" | sed 's/^/# /'
    exit 1
fi
