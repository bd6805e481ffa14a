#!/bin/bash
# Fuzzes each target for a while, says what it saw; called by "make fuzz".
#
#     tests/fuzz/run.sh BUILD_DIR SECONDS [TARGET...]
#
# Inputs that reach something new are kept in BUILD_DIR/corpus/TARGET and are where the next run goes
# on; the corpus of the repository is read and never written. What a target died of is kept as
# BUILD_DIR/found/TARGET-..: replay it, cure the cause, and put it in tests/fuzz/corpus/TARGET under
# a name that says what it was. Exit 1 if anything was found.
set -u
B=$1 seconds=$2
shift 2
mkdir -p "$B/found"
found=0
printf '%-16s %12s %9s %7s %7s %8s %s\n' target inputs inputs/s edges corpus seconds found
while read -r target bytes_max; do
    [ $# -gt 0 ] && [[ " $* " != *" $target "* ]] && continue
    corpus=$B/corpus/$target log=$B/found/$target.log
    mkdir -p "$corpus" "tests/fuzz/corpus/$target"
    "$B/replay" --seeds "$target" "$corpus" || exit
    "$B/replay" --dictionary "$target" > "$B/$target.dict" || exit
    [ -f "tests/fuzz/$target.dict" ] && cat "tests/fuzz/$target.dict" >> "$B/$target.dict"
    words=()
    [ -s "$B/$target.dict" ] && words=(-dict="$B/$target.dict")
    before=$(find "$B/found" -name "$target-*" | wc -l)
    FUZZ_TARGET=$target nice -n 15 "$B/fuzzer" -max_total_time="$seconds" -max_len="$bytes_max" -timeout=10 \
        -rss_limit_mb=4096 -print_final_stats=1 "${words[@]}" -artifact_prefix="$B/found/$target-" \
        "$corpus" "tests/fuzz/corpus/$target" > "$log" 2>&1
    rc=$?
    new=$(($(find "$B/found" -name "$target-*" | wc -l) - before))
    last=$(grep -aE '^#[0-9]+.*cov: ' "$log" | tail -1)
    printf '%-16s %12s %9s %7s %7s %8s %s\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" \
        "$(sed 's/.*cov: \([0-9]*\).*/\1/' <<< "$last")" \
        "$(sed 's/.*corp: \([0-9]*\).*/\1/' <<< "$last")" "$seconds" "$new"
    if [ $rc -ne 0 ]; then
        found=1
        echo "  $target ended with $rc; what it died of, and why, is in $log:"
        grep -aE 'ERROR|runtime error|^[a-z/_]+\.[ch]:|ensure|SUMMARY|Test unit written' "$log" | head -8 | sed 's/^/    /'
        echo "  replay: $B/replay $target $(find "$B/found" -name "$target-*" -newer "$B/$target.dict" | head -1)"
    fi
done < <("$B/replay" --list)
exit $found
