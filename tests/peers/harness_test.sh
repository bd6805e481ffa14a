#!/bin/bash
# What lm-evaluation-harness says of HellaSwag, PIQA and MMLU: the same number right as
# `shoal eval --choices FILE --template raw` counts when it is asked in the harness's words. The
# documents are made up; the task files are the harness's. Needs a Python with torch, transformers
# and lm_eval; without one, tests/unit/choices_test.c stands in, computed by hand.
#
#     harness_test.sh BUILD_DIR
set -u
B=$1
name="multiple choice by lm-evaluation-harness"
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, lm_eval' 2>/dev/null; then
    echo "ok 1 - $name # SKIP no Python with torch, transformers and lm_eval; make test-peers installs them"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()                                  # what
{
    echo "not ok 1 - $name: $1"
    tail -n 5 "$work/log" | sed 's/^/# /'
    exit 1
}
"$B/bin/shoal" prepare-text --out "$work/demo" > /dev/null 2> "$work/log" &&
    python3 tests/peers/tokenizer_text.py "$work/demo" > "$work/text.txt" 2>> "$work/log" || fail "no text"
"$B/bin/shoal" train-tokenizer --vocab-size 600 -o "$work/tokenizer" "$work/text.txt" > /dev/null 2> "$work/log" &&
    "$B/bin/shoal" init-model --dim 64 --layers 2 --heads 4 --kv-heads 2 --ffn 128 --seq-len 512 --seed 3 --vocab 600 \
        --tokenizer-dir "$work/tokenizer" --out "$work/model" > /dev/null 2>> "$work/log" || fail "no model could be made"
"$python" tests/peers/harness.py "$work/model" "$work" > "$work/theirs" 2> "$work/log" || fail "the harness"
said=
while read -r file questions right normalized; do
    ours=$("$B/bin/shoal" eval --model "$work/model" --choices "$file" --template raw --json 2> "$work/log" |
           sed -n 's/.*"questions":\([0-9]*\).*"acc":\([0-9.]*\).*"acc_norm":\([0-9.]*\).*/\1 \2 \3/p' |
           awk -v normalized="$normalized" \
               '{ printf "%d %.0f %s", $1, $1 * $2, normalized == "-" ? "-" : sprintf("%.0f", $1 * $3) }')
    task=$(basename "$file" .jsonl)
    [ "$ours" = "$questions $right $normalized" ] || fail "$task: $questions $right $normalized, ours $ours"
    said="$said${said:+; }$task: $right $normalized of $questions"
done < "$work/theirs"
[ -n "$said" ] || fail "it asked nothing"
echo "ok 1 - $name: $said"
