#!/bin/bash
# Mistakes at the command line, and what the tools answer: each must be refused, or done, in the words
# that are expected here.
#
#     tests/live/tools_test.sh BUILD_DIR
#
# Has a folder of its own; what listens takes a free port. Prints TAP lines.
set -u
export LC_ALL=C
unset TICKET RUN_ID SERVER_ADDR SERVER_KEY IDENTITY_SECRET_KEY_PATH
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath -e "${1:?usage: tools_test.sh BUILD_DIR}")/bin || exit 64
work=$(mktemp -d)
trap 'kill $(jobs -pr) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1
export PATH=$bin:$PATH
number=0 failed=0

# The command ends with this exit code and prints this text (one of several: a newline between).
says()                                  # exit code, text, command
{
    local want=$1 text=$2 code=0 line
    shift 2
    timeout 20 "$@" >"$work/said" 2>&1 </dev/null || code=$?
    number=$((number + 1))
    while IFS= read -r line; do
        grep -qF -- "$line" "$work/said" && continue
        echo "not ok $number - $*: ends with $code, does not say \"$line\""
        sed 's/^/# /' "$work/said"; failed=1
        return
    done <<<"$text"
    if [ $code -ne "$want" ]; then
        echo "not ok $number - $*: ends with $code, not $want"; sed 's/^/# /' "$work/said"; failed=1
    else echo "ok $number - $*"
    fi
}
until_said()                            # file, text: waits for it, twenty seconds at most
{
    local n
    for ((n = 0; n < 200; n++)); do grep -qs -- "$2" "$1" && return; sleep 0.1; done
    echo "# no \"$2\" in twenty seconds:"; sed 's/^/# /' "$1"
}

cp -r "$top/config/demo" run && cd run || exit 1
for key in broker coordinator trainer; do shoal new-identity $key.key >/dev/null; done
shoal init-model --config model.json --out model >/dev/null

# ---- errors that name what to do ------------------------------------------------------------------

says 69 "not available: --bind: 192.0.2.1 is no address of this machine; it has 127.0.0.1" \
    shoal-broker -i broker.key --bind 192.0.2.1
sed 's/^run_id = .*/run_id = demo/' state.toml >bare.toml
says 78 'strings need quotes: "demo"' shoal validate-config --state bare.toml
says 64 "did you mean config.min_clients?" shoal train state.toml --set config.min_client=3
[ -e /dev/nvidiactl ] || # where there is no GPU
    says 69 "not available: device cuda was asked for:" shoal train state.toml --data data --device cuda

# A run that waits for members is not paused.
port=$((20000 + $$ % 20000 * 2))
shoal-broker -i broker.key --server-port $port 2>broker.log &
shoal invite -i broker.key --run-id demo --server-addr 127.0.0.1:$port >ticket
until_said broker.log broker.ready
shoal-coordinator -i coordinator.key --state state.toml --ticket ticket 2>coordinator.log &
until_said coordinator.log broker.welcome
says 75 "shoal: not now: the run is not paused; the coordinator refuses: cannot resume" \
    shoal resume --ticket ticket -i coordinator.key
says 77 "sign with the coordinator's key" shoal resume --ticket ticket -i trainer.key

echo "1..$number"
exit $failed
