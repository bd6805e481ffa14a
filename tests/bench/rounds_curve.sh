#!/usr/bin/env bash
# rounds_curve -- what a round costs as trainers become more: real processes on this machine, a model so
# small (29,800 parameters) that nearly all of it is the run and not the training.
#
#     make bench-rounds                                   2 4 8 16 32 64 trainers, 15 s each
#     tests/bench/rounds_curve.sh BUILD SECONDS TRAINERS...
#
# Each trainer has two sequences of 32 tokens a round, and all of them are witnesses, up to 32. A line has
# the trainers, the mean time of a round, and by the kernel's count (utime, stime) the processor time of a
# round: of a trainer, of broker, coordinator, checkpointer and data-provider, and of a trainer for each
# result of the round. Many processes on few processors disturb each other's caches: with a machine for each
# trainer the figures are lower.

set -eu -o pipefail
build=$(realpath "$1") seconds=$2
shift 2
[ $# -gt 0 ] || set -- 2 4 8 16 32 64
. "$(dirname "$0")/runs.sh"
tick=$(getconf CLK_TCK)

# Ticks of all actors of one kind, and how many they are.
ticks() {
    local pid sum=0 count=0 stat
    for pid in $(pgrep -f "^$build/bin/shoal-$1 .*$work/run" || true); do
        stat=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || continue
        set -- "$1" $stat
        sum=$((sum + ${13} + ${14})) count=$((count + 1))
    done
    echo "$sum $count"
}

measure() {                                         # TRAINERS
    local n=$1 kind first last rounds text=
    init_run --trainers "$n" --dim 32 --layers 1 --seq-len 32 --batch $((2 * n))
    start_run "${PORT:-22440}"
    wait_for_step 8 180
    declare -A before count
    first=$(run_step)
    local began=$EPOCHREALTIME
    for kind in trainer broker coordinator checkpointer data-provider; do
        read -r before[$kind] count[$kind] <<<"$(ticks $kind)"
    done
    sleep "$seconds"
    for kind in trainer broker coordinator checkpointer data-provider; do
        read -r now _ <<<"$(ticks $kind)"
        text+=" $(((now - before[$kind]) * 1000000 / tick / count[$kind]))"
    done
    last=$(run_step)
    local took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    rounds=$((last - first))
    stop_run
    [ "$rounds" -gt 0 ] || { echo "no round in $seconds s"; exit 1; }
    awk -v n="$n" -v rounds="$rounds" -v took="$took" -v text="$text" 'BEGIN {
        split(text, us, " ")
        printf "%8d %8d %9.1f", n, rounds, 1000 * took / rounds
        for (i = 1; i <= 5; i++) printf " %13.2f", us[i] / rounds / 1000
        printf " %13.3f\n", us[1] / rounds / 1000 / n }'
}

say_processors
printf '%8s %8s %9s %13s %13s %13s %13s %13s %13s\n' trainers rounds "ms/round" "trainer ms" "broker ms" \
    "coord. ms" "checkp. ms" "data ms" "ms/result"
make_text
for n; do measure "$n"; done
