#!/usr/bin/env bash
# memory_saves -- what the copies of shares in memory cost a run of `sharded`, and what they save when trainers die: real
# processes on this machine, four trainers of one thread.
#
#     make bench-memory [T="cost disk goodput resume"]     cost and goodput, or what T names
#     tests/bench/memory_saves.sh BUILD cost [TURNS] [EVERY]     tokens a second with memory_every = EVERY by those without,
#                                                        32 million parameters, in turns
#     tests/bench/memory_saves.sh BUILD disk [TURNS] [EVERY]     the same, and a save to a disk of 20 MB/s every EVERY steps; by
#                                                        those of a run that saves nothing. As root, with cgroup v1
#     tests/bench/memory_saves.sh BUILD goodput [TURNS] [EVERY_S]   a random trainer is killed (-9) every EVERY_S seconds:
#                                                        tokens a second by those of the same run without, in turns
#     tests/bench/memory_saves.sh BUILD limit [MIB]      eight trainers of 56.7 million parameters, each in a memory group
#                                                        (cgroup) of so many MiB (906: a trainer says that it takes 887).
#                                                        A trainer is killed, and the run goes on. As root
#     tests/bench/memory_saves.sh BUILD resume           32 million parameters with AdamW (384 MB), saved by four trainers: how
#                                                        long three new ones take until each has loaded the state
#
# The speed is that of committed steps: what is trained again counts once.

set -eu -o pipefail
build=$(realpath "$1") mode=$2
shift 2
. "$(dirname "$0")/runs.sh"

begin() {
    start_run "${PORT:-22740}" --threads 1
    wait_for_step 4 900
}

speed_for() {                                       # SECONDS, TOKENS A STEP: committed tokens a second
    local first=$(run_step) began=$EPOCHREALTIME last
    sleep "$1"
    last=$(run_step)
    awk -v a="$began" -v b="$EPOCHREALTIME" -v steps=$((last - first)) -v tokens="$2" \
        'BEGIN { if (steps < 1) exit 1; printf "%.1f\n", steps * tokens / (b - a) }'
}

set_memory() {                                      # EVERY; 0: none
    sed -i '/^memory_every = /d' "$work/run/state.toml"
    [ "$1" = 0 ] || sed -i "s/^\[strategy\]$/[strategy]\nmemory_every = $1/" "$work/run/state.toml"
}

# The longest and the mean wait of all copies, in ms, and their number, by the trainers' logs.
waits() {                                           # memory or save
    sed -n "s/.* $1\.copied .*waited_us=\([0-9]*\).*/\1/p" "$work"/run/run/logs/trainer-*.log |
        awk -v what="$1" '{ sum += $1; if ($1 > most) most = $1 } END { if (!NR) exit 1; printf "%s: %d copies waited for %.1f ms each, at most %.1f ms\n", what, NR, sum / NR / 1000, most / 1000 }'
}

# A file system that writes 20 MB/s at most.
mount_slow_disk() {
    local limit=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
    [ -w $limit ] || { echo "$limit: not here, or not to be written; nothing is measured" >&2; exit 69; }
    truncate -s 4G "$work/disk" && mkfs.ext4 -q "$work/disk" && mkdir "$work/slow"
    loop=$(losetup --find --show "$work/disk")
    mount "$loop" "$work/slow"
    echo "$(lsblk -dno MAJ:MIN "$loop") 20000000" >$limit
    dd if=/dev/zero of="$work/slow/zeros" bs=1M count=100 conv=fsync 2>&1 | tail -n 1
    rm "$work/slow/zeros"
}

free_slow_disk() {
    [ -z "${loop:-}" ] && return
    echo "$(lsblk -dno MAJ:MIN "$loop") 0" >/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
    umount "$work/slow" || true
    losetup -d "$loop"
}
trap 'stop_run; free_slow_disk; rm -rf "$work"' EXIT

cost() {                                            # WHAT, TURNS, EVERY
    local what=$1 turns=$2 every=$3 with without steps
    for ((turn = 1; turn <= turns; turn++)); do
        for kind in 0 "$every"; do
            steps=100000
            init_run --strategy sharded --trainers 4 --dim 640 --layers 6 --ffn 1728 --seq-len 256 --batch 16
            set_memory "$kind"
            if [ "$what" = disk ] && [ "$kind" != 0 ]; then
                steps=$every
                sed -i "s|^shared_dir = .*|shared_dir = \"$work/slow\"|" "$work/run/state.toml"
            fi
            sed -i "/^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = $steps/" "$work/run/state.toml"
            begin
            step_speed_for 240 4096 >>"$work/speed-$kind"
            [ "$kind" = 0 ] || waits memory
            [ "$steps" = 100000 ] || waits save
            say_memory trainer
            stop_run
        done
        without=$(tail -n 1 "$work/speed-0") with=$(tail -n 1 "$work/speed-$every")
        awk -v a="$with" -v b="$without" 'BEGIN { print a / b }' >>"$work/ratio"
        echo "turn $turn: $with tokens/s with, $without without" >&2
    done
    aim "$(median <"$work/ratio")" least "$([ "$what" = disk ] && echo 0.97 || echo 0.98)" \
        "$what, every $every steps: part of the tokens/s without"
}

