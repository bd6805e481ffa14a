#!/bin/bash
# The demo of allreduce with a small model: real processes on loopback. A trainer is killed in the middle of a
# window, another one joins, the coordinator is killed; every replica, the checkpoint and the ledger end in the
# state of `shoal train` alone. Each world has its own lanes, batch and links. Beside the steps the members save the
# state in pieces, and so does `shoal train`: saves of one step have one digest. A run whose processes are all killed
# goes on from the newest save, or if that is damaged from the one before, and ends in that state, too. So does a demo of sharded, where each death takes the run
# back to a save, and each member writes no more than its share. Without a folder for saves no such run begins.
#
#     tests/live/windows_test.sh BUILD_DIR
#
# Has a folder of its own and takes free ports. Prints TAP lines.
set -u
export LC_ALL=C
unset TICKET RUN_ID SERVER_ADDR SERVER_KEY IDENTITY_SECRET_KEY_PATH
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath -e "${1:?usage: windows_test.sh BUILD_DIR}")/bin || exit 64
work=$(mktemp -d)
trap 'kill $(jobs -pr) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1
number=0 failed=0 port=$((21000 + $$ % 5800 * 2)) # As in tools_test.sh

cp -r "$top/config/demo" small && cd small || exit 1
sed -i 's/"hidden_size": .*/"hidden_size": 16,/; s/"intermediate_size": .*/"intermediate_size": 32,/
        s/"num_hidden_layers": .*/"num_hidden_layers": 1,/; s/"num_attention_heads": .*/"num_attention_heads": 2,/
        s/"num_key_value_heads": .*/"num_key_value_heads": 2,/; s/"head_dim": .*/"head_dim": 8,/' model.json
sed -i 's/^seq_len = .*/seq_len = 16/' data.toml
cd ..

set_key() { sed -i "s/^$1 = .*/$1 = $2/" small/$strategy.toml; }

