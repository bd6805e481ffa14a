#!/bin/bash
# Fuzzes each target until it has had SECONDS of processor time in all, this call and those before it
# together; called by "make fuzz". What is done already is not done again: stop it whenever, go on later.
#
#     tests/fuzz/run.sh BUILD_DIR SECONDS JOBS [TARGET...]
#
# BUILD_DIR/spent/TARGET has a line for each turn that ended: processor seconds, inputs, edges,
# corpus. Inputs that reach something new are kept in BUILD_DIR/corpus/TARGET; the bundles of the
# repository (bundle.h) are read and never written. What a target died of is kept as BUILD_DIR/found/TARGET-..
# and is open until it dies of it no more: replay it, cure the cause, and put it in
# tests/fuzz/corpus/TARGET under a name that says what it was. Exit 1 if anything is open.
set -u
B=$1 seconds=$2 jobs=$3
shift 3
readonly TURN_S=120                     # At most this much is lost when it is stopped
export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=8
mkdir -p "$B/found" "$B/spent"

spent() { awk '{ s += $1 } END { printf "%d", s }' "$B/spent/$1"; }

# What it died of and still dies of; of what it does not, nothing is kept.
count_open() {
    local file open=0
    for file in "$B/found/$1"-{crash,leak,oom,timeout}-*; do
        [ -f "$file" ] || continue
        if FUZZ_TARGET=$1 "$B/fuzzer" -timeout=60 -rss_limit_mb=4096 "$file" > "$file.log" 2>&1; then
            rm -f "$file" "$file.log"
        else
            open=$((open + 1))
        fi
    done
    echo $open
}

prepare() {
    rm -rf "$B/kept/$1"
    mkdir -p "$B/corpus/$1" "$B/kept/$1"
    touch "$B/spent/$1"
    "$B/replay" --unpack "$1" "$B/kept/$1" || exit
    "$B/replay" --seeds "$1" "$B/corpus/$1" || exit
    "$B/replay" --dictionary "$1" > "$B/$1.dict" || exit
    [ ! -f "tests/fuzz/$1.dict" ] || cat "tests/fuzz/$1.dict" >> "$B/$1.dict"
}

# One turn of libFuzzer, at most turn_s seconds by the clock: the processor time is no longer.
take_turn() {
    local target=$1 bytes_max=$2 turn_s=$3 log=$B/found/$1.log words=() rc last
    [ -s "$B/$target.dict" ] && words=(-dict="$B/$target.dict")
    TIMEFORMAT='%U %S'
    { time FUZZ_TARGET=$target nice -n 15 "$B/fuzzer" -max_total_time="$turn_s" -max_len="$bytes_max" \
        -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 "${words[@]}" \
        -artifact_prefix="$B/found/$target-" "$B/corpus/$target" "$B/kept/$target" \
        > "$log" 2>&1; } 2> "$B/$target.time"
    rc=$?
    last=$(grep -aE '^#[0-9]+.*cov: ' "$log" | tail -1)
    printf '%s %s %s %s\n' "$(awk '{ print $1 + $2 }' "$B/$target.time")" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | grep . || echo 0)" \
        "$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' <<< "$last" | grep . || echo 0)" \
        "$(sed -n 's/.*corp: \([0-9]*\).*/\1/p' <<< "$last" | grep . || echo 0)" >> "$B/spent/$target"
    return $rc
}

fuzz() {
    local target=$1 bytes_max=$2 rest open
    prepare "$target"
    open=$(count_open "$target")
    while [ "$open" -eq 0 ] && rest=$((seconds - $(spent "$target"))) && [ $rest -gt 0 ]; do
        take_turn "$target" "$bytes_max" $((rest + 5 < TURN_S ? rest + 5 : TURN_S)) && continue
        open=$(count_open "$target")
        [ "$open" -gt 0 ] || { echo "$target: see $B/found/$target.log"; open=1; }
    done
    awk -v t="$target" -v o="$open" '{ s += $1; n += $2; e = $3; c = $4 }
        END { printf "%-16s %9d %13d %9d %7d %7d %5d\n", t, s, n, s ? n / s : 0, e, c, o }' "$B/spent/$target"
    [ "$open" -eq 0 ] && return
    grep -aE 'ERROR|runtime error|^[a-z/_]+\.[ch]:|ensure|SUMMARY' "$B/found/$target.log" |
        head -8 | sed 's/^/    /'
    ls "$B/found/$target"-{crash,leak,oom,timeout}-*[0-9a-f] 2>/dev/null |
        sed "s|^|    replay: $B/replay $target |"
    return 1
}

printf '%-16s %9s %13s %9s %7s %7s %5s\n' target 'core s' inputs inputs/s edges corpus open
open=0
while read -r target bytes_max; do
    [ $# -gt 0 ] && [[ " $* " != *" $target "* ]] && continue
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || open=1; done
    fuzz "$target" "$bytes_max" < /dev/null &
done < <("$B/replay" --list)
for job in $(jobs -p); do wait "$job" || open=1; done
exit $open
