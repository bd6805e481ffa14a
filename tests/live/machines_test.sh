#!/bin/bash
# A run on two machines by the README's "A run of your own": its commands, and on the friend's machine the
# line that `shoal up` prints. Then the same with a model of Hugging Face's layout.
#
#     tests/live/machines_test.sh BUILD_DIR
#
#     anna 203.0.113.7 ──┐
#                        ├── router        the first namespace; it drops what the firewall of carl drops
#     ben 198.51.100.4 ──┤
#     carl 192.0.2.9 ──║─┘
#
# A machine is a network namespace with one address, and a mount namespace with a file system of its own for
# its home: no machine sees a file of another. The programs are in the build folder for all. The commands are
# cut out of the README. Only flags are added to them, for a small model and few steps. Prints TAP lines;
# where namespaces are not permitted, one line "ok 1 # SKIP why".
set -u
export LC_ALL=C
B=$(realpath -e "${1:?usage: machines_test.sh BUILD_DIR}") || exit 64
top=$(cd "$(dirname "$0")/../.." && pwd)

if [ -z "${MACHINES_INSIDE:-}" ]; then
    for user in "" --map-root-user; do
        space="unshare $user --net --mount --pid --fork --mount-proc --kill-child"
        $space unshare --net --mount true 2>/dev/null && MACHINES_INSIDE=1 exec $space bash "$0" "$B"
    done
    echo "ok 1 - two machines # SKIP namespaces are not permitted here (needs root)"
    exit 0
fi
unset TICKET RUN_ID SERVER_ADDR SERVER_KEY IDENTITY_SECRET_KEY_PATH
work=$(mktemp -d)
trap 'kill $(jobs -pr) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" && mkdir home said || exit 1
number=0 failed=0
check()                                 # what, problem, file to show
{
    number=$((number + 1))
    [ -z "$2" ] && echo "ok $number - $1" && return
    echo "not ok $number - $1: $2"; failed=1
    [ -z "${3:-}" ] || tail -n 15 "$3" | sed 's/^/# /'
}
give_up()                               # what, problem, file to show
{
    check "$@"; echo "1..$number"
    exit 1
}
equal() { [ "$1" = "$2" ] || echo "\"$1\" is not \"$2\""; }
until_said()                            # file, pattern, times
{
    touch "$1"
    [ "$(timeout 40 grep -cm"$3" -- "$2" <(exec tail -n +1 -f "$1" 2>/dev/null))" = "$3" ] && return
    give_up "$1 says $2" "not $3 times in 40 seconds" "$1"
}

# ---- machines -------------------------------------------------------------------------------------

declare -A holder
machine()                               # name, address
{
    local gate=${2%.*}.1 ready word
    exec {ready}< <(exec unshare --net --mount bash -c 'mount -t tmpfs none "$1" && echo up && exec sleep infinity' - "$work/home")
    holder[$1]=$!
    read -r -u "$ready" word &&
        ip link add "$1" type veth peer name eth0 netns "${holder[$1]}" &&
        ip address add "$gate/24" dev "$1" && ip link set "$1" up &&
        on "$1" ip address add "$2/24" dev eth0 && on "$1" ip link set eth0 up && on "$1" ip link set lo up &&
        on "$1" ip route add default via "$gate" &&
        on "$1" mkdir -p shoal/build && on "$1" ln -s "$B/bin" shoal/build/bin
}
on()                                    # machine, command
{
    local of=$1
    shift
    HOME=$work/home nsenter --target "${holder[$of]}" --net --mount --wdns="$work/home" -- "$@"
}
# The same in the background, in the tree. The process is the command's own: $! can be killed.
starts()                                # machine, file for what it says, script
{
    HOME=$work/home exec nsenter --target "${holder[$1]}" --net --mount --wdns="$work/home" -- \
        bash -c "cd shoal && $3" >"$2" 2>&1 </dev/null
}

echo 1 >/proc/sys/net/ipv4/ip_forward
machine anna 203.0.113.7 && machine ben 198.51.100.4 && machine carl 192.0.2.9 || give_up "machines" "no veth pair"
# Carl's firewall lets in what comes from Anna's ports, 5550 and the next ones: answers, and no connection.
ip rule add to 192.0.2.9 ipproto tcp sport 5550-5559 lookup main pref 10 && ip rule add to 192.0.2.9 blackhole pref 11 ||
    give_up "firewall" "no rule"

# ---- the guide ------------------------------------------------------------------------------------

awk '/^## / { here = /^## A run of your own$/ } here && /^```$/ { exit } inside { print } here && /^```sh$/ { inside = 1 }' \
    "$top/README.md" >guide
export_line=$(grep '^export PATH' guide)
# The text is there already; the friend has the first line too, and the one that `up` prints.
check "a text becomes a run of two machines in six commands" "$(equal $(($(grep -vc '^mkdir' guide) + 2)) 6)" guide

