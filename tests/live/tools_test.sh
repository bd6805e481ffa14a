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
        [ -z "$line" ] || grep -qF -- "$line" "$work/said" && continue
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
    touch "$1"
    timeout 20 grep -qm1 -- "$2" <(exec tail -n +1 -f --pid=$$ "$1") && return
    echo "# no \"$2\" in twenty seconds:"; sed 's/^/# /' "$1"
}

cp -r "$top/config/demo" run && cd run || exit 1
for key in broker coordinator trainer; do shoal new-identity $key.key >/dev/null; done
shoal init-model --config model.json --out model >/dev/null
port=$((20000 + $$ % 6000 * 2)) # Below those that the kernel gives to whoever connects
shoal invite -i broker.key --run-id demo --server-addr 127.0.0.1:$port >ticket

# ---- errors that name what to do ------------------------------------------------------------------

says 64 "--bind 192.0.2.1 is for other machines, too, and then needs --owner HEX" \
    shoal-broker -i broker.key --bind 192.0.2.1
says 69 "not available: --bind: 192.0.2.1 is no address of this machine; it has 127.0.0.1" \
    shoal-broker -i broker.key --bind 192.0.2.1 \
    --owner "$(shoal show-identity -i broker.key | awk '/^public/ { print $3 }')"
says 64 "--roles trainer,cook: some of trainer,witness,checkpointer" \
    shoal invite -i broker.key --run-id demo --roles trainer,cook
says 0 "shoal:" shoal invite -i broker.key --run-id demo --roles trainer,witness
says 64 "--owner 3fa2: no public key; 64 hexadecimal digits" shoal-broker -i broker.key --owner 3fa2
sed 's/^run_id = .*/run_id = demo/' state.toml >bare.toml
says 78 'strings need quotes: "demo"' shoal validate-config --state bare.toml
says 64 "did you mean config.min_clients?" shoal train state.toml --set config.min_client=3

echo '{"question": "Ice is", "choices": [" water", " fire"], "answer": 0}' >questions.jsonl
says 64 "--template arc: question or raw" shoal eval --model model --choices questions.jsonl --template arc
says 0 "of 1 questions" shoal eval --model model --choices questions.jsonl --template raw --scores scores.jsonl
says 0 '{"line":1,"log_probabilities":[-' cat scores.jsonl
says 64 "--scores ./questions.jsonl: the questions are in that file" \
    shoal eval --model model --choices questions.jsonl --scores ./questions.jsonl
says 0 "Ice is" cat questions.jsonl
says 74 "--scores /dev/full: No space left on device" \
    shoal eval --model model --choices questions.jsonl --scores /dev/full
says 64 "--token-bytes belongs to --data" shoal eval --model model --choices questions.jsonl --token-bytes 2
says 64 "--token-bytes 3: 2 or 4" shoal eval --model model --data data --token-bytes 3
says 64 "--tied and --config: the shape comes from one of them" \
    shoal init-model --config model.json --tied --out tied
says 0 '"folder":"caf?"' shoal init-model --config model.json --out $'caf\xe9' --json
says 0 '"model":"caf?"' shoal eval --model $'caf\xe9' --choices questions.jsonl --json
rm -r $'caf\xe9'
cp -r model long && sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 1048576/' long/config.json
says 0 "of 1 questions" shoal eval --model long --choices questions.jsonl --seq-len 64
says 64 "--threads four: a whole number from 1 to 64" shoal join friend.ticket --threads four
says 64 "the names of the texts, --model and --jsonl-field have 3101 bytes" shoal init run "$(printf 'a%.0s' {1..3100})"
says 64 "1 to 32 of A-Z" shoal init run text --run-id "my run"
says 64 "1 to 32 of A-Z" shoal init run text --run-id "$(printf 'a%.0s' {1..33})"
perl -e 'print "The fish swim in the sea. " x 20000' >./-text
cp ./-text text.txt
says 0 "  shoal up run" shoal init -- run -text
says 64 "--strategy ring: distro, allreduce, sharded or server" shoal init group text.txt --strategy ring
says 0 $'All trust one another; links are encrypted\n  shoal up group' \
    shoal init group text.txt --strategy allreduce --dim 32 --layers 1 --heads 2 --seq-len 64
sed -i 's/^link = .*/link = "plain"/' group/state.toml
line=$(grep -n '^link' group/state.toml | cut -d: -f1)
says 78 "group/state.toml:$line: strategy.link: plain, but --bind 192.0.2.1 is a public address" \
    shoal up group --bind 192.0.2.1

# A folder for saves that is not there.
shoal init parts text.txt --strategy sharded --dim 32 --layers 1 --heads 2 --seq-len 64 >init.log 2>&1
sed -i "s#^shared_dir = .*#shared_dir = \"$PWD/nowhere\"#" parts/state.toml
says 78 "checkpoint.shared_dir of $PWD/parts/state.toml: this folder cannot be used for saves: $PWD/nowhere: open failed" \
    shoal up parts --port $((port + 42))

# A port that something listens at.
cat >listening.pl <<'PERL'
use IO::Socket::INET;
my $port = shift;
my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $port, Listen => 1) or die "$port: $!\n";
exit(system(@ARGV) >> 8);
PERL
says 75 "; another run may use it, or be just ending. Ports" \
    perl listening.pl $((port + 40)) shoal up group --bind 127.0.0.1 --port $((port + 40))

# ---- validate-config opens what it names ------------------------------------------------------------

mkdir -p data/train empty
perl -e 'print pack("v*", map { $_ % 128 } 1 .. 66000)' >data/train/text.bin
shoal manifest data/train --token-bytes 2 >/dev/null
[ -e /dev/nvidiactl ] || # where there is no GPU
    says 69 "not available: device cuda was asked for:" shoal train state.toml --data data/train --device cuda
