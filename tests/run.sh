#!/bin/bash
# Runs test programs and counts what they say, as TAP lines ("ok 1 - name",
# "not ok 2 - name", "ok 3 # SKIP why"). A program that dies or says nothing is a failure by its own
# name; a skipped test is not a passed one. Ends with "N passed, N failed" and, if any, "N skipped".
#
#     tests/run.sh [-s SECONDS] [-n NICE] [-j JOBS] PROGRAM ... [--beside ...]
#
# A word with spaces is run by the shell. Options count for the programs behind them: at most JOBS (1) at a
# time, each SECONDS (600) long at most, with NICE (0) added to its niceness; at a -j those before it end first.
# What stands behind --beside is a list of its own, with options of its own, and both run at the same time.
# What a program says is shown in one piece, when it has ended; Ctrl-C ends them all.
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
passed=0 failed=0 skipped=0 failures=""
logs=$(mktemp -d)                       # of each program its number, and NUMBER.end: exit status, seconds, processor seconds
programs=() list_of=()                  # of each program
words=("$@")
at=(0) end=($#) jobs=(1) niceness=(0) limit_s=(600) running=(0)        # of each list
for ((i = 0; i < $#; i++)); do
    [ "${words[i]}" = --beside ] || continue
    end[-1]=$i at+=($((i + 1))) end+=($#) jobs+=(1) niceness+=(0) limit_s+=(600) running+=(0)
done

# Of the children that were waited for, from what bash's times prints: "0m0.004s 0m0.001s" for the shell, and a line
# for them.
processor_seconds() { awk -F '[ms ]+' 'NR == 2 { printf "%.0f", 60 * $1 + $2 + 60 * $3 + $4 }'; }

# timeout makes each program a group of its own, and ends it whole.
interrupted()                           # signal
{
    trap '' INT TERM
    kill $(jobs -pr) 2>/dev/null; wait
    rm -rf "$logs"
    trap - "$1"; kill -"$1" $$
}
trap 'interrupted INT' INT
trap 'interrupted TERM' TERM
trap 'rm -rf "$logs"' EXIT

start()                                 # list, program
{
    local log=$logs/${#programs[@]}
    running[$1]=$((running[$1] + 1)) programs+=("$2") list_of+=("$1")
    {
        SECONDS=0
        trap 'kill $!' TERM
        nice -n "${niceness[$1]}" timeout -k 10 "${limit_s[$1]}" bash -c "$2" >"$log" 2>&1 &
        wait $!; code=$?
        wait                            # still for it, if a signal ended the first wait
        trap '' TERM
        times >"$log.times"
        echo "$code $SECONDS $(processor_seconds <"$log.times")" >"$log.new" && mv "$log.new" "$log.end"
    } 2>/dev/null &
}

report()                                # program, log, exit status, seconds, processor seconds
{
    local program=$1 log=$2 code=$3 ok no skip name
    sed -i -E 's/^not (ok [0-9]+ # SKIP)/\1/' "$log"     # cmocka calls a skipped test "not ok"
    ok=$(grep -cE '^ok [0-9]+' "$log"); no=$(grep -cE '^not ok [0-9]+' "$log")
    skip=$(grep -ciE '^ok [0-9]+.*# skip' "$log")
    name=$(echo "$program" | sed -E 's#^made ([^ ]*).*#make \1#; t; s#^.*/(asan|tsan)/unit/#\1/#; t; s#^.*(asan|tsan|unit|emulated|gpu|live|chaos|peers|sim|build)/#\1/#; s# .*##')
    printf '  %-34s %3d ok %3d failed %2d skipped  %3d s  %3d s of processor\n' "$name" $((ok - skip)) "$no" "$skip" "$4" "$5"
    if [ "$no" -gt 0 ] || { [ "$code" -ne 0 ] && [ "$no" -eq 0 ]; } || [ $((ok + no)) -eq 0 ]; then
        [ "$no" -gt 0 ] || { no=1; echo "    $program: exit status $code after $ok tests$([ $code -eq 124 ] && echo ' (out of time)')"; }
        failures="$failures $name"
        grep -E '^not ok|^#|[Ee]rror|must hold|Sanitizer|FAILED' "$log" | tail -n 30 | sed 's/^/    /'
        [ "$code" -ne 0 ] && tail -n 15 "$log" | sed 's/^/    | /'
    fi
    grep -iE '^ok [0-9]+.*# skip' "$log" | sed 's/^ok [0-9]* [-#]*/    skipped:/'
    passed=$((passed + ok - skip)); failed=$((failed + no)); skipped=$((skipped + skip))
}

# Starts what a list may start now.
advance()                               # list
{
    local l=$1 word
    while [ "${at[l]}" -lt "${end[l]}" ]; do
        word=${words[at[l]]}
        case $word in
        -s) limit_s[l]=${words[at[l] + 1]}; at[l]=$((at[l] + 2)) ;;
        -n) niceness[l]=${words[at[l] + 1]}; at[l]=$((at[l] + 2)) ;;
        -j) [ "${running[l]}" -eq 0 ] || return
            jobs[l]=${words[at[l] + 1]}; at[l]=$((at[l] + 2)) ;;
        *) [ "${running[l]}" -lt "${jobs[l]}" ] || return
            start "$l" "$word"; at[l]=$((at[l] + 1)) ;;
        esac
    done
}

shown=()                                # by number: its program has ended and been shown
show_ended()                            # whether any has ended
{
    local i any=1
    for ((i = 0; i < ${#programs[@]}; i++)); do
        [ -z "${shown[i]:-}" ] && [ -e "$logs/$i.end" ] || continue
        report "${programs[i]}" "$logs/$i" $(cat "$logs/$i.end")
        running[${list_of[i]}]=$((running[${list_of[i]}] - 1)) shown[i]=1 any=0
    done
    return $any
}

while :; do
    for l in "${!at[@]}"; do advance "$l"; done
    [ "$((${running[*]/%/+}0))" -gt 0 ] || break
    while ! show_ended; do
        wait -n
        # No child is left: what has not written its end was killed.
        [ $? -ne 127 ] || for i in "${!programs[@]}"; do [ -e "$logs/$i.end" ] || echo "137 0 0" >"$logs/$i.end"; done
    done
done
[ -n "$failures" ] && echo "failed:$failures"
[ "$skipped" -gt 0 ] && echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
