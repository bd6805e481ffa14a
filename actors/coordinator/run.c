#include "actors/coordinator/run.h"
#include "actors/coordinator/verdict.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/wire/claims.h"
#include <string.h>

void run_init(struct run *self, uint32_t snapshot_rounds)
{
    self->snapshot_rounds = snapshot_rounds;
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX, 1, 0);
}

const char *run_phase_name(uint8_t phase) { return wire_enum_name(&wire_enum_phase, phase); }

// ---- members ------------------------------------------------------------------------------------

// Where the key stands in the order of identity, or would stand.
static uint32_t key_place(const struct run *self, const struct key *key)
{
    uint32_t low = 0, high = self->members_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (key_compare(&self->members[self->by_key[middle]].key, key) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t run_find(const struct run *self, const struct key *key)
{
    uint32_t place = key_place(self, key);
    if (place == self->members_count) return NO_MEMBER;
    uint32_t index = self->by_key[place];
    return key_equal(&self->members[index].key, key) ? index : NO_MEMBER;
}

static bool is_gone(uint8_t state) { return state == MEMBER_DROPPED || state == MEMBER_WITHDRAWN; }

// Nobody inherits what is said against another.
static bool is_party(const struct run *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->audits_count; i++)
        if (self->audits[i].member == member ||
            (self->audits[i].judges && self->audits[i].accuser == member))
            return true;
    return false;
}

uint32_t run_free_place(const struct run *self)
{
    if (self->members_count < MEMBERS_MAX) return self->members_count;
    for (uint32_t i = 0; i < self->members_count; i++)
        if (is_gone(self->members[i].state) && !run_is_round_client(self, i) && !is_party(self, i))
            return i;
    return NO_MEMBER;
}

uint32_t run_count(const struct run *self, uint8_t role, uint8_t state)
{
    return self->counts[role][state];
}

uint32_t run_trainers(const struct run *self)
{
    uint32_t count = run_count(self, ACTOR_TRAINER, MEMBER_HEALTHY) +
                     run_count(self, ACTOR_TRAINER, MEMBER_PENDING);
    for (uint32_t i = 0; i < self->members_count; i++) {
        const struct wire_member *member = &self->members[i];
        count += member->role == ACTOR_TRAINER && member->state == MEMBER_DROPPED &&
                 member->dropped_round + RUN_DROPPED_ROUNDS > self->round.round;
    }
    return count;
}

static void insert_key(struct run *self, uint32_t index, const struct key *key)
{
    uint32_t place = key_place(self, key);
    memmove(&self->by_key[place + 1], &self->by_key[place],
            (self->members_count - place) * sizeof *self->by_key);
    self->by_key[place] = index;
    self->members_count++;
}

static void remove_key(struct run *self, const struct key *key)
{
    uint32_t place = key_place(self, key);
    memmove(&self->by_key[place], &self->by_key[place + 1],
            (self->members_count - place - 1) * sizeof *self->by_key);
    self->members_count--;
}

static void apply_member(struct run *self, const struct wire_member *member)
{
    ensure(member->index <= self->members_count && member->index < MEMBERS_MAX);
    struct wire_member *place = &self->members[member->index];
    if (member->index < self->members_count) {
        self->counts[place->role][place->state]--;
        if (!key_equal(&place->key, &member->key)) { // A place handed on
            self->residuals[member->index] = (struct wire_residual){ { { 0 } } };
            self->way_back_residuals[member->index] = (struct wire_residual){ { { 0 } } };
            remove_key(self, &place->key);
            insert_key(self, member->index, &member->key);
        }
    } else {
        insert_key(self, member->index, &member->key);
    }
    *place = *member;
    self->counts[member->role][member->state]++;
    self->roster_version++;
}

static void apply_ejection(struct run *self, const struct wire_record_ejection *record)
{
    struct wire_member member = self->members[record->member];
    ensure(record->member < self->members_count && member.state != MEMBER_EJECTED);
    member.state = MEMBER_EJECTED;
    apply_member(self, &member);
}

// All trainers of one state change to another: at the borders of an epoch.
void run_move_trainers(struct run *self, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < self->members_count; i++)
        if (self->members[i].role == ACTOR_TRAINER && self->members[i].state == from)
            self->members[i].state = to;
    self->counts[ACTOR_TRAINER][to] += self->counts[ACTOR_TRAINER][from];
    self->counts[ACTOR_TRAINER][from] = 0;
    self->roster_version++;
}