valid="shoal validate-config --state state.toml --data-config data.toml"
says 0 $'a trainer takes next to nothing, a checkpointer \nbad: 0' shoal doctor --state allreduce.toml
says 0 'allreduce.toml: OK: run "demo", 460 steps of 16..16 sequences' shoal validate-config --state allreduce.toml
says 0 $'state.toml: OK: run "demo"\ndata.toml: OK: data/train' $valid
sed 's/^init_min_clients = .*/init_min_clients = 1/; s/^min_clients = .*/min_clients = 1/' state.toml >one.toml
says 0 " tokens, 1 member to begin" shoal validate-config --state one.toml
says 0 "data/train: 1 file, " shoal manifest data/train --token-bytes 2
# JSON has no number for a perplexity beyond all bounds, nor for a seed above 2^63.
tiny="shoal init-model --dim 32 --layers 1 --heads 1 --ffn 64 --seq-len 64 --out sure"
says 64 "--seed 18446744073709551615: a whole number from 0 to 9223372036854775807" $tiny --seed 18446744073709551615
$tiny >/dev/null && truncate -s -256 sure/model.safetensors
perl -e 'print pack("f<", 32768) x 64' >>sure/model.safetensors
says 0 $'"perplexity":null\n"tokens":' shoal eval --model sure --data data/train --json
# The seven: each an edit of a good file, and the fault with its line.
refuses()                               # text, sed expression for state.toml, sed expression for data.toml
{
    sed "$2" state.toml >bad-state.toml; sed "${3:-}" data.toml >bad-data.toml
    says 78 "$1" shoal validate-config --state bad-state.toml --data-config bad-data.toml
}
line=$(grep -n '^repo_id' state.toml | cut -d: -f1)
refuses "bad-state.toml:$line:1: error: model.LLM.checkpoint.Hub.repo_id: nowhere: No such file or directory" \
    's/^repo_id = .*/repo_id = "nowhere"/'
refuses "nothing is fetched from the Hub; download meta-llama/Llama-3.2-1B" \
    's#^repo_id = .*#repo_id = "meta-llama/Llama-3.2-1B"#'
refuses "model.LLM.max_seq_len: 4096, but config.json of model allows 1..$(sed -n 's/.*"max_position_embeddings": \([0-9]*\).*/\1/p' model.json)" \
    's/^max_seq_len = .*/max_seq_len = 4096/' 's/^seq_len = .*/seq_len = 4096/'
refuses "dir: cannot open the data folder nowhere" "" 's#^dir = .*#dir = "nowhere"#'
refuses "dir: empty" "" 's#^dir = .*#dir = "empty"#'
refuses "the configured token size" "" 's/^token_size = .*/token_size = "FourBytes"/'
refuses "AdamW, Adam and SGD exchange no results, so a run cannot be made of them" \
    's/optimizer.Distro/optimizer.AdamW/; s/^quantize.*/betas = [0.9, 0.95]\neps = 1e-8/; /^compression/d'
refuses "buckets are not listed" "s/^Server = .*/Http = { location = { Gcp = { bucket_name = \"a\", filter_directory = \"b\" } }, token_size_in_bytes = \"TwoBytes\", shuffle = \"DontShuffle\" }/"
refuses $'repo_id: nowhere: No such file\ndir: empty' 's/^repo_id = .*/repo_id = "nowhere"/' 's#^dir = .*#dir = "empty"#'
# The folder of the saves is tried, as the trainers try it.
touch a-file
saves_in()                              # shared_dir, exit code, text
{
    sed "s#^shared_dir = .*#shared_dir = \"$1\"#" sharded.toml >bad-state.toml
    says "$2" "$3" shoal validate-config --state bad-state.toml
}
line=$(grep -n '^shared_dir' sharded.toml | cut -d: -f1)
saves_in "$PWD/nowhere" 78 "bad-state.toml:$line:1: error: checkpoint.shared_dir: this folder cannot be used for saves:
$PWD/nowhere: open failed: No such file"
saves_in "$PWD/a-file" 78 "checkpoint.shared_dir: this folder cannot be used for saves: "
saves_in /proc 78 "checkpoint.shared_dir: /proc cannot be used for saves: "
saves_in saves 78 'checkpoint.shared_dir: "saves" is relative'
mkdir saves
saves_in "$PWD/saves" 0 'bad-state.toml: OK: run "demo"'
says 0 "" rmdir saves # It leaves nothing there
sed "s#^\[checkpoint\]#&\nshared_dir = \"$PWD\"\nsteps = 40#" state.toml >bad-state.toml
says 0 'warning: checkpoint.shared_dir: not used in a run of strategy.kind = "distro"' shoal validate-config --state bad-state.toml
# The state of an earlier run: a folder by that name, of the step before the first, and not for Distro.
begins_with()                           # file, sed expression, text
{
    sed "s/^\[progress\]/&\nstate = \"old\/step-00000009\"/; $2" "$1" >bad-state.toml
    says 78 "$3" shoal validate-config --state bad-state.toml
}
line=$(grep -n '^\[progress\]' allreduce.toml | cut -d: -f1)
begins_with allreduce.toml "" "bad-state.toml:$((line + 1)):1: error: progress.state: old/step-00000009 is of step 9, and progress.step - 1 is 0"
begins_with allreduce.toml 's/^step = .*/step = 10/' "progress.state: old/step-00000009/shoal.json: No such file or directory; a save or a"
begins_with allreduce.toml 's#old/step-00000009#old#' "progress.state: old: not a folder step-NNNNNNNN"
begins_with state.toml "" "progress.state: with Distro a run begins with parameters alone: name their folder by repo_id"
# Tokens of another model, and those of another shuffle than the pinned one.
mkdir wide && perl -e 'print pack("v*", map { 300 } 1 .. 66000)' >wide/text.bin && shoal manifest wide --token-bytes 2 >/dev/null
refuses "wide/text.bin: token " "" 's#^dir = .*#dir = "wide"#'
# The coordinator makes the same checks.
sed 's/^max_seq_len = .*/max_seq_len = 4096/' state.toml >bad-state.toml
says 65 "model.LLM.max_seq_len: 4096, but config.json of model allows" \
    shoal-coordinator -i coordinator.key --state bad-state.toml --ticket ticket --state-dir other

# --pin writes both digests, once, and changes nothing else.
cp state.toml plain.toml
says 0 $'state.toml: data.dataset_digest = "\nstate.toml: model.digest = "' $valid --pin
others() { grep -Ev '^(# )?(dataset_)?digest = ' "$1"; }
says 0 "" diff <(others state.toml) <(others plain.toml)
grep -qF "dataset_digest = \"$(shoal manifest --data-config data.toml | sed -n 's/^dataset_digest //p')\"" state.toml
says 0 "" test $? -eq 0
says 0 "OK" $valid --pin
refuses "other samples, or in another order, than data.dataset_digest of bad-state.toml names" "" 's/^     1,  2/     1,  3/'
rm -r model && shoal init-model --config model.json --seed 2 --out model >/dev/null
says 65 "state.toml: model.digest is pinned, and what is here has" $valid --pin
says 78 "state.toml pins model.digest " shoal doctor --state state.toml --data-config data.toml
rm -r model && shoal init-model --config model.json --out model >/dev/null
says 0 $'has the pinned digest \n, which state.toml pins\na trainer takes \nbad: 0' \
    shoal doctor --state state.toml --data-config data.toml

