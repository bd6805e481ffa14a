#!/usr/bin/env bash
# mutants -- breaks the cores on purpose, one way at a time, and asks the simulator whether it notices. A
# mutant that lives names a check that we lack.
#
#     tests/sim/mutants.sh                all of them, at most 5000 seeds each
#     tests/sim/mutants.sh tally          those whose name or file matches
#     SEEDS=500 tests/sim/mutants.sh
#     tests/sim/mutants.sh --check        runs none: only that each still finds the line it breaks
#
# Works on a copy of the tree and leaves this one alone. Exit 1 if a mutant lived, if one no longer
# finds the line it breaks, or if the seed that catches it breaks the sound tree as well.

set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
seeds=${SEEDS:-5000} only=${1:-} lived=0 broken=0 check=
[ "$only" != --check ] || check=1 only=

tar -C "$top" --exclude=./build --exclude=./.git -cf - . | tar -C "$copy" -xf -
cd "$copy" || exit 1
build() { [ -n "$check" ] || make -s B="$copy/b" "$copy/b/$1" >"$copy/log" 2>&1; }
build bin/sim || { cat "$copy/log"; exit 1; }
[ -n "$check" ] || cp "$copy/b/bin/sim" "$copy/sound"
[ -n "$check" ] || printf '%-58s %8s  %s\n' mutant seed 'what noticed'

# mutate FILE EXPRESSION: perl, over the whole file at once; the file must change.
mutate() {
    cp -p "$1" "$copy/original.$(basename "$1")"
    perl -0777 -pi -e "$2" "$1"
    ! cmp -s "$1" "$copy/original.$(basename "$1")"
}
restore() { for file in "$@"; do mv "$copy/original.$(basename "$file")" "$file"; touch "$file"; done; }

verdict() {                                         # NAME SEED WHAT
    printf '%-58s %8s  %s\n' "$1" "$2" "$3"
    [ "$2" != - ] || lived=$((lived + 1))
}

# mutant NAME FILE EXPRESSION [FILE EXPRESSION]: caught by the simulator.
mutant() {
    local name=$1 files=() seed what; shift
    [[ -z $only || "$name $*" == *"$only"* ]] || return 0
    while [ $# -gt 0 ]; do
        mutate "$1" "$2" || { echo "$name: nothing to break in $1"; broken=$((broken + 1)); }
        files+=("$1"); shift 2
    done
    if [ -n "$check" ]; then :
    elif build bin/sim; then
        "$copy/b/bin/sim" --seeds 1 "$seeds" --first >"$copy/out" 2>"$copy/err"
        seed=$(sed -n 's/.*the first is seed \([0-9]*\).*/\1/p' "$copy/out")
        what=$(sed -n "s/^  seed $seed: \(.*\) at [0-9.]* s: \(.*\)/\1: \2/p" "$copy/out" | head -n 1)
        case $what in 'no core dies'*) what="a core's ensure(): $(grep -m 1 'must hold' "$copy/err" | sed 's/.*must hold: //')" ;; esac
        if [ -n "$seed" ] && ! "$copy/sound" "$seed" >"$copy/out" 2>&1; then
            echo "$name: seed $seed breaks without it, too"; broken=$((broken + 1))
        else verdict "$name" "${seed:--}" "${what:-}"
        fi
    else
        echo "$name: does not build"; cat "$copy/log"; broken=$((broken + 1))
    fi
    restore "${files[@]}"
}

# by_unit NAME TEST FILE EXPRESSION: outside the cores, caught by a unit test.
by_unit() {
    local name=$1 test=$2 seed what; shift 2
    [[ -z $only || "$name $*" == *"$only"* ]] || return 0
    mutate "$1" "$2" || { echo "$name: nothing to break in $1"; broken=$((broken + 1)); }
    if [ -n "$check" ]; then :
    elif build "unit/$test"; then
        what=$("$copy/b/unit/$test" 2>&1 | sed -n 's/.*\[  FAILED  \] \([A-Za-z0-9_.-]*\)$/\1/p' | head -n 1)
        seed=${what:+unit}
        verdict "$name" "${seed:--}" "${what:+$test: $what}"
    else
        echo "$name: does not build"; cat "$copy/log"; broken=$((broken + 1))
    fi
    restore "$1"
}

C=actors/coordinator M=common/member W=actors/witness T=actors/trainer

# ---- said before it is durable ------------------------------------------------------------------------
mutant 'a commit is published before it is stored' $C/round.c \
    's/(    coordinator_put\(self, FRAME_RECORD_COMMIT[^\n]*\n)(    outbox_news\(out, FRAME_COMMIT[^\n]*\n)/$2$1/'
