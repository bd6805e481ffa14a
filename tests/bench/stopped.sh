#!/usr/bin/env bash
# stopped -- what a trainer that stands still for five seconds costs the others, in a run whose parameter servers are not in
# step: four trainers, each with a share of a processor, together 0.7 of all of them; so what the stopped one does not use
# is of no use to the others. Real processes of one thread on this machine, two servers.
#
#     make bench-stopped TURNS=5
#     tests/bench/stopped.sh BUILD [TURNS]
#
# A turn: five seconds undisturbed, five in which the last trainer is stopped (SIGSTOP). The pushes of the three others in
# the second half by those in the first; then the sums over all turns.

set -eu -o pipefail
build=$(realpath "$1") turns=${2:-5}
. "$(dirname "$0")/runs.sh"
quotas=() monitor=
stop_all() {
    kill "${quotas[@]}" $monitor 2>/dev/null || true
    wait "${quotas[@]}" 2>/dev/null || true
    stop_run
    rm -rf "$work"
}
trap stop_all EXIT

say_processors
make_text
init_run --strategy server --trainers 4 --dim 64 --layers 2 --seq-len 128 --batch 4
sed -i 's/^mode = .*/mode = "async"/; s/^# staleness = .*/staleness = 6/; s/^# task_samples = .*/task_samples = 64/
    s/^\(lanes\|window_time\) = /# &/; s/^init_min_clients = .*/init_min_clients = 4/; /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 100000/; /^memory_every = /d' "$work/run/state.toml"
start_run "${PORT:-22880}" --threads 1
wait_for_step 8 120
trainers=($(pgrep -P "$up" -f shoal-trainer))
share=$(awk -v n="$(nproc)" 'BEGIN { s = 0.7 * n / 4; print (s < 1 ? s : 1) }')
for pid in "${trainers[@]}"; do
    "$build/bench/quota_of" "$share" "$pid" &
    quotas+=($!)
done
"$build/bin/zmq-monitor" --topic PUSHES --json --ticket "$work/run/run/ticket" >"$work/pushes" 2>/dev/null &
monitor=$!
victim=${trainers[3]}
now() { date +%s%3N; }
sleep 5
for ((turn = 1; turn <= turns; turn++)); do
    a=$(now); sleep 5; b=$(now)
    kill -STOP "${quotas[3]}" "$victim"
    sleep 5; c=$(now)
    kill -CONT "$victim" "${quotas[3]}"
    echo "$a $b $c" >>"$work/turns"
    sleep 3
done
kill "$monitor" && wait "$monitor" 2>/dev/null || true
perl -MJSON::PP -e '
    my ($pushes, $turns, $sum) = @ARGV;
    my (%at, @times);
    open my $in, "<", $pushes or die;
    while (<$in>) {
        next unless /\}$/;
        my $news = eval { decode_json($_) } or next;
        my $body = $news->{trainers} ? $news : $news->{body} // $news->{pushes} // next;
        push @{ $at{$_->{member}} }, [$news->{unix_ms}, $_->{pushes}] for @{ $body->{trainers} };
    }
    sub pushes_at { # By a straight line between the two words around it
        my ($words, $ms) = @_;
        for my $i (1 .. $#$words) {
            my ($p, $q) = @$words[$i - 1, $i];
            next if $q->[0] < $ms || $p->[0] > $ms || $q->[0] == $p->[0];
            return $p->[1] + ($q->[1] - $p->[1]) * ($ms - $p->[0]) / ($q->[0] - $p->[0]);
        }
        die "no word of pushes around $ms\n";
    }
    die "pushes of ", scalar keys %at, " trainers, not of 4\n" unless keys %at == 4;
    my ($before, $during) = (0, 0);
    open my $list, "<", $turns or die;
    while (<$list>) {
        my ($from, $stop, $end) = split;
        my (@b, @d);
        for my $member (sort { $a <=> $b } keys %at) {
            push @b, (pushes_at($at{$member}, $stop) - pushes_at($at{$member}, $from)) / ($stop - $from) * 1000;
            push @d, (pushes_at($at{$member}, $end) - pushes_at($at{$member}, $stop)) / ($end - $stop) * 1000;
        }
        my ($still) = sort { $d[$a] <=> $d[$b] } 0 .. $#d; # It is the one that did least
        my ($x, $y) = (0, 0);
        $x += $_ == $still ? 0 : $b[$_], $y += $_ == $still ? 0 : $d[$_] for 0 .. $#d;
        printf "turn %d: %.1f pushes/s of the three others, %.1f while the fourth stands still (%.1f of it): %.3f\n",
            $., $x, $y, $d[$still], $y / $x;
        $before += $x, $during += $y;
    }
    open my $all, ">", $sum or die;
    printf $all "%.3f\n", $during / $before;
' "$work/pushes" "$work/turns" "$work/sum"
aim "$(cat "$work/sum")" least 0.95 "all turns: part of the undisturbed pushes"
