#!/bin/bash
# Runs every command of the README and the guides, and checks that all they name is in the tree.
#
#     tests/live/guides_test.sh BUILD_DIR
#
# A guide's commands stand in its ```sh blocks. Each guide is run in one shell, in a folder that looks like
# the tree, with line numbers as in the guide. config/demo is a smaller run there (STEPS steps of a model of
# one layer), so the 460 of the guides becomes STEPS. A comment above a block may change how it is run:
#
#     <!-- not run: why -->        not at all
#     <!-- beside the demo -->     in a second shell, while a run is on where the demo has its own
#
# A line whose remark says "until Ctrl-C" gets a SIGINT as soon as it has printed the expected text. All of it
# has a network and processes of its own, so fixed ports, addresses and pidof disturb no other process. Prints TAP lines;
# where namespaces are not permitted, one line "ok 1 # SKIP why".
set -u
export LC_ALL=C
guides="README.md config/README.md actors/README.md systemd/README.md common/README.md tests/README.md"
B=$(realpath -e "${1:?usage: guides_test.sh BUILD_DIR}") || exit 64
top=$(cd "$(dirname "$0")/../.." && pwd)

if [ -z "${GUIDES_INSIDE:-}" ]; then
    for user in "" --map-root-user; do
        space="unshare $user --net --pid --fork --mount-proc --kill-child"
        $space true 2>/dev/null && GUIDES_INSIDE=1 exec $space bash "$0" "$B"
    done
    echo "ok 1 - guides # SKIP namespaces are not permitted here"
    exit 0
fi
ip link set lo up && ip address add 203.0.113.7/32 dev lo && ip address add 198.51.100.4/32 dev lo || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$top" || exit 1

# ---- the shell that a guide runs in ---------------------------------------------------------------

cat >"$work/functions" <<'FUNCTIONS'
trap 'echo "FAILED at ${BASH_SOURCE[0]##*/guides/}:$LINENO"' ERR
trap 'code=$?; trap - ERR; set +e; kill $(jobs -pr) 2>/dev/null; wait; exit $code' EXIT
passed() { echo "ok - $1 runs" >>"$work/tap"; }
until_said()                            # file, text: waits for it, a minute at most
{
    touch "$1"
    timeout 60 grep -qm1 -- "$2" <(exec tail -n +1 -f --pid=$$ "$1") && return
    echo "no \"$2\" in a minute:"; tail -n 5 "$1"; return 1
}
until_ctrl_c()                          # a command
{
    local text=.
    [ "$1" != shoal-trainer ] && [ "$1 $2" != "shoal join" ] || text=member.admitted
    : >"$work/said" # What an earlier command said would be taken for this one's, which cannot hear a SIGINT yet
    "$@" >"$work/said" 2>&1 &
    local pid=$! code=0
    until_said "$work/said" "$text"; kill -INT $pid; wait $pid || code=$?
    cat "$work/said"
    [ $code -eq 0 ] || [ $code -eq 130 ]
}
beside_the_demo()
{
    : >"$work/beside" # As in until_ctrl_c
    "$B/bin/shoal" testnet start --num-clients 4 -c "$work/endless" --state-dir build/demo/run >"$work/beside" 2>&1 &
    beside=$!
    until_said "$work/beside" "step [1-9]"
}
demo_ends()
{
    until_said "$work/beside" "the coordinator is back"
    kill $beside; wait $beside || [ $? -eq 130 ]
}
FUNCTIONS