mutant 'a member is admitted before it is stored' $C/coordinator.c \
    's/    outbox_store\(out, kind, record\);\n/    if (kind != FRAME_RECORD_MEMBER) outbox_store(out, kind, record);\n/' $C/members.c \
    's/(    outbox_mail\(out, in->from, FRAME_ADMITTED.*?\}\);\n)/$1    outbox_store(out, FRAME_RECORD_MEMBER, &run->members[index]);\n/s'
mutant 'a claim is sent before it is journalled' $T/trainer.c \
    's/(    outbox_store\(out, FRAME_JOURNAL, &self->journal\);\n)(    outbox_news\(out, FRAME_CLAIM, &self->claim\);\n)/$2$1/'
mutant 'a vote is sent before it is journalled' $T/trainer.c \
    's/(        outbox_store\(out, FRAME_JOURNAL, &self->journal\);\n    \}\n)(    witness_send\([^\n]*\n)/$2$1/; s/(    if \(witness_is_due)/    witness_is_due(&self->witness, &self->blobs, &self->member);\n$1/; s/self->journal.vote_round = self->witness.round;\n/$&        witness_send(&self->witness, &self->member, in->now_ms, out);\n/'
mutant 'a restart forgets that it has voted' $T/trainer.c \
    's/        self->witness.voted_round = self->journal.vote_round;\n//'
by_unit 'what was claimed is forgotten' trainer_test $T/trainer.c \
    's/self->journal.claim_round >= round->round/false/'

# ---- votes ----------------------------------------------------------------------------------------------
mutant 'an unelected vote is counted' $C/round.c \
    's/(uint32_t place = run_witness_place\(run, member\);\n)/$1    if (place == NO_MEMBER) place = 0;\n/'
mutant 'a witness is counted twice' $C/tally.c 's/    if \(self->has_voted\[witness\]\) return TALLY_TWICE;\n//'
mutant 'a quorum is rounded down' common/run/quorum.c 's/\(2 \* elected \+ 2\) \/ 3/(2 * elected) \/ 3 + !(elected \/ 2)/'
mutant 'votes are counted by batch, not by result' $C/tally.c \
    's/return a->payload_bytes == b->payload_bytes.*?;/return a->client == b->client;/s'
by_unit 'a witness forgets the claims of the round before' witness_test $W/witness.c \
    's/    else if \(round == self->round_before\)[^\n]*\n//'
by_unit 'who is behind votes for any base' witness_test $W/witness.c 's/\(!hash_is_none\(&self->base\) &&/(hash_is_none(\&self->base) ||/'
mutant 'a witness takes a claim of any size' $W/witness.c \
    's/claim->payload_bytes == member->config.payload_bytes &&/claim->payload_bytes > 1 \&\&/'
by_unit 'a vote for a result of any size is counted' coordinator_test $C/round.c \
    's/ \|\|\n *vote->seen\[i\].payload_bytes != self->rules.frame.payload_bytes\) return false;/) return false;/'
by_unit 'the only holder may go' coordinator_test $C/members.c 's/    if \(takes_part && is_needed\(self, index\)\) \{/    if (takes_part \&\& is_needed(self, index) \&\& !takes_part) {/'
mutant 'a vote names what is only on its way' $W/witness.c \
    's/return sighting->claimed && blobs_state\(blobs, &payload\) == BLOB_HERE;/return sighting->claimed \&\& blobs \&\& payload.bytes;/'
mutant 'votes of the last round count in the next' $C/tally.c \
    's/    memset\(self->has_voted, 0, sizeof self->has_voted\);\n//'

# ---- samples --------------------------------------------------------------------------------------------
mutant 'a batch is lost: what was not accepted is done' $C/run.c \
    's/ensure\(table_return_rest\(&self->table, commit->round\) == TABLE_OK\);/if (count == 0) ensure(table_done(&self->table, commit->round, self->dealt, self->dealt_count) == TABLE_OK);\n    $&/'
mutant 'a batch is dealt twice' $C/run.c \
    's/    ensure\(table_done\(&self->table, commit->round, self->scratch, count\) == TABLE_OK\);\n/    (void)count;\n/'
by_unit 'what was trained counts for a round made anew' trainer_test actors/trainer/trainer.c \
    's/ self->made_anew \|\|//'
mutant 'a trainer trains the samples beside its own' $M/member.c \
    's/dealt_count, begin, end, NULL/dealt_count, begin + 1, end + 1, NULL/'

by_unit 'data: any order of the pinned files is let in' coordinator_test $C/members.c \
    's/ && !hash_equal\(&digest, pin\)\)/ \&\& join->samples == 0)/'
by_unit 'data: who joins first binds the run for ever' coordinator_test $C/members.c \
    's/run->round\.round > 0 \|\| others > 0/run->round.round > 0 || others < MEMBERS_MAX/'