steps=600
# A strategy, steps between saves, a word about it, lanes, batch at the start, batch at the end, link
ends_alike()
{
    strategy=$1 every=$2
    shift 2
    cp "$top/config/demo/$strategy.toml" small/
    set_key total_steps $steps; set_key rounds_per_epoch $((steps / 5)); set_key max_seq_len 16; set_key micro_batch_size 2
    set_key waiting_for_members_extra_time 0.1; set_key global_batch_size_warmup_tokens $((25 * steps))
    set_key lanes "$2"; set_key global_batch_size_start "$3"; set_key global_batch_size_end "$4"; set_key link "\"$5\""
    sed -i '/^shared_dir = /d; /^steps = /d' "small/$strategy.toml"
    sed -i "/^\[checkpoint\]/a shared_dir = \"$work/shared\"\nsteps = $every" "small/$strategy.toml"
    set_key keep 100
    rm -rf shared demo/saves; mkdir shared
    # Shares are whole leaves: the model has four
    [ $strategy = allreduce ] || sed -i 's/"hidden_size": .*/"hidden_size": 64,/; s/"head_dim": .*/"head_dim": 32,/' small/model.json
    number=$((number + 1))
    if timeout 200 "$bin/shoal" demo --strategy $strategy --config-path small --dir demo --port $port >said 2>&1 &&
        grep -q "^digest equal to one undisturbed trainer alone" said; then
        echo "ok $number - $1"
        grep -h "speed\|kill -9  \|joined  " said | sed 's/^ */# /'
    else
        echo "not ok $number - $1"; tail -n 40 said | sed 's/^/# /'; failed=1
        tail -n 5 demo/run/logs/*.log | sed 's/^/# /'
    fi
    port=$((port + 4))
    number=$((number + 1))
    if saves_alike >said 2>&1; then echo "ok $number - its saves in pieces are those of shoal train"; sed 's/^/# /' said
    else echo "not ok $number - its saves in pieces are those of shoal train"; sed 's/^/# /' said; failed=1; fi
}

# No member writes more than its share, which is whole leaves of 16,384 numbers, and a save names tensors and pieces. Each
# part that is not empty is a file of its own.
shares_alone()
{
    local root last floats step parts counted=0
    root=$(ls -d demo/saves/* | grep -v train) last=$(ls -d "$root"/step-* | tail -n 1)
    floats=$(sed -n 's/.* learner.memory parameters=\([0-9]*\) .*/\1/p' demo/run/logs/trainer-1.log | head -n 1)
    # "save.written step=200 bytes=393224 .. of the 3 members ..", "save.whole step=200 bytes=393224 .. parts=3 .."
    sed -n '/ save\.\(written\|whole\) /s/.* bytes=\([0-9]*\) .*\(of the \|parts=\)\([0-9]*\).*/\1 \3/p' demo/run/logs/trainer-*.log |
        awk -v n="$floats" '{ leaves = int((n + 16383) / 16384); share = int((leaves + $2 - 1) / $2)
                if ($1 > share * 12 * 16384 + 8) { print $1 " bytes by one of " $2 " members"; bad = 1 }
                if ($2 > most) most = $2 }
            END { print NR " parts of saves, by up to " most " members"; exit bad || most < 4 }' || return 1
    # A file for each part that is not empty; a step that was saved again, after going back, by its newest save
    cat demo/run/logs/trainer-*.log | grep " save\.whole " | sort | sed -n 's/.* step=\([0-9]*\) .* parts=\([0-9]*\).*/\1 \2/p' |
        awk -v n="$floats" '{ leaves = int((n + 16383) / 16384); parts[$1] = $2 < leaves ? $2 : leaves }
            END { for (step in parts) printf "step-%08d %d\n", step, parts[step] }' >told
    while read -r step parts; do
        [ -d "$root/$step" ] || { echo "$step is gone"; return 1; }
        [ "$(ls "$root/$step" | grep -c '^parameters\.')" = "$parts" ] || { echo "$step: not $parts parts"; return 1; }
        counted=$((counted + 1))
    done <told
    [ "$counted" -ge 2 ] || { echo "$counted saves were looked at"; return 1; }
    "$bin/shoal" checkpoint show "$last" >shown || return 1
    grep -q "^  model.norm.weight  *\[64\]  *[0-9]*-[0-9]*$" shown &&
        [ "$(grep -c "^\(parameters\|adamw-[mv]\)  *reshard  *$floats x 4 B  0-[0-9]* " shown)" = 3 ] || { cat shown; return 1; }
}