// ---- phases -------------------------------------------------------------------------------------

static const unsigned becomes[PHASE_COUNT] = {
    [PHASE_WAITING] = 1 << PHASE_WARMUP | 1 << PHASE_PAUSED,
    [PHASE_WARMUP] = 1 << PHASE_TRAIN | 1 << PHASE_WAITING | 1 << PHASE_PAUSED,
    [PHASE_TRAIN] = 1 << PHASE_WITNESS,
    [PHASE_WITNESS] = 1 << PHASE_TRAIN | 1 << PHASE_COOLDOWN,
    [PHASE_COOLDOWN] = 1 << PHASE_WAITING | 1 << PHASE_FINISHED | 1 << PHASE_PAUSED,
    [PHASE_PAUSED] = 1 << PHASE_WAITING,
    [PHASE_FINISHED] = 0,
};

// The only writer of `phase`.
static void enter(struct run *self, uint8_t phase)
{
    ensure(phase < PHASE_COUNT && becomes[self->phase] & 1u << phase);
    self->phase = phase;
}

static void apply_phase(struct run *self, const struct wire_record_phase *record)
{
    enter(self, record->phase);
    self->epoch = record->epoch;
    self->cold_start = record->cold_start;
    self->source = record->source;
    self->epoch_start_step = record->epoch_start_step;
    if (record->phase == PHASE_WARMUP) {
        self->epoch_start_round = self->round.round + 1;
        self->epoch_elapsed_ms = 0;
        run_move_trainers(self, MEMBER_PENDING, MEMBER_HEALTHY);
    }
    if (record->phase == PHASE_PAUSED) self->pausing = false;
    if (record->phase == PHASE_WAITING || record->phase == PHASE_PAUSED)
        run_move_trainers(self, MEMBER_HEALTHY, MEMBER_PENDING);
}

// ---- rounds -------------------------------------------------------------------------------------

struct wire_round run_round(const struct run *self)
{
    struct wire_round round = self->round;
    round.dealt = self->dealt, round.dealt_count = self->dealt_count;
    round.clients = self->clients, round.clients_count = self->clients_count;
    round.witnesses = self->witnesses, round.witnesses_count = self->witnesses_count;
    round.returned = self->round_returned, round.returned_count = self->round_returned_count;
    round.audits = self->audits, round.audits_count = self->audits_count;
    round.audited = self->audited, round.audited_count = self->audited_count;
    return round;
}