by_unit 'data: what was trained on becomes other data' coordinator_test $C/members.c \
    's/run->round\.round > 0 \|\| others > 0/others > 0/'
by_unit 'data: a provider changes its mind without end' coordinator_test $C/members.c \
    's/\(binds \|\| differs\) && changes/differs \&\& changes/'
by_unit 'data: tokens begin where a provider likes' proof_test common/data/proof.c \
    's/if \(!is_begin_of_tokens\(/if (offset >= file->bytes \&\& !is_begin_of_tokens(/'
by_unit 'data: a pass has as many samples as somebody said' proof_test common/run/dataset.c \
    's/    hasher_add\(&hasher, number, sizeof number\);\n/    (void)number;\n/'
by_unit 'data: who is slow is never left' bulk_server_test common/bulk/providers.c \
    's/took_ms < slow_ms \? peer/took_ms < 3 * slow_ms ? peer/'
by_unit 'data: who was good is forgotten with the list' bulk_server_test common/bulk/providers.c \
    's/peer->is_kept = true;/peer->is_kept = false;/'
by_unit 'data: who is silent costs his patience each time' bulk_server_test common/bulk/providers.c \
    's/    if \(a_failed != b_failed\) return b_failed;\n/    if (a_failed != b_failed && self->count == 0) return b_failed;\n/'
by_unit 'fetch: the first holders take all credit' bulk_slow_test common/bulk/peers.c \
    's/self->bytes \+ peer->bytes \+ bytes <= /self->bytes + bytes <= /'
by_unit 'fetch: nobody is slow' bulk_slow_test common/bulk/peers.c \
    's/peer->is_slow = is_late\(want, now_ms\);/peer->is_slow = false;/'
by_unit 'fetch: who is slow keeps his connection' bulk_slow_test common/bulk/peers.c \
    's/self->is_crowded = true;/self->is_crowded = false;/'
by_unit 'data: some providers are never asked' member_test $M/member.c \
    's/\(self->index \+ self->round\.round\) % all/self->index % all/'

# ---- replicas -------------------------------------------------------------------------------------------
by_unit 'a commit of any size is fetched' replica_test $M/replica.c \
    's/ \|\| !is_of_size\(commit, member->config.payload_bytes\)/ || (false \&\& !is_of_size(commit, member->config.payload_bytes))/'
by_unit 'a model of any size is trained' replica_test $M/replica.c \
    's/built->ok && built->payload_bytes == bytes;/built->ok;/'
by_unit 'a checkpoint of an earlier run is taken for one of this' replica_test $M/replica.c \
    's/own_step < member->config.genesis_step/own_step < 0 * member->config.genesis_step/'
mutant 'only a run from step 1 has its parameters in a folder' $M/replica.c \
    's/run->pin_step == member->config.genesis_step/run->pin_step == 0/'
mutant 'the folder of an earlier run is taken for step 0' $M/replica.c \
    's/load\(self, member->config.genesis_step, /load(self, 0, /'
mutant 'own view is applied instead of the commit' $M/replica.c \
    's/if \(blobs_state\(blobs, &payload\) != BLOB_HERE\) return false;/(void)blobs, (void)payload;/; s/(    for \(uint32_t i = 0; i < commit->accepted_count; i\+\+\) \{\n        const struct wire_accepted \*accepted = &commit->accepted\[i\];\n)        self->payloads\[i\] = ([^\n]*)/$1        const struct wire_blob name = payload_of(accepted);\n        if (blobs_state(blobs, &name) != BLOB_HERE) continue;\n        self->payloads[held++] = $2/; s/(\n    job.pin = \(commit->step)/\n    job.payloads_count = held;$1/; s/(static void apply\(struct replica \*self,)/$1 const struct blobs *blobs,/; s/(    struct wire_apply job = \{)/    uint32_t held = 0;\n$1/; s/apply\(self, member, &next->commit/apply(self, blobs, member, &next->commit/'
mutant 'a residual is adopted before its commit' $M/replica.c \
    's/(    job.pin = \(commit->step)/    if (own_claim && !hash_is_none(own_claim) && member_pending_payload) job.own_payload = *member_pending_payload;\n$1/; s/(static void apply\()/extern const struct hash *member_pending_payload;\n$1/' $T/trainer.c \
    's/(static void publish\()/extern const struct hash *member_pending_payload;\nconst struct hash *member_pending_payload;\n$1/; s/(void trainer_step\(void \*state.*?\n    struct trainer \*self = state;\n)/$1    member_pending_payload = &self->claim.payload;\n/s'
