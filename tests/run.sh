#!/bin/bash
# Runs test programs and counts what they say, as TAP lines ("ok 1 - name",
# "not ok 2 - name", "ok 3 # SKIP why"). A program that dies or says nothing is a failure by its own
# name; a skipped test is not a passed one. Ends with "N passed, N failed" and, if any, "N skipped".
#
#     tests/run.sh [-s SECONDS] [-j JOBS] PROGRAM ...      a word with spaces is run by the shell
#
# Options count for the programs behind them: at most JOBS (1) at a time, each SECONDS (600) long at
# most; at a -j those before it end first. What they say is shown in their order.
#
# What tests draw by LIVE_SEED (which failpoints, which cells, which instants) changes with the commit
# that is checked out, and SEED=n draws that again; without a checkout it is 1.
set -u
if [ -z "${LIVE_SEED:-}" ]; then
    commit=$(git -C "$(dirname "$0")" rev-parse HEAD 2>/dev/null | cut -c1-7)
    export LIVE_SEED=${SEED:-$((16#${commit:-1}))}
    echo "SEED=$LIVE_SEED (given again, it draws the same again)"
fi
export CMOCKA_MESSAGE_OUTPUT=TAP LC_ALL=C
limit_s=600 jobs=1 passed=0 failed=0 skipped=0 failures=""
programs=() logs=() shown=0

start()                                 # program: its log, and LOG.end with exit status and seconds
{
    local log; log=$(mktemp)
    programs+=("$1") logs+=("$log")
    {
        SECONDS=0
        timeout -k 10 "$limit_s" bash -c "$1" >"$log" 2>&1
        echo "$? $SECONDS" >"$log.new" && mv "$log.new" "$log.end"
    } &
}

report()                                # program, log, exit status, seconds
{
    local program=$1 log=$2 code=$3 ok no skip name
    sed -i -E 's/^not (ok [0-9]+ # SKIP)/\1/' "$log"     # cmocka calls a skipped test "not ok"
    ok=$(grep -cE '^ok [0-9]+' "$log"); no=$(grep -cE '^not ok [0-9]+' "$log")
    skip=$(grep -ciE '^ok [0-9]+.*# skip' "$log")
    name=$(echo "$program" | sed -E 's#^.*(asan|tsan|unit|emulated|gpu|live|chaos|peers|sim|build)/#\1/#; s#(asan|tsan)/unit/#\1/#; s# .*##')
    printf '  %-34s %3d ok %3d failed %2d skipped  %3d s\n' "$name" $((ok - skip)) "$no" "$skip" "$4"
    if [ "$no" -gt 0 ] || { [ "$code" -ne 0 ] && [ "$no" -eq 0 ]; } || [ $((ok + no)) -eq 0 ]; then
        [ "$no" -gt 0 ] || { no=1; echo "    $program: exit status $code after $ok tests$([ $code -eq 124 ] && echo ' (out of time)')"; }
        failures="$failures $name"
        grep -E '^not ok|^#|[Ee]rror|must hold|Sanitizer|FAILED' "$log" | tail -n 30 | sed 's/^/    /'
        [ "$code" -ne 0 ] && tail -n 15 "$log" | sed 's/^/    | /'
    fi
    grep -iE '^ok [0-9]+.*# skip' "$log" | sed 's/^ok [0-9]* [-#]*/    skipped:/'
    passed=$((passed + ok - skip)); failed=$((failed + no)); skipped=$((skipped + skip))
    rm -f "$log" "$log.end"
}

# Reports the programs that have ended, in order, and waits until fewer than $1 run.
await_fewer_than()
{
    local running i
    while :; do
        while [ "$shown" -lt "${#logs[@]}" ] && [ -e "${logs[shown]}.end" ]; do
            report "${programs[shown]}" "${logs[shown]}" $(cat "${logs[shown]}.end")
            shown=$((shown + 1))
        done
        running=0
        for ((i = shown; i < ${#logs[@]}; i++)); do [ -e "${logs[i]}.end" ] || running=$((running + 1)); done
        [ "$running" -ge "$1" ] || return 0
        wait -n
        [ $? -ne 127 ] || for i in "${logs[@]:shown}"; do [ -e "$i.end" ] || echo "137 0" >"$i.end"; done
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    -s) limit_s=$2; shift 2 ;;
    -j) await_fewer_than 1; jobs=$2; shift 2 ;;
    *) await_fewer_than "$jobs"; start "$1"; shift ;;
    esac
done
await_fewer_than 1
[ -n "$failures" ] && echo "failed:$failures"
[ "$skipped" -gt 0 ] && echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