// An empty list may have no address.
static void copy_list(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

void run_keep_round(struct run *self, const struct wire_round *round)
{
    ensure(round->witnesses_count <= WITNESSES_MAX && audits_are_sound(round));
    copy_list(self->dealt, round->dealt, round->dealt_count * sizeof *round->dealt);
    copy_list(self->clients, round->clients, round->clients_count * sizeof *round->clients);
    copy_list(self->witnesses, round->witnesses, round->witnesses_count * sizeof *round->witnesses);
    copy_list(self->round_returned, round->returned,
              round->returned_count * sizeof *round->returned);
    copy_list(self->audits, round->audits, round->audits_count * sizeof *round->audits);
    copy_list(self->audited, round->audited, round->audited_count * sizeof *round->audited);
    self->audits_count = round->audits_count;
    self->audited_count = round->audited_count;
    self->round_returned_count = round->returned_count;
    self->dealt_count = round->dealt_count;
    self->clients_count = round->clients_count;
    self->witnesses_count = round->witnesses_count;
    self->round = *round;
    self->round.dealt = self->round.returned = NULL;
    self->round.clients = self->round.witnesses = NULL;
    self->round.audits = NULL, self->round.audited = NULL;
    self->round.audits_count = self->round.audited_count = 0;
    self->round.returned_count = self->round.dealt_count = self->round.clients_count =
        self->round.witnesses_count = 0;
}

static void set_debts(struct run *self, uint32_t member, uint32_t unshown, uint32_t owed)
{
    struct wire_member *now = &self->members[member];
    if (now->unshown != unshown || now->owed != owed) self->roster_version++;
    now->unshown = (uint8_t)unshown;
    now->owed = (uint8_t)owed;
}

_Static_assert(AUDIT_OWED_FIRST << AUDIT_UNSHOWN_MAX == 64, "the range of owed in frames.def");

// Each time twice as much, so that who can never show anything is hardly ever believed unaudited.
static void owe(struct run *self, uint32_t member)
{
    const uint32_t unshown = self->members[member].unshown;
    // mutant: audit: debts do not grow
    // mutant: audit: a member that goes away owes nothing
    set_debts(self, member, unshown < AUDIT_UNSHOWN_MAX ? unshown + 1 : unshown,
              (uint32_t)AUDIT_OWED_FIRST << unshown);
}

static bool has_judges(const struct wire_round *round, const struct wire_audit *audit)
{
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (round->audits[i].judges && hash_equal(&round->audits[i].result, &audit->result))
            return true;
    return false;
}

void run_leave_cases(struct run *self, const struct wire_round *round)
{
    for (uint32_t i = 0; i < self->audits_count; i++) {
        const struct wire_audit *audit = &self->audits[i];
        const struct wire_member *member = &self->members[audit->member];
        const bool open = audit->judges ? audit->accusation == FINDING_WITHHELD &&
                                              verdict_is_first(self, i) &&
                                              verdict_of(self, i) == FINDING_PENDING
                                        : self->findings[i].finding == FINDING_WITHHELD;
        // mutant: audit: a member that nobody judges owes nothing
        if (open && member->owed == 0 && !has_judges(round, audit))
            set_debts(self, audit->member, member->unshown, 1);
    }
}

static void apply_round(struct run *self, const struct wire_round *round)
{
    ensure(round->round == self->round.round + 1 && !self->round_open);
    if (self->phase != PHASE_TRAIN) enter(self, PHASE_TRAIN);
    ensure(table_deal_again(&self->table, round->round, round->dealt, round->dealt_count) ==
           TABLE_OK);
    run_leave_cases(self, round);
    run_keep_round(self, round);
    memset(self->findings, 0, sizeof self->findings);
    self->epoch_elapsed_ms = round->epoch_elapsed_ms;
    self->round_open = true;
}

// The first word counts.
static void apply_finding(struct run *self, const struct wire_record_finding *record)
{
    ensure(record->round == self->round.round && record->place < self->audits_count);
    ensure(self->findings[record->place].finding == FINDING_PENDING);
    const struct wire_audit *audit = &self->audits[record->place];
    const uint8_t before = verdict_of(self, record->place);
    self->findings[record->place].finding = record->finding;
    const uint8_t word = verdict_of(self, record->place);
    const bool judged = before == FINDING_PENDING && word != FINDING_PENDING;
    const bool cleared =
        audit->judges ? judged && word == FINDING_SAME : record->finding == FINDING_SAME;
    const struct wire_member *member = &self->members[audit->member];
    const bool answered = !hash_is_none(&audit->residual_from); // Else it had nothing to show
    // mutant: audit: to have shown nothing is never forgiven
    if (cleared)
        set_debts(self, audit->member, answered ? 0 : member->unshown,
                  member->owed ? member->owed - 1u : 0);
    else if (judged && word == FINDING_WITHHELD) owe(self, audit->member);
}

bool run_is_round_client(const struct run *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->clients_count; i++)
        if (self->clients[i].member == member) return true;
    return false;
}

uint32_t run_witness_place(const struct run *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->witnesses_count; i++)
        if (self->witnesses[i].member == member) return i;
    return NO_MEMBER;
}

uint32_t run_samples_at(const struct run *self, uint32_t begin, uint32_t end,
                        struct interval *ret_list)
{
    return (uint32_t)interval_list_slice(self->dealt, self->dealt_count, begin, end, NULL,
                                         ret_list);
}

