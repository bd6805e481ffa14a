#!/usr/bin/env bash
# audits -- what recomputing results costs a run: real processes on this machine, the demo's shape of model.
#
#     make bench-audits                             0, 25 and 50 per cent of the clients audit, 5 turns of 15 s
#     tests/bench/audits.sh BUILD SECONDS TURNS PERCENT...
#
# Four trainers with sixteen sequences of 128 tokens a round. An auditor recomputes a result instead of training,
# so with P per cent of the clients auditing 1 - P / 100 of the tokens a second are left at the most. Each turn
# has a run of every kind, one after the other; a line has the median tokens a second of the kind, the median of
# its ratios to the run without audits of the same turn, and how much of 1 - P / 100 that is: 0.95 is the aim.

set -eu -o pipefail
build=$(realpath "$1") seconds=$2 turns=$3
shift 3
[ $# -gt 0 ] || set -- 25 50
work=$(mktemp -d)
up=
stop() {
    [ -z "$up" ] || { kill -INT "$up"; kill -INT "$up"; wait "$up" || true; } 2>/dev/null
    up=
}
trap 'stop; rm -rf "$work"' EXIT
tokens=$((16 * 128))

step() {
    "$build/bin/shoal" status --json --ticket "$work/run/run/ticket" 2>/dev/null |
        sed -n 's/.*"step": *\([0-9]*\).*/\1/p' | head -1
}

wait_for_step() {                                   # The run's own words end it if it fails
    local from=$SECONDS now
    until now=$(step) && [ "${now:-0}" -ge "$1" ]; do
        kill -0 "$up" 2>/dev/null && [ $((SECONDS - from)) -lt 180 ] || { tail -5 "$work/log"; exit 1; }
        sleep 0.5
    done
}

measure() {                                         # PERCENT: tokens a second
    rm -rf "$work/run"
    "$build/bin/shoal" init "$work/run" --trainers 4 --batch 16 --seq-len 128 --steps 100000 \
        --data "$work/text" >/dev/null 2>&1
    sed -i "s/^verification_percent = .*/verification_percent = $1/" "$work/run/state.toml"
    grep -q "^verification_percent = $1\$" "$work/run/state.toml"
    "$build/bin/shoal" up "$work/run" --port "${PORT:-22540}" >"$work/log" 2>&1 &
    up=$!
    wait_for_step 8
    local first=$(step) began=$EPOCHREALTIME last
    sleep "$seconds"
    last=$(step)
    awk -v a="$began" -v b="$EPOCHREALTIME" -v steps=$((last - first)) -v tokens=$tokens \
        'BEGIN { if (steps < 1) exit 1; printf "%.0f\n", steps * tokens / (b - a) }'
    stop
}

median() { sort -n | awk '{ of[NR] = $1 } END { print of[int((NR + 1) / 2)] }'; }

sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /'
for ((i = 0; i < 40; i++)); do cat "$(dirname "$0")"/../../common/*/*.h; done >"$work/text" 2>/dev/null
for ((turn = 1; turn <= turns; turn++)); do
    plain=$(measure 0)
    echo "$plain" >>"$work/of-0"
    for percent; do
        speed=$(measure "$percent")
        echo "$speed" >>"$work/of-$percent"
        awk -v a="$speed" -v b="$plain" 'BEGIN { print a / b }' >>"$work/ratio-$percent"
    done
    echo "turn $turn of $turns: $plain tokens/s without audits" >&2
done
printf '%8s %9s %8s %18s\n' "audits %" tokens/s ratio "of 1 - P / 100"
printf '%8s %9s\n' 0 "$(median <"$work/of-0")"
for percent; do
    awk -v p="$percent" -v speed="$(median <"$work/of-$percent")" -v ratio="$(median <"$work/ratio-$percent")" \
        'BEGIN { printf "%8d %9d %8.3f %18.3f\n", p, speed, ratio, ratio / (1 - p / 100) }'
done
