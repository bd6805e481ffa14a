#!/usr/bin/env bash
# servers -- what parameter servers cost beside allreduce, and what each process holds: two trainers with two servers by
# two trainers alone, real processes of one thread on this machine, 8 million parameters, in turns.
#
#     make bench-servers TURNS=3
#     tests/bench/servers.sh BUILD [TURNS] [SECONDS]
#
# Two more processes share the processors: a server sums and applies, as each trainer of allreduce does for itself. Their
# links are sealed, as `shoal init` makes them; TRAINERS, SERVERS and LINK=plain change that.

set -eu -o pipefail
build=$(realpath "$1") turns=${2:-3} seconds=${3:-60}
. "$(dirname "$0")/runs.sh"
trainers=${TRAINERS:-2} servers=${SERVERS:-2}

# Most that each process of a program has held, in MiB.
held() {                                            # PROGRAM
    for pid in $(pgrep -P "$up" -f "$1"); do sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; done |
        sort -n | awk '{ printf "%s%.0f", (NR > 1 ? " " : ""), $1 / 1024 } END { print " MiB" }'
}

speed() {                                           # STRATEGY
    init_run --strategy "$1" --trainers "$trainers" --dim 384 --layers 4 --ffn 1280 --seq-len 256 --batch 32
    sed -i "s/^servers = .*/servers = $servers/; s/^#* *link = .*/link = \"${LINK:-aes-gcm}\"/
        /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 100000/; /^memory_every = /d" "$work/run/state.toml"
    start_run "${PORT:-22840}" --threads 1
    wait_for_step 4 900
    step_speed_for "$seconds" 8192 >>"$work/speed-$1"
    echo "$1: trainers held $(held shoal-trainer)" >&2
    [ "$1" = allreduce ] || echo "$1: servers held $(held shoal-parameter-server)" >&2
    stop_run
}

say_processors
make_text
for ((turn = 1; turn <= turns; turn++)); do
    speed allreduce
    speed server
    awk -v a="$(tail -n 1 "$work/speed-server")" -v b="$(tail -n 1 "$work/speed-allreduce")" 'BEGIN { print a / b }' >>"$work/ratio"
    echo "turn $turn: $(tail -n 1 "$work/speed-server") tokens/s with servers, $(tail -n 1 "$work/speed-allreduce") by allreduce" >&2
done
echo "$trainers trainers with $servers servers: $(median <"$work/ratio") of the tokens/s of allreduce"