# A model folder with nothing but its shape, and no digest: the run could begin with anything.
cp plain.toml state.toml && mv model/model.safetensors .
says 0 "state.toml: warning: model.digest: not set, and the model's folder here has no weights" $valid
says 0 "model.unpinned ./model has no weights and [model] digest is not set" \
    timeout --preserve-status 2 shoal-coordinator -i coordinator.key --state ./state.toml --ticket ticket --state-dir shape
mv model.safetensors model

# ---- saves in pieces --------------------------------------------------------------------------------

mkdir saves
sed "s#^\[checkpoint\]#&\nshared_dir = \"$PWD/saves\"\nsteps = 2#" state.toml >saving.toml
says 0 "saved " shoal train saving.toml --data data/train --steps 2 --batch-size 1 --checkpoint-dir alone
save=$(echo saves/demo.train-*/step-00000002)
says 0 "every byte is the one that was written" shoal checkpoint verify $save
says 64 "$PWD/data is no save: give a folder step-NNNNNNNN, beside its meta-*.json" shoal checkpoint show $PWD/data
says 65 "'format' is not 'shoal pieces'; refused; if it is a checkpoint, see shoal eval, shoal export" \
    shoal checkpoint show alone/step-00000002
says 64 "shoal checkpoint frob: no such word; with one it is show, verify or export" shoal checkpoint frob
says 64 "this is a save in pieces; first: shoal checkpoint export --save $save --model MODEL --dtype f32 --out OUT" \
    shoal init other text.txt --model $save
state_of()                              # sed expression: a run that begins with that save
{
    sed "s#^\[progress\]#&\nstate = \"$save\"#; s/^step = .*/step = 3/; $1" allreduce.toml >bad-state.toml
}
state_of "" && says 0 "bad-state.toml: OK" shoal validate-config --state bad-state.toml
shoal init-model --dim 32 --layers 1 --heads 1 --ffn 64 --seq-len 64 --out slim >/dev/null
state_of 's#^repo_id = .*#repo_id = "./slim"#'
says 78 "parameters, and the model in ./slim has " shoal validate-config --state bad-state.toml
state_of ""; piece=$(echo $save/parameters.*); mv $piece piece
says 78 "progress.state: $save: incomplete: parameters." shoal validate-config --state bad-state.toml
mv piece $piece
printf x | dd of=$(echo $save/parameters.*) bs=1 seek=900 conv=notrunc status=none
says 65 "$save: parameters.
are not those that were written; refused; use an older save of saves/demo.train-" shoal checkpoint verify $save
: >$save/shoal.json
says 65 "; use an older save of saves/demo.train-" shoal checkpoint show $save
says 64 "this is a save in pieces; first: shoal checkpoint export" shoal init other text.txt --model $save
says 64 "is a save in pieces; first: shoal checkpoint export" shoal eval --model $save --data data
rm -r saves alone

# ---- memory, where /proc/meminfo is hidden, and where nothing tells it ------------------------------

cat >hidden <<'SCRIPT'
mount --bind /dev/null /proc/meminfo && exec "$@"
SCRIPT
# A filter of system calls that refuses sysinfo(2), by its number on x86-64.
cat >unknown <<'SCRIPT'
my $steps = pack("(SCCL)*", 0x20, 0, 0, 0,  0x15, 0, 1, 99,  0x06, 0, 0, 0x50001,  0x06, 0, 0, 0x7fff0000);
syscall(157, 38, 1, 0, 0, 0) == 0 && syscall(157, 22, 2, pack("Sx6P", 4, $steps), 0, 0) == 0 or die "$!\n";
exec @ARGV;
SCRIPT
alone="shoal train state.toml --data data/train --steps 1 --batch-size 1 --no-checkpoint"
if unshare --mount sh hidden true 2>/dev/null && [ "$(uname -m)" = x86_64 ]; then
    says 0 "" grep -E "; [1-9][0-9.]* MiB free; activations" <(unshare --mount sh hidden $alone 2>&1)
    says 0 "MiB; the free memory cannot be read here and is not checked" \
        unshare --mount sh hidden perl unknown $alone
fi

# ---- flags ----------------------------------------------------------------------------------------

says 64 "shoal-trainer: no flag --bulk-bnd; did you mean --bulk-bind?" shoal-trainer -i trainer.key --bulk-bnd 1.2.3.4
says 64 "shoal status: no flag --jsno; did you mean --json?" shoal status --jsno
# Text that cannot be written is no success.
for what in "explain state.toml" "invite --ticket ticket -i broker.key" --help --version; do
    says 74 "standard output: No space left on device" sh -c "shoal $what >/dev/full"
done
# A folder without the flag that takes it.
mkdir -p theirs/run && cp ticket theirs/run/ && cp state.toml theirs/
says 64 "theirs is the folder of a run: --ticket theirs/run/ticket" shoal status theirs
says 64 "ticket: --ticket ticket?" shoal status ticket
says 64 "Too many arguments" shoal status nowhere
says 64 "model is the folder of a model: --model model" shoal sample model
says 64 "theirs is the folder of a run: --model theirs/run/checkpoints/step-..." shoal sample theirs
# Psyche's way, which goes on to look for a broker.
says 64 "where is the broker?" shoal-trainer train -i trainer.key --run-id demo --micro-batch-size 2
says 64 '"trian": train is the only word that is taken' shoal-trainer trian -i trainer.key --ticket ticket
says 64 "--keep-steps is Psyche's and not supported: shoal-checkpointer" shoal-trainer train --keep-steps 3
# An order says what becomes of a run of each strategy.
says 0 'of the newest pinned step, in the' shoal checkpoint --help
says 0 'with kind = "allreduce", "sharded" or "server" the epoch
ends for it' shoal checkpoint --help
says 0 'with kind = "allreduce", "sharded" or
"server" after the step in hand' shoal pause --help