mutant 'a residual is never adopted' $M/replica.c 's/            job.own_payload = accepted->payload;/            (void)accepted;/'
mutant 'an older incarnation of the coordinator is heard' $M/member.c 's/ \|\| in->incarnation < self->incarnation\) return 0;/) return 0;/'
mutant 'only the news say which step is pinned' $M/replica.c \
    's/ &&\n           settle\(self, run->pin_step, &run->pin_digest, out\)/ \&\& run/'
mutant 'who is stuck on its own folder tries it again' $M/replica.c \
    's/start_over\(self, true\)/start_over(self, false)/g; s/run->checkpoint_step == 0 &&\n           self->failures > 0/true/'
mutant 'a folder that failed is never read again' $M/replica.c \
    's/        self->peers_turn = false; [^\n]*\n//'
mutant 'what is held is told once and for all' $M/replica.c 's/self->told_seq != member->now.log_seq/self->told_seq == UINT64_MAX/'

# ---- recovery -------------------------------------------------------------------------------------------
mutant 'a restart does not finish a half-finished move' $C/coordinator.c \
    's/ else if \(self->run.phase == PHASE_TRAIN \|\| self->run.phase == PHASE_WITNESS\) \{\n.*?\n    \}/ else {\n        round_tail();\n    }/s; s/(static void start\()/static void round_tail(void) { }\n\n$1/'
mutant 'a deadline is kept over a reboot' $C/round.c \
    's/\.epoch_elapsed_ms = now_ms - self->epoch_began_ms/.epoch_elapsed_ms = now_ms + self->rules.train_ms/' $C/coordinator.c \
    's/(        round_resume\(self, in->now_ms\);\n)/$1        self->deadline_ms = self->run.epoch_elapsed_ms;\n/'
mutant 'a coordinator whose disk fell behind is followed' $M/position.c 's/        doubt\(self, in, out\);\n        return false;/        doubt(self, in, out);/'
mutant 'what members saw is not held against the ledger' $C/coordinator.c \
    's/    outbox_job\(out, PORT_DISK, FRAME_POSITION, said\);\n//'
mutant 'who lost its journal claims once more' $T/trainer.c \
    's/ \|\| round->round <= own->joined_round\) return;/) return;/'
mutant 'another run of the name is taken for the same' $M/member.c \
    's/if \([^\n]*admitted->born_unix_ms != self->born_unix_ms\) \{/if (self == NULL) {/'
mutant 'what was promised to another run binds in this one' $T/trainer.c \
    's/heard & HEARD_ADMITTED && self->journal.born_unix_ms != member->born_unix_ms/false/'
mutant 'a snapshot forgets what is pending' $C/run.c \
    's/ensure\(table_put\(&self->table, TABLE_PENDING.*?TABLE_OK\);/return;/s'
mutant 'a snapshot forgets the chain of commits' $C/run.c \
    's/self->checkpoint = from->checkpoint, self->last_commit = from->last_commit;/self->checkpoint = from->checkpoint;/'
mutant 'a torn record is taken for whole' $C/run.c 's/    hasher_add\(&hasher, body, bytes\);\n//; s/(const uint8_t \*body,\n\s*size_t bytes\)\n\{\n)/$1    (void)body, (void)bytes;\n/'
by_unit 'the chain of the ledger is not checked' ledger_damage_test common/ledger/record.c \
    's/if \(!hash_equal\(&chain, &record.chain\)\)/if (!hash_equal(\&chain, \&chain))/'

mutant 'who asks for commits is not answered' $C/news.c \
    's/        outbox_job\(out, PORT_DISK, FRAME_RECITE, &recite\);\n//'
mutant 'a position is not answered' $C/coordinator.c \
    's/    coordinator_ack\(in, said->log_seq, &said->chain, out\);\n//'
by_unit 'what the owner gave up is kept' member_test $M/position.c 's/beat->log_seq < known->log_seq;/false;/'

# ---- the way back ---------------------------------------------------------------------------------------
mutant 'restore: what was trained since stays done' $C/run.c \
    's/    set_table\(self, restore->cursor, restore->returned, restore->returned_count\);\n//'
by_unit 'restore: residuals are forgotten' restore_test $C/run.c \
    's/    copy_list\(self->residuals, restore->residuals,.*?\);\n//s'
by_unit 'restore: residuals stay' restore_test $C/run.c \
    's/    memset\(self->residuals, 0, sizeof self->residuals\);\n.*?\);\n//s'
mutant 'restore: a snapshot forgets the way back' $C/run.c \
    's/    self->way_back = from->way_back;\n//'
mutant 'restore: the way back is that of any checkpoint' $C/run.c \
    's/    if \(checkpoint->step != self->step\) return;\n//'
mutant 'restore: what is dealt now is forgotten' $C/run.c \
    's/(What is dealt now had not been, at this step\n)        way_back->cursor[^\n]*\n/$1/'
