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
. "$(dirname "$0")/runs.sh"
tokens=$((16 * 128))

measure() {                                         # PERCENT: tokens a second
    init_run --trainers 4 --batch 16 --seq-len 128
    sed -i "s/^verification_percent = .*/verification_percent = $1/" "$work/run/state.toml"
    grep -q "^verification_percent = $1\$" "$work/run/state.toml"
    start_run "${PORT:-22540}"
    wait_for_step 8 180
    local first=$(run_step) began=$EPOCHREALTIME last
    sleep "$seconds"
    last=$(run_step)
    awk -v a="$began" -v b="$EPOCHREALTIME" -v steps=$((last - first)) -v tokens=$tokens \
        'BEGIN { if (steps < 1) exit 1; printf "%.0f\n", steps * tokens / (b - a) }'
    stop_run
}

say_processors
make_text
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
