#!/bin/bash
# The example of state that is saved by W workers and loaded by others: 1,009 rows go through seven worlds, each
# worker a process of its own, all of a world at once. Then through two worlds on two machines, which are network and
# mount namespaces that share one folder: as much as a network file system gives, and no lock is asked of it.
#
#     world_test.sh BUILD_DIR
set -u
B=$1
name="a chain of seven worlds keeps 1,009 rows, in at most 40 lines"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step=0 from= said=
for workers in 3 7 2 11 5 1 4; do
    step=$((step + 1))
    said=$(for ((w = 0; w < workers; w++)); do timeout 60 "$B/example/world" "$work" $step $w $workers $from 2>&1 & done; wait)
    [ -d "$work/step-0000000$step" ] || { said+=" no step $step"; break; }
    from=$step
done
want="worker 0 of 4: rows 0 to 252, seen 6, a new timer
worker 1 of 4: rows 252 to 504, seen 0, a new timer
worker 2 of 4: rows 504 to 756, seen 0, a new timer
worker 3 of 4: rows 756 to 1009, seen 0, a new timer"
usage=$("$B/example/world" 2>&1)

# What the command line says of the last save; then one byte of it is another one.
check() {                                           # WHAT, EXIT CODE, WORDS, COMMAND
    local what=$1 code=$2 words=$3 out is=0
    shift 3
    out=$("$B/bin/shoal" checkpoint "$@" 2>&1) || is=$?
    [ $is = "$code" ] && grep -qF -- "$words" <<< "$out" || said+="
$what: exit $is, $out"
}
check show 0 "rows                 reshard           1009 x 8 B  0-252 252-504 504-756 756-1009" show "$work/step-00000007/"
check json 0 '{"worker":2,"begin":504,"end":756}' show --json "$work/step-00000007"
check verify 0 "every byte is the one that was written" verify "$work/step-00000007"
printf x | dd of="$work/step-00000007/rows.504-756" bs=1 seek=900 conv=notrunc status=none
check flipped 65 "$work/step-00000007: rows.504-756: bytes 0 to 2016 are not those that were written" verify "$work/step-00000007"
check older 65 "; use an older save of $work" verify "$work/step-00000007"
rm "$work/step-00000007/rows.504-756"
check missing 65 "incomplete: rows.504-756" show "$work/step-00000007"
check folder 64 "$work is no save: give a folder step-NNNNNNNN, beside its meta-*.json" show "$work"
check absent 66 "step-00000099" show "$work/step-00000099"
if [ "$(sort <<< "$said")" = "$want" ] && [ "$(wc -l < tests/example/world.c)" -le 40 ] && [ "${usage#usage: }" != "$usage" ]; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name"
    sed 's/^/# /' <<< "$said"
    exit 1
fi

# Runs each worker on a machine that sees the folder by a path of its own, and writes down what it asks of files.
machine() {                                         # NAME, WORKERS
    local place=$work/machine-$1
    shift
    mkdir -p "$place"
    unshare --net --mount bash -c 'world=$1 shared=$2 place=$3
        mount --make-rprivate / && mount --bind "$shared" "$place" || exit 1
        for worker in "${@:4}"; do
            timeout 60 strace -f -qq -e trace=flock,fcntl,renameat -o "$shared.${worker// /-}" "$world" "$place" $worker &
        done; wait' - "$(realpath "$B")/example/world" "$work/shared" "$place" "$@" 2>&1
}

name="two machines share one folder, and no lock"
mkdir "$work/shared"
if ! unshare --net --mount true 2>/dev/null; then
    echo "ok 2 - $name # SKIP namespaces are not permitted here (needs root)"
    exit 0
fi
said=$(machine a "1 0 2" & machine b "1 1 2"; wait)
said=$(machine a "2 0 3 1" "2 2 3 1" & machine b "2 1 3 1"; wait)
want="worker 0 of 3: rows 0 to 336, seen 3, a new timer
worker 1 of 3: rows 336 to 672, seen 0, a new timer
worker 2 of 3: rows 672 to 1009, seen 0, a new timer"
locks=$(grep -E "flock|_SETLK|_SETLEASE" "$work"/shared.*)
traced=$(grep -l 'renameat.*NOTE' "$work"/shared.* | wc -l)
if [ "$(sort <<< "$said")" = "$want" ] && [ -z "$locks" ] && [ "$traced" = 5 ] && [ -d "$work/shared/step-00000002" ]; then
    echo "ok 2 - $name"
else
    echo "not ok 2 - $name"
    printf '%s\n' "$said" "$locks" "$traced traced" | sed 's/^/# /'
    exit 1
fi
