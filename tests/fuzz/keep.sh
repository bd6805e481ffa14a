#!/bin/bash
# Adds to the repository's bundles (bundle.h) the inputs that "make fuzz" has found and that reach code
# which no input there reaches: the smallest ones, one for each new edge; called by "make fuzz-keep".
#
#     tests/fuzz/keep.sh BUILD_DIR [TARGET...]
set -u
export LC_ALL=C                         # The order of a bundle's lines
B=$1
shift
while read -r target bytes_max; do
    [ $# -gt 0 ] && [[ " $* " != *" $target "* ]] && continue
    [ -d "$B/corpus/$target" ] || continue
    bundle=tests/fuzz/corpus/$target.hex kept=$B/kept/$target
    rm -rf "$kept" && mkdir -p "$kept" && "$B/replay" --unpack "$target" "$kept" || exit
    FUZZ_TARGET=$target nice -n 15 "$B/fuzzer" -merge=1 -use_counters=0 -max_len="$bytes_max" \
        "$kept" "$B/corpus/$target" > "$B/$target.merge" 2>&1 ||
        { echo "$target: see $B/$target.merge"; exit 1; }
    "$B/replay" --lines "$kept"/* > "$bundle.new" && mv "$bundle.new" "$bundle" || exit
    printf '%-16s %4d inputs, %6d bytes\n' "$target" "$(wc -l < "$bundle")" \
        "$(find "$kept" -type f -printf '%s\n' | awk '{n += $1} END {print n}')"
done < <("$B/replay" --list)
