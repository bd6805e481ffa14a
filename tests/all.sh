#!/bin/bash
# All tests that need no GPU, in the order from fast to slow; called by "make test".
#
#     tests/all.sh BUILD_DIR
#
# format      every file as .clang-format lays it out
# unit        pure functions, golden values and conversations, the fuzz targets' corpora and seeds; no
#             target is mutated here (make fuzz: clang builds everything once more for it)
# emulated    the GPU's kernels and model, on a device emulated by the processor
# sanitized   the unit tests under ASan + UBSan; three of those with threads under TSan (make tsan for all)
#
# By itself, since it takes all processors or measures:
#
# simulation  seeds of the whole cluster; one trace under three compilers; a few mutants (make mutants for all)
# live        floods, and a monitor beside a run: how soon a member is served
# adversary   a liar of each kind among four trainers: how soon it is ejected (make adversaries for the long form)
#
# Beside each other, the long ones first, since most of them wait:
#
# chaos       a sample of the kill matrix, the demo's run disturbed     (make chaos for the long forms)
# guides      every command of the README and the guides
# installed   the systemd units of a staging tree, by hand and under a systemd of their own
# live        real processes over tcp, kill -9 included (short forms; LIVE_LONG=1 for the long ones)
# storage     a ledger's writer killed, its power cut                  (long form: make storage)
# audits      honest results made again on other instruction sets      (make honest-audits for 10,000)
# cost        what a round with audits signs and verifies              (make bench for what it costs)
# peers       what torch and transformers say of our files, where a Python has them (make test-peers)
set -u
B=${1:-build}
MAKE="make --no-print-directory -s -j$(nproc)"
say() { printf '%s\n' "$*"; }

# A goal that cannot be made is a failed test of its own name, not a reason to stop.
made() { # goal and arguments...
    say "not ok 1 - make $1" > "$B/made-$1.tap"
    $MAKE "$@" B="$B" > "$B/made-$1.log" 2>&1 && say "ok 1 - make $1" > "$B/made-$1.tap" ||
        tail -n 20 "$B/made-$1.log" >&2
    programs+=("cat $B/made-$1.tap")
}

# Most of them have one thread: two at a time.
programs=(-j "$(($(nproc) > 1 ? 2 : 1))")
made format CHECK=1
unit=$(cd tests/unit && ls ./*_test.c | sed 's#^\./##; s#\.c$##')
for t in $unit; do programs+=("$B/unit/$t"); done
for t in tests/gpu/*_test.cu; do programs+=("$B/emulated/$(basename "${t%.cu}")"); done
# Once more with the threads of a block in the other order: what then differs lacks a barrier.
programs+=("EMULATED_ORDER=reverse $B/emulated/attention_test" "EMULATED_ORDER=reverse $B/emulated/distro_test")

say "building with sanitizers ..."
made asan-build
for t in $unit; do programs+=("ASAN_OPTIONS=detect_leaks=1 $B/asan/unit/$t"); done
tsan_unit="pool_test store_test bulk_test"
made tsan-build T="$tsan_unit"
for t in $tsan_unit; do programs+=("TSAN_OPTIONS=suppressions=tests/tsan.supp:ignore_noninstrumented_modules=1 $B/tsan/unit/$t"); done
made clang-build
programs+=(-j 1 "tests/sim/short.sh $B" "$B/live/floods_test" "$B/live/monitor_test" "$B/live/adversary_test")

programs+=(-j "$(($(nproc) > 1 ? 3 : 1))" "$B/chaos/matrix --sample 40 \$LIVE_SEED"
           "tests/live/guides_test.sh $B" "SEED=301 STEPS=30 EVENTS=8 $B/chaos/chaos" "tests/live/installed.sh $B")
for t in tests/live/*_test.c; do
    t=$(basename "${t%.c}")
    case $t in floods_test | monitor_test) ;; *) programs+=("$B/live/$t") ;; esac
done
programs+=("$B/storage 300 5000 500" "$B/numeric/honest_audits 400" "$B/bench/cost_test")
for t in tests/peers/*_test.sh; do programs+=("$t $B"); done

tests/run.sh "${programs[@]}"
