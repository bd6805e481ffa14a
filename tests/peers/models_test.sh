#!/bin/bash
# What transformers says of our models: folders of theirs read by us and of ours read by them give
# the same logits (folders.py), and its gradients are the golden ones (gradients.py).
# Needs a Python with torch and transformers from PyPI, named by SHOAL_PYTHON or found as python3;
# "make test-peers" makes one. Skipped, and said so, where there is none: the golden folders and
# gradients of tests/golden/hf and tests/numeric stand in.
#
#     models_test.sh BUILD_DIR
set -u
B=$1
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers, numpy' 2>/dev/null; then
    echo "ok 1 - logits and gradients by transformers # SKIP no Python with torch and transformers; make test-peers installs them"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error PYTHONDONTWRITEBYTECODE=1
result=0
for script in gradients.py "folders.py $B $work"; do
    # shellcheck disable=SC2086
    "$python" tests/peers/$script 2> "$work/log" && continue
    result=1
    echo "not ok 99 - ${script%% *} ran to its end without failure"
    tail -n 5 "$work/log" | sed 's/^/# /'
done
exit $result