# A letter means one flag in all programs; those of all --help.
{
    for program in broker coordinator trainer witness checkpointer data-provider; do shoal-$program --help; done
    zmq-monitor --help
    shoal --help | sed -n 's/^  \([a-z-]\{2,\}\)  *[a-z].*/\1/p' | while read -r command; do shoal $command --help; done
} 2>&1 | sed -nE 's/^ +-([a-zA-Z]), --([a-z-]+).*/-\1 --\2/p' | sort -u >letters
says 0 "-i --identity-secret-key-path" cat letters
says 1 "" grep . <(cut -d' ' -f1 letters | uniq -d)

# A label: refused before anything is made.
rule="1 to 15 of a-z, 0-9 and -, beginning with a letter"
says 64 "--name Anna: $rule" shoal join ticket --dir unmade --name Anna
says 64 "--name b.ob: $rule" shoal doctor ticket --name b.ob
says 64 "--name 2nd: $rule" shoal-trainer -i trainer.key --ticket ticket --name 2nd
says 64 "--name sixteen-letters-: $rule" shoal-checkpointer -i trainer.key --ticket ticket --name sixteen-letters-
says 64 "--name fifteen-letters-4: $rule" shoal up . --name fifteen-letters # Of four trainers
says 1 "" test -e unmade

# ---- an address that the others can reach -----------------------------------------------------------

far="shoal-trainer -i trainer.key --ticket ticket --server-addr 192.0.2.77:5550"
says 78 "--bulk-bind 127.0.0.1: peers cannot fetch from 127.0.0.1:" $far
says 78 "leads to the broker 192.0.2.77:5550 is" $far --bulk-bind 0.0.0.0
says 78 "--announce 127.0.0.1:7000: peers cannot fetch from 127.0.0.1:7000" $far --bulk-bind 0.0.0.0 --announce 127.0.0.1:7000
says 64 "--announce anna: HOST or HOST:PORT is wanted, an address in numbers" $far --announce anna
says 0 "bulk=tcp://198.51.100.4:7000" timeout --preserve-status 2 $far --bulk-bind 0.0.0.0 --announce 198.51.100.4:7000
says 0 $'name=trainer.anna.\nbulk=tcp://198.51.100.4:7001' \
    timeout --preserve-status 2 $far --name anna --bind-p2p-port 7001 --announce 198.51.100.4
says 0 "1" sh -c 'ls -d trainer.*-state | wc -l' # Under any name an actor finds its journal
says 78 "is 127.0.0.1: --bulk-bind 127.0.0.1" shoal-trainer -i trainer.key --ticket ticket --bulk-bind 0.0.0.0
says 0 "name=trainer.anna.
bulk=tcp://198.51.100.4:7002
others fetch from us at 198.51.100.4:7002, which must lead to 127.0.0.1:
watch with: shoal status --watch --ticket $(realpath .)/joined/ticket -i $(realpath .)/joined/trainer.key" \
    timeout --preserve-status 2 shoal join ticket --dir joined --name anna --announce 198.51.100.4:7002
# It keeps its port and its name.
kept=$(cat joined/port)
says 0 "others fetch from us at 127.0.0.1:$kept; a firewall must let that port in
name=trainer.anna.
bulk=tcp://127.0.0.1:$kept" timeout --preserve-status 2 shoal join ticket --dir joined
cat >holds.pl <<'PERL'
use strict; use IO::Socket::INET; # Holds a port while the command runs
my $held = IO::Socket::INET->new(LocalAddr => "127.0.0.1:" . shift, Listen => 1, ReuseAddr => 1) or die;
system(@ARGV); exit $? >> 8;
PERL
says 75 "port $kept is taken; --bind-p2p-port chooses another one" perl holds.pl $kept shoal join ticket --dir joined
says 75 "port $port is taken" perl holds.pl $port shoal join ticket --dir joined --bind-p2p-port $port
says 0 "$port" cat joined/port
echo 0 >joined/port
says 65 'joined/port has "0": one port is wanted' shoal join ticket --dir joined
rm joined/port
echo Anna >joined/name
says 64 'joined/name, which an earlier join kept: --name Anna' shoal join ticket --dir joined
rm joined/name
mkdir texts && : >texts/one
says 77 'texts is not empty, and no trainer.key is in it' shoal join ticket --dir texts

# ---- doctor -----------------------------------------------------------------------------------------

says 0 $'ok           device        CPU\nnot checked  memory\nbad: 0' shoal doctor
says 0 '"schema":"shoal.doctor.1","ok":true' shoal doctor --json
says 69 "bad          broker        no broker answers at 127.0.0.1:$port" shoal doctor ticket
shoal invite -i broker.key --run-id demo --server-addr nowhere.invalid:5550 >nowhere
says 69 "bad          broker        nowhere.invalid:5550: no such host" shoal doctor nowhere
sed 's#^dir = .*#dir = "nowhere"#' data.toml >bad-data.toml
says 78 "bad          data.toml     bad-data.toml:" shoal doctor --data-config bad-data.toml
says 78 "bad          own address   --announce anna: HOST or HOST:PORT is wanted" shoal doctor ticket --announce anna
says 78 "device \"gpu\", allowed auto, cpu and cuda" shoal doctor --device gpu

# ---- pictures -------------------------------------------------------------------------------------

printf 'step,loss,learning_rate,heldout_loss\n1,5.5,1e-3,\n2,5.25,2e-3,5.125\n3,5' >slow.csv
printf '{"step":1,"loss":5.5}\n' >fast.jsonl
says 0 $'slow.csv: steps 1 to 2, loss 5.2500, held out 5.1250\nslow.svg' shoal plot slow.csv
says 0 "<title>slow.csv</title>" cat slow.svg
says 0 "fast.jsonl: steps 1 to 1, loss 5.5000" shoal plot slow.csv ./fast.jsonl --out both.svg --title '<1 & 2>'
says 0 $'<title>&lt;1 &amp; 2&gt;</title>\n>fast.jsonl<' cat both.svg
says 64 "a log of shoal train is needed, or --run DIR" shoal plot
says 66 "--run .: there is no run.csv in it: the coordinator writes one with --log DIR" shoal plot --run .
mkdir -p theirs/run/metrics && printf 'step,loss,unix_ms\n1,5.5,1\n2,5,9\n' >theirs/run/metrics/run.csv
says 0 $'run/metrics/run.csv: steps 1 to 2, loss 5.0000\nslow.csv: steps 1 to 2\nrun/metrics/run.svg' \
    shoal plot --run theirs slow.csv
