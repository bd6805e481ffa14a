#!/bin/bash
# What TensorBoard reads of a run: the event files of two lives of a coordinator have the numbers of
# their run.csv (event_files.py). Needs a Python with tensorboard, as transformers_test.sh its own;
# without one, tests/unit/run_log_test.c stands in, with bytes that TensorBoard's own writer made.
#
#     tensorboard_test.sh BUILD_DIR
set -u
B=$(realpath "$1")
name="the run's event files by TensorBoard"
python=${SHOAL_PYTHON:-python3}
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
    echo "ok 1 - $name # SKIP no Python with tensorboard; make test-peers installs it"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "not ok 1 - $name"; tail -n 5 "$work/log" | sed 's/^/# /'; exit 1; }
cp -r config/demo "$work/run"
sed -i -e '0,/^total_steps = .*/s//total_steps = 24/' -e 's/^rounds_per_epoch = .*/rounds_per_epoch = 12/' "$work/run/state.toml"
sed -i -e 's/"hidden_size": .*/"hidden_size": 32,/' -e 's/"intermediate_size": .*/"intermediate_size": 64,/' \
    -e 's/"num_\(hidden_layers\|attention_heads\|key_value_heads\)": .*/"num_\1": 1,/' "$work/run/model.json"
scripts=$PWD/tests/peers
cd "$work/run" || exit 1
{ "$B/bin/shoal" prepare-text --out data && "$B/bin/shoal" init-model --config model.json --out model; } >"$work/log" 2>&1 || fail
# Ended after some steps, and begun again: a second life, with an event file of its own.
start() { exec "$B/bin/shoal" testnet start --num-clients 4 -c . --server-port $((20000 + $$ % 6000 * 2)); }
start >>"$work/log" 2>&1 &
for ((i = 0; i < 600; i++)); do
    [ "$(cat testnet-state/metrics/run.csv 2>/dev/null | wc -l)" -gt 6 ] && break
    sleep 0.1
done
kill -INT $!; wait $!
start >>"$work/log" 2>&1 &
wait $! || fail
files=$(ls testnet-state/metrics/events.out.tfevents.* | wc -l)
[ "$files" -eq 2 ] || { echo "not ok 1 - $name: $files event files"; exit 1; }
said=$("$python" "$scripts/event_files.py" testnet-state/metrics 2>"$work/log") || fail
echo "ok 1 - $name: $said"
