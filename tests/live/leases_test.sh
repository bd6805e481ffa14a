#!/bin/bash
# A run whose parameter servers are not in step (strategy.server.mode = "async"), with real processes on loopback: trainers
# pull tasks and push to two servers; a third one stands by. Servers save their shares to a folder on the way, and keep copies
# of one another's in memory. A trainer, the coordinator and a server are killed; then all servers, and the newest save is
# damaged: the run goes back to the one before it. It ends all the same: the ledger is verified, no step is committed twice, no sample is missing, the last step is saved, and the
# model has learned.
#
#     tests/live/leases_test.sh BUILD_DIR
#
# Has a folder of its own and takes free ports. Prints TAP lines.
set -u
export LC_ALL=C
unset TICKET RUN_ID SERVER_ADDR SERVER_KEY IDENTITY_SECRET_KEY_PATH
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath -e "${1:?usage: leases_test.sh BUILD_DIR}")/bin || exit 64
work=$(mktemp -d) memory= port=$((21000 + $$ % 5800 * 2)) failed=0 number=0 up= monitor= # As in tools_test.sh
trap 'exec 3<&-; kill $up $monitor 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1

result() { # Of the command before, and what it shows
    local rc=$?
    number=$((number + 1))
    if [ $rc = 0 ]; then echo "ok $number - $1"
    else echo "not ok $number - $1"; failed=1; tail -n 20 log run/run/logs/*.log 2>/dev/null | sed 's/^/# /'; fi
    return $rc
}

wait_for() { # FIELD NUMBER: until the news say that the run is there; $there is where it is then
    local line
    while [ $SECONDS -lt 120 ] && IFS= read -r -t 60 -u 3 line; do
        [[ $line =~ \"$1\":([0-9]+) ]] && there=${BASH_REMATCH[1]} && [ "$there" -ge "$2" ] && return
    done
    return 1
}

cat "$top"/common/*/*.h >text
"$bin/shoal" init run --strategy server --trainers 3 --steps 880 --data text --dim 32 --layers 1 --seq-len 64 --batch 16 >log 2>&1 &&
    sed -i 's/^mode = .*/mode = "async"/; s/^\(lanes\|window_time\) = /# &/
        s/^# task_samples = .*/task_samples = 64/; s/^rounds_per_epoch = .*/rounds_per_epoch = 400/; s/^steps = .*/steps = 40/
        s/^min_clients = .*/min_clients = 1/' run/state.toml &&
    "$bin/shoal" validate-config --state run/state.toml --data-config run/data.toml >log 2>&1
result "a run that is not in step is what validate-config wants"

mkfifo said
"$bin/shoal" up run --port $port --threads 1 --standby 1 >said 2>&1 &
up=$!
exec 4<said # Its ticket is there when it says how to watch
while IFS= read -r -u 4 line && echo "$line" && [[ $line != Watch\ with* ]]; do :; done >log
cat <&4 >>log &
exec 3< <(exec "$bin/zmq-monitor" --topic RUN --json --ticket run/run/ticket 2>>log)
monitor=$!
wait_for step 120 && kill -9 "$(pgrep -P $up -f shoal-trainer | head -n 1)" && wait_for step 180 &&
    "$bin/shoal" status --tasks --json --ticket run/run/ticket >tasks 2>>log
result "a trainer is killed, and the others go on"
awk -F'[:,}]' '{ for (i = 1; i < NF; i++) { gsub(/[ "{]/, "", $i); at[$i] = $(i + 1) } }
    END { exit !(at["todo"] + at["pending"] + at["done"] + at["failed"] == at["tasks"] && at["tasks"] > 0) }' tasks
result "each task is to do, pending, done or failed: $(tr -d '\n' <tasks | cut -c1-120)"
kill -9 "$(cat run/run/coordinator/lock)" && wait_for checkpoint_step 240
result "servers save their shares beside the training, and the coordinator is killed"
# Copies in memory are newer than the save: they are made every ten steps, a save every forty. The first server with a share:
holder=$(grep -l shares.taken run/run/logs/parameter-server-*.log | head -n 1 | tr -dc 0-9)
wait_for step 255 && kill -9 "$(pgrep -P $up -f shoal-parameter-server | sed -n "${holder:-1}p")" &&
    wait_for restored_step 241 &&
    memory=$(grep -h "run\.lost_steps .* from the memory of the others" run/run/logs/coordinator.log)
result "a server is killed: ${memory#* }"
# Two of the three servers have a share, and each other's. All are stopped while we ask which save is the newest: else they
# could make another one.
wait_for step 320
lost= servers=$(pgrep -P $up -f shoal-parameter-server)
kill -STOP $servers && "$bin/shoal" status --ticket run/run/ticket >now 2>>log &&
    piece=$(ls run/saves/*/"$(sed -n 's/^ *save \(step-[0-9]*\).*/\1/p' now)"/parameters.0-*) &&
    printf 'x' | dd of="$piece" bs=1 seek=100 conv=notrunc 2>>log && kill -9 $servers &&
    wait_for step 440 && grep -q "save\.unread.*parameters" run/run/logs/coordinator.log &&
    lost=$(grep -h "run\.lost_steps .* an older save" run/run/logs/coordinator.log)
result "a piece of the newest save is damaged and all servers are killed: ${lost#* }"
wait $up
result "the run ends"
up=
exec 3<&-
"$bin/shoal" status --ledger run/run/coordinator >ledger 2>&1 && grep -q "evidence verified: .* groups, .* tasks, .* committed steps" ledger &&
    grep -q "steps 880 distinct, 0 twice, 0 skipped" ledger && grep -q ", 0 twice, 0 missing" ledger
result "its ledger is verified: $(sed -n 's/^ *\(commits .*\)/\1/p' ledger | cut -c1-110)"
"$bin/shoal" checkpoint show run/saves/*/step-00000880 >show 2>&1 && grep -q "async-server" show
result "the last step is saved, with what each server knew of pushes"
first=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | tail -n 1)
last=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | head -n 1)
awk -v a="${first:-0}" -v b="${last:-0}" 'BEGIN { exit !(b > 0 && b < 0.7 * a) }'
result "the loss falls from ${first:-none} to ${last:-none}"
echo "1..$number"
exit $failed