says 64 "that is the log itself" shoal plot slow.csv --out slow.csv
says 65 "both.svg:1: neither names of columns" shoal plot both.svg --out other.svg
says 66 "none.csv: No such file" shoal plot none.csv
says 66 "the picture none/a.svg" shoal plot slow.csv --out none/a.svg
says 64 'the picture "pics/": the name of a file has 1 to 250 bytes' shoal plot slow.csv --out pics/
says 64 'the picture "": the name of a file has 1 to 250 bytes' shoal plot slow.csv --out ""

# ---- tickets --------------------------------------------------------------------------------------

says 0 '"run":"demo"' shoal invite -i broker.key --ticket ticket --json
# A ticket of another broker takes no folder of ours, whatever its run is called.
shoal invite -i trainer.key --run-id demo --server-addr 127.0.0.1:$port >their-ticket
says 64 'joined is of a run "demo" with another broker, and its key and state belong there' \
    shoal join their-ticket --dir joined
says 0 "" grep -qxF "$(cat ticket)" joined/ticket
says 0 '"run":"other"' shoal invite -i broker.key --ticket ticket --run-id other --json
says 0 '"run":"demo"' env RUN_ID=demo shoal invite -i broker.key --json
says 64 "into which run? --run-id ID" shoal invite -i broker.key
says 0 '"run":""' shoal invite -i broker.key --any-run --json
says 0 '"run":""' shoal invite -i broker.key --any-run --ticket ticket --json
says 64 "--any-run and a run (demo)" shoal invite -i broker.key --any-run --run-id demo

# ---- examples of --help ---------------------------------------------------------------------------

# In the folder of a run, with a key and a ticket, they work.
cp coordinator.key secret.key
for program in data-provider coordinator; do
    shoal-$program --help | sed -n "s/^  \(shoal-$program .*\)/exec \1/p" >examples
    while read -r example; do
        says 0 "$([ $program = coordinator ] && echo coordinator || echo actor).ready" \
            timeout --preserve-status 2 bash -c "$example"
    done <examples
    says 0 exec head -n 1 examples
done

# ---- packages -------------------------------------------------------------------------------------