# Anna's five commands, then the end of `up`.
anna_begins()                           # name of the run, more flags of init, more flags of up
{
    sed -e "s/their-run/$1/g" -e "s/^shoal init $1/& $2/" -e "s/^shoal up $1/& $3/" guide >said/commands
    grep -qF -- "$2" said/commands && grep -qF -- "$3" said/commands || give_up "the guide's commands" "others" said/commands
    starts anna "said/$1" "$(cat said/commands)
        wait %1; code=\$?; cat up.log; exit \$code" &
    anna=$!
    until_said "said/$1" '^ *shoal join shoal:' 1
    join_line=$(sed -n 's/^ *\(shoal join shoal:\)/\1/p' "said/$1")
}
friend_joins() { starts "$1" "$2" "$export_line; exec $join_line"; } # machine, file for what it says

# Both have ended with 0, with the parameters of the ledger. Sets ben_results.
both_end()                              # name of the run, steps, what ben said
{
    local said ledger
    ends_within 60 $anna
    check "$1: shoal up ends" "$(equal $code 0)" "said/$1"
    ends_within 20 $ben
    check "$1: shoal join ends with the run" "$(equal $code 0)" "$3"
    ledger=$(on anna shoal/build/bin/shoal status --ledger "shoal/$1/run/coordinator" --json)
    read -r said ben_results <<<"$(perl -MJSON::PP -e '
        my $ledger = decode_json($ARGV[0]);
        my ($member) = grep { $_->{name} eq $ARGV[1] } @{$ledger->{members}};
        printf "%s,%s,%s,%s %d\n", $ledger->{evidence}{holds} ? "holds" : "does-not-hold", $ledger->{samples_twice},
            $ledger->{digest_step}, $ledger->{digest}, $member ? $member->{results} : 0' "$ledger" "$(name_of "$3")")"
    finished() { sed -n 's/.* run.finished step=\([0-9]*\) digest=\([0-9a-f]*\)$/holds,0,\1,\2/p'; }
    check "$1: the ledger holds, with Anna's digest of step $2" "$(equal "$said" "$(on anna cat "shoal/$1/run/logs/trainer-1.log" | finished)")" "said/$1"
    check "$1: Ben's digest is the same" "$(equal "$said" "$(finished <"$3")")" "$3"
    check "$1: all steps are made" "$(equal "$(cut -d, -f3 <<<"$said")" "$2")"
}
ends_within()                           # seconds, process; sets its exit code
{
    timeout "$1" tail -f /dev/null -s 0.1 --pid="$2" || kill "$2"
    code=0; wait "$2" || code=$?
}
name_of() { sed -n 's/.* actor.ready name=\([^ ]*\) .*/\1/p' "$1"; }

# ---- own text -------------------------------------------------------------------------------------

small="--dim 32 --layers 1 --seq-len 32 --batch 8"
anna_begins their-run "$small --steps 20" ""
friend_joins carl said/carl &
carl=$!
friend_joins ben said/ben &
ben=$!
# At the end of the epoch in which he trains first: a round that is open would wait for the dead trainer's result
# until its time is up, half a minute.
until_said said/ben ' round.trained .* loss=' 1
until_said said/ben ' phase=WaitingForMembers ' $(($(grep -c ' phase=WaitingForMembers ' said/ben) + 1))
kill -9 $ben; wait $ben 2>/dev/null
friend_joins ben said/ben-again &
ben=$!
both_end their-run 20 said/ben-again
check "Ben has the same key after SIGKILL" "$(equal "$(name_of said/ben)" "$(name_of said/ben-again)")"
address_of() { sed -n 's/.* actor.ready .* bulk=tcp:\/\/\([^ ]*\)$/\1/p' "$1"; }
check "Ben has the same port after SIGKILL" "$(equal "$(address_of said/ben)" "$(address_of said/ben-again)")" said/ben-again
check "and said it before" "$(grep -q "fetch from us at $(address_of said/ben); a firewall must let that port in" said/ben || echo no)" said/ben
trained=$(grep -c ' round.trained .* loss=' said/ben)
check "commits name results of Ben's trainer from before and after SIGKILL" \
    "$([ "$trained" -gt 0 ] && [ "$ben_results" -gt "$trained" ] || echo "$ben_results results, $trained before")" said/ben-again
check "Ben has no file of Anna's" "$(on ben ls shoal | grep -vxE 'build|shoal-their-run')"

# ---- a firewall that lets nothing in --------------------------------------------------------------

ends_within 10 $carl
check "a trainer that nobody can reach ends with 78" "$(equal $code 78)" said/carl
for words in "192.0.2.9:[0-9]*" firewall --announce; do
    check "and names $words" "$(grep -q -- "$words" said/carl || echo "no such word")" said/carl
done

# ---- a model of Hugging Face's layout -------------------------------------------------------------

on anna bash -c "cd shoal && $export_line
    shoal train-tokenizer --vocab-size 300 --out tokenizer books &&
    shoal init-model --dim 32 --layers 1 --heads 1 --ffn 64 --seq-len 32 --vocab 300 --tokenizer-dir tokenizer --out hf" \
    >said/hf 2>&1 || give_up "a model of Hugging Face's layout" "not made" said/hf
sed -i '/^mkdir books/d' guide && on anna rm shoal/up.log
anna_begins hf-run "--model hf --batch 8 --steps 4 --trainers 2" "--trainers 1"
friend_joins ben said/ben-hf &
ben=$!
both_end hf-run 4 said/ben-hf
check "hf-run: commits name Ben's trainer" "$([ "$ben_results" -gt 0 ] || echo none)" said/ben-hf

echo "1..$number"
exit $failed