mutant 'restore: no new epoch' $C/epoch.c 's/back.epoch = self->run.epoch \+ 1;/back.epoch = self->run.epoch;/'
mutant 'restore: who made what is given up answers for it' $C/epoch.c 's/    self->accepted_count = 0; [^\n]*\n//'
mutant 'restore: disputes go on' $C/run.c 's/    self->audits_count = self->audited_count = 0; [^\n]*\n//'
mutant 'restore: who is ahead stays there' $M/replica.c \
    's/return step > run->restored_step && epoch < run->restored_epoch;/return run == NULL \&\& step + epoch == 0;/'
by_unit 'restore: who is ahead is met there again' restore_test $M/replica.c \
    's/return step > run->restored_step &&/return step > run->step \&\&/'
mutant 'restore: a checkpoint given up is loaded' $M/replica.c \
    's/        if \(replica_is_given_up\(&member->now, loaded->step.*?\n        \}\n//s; s/self->epoch = loaded->epoch;/self->epoch = member->now.epoch;/'
mutant 'restore: the pinned step stays' $C/run.c \
    's/    self->digest_step = self->pin_step = restore->step;\n    self->digest = self->pin_digest = restore->digest;\n//'
by_unit 'restore: the highest step is the newest' restore_test $M/replica.c \
    's/return epoch > than_epoch \|\| \(epoch == than_epoch && step > than_step\);/return step + 0 * epoch > than_step + 0 * than_epoch;/'
by_unit 'restore: the way back is retired' restore_test actors/checkpointer/checkpointer.c \
    's/    self->wanted.spare = [^\n]*\n//'
by_unit 'restore: a checkpoint is as good as one given up' restore_test actors/checkpointer/checkpointer.c \
    's/        self->saved.step = 0;\n//'
by_unit 'restore: a last cooldown that nobody keeps has no way back' coordinator_test $C/epoch.c \
    's/\(all_done\(self\) && !is_kept\(self, now_ms\)\)/(all_done(self) \&\& now_ms == 0)/'
by_unit 'restore: what was held before it counts' coordinator_test $C/epoch.c 's/said->step > run->step/false/'

# ---- phases and clocks ----------------------------------------------------------------------------------
mutant 'a checkpointer is believed any digest' $C/epoch.c \
    's/!committed \|\| hash_is_none/(false \&\& !committed) || hash_is_none/'
mutant 'a checkpointer speaks for the trainers' $C/epoch.c \
    's/return place->role == ACTOR_TRAINER &&/return place->role != ACTOR_PROVIDER \&\&/; s/run->members\[i\]\.role == ACTOR_TRAINER && members_is_live/run->members[i].role != ACTOR_PROVIDER \&\& members_is_live/'
mutant 'a run ends a step early' $C/epoch.c 's/run.step >= self->rules.total_steps/run.step + 1 >= self->rules.total_steps/' $C/round.c \
    's/run->step >= rules->total_steps/run->step + 1 >= rules->total_steps/'
mutant 'whoever is left alone speaks for the run' $C/epoch.c 's/live < self->rules.min_clients \|\| //'
mutant 'a pause outlives the last step' $C/epoch.c \
    's/all_done\(self\) \? PHASE_FINISHED : run->pausing \? PHASE_PAUSED : PHASE_WAITING/run->pausing ? PHASE_PAUSED : all_done(self) ? PHASE_FINISHED : PHASE_WAITING/'
by_unit 'a run is finished and nobody has its parameters' coordinator_test $C/epoch.c \
    's/\(!pinned \|\| !is_kept\(self, now_ms\)\)\) \{/!pinned) {/'
mutant 'a payload is forgotten before it is applied' $M/replica.c \
    's/return \(self->holding && step < self->step\) \|\| \(kept->known && kept->commit.step == step\);/return kept == NULL;/'
mutant 'a round goes on without min_clients' $C/round.c \
    's/run_count\(run, ACTOR_TRAINER, MEMBER_HEALTHY\) < rules->min_clients/run_count(run, ACTOR_TRAINER, MEMBER_HEALTHY) < 1/'
mutant 'a round takes twice its time, and never less' $C/round.c \
    's/if \(!late && !complete && !all_live_voted\(self\)\) return;/if (!late) return;/' $C/epoch.c \
    's/\[PHASE_TRAIN\] = rules->train_ms/[PHASE_TRAIN] = 2 * rules->train_ms/'
mutant 'the clock is asked for a deadline that has passed' $C/coordinator.c 's/self->deadline_ms > in->now_ms && //'
mutant 'a late word of the old process ends the new one' $M/member.c \
    's/refused->reason == REFUSAL_REPLACED && refused->round != self->instance/false/'

