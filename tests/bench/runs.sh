# runs -- what the benchmarks of whole runs share: sourced by the scripts beside it, which set
# `build`. A run is in $work/run, and ends with the script. What fails in a $(...) ends the script, too.

shopt -s inherit_errexit
work=$(mktemp -d)
up=
stop_run() {
    [ -z "$up" ] || { kill -INT "$up"; kill -INT "$up"; wait "$up" || true; } 2>/dev/null
    up=
}
trap 'stop_run; rm -rf "$work"' EXIT

# A text of some megabytes, the same at each call.
make_text() {
    for ((i = 0; i < 40; i++)); do cat "$(dirname "${BASH_SOURCE[0]}")"/../../common/*/*.h; done >"$work/text" 2>/dev/null
}

say_processors() {
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /'
}

init_run() {                                        # Flags of shoal init
    rm -rf "$work/run"
    "$build/bin/shoal" init "$work/run" --steps 100000 --data "$work/text" "$@" >"$work/init" 2>&1 ||
        { cat "$work/init" >&2; exit 1; }
    # What is measured are rounds: no epoch ends meanwhile
    sed -i 's/^rounds_per_epoch = .*/rounds_per_epoch = 100000/' "$work/run/state.toml"
}

start_run() {                                       # PORT, flags of shoal up
    [ $BASHPID = $$ ] || trap stop_run EXIT         # A $(...) has not got its parent's trap
    "$build/bin/shoal" up "$work/run" --port "$@" >"$work/log" 2>&1 &
    up=$!
}

run_step() {
    "$build/bin/shoal" status --json --ticket "$work/run/run/ticket" 2>/dev/null |
        sed -n 's/^{[^{]*"step":\([0-9]*\).*/\1/p'    # The run's: behind the next brace are those of its saves
}

# Each look is a process with a handshake, 23 ms of a processor: `look_every` says how many seconds lie between two.
wait_for_step() {                                   # STEP, SECONDS. The run's own words end it if it fails
    local from=$SECONDS now
    until now=$(run_step) && [ "${now:-0}" -ge "$1" ]; do
        kill -0 "$up" 2>/dev/null && [ $((SECONDS - from)) -lt "$2" ] || { tail -5 "$work/log" >&2; exit 1; }
        sleep "${look_every:-0.5}"
    done
}

# Tokens a second for so long, by a trainer's own lines, a step each: exact where a step takes seconds.
step_speed_for() {                                  # SECONDS, TOKENS A STEP
    local log=$work/run/run/logs/trainer-1.log known
    known=$(wc -l <"$log")
    sleep "$1"
    tail -n +$((known + 1)) "$log" | awk -v tokens="$2" '
        / step\.trained / {
            split($2, of, ":"); now = of[1] * 3600 + of[2] * 60 + of[3]
            match($0, / step=[0-9]+/); step = substr($0, RSTART + 6, RLENGTH - 6) + 0
            if (!began) { began = now; first = step }
        }
        END { if (step <= first) exit 1; printf "%.1f\n", (step - first) * tokens / (now - began) }'
}

held() {                                            # ACTOR: the most that each of its processes has held, in MiB, sorted
    for pid in $(pgrep -P "$up" -f "shoal-$1"); do sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; done |
        sort -n | awk '{ printf "%s%.0f", (NR > 1 ? " " : ""), $1 / 1024 } END { print "" }'
}

# That, and what each said for its group. Fails if one held over 1.05 of the most that was said.
say_memory() {                                      # ACTOR
    local held=$(held "$1") said
    said=$(sed -n 's/.* shares\.taken .*of=\([0-9]*\) .*memory_mib=\([0-9]*\).*/\2 MiB said for one of \1/p' "$work"/run/run/logs/"$1"-*.log |
        sort -n | uniq -c)
    echo "VmHWM of each $1: $held MiB"
    echo "$said"
    awk -v held="${held##* }" -v said="$(tail -n 1 <<<"$said" | awk '{ print $2 }')" \
        'BEGIN { if (held > 1.05 * said) { print held " MiB held, at most " said " MiB said"; exit 1 } }'
}

# Says whether a number is within what we promise; fails otherwise.
aim() {                                             # NUMBER, most or least, AIM, what it is
    awk -v n="$1" -v side="$2" -v aim="$3" -v what="$4" 'BEGIN {
        met = n != "" && (side == "most" ? n <= aim : n >= aim)
        printf "%s: %s, aim: at %s %s: %s\n", what, n, side, aim, met ? "met" : "missed"
        exit !met }'
}

median() { sort -n | awk '{ of[NR] = $1 } END { print of[int((NR + 1) / 2)] }'; }