# In turns within one run, as the machine's speed changes: a minute undisturbed, then four deaths.
goodput() {                                         # TURNS, EVERY_S
    local turns=$1 every_s=$2 quiet with first began
    init_run --strategy sharded --trainers 4 --seq-len 128 --batch 16
    set_memory "${MEMORY_EVERY:-10}"
    begin
    for ((turn = 1; turn <= turns; turn++)); do
        quiet=$(speed_for 60 2048)
        first=$(run_step) began=$EPOCHREALTIME
        for ((i = 0; i < 4; i++)); do
            kill -9 "$(pgrep -P "$up" -f shoal-trainer | shuf -n 1)"
            sleep "$every_s"
        done
        with=$(awk -v a="$began" -v b="$EPOCHREALTIME" -v steps=$(($(run_step) - first)) \
            'BEGIN { printf "%.1f\n", steps * 2048 / (b - a) }')
        awk -v a="$with" -v b="$quiet" 'BEGIN { print a / b }' >>"$work/ratio"
        echo "turn $turn: $with tokens/s with deaths, $quiet without" >&2
    done
    sed -n 's/.* run\.lost_steps count=\([0-9]*\).*; \(.*\)/\2 \1/p' "$work"/run/run/logs/coordinator.log |
        awk '{ n = $NF; $NF = ""; times[$0]++; steps[$0] += n } END { for (i in times) print times[i] " times, " steps[i] " steps lost: " i }'
    stop_run
    aim "$(median <"$work/ratio")" least 0.9 "a death every $every_s s: part of the tokens/s without"
}

# A program in the place of shoal-trainer that begins in a memory group of its own.
limit_trainers() {                                  # MIB
    local groups=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    [ -d $groups ] || { groups=/sys/fs/cgroup file=memory.max; }
    mkdir "$work/limited" && cp -r "$build/bin" "$work/limited/bin"
    mv "$work/limited/bin/shoal-trainer" "$work/limited/bin/limited"
    cat >"$work/limited/bin/shoal-trainer" <<EOF
#!/bin/bash
group=$groups/shoal-bench.\$\$
mkdir \$group && echo $(($1 << 20)) >\$group/$file && echo \$\$ >\$group/cgroup.procs || exit 77
exec -a shoal-trainer "$work/limited/bin/limited" "\$@"
EOF
    chmod +x "$work/limited/bin/shoal-trainer"
}

limit() {                                           # MIB
    limit_trainers "$1"
    init_run --strategy sharded --trainers 8 --dim 768 --layers 8 --seq-len 32 --batch 8
    sed -i 's/^min_clients = .*/min_clients = 8/; s/^init_min_clients = .*/init_min_clients = 8/
        s/^rounds_per_epoch = .*/rounds_per_epoch = 6/; /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 1000/
        s/^#* *link = .*/link = "plain"/' "$work/run/state.toml"
    set_memory 0
    build=$work/limited
    begin
    wait_for_step 8 900
    kill -9 "$(pgrep -P "$up" -f shoal-trainer | shuf -n 1)"
    wait_for_step 16 900
    echo "it went on with $1 MiB for each"
    say_memory trainer
    grep -h "run.lost_steps" "$work/run/run/logs/coordinator.log" || true
    stop_run
    rmdir /sys/fs/cgroup/memory/shoal-bench.* /sys/fs/cgroup/shoal-bench.* 2>/dev/null || true
}

# When a line of a log was written, in seconds of its day; the first one after line FROM.
said_at() {                                         # FILE, PATTERN, FROM
    tail -n +$(($3 + 1)) "$1" | awk -v wanted="$2" '$0 ~ wanted { split($2, of, ":"); printf "%.3f\n", of[1] * 3600 + of[2] * 60 + of[3]; exit }'
}

resume() {
    local lines log began step
    init_run --strategy sharded --trainers 4 --dim 640 --layers 6 --ffn 1728 --seq-len 64 --batch 8
    # So that all four are there when it begins
    sed -i 's/^waiting_for_members_extra_time = .*/waiting_for_members_extra_time = 5/' "$work/run/state.toml"
    sed -i 's/^min_clients = .*/min_clients = 3/; s/^init_min_clients = .*/init_min_clients = 3/
        /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 5/' "$work/run/state.toml"
    set_memory 0
    start_run "${PORT:-22740}" --threads 1 --trainers 4
    wait_for_step 12 900
    stop_run
    lines=$(wc -l <"$work/run/run/logs/coordinator.log")
    declare -A before
    for log in "$work"/run/run/logs/trainer-[123].log; do before[$log]=$(wc -l <"$log"); done
    start_run "${PORT:-22740}" --threads 1 --trainers 3
    wait_for_step 20 900
    began=$(said_at "$work/run/run/logs/coordinator.log" 'run.lost_steps' "$lines")
    for log in "$work"/run/run/logs/trainer-[123].log; do
        echo "$began $(said_at "$log" ' state\.recut ' "${before[$log]}")"
    done | awk 'NF != 2 { bad = 1 } { took = $2 - $1; if (took > most) most = took }
        END { if (bad || NR != 3) exit 1; printf "%.2f\n", most }' >"$work/took" || { echo "a line is missing in the logs"; exit 1; }
    grep -h "run.lost_steps\|state.recut" "$work"/run/run/logs/{coordinator,trainer-1}.log | tail -n 3 || true
    stop_run
    aim "$(cat "$work/took")" most 2 "seconds from the order to go back until the last of three has the state"
}

say_processors
make_text
case $mode in
cost) cost memory "${1:-3}" "${2:-10}" ;;
disk)
    mount_slow_disk
    cost disk "${1:-3}" "${2:-10}"
    ;;
goodput) goodput "${1:-5}" "${2:-30}" ;;
limit) limit "${1:-906}" ;;
resume) resume ;;
*) echo "$mode: cost, disk, goodput, limit or resume" >&2; exit 64 ;;
esac