# ---- audits, verdicts, proofs -----------------------------------------------------------------------------
mutant 'audit: the accused judges itself' $C/audit.c \
    's/ && member != audit->member && member != audit->accuser;/ \&\& member != UINT32_MAX \&\& audit;/'
mutant 'audit: a majority is counted over those who spoke' $C/verdict.c \
    's/    if \(judges == 0\) return FINDING_PENDING;\n/    judges -= votes[FINDING_PENDING];\n$&/'
mutant 'audit: one word is a verdict' $C/verdict.c \
    's/return most > least \? most : least;/return most > least ? 1 : 1;/'
mutant 'audit: a verdict of "same" lets the accuser go' $C/audit.c \
    's/if \(audit->accusation == FINDING_DIFFERENT\) eject\(self, &ejection, out\);/(void)0;/'
mutant 'audit: a verdict of "different" lets the accused go' $C/audit.c \
    's/    if \(word == FINDING_DIFFERENT\) \{\n        eject\(self, &ejection, out\);/    if (word == FINDING_DIFFERENT) {\n        (void)0;/'
mutant 'audit: an accusation alone ejects' $C/audit.c \
    's/    if \(word != FINDING_PENDING\) conclude\(self, place, word, out\);/    conclude(self, place, word != FINDING_PENDING ? word : finding->finding, out);/'
mutant 'audit: who revealed something else is called wrong' tests/sim/learner.c \
    's/if \(!shown\) finding.finding = FINDING_WITHHELD;/if (!shown) finding.finding = FINDING_DIFFERENT;/'
mutant 'audit: silence ejects the third time' $C/audit.c \
    's/    \} else if \(members_is_live\(self, audit->member\)\) \{/    } else if (self->run.members[audit->member].unshown == AUDIT_UNSHOWN_MAX) {\n        eject(self, &ejection, out);\n$&/'
mutant 'audit: what began with zero can be withheld' $C/audit.c \
    's/finding->finding == FINDING_WITHHELD && hash_is_none/false \&\& hash_is_none/'
mutant 'audit: debts do not grow' $C/run.c 's/AUDIT_OWED_FIRST << unshown\);/AUDIT_OWED_FIRST);/'
mutant 'audit: to have shown nothing is never forgiven' $C/run.c \
    's/answered \? 0 : member->unshown,/answered ? member->unshown : member->unshown,/'
mutant 'audit: what nobody has verified is a beginning' $C/round.c \
    's/\(self->run.members\[member\].owed == 0 \|\| self->run.clients_count == 1\) &&\n\s*/1 \&\& /'
by_unit 'blobs: what an audit needs goes with its step' blobs_test $M/blobs.c 's/ \|\| entry->reveals\) continue;/) continue;/'
mutant 'audit: whom nobody judges owes nothing' $C/run.c 's/set_debts\(self, audit->member, member->unshown, 1\);/(void)member;/'
mutant 'audit: who goes away owes nothing' $C/run.c 's/AUDIT_OWED_FIRST << unshown\);/0);/'
by_unit 'audit: who owes is drawn like the others' coordinator_test $C/audit.c 's/    draw_owed\(&draw\);\n/    (void)draw_owed;\n/'
by_unit 'audit: a quarrel costs neither party anything' coordinator_test $C/audit.c \
    's/    if \(before == FINDING_PENDING && word == FINDING_SAME\) blame_both\(self, audit\);\n//'
by_unit 'audit: to say nothing costs an auditor nothing' coordinator_test $C/round.c \
    's/run->findings\[i\]\.finding != FINDING_PENDING\);/run->findings[i].finding <= FINDING_UNABLE);/'
by_unit 'audit: who went long ago counts for ever' verdict_test $C/run.h 's/RUN_DROPPED_ROUNDS = 64/RUN_DROPPED_ROUNDS = 64000/'
mutant 'audit: a finding is stored after it is acted upon' $C/audit.c \
    's/    coordinator_put\(self, FRAME_RECORD_FINDING, &record, out\);\n/    run_apply(&self->run, FRAME_RECORD_FINDING, &record);\n/; s/    if \(word != FINDING_PENDING\) conclude\(self, place, word, out\);\n/$&    outbox_store(out, FRAME_RECORD_FINDING, &record);\n/'
mutant 'audit: a finding of one who was not asked counts' $C/audit.c \
    's/    while \(place < run->audits_count &&\n           run->clients\[run->audits\[place\].auditor\].member != member\) place\+\+;/    while (place < run->audits_count \&\& !hash_equal(\&finding->result, \&run->audits[place].result)) place++;/'