# One package is missing, and apt-get only writes down that it was called.
mkdir apt && cat >apt/dpkg-query <<'SCRIPT'
#!/bin/sh
case "$*" in *liblmdb-dev*|*strace*) exit 1 ;; *) echo "install ok installed" ;; esac
SCRIPT
printf '#!/bin/sh\necho "apt-get $*" >>"%s/apt/called"\n' "$PWD" >apt/apt-get
printf '#!/bin/sh\nexec "$@"\n' >apt/sudo
printf '#!/bin/sh\nPATH=%s:$PATH exec make -C "%s" --no-print-directory "$@"\n' "$PWD/apt" "$top" >apt/makes
chmod +x apt/*
says 0 $'missing:  liblmdb-dev\nmissing:  strace' apt/makes deps
says 1 "" test -e apt/called
says 0 "installing the missing Debian packages with apt-get: liblmdb-dev" \
    apt/makes install-deps
says 0 "install -y -qq --no-install-recommends liblmdb-dev" cat apt/called

# A run that waits for members is not paused, and has no loss.
shoal-broker -i broker.key --server-port $port 2>broker.log &
until_said broker.log broker.ready
shoal-coordinator -i coordinator.key --state state.toml --ticket ticket 2>coordinator.log &
coordinator=$!
# A friend with a ticket of the run that was at this address before, for as long as the next sections take.
shoal invite -i trainer.key --run-id demo --server-addr 127.0.0.1:$port >before
shoal join before --dir late 2>late.log &
late=$!
until_said coordinator.log broker.welcome
says 75 "shoal: not now: the run is not paused; the coordinator refuses: cannot resume" \
    shoal resume --ticket ticket -i coordinator.key
says 0 "  loss -   - tokens/s" shoal status --ticket ticket
says 0 '"loss":null' shoal status --ticket ticket --json
says 0 '"tasks":null' shoal status --ticket ticket --json
says 78 'has no tasks: only with strategy.server.mode = "async"' shoal status --ticket ticket --tasks
says 64 "--tasks prints what the run is at now: drop --watch" shoal status --ticket ticket --tasks --watch
says 77 "sign with the coordinator's key" shoal resume --ticket ticket -i trainer.key

# ---- where `make install` and systemd put things ----------------------------------------------------

# In a machine of its own as far as /run and /var/lib go.
cat >installed <<'SCRIPT'
mount -t tmpfs -o mode=755 none /run && mount -t tmpfs -o mode=755 none /var/lib || exit
mkdir -p /run/shoal /var/lib/shoal/shoal-broker "/var/lib/shoal/shoal-trainer@1"
for run in $1; do mkdir "/var/lib/shoal/shoal-coordinator@$run"; done
[ ! -e "$2" ] || install -m 640 "$2" /run/shoal/ticket
install -m 755 "$(command -v shoal)" /run/for-all
shift 2
exec "$@"
SCRIPT
if unshare --mount sh installed demo none true 2>/dev/null; then
    machine="unshare --mount sh installed"
    says 0 "run demo: WaitingForMembers" $machine demo ticket shoal status
    says 64 "take part in 2 runs: demo, other; choose one with --run-id" $machine "demo other" ticket shoal status
    says 0 "run demo: WaitingForMembers" $machine "demo other" ticket shoal status --run-id demo
    says 69 "no broker of this machine has left a ticket in /run/shoal/ticket" $machine demo none shoal status
    says 0 "run demo: WaitingForMembers" $machine other none shoal status --ticket ticket
    says 77 "members of the group shoal may read it: sudo, or --ticket TICKET" \
        $machine demo ticket setpriv --reuid 65534 --regid 65534 --clear-groups /run/for-all status
fi

until_news()                            # seconds: waits until news of so many more have come
{
    timeout 40 perl -MJSON::PP -ne '
        next if !/\}$/; my $at = decode_json($_)->{unix_ms};
        $until = $at + 1000 * '$1' if !$until; exit if $at >= $until' <(exec tail -n 1 -f --pid=$$ news.json)
}

# ---- what a run says of itself --------------------------------------------------------------------

shoal init words text.txt --dim 32 --layers 1 --heads 2 --seq-len 64 --trainers 2 --steps 100000 >init.log 2>&1
shoal up words --trainers 1 --name own --server-port $((port + 10)) >up.log 2>&1 &
up=$!
wanted="waiting for 1 more trainer (init_min_clients 2)"
until_said up.log "$wanted"
says 75 "this run is up already (process $up)" shoal up words --server-port $((port + 10))
holder=$(cat words/run/coordinator/lock)
mapfile -d '' -t arguments <"/proc/$holder/cmdline"
says 75 "words/run/coordinator/lock is held by process $holder" "${arguments[@]}"
says 0 "  $wanted" shoal status --ticket words/run/ticket
says 78 "something listens on port $((port + 10)) here already: a running shoal-trainer? stop it first, or look" \
    shoal doctor words/run/ticket --bind-p2p-port $((port + 10))
says 0 "\"lacks\":\"$wanted\"" shoal status --ticket words/run/ticket --json
for name in coordinator trainer-1; do
    until_said words/run/logs/$name.log "$wanted"
    says 0 "$wanted" cat words/run/logs/$name.log
done
shoal new-identity friend.key >/dev/null
>news.json # Here already when until_news looks for it
timeout 60 zmq-monitor --topic RUN --json --ticket words/run/ticket >>news.json &
news=$!
shoal-trainer --json --guest -i friend.key --name fifteen-letters --ticket words/run/ticket --state-dir friend 2>friend.log &
friend=$!
until_said friend.log '"event":"round.trained".*"step":20,'
says 124 "" timeout 1 zmq-monitor --member nobody --ticket words/run/ticket # Without --count it goes on
says 0 'keeps no news of --topic WINDOW' zmq-monitor --once --topic WINDOW --ticket words/run/ticket
says 0 " trainer.fifteen-letters." zmq-monitor --topic PROGRESS --member fifteen --count 1 --ticket words/run/ticket

# Tokens and steps per second: what RUN says is the change of tokens_done and step over the last minute, here since
# the first step, within 10 % (5 % on a quiet machine), and status, the line of `shoal up` and the trainer's log show
# what a RUN of the last seconds says.
until_news 12
shoal status --json --ticket words/run/ticket >status.json
shoal status --ticket words/run/ticket >status.txt
timeout 20 grep -qm1 "tok/s" <(exec tail -n 0 -f --pid=$$ up.log) # Its next line
cp up.log up.txt && cp friend.log friend.txt
until_news 1
kill $news; wait $news
cat >rates.pl <<'PERL'
use strict; use JSON::PP;
sub slurp { local (@ARGV, $/) = @_; <> }
sub number { my ($text) = @_; $text =~ /^([0-9.]+)([kM]?)$/ or die "no number: $text"; $1 * { "" => 1, k => 1e3, M => 1e6 }->{$2} }
my @news = map { decode_json($_) } grep { /\}$/ } split(/\n/, slurp("news.json"));
my @off;
my ($before) = grep { $_->{body}{phase} eq "RoundTrain" } @news;
for my $new (@news) { # Behind each other
    my $took_s = ($new->{unix_ms} - $before->{unix_ms}) / 1000;
    next if $took_s < 5 || $new->{body}{phase} ne "RoundTrain";
    for (["tokens_done", "tokens_per_s"], ["step", "steps_per_s"]) {
        my ($count, $rate) = @$_;
        push @off, abs($new->{body}{$rate} * $took_s / ($new->{body}{$count} - $before->{body}{$count}) - 1);
    }
}
@off = sort { $a <=> $b } @off;
printf "RUN is off by %.1f %% in the middle of %d\n", 100 * $off[@off / 2], scalar @off;
die "more than 10 %" if !@off || $off[@off / 2] > 0.1; # 5 % where nothing else runs
my $status = decode_json(slurp("status.json"));
my $left = $status->{seconds_left};
die "time left: $left" if !$left || abs($left * $status->{steps_per_s} / (100000 - $status->{step}) - 1) > 0.001;
die slurp("status.txt") if slurp("status.txt") !~ /, about \S+ left\n|, at most/; # Of any phase
my %shown = (status => decode_json(slurp("status.json"))->{tokens_per_s});
$shown{"text of status"} = number($1) if slurp("status.txt") =~ m{(\S+) tokens/s};
$shown{"shoal up"} = number($1) if (grep { /tok/ } split(/\n/, slurp("up.txt")))[-1] =~ m{(\S+) tok/s};
sub is_told { my ($rate) = @_; grep { abs($rate / ($_->{body}{tokens_per_s} || 1) - 1) < 0.006 } @news } # Of three digits
for my $tool (sort keys %shown) { is_told($shown{$tool}) or die "$tool: no RUN says $shown{$tool}" }
die "not all show it" if keys %shown != 3;
my @lines = (grep { /"round.trained"/ } split(/\n/, slurp("friend.txt")))[-30 .. -1];
my @told = grep { is_told(decode_json($_)->{fields}{tokens_per_s}) } @lines;
die "the trainer's lines say otherwise" if @told < 20;
PERL
says 0 "RUN is off by" perl rates.pl

# A guest says how far the run is, and that the owner's machine is gone.
progress='"run.progress [A-Za-z]*: step [0-9]* of 100000.* tokens/s, about [0-9]* [minhs]* left"'
until_said friend.log "$progress"
says 0 "" grep "$progress" friend.log
kill -INT $up; wait $up
until_said friend.log "does not answer"
says 0 "the run's owner does not answer at 127.0.0.1:$((port + 10)): the run is stopped or finished, or the network is down" cat friend.log

# Each line of the log is one object; one line a step.
kill $friend; wait $friend
cat >lines.pl <<'PERL'
use strict; use JSON::PP;
my ($last, $count) = (0, 0);
while (<>) {
    my $line = decode_json($_);
    die "no time, sender or text: $_" if $line->{unix_ms} < 1.7e12 || !$line->{text} || $line->{from} !~ /^trainer/;
    next if ($line->{event} // "") ne "round.trained";
    my $said = $line->{fields};
    die "no $_" for grep { !defined $said->{$_} } qw(name step loss lr tokens_per_s);
    die "called $said->{name}" if $said->{name} !~ /^trainer\.fifteen-letters\.[0-9a-f]{16}$/;
    die "step $said->{step} after $last" if $said->{step} <= $last;
    $last = $said->{step}; $count++;
}
die "only $count lines" if $count < 20;
print "$count lines\n";
PERL
says 0 " lines" perl lines.pl friend.log
# The names in status, and the columns stand under each other.
says 0 $' trainer.fifteen-letters.\n trainer.own-1.' cat status.txt
says 0 "4 times 1 width" perl -ne '$n++, $at{$-[1]}++ if /^  \S+\.\w+ +(healthy|pending) /; END { printf "$n times %d width\n", 0 + keys %at }' status.txt
shoal-broker --json -i broker.key --server-port $port 2>again.log
says 0 '"priority":3,"event":"actor.fails"' cat again.log # The other broker has the port

# ---- a run's end, as a friend sees it -----------------------------------------------------------------

shoal init short text.txt --dim 32 --layers 1 --heads 2 --seq-len 64 --trainers 2 --steps 4 >init.log 2>&1
first=$((10000 + $$ % 1900 * 5)) # Below those that the kernel gives to connections
shoal up short --trainers 1 --port $first >short.log 2>&1 &
until_said short.log "run \"short\": 1 trainer, broker at 127.0.0.1:$first"
says 0 $'run.over The run "short" is finished: step 4 of 4, loss \nwith the run\'s owner\nhas nothing that `shoal export` reads' \
    shoal join short/run/ticket --dir guest
wait $!
# The owner is gone, and the friend's folder still knows it; of another broker's run of that name it knows nothing.
says 0 "this run is finished (step 4 of 4); ask its owner for the next ticket" shoal join short/run/ticket --dir guest
shoal invite -i broker.key --run-id short --server-addr 127.0.0.1:$((port + 6)) >other-short
says 64 "--dir NEW for this ticket" shoal join other-short --dir guest
# With --port every actor has its own: behind the broker's two the data-provider, the checkpointer, the trainer.
says 0 "127.0.0.1:$((first + 2))" grep -h actor.ready short/run/logs/data-provider.log
says 0 "127.0.0.1:$((first + 4))" grep -h actor.ready short/run/logs/trainer-1.log
# Its last screen has what the guide compares, and so has the ledger when no broker runs any more.
says 0 "" grep -xE 'digest [0-9a-f]{64}' short.log
says 0 "  digest   $(sed -n 's/^digest //p' short.log) of step 4" shoal status --ledger short/run/coordinator

# ---- what an interrupt saves --------------------------------------------------------------------------

# With allreduce the newest state is in the memory of the trainers alone.
shoal init saved text.txt --strategy allreduce --dim 32 --layers 1 --heads 2 --seq-len 64 --trainers 1 --steps 100000 >init.log 2>&1
sed -i 's/^window_time = .*/window_time = 0.2/; s/^heartbeat_time = .*/heartbeat_time = 0.2/
        s/^lease_time = .*/lease_time = 8/; s/^waiting_for.*/waiting_for_members_extra_time = 0.1/' saved/state.toml
