#!/bin/bash
# A run whose parameter servers are not in step (strategy.server.mode = "async"), with real processes on loopback: trainers
# pull tasks and push to two servers; a third one stands by. Servers save their shares to a folder on the way, and keep copies
# of one another's in memory. A trainer, the coordinator and a server are killed; a trainer stands still until its task is
# another's, and a server until its place is; then all servers are killed, and the newest save is damaged: the run goes back
# to the one before it. It ends all the same: the ledger is verified, no step is committed twice, no sample is missing, the
# last step is saved, and the model has learned.
#
#     tests/live/leases_test.sh BUILD_DIR
#
# Has a folder of its own and takes free ports. Prints TAP lines.
set -u
export LC_ALL=C
unset TICKET RUN_ID SERVER_ADDR SERVER_KEY IDENTITY_SECRET_KEY_PATH
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath -e "${1:?usage: leases_test.sh BUILD_DIR}")/bin || exit 64
work=$(mktemp -d) memory= port=$((21000 + $$ % 5800 * 2)) failed=0 number=0 up= monitor= steps=1440 # As in tools_test.sh
trap 'exec 3<&-; kill $up $monitor 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1

result() { # WORDS COMMAND: of what ran before, with the output of the command. No $(..) as an argument: its status would count
    local rc=$? words=$1
    shift
    [ $# = 0 ] || words+=": $("$@")"
    number=$((number + 1))
    if [ $rc = 0 ]; then echo "ok $number - $words"
    else echo "not ok $number - $words"; failed=1; tail -n 20 log run/run/logs/*.log 2>/dev/null | sed 's/^/# /'; fi
    return $rc
}

process_of() { pgrep -P $up -f -- "--state-dir=[^ ]*/$1( |\$)"; } # NAME, as its log's

last_to_say() { # KIND WORDS: the actor of this kind whose log has the newest line with them
    grep -H " $2" run/run/logs/$1-*.log | sed 's/^\([^:]*\):\([^ ]* [^ ]*\) .*/\2 \1/' | sort | tail -n 1 | sed 's/.*\///; s/\.log$//'
}

wait_for_line() { # FILE FROM_LINE PATTERN
    timeout ${patience:-60} grep -qm 1 -- "$3" <(exec tail -n +$(($2 + 1)) -F "$1" 2>/dev/null)
}

step_now() { now=$(sed -n 's/.*"round":[0-9]*,"step":\([0-9]*\).*/\1/p' news | tail -n 1); }

wait_for() { # FIELD NUMBER: until the news say that the run is there; $there is where it is then
    local line
    while [ $SECONDS -lt 120 ] && IFS= read -r -t 60 -u 3 line; do
        [[ $line =~ \"$1\":([0-9]+) ]] && there=${BASH_REMATCH[1]} && [ "$there" -ge "$2" ] && return
    done
    return 1
}

cat "$top"/common/*/*.h >text
"$bin/shoal" init run --strategy server --trainers 3 --steps $steps --data text --dim 32 --layers 1 --seq-len 64 --batch 16 >log 2>&1 &&
    sed -i 's/^mode = .*/mode = "async"/; s/^\(lanes\|window_time\) = /# &/
        s/^# task_samples = .*/task_samples = 256/; s/^rounds_per_epoch = .*/rounds_per_epoch = 1440/; s/^steps = .*/steps = 120/
        s/^min_clients = .*/min_clients = 1/; s/^lease_time = .*/lease_time = 4/' run/state.toml &&
    "$bin/shoal" validate-config --state run/state.toml --data-config run/data.toml >log 2>&1
result "a run that is not in step is what validate-config wants"

mkfifo said
"$bin/shoal" up run --port $port --threads 1 --standby 1 >said 2>&1 &
up=$!
exec 4<said # Its ticket is there when it says how to watch
while IFS= read -r -u 4 line && echo "$line" && [[ $line != Watch\ with* ]]; do :; done >log
cat <&4 >>log &
"$bin/zmq-monitor" --topic RUN --json --ticket run/run/ticket >news 2>>log &
monitor=$!
exec 3< <(exec tail -n +1 --pid=$monitor -F news 2>/dev/null)
wait_for step 60
for kind in coordinator trainer parameter-server; do echo "$kind $(pgrep -c -P $up -f "bin/shoal-$kind ")"; done | paste -sd, >kinds
[ "$(cat kinds)" = "coordinator 1,trainer 3,parameter-server 3" ]
result "three kinds of processes" cat kinds
wait_for step 120 && kill -9 "$(pgrep -P $up -f shoal-trainer | head -n 1)" && wait_for step 180 &&
    "$bin/shoal" status --tasks --json --ticket run/run/ticket >tasks 2>>log
result "a trainer is killed, and the others go on"
tasks_add_up() { # FILE: 256 samples a task; how many of a pass there are is known when the data is
    awk -F'[:,}]' -v samples="$(sed -n 's/.*"pass_samples":\([1-9][0-9]*\).*/\1/p' news | head -n 1)" '/"todo":/ {
            for (i = 1; i < NF; i++) { gsub(/[ "{]/, "", $i); at[$i] = $(i + 1) }
            if (at["pass_samples"] == "0") next
            lines++
            if (at["todo"] + at["pending"] + at["done"] + at["failed"] != int((samples + 255) / 256)) { print; bad = 1 }
        }
        END { exit bad || !samples || !lines }' "$1" >>log
}
tasks_add_up tasks
result "each task of the pass is to do, pending, done or failed" cut -c1-120 tasks
# The trainer that was killed is in the next epoch. Nothing else has stood still yet: the coordinator gives a task three
# times what tasks took so far, at least a second.
wait_for epoch 1 && wait_for step 300
lines=$(wc -l <run/run/logs/coordinator.log) stopped=$(process_of trainer-2)
late="task\.returned .* because=\"its time is over\""
for turn in 1 2 3; do # All three have a task; it could still end in the moment before the signal
    wait_for_line news "$(wc -l <news)" '"todo":[0-9]*,"pending":3,'
    kill -STOP $stopped && patience=1.6 wait_for_line run/run/logs/coordinator.log "$lines" "$late"
    known=$(wc -l <run/run/logs/trainer-2.log)
    kill -CONT $stopped
    wait_for_line run/run/logs/trainer-2.log "$known" "task\.trained " && grep -q "$late" run/run/logs/coordinator.log && break
done
result "a trainer stands still: its task is dealt again, and it goes on with others"
step_now
kill -9 "$(cat run/run/coordinator/lock)" && wait_for checkpoint_step $((now + 1))
result "servers save their shares beside the training, and the coordinator is killed"
# Copies in memory are newer than the save: they are made every ten steps, a save every 120
wait_for memory_step $((there + 1)) && kill -9 "$(process_of "$(last_to_say parameter-server shares.taken)")" &&
    wait_for restored_step $((now + 1)) &&
    memory=$(grep -h "run\.lost_steps .* from the memory of the others" run/run/logs/coordinator.log)
result "a server is killed: ${memory#* }"
wait_for step $((there + 15))
server=$(last_to_say parameter-server shares.taken) lines=$(wc -l <run/run/logs/coordinator.log)
stopped=$(process_of "$server") known=$(wc -l <run/run/logs/$server.log)
kill -STOP $stopped && wait_for_line run/run/logs/coordinator.log "$lines" "run\.lost_steps " &&
    kill -CONT $stopped && wait_for_line run/run/logs/$server.log "$known" "member\.lapsed .*joining again"
result "a server stands still for longer than its lease: another has its place, and it joins again"
kill -CONT $stopped
# Two of the three servers have a share, and each other's. All are stopped while we ask which save is the newest: else they
# could make another one.
step_now
wait_for step $((now + 140))
lost= servers=$(pgrep -P $up -f shoal-parameter-server) lines=$(wc -l <run/run/logs/coordinator.log)
kill -STOP $servers && "$bin/shoal" status --ticket run/run/ticket >saves 2>>log &&
    piece=$(ls run/saves/*/"$(sed -n 's/^ *save \(step-[0-9]*\).*/\1/p' saves)"/parameters.0-*) &&
    printf 'damaged!' | dd of="$piece" bs=1 seek=100 conv=notrunc 2>>log && kill -9 $servers &&
    wait_for_line run/run/logs/coordinator.log "$lines" "run\.lost_steps .* an older save" &&
    grep -q "save\.unread.*parameters" run/run/logs/coordinator.log &&
    lost=$(grep -h "run\.lost_steps .* an older save" run/run/logs/coordinator.log)
result "a piece of the newest save is damaged and all servers are killed: ${lost#* }"
wait $up
result "the run ends"
up=
exec 3<&-
tasks_add_up news
result "so it was in each word of the coordinator" grep -c '"todo":' news
grep -q '"tasks":{"pass":1,' news
result "a pass ends, and the next begins"
"$bin/shoal" status --ledger run/run/coordinator >ledger 2>&1 && grep -q "evidence verified: .* groups, .* tasks, .* committed steps" ledger &&
    grep -q "steps $steps distinct, 0 twice, 0 skipped" ledger && grep -q ", 0 twice, 0 missing" ledger
result "its ledger is verified" sed -n 's/^ *\(commits .\{0,110\}\).*/\1/p' ledger
"$bin/shoal" checkpoint show run/saves/*/step-$(printf %08d $steps) >show 2>&1 && grep -q "async-server" show
result "the last step is saved, with what each server knew of pushes"
first=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | tail -n 1)
last=$(sed -n 's/.* task\.trained .* loss=\([0-9.]*\).*/\1/p' run/run/logs/trainer-*.log | sort -n | head -n 1)
awk -v a="${first:-0}" -v b="${last:-0}" 'BEGIN { exit !(b > 0 && b < 0.7 * a) }'
result "the loss falls from ${first:-none} to ${last:-none}"
echo "1..$number"
exit $failed