mutant 'audit: a finding of another result counts' $C/audit.c \
    's/ \|\|\n        !hash_equal\(&finding->result, &run->audits\[place\].result\)\)/)/' $T/auditor.c \
    's/self->finding = \*finding;/self->finding = *finding;\n    if (finding->round % 5 == 0) self->finding.result = (struct hash){ { 1 } };/'
mutant 'audit: a member audits itself' $C/audit.c \
    's/if \(draw->self->run.clients\[accepted->client\].member == round->clients\[client\].member\) return false;/(void)client;/'
mutant 'audit: nobody is left to train' $C/audit.c \
    's/draw.free = round->clients_count - 1;/draw.free = round->clients_count;/' common/wire/audits.c \
    's/round->audits_count >= round->clients_count/round->audits_count > round->clients_count/'
mutant 'audit: auditors train, too' common/wire/audits.c \
    's/if \(audits_of\(round, c\) == UINT32_MAX\) ret_clients/if (c < round->clients_count) ret_clients/'
mutant 'audit: the base is not that of the result' $C/audit.c \
    's/\.base = run->last\.base,/.base = run->digest_step == run->last.step ? run->pin_digest : run->last.base,/'
mutant 'audit: an audit names the residual that it leads to' $C/audit.c \
    's/\.residual_from = accepted->residual_from,/.residual_from = accepted->residual_to,/'
mutant 'audit: who was ejected is audited again' $C/audit.c \
    's/if \(is_ejected\(run, member\)\) return false;/(void)0;/'
mutant 'audit: draws follow from what no record says' $C/audit.c \
    's/committee_positions\(round->seed, SALT_COMMITTEE/committee_positions(round->seed ^ self->heard_ms[0], SALT_COMMITTEE/'
mutant 'round: who witnesses follows from what no record says' $C/round.c \
    's/committee_positions\(seed, SALT_WITNESS/committee_positions(seed ^ self->heard_ms[0], SALT_WITNESS/'
mutant 'audit: the key is not that of the lock' $C/audit.c \
    's/: audit_key\(self, self->run\.round\.round\);/: audit_key(self, self->run.round.round + 1);/'
mutant 'audit: more are drawn than the rules say' $C/audit.c \
    's/hundredths \/ 100 \+ \(number % 100 < hundredths % 100\)/hundredths \/ 100 + 1/'
mutant 'audit: a verdict that a crash cut off is forgotten' $C/coordinator.c \
    's/        audit_resume\(self, out\);\n//'
mutant 'guilt: a residual may be anything' $C/round.c \
    's/hash_equal\(&seen->residual_from, &self->run.residuals\[member\].hash\)\)/seen)/'
mutant 'guilt: a snapshot forgets where residuals led' $C/run.c \
    's/    copy_list\(self->residuals, from->residuals[^\n]*\n//'
mutant 'guilt: what an ejected member did is accepted' $C/round.c \
    's/: self->run.members\[member\].state != MEMBER_EJECTED;/: true;/; s/self->rules.verification_percent \? members_is_live\(self, member\)/false ? false/'
mutant 'guilt: who left before the commit is believed' $C/round.c \
    's/self->rules.verification_percent \? members_is_live\(self, member\)\n\s*: /1 \&\& /'
mutant 'guilt: a judge against the verdict stays' $C/audit.c \
    's/eject_false_judges\(self, place, word, out\);/eject_false_judges(self, place, FINDING_PENDING, out);\n    (void)word;/'
mutant 'guilt: a judge who was shown nothing is a liar' $C/verdict.c \
    's/\(verdict == FINDING_DIFFERENT && finding == FINDING_SAME\)/(verdict == FINDING_DIFFERENT \&\& finding != FINDING_DIFFERENT \&\& finding != FINDING_PENDING)/'
mutant 'guilt: who joins again has shown all' $C/members.c \
    's/        member.unshown = run->members\[index\].unshown;\n//'
mutant 'guilt: an ejected member is heard' $C/members.c \
    's/if \(self->run.members\[index\].state == MEMBER_EJECTED\) \{\n        coordinator_refuse\(in, REFUSAL_EJECTED, 0, out, "this identity was ejected; give up"\);\n        return NO_MEMBER;\n    \}//'
mutant 'guilt: an ejected member may join again' $C/members.c \
    's/if \(index != NO_MEMBER && run->members\[index\].state == MEMBER_EJECTED\) \{.*?return false;\n    \}//s'
mutant 'guilt: a witness keeps to itself what was not committed' $W/witness.c \
    's/witness_hear_commit\(.*?\n\{\n/$&    if (commit) return;\n/s'
mutant 'guilt: who holds the committed claim is not asked' $C/audit.c \
    's/    ask_for_accepted\(self, member, known, out\);/    (void)ask_for_accepted;/'
