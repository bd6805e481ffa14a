#!/bin/bash
# What transformers says of multiple-choice questions: the same number right, with and without shots,
# as `shoal eval --choices` counts. Needs a Python with torch and transformers, as
# transformers_test.sh; without one, tests/unit/choices_test.c stands in, computed by hand.
#
#     choices_test.sh BUILD_DIR
set -u
B=$1
name="multiple choice by transformers"
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers' 2>/dev/null; then
    echo "ok 1 - $name # SKIP no Python with torch and transformers; make test-peers installs them"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A model that has seen nothing, and questions about nothing, from a generator of our own.
"$B/bin/shoal" init-model --dim 64 --layers 2 --heads 4 --kv-heads 2 --ffn 128 --seq-len 160 --seed 3 \
    --out "$work/model" > /dev/null 2>&1 || { echo "not ok 1 - $name"; echo "# no model could be made"; exit 1; }
awk 'BEGIN {
    srand(7); split("ice fire água water 12 zebra king of é light x the", word, " ")
    for (i = 0; i < 60; i++) {
        printf "{\"question\": \"%d %s\", \"choices\": [", i, word[int(rand() * 12) + 1]
        n = int(rand() * 3) + 2
        for (c = 0; c < n; c++)
            printf "%s\"%d%s %s\"", c ? ", " : "", c, word[int(rand() * 12) + 1], substr("abcdefghijklmnop", 1, int(rand() * 9) + 1)
        printf "], \"answer\": %d}\n", int(rand() * n)
    } }' > "$work/questions.jsonl"
said=
for shots in 0 3; do
    ours=$("$B/bin/shoal" eval --model "$work/model" --choices "$work/questions.jsonl" --shots $shots --json |
           sed -n 's/.*"questions":\([0-9]*\).*"acc":\([0-9.]*\).*"acc_norm":\([0-9.]*\).*/\1 \2 \3/p' |
           awk '{ printf "%.0f %.0f", $1 * $2, $1 * $3 }')
    theirs=$("$python" tests/peers/choices.py "$work/model" "$work/questions.jsonl" $shots 2> "$work/log")
    if [ -z "$theirs" ] || [ "$ours" != "$theirs" ]; then
        echo "not ok 1 - $name, $shots shots: $theirs, ours $ours"
        tail -n 5 "$work/log" | sed 's/^/# /'
        exit 1
    fi
    said="$said${said:+; }$shots shots: $theirs of $((60 - shots))"
done
echo "ok 1 - $name: $said"