// A commit ends its round: what it accepted is done, all else goes back to the table.
static void apply_commit(struct run *self, const struct wire_commit *commit)
{
    ensure(self->round_open && commit->round == self->round.round && commit->step == self->step);
    ensure(hash_equal(&commit->previous, &self->last_commit) && commit_is_sound(commit));
    struct interval_walk walk = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        count +=
            (uint32_t)interval_list_slice(self->dealt, self->dealt_count, commit->accepted[i].begin,
                                          commit->accepted[i].end, &walk, self->scratch + count);
    // mutant: a batch is dealt twice
    ensure(table_done(&self->table, commit->round, self->scratch, count) == TABLE_OK);
    // mutant: a batch is lost: what was not accepted is done
    ensure(table_return_rest(&self->table, commit->round) == TABLE_OK);
    self->round_open = false;
    self->last_commit = commit_hash(commit);
    self->last = *commit;
    self->last.accepted = NULL;
    self->last.accepted_count = 0;
    self->audit_key = commit->audit_key;
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        self->residuals[self->clients[accepted->client].member].hash = accepted->residual_to;
    }
    if (self->phase == PHASE_TRAIN) enter(self, PHASE_WITNESS);
    if (commit->outcome == OUTCOME_VOID) return;
    self->digest_step = commit->step;
    self->digest = commit->base;
    if (commit->step % self->snapshot_rounds == 0) {
        self->pin_step = commit->step;
        self->pin_digest = commit->base;
    }
    self->samples_done += commit->samples;
    self->step++;
}

static void apply_epoch_end(struct run *self, const struct wire_epoch_end *end)
{
    ensure(end->step == self->step);
    self->digest_step = self->pin_step = end->step;
    self->digest = self->pin_digest = end->digest;
}

// ---- the beginning, and the way back ------------------------------------------------------------

static void set_table(struct run *self, uint64_t cursor, const struct interval *returned,
                      uint32_t count)
{
    table_init(&self->table, self->table_memory, TABLE_INTERVALS_MAX,
               self->pass_samples ? self->pass_samples : 1, cursor);
    ensure(table_put(&self->table, TABLE_TODO, 0, returned, count) == TABLE_OK);
}

static void apply_genesis(struct run *self, const struct wire_record_genesis *genesis)
{
    ensure(self->log_seq == 1);
    memcpy(self->run_id, genesis->run, sizeof self->run_id);
    self->config = genesis->config;
    self->run_seed = genesis->seed;
    self->epoch = genesis->epoch;
    self->step = self->epoch_start_step = self->digest_step = self->pin_step = genesis->step;
    self->digest = self->pin_digest = genesis->digest;
    self->source = SOURCE_HUB;
    self->cold_start = true;
    set_table(self, genesis->cursor, NULL, 0);
}

static void apply_data(struct run *self, const struct wire_record_data *data)
{
    self->pass_samples = self->table.pass_length = data->samples;
    self->data = data->data;
    self->order = data->order;
}

// A checkpoint of the present step is a way back: its data position is known here, and only here.
static void apply_checkpoint(struct run *self, const struct wire_checkpoint *checkpoint)
{
    self->checkpoint = *checkpoint;
    // mutant: restore: the way back is that of any checkpoint
    if (checkpoint->step != self->step) return;
    struct wire_record_restore *way_back = &self->way_back;
    *way_back = (struct wire_record_restore){ .epoch = self->epoch,
                                              .step = self->step,
                                              .digest = checkpoint->digest,
                                              .cursor = self->table.cursor,
                                              .samples_done = self->samples_done,
                                              .residuals_count = self->members_count };
    copy_list(self->way_back_residuals, self->residuals,
              self->members_count * sizeof *self->residuals);
    if (self->round_open) { // What is dealt now had not been, at this step
        // mutant: restore: what is dealt now is forgotten
        way_back->cursor = self->round.cursor;
        way_back->returned_count = self->round_returned_count;
        copy_list(self->way_back_returned, self->round_returned,
                  self->round_returned_count * sizeof *self->round_returned);
    } else {
        way_back->returned_count = run_returned(self, self->way_back_returned);
    }
}

