#!/bin/bash
# Adds to the repository's corpora the inputs that "make fuzz" has found and that reach code which no
# file there reaches: the smallest ones, one for each new edge; called by "make fuzz-keep".
#
#     tests/fuzz/keep.sh BUILD_DIR [TARGET...]
set -u
B=$1
shift
while read -r target bytes_max; do
    [ $# -gt 0 ] && [[ " $* " != *" $target "* ]] && continue
    [ -d "$B/corpus/$target" ] || continue
    FUZZ_TARGET=$target nice -n 15 "$B/fuzzer" -merge=1 -use_counters=0 -max_len="$bytes_max" \
        "tests/fuzz/corpus/$target" "$B/corpus/$target" > "$B/$target.merge" 2>&1 ||
        { echo "$target: see $B/$target.merge"; exit 1; }
    printf '%-16s %4d files, %6d bytes\n' "$target" "$(find "tests/fuzz/corpus/$target" -type f | wc -l)" \
        "$(find "tests/fuzz/corpus/$target" -type f -printf '%s\n' | awk '{n += $1} END {print n}')"
done < <("$B/replay" --list)
