#!/bin/bash
# What lm-evaluation-harness says of multiple-choice questions: the same log-probability of each
# choice, acc and acc_norm as `shoal eval --choices FILE --template raw` (harness.py).
# Needs a Python with torch, transformers, accelerate and lm_eval from PyPI, named by SHOAL_PYTHON or
# found as python3; "make test-peers" makes one. Skipped, and said so, where there is none:
# tests/unit/choices_test.c stands in, computed by hand.
#
#     harness_test.sh BUILD_DIR
set -u
B=$1
name="multiple choice by lm-evaluation-harness"
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, accelerate, lm_eval' 2>/dev/null; then
    echo "ok 1 - $name # SKIP no Python with torch, transformers, accelerate and lm_eval; make test-peers installs them"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TRANSFORMERS_VERBOSITY=error PYTHONDONTWRITEBYTECODE=1
fail()                                  # what
{
    echo "not ok 99 - $name: $1"
    tail -n 5 "$work/log" | sed 's/^/# /'
    exit 1
}
# A model that has learned a little: what it says of a choice is more than noise. Its checkpoint is a
# folder that transformers reads.
{ "$B/bin/shoal" prepare-text --out "$work/demo" &&
    "$python" tests/peers/tokenizer_text.py "$work/demo" > "$work/text" &&
    "$B/bin/shoal" train-tokenizer --vocab-size 600 -o "$work/tokenizer" "$work/text" &&
    "$B/bin/shoal" tokenize --tokenizer "$work/tokenizer" -o "$work/tokens" "$work/text" &&
    "$B/bin/shoal" init-model --dim 64 --layers 2 --heads 4 --kv-heads 2 --ffn 128 --seq-len 512 --seed 3 --vocab 600 \
        --tokenizer-dir "$work/tokenizer" --out "$work/first" &&
    "$B/bin/shoal" train config/demo/state.toml --model "$work/first" --data "$work/tokens/train" --batch-size 8 \
        --steps 100 --set Linear.total_steps=100 --checkpoint-dir "$work/trained"
} > /dev/null 2> "$work/log" || fail "no model could be made"
"$python" tests/peers/harness.py "$B" "$work"/trained/step-* "$work/text" "$work" 2> "$work/log" ||
    fail "harness.py ran to its end without failure"
