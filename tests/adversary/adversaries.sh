#!/bin/bash
# The long form of adversary_test: RUNS runs of each kind of liar, four trainers of which one lies,
# 25 % audits, and as many of the three honest ones alone. What has been run is kept in
# BUILD/adversaries.tsv, so a second call goes on from there; remove the file to begin anew.
#
#     tests/adversary/adversaries.sh BUILD_DIR [RUNS]
#
# Ends with a table, and with 0 only if every liar was ejected as it should be, nobody honest was, and
# no run ended with a held-out loss more than 2 % above the mean of the honest runs.
set -u
B=${1:-build} RUNS=${2:-20}
out=$(realpath "$B")/adversaries.tsv
kinds="none sign-flip times-10 noise lazy stale copy wrong-batch nan equivocate withhold accuse silent"
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
# Fields: kind, run, round of the first deed, of the ejection, guilt, honest ejected, loss, ...
sort -t'	' -k1,1 -k2,2n "$out" | awk -F'	' -v kinds="$kinds" '
    $1 == "none" { honest += $7; honest_n++ }
    { n[$1]++; innocent[$1] += $6; loss[$1] += $7; if ($7 > worst[$1]) worst[$1] = $7 }
    $4 > 0 { took[$1, ++ejected[$1]] = $4 - $3; guilt[$1] = $5 }
    END {
        printf "%-12s %5s %8s %7s %5s %8s %7s %7s  %s\n", "kind", "runs", "ejected", "median",
            "max", "honest", "loss", "worst", "guilt"
        count = split(kinds, list, " ")
        for (k = 1; k <= count; k++) {
            kind = list[k]; m = ejected[kind] + 0
            if (!n[kind]) continue
            for (i = 2; i <= m; i++)
                for (j = i; j > 1 && took[kind, j] < took[kind, j - 1]; j--) {
                    t = took[kind, j]; took[kind, j] = took[kind, j - 1]; took[kind, j - 1] = t
                }
            reference = honest / (honest_n ? honest_n : 1)
            printf "%-12s %5d %8d %7s %5s %8d %7.4f %7.4f  %s\n", kind, n[kind], m,
                m ? took[kind, int((m + 1) / 2)] : "-", m ? took[kind, m] : "-", innocent[kind],
                loss[kind] / n[kind] / reference, worst[kind] / reference, m ? guilt[kind] : "-"
            # Silence is struck three times, each time a place lost for the epoch: no limit in rounds
            limit = kind == "equivocate" ? 1 : kind == "silent" ? 1000 : 25
            if (innocent[kind] || worst[kind] > 1.02 * reference) bad = 1
            if (kind != "none" && kind != "withhold" && (m < n[kind] || took[kind, m] > limit)) bad = 1
        }
        print "rounds: from the first deed to the ejection; loss: mean and worst, by the mean of the honest runs"
        exit bad
    }' || failed=$((failed + 1))
[ "$failed" -eq 0 ]
