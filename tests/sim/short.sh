#!/bin/bash
# The simulator's part of "make test": seeds, the same trace under three compilers, a few mutants.
#
#     short.sh BUILD_DIR          SEEDS=200 of them; BUILD_DIR/clang and BUILD_DIR/asan beside it
set -u
B=$1 number=0 failures=0
check() { # name, command...
    local name=$1; shift
    number=$((number + 1))
    if "$@" > "$B/sim-short.log" 2>&1; then echo "ok $number - $name"
    else echo "not ok $number - $name"; tail -n 8 "$B/sim-short.log" | sed 's/^/# /'; failures=$((failures + 1)); fi
}
same_traces() { # compiler
    for seed in 1 2 3 5 8 13 21 34; do
        [ "$("$B/bin/sim" "$seed")" = "$("$B/$1/bin/sim" "$seed")" ] || { echo "seed $seed differs under $1"; return 1; }
    done
}
check "${SEEDS:-200} simulated seeds, nothing broken" "$B/bin/sim" --seeds 1 "${SEEDS:-200}"
check "a canary dies: where most lie, the simulator says so" "$B/bin/sim" --canary
check "the same traces under gcc and clang" same_traces clang
check "the same traces under gcc and ASan + UBSan" same_traces asan
caught() { # parts of names: at least one mutant has each, and none of those lives
    local part
    tests/sim/mutants.sh "$@" > "$B/mutants.log" || { cat "$B/mutants.log"; return 1; }
    for part; do grep -q "$part.*  [0-9][0-9]*  " "$B/mutants.log" || { echo "no mutant $part was run"; return 1; }; done
}
check "every mutant still finds what it breaks, and no mark is left over" tests/sim/mutants.sh --check
check "three mutants are caught, of stores, votes and verdicts (make mutants: all of them)" \
    caught 'published before it is stored' unelected 'judges itself'
[ "$failures" -eq 0 ]
