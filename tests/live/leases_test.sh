#!/bin/bash
# A run whose parameter servers are not in step (strategy.server.mode = "async"), with real processes on loopback: trainers
# pull tasks and push to two servers; a third one stands by. A trainer, the coordinator and servers are killed on the
# way. The run ends all the same: the ledger is verified, no step is committed twice, no sample is missing, and the
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
work=$(mktemp -d) port=$((21000 + $$ % 5800 * 2)) failed=0 number=0 up= # As in tools_test.sh
trap '[ -z "$up" ] || kill $up 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1

result() { # Of the command before, and what it shows
    local rc=$?
    number=$((number + 1))
    if [ $rc = 0 ]; then echo "ok $number - $1"
    else echo "not ok $number - $1"; failed=1; tail -n 20 log run/run/logs/*.log 2>/dev/null | sed 's/^/# /'; fi
    return $rc
}

step() { "$bin/shoal" status --json --ticket run/run/ticket 2>/dev/null | sed -n 's/^{[^{]*"step":\([0-9]*\).*/\1/p'; }

wait_for() { # STEP, while the run goes on
    local now
    until now=$(step) && [ "${now:-0}" -ge "$1" ]; do
        kill -0 $up 2>/dev/null && [ $SECONDS -lt 240 ] || return 1
        sleep 0.3
    done
}

cat "$top"/common/*/*.h >text
"$bin/shoal" init run --strategy server --trainers 3 --steps 600 --data text --dim 32 --layers 1 --seq-len 64 --batch 16 >log 2>&1 &&
    sed -i 's/^mode = .*/mode = "async"/; s/^\(shared_dir\|memory_every\|buddies\|lanes\|window_time\) = /# &/
        s/^# task_samples = .*/task_samples = 64/; s/^rounds_per_epoch = .*/rounds_per_epoch = 100/; s/^steps = .*/# &/
        s/^min_clients = .*/min_clients = 1/' run/state.toml &&
    "$bin/shoal" validate-config --state run/state.toml --data-config run/data.toml >log 2>&1
result "a run that is not in step is what validate-config wants"

"$bin/shoal" up run --port $port --threads 1 --standby 1 >log 2>&1 &
up=$!
wait_for 120 && kill -9 "$(pgrep -P $up -f shoal-trainer | head -n 1)" && wait_for 180 &&
    "$bin/shoal" status --tasks --json --ticket run/run/ticket >tasks 2>>log
result "a trainer is killed, and the others go on"
awk -F'[:,}]' '{ for (i = 1; i < NF; i++) { gsub(/[ "{]/, "", $i); at[$i] = $(i + 1) } }
    END { exit !(at["todo"] + at["pending"] + at["done"] + at["failed"] == at["tasks"] && at["tasks"] > 0) }' tasks
result "each task is to do, pending, done or failed: $(tr -d '\n' <tasks | cut -c1-120)"
# Of three servers two have a share.
kill -9 "$(cat run/run/coordinator/lock)" && wait_for 280 && kill -9 $(pgrep -P $up -f shoal-parameter-server | head -n 2) &&
    wait_for 400
result "the coordinator and two of the three servers are killed, and the run goes on"
wait $up
result "the run ends"
up=
"$bin/shoal" status --ledger run/run/coordinator >ledger 2>&1 && grep -q "evidence verified: .* groups, .* tasks, .* committed steps" ledger &&
    grep -q "steps 600 distinct, 0 twice, 0 skipped" ledger && grep -q ", 0 twice, 0 missing" ledger
result "its ledger is verified: $(sed -n 's/^ *\(commits .*\)/\1/p' ledger | cut -c1-110)"
first=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | tail -n 1)
last=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | head -n 1)
awk -v a="${first:-0}" -v b="${last:-0}" 'BEGIN { exit !(b > 0 && b < 0.7 * a) }'
result "the loss falls from ${first:-none} to ${last:-none}"
echo "1..$number"
exit $failed
