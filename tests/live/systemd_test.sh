#!/bin/bash
# The units of an installed tree: systemd understands them, they are hardened, and each ExecStart
# line, run by hand with the environment that its unit describes, starts its actor. Needs no running systemd: a
# small supervisor of our own listens to what the actors tell it, as systemd would.
#
#     make install DESTDIR=TREE && tests/live/systemd_test.sh TREE
#
# Prints TAP lines, a test that the machine cannot run as "ok N - name # SKIP why".
set -u
export LC_ALL=C

tree=$(realpath -e "${1:?usage: systemd_test.sh TREE, after make install DESTDIR=TREE}") || exit 64
installed=$(find "$tree" -path '*/systemd/system/shoal-broker.service' -print -quit)
if [ -z "$installed" ]; then
    echo "not ok 1 - units are installed"
    echo "# no shoal-broker.service below $tree"
    exit 1
fi
installed=${installed%/shoal-broker.service}
prefix=${installed#"$tree"}; prefix=${prefix%/lib/systemd/system}
work=$(mktemp -d)
units=$work/units common=$units/shoal-.service.d/10-actor.conf conf=$work/etc/shoal
exposure_max=25                         # Tenths of systemd's exposure level
patience_s=20                           # For an actor to be ready, to feed its watchdog, to end
number=0 failures=0
declare -A running=()

clean_up()
{
    for unit in "${!running[@]}"; do kill "${running[$unit]}" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap clean_up EXIT

# ---- what is said -------------------------------------------------------------------------------

ok() { number=$((number + 1)); echo "ok $number - $1"; }
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
not_ok()                                # name, why, a log
{
    number=$((number + 1)); failures=$((failures + 1))
    echo "not ok $number - $1"
    echo "# $2"
    [ -z "${3:-}" ] || tail -n 5 "$3" 2>/dev/null | sed 's/^/# | /'
}
check() { [ -z "$2" ] && ok "$1" || not_ok "$1" "${2//$'\n'/; }"; }     # name, what is wrong or ""

# ---- reading units ------------------------------------------------------------------------------

# The values of a setting, the unit's first and then those common to all, as systemd reads them.
setting() { sed -n "s/^$2=//p" "$units/$1" "$common" 2>/dev/null; }

# The specifiers that our units use, and $$ for $.
expand() { sed -e "s|%i|$instance|g" -e "s|%N|$name|g" -e "s|%S|$work/state|g" -e "s|%t|$work/run|g" -e 's|\$\$|$|g'; }

# What a unit's process is started with: its own variables, the files' over them, what systemd adds.
environment()
{
    local unit=$1 file
    setting "$unit" Environment | expand
    setting "$unit" EnvironmentFile | expand | sed 's/^-//' | while read -r file; do
        [ ! -e "$file" ] || sed -e '/^#/d' -e '/^$/d' "$file"
    done
    echo "STATE_DIRECTORY=$(setting "$unit" StateDirectory | expand | sed "s|^|$work/state/|")"
}

# ---- standing in for systemd --------------------------------------------------------------------

# Starts a command with a socket for what it has to say; tells the pipe "alive" once it was ready
# and fed its watchdog, or how it ended before; hands SIGTERM on, and SIGKILL when patience ends;
# ends as the command does.
supervisor='
use strict; use Socket; use IO::Handle; use POSIX ":sys_wait_h";
my ($path, $pipe, $patience_s, @command) = @ARGV;
socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die "socket: $!\n";
bind($socket, sockaddr_un($path)) or die "$path: $!\n";
open(my $out, ">", $pipe) or die "$pipe: $!\n";
$ENV{NOTIFY_SOCKET} = $path; $ENV{WATCHDOG_USEC} = 4000000;
my $child = fork() // die "fork: $!\n";
if (!$child) { exec(@command) or exit 127; }
$SIG{TERM} = sub { kill("TERM", $child); alarm($patience_s) };
$SIG{ALRM} = sub { kill("KILL", $child) };
my ($told, $heard, $parent) = (0, "", getppid());
while (waitpid($child, WNOHANG) == 0) {
    kill("KILL", $child) if getppid() != $parent;
    vec(my $ready = "", fileno($socket), 1) = 1;
    next if select($ready, undef, undef, 0.05) <= 0;
    recv($socket, my $said, 4096, 0);
    $heard .= "$said\n";
    next if $told || $heard !~ /^READY=1$/m || $heard !~ /^WATCHDOG=1$/m;
    $told = 1; print $out "alive\n"; $out->flush();
}
my $status = $? & 127 ? 128 + ($? & 127) : $? >> 8;
print $out "ended with $status before it was ready and fed its watchdog\n" unless $told;
exit $status;
'

# Starts a unit and waits for it. Sets `said` to "alive" or to what went wrong.
start()                                 # unit file, instance
{
    local unit=$1 line
    instance=$2; name=${unit%.service}; name=${name%@}${2:+@$2}
    mapfile -t env < <(environment "$unit")
    env=(env -i "PATH=$PATH" "${env[@]}")
    mkdir -p "$work/state/shoal/$name"; cd "$work/state" || exit 1
    while read -r line; do
        "${env[@]}" sh -c "${line}" >"$work/$name.log" 2>&1 ||
            { said="ExecStartPre ended with $?"; return; }
    done < <(setting "$unit" ExecStartPre | expand)
    rm -f "$work/$name.pipe" "$work/$name.socket"; mkfifo "$work/$name.pipe"
    line=$(setting "$unit" ExecStart | expand)
    "${env[@]}" perl -e "$supervisor" "$work/$name.socket" "$work/$name.pipe" "$patience_s" \
        sh -c "exec $line" >"$work/$name.log" 2>&1 &
    running[$unit]=$!
    said="not ready after $patience_s s"
    read -r -t "$patience_s" line <>"$work/$name.pipe" && said=$line
}

# Sends SIGTERM and waits. Sets `said` to "" or to what went wrong.
stop()                                  # unit file
{
    local pid=${running[$1]:-} code
    said="it was not running"
    [ -n "$pid" ] || return
    unset "running[$1]"
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"; code=$?
    said=""
    [ $code -eq 0 ] || said="ended with $code after SIGTERM, expected 0 within $patience_s s"
}

# ---- the units as files -------------------------------------------------------------------------

# A copy in which programs and configuration are found where they are staged.
sysconf=$(sed -n 's|^EnvironmentFile=-\(.*\)/shoal/shoal.env|\1|p' "$installed/shoal-broker.service")
mkdir -p "$units" "$conf/demo/model" "$conf/demo/data/train" "$work/state" "$work/run/shoal"
cp -r "$installed"/shoal* "$units"
find "$units" -type f -exec sed -i -e "s|$prefix/bin/|$tree$prefix/bin/|g" \
    -e "/^#/!s|$sysconf/shoal|$conf|g" {} +

check "no placeholder is left" \
    "$(grep -rlE '@[a-z]+@' "$installed"/shoal* "$tree$prefix"/lib/{sysusers,tmpfiles}.d)"
missing=""
for program in "$tree$prefix"/bin/shoal-*; do
    name=${program##*/}
    [ -e "$units/$name.service" ] || [ -e "$units/$name@.service" ] || missing+="$name "
done
check "every actor has a unit" "$missing"

for file in "$units"/*.service "$units"/*.target; do
    unit=${file##*/}
    if ! command -v systemd-analyze >/dev/null; then
        skip "$unit is understood by systemd" "no systemd-analyze here"
        continue
    fi
    check "$unit is understood by systemd" "$(systemd-analyze verify --man=no "$file" 2>&1)"
    [ "${unit##*.}" = service ] || continue
    rating=$(systemd-analyze security --offline=true --threshold=$exposure_max "$file" 2>&1)
    code=$? level=$(sed -n 's/.*level for [^:]*: \([0-9.]*\).*/\1/p' <<<"$rating")
    if [ $code -eq 0 ] && [ -n "$level" ]; then ok "$unit is hardened: exposure $level"
    else not_ok "$unit is hardened" "exposure ${level:-unknown}, at most $exposure_max tenths"; fi
done

sysusers=$tree$prefix/lib/sysusers.d/shoal.conf
if ! command -v systemd-sysusers >/dev/null; then skip "the user is made" "no systemd-sysusers here"
else
    check "the user is made" "$(systemd-sysusers --dry-run --root="$work" "$sysusers" 2>&1 |
        grep -q "user 'shoal'" || echo "systemd-sysusers would make no user shoal")"
fi

# ---- the units as processes ---------------------------------------------------------------------

sample=$tree$prefix/share/shoal/demo
sed 's/^standalone = false/standalone = true/' "$sample/state.toml" >"$conf/demo/state.toml"
cp "$sample/data.toml" "$conf/demo/"
head -c 262144 /dev/zero >"$conf/demo/data/train/text.bin"
"$tree$prefix/bin/shoal" manifest "$conf/demo/data/train" --token-bytes 2 >"$work/manifest" 2>&1 || { echo "not ok 1 - a manifest is made"; sed 's/^/# | /' "$work/manifest"; exit 1; }
cat >"$conf/demo/model/config.json" <<'JSON'
{ "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256,
  "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "tie_word_embeddings": true }
JSON

# Says how `start` went.
started()                               # unit file
{
    if [ "$said" = alive ]; then ok "$1: ExecStart starts its actor: ready, watchdog fed"
    else not_ok "$1: ExecStart starts its actor: ready, watchdog fed" "$said" "$work/$name.log"; fi
}

# Two free ports in a row, above those of the testbed: the broker says itself whether it got them.
said="no free ports in 20 attempts"
for _ in {1..20}; do
    port=$((31000 + RANDOM % 1700))
    echo "SERVER_PORT=$port" >"$conf/shoal-broker.env"
    start shoal-broker.service ""
    grep -q 'cannot listen on' "$work/shoal-broker.log" || break
    wait "${running[shoal-broker.service]}"
    unset 'running[shoal-broker.service]'
done
started shoal-broker.service
echo 'RUN_ID=demo' >"$conf/shoal.env"

for role in coordinator:demo data-provider:demo witness:1 checkpointer:1 trainer:1; do
    start "shoal-${role%:*}@.service" "${role#*:}"
    started "shoal-${role%:*}@.service"
done

loose=""
for key in "$work"/state/shoal/*/secret.key; do
    [ "$(stat -c '%a %s' "$key")" = "600 32" ] || loose+="$key "
done
check "ExecStartPre makes identities that only their owner may read" "$loose"

for role in trainer@ checkpointer@ witness@ data-provider@ coordinator@ broker; do
    unit=shoal-$role.service
    stop "$unit"
    if [ -z "$said" ]; then ok "$unit: SIGTERM ends it with 0"
    else not_ok "$unit: SIGTERM ends it with 0" "$said" "$(ls "$work/shoal-$role"*.log)"; fi
done

echo "1..$number"
[ $failures -eq 0 ]
