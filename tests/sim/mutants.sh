#!/usr/bin/env bash
# mutants -- breaks the cores on purpose, one way at a time, and asks the simulator whether it notices. A
# mutant that lives names a check that we lack.
#
#     tests/sim/mutants.sh                all of them, at most 5000 seeds each
#     tests/sim/mutants.sh tally vote     those whose name or file has one of these in it
#     SEEDS=500 tests/sim/mutants.sh
#     FROM='a vote is sent' tests/sim/mutants.sh  from the first of that name on
#     LANE=1/2 tests/sim/mutants.sh       every second one, from the first on; LANE=2/2 beside it takes the others:
#                                         together they are faster, as few of them have work for two cores
#     tests/sim/mutants.sh --check        runs none: only that each still finds what it breaks, and that no mark
#                                         is left over
#
# What a mutant breaks bears its name, in a comment on the line above; moved code takes its mark along:
#
#     // mutant: a witness is counted twice
#     if (self->has_voted[witness]) return TALLY_TWICE;
#
# The list below says how: one edit a mark, of the one statement (or function) behind it. The second mark of a
# mutant ends in " (2)". An edit is one of
#
#     'FROM' 'TO'         FROM, which is there once, becomes TO; line breaks and spaces do not count
#     instead 'CODE'      CODE stands in the place of the statement
#     before 'CODE'       CODE comes before it
#     after 'CODE'        CODE comes after it
#     drop                the statement goes
#     swap                the statement and the one behind it change places
#
# Works on a copy of the tree, with the objects of its build folder, so that only what a mutant breaks is
# compiled, and leaves this one alone. Exit 1 if a mutant lived, if one does not find what it
# breaks, or if the seed that catches it breaks the sound tree as well.

set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
seeds=${SEEDS:-5000} from=${FROM:-} lane=${LANE:-1/1} only=("$@") lived=0 broken=0 count=0
[[ $lane =~ ^[1-9]/[1-9]$ ]] && [ "${lane%/*}" -le "${lane#*/}" ] || { echo "LANE=$lane: is K/N, K of 1 to N and N of 1 to 9, as in LANE=1/2"; exit 64; }
export MARKS=$copy/marks CHECK=
[ "${1:-}" != --check ] || CHECK=1 only=()

# Times to the nanosecond (posix): make compares those of sources and objects.
copy_tree() {
    local objects=()
    [ ! -f build/flags ] || objects=(build/flags $(find build/{actors,broker,common,tests} -name '*.[od]'))
    tar --format=posix --exclude=./build --exclude=./.git -cf - . "${objects[@]}" | tar -C "$copy" -xf -
}
[ -n "$CHECK" ] || (cd "$top" && copy_tree)
if [ -n "$CHECK" ]; then cd "$top"; else cd "$copy"; fi || exit 1
grep -rnE --include='*.[ch]' --include='*.cc' --include='*.cu' '^ *// mutant: ' actors broker common tests >"$MARKS"
build() { make -s -j"$(nproc)" B=build "build/$1" >"$copy/log" 2>&1 || { cat "$copy/log"; return 1; }; }
if [ -z "$CHECK" ]; then
    build bin/sim || exit 1
    cp "build/bin/sim" "$copy/sound"
    printf '%-58s %8s  %s\n' mutant seed 'what noticed'
fi

verdict() {                                         # NAME SEED WHAT
    printf '%-58s %8s  %s\n' "$1" "$2" "$3"
    [ "$2" != - ] || lived=$((lived + 1))
}

by_seed() {                                         # NAME: the first seed that catches it
    local seed what
    build bin/sim || { echo "$1: does not build"; broken=$((broken + 1)); return; }
    "build/bin/sim" --seeds 1 "$seeds" --first >"$copy/out" 2>"$copy/err"
    seed=$(sed -n 's/.*the first is seed \([0-9]*\).*/\1/p' "$copy/out")
    what=$(sed -n "s/^  seed $seed: \(.*\) at [0-9.]* s: \(.*\)/\1: \2/p" "$copy/out" | head -n 1)
    case $what in 'no core dies'*) what="a core's ensure(): $(grep -m 1 'must hold' "$copy/err" | sed 's/.*must hold: //')" ;; esac
    if [ -n "$seed" ] && ! "$copy/sound" "$seed" >"$copy/out" 2>&1; then
        echo "$1: seed $seed breaks without it, too"; broken=$((broken + 1))
    else verdict "$1" "${seed:--}" "${what:-}"
    fi
}

by_test() {                                         # NAME TEST: the first of its cases that fails, or that it died
    local what code=0
    build "unit/$2" || { echo "$1: does not build"; broken=$((broken + 1)); return; }
    timeout 60 "build/unit/$2" >"$copy/out" 2>&1 || code=$? # One that waits for what does not come has noticed
    what=$(sed -n 's/.*\[  FAILED  \] \([A-Za-z0-9_.-]*\)$/\1/p' "$copy/out" | head -n 1)
    [ $code -eq 0 ] && verdict "$1" - '' || verdict "$1" unit "$2: ${what:-ended with code $code}"
}