up_saved()                              # starts it; until its first steps are committed
{
    shoal up saved --server-port $((port + 30)) >saved.log 2>&1 &
    up=$!
    until_said saved.log "run \"saved\""
    # A window that is closed before its first step has no samples. One end may be of an earlier life, and each may be
    # told twice: so three different ones. On a busy machine the monitor may give up before the broker listens.
    for _ in 1 2 3 4 5; do
        timeout 20 perl -e 'while (<>) { /"end":(\d+),"samples":[1-9]/ && $ends{$1}++; exit 0 if keys %ends > 2 } exit 1' \
            <(exec timeout 20 zmq-monitor --topic STEPS --json --ticket saved/run/ticket 2>&1) && return
    done
    echo "# no three windows are committed:"; tail -n 5 saved.log | sed 's/^/# /'
}
up_saved
kill -INT $up; wait $up
says 130 $'  saving step \n; interrupt again to stop at once\ninterrupted at step \nstep-0000\n has all steps' \
    sh -c "cat saved.log; exit $?"
says 0 "" test -e saved/run/paused-to-stop
step=$(sed -n 's/^interrupted at step \([0-9]*\);.*/\1/p' saved.log)
says 0 "$(printf 'step-%08d has all steps' $step)" cat saved.log
up_saved # It goes on by itself, and nothing was lost
says 1 "" grep -e "are lost" -e "is lost" saved.log
says 1 "" test -e saved/run/paused-to-stop
kill -9 $up; wait $up 2>/dev/null
up_saved # One that is killed saves nothing
until_said saved.log "the run is back at step [0-9]*, its newest checkpoint: [0-9]* steps after it are lost"
says 0 ": no process that held them is left; going on from the newest checkpoint" grep run.lost_steps saved/run/logs/coordinator.log
# A run that stands says so: RUN goes on with each heartbeat, and the rate and the time left are gone.
kill -STOP $(cat saved/run/trainer-1/lock)
timeout 20 grep -m4 '"silent_ms":[5-7][0-9][0-9][0-9]' <(exec timeout 20 zmq-monitor --topic RUN --json --ticket saved/run/ticket 2>&1) >silent.json
says 0 "run saved: Train, no step for " shoal status --ticket saved/run/ticket
says 0 "4" grep -c . silent.json
kill -CONT $(cat saved/run/trainer-1/lock)
says 0 "" grep -E " 0 twice, 0 skipped, [1-9][0-9]* undone by restores" <(shoal status --ledger saved/run/coordinator)
says 0 "coordinator started 20" shoal status --ticket saved/run/ticket
kill -STOP $(cat saved/run/checkpointer/lock)
kill -INT $up; until_said saved.log "saving step "
kill -INT $up; wait $up
says 130 " may be lost: only trainers of other machines can hold them now" sh -c "cat saved.log; exit $?"
# A child that cannot be kept ends the run; what the trainers hold is saved first.
up_saved
>saved/run/keys/data-provider.key; kill -9 $(cat saved/run/data-provider/lock); wait $up
says 65 $'data-provider ended with code 65\nsaving step \n; interrupt to stop at once\nended at step \n has all steps' \
    sh -c "cat saved.log; exit $?"

# ---- the ticket of the run before -----------------------------------------------------------------------

kill -INT $late; wait $late
says 0 "127.0.0.1:$port: this ticket is for another run than the one that is there now: ask its owner for the new one" cat late.log
says 1 "" grep -E "broker.silent|broker.refused" late.log
cat >seldom.pl <<'PERL'
while (<>) {
    /:(\d\d):(\d\d\.\d+) .*for another run/ or next;
    my $at = 60 * $1 + $2; # Time of day, by the wall clock
    die "again after ", $at - $last if $n++ && ($at - $last) % 3600 < 9; $last = $at;
}
print "$n times\n";
PERL
says 0 " times" perl seldom.pl late.log