# A run whose folder for saves is not there, or cannot be written, ends before its first step and names it.
refuses_folders()
{
    local folder
    cat "$top"/common/base/*.h >text.txt
    for folder in "$work/absent" /proc; do
        rm -rf bad
        "$bin/shoal" init bad --strategy sharded --trainers 1 --dim 32 --layers 1 --batch 8 --seq-len 32 --steps 50 \
            --heldout-every 0 --data text.txt || return 1
        sed -i "s|^shared_dir = .*|shared_dir = \"$folder\"|" bad/state.toml
        timeout 60 "$bin/shoal" up bad --port $port >up.log 2>&1
        [ $? = 78 ] && grep -q "cannot be used for saves: " up.log && grep -q " $folder[: ]" up.log || { cat up.log; return 1; }
        grep -q "checkpoint.shared_dir of .*/bad/state.toml: " up.log && ! grep "cannot be trained here" up.log || return 1
        ! grep -h " step=[1-9]" bad/run/logs/*.log || return 1
    done
}

state_digest() { "$bin/shoal" checkpoint verify "$1" | sed -n 's/^state digest //p'; }

# The last step is saved, whatever died before, unless a slow disk was still at an earlier save: then all members have
# said that they skip it. A save of which a member died is not whole, and not there. One trainer alone skips saves, too.
saves_alike()
{
    local saves=shared root alone step digest alike=0
    [ ! -d demo/saves ] || saves=demo/saves # The demo of sharded has a folder of its own
    alone=$(echo $saves/*.train-*) root=$(ls -d $saves/* | grep -v train)
    [ -d "$root/$(printf "step-%08d" $steps)" ] || grep -h "save.skipped step=$steps" demo/run/logs/*.log || return 1
    for step in "$root"/step-????????; do
        [ -d "$alone/${step##*/}" ] || continue
        digest=$(state_digest "$step")
        [ -n "$digest" ] && [ "$digest" = "$(state_digest "$alone/${step##*/}")" ] || { echo "$step"; return 1; }
        alike=$((alike + 1))
    done
    echo "$alike saves"
    [ $alike -ge 2 ]
}

# Runs until a save of one of these steps (a pattern) is on record, and kills all processes.
run_until_saved()
{
    : >>all/run/logs/coordinator.log
    local lines
    lines=$(wc -l <all/run/logs/coordinator.log)
    "$bin/shoal" up all "${@:2}" >up.log 2>&1 &
    local up=$!
    timeout 120 grep -qm 1 "checkpoint.saved step=$1 " \
        <(exec tail --pid=$up -n +$((lines + 1)) -F all/run/logs/coordinator.log 2>/dev/null) || { cat up.log; return 1; }
    kill -9 $up; pkill -9 -f "$work/all"
    wait
}

# Some bytes in the middle of one of its files change, as by a bad disk.
damage_newest_save()
{
    local piece
    piece=$(ls -S "$(ls -d shared/*/step-???????? | tail -n 1)"/adamw-m.* | head -n 1)
    printf 'damaged!' | dd of="$piece" bs=1 seek=1000 conv=notrunc status=none
    echo "damaged: $piece"
}

# Three with shares save step 120 of 240. From that save, two with all of the state each, and one alone, end in the bits
# of the training that never stopped. So does a run that begins with the checkpoint of the first.
goes_on_as_another()
{
    local next folder step=120 flags="--dim 32 --layers 2 --batch 8 --seq-len 32 --steps 240 --heldout-every 0 --data text.txt"
    rm -rf old next* whole
    "$bin/shoal" init old --strategy sharded --trainers 3 $flags || return 1
    sed -i "/^\[config\]/,/^\[/ s/^total_steps = .*/total_steps = $step/
        /^\[checkpoint\]/,/^\[/ s/^steps = .*/steps = $step/" old/state.toml # One: a save that comes while one is written is left out
    # The run takes a second, and may finish without a checkpointer: one that starts late on a busy machine writes nothing
    for _ in 1 2 3; do
        timeout 120 "$bin/shoal" up old --port $port >up.log 2>&1 || { cat up.log; return 1; }
        [ -e old/run/checkpoints/step-00000120/shoal.json ] && break
        grep -q "No checkpoint of the last step was written here" up.log || { cat up.log; return 1; }
        rm -rf old/run old/saves
    done
    "$bin/shoal" init next --strategy allreduce --trainers 2 $flags || return 1
    cp old/data.toml next/ # Each folder has an order of its own
    sed -i "s/^dataset_digest = .*/$(grep '^dataset_digest = ' old/state.toml)/" next/state.toml
    (cd next && "$bin/shoal" train state.toml --data-config data.toml --optimizer adamw --checkpoint-dir ../whole) >train.log 2>&1 ||
        { cat train.log; return 1; }
    sed -i "s/^step = .*/step = $((step + 1))/; s/^epoch_start_data_index = .*/epoch_start_data_index = $((step * 8))/; /^digest = /d" next/state.toml
    cp -r next next-2
    set -- "$work"/old/saves/*/step-00000120 "$work"/old/run/checkpoints/step-00000120
    for next in next next-2; do
        folder=$1; shift
        sed -i "s|^\[progress\]|&\nstate = \"$folder\"|" $next/state.toml
        timeout 120 "$bin/shoal" up $next --port $port >up.log 2>&1 || { cat up.log; return 1; }
        grep "^state digest" up.log && grep -q "^$(grep "^state digest" up.log)" train.log || { cat up.log; return 1; }
    done
    grep -h "state\.recut step=$step from=3 " next/run/logs/trainer-1.log || return 1
    (cd next && "$bin/shoal" train state.toml --data-config data.toml --optimizer adamw --no-checkpoint) >again.log 2>&1 ||
        { cat again.log; return 1; }
    grep -q "^$(grep "^state digest" train.log)" again.log || { cat again.log; return 1; }
}

# The epoch has all steps, so no checkpointer writes anything before the last one. All are killed twice. The second time
# the newest save is damaged as well: the run goes on from the one before.
kill_all_and_go_on()
{
    rm -rf shared all alone; mkdir shared
    cat "$top"/common/*/*.h >text.txt
    "$bin/shoal" init all --strategy allreduce --trainers 3 --dim 64 --layers 2 --batch 8 --seq-len 32 --steps 1200 \
        --heldout-every 0 --data text.txt || return 1
    sed -i "s|^# shared_dir.*|shared_dir = \"$work/shared\"|; /^\[checkpoint\]/,/^\[broker/ s|^# steps.*|steps = 100|
        s|^rounds_per_epoch = .*|rounds_per_epoch = 1200|; s|^lease_time = .*|lease_time = 4|" all/state.toml
    mkdir -p all/run/logs
    run_until_saved "[3-6]00" --port $port && run_until_saved "\([4-9]\|1[01]\)00" || return 1
    grep -h "run.lost_steps" all/run/logs/coordinator.log && grep -h "state\.recut step=[0-9]*00 from=3 " all/run/logs/trainer-1.log || return 1
    damage_newest_save
    timeout 120 "$bin/shoal" up all >up.log 2>&1 || { cat up.log; return 1; }
    grep -h "save.unread" all/run/logs/coordinator.log &&
        grep -h "run.lost_steps.*going on from disk: an older save" all/run/logs/coordinator.log || return 1
    (cd all && "$bin/shoal" train state.toml --data-config data.toml --optimizer adamw --checkpoint-dir ../alone \
        --set checkpoint.steps=100000) >train.log 2>&1 || { cat train.log; return 1; }
    grep "^state digest" up.log && grep -q "^$(grep "^state digest" up.log)" train.log
}

number=$((number + 1)) SECONDS=0
if kill_all_and_go_on >said 2>&1; then
    echo "ok $number - killed with -9, all of it, it goes on from its newest save, or from the one before"
    grep -h "run.lost_steps\|state.recut\|^state digest\|save.unread" said | sed 's/^/# /'
else
    echo "not ok $number - killed with -9, all of it, it goes on from its newest save, or from the one before"; sed 's/^/# /' said; failed=1
    tail -n 5 all/run/logs/*.log | sed 's/^/# /'
fi
port=$((port + 4)) number=$((number + 1))
if goes_on_as_another >said 2>&1; then
    echo "ok $number - another run, with other members and strategy, begins with the state of a save, or of a checkpoint"
    grep -h "state.recut\|^state digest" said | sed 's/^/# /'
else
    echo "not ok $number - another run, with other members and strategy, begins with the state of a save, or of a checkpoint"
    sed 's/^/# /' said; failed=1
fi
port=$((port + 4))

ends_alike allreduce 200 "eight lanes, a batch that they do not divide, plain links" 8 5 11 plain
[ -z "${LIVE_LONG:-}" ] || ends_alike allreduce 200 "three lanes for four trainers and a fifth, sealed links" 3 4 4 aes-gcm
ends_alike sharded 50 "moments by shares: eight lanes, a batch that they do not divide, plain links" 8 5 11 plain
number=$((number + 1))
if shares_alone >said 2>&1; then echo "ok $number - each member writes its share, and the save says where each tensor lies"; sed 's/^/# /' said
else echo "not ok $number - each member writes its share, and the save says where each tensor lies"; sed 's/^/# /' said; failed=1; fi
ends_alike server 50 "parameter servers, of which one is killed: eight lanes, a batch that they do not divide, plain links" 8 5 11 plain
port=$((port + 4)) number=$((number + 1))
if refuses_folders >said 2>&1; then echo "ok $number - a folder for saves that cannot be used is refused before the first step"
else echo "not ok $number - a folder for saves that cannot be used is refused before the first step"; sed 's/^/# /' said; failed=1; fi
echo "1..$number"
exit $failed