# The blocks of a guide as a script, each line where it was.
script()                                # guide
{
    awk -v guide="$1" '
        /^<!-- /  { remark = $0 }
        /^```sh$/ { inside = 1; begin = FNR; runs = remark !~ /^<!-- not run: ./; beside = remark ~ /^<!-- beside the demo -->/
                    print runs && beside ? "beside_the_demo; (" : ""; next }
        /^```$/ && inside { print runs ? (beside ? "); demo_ends; " : "") "passed " guide ":" begin : ""
                    inside = runs = 0; remark = ""; next }
        runs      { gsub(/00000460/, "000000'$STEPS'"); print (/#.* until Ctrl-C/ ? "until_ctrl_c " : "") $0; next }
                  { print "" }' "$1"
}

# Writes a run like the demo's, with STEPS steps, into a folder.
small_run()                             # folder, steps
{
    cp -r config/demo "$1"
    sed -i -e "0,/^total_steps = .*/s//total_steps = $2/" -e 's/^rounds_per_epoch = .*/rounds_per_epoch = 6/' "$1/state.toml"
    sed -i -e 's/"hidden_size": .*/"hidden_size": 32,/' -e 's/"intermediate_size": .*/"intermediate_size": 64,/' \
        -e 's/"num_\(hidden_layers\|attention_heads\|key_value_heads\)": .*/"num_\1": 1,/' "$1/model.json"
}

STEPS=12
small_run "$work/endless" 100000
"$B/bin/shoal" prepare-text --out "$work/endless/data" >"$work/out" &&
    "$B/bin/shoal" init-model --config "$work/endless/model.json" --out "$work/endless/model" >>"$work/out" || exit 1
failed=0
for guide in $guides; do
    tree=$work/tree/$guide
    mkdir -p "$tree/build" "$work/guides/$(dirname "$guide")" "$tree/config"
    ln -s "$B/bin" "$tree/build/bin"
    # A run by hand is ended by hand.
    small_run "$tree/config/demo" "$([ $guide = actors/README.md ] && echo 100000 || echo $STEPS)"
    script "$guide" >"$work/guides/$guide"
    (cd "$tree" && export work B && exec timeout -k 5 150 bash -eE -o pipefail -c '. "$work/functions"; . "$work/guides/$0"' "$guide") \
        >"$work/out" 2>&1 </dev/null || {
        echo "not ok - $guide runs" >>"$work/tap"
        { tail -n 15 "$work/out"; tail -n 5 "$tree/my-run/log"; } 2>/dev/null | sed 's/^/# /' >>"$work/tap"
    }
    # Prints the last words of actors that gave up: no shell waits for those in the background.
    gave_up=$(grep -hE '^shoal[a-z-]*: ' "$tree/my-run/log" 2>/dev/null)
    [ -z "$gave_up" ] || printf 'not ok - %s: no actor gives up\n# %s\n' "$guide" "$gave_up" >>"$work/tap"
done

# ---- what they name ---------------------------------------------------------------------------------

check() { [ -z "$2" ] && echo "ok - $1" >>"$work/tap" || printf 'not ok - %s\n# %s\n' "$1" "${2//$'\n'/; }" >>"$work/tap"; }

check "every make target of the guides is one" "$(grep -ohE '(`|^)make [a-z][a-z-]*' $guides | sed 's/.* //' | sort -u |
    while read -r target; do make help | grep -q "^  make $target " || echo "make $target"; done)"
check "every path of the guides is there" "$(grep -oE '`(actors|broker|common|config|systemd|tests)/[A-Za-z0-9_./-]*`' $guides | tr -d '`' |
    while IFS=: read -r guide path; do [ -e "$path" ] || echo "$guide names $path"; done)"
check "no command stands outside such a block" "$(awk '/^```/ { inside = !inside }
    !inside && /^ {4,}(\$ |sudo |make |shoal|build\/bin\/|zmq-monitor )/ { print FILENAME ":" FNR ": " $0 }' $guides)"
check "the README is read in three minutes" "$(awk 'END { if (NR > 150) print NR " lines" }' README.md)"
# The house lists every folder of common once, and a folder includes only those below it. A list (.def) is no code:
# the list of frames includes that of each pace.
house=$(sed -n 's#^| `common/\([a-z]*\)/` .*#\1#p' common/README.md)
check "the house is listed whole" "$(diff <(echo "$house" | sort) <(cd common && ls -d ./*/ | tr -d './'))"
check "includes point downward in the house" "$(above=""; for folder in $house; do
    for upper in $above; do grep -rlE "#include \"(common/$upper|actors|broker)/[^\"]*\.h\"" "common/$folder" | sed "s/\$/ includes $upper/"; done
    above+=" $folder"; done)"

awk '/^(not )?ok - / { sub(/ok - /, "ok " ++n " - ") } { print } END { print "1.." n }' "$work/tap"
! grep -q '^not ok' "$work/tap"