mutant 'guilt: who shows its other claim itself is not asked about' $C/audit.c \
    's/\.round = claim->round, \.name = name,/$& .asked = claim->round == self->run.round.round \&\& self->run.round_open,/'
mutant 'guilt: claims of two rounds are called equivocation' $C/audit.c \
    's/if \(known->round != claim->round\) \{/if (known->round == 0) {/'
mutant 'guilt: a claim of before the run was born counts' $C/audit.c \
    's/claim->born_unix_ms == run->born_unix_ms && //'
mutant 'guilt: a claim of another run counts' $C/audit.c \
    's/strcmp\(claim->run, self->rules.run_id\) == 0 &&\n\s*/claim \&\&\n/'
by_unit 'guilt: one claim puts another out of the way' coordinator_test $C/audit.c \
    's/\[claim->round % \(CLAIM_AGE_MAX \+ 1\)\]/[0]/'
by_unit 'guilt: few judges decide for many' verdict_test $C/verdict.c 's/if \(few\) return/if (few \&\& judges == 0) return/'
mutant 'guilt: who shows it to some goes free' $C/verdict.c \
    's/return shown_to_some && !still_open \? FINDING_WITHHELD : FINDING_PENDING;/return shown_to_some \&\& !still_open \&\& judges == 0 ? FINDING_WITHHELD : FINDING_PENDING;/'
by_unit 'guilt: a bloom alone says who took part' coordinator_test $C/round.c \
    's/tally_accepted\(&self->tally, c\) != NULL \|\|\n\s*quorum/quorum/'
by_unit 'guilt: what could not be shown is a claim' witness_test $W/witness.c 's/ && can_be_shown\(member, in\)/ \&\& (in || can_be_shown(member, in))/'
by_unit 'a witness answers without end' witness_test $W/witness.c 's/ && sighting->answers < ANSWERS_MAX//'
by_unit 'a witness is asked again and again' tally_test $C/tally.c 's/        \*asked \|= [^\n]*\n/        return !(*asked >> *ret_witness \& 1) || self->voted < 9;\n/'
by_unit 'a member fills the ledger' coordinator_test $C/members.c 's/    if \(known && \(binds \|\| differs\) && changes_too_often[^\n]*\n//'
mutant 'guilt: two claims prove nothing' $C/audit.c \
    's/    \} else if \(!hash_equal\(&known->name, &name\)\) \{/    } else if (known->round == 0) {/'
mutant 'guilt: a witness keeps one of two claims to itself' $W/witness.c \
    's/\n        testify\(sighting->frame, sighting->frame_bytes, out\);//'
mutant 'guilt: one liar names the parameters of the run' $C/round.c \
    's/return self->rules.witness_standalone \? quorum_liars\(self->run.clients_count\) \+ 1 : 1;/return self ? 1 : 1;/'
mutant 'guilt: a result said again is forgotten with its round' $M/blobs.c \
    's/entry->first_step < from_step/entry->step < from_step/'
by_unit 'blobs: an answer of before will do' blobs_test $M/blobs.c 's/ && entry->turn == turn\) return entry;/ \&\& (turn || 1)) return entry;/'
by_unit 'blobs: what comes late stays' blobs_test $M/blobs.c \
    's/if \(hash_is_none\(hash\) \|\| is_known_hash\(self, hash\)\) return;/if (self) return;/'
mutant 'blobs: a hash alone is a name' $M/blobs.c 's/while \(self->places\[at\] && self->entries\[self->places\[at\] - 1\].bytes != bytes\)/while (self->places[at] \&\& bytes == UINT32_MAX)/'
by_unit 'blobs: what was revealed goes, whoever needs it' blobs_test $M/blobs.c 's/--entry->reveals > 0 \|\| entry->is_result\) return;/(--entry->reveals, false)) return;/'
by_unit 'blobs: as many steps are kept in the largest run' blobs_test $M/blobs.c 's/return fit < wanted \? fit : wanted;/return fit < 1 ? fit : wanted;/'
by_unit 'who has what is asked of the same neighbours' member_test $M/member.c 's/ \+ \(uint64_t\)tries \* max;/ + 0 * tries;/'
mutant 'blobs: what was forgotten meanwhile is published' $T/trainer.c \
    's/if \(blobs_spared_since\(&self->blobs, &trained->payload\)\) \{/if (self == NULL) {/'
mutant 'guilt: who is refused a vote hears nothing' $C/round.c \
    's/        coordinator_refuse\(in, REFUSAL_NOT_ELECTED.*?\);\n//s'

[ $((lived + broken)) -eq 0 ] && echo "no mutant lived${check:+: none was run, each finds its line}" || echo "$lived lived, $broken could not be made"
exit $((lived + broken > 0))
