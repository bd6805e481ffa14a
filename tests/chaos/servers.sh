#!/usr/bin/env bash
# servers -- runs with parameter servers for each number of trainers and servers, whose processes are killed (-9) all the
# time: each ends in the digest of `shoal train`.
#
#     make chaos SERVERS=1
#     tests/chaos/servers.sh BUILD ["1 2 4 7" ["1 2 3 5"]]     trainers, servers
#
# Real processes on loopback, a small model in eight lanes. Every 1.5 s a random trainer or server that has lived for
# twelve seconds is killed, and `shoal up` starts it again. One in three of them is a server, or with ONLY=trainers none.

set -eu -o pipefail
build=$(realpath "$1") trainers=${2:-1 2 4 7} servers=${3:-1 2 3 5} failed=0 number=0
. "$(dirname "$0")/../bench/runs.sh"
steps=${STEPS:-2500}

# One that has lived for a while: `shoal up` gives up on a process that dies again and again soon after its start.
old_one() {                                         # PROGRAM
    local pid
    for pid in $(pgrep -P "$up" -f "$1" | shuf); do
        [ "$(ps -o etimes= -p "$pid" 2>/dev/null || echo 0)" -gt 11 ] && { echo "$pid"; return; }
    done
    return 1
}

disturb() {                                         # Until the run ends; prints how many died
    local died_trainers=0 died_servers=0 victim
    while kill -0 "$up" 2>/dev/null; do
        sleep 1.5
        if [ "${ONLY:-}" = trainers ] || ((RANDOM % 3)); then
            victim=$(old_one shoal-trainer) && kill -9 "$victim" && died_trainers=$((died_trainers + 1)) || true
        else
            victim=$(old_one shoal-parameter-server) && kill -9 "$victim" && died_servers=$((died_servers + 1)) || true
        fi
    done
    echo "$died_trainers trainers and $died_servers servers killed"
}

alone() {                                           # The state of `shoal train` after all steps
    (cd "$work/run" && "$build/bin/shoal" train state.toml --data-config data.toml --threads 1 --checkpoint-dir "$work/run/alone" \
        --set checkpoint.steps=100000 2>&1) | sed -n "s/^state digest \([0-9a-f]*\).*/\1/p"
}

one() {                                             # TRAINERS, SERVERS
    init_run --strategy server --trainers "$1" --dim 64 --layers 2 --seq-len 128 --batch 16
    sed -i "s/^servers = .*/servers = $2/; s/^min_clients = .*/min_clients = 1/; s/^init_min_clients = .*/init_min_clients = 1/
        s/^total_steps = .*/total_steps = $steps/; s/^lease_time = .*/lease_time = 4/
        /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 100/" "$work/run/state.toml"
    start_run "${PORT:-22940}" --threads 1 --trainers "$1"
    disturb >"$work/died"
    wait "$up" || { tail -n 20 "$work/log"; return 1; }
    up=
    local other
    other=$(alone)
    [ -n "$other" ] || { echo "shoal train ended without a digest"; return 1; }
    ! grep -q "^0 trainers and 0 servers" "$work/died" || { echo "nobody was killed: STEPS=$steps is too short"; return 1; }
    [ "$(sed -n 's/^state digest //p' "$work/log")" = "$other" ] ||
        { tail -n 20 "$work/log"; echo "shoal train: $other"; return 1; }
}

say_processors
make_text
for w in $trainers; do
    for p in $servers; do
        number=$((number + 1))
        began=$SECONDS
        if one "$w" "$p" >"$work/said" 2>&1; then
            lost=$(sed -n 's/.* run\.lost_steps count=\([0-9]*\).*/\1/p' "$work"/run/run/logs/coordinator.log | awk '{ n += $1 } END { print NR " times back, " n + 0 " steps lost" }')
            echo "ok $number - $w trainers, $p servers: $(cat "$work/died"), $lost, $((SECONDS - began)) s; the digest is that of shoal train"
        else
            echo "not ok $number - $w trainers, $p servers"; sed 's/^/# /' "$work/said"; failed=1
            tail -n 5 "$work"/run/run/logs/*.log | sed 's/^/# /'
            [ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"
        fi
        stop_run
    done
done
echo "1..$number"
exit $failed
