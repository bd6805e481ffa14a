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

speed() {                                           # STRATEGY
    init_run --strategy "$1" --trainers "$trainers" --dim 384 --layers 4 --ffn 1280 --seq-len 256 --batch 32
    sed -i "s/^servers = .*/servers = $servers/; s/^#* *link = .*/link = \"${LINK:-aes-gcm}\"/
        /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 100000/; /^memory_every = /d" "$work/run/state.toml"
    start_run "${PORT:-22840}" --threads 1
    wait_for_step 4 900
    step_speed_for "$seconds" 8192 >>"$work/speed-$1"
    echo "$1: trainers held $(held trainer) MiB"
    [ "$1" = allreduce ] || say_memory parameter-server
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
aim "$(median <"$work/ratio")" least 0.85 "$trainers trainers with $servers servers: part of the tokens/s of allreduce"
