#!/usr/bin/env bash
# run_ratio -- what a run costs beside one trainer alone: the tokens a second of a whole run on this machine, with
# one trainer of one thread for each processor, by those of `shoal train` with as many threads. The same model, text
# and settings, in turns.
#
#     make bench-runs                                      demo and 8 M parameters, 3 turns
#     tests/bench/run_ratio.sh BUILD TURNS SHAPE...        shapes: demo 8m 134m
#
# A run pays for the coordinator, the broker, the data-provider and the checkpointer, for signatures, payloads and
# durable records, and each trainer waits for the last one of the round. `shoal train` makes and applies one
# result of the whole batch, a run one result for each trainer.

set -eu -o pipefail
build=$(realpath "$1") turns=$2
shift 2
[ $# -gt 0 ] || set -- demo 8m
. "$(dirname "$0")/runs.sh"

# dim layers ffn, tokens of a sequence, sequences of a round, rounds that are measured
shape() {
    case $1 in
    demo) echo 160 4 448 128 16 100 ;;
    8m) echo 384 4 1280 256 32 20 ;;
    134m) echo 1024 10 2816 256 16 4 ;;
    *) echo "$1: the shapes are demo, 8m and 134m" >&2; exit 64 ;;
    esac
}

# The times of the commits say how long the rounds took, whenever we look. So we look seldom: it takes from the run.
look_every=5
run_speed() {                                       # SHAPE: tokens a second
    local dim layers ffn seq batch rounds
    read -r dim layers ffn seq batch rounds <<<"$(shape "$1")"
    init_run --trainers "$(nproc)" --dim "$dim" --layers "$layers" --ffn "$ffn" --seq-len "$seq" --batch "$batch"
    start_run "${PORT:-22640}" --threads 1
    wait_for_step $((rounds + 3)) 1200
    stop_run
    local csv="$work/run/run/metrics/run.csv"
    [ -f "$csv" ] || csv=$(find "$work/run" -name run.csv | head -1)
    awk -F, -v rounds="$rounds" 'NR == 1 { for (i = 1; i <= NF; i++) of[$i] = i; next }
        { s = $(of["tokens_per_s"]); if (NR > 3 && n < rounds && s > 0) { time += 1 / s; n++ } }
        END { if (!n) exit 1; printf "%.0f\n", n / time }' "$csv"
}

train_speed() {                                     # SHAPE, after run_speed has made its folder
    local dim layers ffn seq batch rounds
    read -r dim layers ffn seq batch rounds <<<"$(shape "$1")"
    (cd "$work/run" && "$build/bin/shoal" train state.toml --data-config data.toml --optimizer distro \
        --steps $((rounds + 2)) --threads "$(nproc)" --no-checkpoint --log "$work/train.csv" >/dev/null 2>&1)
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) of[$i] = i; next }
        NR > 3 { s = $(of["tokens_per_s"]); if (s > 0) { time += 1 / s; n++ } }
        END { if (!n) exit 1; printf "%.0f\n", n / time }' "$work/train.csv"
    rm -f "$work/train.csv"
}

say_processors
make_text
printf '%8s %14s %16s %15s %7s\n' shape "tokens a round" "run, tokens/s" "train, tokens/s" ratio
for shape; do
    read -r _ _ _ seq batch _ <<<"$(shape "$shape")"
    for ((turn = 1; turn <= turns; turn++)); do
        run=$(run_speed "$shape")
        train=$(train_speed "$shape")
        echo "$run" >>"$work/run-$shape"
        echo "$train" >>"$work/train-$shape"
        awk -v a="$run" -v b="$train" 'BEGIN { print a / b }' >>"$work/ratio-$shape"
    done
    printf '%8s %14d %16s %15s %7.3f\n' "$shape" $((seq * batch)) "$(median <"$work/run-$shape")" \
        "$(median <"$work/train-$shape")" "$(median <"$work/ratio-$shape")"
done