static void apply_restore(struct run *self, const struct wire_record_restore *restore)
{
    ensure(restore->step <= self->step && !self->round_open);
    self->epoch = self->restored_epoch = restore->epoch;
    self->restored_step = restore->step;
    self->step = self->epoch_start_step = restore->step;
    // mutant: restore: the pinned step stays
    self->digest_step = self->pin_step = restore->step;
    // mutant: restore: the pinned step stays (2)
    self->digest = self->pin_digest = restore->digest;
    self->samples_done = restore->samples_done;
    if (self->checkpoint.step > restore->step) // One without a data position: given up as well
        self->checkpoint = (struct wire_checkpoint){ .epoch = restore->epoch,
                                                     .step = restore->step,
                                                     .digest = restore->digest };
    self->cold_start = true;
    // mutant: restore: disputes go on
    self->audits_count = self->audited_count = 0; // What they are about is given up
    // Who was further loads, and begins at zero; who was not goes on from where it stands.
    // mutant: restore: residuals stay
    memset(self->residuals, 0, sizeof self->residuals);
    // mutant: restore: residuals are forgotten
    // mutant: restore: residuals stay (2)
    copy_list(self->residuals, restore->residuals,
              restore->residuals_count * sizeof *restore->residuals);
    // mutant: restore: what was trained since stays done
    set_table(self, restore->cursor, restore->returned, restore->returned_count);
}

struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes)
{
    struct hasher hasher;
    uint8_t number[8], head[3] = { 0x92, 0xcc, (uint8_t)kind }; // [kind, body], as it is stored
    ensure(kind >= 128 && kind < 256);
    be_put(number, seq, sizeof number);
    hasher_init(&hasher);
    hasher_add(&hasher, previous->bytes, HASH_BYTES);
    hasher_add(&hasher, number, sizeof number);
    hasher_add(&hasher, head, sizeof head);
    // mutant: a torn record is taken for whole
    hasher_add(&hasher, body, bytes);
    return hasher_end(&hasher);
}

void run_apply(struct run *self, uint16_t kind, const void *record)
{
    self->log_seq++;
    switch (kind) {
    case FRAME_RECORD_GENESIS: apply_genesis(self, record); break;
    case FRAME_RECORD_START:
        self->incarnation = ((const struct wire_record_start *)record)->incarnation;
        if (!self->born_unix_ms)
            self->born_unix_ms = ((const struct wire_record_start *)record)->unix_ms;
        break;
    case FRAME_RECORD_MEMBER: apply_member(self, record); break;
    case FRAME_RECORD_PHASE: apply_phase(self, record); break;
    case FRAME_RECORD_ROUND: apply_round(self, record); break;
    case FRAME_RECORD_COMMIT: apply_commit(self, record); break;
    case FRAME_RECORD_EPOCH_END: apply_epoch_end(self, record); break;
    case FRAME_RECORD_CHECKPOINT: apply_checkpoint(self, record); break;
    case FRAME_RECORD_PAUSE:
        self->pausing = ((const struct wire_record_pause *)record)->pausing;
        break;
    case FRAME_RECORD_DATA: apply_data(self, record); break;
    case FRAME_RECORD_RESTORE: apply_restore(self, record); break;
    case FRAME_RECORD_FINDING: apply_finding(self, record); break;
    case FRAME_RECORD_EJECTION: apply_ejection(self, record); break;
    default: ensure_failed("a record that is none", __FILE__, __LINE__);
    }
}

// ---- snapshots ----------------------------------------------------------------------------------

uint32_t run_returned(struct run *self, struct interval *ret_list)
{
    uint32_t count = 0;
    ensure(table_list(&self->table, TABLE_TODO, 0, ret_list, TABLE_INTERVALS_MAX, &count) ==
           TABLE_OK);
    return count;
}

struct wire_record_restore run_way_back(const struct run *self)
{
    struct wire_record_restore way_back = self->way_back;
    way_back.returned = self->way_back_returned;
    way_back.residuals = self->way_back_residuals;
    return way_back;
}