is_asked_for() {                                    # its name and where its marks are
    local part
    [[ $1 != *"$from"* ]] || from=
    [ -z "$from" ] || return 1
    for part in "${only[@]}"; do [[ $1 != *"$part"* ]] || return 0; done
    [ ${#only[@]} -eq 0 ]
}

# try JUDGE NAME [TEST] -- EDIT ...: breaks the tree, asks the judge, mends the tree.
try() {
    local judge=("$1" "$2") name=$2 changed file; shift 2
    [ "$1" = -- ] || { judge+=("$1"); shift; }
    shift
    names+=("$name")
    is_asked_for "$name $(grep -F "// mutant: $name" "$MARKS")" || return 0
    count=$((count + 1))
    [ $((count % ${lane#*/})) -eq $((${lane%/*} % ${lane#*/})) ] || return 0
    changed=$(tests/sim/mutate.pl "$name" "$@") || { echo "$changed"; broken=$((broken + 1)); return; }
    [ -z "$CHECK" ] || return 0
    "${judge[@]}"
    for file in $changed; do mv "$file.sound" "$file"; touch "$file"; done
}
names=()
mutant() { local name=$1; shift; try by_seed "$name" -- "$@"; }                           # NAME EDIT ...
by_unit() { local name=$1 test=$2; shift 2; try by_test "$name" "$test" -- "$@"; }        # NAME TEST EDIT ...

# ---- said before it is durable ------------------------------------------------------------------------
mutant 'a commit is published before it is stored' swap
mutant 'a member is admitted before it is stored' \
    before 'if (kind != FRAME_RECORD_MEMBER)' \
    after 'outbox_store(turn->out, FRAME_RECORD_MEMBER, &turn->run->roster.members[index]);'
mutant 'a claim is sent before it is journalled' swap
mutant 'a vote is sent before it is journalled' \
    before 'send(self, view, member, turn->in->now_ms, turn->out);'
mutant 'a restart forgets that it has voted' 'member->journal.second.number >= self->round ||' ''
by_unit 'a fetched blob is announced before it is durable' bulk_test drop
by_unit 'a failed sync is trusted the second time' store_test drop
by_unit 'what a failed sync has lost stays in the file' store_test drop
by_unit 'a new file of blobs is not in its folder for good' store_test 'sync_names(self) == 0 &&' ''
by_unit 'what was claimed is forgotten' trainer_test \
    'member->journal.first.number >= round->round' 'false'

# ---- votes --------------------------------------------------------------------------------------------
mutant 'an unelected vote is counted' after 'if (place == NO_MEMBER) place = 0;'
mutant 'a witness is counted twice' drop
mutant 'a quorum is rounded down' '(2 * elected + 2) / 3' '(2 * elected) / 3 + !(elected / 2)'
mutant 'votes are counted by batch, not by result' instead 'return a->client == b->client;'
by_unit 'who does not vote takes claims' witness_test 'fits && !is_witness' 'fits && is_witness'
by_unit "a witness with an older roster than the round's awaits nobody" witness_test drop
by_unit 'a witness forgets the claims of the round before' witness_test \
    'else if (round == self->round_before) sightings = self->sightings_before;' ''
by_unit 'a member that is behind votes for any base' witness_test \
    '(!hash_is_none(&self->base) &&' '(hash_is_none(&self->base) ||'
mutant 'a witness takes a claim of any size' \
    'claim->payload_bytes == rounds_config_of(&member->config)->payload_bytes' 'claim->payload_bytes > 1'
by_unit 'a vote for a result of any size is counted' coordinator_test \
    '|| vote->seen[i].payload_bytes != rounds_config(turn->rules)->payload_bytes' ''
by_unit 'the only holder may go' coordinator_test 'takes_part &&' 'takes_part && !takes_part &&'
mutant 'a vote names what is only on its way' \
    'blobs_state(blobs, &payload) == BLOB_HERE' 'blobs && payload.bytes'
mutant 'votes of the last round count in the next' drop

# ---- samples ------------------------------------------------------------------------------------------
mutant 'a batch is lost: what was not accepted is done' before '
    if (count == 0) ensure(table_done(&run->table, commit->round, round->dealt, round->dealt_count) == TABLE_OK);'
mutant 'a batch is dealt twice' instead '(void)count;'
by_unit 'what was trained counts for a round made anew' trainer_test 'self->reopened ||' ''
mutant 'a trainer trains the samples beside its own' \
    'share.begin, share.end,' 'share.begin + 1, share.end + 1,'

by_unit 'data: any order of the pinned files is let in' coordinator_test \
    '!hash_equal(&digest, pin)' 'join->samples == 0'
by_unit 'data: the first to join binds the run for ever' coordinator_test \
    'others > 0' 'others < MEMBERS_MAX'
by_unit 'data: what was trained on becomes other data' coordinator_test 'run->number > 0 ||' ''
by_unit 'data: a round opens before anybody has the data' coordinator_test \
    '!has_data(turn)' 'has_data(turn) && !has_data(turn)'
by_unit 'data: the last provider ends the epoch' coordinator_test '!has_witness(turn)' 'lacks(turn)'
by_unit 'data: nobody is told what the run is bound to' coordinator_test \
    before 'before.data = now->data, before.order = now->order, before.pass_samples = now->pass_samples;'
by_unit 'counts and the time left are told once' coordinator_test \
    '|| !wire_equal(FRAME_RUN, &self->run, &now)' ''
by_unit 'data: a provider changes its mind without end' coordinator_test '(binds || differs)' 'differs'
by_unit 'data: tokens begin where a provider likes' proof_test \
    '!is_begin_of_tokens(' 'offset >= file->bytes && !is_begin_of_tokens('
by_unit 'data: a pass has as many samples as somebody said' proof_test instead '(void)samples;'
by_unit 'data: a slow provider is never left' bulk_server_test 'peer->reputation.is_slow ?' 'false ?'
by_unit 'data: a provider is slow by the patience alone' bulk_server_test \
    'took_ms >= beside_ms' '(took_ms >= beside_ms && !self)'
by_unit 'data: no other provider is tried' bulk_server_test '!next ||' 'next ||'
by_unit 'data: a good provider is forgotten with the list' bulk_server_test 'true' 'false'
by_unit 'data: a silent provider costs the full patience each time' bulk_server_test \
    'a_failed != b_failed' 'a_failed != b_failed && a == b'
mutant "inbox: a sender's turn is not counted" 'turn, us)' 'turn, 0 * us)'
by_unit 'inbox: one sender fills it' inbox_test '&& sender->count < left &&' '&&'
by_unit 'cost: what is read from the ledger is free' inbox_test \
    '(uint64_t)job->count * (COST_READ_US + COST_SAY_US)' 'COST_READ_US + COST_SAY_US + (uint64_t)(job->count == 0)'
by_unit 'cost: letters between members are as cheap as the cheapest' post_office_test \
    'frames[i].kind == kind' 'frames[i].kind == kind && frames[i].frames != 12'
by_unit 'purse: what is held can be had without end' purse_test '!self->is_begun' 'true'
by_unit 'purse: an answer costs nothing' purse_test '(int64_t)bytes' '(int64_t)(bytes > 0)'
by_unit 'bulk: an asker may have the same without end' bulk_limits_test \
    '&& bulk_may_have(self, seat, clock_ms())' ''
by_unit 'bulk: what is not here can be asked for without end' bulk_limits_test drop
by_unit 'turns: the first asker keeps its turn' turns_test 'self->now->credit > 0' 'true'
by_unit 'turns: what an answer costs is not counted' turns_test '(int64_t)cost' '(int64_t)(cost > 0)'
by_unit 'turns: an idle asker saves credit up' turns_test 'waiter->credit > 0' 'false'
by_unit 'net: a probe is judged as a connection' handshake_test 'self->purpose.probe' 'false'
by_unit 'net: a caller has any number of handshakes answered' callers_test \
    '<= price->debt_max_ms' '<= price->debt_max_ms + UINT32_MAX / 2'
by_unit 'net: a key uses up what its neighbours need' callers_test 'account.key && !has_room(' 'false && !has_room('
by_unit 'group: anybody has any number of handshakes answered' group_handshakes_test 'return callers_admit(' 'return true || callers_admit('
by_unit 'bulk: any number of probes is answered' bulk_server_test 'may_call(arg, NULL)' '(arg || may_call(arg, NULL))'
by_unit 'fetch: a peer may say what nobody asked' bulk_line_test 'peer->reputation.has_lied = true' 'heard = BULK_NOTHING'
by_unit 'fetch: the first holders take all credit' bulk_slow_test 'self->bytes + peer->bytes' 'self->bytes'
by_unit 'fetch: nobody is slow' bulk_slow_test 'is_late(want, now_ms)' 'false'
by_unit 'fetch: a slow peer keeps its connection' bulk_slow_test 'true' 'false'
by_unit 'fetch: what is urgent has as much patience as all' bulk_slow_test 'urgent_ms &&' 'urgent_ms && !want &&'
by_unit 'fetch: an urgent blob comes from one holder' bulk_slow_test drop
by_unit 'fetch: nobody looks whether what is urgent is late' bulk_slow_test drop
by_unit 'fetch: what a holder lacks is asked of it again' leaf_plan_test '(at->lacks && has(at->lacks, leaf))' '!self'
by_unit 'fetch: what nobody has is waited for' leaf_plan_test 'doubtful &&' 'doubtful > UINT32_MAX - 1 &&'
by_unit 'fetch: a holder that lacks a leaf lacks all' share_fetch_test \
    '!holder->has_served && !leaf_plan_is_of_use(self->plan, index_of(self, holder))' 'holder'
by_unit 'shares: what each member has is not compared' share_list_test 'place > 0 &&' '!place &&'
by_unit 'shares: a list is served before it is whole' store_shares_test 'share->is_whole &&' ''
by_unit 'shares: a buddy is the place behind ours' share_fetch_test '+ places - back' '+ back'
by_unit 'shares: memory that belongs to nobody any more is kept' store_shares_test 'give_back(share)' '(void)give_back'
by_unit 'data: some providers are never asked' member_test '(self->index + number)' '(self->index + 0 * number)'

# ---- replicas -----------------------------------------------------------------------------------------
by_unit 'a commit of any size is fetched' replica_test \
    '!is_of_size(commit, rounds_config_of(&turn->member->config)->payload_bytes)' \
    '(false && !is_of_size(commit, rounds_config_of(&turn->member->config)->payload_bytes))'
by_unit 'a model of any size is trained' replica_test '|| built->payload_bytes == bytes' '|| bytes > 0'
by_unit 'a checkpoint of an earlier run is taken for one of this' replica_test \
    'own_step <= member->config' 'own_step < 0 * member->config'
by_unit 'a checkpoint of the first step hides the genesis folder' replica_test \
    'run->checkpoint_step <= member->config.genesis_step &&' 'run->checkpoint_step == 0 &&'
by_unit 'a checkpoint ahead of the run hides the genesis folder' replica_test \
    'own_step <= member->config' 'own_step < member->config'
mutant 'only a run from step 1 has its parameters in a folder' \
    'run->pin_step == member->config.genesis_step' 'run->pin_step == 0'
mutant 'the folder of an earlier run is taken for step 0' 'member->config.genesis_step' '0'
mutant 'own view is applied instead of the commit' instead '(void)blobs, (void)payload;' instead '
    struct wire_accepted held[MEMBERS_MAX];
    struct wire_commit own = next->commit;
    own.accepted = held, own.accepted_count = 0;
    for (uint32_t i = 0; i < next->commit.accepted_count; i++) {
        const struct wire_blob name = payload_of(&next->commit.accepted[i]);
        if (blobs_state(turn->blobs, &name) == BLOB_HERE) held[own.accepted_count++] = next->commit.accepted[i];
    }
    apply(self, turn, &own);'
mutant 'a residual is adopted before its commit' before '
    extern const struct hash *pending_payload;
    if (!hash_is_none(&self->own_result) && pending_payload) job.own_payload = *pending_payload;' \
    'static void hear(void *state, const struct member_turn *turn) {
        struct rounds_member *self = state;' \
    'const struct hash *pending_payload;
    static void hear(void *state, const struct member_turn *turn) {
        struct rounds_member *self = state;
        pending_payload = &self->training.claim.payload;'
mutant 'a residual is never adopted' 'job.own_payload = accepted->payload;' '(void)accepted;'
mutant 'an older incarnation of the coordinator is heard' '|| in->incarnation < self->incarnation' ''
mutant 'only the news say which step is pinned' 'settle(self, run->pin_step, &run->pin_digest, out)' 'run'
by_unit 'restore: the end of an epoch that was given up binds' replica_test drop
by_unit 'a replica that is stuck on its own folder tries it again' replica_test \
    'true' 'false' 'true' 'false'
mutant 'a folder that failed is never read again' drop
mutant 'what is held is told once and for all' \
    'self->told_seq != member->now.log_seq' 'self->told_seq == UINT64_MAX'

# ---- recovery -----------------------------------------------------------------------------------------
mutant 'a restart does not finish a half-finished move' before 'if (self->round_began_ms == 0) return NULL;'
mutant 'a deadline is kept over a reboot' \
    'turn->now_ms - turn->presence->epoch_began_ms' 'turn->now_ms + turn->rules->train_ms' \
    after 'turn->presence->deadline_ms = turn->run->epoch_elapsed_ms;'
mutant 'a coordinator whose disk fell behind is followed' drop
mutant 'what members saw is not held against the ledger' drop
mutant 'a trainer that lost its journal claims once more' '|| round->round <= own->joined_number' ''
mutant 'after a restart any coordinator is followed' drop
mutant 'an impostor admits members' '!key_equal(&self->coordinator, &in->sender)' 'in->sender.bytes[0] == 0'
mutant 'an impostor sends members away' drop
by_unit 'an impostor proves its ledger' member_test '!key_equal(&in->sender, &self->coordinator) ||' ''
by_unit 'a round that all have left takes its whole time' coordinator_test 'is_deserted(self, turn)' 'is_deserted(self, turn) && !self'
by_unit 'missed: who began again is told to be given more time' missed_test 'again == list.count' 'again > list.count'
by_unit 'late: what most are late with is late' witness_test \
    'lateness_from(&self->lateness, self->half_ms)' 'lateness_limit(&self->lateness)'
mutant 'late: a witness waits for every result' 'self->half_ms > 0 &&' 'self->half_ms == UINT32_MAX &&'
by_unit 'late: only the elected learn what is usual' witness_test ' && !sighting->is_coming' ''
by_unit 'late: nobody learns what is usual' witness_test drop
by_unit 'late: a witness is waited for because of its own result' coordinator_test 'left - 1' 'left'
by_unit 'waits: who comes last is not waited for' coordinator_test '&& client' '&& !turn && client'
by_unit 'waits: what was waited for once is said for ever' coordinator_test '-= (' '-= 0 * ('
by_unit 'waits: a member that is a little slower is waited for' coordinator_test \
    ' || took_ms <= (uint64_t)LATENESS_TIMES * half_ms' ''
by_unit 'waits: a miss costs the same however long it was waited for' coordinator_test \
    'heal > audit' 'heal > 99 + audit'
by_unit 'findings: one party makes slow usual' findings_test '(count - 1) / 4' '(count - 1) / 2'
by_unit 'findings: where all are slow they are late' findings_test 'is_known && ' 'is_known && !self && '
by_unit 'findings: an honest party is suspected for ever' findings_test drop
by_unit 'findings: a late one costs nobody anything' coordinator_test 'took_ms > limit_ms' 'took_ms > limit_ms + 99999'
by_unit 'findings: nobody says whom a late one is put down to' coordinator_test 'took_ms <= limit_ms' 'took_ms <= limit_ms + 99999'
by_unit 'findings: a late one is waited for though it needs no author' coordinator_test '(!is_late || ' '(turn || !is_late || '
by_unit 'waits: one liar says whom the rounds wait for' tally_test ' || votes <= quorum_liars(self->elected)' ''
by_unit 'late: one liar hurries the votes of all others' coordinator_test '&& all_live_decided(self, turn)' ''
by_unit 'late: the vote of a slow one is not waited for' coordinator_test 'is_late &&' '(is_late || self) &&'
by_unit 'late: a witness that says nothing holds the round up' coordinator_test 'done && rest_is_late(self, turn)' 'false'
by_unit 'late: one that returns has missed nothing' coordinator_test instead 'audit->fault_score[member] = 0;'
by_unit 'news: one report makes the run'\''s loss' coordinator_test \
    'lower_median(losses, count)' '0 * lower_median(losses, count) + losses[count - 1]'
by_unit 'status: a loss may have any length' progress_test 'loss < 1e4' 'true'
by_unit 'warmup: who withholds its report is waited for in every epoch' coordinator_test \
    'self->part[member] != WARMUP_NOT_AWAITED' 'self'
by_unit 'warmup: a joiner that is late once is not awaited in the next epoch' coordinator_test \
    'now_ms < self->late_until_ms[member]' 'true'
by_unit 'warmup: who leaves before its time is up was not late' coordinator_test \
    'takes_steps(turn, i) &&' '!takes_steps(turn, i) ||'
by_unit 'warmup: a run that cannot begin still waits for no more than before' coordinator_test drop
by_unit 'late: one that returns may cost all others any time' coordinator_test drop
by_unit 'late: the last that holds the newest step stays out' coordinator_test \
    ' || lacks_parameters(turn, holdings)' ' || (lacks_parameters(turn, holdings) && !turn)'
by_unit 'late: who is in is refused when it joins again' coordinator_test 'if (is_in || ' 'if ((is_in && !turn) || '
by_unit 'late: who is out is back while the others still report an earlier step' coordinator_test \
    '!holdings_somebody_says(holdings, turn)' '(!holdings || !holdings_somebody_has(turn))'
by_unit 'pieces: a leaf of another hash is taken' pieces_test 'hash_equal(&next[k], &self->leaves[leaf])' 'leaf < self->count'
by_unit 'saves: a whole save of another state is loaded' windows_saves_test \
    '!hash_is_none(&load->digest) &&' '!hash_is_none(&load->digest) && !load->pieces &&'
by_unit 'pieces: what cannot be removed ends the cleaning' pieces_test \
    'if (!stays)' 'if (!stays && faults->first == 0)'
by_unit 'saves: a member that is still writing is not waited for' windows_saves_test drop
by_unit 'pieces: the digest is that of the parameters alone' state_pieces_test 'merkle_root(roots, count)' 'merkle_root(roots, 1)'
by_unit 'pieces: two values of a replicated item are one' world_test drop
by_unit 'pieces: a cut of another save is taken' pieces_test '!hash_equal(&is, &self->manifest.cut)' 'hash_is_none(&is)'
by_unit 'world: as many workers are the same world' world_test drop
by_unit "pieces: what was a member's own goes to another one" state_pieces_test 'workers != 1' 'workers == 0'
by_unit 'pieces: each worker takes the first share of the moments' state_pieces_test \
    'items[i].at' '(struct interval){ 0, tagged[i].elements }'
by_unit 'saves: the moments of a save are taken unread' state_pieces_test \
    'rc < 0 ? rc : pieces_walk' 'rc < 0 || rc == 0 ? rc : pieces_walk'
by_unit 'pieces: a piece that begins within a leaf has a root' state_pieces_test \
    'reached % PIECE_LEAF_BYTES != 0' 'reached == UINT64_MAX'
by_unit 'saver: half a save stays on a full disk' saver_test 'rc < 0 && save->workers == 1' 'rc < 0 && save->workers == 0'
by_unit 'saver: the memory of the work is saved' saver_test drop
by_unit 'saver: a second save goes over the first' saver_test '!= IDLE' '== TAKEN'
by_unit 'saver: a worker whose part was removed is said to be missing' saver_test drop
by_unit 'saver: a part that is not there yet is said to be what cannot be cleaned' saver_test drop
by_unit 'saver: old saves stay' saver_test 'result->missing == save->workers' '!result'
by_unit 'strangers take every seat' post_office_test 'has_seat && make_room(self)' 'has_seat && !has_seat && make_room(self)'
by_unit 'hello: one for another connection is welcome' hello_test \
    'key_equal(&hello->connection, &in->user)' 'hello && in'
by_unit 'hello: one for another broker is welcome' hello_test 'key_equal(&hello->server, &self->server)' 'self'
by_unit 'hello: a copy is welcome on another connection of its key' hello_test \
    'memcmp(hello->challenge, challenge, CHALLENGE_BYTES) == 0' 'hello->challenge[0] + challenge[0] < 512'
by_unit 'mail: the routing id and the CURVE key of a peer are enough' hello_test \
    'from && broker_has_welcomed(self, in)' 'from && self && in'
by_unit 'news: a key that the mail has not welcomed is let in' hello_test \
    'peer && admission_lets_in(self->admission, &peer->key)' '!peer || admission_lets_in(self->admission, &peer->key)'
by_unit 'news: an actor that was banned since subscribes' hello_test \
    '&& admission_lets_in(self->admission, &peer->key)' ''
mutant 'another run of the name is taken for the same' \
    'is_other_run(self, admitted->born_unix_ms)' 'self == NULL'
by_unit 'a member stays in a run whose ledger is lost, and takes part in the next' member_test \
    'is_other_run(self, beat->born_unix_ms)' 'self == NULL'
mutant 'what was promised to another run binds in this one' \
    'self->journal.born_unix_ms != self->born_unix_ms' 'false'
mutant 'a snapshot forgets what is pending' drop
by_unit 'a snapshot forgets what failed' restore_test after '
    uint32_t kept = 0;
    for (uint32_t i = 0; i < self->table.count; i++)
        if (self->table.entries[i].state != TABLE_FAILED)
            self->table.entries[kept++] = self->table.entries[i];
    self->table.count = kept;'
mutant 'a snapshot forgets the chain of commits' drop
mutant 'a torn record is taken for whole' instead '(void)body, (void)bytes;'
by_unit 'the chain of the ledger is not checked' ledger_damage_test '&record.chain' '&chain'
mutant 'a member that asks for commits is not answered' drop
by_unit 'who asks without end is answered' coordinator_test \
    'turn->now_ms < *not_before_ms' 'turn->now_ms + 1 < turn->now_ms'
mutant 'roster: a change is taken beyond a gap' 'self->version < change->from ||' ''
mutant 'roster: the newest change is not told' 'self->changed[i] <= since' 'self->changed[i] <= since + 1'
mutant 'roster: who enters an epoch is not told' drop
by_unit 'roster: a change is of whatever run' member_test \
    'in->incarnation == self->roster_incarnation' 'in->incarnation > 0'
by_unit 'roster: a full one takes no change' roster_test '(index == count && count == MEMBERS_MAX)' 'count == MEMBERS_MAX'
by_unit 'a new connection has a budget of its own' post_office_test 'held && key_equal(&self->peers[held - 1].key, key)' 'held && !key'
by_unit 'budget: what a round adds takes no excess back' admission_test drop
by_unit 'the whole roster is told at each change' coordinator_test '!self->told ||' 'true ||'
mutant 'a position is not answered' drop
by_unit 'what the owner gave up is kept' member_test 'beat->log_seq < known->log_seq' 'false'

# ---- saves in pieces ------------------------------------------------------------------------------------
mutant 'saves: a save that was given up is gone back to' drop
mutant 'saves: a snapshot forgets the save that is being written' drop
mutant 'saves: the save that a restore needs is removed' 'older_saves_spare(' 'UINT64_MAX | older_saves_spare('
mutant 'saves: a save is never read back' 'self->shared_dir[0]' '!self->shared_dir[0]'
by_unit 'saves: a checkpoint of a step that is saved in pieces is not registered' coordinator_test '&& run->checkpoint.pieces)' '&& false)'
by_unit 'saves: a run is finished without a checkpoint that other tools read' coordinator_test '&& !turn->run->checkpoint.pieces' ''
by_unit 'saves: what was taken before a restore is taken again' coordinator_test \
    'in != window' 'in != window && !stands'
by_unit 'saves: the data position of a save is that of a later step' coordinator_test \
    'first_marked(self, turn, TAKEN, from, end)' '0'
by_unit "saves: a save of another window is the run's" coordinator_test \
    'said->saved_window == windows_run_of(run)->save_window &&' ''
by_unit 'saves: a save of the present step is no way out' coordinator_test \
    'if (back.step == turn->run->step && run_has_digest(turn->run)) return false;' \
    'if (back.step == turn->run->step) return false;'
by_unit 'windows: a member that holds nothing is waited for' windows_member_test 'broken = true' 'broken = false'
by_unit 'windows: an epoch ends and the shares of its state lie apart' coordinator_test drop
by_unit 'windows: who holds all of the state is not waited for' coordinator_test \
    'stands->share && ' ''
by_unit 'windows: who held a share holds one for ever' windows_member_test drop
by_unit 'windows: a share without the others is waited for' coordinator_test \
    'lost |= has_lost(self, &newest->group[i])' '(void)has_lost(self, &newest->group[i])'
by_unit 'windows: what was lost in an earlier window is lost' coordinator_test \
    before 'kept->lost |= said->lost;'
by_unit 'windows: who has lost its state is waited for' coordinator_test 'said->lost' 'false'
by_unit 'pieces: a save that the run has gone back before is kept' pieces_test '&& remove_earlier(self, to)' '&& remove_earlier(self, to) && false'
by_unit 'saver: what failed before stays' saver_test drop
by_unit 'pieces: what is to be spared is removed' pieces_test '>= save->spare' '> save->spare'
by_unit 'pieces: the saves of another run are removed' pieces_test '!has_foreign || has_ours' 'true'
by_unit 'pieces: the save of another run beside ours is removed' pieces_test 'reads && !is_ours(&manifest, save)' 'reads && !is_ours(&manifest, save) && false'
by_unit 'pieces: a folder without a manifest is one of those that are kept' pieces_test \
    'else knows_all = false' 'else keep -= keep > 0, knows_all = false'

# ---- leases ---------------------------------------------------------------------------------------------

by_unit 'leases: a server is blamed for a trainer that does not come' coordinator_test \
    '!lacks_trainer &&' '(lacks_trainer || !lacks_trainer) &&'
by_unit 'leases: the next pass begins while a task of this one is out' leases_test \
    'rules->pass_barrier &&' 'false && rules->pass_barrier &&'
by_unit 'leases: a task that fails is never given up' leases_test \
    '+ more <= rules->strikes_max' '+ more <= UINT32_MAX - 0 * rules->strikes_max'
by_unit 'leases: a process strikes a task again and again' leases_test 'leases_has_struck(self, lease) ? 0 : 1' '1'
by_unit 'leases: a process is dealt the task that it has just failed' leases_test '!leases_has_struck(self, &lease)' '!leases_has_struck(self, &lease) || i == 0'
by_unit 'leases: a process that fails every task is dealt the next one' coordinator_test \
    'self->failures[member] >= LEASES_FAILURES' '!self'
by_unit 'leases: a trainer that fails every task goes on' leases_member_test 'self->failed >= LEASES_FAILURES' '!self'
by_unit 'leases: a task is dealt though no room is left for its strike' leases_test '>= STRIKES_KEPT_MAX' '>= STRIKES_KEPT_MAX + LEASES_MAX'
by_unit 'leases: a lease that is over ends once more' leases_test 'LEASE_STALE' 'LEASE_OK'
by_unit 'leases: anybody ends a lease' leases_test '&& lease->member == member && lease->instance == instance' \
    '&& member + instance < UINT64_MAX'
by_unit 'leases: after a restart leases have what was left of their time' leases_test \
    'now_ms +' 'self->leases[i].deadline_ms + 0 *'

# A pace of them.
by_unit 'leases: who is called dead and lives is dropped' coordinator_test instead 'return since_ms > 0;'
by_unit 'leases: a group goes on without one of its servers' coordinator_test drop
by_unit 'leases: an answer to an earlier attempt counts' coordinator_test 'said->attempt != closing->attempt ||' ''
by_unit 'leases: a group is closed before that is stored' coordinator_test swap
by_unit 'leases: a run whose members hold different states goes on' coordinator_test drop
by_unit 'leases: a trainer that died is waited for when the group is closed' coordinator_test \
    'waits & ~able' 'waits & ~able & owners(turn)'
by_unit 'leases: who returned with the last step has no say beside those that never held it' coordinator_test \
    '&& is_last' '&& is_last && !turn'
by_unit 'leases: the task of a dead trainer is waited for until its time is over' coordinator_test \
    'first_dead(self, turn)' '(turn->now_ms ? NULL : first_dead(self, turn))'
by_unit 'leases: a task may take as long as it likes' coordinator_test drop
by_unit 'leases: a task that is trained in part is done' coordinator_test \
    '&& said->samples == samples_out(turn->run, said->lease)' ''
by_unit 'leases: an end is acknowledged before it is stored' coordinator_test swap
by_unit 'leases: more is dealt than the steps need' coordinator_test 'last).step >= last' 'last).step > last'
by_unit 'leases: nobody is told that trainers have nothing to do' coordinator_test 'tasks >= trainers' 'true'
by_unit 'leases: pushes of another group are counted' coordinator_test \
    'busy->number == group->number' 'group'
by_unit 'leases: pushes are told with each message' coordinator_test drop
by_unit 'leases: a trainer gets a second task while it has one' coordinator_test \
    'lease_of(turn, place) ||' ''
by_unit 'leases: a trainer that has lost the mail with its task gets none any more' coordinator_test \
    'lease->number > said->after' 'lease->number > said->after + 99'
by_unit 'leases: the group is of keys, not of processes' coordinator_test \
    'group->group[i].instance == instance' 'instance < UINT64_MAX'
by_unit 'leases: a step is counted before all of its samples are trained' coordinator_test 'way.rest < batch' 'way.rest + 2 < batch'
by_unit 'leases: a task that comes twice is trained twice' leases_member_test 'task->lease > self->newest' 'task->lease > 0'
by_unit 'leases: a member puts the state of an earlier group together' leases_member_test '|| said->number != self->in_hand' ''
by_unit 'leases: a task that was given up is said to be trained' leases_member_test 'said->lease != self->lease ||' ''
by_unit 'leases: the answer to an earlier attempt is said for a later one' leases_member_test \
    '|| said->attempt != self->closing.attempt' ''
by_unit 'leases: a member keeps a state that was not put together' leases_member_test 'self->settled.ok &&' ''
by_unit 'leases: an end that is lost is never said again' leases_member_test 'is_due(&self->end_ms, turn)' '!self->end_ms++'
by_unit 'leases: a member leaves with a task in its hands' leases_member_test '|| self->lease || self->end.lease' ''
by_unit 'leases: a trainer that cannot go on gets tasks' coordinator_test 'busy->broken' 'busy->broken && !run'
by_unit 'leases: an earlier word of a member takes the place of a later one' coordinator_test drop
by_unit 'leases: the death of a trainer ends the epoch of the others' coordinator_test \
    'trainers_left(self, turn) == 0' 'trainers_left(self, turn) + leases_config(rules)->servers < own(turn)->group.group_count'
by_unit 'leases: after a restart a joiner ends the epoch at once' coordinator_test drop
by_unit 'leases: after a restart the tasks that are out are late' coordinator_test \
    'turn->now_ms' '0 * turn->now_ms'
by_unit 'leases: a trainer is kept until the epoch ends' coordinator_test \
    instead 'return place != NO_MEMBER || pace_alone_is_as_far(turn, member);'
by_unit 'leases: who keeps what the lost group began with is not waited for' coordinator_test 'return true' 'return false'
by_unit 'leases: who has its share alone is waited for' coordinator_test \
    'leases_run_has_settled(own(turn), member, instance)' 'leases_group_place(&own(turn)->group, member, instance) != NO_MEMBER'
by_unit 'leases: what is left of the epoch before counts for the first step' leases_run_test drop
by_unit 'leases: two states have the number of one step' leases_run_test '> self->dealt_before' '> self->dealt_before + 99'
by_unit 'leases: what is out when a server dies is never trained' leases_run_test '[i].number' '[i].number + 99'
by_unit 'leases: what is trained of a step that nobody holds is lost' leases_run_test 'step > self->group.step' 'step >= self->group.step'
by_unit 'leases: a snapshot forgets which tasks are out' leases_run_test 'from->leases_count' '0 * from->leases_count'
by_unit 'leases: a snapshot forgets the strikes' leases_run_test 'from->struck_count' '0 * from->struck_count'
by_unit 'leases: a snapshot forgets that the group is closed' leases_run_test drop
by_unit 'leases: a snapshot forgets the samples of the step in hand' leases_run_test drop
by_unit 'leases: a group names a member whose links are not known' coordinator_test \
    'busy->instance == at->instance && busy->links[0] &&' ''
by_unit 'leases: a server that stood by drives out one that has the state' coordinator_test \
    'muster_is_in_group(turn->run, i) ?' 'old > 0 ?'
by_unit 'leases: a run begins before its servers are here' coordinator_test 'here < wanted' 'here + 99 < wanted'
by_unit 'leases: a group settles once more after a crash' leases_group_test drop
by_unit 'leases: a task is asked for before the links stand' leases_member_test 'self->formed && ' ''
by_unit 'leases: the links of an earlier group will do' leases_member_test \
    'said->number != self->in_hand' 'said->number == 0'
by_unit 'leases: the time in which the state is put together is not counted' coordinator_test \
    '!closes' '!closes || self->barrier_epoch != next'
by_unit 'leases: each joiner waits for the time that one member did not come' coordinator_test before 'if (turn->now_ms) return;'
by_unit 'leases: a joiner ends a young epoch' coordinator_test 'muster_wait_ms(self, turn) > 0' 'muster_wait_ms(self, turn) > 1 << 30'
by_unit 'leases: a trainer whose links break in each group is in the next one' coordinator_test \
    'turn->now_ms < cut->until_ms' 'turn->now_ms > cut->until_ms'
by_unit 'leases: nobody trains as the links of all trainers broke' coordinator_test 'linked == 0 || linked < turn->rules->min_clients' 'linked > 1 << 20'
by_unit 'leases: a trainer is left out as its servers die' coordinator_test '!is_intact ||' ''
by_unit 'leases: a trainer is left out as another one does not link with a server' coordinator_test 'named ? named : own' 'named | own'
by_unit 'samples that are damaged wherever they are wait for a provider that is away' bulk_server_test 'refused ? FAULT_DIGEST : FAULT_UNREACHABLE' 'refused ? FAULT_UNREACHABLE : FAULT_UNREACHABLE'
by_unit 'keeping: a keeper ends as it cannot fetch what others keep' replica_test drop
by_unit 'those who wait for an epoch do not count among those that hold the step' coordinator_test '!roster_is_here(member)' 'member->state != MEMBER_HEALTHY'
by_unit 'copying: the lists of copies that are given up stay' leases_member_test 'copied->step == self->list_step' 'copied->step != self->list_step + 1'
by_unit 'leases: a trainer whose links broke waits for the epoch to end' coordinator_test 'muster_is_in_group(run, member) &&' 'muster_is_in_group(run, member) && run->step > 1 << 20 &&'
by_unit 'leases: a group begins with a state that is not held' leases_learner_test '!self->holding ||' ''
by_unit 'leases: a server goes on with the moments of another share' leases_learner_test 'self->away' '!self'
by_unit 'leases: a batch of a task that failed is pushed with the next one' leases_learner_test drop
by_unit 'leases: a trainer pushes before it has pulled' leases_learner_test '!work->has_pulled' '!self'
by_unit 'leases: a batch that was computed before a pull is pushed behind it' leases_learner_test drop
by_unit 'leases: a server that puts the state together is taken for one that is dead' leases_learner_test 'if (dead)' 'if (dead + 1)'
by_unit 'leases: all batches are as large as that of the first step' leases_learner_test 'said->step' '0 * said->step'
by_unit 'leases: a job that ends a wait for answers breaks the group' leases_learner_test \
    'rc == FAULT_INTERRUPTED' 'rc == FAULT_NOT_NOW'
by_unit 'leases: a server steps at a rate of its own' leases_learner_test 'push->rate' '2 * push->rate'
by_unit 'leases: each member has its own count of the steps' leases_learner_test '.alike = true' '.alike = false'
by_unit 'leases: a save that is ordered while a group is formed ends that' leases_learner_test drop
by_unit 'leases: a trainer that goes on from a save numbers its pushes from 1' leases_learner_test drop
by_unit 'saves: servers that have taken different pushes save nothing' leases_learner_test \
    'parts[i].bytes = NULL' 'parts[i].elements += 0'
by_unit 'saves: a server forgets which pushes its share has' leases_learner_test drop
by_unit 'saves: a state that was saved on the way has the number of the one that is put together' leases_run_test \
    'self->save_step == step' 'self->save_step + 99 == step'
by_unit 'saves: a snapshot forgets that a group saves' leases_run_test drop
by_unit 'saves: the timer runs from the beginning of the epoch, whatever was saved since' coordinator_test \
    'leases->save_number == leases->group.number' '!run'
by_unit 'saves: a server that has not heard of a save is never told again' coordinator_test \
    'turn->now_ms >= self->save_tell_ms' '!places'
by_unit 'saves: servers are told to save before that is stored' coordinator_test swap
by_unit 'saves: a save of another state than the one that was put together is the run'"'"'s' coordinator_test \
    'hash_equal(&end->digest, &saved->digest)' 'true'
by_unit 'saves: a save that the run has given up is gone back to' coordinator_test '!is_newest(own(turn), saved) ||' ''
by_unit 'saves: the last state of a run is not saved' coordinator_test '&& saving_is_due(turn)' '&& !turn'
by_unit 'saves: a save that comes twice is made twice' leases_member_test '|| step <= self->save_step' ''
by_unit 'saves: a server saves for an earlier group' leases_member_test '|| said->number != self->in_hand' ''
by_unit 'saves: what a group puts together is not saved' leases_member_test drop
by_unit 'saves: that a save is whole is forgotten as the next group begins' leases_member_test \
    ', .saved = self->busy.saved' ''
by_unit 'leases: a share that is lost is put together' leases_learner_test '(all >> trainers << trainers)' '(all >> trainers >> 63)'

# ---- moments by shares ----------------------------------------------------------------------------------
by_unit 'shares: a share is taken though its moments are not here' windows_saves_test 'self->share_only && !same' 'false'
by_unit 'a run that goes on from another one'"'"'s state begins with its parameters alone' windows_saves_test \
    'self->config.first_state[0]' '!load && self->config.first_state[0]'
by_unit 'shares: who holds a share says that it holds all' windows_saves_test drop
by_unit 'shares: a step is computed by parameters of the one before' windows_learner_test \
    'gather_parameters(self, why, ret_blame)' 'why && !ret_blame && gather_parameters(self, why, ret_blame)'
by_unit 'shares: a member goes on with the moments that it had before it loaded a state' windows_saves_test '|| self->has_share' '|| self'
by_unit 'away: moments that have changed on the disk are taken' windows_saves_test '!hash_equal(&leaf' '!self && !hash_equal(&leaf'
by_unit 'shares: each round brings the first leaves of the shares' windows_saves_test 'owners), first,' 'owners), 0 * first,'
by_unit 'away: a server goes on with the parameters of another share' windows_servers_test drop

# ---- restores -----------------------------------------------------------------------------------------
mutant 'restore: what was trained since stays done' drop
by_unit 'restore: residuals are forgotten' restore_test \
    instead 'memset(self->residuals, 0, sizeof self->residuals);'
by_unit 'restore: residuals stay' restore_test drop
mutant 'restore: a snapshot forgets the restore point' drop
by_unit 'restore: a snapshot forgets the beginning' restore_test drop
by_unit 'restore: a run begins again although somebody may hold its state' coordinator_test \
    '&& holdings_who_may(turn) == NO_MEMBER' ''
mutant 'restore: the restore point is that of any checkpoint' 'checkpoint->step != self->step' 'false'
by_unit 'leases: samples that a group has trained are done at the step that it began with' \
    leases_run_test drop
by_unit 'restore: samples of no step are done at the restore point' leases_run_test \
    instead 'run_point_take(self, &checkpoint->digest, &self->restore_point);'
by_unit 'restore: a checkpoint that was written beside the next epoch is none' restore_test instead 'return;'
by_unit 'restore: an end of an epoch that was given up is gone back to' restore_test drop
by_unit 'restore: a snapshot forgets the end of the epoch' restore_test drop
by_unit 'a run is finished before its checkpoint is written' coordinator_test '!all_done(turn) && ' ''
by_unit 'a checkpointer says that it holds a step before it writes it' restore_test '!begun && !saved' 'begun * saved < 0'
by_unit 'a run outruns its checkpoints' restore_test '&& !self->late' ''
mutant 'restore: what is dealt now is forgotten' drop
by_unit 'restore: what failed is trained again' restore_test 'TABLE_FAILED' 'TABLE_TODO'
by_unit 'a checkpoint counts what failed as trained' learner_save_test 'failed + data_position->failed_count' 'failed'
mutant 'restore: no new epoch' '+ 1' ''
mutant 'restore: a trainer answers for a result that was given up' drop
mutant 'restore: disputes go on' drop
mutant 'restore: a replica that is ahead stays there' instead 'return run == NULL && step + epoch == 0;'
by_unit 'restore: a replica that is ahead is met there again' restore_test 'run->restored_step' 'run->step'
by_unit 'a checkpoint of an earlier run under its name is loaded' replica_test drop
mutant 'restore: a checkpoint given up is loaded' drop 'loaded->epoch' 'member->now.epoch'
mutant 'restore: the pinned step stays' drop drop
by_unit 'restore: the highest step is the newest' restore_test \
    instead 'return step + 0 * epoch > than_step + 0 * than_epoch;'
by_unit 'restore: the restore point is retired' restore_test drop
by_unit 'restore: a checkpoint is as good as one given up' restore_test drop
by_unit 'restore: a last cooldown that nobody keeps has no restore point' coordinator_test \
    '!holdings_are_kept(&self->holdings, turn)' '!holdings_are_kept(&self->holdings, turn) && turn->now_ms == 0'
by_unit 'restore: what was held before it counts' coordinator_test 'run_gave_up(run, said->step, said->epoch)' 'false'

# ---- phases and clocks --------------------------------------------------------------------------------
mutant 'a checkpointer is believed any digest' '!committed ||' '(false && !committed) ||'
mutant 'a checkpointer speaks for the trainers' \
    'role_takes_steps(place->role)' 'place->role != ACTOR_PROVIDER' \
    'role_takes_steps(run->roster.members[i].role)' 'run->roster.members[i].role != ACTOR_PROVIDER'
mutant 'a run ends a step early' \
    'step >= turn->rules->total_steps' 'step + 1 >= turn->rules->total_steps' \
    'step >= rules->total_steps' 'step + 1 >= rules->total_steps'
mutant 'a trainer that is left alone speaks for the run' 'live < turn->rules->min_clients ||' ''
mutant 'a pause outlives the last step' \
    'all_done(turn) ? PHASE_FINISHED : run->pausing ? PHASE_PAUSED' \
    'run->pausing ? PHASE_PAUSED : all_done(turn) ? PHASE_FINISHED'
by_unit 'a member that serves nobody outlives its run' roles_test '!stays' 'stays && !stays'
by_unit 'a run is finished and nobody has its parameters' coordinator_test '|| !holdings_are_kept(&self->holdings, turn)' ''
by_unit 'a run is finished while its checkpointer is away' coordinator_test drop
by_unit 'a run is finished without a checkpoint while no holder speaks' coordinator_test drop
mutant 'a payload is forgotten before it is applied' instead '(void)replica, (void)kept; return false;'
mutant 'a round goes on without min_clients' '< rules->min_clients' '< 1'
mutant 'a round takes twice its time, and never less' \
    '&& !complete && !rest_late && !deserted && !all_live_voted(self, turn)' '' \
    '[PHASE_TRAIN] = rules->train_ms' '[PHASE_TRAIN] = 2 * rules->train_ms'
mutant 'the clock is asked for a deadline that has passed' 'presence->deadline_ms > turn.now_ms &&' ''
mutant 'a late word of the old process ends the new one' \
    'refused->reason == REFUSAL_REPLACED && refused->round != self->instance' 'false'

# ---- audits, verdicts, proofs -------------------------------------------------------------------------
mutant 'audit: the accused judges itself' \
    'member != audit->member && member != audit->accuser' 'member != UINT32_MAX && audit'
mutant 'audit: a majority is counted over those that spoke' before 'judges -= votes[FINDING_PENDING];'
mutant 'audit: one word is a verdict' 'majority : floor' '1 : 1'
mutant 'audit: a verdict of "same" lets the accuser go' drop
mutant 'audit: a verdict of "different" lets the accused go' drop
mutant 'audit: an accusation alone ejects' instead \
    'conclude(turn, place, verdict != FINDING_PENDING ? verdict : finding->finding);'
mutant 'audit: a trainer that revealed something else is called wrong' \
    'FINDING_WITHHELD' 'FINDING_DIFFERENT'
mutant 'audit: silence ejects the third time' '} else if (turn_is_live(turn, audit->member)) {' \
    '} else if (rounds_run_of(turn->run)->debts[audit->member].withheld == AUDIT_WITHHELD_MAX) {
        eject(turn, &ejection);
     } else if (turn_is_live(turn, audit->member)) {'
by_unit 'a result of another member is taken for our own' learner_audit_test \
    'hash_equal(&job->payloads[task], job->own)' 'job->own'
by_unit 'audit: the gradient of another result is taken' learner_audit_test \
    'hash_equal(&self->gradient_of, &job->audit.result)' '!hash_is_none(&self->gradient_of)'
by_unit 'audit: the parameters of another step are taken' learner_audit_test \
    'self->spare_step == audit->step && hash_equal(&self->spare_digest, &audit->base)' \
    '!hash_is_none(&self->spare_digest)'
by_unit 'audit: what was trained is taken for the gradient of another result' learner_audit_test drop
mutant 'audit: what began with zero can be withheld' 'finding->finding == FINDING_WITHHELD &&' 'false &&'
mutant 'audit: debts do not grow' 'AUDIT_OWED_FIRST << debt->withheld' 'AUDIT_OWED_FIRST'
mutant 'audit: to have shown nothing is never forgiven' 'answered' 'answered && false'
by_unit 'audit: what nobody has verified is a beginning' coordinator_test \
    '(rounds_run_of(turn->run)->debts[member].audits == 0 || round->clients_count == 1)' '1'
by_unit 'blobs: what is kept goes with its step' blobs_test '|| entry->users' ''
mutant 'audit: a member that nobody judges owes nothing' \
    'debt->audits = 1;' '(void)debt;'
mutant 'audit: a member that goes away owes nothing' 'AUDIT_OWED_FIRST << debt->withheld' '0'
by_unit 'audit: a member that owes is drawn like the others' coordinator_test instead '(void)draw_debtors;'
by_unit 'audit: a quarrel costs neither party anything' coordinator_test \
    'before == FINDING_PENDING && verdict == FINDING_SAME' 'before == FINDING_PENDING && verdict == FINDING_SAME && !self'
by_unit 'audit: to say nothing costs an auditor nothing' coordinator_test \
    'finding != FINDING_PENDING' 'finding <= FINDING_UNABLE'
by_unit 'audit: a member that went long ago counts for ever' verdict_test \
    'ROSTER_DROPPED_ROUNDS = 64' 'ROSTER_DROPPED_ROUNDS = 64000'
mutant 'audit: a finding is stored after it is acted upon' \
    instead 'run_apply(turn->run, FRAME_RECORD_FINDING, &record);' \
    after 'outbox_store(turn->out, FRAME_RECORD_FINDING, &record);'
mutant 'audit: a finding of a member that was not asked counts' \
    'round->clients[round->audits[place].auditor].member != member' \
    '!hash_equal(&finding->result, &round->audits[place].result)'
mutant 'audit: a finding of another result counts' \
    '|| !hash_equal(&finding->result, &round->audits[place].result)' '' \
    after 'if (finding->round % 5 == 0) self->finding.result = (struct hash){ { 1 } };'
mutant 'audit: a member audits itself' instead '(void)client;'
mutant 'audit: nobody is left to train' '- 1' '' \
    'round->audits_count >= round->clients_count' 'round->audits_count > round->clients_count'
mutant 'audit: auditors train, too' 'audits_of(round, c) == UINT32_MAX' 'c < round->clients_count'
mutant 'audit: the base is not that of the result' '.base = before->last.base' \
    '.base = before->last.step % 3 ? before->last.base : before->last_commit'
mutant 'audit: an audit names the residual that it leads to' \
    '.residual_from = accepted->residual_from' '.residual_from = accepted->residual_to'
by_unit 'audit: an ejected member is audited again' coordinator_test drop
mutant 'audit: draws follow from what no record says' 'run->run_seed' 'run->run_seed ^ turn->presence->heard_ms[0]'
mutant 'round: the witnesses follow from what no record says' \
    after '
    struct draw *draw = &self->audit.draw;
    draw->witnesses[0] = draw->clients[turn->presence->heard_ms[0] % round.clients_count];'
mutant 'audit: the key is not that of the lock' \
    'audit_key(turn, round->opened.round)' 'audit_key(turn, round->opened.round + 1)'
mutant 'audit: more are drawn than the rules say' '(number % 100 < hundredths % 100)' '1'
mutant 'audit: a verdict that a crash cut off is forgotten' drop
mutant 'guilt: a residual may be anything' \
    'hash_equal(&seen->residual_from, &rounds_run_of(turn->run)->residuals[member].hash)' 'seen'
mutant 'guilt: a snapshot forgets where residuals led' drop
mutant 'guilt: what an ejected member did is accepted' \
    'rounds_config(turn->rules)->verification_percent ? turn_is_live(turn, member)
        : turn->run->roster.members[member].state != MEMBER_EJECTED' 'true'
mutant 'guilt: a member that left before the commit is believed' \
    'rounds_config(turn->rules)->verification_percent ? turn_is_live(turn, member) :' ''
mutant 'guilt: a judge against the verdict stays' instead '
    eject_false_judges(turn, place, FINDING_PENDING);
    (void)verdict;'
mutant 'guilt: a judge that was shown nothing is a liar' 'finding == FINDING_SAME)' \
    'finding != FINDING_DIFFERENT && finding != FINDING_PENDING)'
mutant 'guilt: a member that joins again has shown all' \
    before 'self->debts[member->index] = (struct wire_debt){ 0 };'
mutant 'guilt: an ejected member is heard' drop
mutant 'guilt: an ejected member may join again' drop
mutant 'guilt: a witness keeps to itself what was not committed' before 'if (commit) return;'
mutant 'guilt: the holder of the committed claim is not asked' instead '(void)ask_for_accepted;'
mutant 'guilt: a liar that shows its other claim itself is not asked about' '.name = name,' \
    '.name = name, .asked = claim->round == round_of(turn->run)->opened.round && round_of(turn->run)->open,'
mutant 'guilt: claims of two rounds are called equivocation' \
    'at->round == round &&' 'round &&'
mutant 'guilt: a claim of before the run was born counts' \
    'claim->born_unix_ms == run->born_unix_ms &&' ''
mutant 'guilt: a claim of another run counts' 'strcmp(claim->run, turn->rules->run_id) == 0' 'claim'
by_unit 'guilt: one claim puts another out of the way' coordinator_test \
    '!is_of_use(turn, &all[i])' '!is_of_use(turn, &all[i]) || all[i].author == shower'
by_unit 'guilt: a flood of claims puts another out of the way' claim_copy_test \
    instead 'memset(held, 0, sizeof self->held), (void)shower;'
by_unit 'guilt: few judges decide for many' verdict_test '(too_few_judges)' '(too_few_judges && judges == 0)'
mutant 'guilt: a liar that shows it to some goes free' '!still_open' '!still_open && judges == 0'
by_unit 'guilt: a bloom alone says that a trainer took part' coordinator_test \
    'tally_accepted(&self->tally, client) != NULL ||' ''
by_unit 'guilt: what could not be shown is a claim' witness_test \
    'can_be_shown(member, in)' '(in || can_be_shown(member, in))'
by_unit 'guilt: a claim in a frame of another run is taken' witness_test \
    'strcmp(in->run, member->run) == 0' 'strcmp(in->run, member->run) < 2'
by_unit 'a newcomer inherits the vote of a witness that left' parties_test \
    'round_witness_place(round, member) != NO_MEMBER ||' ''
by_unit 'audit: a residual without a name is wanted for ever' parties_test drop
by_unit 'a witness answers without end' witness_test '&& sighting->answers < ANSWERS_MAX' ''
by_unit 'a witness is asked again and again' tally_test instead \
    'return !(*asked >> *ret_witness & 1) || self->voted < 9;'
by_unit 'a member fills the ledger' coordinator_test drop
mutant 'guilt: two claims prove nothing' '!hash_equal(&known->name, &name)' 'known->round == 0'
mutant 'guilt: a witness keeps one of two claims to itself' drop
mutant 'guilt: one liar names the parameters of the run' instead 'return turn ? 1 : 1;'
mutant 'blobs: what is named again is forgotten with the first attempt' 'entry->first_step' 'entry->step'
by_unit 'blobs: an answer to an earlier question will do' blobs_test \
    'entry->turn == turn' '(turn || 1)'
by_unit 'blobs: what comes late stays' blobs_test 'hash_is_none(hash) || is_known_hash(self, hash)' 'self'
mutant 'blobs: a hash alone is a name' \
    'self->entries[self->places[at] - 1].bytes != bytes' 'bytes == UINT32_MAX'
by_unit 'blobs: what is kept goes, though others need it' blobs_test \
    '--entry->users > 0 || entry->has_step' '(--entry->users, false)'
by_unit 'blobs: a commit waits for the author of its payload' blobs_test 'entry->state == BLOB_HERE' 'self'
by_unit 'blobs: all that a member lacks is urgent that is far behind' blobs_test \
    '&& entry->step + BLOBS_URGENT_STEPS >= member->now.step' '&& member'
by_unit 'blobs: as many steps are kept in the largest run' blobs_test 'fit < wanted' 'fit < 1'
by_unit 'the same neighbours are asked again and again' member_test '(uint64_t)tries * max' '0 * tries'
mutant 'blobs: what was forgotten meanwhile is published' \
    'blobs_spared_since(turn->blobs, &trained->payload)' 'self == NULL'
mutant 'guilt: a member that is refused a vote hears nothing' drop

# ---- the pace of tests/pace ---------------------------------------------------------------------------
mutant 'march: the fastest says what is committed' 'held < least' '(least == UINT64_MAX || held > least)'
mutant 'march: a trainer that is silent since the restart is not waited for' \
    'turn_is_live(turn, member) &&' 'turn_is_live(turn, member) && turn->presence->step_held[member] &&'
mutant 'march: a joiner is never waited for' '|| self->in_step[member]' '|| !self'
mutant 'march: the rest goes back with a commit' \
    after 'ensure(table_return_rest(&run->table, steps->number) == TABLE_OK);'
mutant 'march: a commit is told before it is stored' swap
mutant 'march: a snapshot forgets the march' drop
mutant 'march: an epoch ends in the middle of one' drop
mutant 'march: nobody may be ahead' 'is_open(run) ?' 'run == NULL ?'
mutant 'march: nobody is let in in the middle of one' 'is_open(turn->run)' 'turn == NULL'
mutant 'march: a checkpointer runs ahead' 'member->role != ACTOR_TRAINER' 'member->role == ACTOR_PROVIDER'
mutant 'march: an epoch begins before its first parameters are pinned' 'has_pinned(turn)' 'has_pinned(turn) || self'

# ---- windows ------------------------------------------------------------------------------------------
by_unit 'windows: a step is applied before all have it' holder_test 'self->have == all' '(self->have & bit(self->me) & all) != 0'
by_unit 'windows: LEVEL does not freeze' holder_test '!self->frozen && !self->stopped' '!self->stopped'
by_unit 'windows: HAVE is said after the freeze' holder_test '!self->frozen' 'true'
by_unit 'windows: a window is closed where the slowest stands' holder_test \
    before 'for (uint32_t i = 0; i < count; i++) newest = committed;'
by_unit 'windows: the last step is not applied from memory' holder_test \
    'self->step + 1 == end && holder_has(self)' '(self->step == end)'
by_unit 'windows: a word of another window is taken for one of this' holder_test \
    'window != self->window ||' 'window == 0 ||'
mutant 'windows: the group is of keys, not of processes' \
    'member->instance == place->instance &&' '' 'stands->instance != at->instance' 'stands->instance == 0'
by_unit 'windows: what is held outside the open windows counts' coordinator_test \
    '(stands->window < first->number && stands->step != first->step)' '(stands->window == 0)'
mutant 'windows: a member that has said nothing is not waited for' 'step = run->step' 'continue'
mutant 'windows: the fastest says what is committed' 'step < least' '(least == UINT64_MAX || step > least)'
mutant 'windows: a commit is told before it is stored' swap
by_unit 'windows: a member that is left out stays in the group' coordinator_test 'standing_stays(self, run,' \
    '((void)self, 1) && standing_is_intact(run,'
by_unit 'windows: a member that answers is put out because another calls it dead' coordinator_test '~spoken' '~(spoken & 0)'
by_unit "windows: one member's word puts out all others" coordinator_test '<= __builtin_popcountll(answered) ? all' '< 64 ? all'
by_unit 'windows: a learner that hangs, and whom nobody calls overdue, is waited for' coordinator_test \
    'if (asked_ms &&' 'if (asked_ms == 1 &&'
by_unit 'windows: a member that always names another as late fills the log' coordinator_test \
    'if (self->noted_ms &&' 'if (self->noted_ms == 1 &&'
by_unit 'windows: a learner that hangs is waited for' coordinator_test 'late & ~answered' 'late & answered'
by_unit 'windows: a step that nobody can have reached is committed' coordinator_test '~fit' '~counts'
by_unit 'windows: a group that cannot go on tries again at once' coordinator_test 'self->fruitless <= TRIES' 'self'
by_unit 'windows: a link that breaks again and again is tried for ever' coordinator_test 'again &&' 'again && !self &&'
by_unit 'windows: a member that is overdue again and again is waited for' coordinator_test 'member == self->last_overdue' 'false'
mutant 'windows: a group that has stopped is waited for' 'standing_has_stopped(self, run, &end)' 'standing_has_stopped(self, run, &end) && end == 0'
by_unit 'windows: a step that is void again and again is tried for ever' coordinator_test \
    'voided_pauses(turn->run) && !turn' 'voided_pauses(turn->run) && !turn->run && !turn'
by_unit 'windows: a window that never was hides those that are' coordinator_test drop
mutant 'windows: a check that differs is not seen' '!self->frozen' 'self->frozen'
mutant 'windows: a step whose checks differ is applied' '&& !self->differs' ''
by_unit 'windows: a step whose checks differ is applied from memory' holder_test '&& !self->differs' ''
by_unit 'windows: the same leaves are checked at every step' windows_learner_test 'step % period' '(step - step) % period'
mutant 'windows: a member whose state differs stays in the group' 'if (differ & bit(i) &&' 'if (!run &&'
by_unit 'windows: a state that is known to differ speaks for the run' coordinator_test \
    'closing->differ >> i & 1' '(closing->differ & 0) >> i & 1'
by_unit 'windows: who was named is forgotten when a window closes without a step' coordinator_test \
    'if (steps->end > steps->step) ' ''
mutant 'windows: a snapshot forgets who was named' drop
by_unit 'windows: a step that was pinned is taken for kept' coordinator_test \
    'run->step == turn->rules->first_step' 'run->pin_step == run->step'
by_unit 'windows: a run that needs more trainers to go back does not say so' coordinator_test 'here < wanted' 'here < wanted - 1'
by_unit 'windows: new processes of members that died are nobody else' coordinator_test \
    '+ roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY)' ''
by_unit 'windows: a process that has just come back is not heard' coordinator_test \
    '!turn->presence->pinged[i]' '(!turn->presence->pinged[i] && !turn)'
by_unit 'late: who is out cannot end the last cooldown' coordinator_test \
    '|| cooldown_lacks_trainers(turn) ' '|| (cooldown_lacks_trainers(turn) && !turn) '
by_unit 'windows: a run without a majority goes on' coordinator_test 'reports > 1 &&' 'reports > 64 &&'
by_unit 'windows: the owner is told to stop all, and there is no checkpoint' coordinator_test \
    'run_has_checkpoint(run)' 'run'
by_unit 'windows: a run that goes back once more trainers are here does not say so' coordinator_test \
    'if (to_go_back)' 'if (to_go_back > UINT16_MAX - 1)'
by_unit 'windows: a run whose newest step is lost does not say so' coordinator_test \
    'is_given_up(self, turn)' '!turn && is_given_up(self, turn)'
by_unit 'windows: a strike is not counted' coordinator_test '>= STRIKES_MAX' '>= STRIKES_MAX + 200'
mutant 'windows: the samples of a closed window are lost' '< self->open' '+ 1 < self->open'
mutant 'windows: a snapshot forgets the second window' drop
by_unit 'windows: a member that cannot reach the end goes on from where it stands' windows_member_test '!said->ok' '!said'
by_unit 'a dropped state is told in each PING' replica_test drop
by_unit 'windows: a member leaves in the middle of a step' windows_member_test 'windows_member_in_hand(self)' '!self'
by_unit 'windows: a checkpoint that the owner wants waits for the end of the epoch' coordinator_test \
    'turn->presence->wants_end' 'turn->presence->wants_end && !turn'
by_unit 'windows: after a restart a joiner ends the epoch at once' coordinator_test drop
by_unit 'windows: a barrier waits for the lease of a dead member' coordinator_test drop
by_unit 'windows: a stop ends the next window as well' coordinator_test \
    'stands->window <= windows_run_of(run)->closing.closed' '!stands'
by_unit 'windows: a member that leaves is in the next window' coordinator_test '|| !self->stands[member].leaves' '|| self'
by_unit 'windows: a search of an earlier epoch goes on' coordinator_test drop
by_unit 'windows: who comes back to a run that has given its window up keeps its steps' windows_member_test \
    'end < stands->step' 'end + 99 < stands->step'
by_unit 'windows: who stood at a step that was given up is waited for' coordinator_test \
    'stands->window > windows_run_of(run)->before_restore' 'stands->window > 0 * run->number'
mutant 'windows: a snapshot forgets which windows were before a restore' drop
by_unit 'windows: one false word about a window to come hides all that a member says' coordinator_test \
    'seq > kept->seq' 'false && seq > kept->seq'
by_unit 'windows: a run that waits for who may hold its newest step does not say so' coordinator_test \
    'is_searched(self, turn)' 'false && is_searched(self, turn)'
by_unit 'windows: who was waited for in vain is waited for again' coordinator_test \
    'since_ms ? since_ms : turn->now_ms' 'turn->now_ms + 0 * since_ms'
by_unit 'windows: a member that never says its later steps is waited for' coordinator_test \
    '(self->behind_ms &&' '(false && self->behind_ms &&'
by_unit 'windows: a search for a lost state counts as a barrier' coordinator_test \
    'turn->run->epoch == self->barrier_epoch' 'true'
by_unit 'windows: members that have said nothing are enough to give a step up' coordinator_test \
    'turn->presence->pinged[i]' 'true'
by_unit 'windows: a process that may come back is not waited for' coordinator_test '(!turn->presence->pinged[i] && !is_old) ||' '(is_old && knew) ||'
by_unit 'keeping: copies from before a restore are kept' coordinator_test \
    'said->kept_window == memory->copied_in &&' ''
by_unit 'keeping: a memory save is whole before all keep their part' coordinator_test \
    'i < first->group_count' 'i < 1'
mutant 'keeping: a process that has restarted keeps what it kept' 'member->instance == place->instance &&' ''
by_unit 'keeping: who alone keeps what the run went back to is not waited for' coordinator_test \
    'self->keepers[i].member == member' '(self->keepers[i].member == member && !self)'
by_unit 'keeping: a keeper that was replaced is waited for' coordinator_test \
    'member->instance == place->instance &&' ''
by_unit 'keeping: a keeper is waited for though the others have all shares' coordinator_test '!= UINT32_MAX' '!= UINT32_MAX || self'
by_unit 'keeping: a keeper is waited for though a share is lost for certain' coordinator_test \
    'may_live) == UINT32_MAX' 'may_live) <= UINT32_MAX'
by_unit 'windows: who keeps what the run went back to is not waited for' coordinator_test \
    'memory_save_may_keep(&windows_run_of(turn->run)->memory, turn->run, windows_config(turn->rules)->buddies, member)' 'false'
by_unit 'keeping: a share is looked for with one buddy more than have it' coordinator_test 'i <= buddies' 'i <= buddies + 1'
by_unit 'keeping: a memory save lacks a share and is gone back to' coordinator_test '!found' '!found && !self'
by_unit 'keeping: an answer about earlier copies will do' windows_member_test '|| said->turn != self->turn' ''
mutant 'keeping: a list goes before all have it' 'self->whole = true;' 'keeper_drop(self, turn);'
mutant 'keeping: the data position of a memory save is that of a later step' \
    'first_marked(self, turn, COPIED, from, end)' '0'
by_unit 'shares: what only the first has is in the lists of all' share_list_test 'rest == SHARE_ALIKE ||' 'rest != SHARE_ALIKE || self.count < 99 ||'
by_unit 'shares: a buddy of the first lacks what only that one has' share_fetch_test 'job->apart ? list.count : list.cut_count' 'list.cut_count'
by_unit 'keeping: copies from before a break are put on record' coordinator_test drop
by_unit 'keeping: a memory save that was given up is gone back to' coordinator_test \
    'self->kept.at.step <= step' 'self->kept.at.step <= step || self'
mutant 'keeping: a snapshot forgets the copies that are not kept yet' drop
mutant 'keeping: a snapshot forgets the memory save' drop
mutant 'keeping: a run goes back to an older step than it must' 'way.point.step >= saved' 'way.point.step < saved'
by_unit 'leases: a task whose samples nobody gave has failed' coordinator_test \
    'said->no_data ?' '(said->no_data && !turn) ?'
by_unit 'leases: who lacks samples gets task after task' coordinator_test drop
by_unit 'leases: a trainer that nobody gives samples ends' leases_member_test '&& !said->no_data' ''
by_unit 'copying: what a server keeps of an earlier save counts' coordinator_test \
    'is_of_newest(turn, busy->kept.number, busy->kept.step)' 'turn'
by_unit 'copying: a server that could not copy is waited for' coordinator_test 'hash_is_none(&copy->list.hash)' '(hash_is_none(&copy->list.hash) && !turn)'
by_unit 'copying: a memory save whose servers have different digests is on record' coordinator_test \
    '!hash_equal(digest, one)' '(!hash_equal(digest, one) && !turn)'
by_unit 'copying: a step that is saved is copied, too, and has two states' coordinator_test '&& !is_saved' '&& (!is_saved || turn)'
mutant 'copying: a step that is copied is saved, too, and has two states' '|| is_copied(turn)' '|| (is_copied(turn) && !turn)'
by_unit 'copying: servers are told to copy before that is stored' coordinator_test swap
by_unit 'copying: a memory save is on record before all servers keep their part' coordinator_test '!to_copy && !to_keep' '!to_copy && to_keep != owners(turn)'
by_unit 'copying: a server copies for an earlier group' leases_member_test '|| said->number != self->in_hand' ''
by_unit 'copying: the shares of other copies than the newest are fetched' leases_member_test '|| said->step != self->copy_step' ''
by_unit 'copying: a copy that is on record makes room for the next before that is known' leases_member_test drop
by_unit 'copying: a copy that the run has given up stays in memory' leases_learner_test drop
by_unit 'leases: a server of a run in bf16 answers with what lay there before' leases_learner_test drop
by_unit 'older: a save that was removed is offered' coordinator_test 'i < OLDER_SAVES_MAX' 'i < OLDER_SAVES_MAX && keep > 99'
by_unit 'older: a save is forgotten once there is a newer one' coordinator_test '!self->restore_point.at.pieces' 'self'
by_unit 'older: a save that was given up is gone back to' coordinator_test 'self->restore_point.at.step > step' 'self->restore_point.at.step > step + 99'
mutant 'older: a snapshot forgets the older saves' '&from->older_1' '&from->save_point'
by_unit 'older: a save that the run has left is given up' coordinator_test '|| said->step != run->step || !hash_equal(&said->digest, &run->digest)' ''
by_unit 'older: words of members that have not been heard since count' coordinator_test '!are_heard(turn)' '(!are_heard(turn) && !turn)'
by_unit 'older: one that cannot read the newest save takes the run back' coordinator_test '&& speakers == here' ''
by_unit 'older: a run goes back further than it must' coordinator_test 'point->at.step > back->at.step' 'point->at.step < back->at.step'
by_unit 'older: a run goes back to an older save and does not say so' coordinator_test 'unread_by_all(&self->unread, turn)' '!turn'
by_unit 'older: a save of which the numbers are damaged is taken for whole' windows_saves_test drop
mutant 'older: the save that a run may go back to is removed' 'step = older->step' 'step = older->step + 1'
mutant 'older: nobody hears that a save cannot be read' 'outbox_mail(out,' 'if (!member) outbox_mail(out,'
by_unit 'keeping: a window that was given earlier drops the newest save' windows_copies_test '!same && (window->drops || learner_copies_is_later(&copies->of, window->kept_window, window->kept_step))' '!same'
by_unit 'data: without it everybody has missed the round' coordinator_test 'proved && data' 'proved'
by_unit 'late: with unhealthy_rounds = 1 nobody is on probation' coordinator_test 'limit > 1 ? limit - 1 : 1' 'limit - 1'
by_unit 'a checkpoint that is refused is registered for ever' roles_test drop
by_unit 'a long epoch fills the table of blobs' roles_test 'count > BLOBS_MAX / 2' 'count > BLOBS_MAX'
by_unit 'group: one whose window is broken is told nothing more' group_test 'peer->formed > self->window' 'peer->fault || peer->formed > self->window'
by_unit 'group: a result is given its place twice' group_sum_test drop
by_unit 'group: a part is given its place twice' group_sum_test drop
by_unit 'group: a question comes before the answer to the one before it' group_questions_test '!may ||' '(!may && !self) ||'
by_unit 'group: a question brings as many floats as it likes' group_questions_test 'self->question_bytes' 'message->offset'
by_unit 'group: the end of a member overtakes its question' group_questions_test 'phase != TALK_WAITS && phase != TALK_LENT && ' ''
by_unit 'async: a new process begins where the old one stood' async_test drop
by_unit 'async: versions of a lost server are taken for those of its successor' async_test 'if (is_new)' 'if (is_new && !self)'
by_unit 'async: the limit falls to nothing' async_test 'limit > 0 ? limit : 1' 'limit'
by_unit 'async: a push of an older process is applied' async_test 'push->instance' 'line ? line->instance : 0'
by_unit 'async: a push that was meant for a lost server is applied' async_test drop
by_unit 'async: a retry of a discarded push is said to be applied' async_test drop
by_unit 'async: a retry is applied twice' async_test 'push->sequence <= line->sequence' 'push->sequence < line->sequence'
by_unit 'async: a push under the lease of another trainer is applied' async_test 'if (!may_use_lease(self, push, line))' 'if (!may_use_lease(self, push, line) && !line)'
by_unit 'async: a push names parameters that its trainer was never given' async_test drop
by_unit 'async: a stale push is applied' async_test '>= async_server_limit(self)' '> async_server_limit(self)'
by_unit 'async: a gradient that is not finite is applied' async_test '!are_finite(gradient, floats)' '!are_finite(gradient, floats - 6)'
by_unit 'async: a retry of a discarded push counts again' async_test drop
by_unit 'async: what is left at the end of a task is not pushed' async_test '|| (task_ends && self->batches > 0)' '|| (task_ends && !self)'
by_unit 'async: a trainer whose push was stale does not pull' async_test '|| self->must_pull' ''
by_unit 'async: batches until a pull are counted from the last push on' async_test 'self->batches = 0;' 'self->batches = self->since_pull = 0;'
by_unit 'async: a push is the sum of its batches' async_test drop
by_unit 'shares: a member that lives is called dead, as one of the group before is' windows_saves_test 'work->placed ? group_dead(work->group) : 0' 'group_dead(work->group)'
by_unit 'servers: a group begins without one of its servers' coordinator_test 'servers >= places_servers_wanted(turn)' 'turn'
by_unit 'servers: those that stand by crowd the trainers out of the list' linking_test 'places_servers_wanted(turn), &list' 'WINDOW_MEMBERS_MAX, &list'
by_unit 'servers: a trainer that does not reach a server puts it out of the run' coordinator_test '(member_of(run, &group[i])->role == ACTOR_SERVER) == spares' 'spares && count > 99'
by_unit 'servers: of two trainers that die one after the other the second costs the state' coordinator_test \
    '|| closing.left_out != 0' ''
by_unit 'windows: one that hears another stop because of a death is left out' coordinator_test \
    'places != all_places(turn->run)' 'places == 0'
by_unit 'servers: a trainer that loads a state is in the next window' coordinator_test 'stands->enters' 'stands'
by_unit 'servers: a trainer enters without its links' coordinator_test '|| !linking_stands(self, &place, group, count)' ''
by_unit 'servers: an epoch ends for a trainer that can enter' coordinator_test '&& !may_enter(self, turn, i, false)' ''
by_unit 'servers: the run waits for good for trainers that it has left out' coordinator_test \
    'self->apart && !windows_are_open(turn->run)' 'false'
by_unit 'servers: without trainers the shares of the servers are lost' coordinator_test 'self->apart' '!self'
by_unit 'servers: a pending member is in a group' coordinator_test '== MEMBER_PENDING' '> 250'
by_unit 'servers: a restart of the coordinator loses the shares that servers keep' coordinator_test 'may_be_apart(turn)' 'may_be_apart(turn) && !turn'
by_unit 'servers: a trainer without a state is left out' coordinator_test 'i >= owner' 'i + owner >= owner'
by_unit 'servers: a trainer without a state is waited for' coordinator_test drop
by_unit 'servers: who holds the state enters without it' windows_member_test 'replica->holding &&' 'replica->holding && !window &&'
by_unit 'servers: a trainer enters a window that is over' windows_member_test '&& window->number > self->closed' ''
by_unit 'servers: a trainer without a state keeps its group from a step' windows_member_test 'replica->needs_no_state ||' ''
by_unit 'servers: a trainer that has come is taken for the one before it' windows_servers_test 'learner_same_group(work->now, window)' 'work->now'
by_unit 'servers: a trainer that came within the epoch counts the steps since' windows_servers_test \
    '!filling->gather->alike' 'filling'
by_unit 'servers: an epoch ends for a server that has no place' coordinator_test 'if (trains && here &&' 'if (here && run->roster.count > trains &&'
by_unit 'servers: a run begins before its servers are here' coordinator_test 'if (here >= wanted) return NULL;' 'if (here + wanted) return NULL;'
by_unit 'servers: a server joins a run that has none' coordinator_test '!(turn->pace->servers && turn->pace->servers(turn->rules))' 'join->instance == 0'
by_unit 'keeping: of two saves of a window the older one counts as the newest' windows_copies_test '(in == copies->kept_in && step > copies->kept_step)' '(in == copies->kept_in && step != copies->kept_step)'
by_unit 'keeping: what is not on record outlives a break' windows_copies_test drop
by_unit 'keeping: a member whose copy is not on record is not waited for' windows_copies_test drop
by_unit 'pieces: a view is of items that the save does not have' state_pieces_test instead '(void)workers;'
by_unit 'keeping: the list of another step is taken' windows_copies_test '|| have->copy != copies->of.step' ''
mutant 'windows: who has put the shares together is taken for one with its own alone' 'kept->share &=' 'kept->share |='
by_unit 'windows: a member that dies with its share may bring all of the state back' windows_member_test \
    'self->stands.share = share' 'self->stands.share = share && !self'
by_unit 'members: an earlier word of what a member holds takes the place of a later one' coordinator_test drop
by_unit 'windows: a later closing is taken for that of this window' windows_member_test '&& self->closed_from <= self->newest' ''
by_unit 'saves: somebody who took no part says what was saved' coordinator_test drop
by_unit 'saves: one member says for all what is saved' coordinator_test 'most_have_marked(self, turn, mark, step)' '(most_have_marked(self, turn, mark, step) || self)'
by_unit 'windows: who can make the newest step is not waited for' coordinator_test 'if (is_near)' 'if (is_near && !run)'
by_unit 'windows: who stands at the newest step is not among those that hold it' coordinator_test 'stands_at_end(said, turn->run)' 'stands_at_end(said, turn->run) && !said'
by_unit 'windows: who says that it holds the step and never reports it is believed for ever' coordinator_test \
    '!self->claimed_ms ||' 'true ||'
by_unit 'windows: most hold the step and do not hear us, and the run goes back' coordinator_test \
    'holdings_most_have(turn)' '(holdings_most_have(turn) && !turn)'
by_unit 'windows: who has reported the step is not among those that hold it' coordinator_test \
    'holdings_somebody_says(&self->holdings, turn)' 'holdings_somebody_has(turn)'
by_unit 'windows: who has said once that it can make a step is waited for' coordinator_test 'said->has && !said->share ? said->step + 1 : 0' \
    'said->has ? said->step + 1 : kept->can_make'
by_unit 'windows: one member that says it is further takes the state from the others' coordinator_test \
    'bare && (more' '!bare && (more'
mutant 'saves: a snapshot forgets who saves' 'self->savers_count = from->savers_count;' 'self->savers_count = 0;'
by_unit 'windows: what is in memory of an earlier window counts' coordinator_test \
    '&& is_of_open(run, stands->window)' '&& run'
by_unit 'windows: a step of another window is applied from memory' windows_member_test \
    'steps->number >= self->first && steps->number <= self->newest' 'steps->number > 0 && self'
by_unit 'windows: who comes back to a run whose later windows have passed its step keeps its steps' windows_member_test drop
by_unit 'windows: who is left behind is taken for one that holds the newest step' windows_member_test drop
by_unit 'windows: a frozen window is begun all the same' windows_member_test drop
by_unit 'windows: a joiner makes the links of all others doubtful' coordinator_test \
    'if (place != NO_MEMBER) list' 'if (place != NO_MEMBER && old->count == 0) list'
by_unit 'windows: what is said of another list counts' coordinator_test 'said->linking == list->number &&' 'list->number &&'
by_unit 'windows: a link stands if one of its ends says so' coordinator_test 'bit(j) && self' 'bit(j) || self'
by_unit 'windows: an epoch ends for a trainer whose links do not stand' coordinator_test '&& !first_unlinked(self, run, &trainer)' ''
by_unit 'windows: an epoch waits for a trainer that cannot enter it' coordinator_test drop
by_unit 'windows: a joiner drives a member out of the group' coordinator_test '+= WINDOW_MEMBERS_MAX' '+= 0'
mutant 'windows: a window names trainers that have no link' 'linking_choose(self, turn, group, count)' 'count'
by_unit 'windows: a checkpointer looks into its newest folder alone' replica_test 'self->follows_pins' 'self == NULL'

while IFS= read -r mark; do
    echo "$mark: a mark without a mutant, or one mark too many"; broken=$((broken + 1))
done < <(sed -E 's#^([^:]*:[0-9]*):\s*// mutant: (.*)#\2\t\1: \2#; s# \([0-9]+\)\t#\t#' "$MARKS" |
         awk -F '\t' 'NR == FNR { known[$0]; next } !($1 in known) { print $2 }' <(printf '%s\n' "${names[@]}") -)

[ $((lived + broken)) -eq 0 ] && echo "no mutant lived${CHECK:+: none was run, each finds what it breaks}" ||
    echo "$lived lived, $broken could not be made"
exit $((lived + broken > 0))
