#!/bin/bash
# The long form of adversary_test: RUNS runs of each kind of liar, four trainers of which one lies,
# 25 % audits, and as many of the three honest ones alone. What has been run is kept in
# BUILD/adversaries.tsv, so a second call goes on from there; remove the file to start over.
#
#     tests/adversary/adversaries.sh BUILD_DIR [RUNS]
#     KINDS="late flaky" tests/adversary/adversaries.sh BUILD_DIR [RUNS]     only these
#
# Ends with a table, and with 0 only if every liar was ejected, no honest trainer was, a withheld payload was
# in every run left out of a commit and its samples dealt again ("partial"; no run ends before the ledger
# accounts for all of them), and no kind's mean held-out loss is more than 2 % above that of the honest
# runs ("worst" is a single run: the honest ones say how far those lie apart). Auditors are drawn:
# of four, a liar's result is audited in a quarter of the rounds and judged in the next, so in one run of
# a thousand it takes more than 25 rounds; more than one in fifty is a failure. An equivocation takes at
# most one. One that is late is not ejected but dropped: within 20 rounds, and from then on at most a tenth of the
# time goes to rounds that waited for it. No honest one is dropped for being late.
set -u
B=${1:-build} RUNS=${2:-20}
out=$(realpath "$B")/adversaries.tsv
kinds=${KINDS:-"none sign-flip times-10 noise lazy stale copy wrong-batch nan nan-residual equivocate withhold accuse silent late flaky"}
touch "$out"
failed=0
for run in $(seq "$RUNS"); do
    for kind in $kinds; do
        grep -q "^$kind	$run	" "$out" && continue
        ADVERSARY=$kind ADVERSARY_SEED=$run ADVERSARY_OUT=$out timeout 600 "$B/live/adversary_test" \
            > "$B/adversary.log" 2>&1 && continue
        failed=$((failed + 1))
        cp "$B/adversary.log" "$B/adversary-$kind-$run.log"
        echo "run $run of $kind failed: $B/adversary-$kind-$run.log"
    done
done
# Fields: kind, run, round of the first deed, of the ejection, guilt, honest ejected, loss, voids,
# partial commits, seconds, honest dropped, round of the first drop of the liar, share of the time since then
# that rounds without a result took
sort -t'	' -u -k1,1 -k2,2n "$out" | awk -F'	' -v kinds="$kinds" '
    $1 == "none" { honest += $7; honest_n++ }
    $9 > 0 { partial[$1]++ }
    { n[$1]++; innocent[$1] += $6; loss[$1] += $7; if ($7 > worst[$1]) worst[$1] = $7 }
    $1 ~ "^(late|flaky)$" {
        lates++; dropped += $11; if ($12 > found) found = $12; if ($12 == 0) never++
        cost += $13; if ($13 > most) most = $13
    }
    $4 > 0 { took[$1, ++ejected[$1]] = $4 - $3; guilt[$1] = $5 }
    END {
        printf "%-12s %5s %8s %7s %5s %5s %8s %8s %7s %7s  %s\n", "kind", "runs", "ejected", "median",
            "max", "late", "honest", "partial", "loss", "worst", "guilt"
        count = split(kinds, list, " ")
        for (k = 1; k <= count; k++) {
            kind = list[k]; m = ejected[kind] + 0
            if (!n[kind]) continue
            for (i = 2; i <= m; i++)
                for (j = i; j > 1 && took[kind, j] < took[kind, j - 1]; j--) {
                    t = took[kind, j]; took[kind, j] = took[kind, j - 1]; took[kind, j - 1] = t
                }
            reference = honest_n ? honest / honest_n : 1
            # A silent liar is dropped for the epoch; its audit debt convicts it later: no limit
            limit = kind == "equivocate" ? 1 : kind == "silent" ? 1000 : 25
            late = 0
            for (i = 1; i <= m; i++) late += took[kind, i] > limit
            printf "%-12s %5d %8d %7s %5s %5d %8d %8d %7.4f %7.4f  %s\n", kind, n[kind], m,
                m ? took[kind, int((m + 1) / 2)] : "-", m ? took[kind, m] : "-", late,
                innocent[kind], partial[kind], loss[kind] / n[kind] / reference, worst[kind] / reference,
                m ? guilt[kind] : "-"
            if (innocent[kind] || (honest_n && loss[kind] / n[kind] > 1.02 * reference)) bad = 1
            if (kind != "none" && kind !~ "^(withhold|late|flaky)$" && m < n[kind]) bad = 1
            if (kind == "equivocate" && late) bad = 1
            if (kind == "withhold" && partial[kind] < n[kind]) bad = 1
            all += m; all_late += late
        }
        if (50 * all_late > all) bad = 1
        if (lates) {
            printf "late and flaky: %d runs, dropped first in round %d at most, then %.1f %% of the time is waited (" \
                "most %.1f %%), %d honest ones dropped\n", lates, found, 100 * cost / lates, 100 * most, dropped
            if (never || found > 3 + 20 || cost / lates > 0.1 || dropped) bad = 1
        }
        print "rounds: from the first deed to the ejection; late: more than 25 (equivocate 1)"
        print "partial: runs with a commit that left a result out, as all of withhold must have"
        print "loss: mean and worst, by the mean of the honest runs; late and flaky train ten times as long"
        exit bad
    }' || failed=$((failed + 1))
[ "$failed" -eq 0 ]