struct wire_snapshot run_to_snapshot(struct run *self, struct interval *returned)
{
    struct wire_snapshot snapshot = {
        .config = self->config,
        .run_seed = self->run_seed,
        .incarnation = self->incarnation,
        .log_seq = self->log_seq,
        .phase = self->phase,
        .epoch = self->epoch,
        .epoch_start_step = self->epoch_start_step,
        .epoch_start_round = self->epoch_start_round,
        .epoch_elapsed_ms = self->epoch_elapsed_ms,
        .step = self->step,
        .samples_done = self->samples_done,
        .cold_start = self->cold_start,
        .pausing = self->pausing,
        .source = self->source,
        .round = run_round(self),
        .round_open = self->round_open,
        .digest_step = self->digest_step,
        .digest = self->digest,
        .pin_step = self->pin_step,
        .pin_digest = self->pin_digest,
        .checkpoint = self->checkpoint,
        .last_commit = self->last_commit,
        .pass_samples = self->pass_samples,
        .data = self->data,
        .cursor = self->table.cursor,
        .returned = returned,
        .returned_count = run_returned(self, returned),
        .roster_version = self->roster_version,
        .members = self->members,
        .members_count = self->members_count,
        .way_back = run_way_back(self),
        .born_unix_ms = self->born_unix_ms,
        .audit_key = self->audit_key,
        .order = self->order,
        .findings = self->findings,
        .findings_count = self->audits_count,
        .residuals = self->residuals,
        .residuals_count = self->members_count,
        .restored_step = self->restored_step,
        .restored_epoch = self->restored_epoch,
    };
    memcpy(snapshot.run, self->run_id, sizeof snapshot.run);
    if (snapshot.round.round == 0) snapshot.round.round = snapshot.round.batch_size = 1; // None yet
    return snapshot;
}

void run_from_snapshot(struct run *self, const struct wire_snapshot *from)
{
    memcpy(self->run_id, from->run, sizeof self->run_id);
    self->config = from->config, self->run_seed = from->run_seed;
    self->incarnation = from->incarnation, self->log_seq = from->log_seq;
    self->phase = from->phase, self->epoch = from->epoch;
    self->epoch_start_step = from->epoch_start_step;
    self->epoch_start_round = from->epoch_start_round;
    self->epoch_elapsed_ms = from->epoch_elapsed_ms;
    self->step = from->step, self->samples_done = from->samples_done;
    self->cold_start = from->cold_start, self->pausing = from->pausing, self->source = from->source;
    self->digest_step = from->digest_step, self->digest = from->digest;
    self->pin_step = from->pin_step, self->pin_digest = from->pin_digest;
    // mutant: a snapshot forgets the chain of commits
    self->checkpoint = from->checkpoint, self->last_commit = from->last_commit;
    self->pass_samples = from->pass_samples, self->data = from->data;
    self->order = from->order;
    self->restored_step = from->restored_step, self->restored_epoch = from->restored_epoch;
    copy_list(self->members, from->members, from->members_count * sizeof *from->members);
    for (uint32_t i = 0; i < from->members_count; i++) {
        insert_key(self, i, &from->members[i].key);
        self->counts[from->members[i].role][from->members[i].state]++;
    }
    self->roster_version = from->roster_version;
    self->born_unix_ms = from->born_unix_ms;
    self->audit_key = from->audit_key;
    copy_list(self->findings, from->findings, from->findings_count * sizeof *from->findings);
    // mutant: guilt: a snapshot forgets where residuals led
    copy_list(self->residuals, from->residuals, from->residuals_count * sizeof *from->residuals);
    // mutant: restore: a snapshot forgets the way back
    self->way_back = from->way_back;
    self->way_back.returned = NULL, self->way_back.residuals = NULL;
    copy_list(self->way_back_returned, from->way_back.returned,
              from->way_back.returned_count * sizeof *from->way_back.returned);
    copy_list(self->way_back_residuals, from->way_back.residuals,
              from->way_back.residuals_count * sizeof *from->way_back.residuals);
    set_table(self, from->cursor, from->returned, from->returned_count);
    if (from->round.clients_count == 0) return; // Before the first round
    run_keep_round(self, &from->round);
    self->round_open = from->round_open;
    if (!self->round_open) return;
    // mutant: a snapshot forgets what is pending
    ensure(table_put(&self->table, TABLE_PENDING, from->round.round, from->round.dealt,
                     from->round.dealt_count) == TABLE_OK);
}
