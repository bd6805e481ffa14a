#!/usr/bin/env bash
# cut -- a trainer whose packets to a parameter server are dropped for long, in a run that is not in step: its link breaks,
# the next group does not form, and the others go on without it. When nothing is dropped any more, it trains again.
#
#     make chaos CUT=1                                as root, with nftables
#     tests/chaos/cut.sh BUILD
#
# Real processes on loopback. The trainer is of another user (nobody), so that a rule of the firewall finds its packets: all
# those to the server's links are dropped. Of two members that with the smaller key connects; so that this is the trainer,
# keys are made until one is. Both reach the broker all the time, so nobody is dropped as dead.

set -eu -o pipefail
build=$(realpath "$1") number=0 failed=0 user=65534 port=${PORT:-22960}
. "$(dirname "$0")/../bench/runs.sh"
[ "$(id -u)" = 0 ] && nft list ruleset >/dev/null 2>&1 || { echo "cut.sh: root and nftables are needed (apt-get install nftables)" >&2; exit 69; }
friend=
trap 'nft delete table inet shoal_cut 2>/dev/null || true; kill $friend 2>/dev/null || true; stop_run; rm -rf "$work"' EXIT

check() {                                           # WORDS COMMAND: what it prints is shown
    local words=$1 said
    shift
    number=$((number + 1))
    if said=$("$@"); then echo "ok $number - $words: $said"
    else echo "not ok $number - $words"; failed=1; tail -n 8 "$log" "$work/friend.log" | cut -c1-200 | sed 's/^/# /'; fi
}

first_line() {                                      # SECONDS LINE PATTERN FILE: the first line from LINE on, once it is there
    timeout "$1" grep -m 1 -- "$3" <(exec tail -n +"$2" -F "$4" 2>/dev/null) | sed 's/^[^ ]* [^ ]* //' | cut -c1-120
}

lines() { echo $(($(wc -l <"$1") + 1)); }

gets_on() {                                         # STEPS: until it has made so many more
    local first=$(run_step) began=$EPOCHREALTIME
    wait_for_step $((first + $1)) 60
    awk -v a="$began" -v b="$EPOCHREALTIME" -v steps="$1" 'BEGIN { printf "%d steps in %.1f s\n", steps, b - a }'
}

chmod 755 "$work"
make_text
init_run --strategy server --trainers 2 --dim 32 --layers 1 --seq-len 64 --batch 16
mkdir -p "$work/run/saves" && chmod 777 "$work/run/saves" # The other user saves there, too
sed -i 's/^mode = .*/mode = "async"/; s/^\(lanes\|window_time\) = /# &/; s/^# task_samples = .*/task_samples = 256/; /^memory_every = /d
    s/^servers = .*/servers = 1/; s/^min_clients = .*/min_clients = 1/; s/^init_min_clients = .*/init_min_clients = 3/
    s/^#* *step_timeout = .*/step_timeout = 2/; /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = 100000/' "$work/run/state.toml"
start_run "$port" --threads 1 --trainers 2
log=$work/run/run/logs/coordinator.log
timeout 30 grep -qm 1 "waiting for 1 more trainer" <(exec tail -n +1 -F "$log" 2>/dev/null)
cp "$work/run/run/ticket" "$work/ticket" && chmod 644 "$work/ticket"
server=$(sed -n 's/.* actor\.ready name=parameter-server\.\([0-9a-f]*\) .*/\1/p' "$work/run/run/logs/parameter-server-1.log" | head -n 1)
mkdir -p "$work/friend/own"
until key=$("$build/bin/shoal" new-identity "$work/friend/own/trainer.key" | sed -n 's/^public key *//p') && [[ ${key:0:16} < $server ]]; do rm "$work/friend/own/trainer.key"; done
chown -R $user "$work/friend"
(cd "$work/friend" && exec setpriv --reuid $user --regid $user --clear-groups "$build/bin/shoal" join "$work/ticket" --dir own --threads 1) >"$work/friend.log" 2>&1 &
friend=$!
check "a trainer of another user takes part" first_line 60 1 " task\.trained " "$work/friend.log"
links=$(sed -n 's/.* learner\.links endpoint=tcp:[^ ]*:\([0-9]*\).*/\1/p' "$work"/run/run/logs/parameter-server-1.log | tail -n 1)
from=$(lines "$log")
nft -f - <<EOF
add table inet shoal_cut
add chain inet shoal_cut out { type filter hook output priority 0; }
add rule inet shoal_cut out meta skuid $user tcp dport $links drop
EOF
check "its packets to the server are dropped, and its link breaks" first_line 60 "$from" " phase\.entered .*the links of a trainer broke" "$log"
check "the next group does not form, and it is left out" first_line 60 "$from" " trainer\.cut_off " "$log"
first_line 30 "$from" " run\.waits .* is in no group for " "$log" >/dev/null
check "the others go on without it" gets_on 2000
from=$(lines "$work/friend.log")
nft delete table inet shoal_cut
check "nothing is dropped any more, and it trains again" first_line 120 "$from" " task\.trained " "$work/friend.log"
echo "1..$number"
exit $failed
