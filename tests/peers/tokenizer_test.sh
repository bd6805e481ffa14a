#!/bin/bash
# Our tokenizers beside Hugging Face's `tokenizers` from PyPI on 5 MB of text: the same vocabulary
# trained and the same ids with a tokenizer trained by either; the speeds of one thread are shown.
# Then the same ids of 10,000 documents and every code point, by tokenizers built as Qwen2.5's,
# GPT-NeoX's, OLMo's and others are.
# Needs a Python with tokenizers, named by SHOAL_PYTHON or found as python3; "make test-peers" makes
# one. Skipped, and said so, where there is none: the golden ids of tests/golden/tokenizer stand in.
#
#     tokenizer_test.sh BUILD_DIR
set -u
B=$1
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import tokenizers' 2>/dev/null; then
    echo "ok 1 - ids by Hugging Face's tokenizers # SKIP no Python with tokenizers; make test-peers installs it"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$B/bin/shoal" prepare-text --out "$work/demo" > /dev/null 2> "$work/log" &&
"$python" tests/peers/tokenizer_text.py "$work/demo" > "$work/text.txt" 2>> "$work/log" ||
    { echo "not ok 1 - ids by Hugging Face's tokenizers"; sed 's/^/# /' "$work/log"; exit 1; }
"$python" tests/peers/tokenizer_peer.py "$B" "$work" "$work/text.txt"
failed=$?
"$python" tests/peers/tokenizer_documents.py "$B" "$work" "$work/text.txt" && exit $failed