# ---- the address of `shoal up` ------------------------------------------------------------------------

says 64 "--standby 1: the run has no parameter servers" shoal up words --standby 1
says 64 "--port and --server-port: one of them" shoal up words --port 7000 --server-port 8000
shoal init few text.txt --strategy server --dim 32 --layers 1 --heads 2 --seq-len 64 --trainers 1 --steps 4 >init.log 2>&1
sed -i 's/^servers = .*/servers = 9/' few/state.toml
says 78 $'strategy.server.servers: 9, but the model has\nparameters, and a share is 16384 of them or more: allowed 1..2' \
    shoal validate-config --state few/state.toml --data-config few/data.toml

# Not in step: what the other mode has is named, and tasks are counted against the data.
sed -i 's/^servers = .*/servers = 2/; s/^mode = .*/mode = "async"/' few/state.toml
says 0 'strategy.lanes: not used with strategy.server.mode = "async"' \
    shoal validate-config --state few/state.toml --data-config few/data.toml
sed -i '/^memory_every = /d; s/^# task_samples = .*/task_samples = 1000000/' few/state.toml
says 0 $'few/state.toml: OK\nsequences, so a pass has 1 task of 1000000 (strategy.server.task_samples of few/state.toml), for 1 trainer\nor fewer a task, each has 8 of a pass' \
    shoal validate-config --state few/state.toml --data-config few/data.toml
sed -i 's/^mode = .*/mode = "later"/' few/state.toml
says 78 $'few/state.toml:\nstrategy.server.mode: unknown server mode "later"\none of sync or async' \
    shoal validate-config --state few/state.toml

# A ticket that is damaged does not lead to 127.0.0.1 without a word.
mv words/run/ticket words/ticket && >words/run/ticket
says 65 $'words/run/ticket: \nIt has the address of last time: remove it, and give --bind' shoal up words
mv words/ticket words/run/ticket

# The folder keeps it. In a network of its own, where it has other addresses.
cat >space <<'SCRIPT'
ip link set lo up && ip address add 203.0.113.7/32 dev lo && ip address add 198.51.100.4/32 dev lo && exec "$@"
SCRIPT
if unshare --net sh space true 2>/dev/null; then
    up="unshare --net sh space timeout --foreground --preserve-status -s INT 1 shoal up words"
    moved="last time: a ticket of that time does not lead here"
    says 130 $'broker is at 203.0.113.7:7000 now, and was at 127.0.0.1:\n--trainers 1 --name own as last time\nTCP ports 7000 to 7004. Others join with:\nshoal join shoal:' \
        $up --bind 203.0.113.7 --port 7000
    says 130 $'at 203.0.113.7:7000, as last time\nTCP ports 7000 to 7004.' $up
    says 130 "broker is at 198.51.100.4:7000 now, and was at 203.0.113.7:7000 $moved
--trainers 2; last time it was 1
TCP ports 7000 to 7005." $up --bind 198.51.100.4 --trainers 2
    says 130 "TCP ports 7000 to 7005." $up
    says 64 "192.0.2.1 is no address of this machine (--bind; without it, that of last time)" $up --bind 192.0.2.1
    cp "$work/said" refused
    says 1 "" grep "the broker is at" refused # Not before the address is known to be good
fi

# ---- a model that exists ----------------------------------------------------------------------------------

# It is used where it is. An actor that ends again and again is quoted.
shoal init-model --dim 32 --layers 1 --heads 1 --ffn 64 --seq-len 64 --out there >/dev/null
says 0 "The model stays in $(realpath there): do not move it while the run lives." \
    shoal init uses text.txt --model there --batch 2 --steps 4 --trainers 2
mv there elsewhere
shoal up uses --server-port $((port + 20)) >uses.log 2>&1 &
up=$!
quoted="coordinator ended with code .* its log ends with: .*there: No such file"
until_said uses.log "$quoted"
says 0 "starting it again in" grep "$quoted" uses.log
kill -INT $up; wait $up

# ---- a setting that makes it another run ------------------------------------------------------------------

# The coordinator refuses it, and would again: it is not restarted.
mv elsewhere there
shoal up uses --server-port $((port + 20)) --trainers 1 >anew.log 2>&1 &
up=$!
until_said anew.log " 1 pending"
kill -INT $up; wait $up
sed -i 's/^min_clients = .*/min_clients = 2/' uses/state.toml
says 65 "config.min_clients was 1, now is 2
No step was committed yet, so nothing is lost. To begin the run anew, rename $(realpath uses/run)" shoal up uses
cp "$work/said" refused
says 1 "" grep "starting it again" refused
# Fewer may begin: that is the same run.
sed -i 's/^min_clients = .*/min_clients = 1/; s/^init_min_clients = .*/init_min_clients = 1/' uses/state.toml
says 0 "finished at step 4" shoal up uses

# ---- services, where there are none ---------------------------------------------------------------------

[ -d /run/systemd/system ] || [ "$(id -u)" -ne 0 ] ||
    says 69 "no systemd runs here; without --systemd the run goes in the foreground" shoal up short --systemd
unshare --user true 2>/dev/null &&
    says 77 "call it as root (sudo)" unshare --user shoal up short --systemd

# ---- a run on the screen --------------------------------------------------------------------------

says 64 "--watch and --ledger" shoal status --ledger coordinator-state --watch
# On a terminal it is drawn over itself; elsewhere one block follows the other; both end with Ctrl-C.
watch="timeout --foreground --preserve-status -s INT 3 shoal status --ticket ticket --watch"
says 0 $'run demo: WaitingForMembers\n; coordinator heard 0.\nwaiting for 4 more trainers (init_min_clients 4)\n\e[7A\r\e[Krun demo: \n  member ' \
    env TERM=xterm script -qec "$watch" /dev/null
says 0 "- tokens/s, 0 tokens so far" $watch
cp "$work/said" blocks
says 1 "" grep $'\e' blocks
says 0 '"schema":"shoal.status.1"' $watch --json
# It does not end when the coordinator does, but says so; at the end, so does its code.
disown "$coordinator" && kill -9 "$coordinator"
says 69 "run demo: the coordinator is not connected, last heard" $watch

echo "1..$number"
exit $failed
