#!/bin/bash
# All tests that need no GPU; called by "make test" when the programs are built that live tests run.
#
#     tests/all.sh BUILD_DIR
#
# Two lists run beside each other, so that no processor idles while a test waits. What computes is nicer than what
# waits: a live test finds a processor as soon as it wants one.
#
# What computes, one more at a time than there are processors, since some of it waits a while; the long ones first:
#
# builds      the rest of the tests, asan, tsan, clang; the GPU's kernels, where there is an nvcc: nothing runs them
# emulated    the GPU's kernels and model, on a device emulated by the processor
# unit        what computes, as the product is built (make unit for all)
# format      every file as .clang-format lays it out
# hardened    what the compiler and the linker were to do against a stranger's bytes, seen in the programs
# simulation  seeds of the whole cluster; one trace under three compilers; a few mutants (make mutants for all)
# installed   the systemd units of a staging tree, by hand and under a systemd of their own
# sanitized   all unit tests under ASan + UBSan: pure functions, golden values and conversations, the fuzz targets'
#             corpora and seeds; no target is mutated here (make fuzz: clang builds everything once more for it). Three
#             of those with threads under TSan (make tsan for all)
# storage     a ledger's writer killed, its power cut                  (long form: make storage)
# audits      honest results made again on other instruction sets      (make honest-audits for 10,000)
#
# What waits: first, one at a time, since they measure how soon something happens,
#
# live        floods, and a monitor beside a run: how soon a member is served
# adversary   liars of most kinds among four trainers: how soon each is ejected (make adversaries for all, longer)
#
# then two at a time, the long ones first:
#
# chaos       a sample of each kill matrix, the demo's run disturbed    (make chaos for the long forms)
# guides      every command of the README and the guides
# tools       mistakes at the command line, and what is answered
# machines    the README's own run on two machines, and a third behind a firewall
# windows     a group of trainers on its own word: killed and joined, it ends in the state of one trainer alone
# live        real processes over tcp, kill -9 included (short forms; LIVE_LONG=1 for the long ones)
# example     an all-reduce of one's own buffer, over a group; state that any number of workers saves and loads
# cost        what a round with audits signs and verifies              (make bench for what it costs)
# peers       what torch and transformers say of our files, where a Python has them (make test-peers)
set -u
export B=${1:-build} UNIT_AS_BUILT
two=$(($(nproc) > 1 ? 2 : 1)) more=$((two + 1))

# A goal that cannot be made is a failed test of its own name. run.sh calls this: "made GOAL ARGUMENTS".
made()
{
    make --no-print-directory -s -j"$(nproc)" "$@" B="$B" >"$B/made-$1.log" 2>&1 &&
        echo "ok 1 - make $1 $(grep '^# SKIP ' "$B/made-$1.log")" && return
    tail -n 20 "$B/made-$1.log"
    echo "not ok 1 - make $1"
    return 1
}
export -f made
unit=$(cd tests/unit && ls ./*_test.c | sed 's#^\./##; s#\.c$##')
tsan_unit="pool_test store_test bulk_test"

computes=(-n 10 -s 1200 -j 1 "made test-programs" -j "$more" "made asan-build" "made cuda-check")
for t in tests/gpu/*_test.cu; do computes+=("$B/emulated/$(basename "${t%.cu}")"); done
# Once more with the threads of a block in the other order: what then differs lacks a barrier.
computes+=("EMULATED_ORDER=reverse $B/emulated/distro_test" "EMULATED_ORDER=reverse $B/emulated/attention_test")
computes+=("made tsan-short-build T='$tsan_unit'" "made clang-build")
for t in $UNIT_AS_BUILT; do computes+=("$B/unit/$t"); done
computes+=("made format CHECK=1" "tests/hardened.sh $B")
# Behind the builds.
computes+=(-j "$more" -n 0 "tests/live/installed.sh $B" -n 10 "tests/sim/short.sh $B")
asan() { computes+=("ASAN_OPTIONS=detect_leaks=1 $B/asan/unit/$1"); }
long="claim_copy_test model_test bulk_limits_test"
for t in $long; do asan "$t"; done
for t in $unit; do [[ " $long " == *" $t "* ]] || asan "$t"; done
for t in $tsan_unit; do computes+=("TSAN_OPTIONS=suppressions=tests/tsan.supp:ignore_noninstrumented_modules=1 $B/tsan/unit/$t"); done
computes+=("$B/storage 300 5000 500" "$B/numeric/honest_audits 400")

waits=(-j 1 "$B/live/floods_test" "$B/live/monitor_test" "$B/live/adversary_test")
waits+=(-j "$two" "$B/chaos/matrix --sample 40 \$LIVE_SEED" "$B/chaos/matrix --strategy=allreduce --sample 15 \$LIVE_SEED"
        "tests/live/guides_test.sh $B"
        "tests/live/tools_test.sh $B" "tests/live/machines_test.sh $B" "tests/live/windows_test.sh $B" "tests/live/leases_test.sh $B"
        "SEED=301 STEPS=24 EVENTS=6 $B/chaos/chaos")
long="kill_actors_test silence_test join_test bad_input_test restart_all_test rollback_test kill_coordinator_test"
for t in $long; do waits+=("$B/live/$t"); done
for t in tests/live/*_test.c; do
    t=$(basename "${t%.c}")
    [[ " floods_test monitor_test $long " == *" $t "* ]] || waits+=("$B/live/$t")
done
waits+=("$B/bench/cost_test" "tests/example/allreduce_test.sh $B"
       "tests/example/world_test.sh $B")
for t in tests/peers/*_test.sh; do waits+=("$t $B"); done

exec tests/run.sh "${computes[@]}" --beside "${waits[@]}"
