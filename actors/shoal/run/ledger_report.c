// ledger_report -- one walk over the records, from the oldest to the ledger head. Each record goes
// to two readers: to the verifier (evidence.h), which draws every round again and checks what was
// signed, until the first thing that does not hold; and to `see`, which counts. A restore takes its
// samples out of the count again, so that training them a second time is not reported as a
// duplicate. Of rounds, the samples of each accepted result are counted; of windows, those of the
// steps in the order of the window's list; of leases, those of each task that is done.

#include "actors/shoal/run/ledger_report.h"
#include "common/base/ensure.h"
#include "common/ledger/ledger.h"
#include "common/ledger/stored.h"
#include "common/run/leases.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BYTES = 64 << 20 };

// A window of which steps may still be committed: two at most are open.
struct window {
    uint64_t number, taken; // Samples of its list that are committed
    struct interval *samples;
    uint32_t samples_count;
};
enum { WINDOWS_OPEN = 2 };

// A task that is out.
struct out {
    uint64_t number; // Of its lease; 0: this place is free
    uint32_t member;
    struct interval *samples;
    uint32_t samples_count;
};

struct reader {
    struct ledger_report *report;
    struct evidence *evidence; // NULL: it hears no more
    struct wire_arena arena;
    struct interval *dealt; // Of the open round
    uint32_t dealt_count;
    struct wire_client *clients;
    uint32_t clients_count;
    struct window windows[WINDOWS_OPEN]; // number 0: none
    struct out out[LEASES_MAX];
    uint64_t round, next_step, counted_epoch;
    uint8_t *trained; // One bit for each sample position
    uint64_t trained_bytes;
    uint64_t whole; // From where the data begins to here no position is missing
    struct why *why;
};

// ---- which samples were committed ---------------------------------------------------------------

// True if the position was marked before. Positions beyond the bound are not checked.
static bool mark(struct reader *self, uint64_t position)
{
    if (position >= REPORT_POSITIONS_MAX) return false;
    if (position / 8 >= self->trained_bytes) {
        uint64_t bytes = position / 4 + 4096;
        self->trained = realloc(self->trained, bytes);
        ensure(self->trained);
        memset(self->trained + self->trained_bytes, 0, bytes - self->trained_bytes);
        self->trained_bytes = bytes;
    }
    uint8_t bit = (uint8_t)(1u << position % 8), *byte = &self->trained[position / 8];
    bool was = *byte & bit;
    *byte |= bit;
    return was;
}

static bool is_marked(const struct reader *self, uint64_t position)
{
    return position / 8 < self->trained_bytes &&
           self->trained[position / 8] & (uint8_t)(1u << position % 8);
}

static void unmark(struct reader *self, uint64_t begin, uint64_t end)
{
    if (begin < self->whole && begin < end) self->whole = begin;
    for (uint64_t i = begin; i < end && i / 8 < self->trained_bytes; i++)
        self->trained[i / 8] &= (uint8_t) ~(1u << i % 8);
}

// Marks entries [begin, end) of a list of samples, which are the intervals in order.
static void count_samples(struct reader *self, const struct interval *list, uint32_t count,
                          uint64_t begin, uint64_t end)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct interval *dealt = &list[i];
        uint64_t length = dealt->end - dealt->begin;
        uint64_t from = begin > place ? begin - place : 0, to = end > place ? end - place : 0;
        for (uint64_t at = from; at < to && at < length; at++)
            if (mark(self, dealt->begin + at)) self->report->samples_twice++;
        place += length;
    }
}

// How many positions of a list lie in [0, end) and are not marked.
static uint64_t count_unmarked(const struct reader *self, const struct interval *list,
                               uint32_t count, uint64_t end)
{
    uint64_t unmarked = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t at = list[i].begin; at < list[i].end && at < end; at++)
            unmarked += !is_marked(self, at);
    return unmarked;
}

// At the end of an epoch nothing is pending: below the cursor a sample was committed, or is to be dealt again, or was
// given up. Else it is missing.
static void count_missing(struct reader *self, const struct wire_data_position *position)
{
    const uint64_t bound = REPORT_POSITIONS_MAX;
    const uint64_t end = position->cursor < bound ? position->cursor : bound;
    while (self->whole < end && is_marked(self, self->whole)) self->whole++;
    const struct interval rest = { self->whole, end };
    const uint64_t unmarked = count_unmarked(self, &rest, 1, end);
    const uint64_t known = count_unmarked(self, position->returned, position->returned_count, end) +
                           count_unmarked(self, position->failed, position->failed_count, end);
    self->report->samples_missing = unmarked > known ? unmarked - known : 0;
}

// ---- records ------------------------------------------------------------------------------------

static void *keep(void *old, const void *list, size_t bytes)
{
    if (bytes == 0) return old;
    void *kept = realloc(old, bytes);
    ensure(kept);
    return memcpy(kept, list, bytes);
}

static void see_member(struct ledger_report *report, const struct wire_member *member)
{
    if (member->index >= MEMBERS_MAX) return;
    struct report_member *known = &report->members[member->index];
    if (member->index >= report->members_count) report->members_count = member->index + 1;
    known->key = member->key;
    known->role = member->role;
    known->state = member->state;
    snprintf(known->name, sizeof known->name, "%s", member->name);
}

// What follows from a record of a phase, as run_apply has it: an epoch takes those that wait, and gives them back.
static void see_phase(struct ledger_report *report, const struct wire_record_phase *phase)
{
    const bool begins = phase->phase == PHASE_WARMUP;
    const bool ends = phase->phase == PHASE_WAITING || phase->phase == PHASE_PAUSED;
    const uint8_t from = begins ? MEMBER_PENDING : MEMBER_HEALTHY;
    report->phase = phase->phase;
    report->epoch = phase->epoch;
    for (uint32_t i = 0; i < report->members_count && (begins || ends); i++)
        if (role_takes_steps(report->members[i].role) && report->members[i].state == from)
            report->members[i].state = begins ? MEMBER_HEALTHY : MEMBER_PENDING;
}

static void see_round(struct reader *self, const struct wire_round *round)
{
    self->report->rounds++;
    self->round = round->round;
    self->dealt = keep(self->dealt, round->dealt, round->dealt_count * sizeof *round->dealt);
    self->dealt_count = round->dealt_count;
    self->clients =
        keep(self->clients, round->clients, round->clients_count * sizeof *round->clients);
    self->clients_count = round->clients_count;
}

static void count_commit(struct reader *self, uint64_t epoch, uint64_t first, uint64_t end)
{
    struct ledger_report *report = self->report;
    const uint64_t from = self->next_step;
    report->commits++;
    if (report->epochs == 0 || epoch != self->counted_epoch) report->epochs++;
    self->counted_epoch = report->epoch = epoch;
    if (first < from) report->steps_twice += (end < from ? end : from) - first;
    if (end > from) report->steps += end - (first > from ? first : from);
    if (first > from) report->steps_skipped += first - from;
    if (end > from) self->next_step = report->last_step = end;
}

static int see_commit(struct reader *self, const struct wire_commit *commit, uint64_t seq)
{
    struct ledger_report *report = self->report;
    if (commit->round != self->round)
        return why_set(self->why, FAULT_CORRUPT,
                       "record %" PRIu64 " ends round %" PRIu64 ", open is round %" PRIu64, seq,
                       commit->round, self->round);
    if (commit->outcome != OUTCOME_COMMITTED) {
        report->voids++;
        return 0;
    }
    count_commit(self, commit->epoch, commit->step, commit->step + 1);
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        const struct wire_accepted *accepted = &commit->accepted[i];
        uint64_t samples = accepted->end - accepted->begin;
        if (accepted->client >= self->clients_count || accepted->end < accepted->begin)
            return why_set(self->why, FAULT_CORRUPT,
                           "record %" PRIu64 " accepts what round %" PRIu64 " did not deal", seq,
                           commit->round);
        uint32_t member = self->clients[accepted->client].member;
        report->samples += samples;
        count_samples(self, self->dealt, self->dealt_count, accepted->begin, accepted->end);
        if (member >= report->members_count) continue;
        report->members[member].results++;
        report->members[member].samples += samples;
    }
    return 0;
}

static void close_windows(struct reader *self)
{
    for (int i = 0; i < WINDOWS_OPEN; i++) self->windows[i].number = 0;
}

// It takes a free place, or that of the oldest.
static void see_window(struct reader *self, const struct wire_window *window)
{
    struct window *place = &self->windows[0];
    for (int i = 1; i < WINDOWS_OPEN; i++)
        if (self->windows[i].number < place->number) place = &self->windows[i];
    self->report->windows++;
    self->report->has_windows = true;
    place->number = window->number;
    place->taken = 0;
    place->samples =
        keep(place->samples, window->samples, window->samples_count * sizeof *window->samples);
    place->samples_count = window->samples_count;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (window->group[i].member < self->report->members_count)
            self->report->members[window->group[i].member].windows++;
}

static int see_steps(struct reader *self, const struct wire_steps *steps, uint64_t seq)
{
    struct window *window = NULL;
    for (int i = 0; i < WINDOWS_OPEN; i++)
        if (self->windows[i].number && self->windows[i].number == steps->number)
            window = &self->windows[i];
    if (steps->end < steps->step || (steps->end > steps->step && !window))
        return why_set(self->why, FAULT_CORRUPT,
                       "record %" PRIu64 " commits steps of window %" PRIu64 ", which is not open",
                       seq, steps->number);
    if (steps->end > steps->step) {
        const uint64_t from = window->taken;
        count_commit(self, steps->epoch, steps->step, steps->end);
        count_samples(self, window->samples, window->samples_count, from, from + steps->samples);
        self->report->samples += steps->samples;
        window->taken += steps->samples;
    }
    if (steps->closed) close_windows(self);
    return 0;
}

static void see_group(struct ledger_report *report, const struct wire_group *group)
{
    report->windows++;
    report->has_leases = true;
    for (uint32_t i = 0; i < group->group_count; i++)
        if (group->group[i].member < report->members_count)
            report->members[group->group[i].member].windows++;
}

// NULL: there is no lease of this number, or no free place (0).
static struct out *find_out(struct reader *self, uint64_t number)
{
    for (int i = 0; i < LEASES_MAX; i++)
        if (self->out[i].number == number) return &self->out[i];
    return NULL;
}

static int see_lease(struct reader *self, const struct wire_lease *lease, uint64_t seq)
{
    struct out *out = find_out(self, 0);
    if (!out)
        return why_set(self->why, FAULT_CORRUPT,
                       "record %" PRIu64 " deals a task, and %d are out already", seq, LEASES_MAX);
    out->number = lease->number;
    out->member = lease->member;
    out->samples = keep(out->samples, lease->samples, lease->samples_count * sizeof *out->samples);
    out->samples_count = lease->samples_count;
    return 0;
}

// Lease 0: the group commits a step of what it did, and no task ends.
static int see_lease_end(struct reader *self, const struct wire_lease_ended *ended, uint64_t seq)
{
    struct ledger_report *report = self->report;
    struct out *out = ended->lease ? find_out(self, ended->lease) : NULL;
    if (ended->end < ended->step || (ended->lease && !out))
        return why_set(self->why, FAULT_CORRUPT,
                       "record %" PRIu64 " ends lease %" PRIu64 ", which is not out", seq,
                       ended->lease);
    if (ended->end > ended->step) count_commit(self, report->epoch, ended->step, ended->end);
    if (!out) return 0;
    out->number = 0;
    if (ended->fate != FATE_DONE) return 0;
    report->samples += ended->samples;
    count_samples(self, out->samples, out->samples_count, 0, ended->samples);
    if (out->member >= report->members_count) return 0;
    report->members[out->member].results++;
    report->members[out->member].samples += ended->samples;
    return 0;
}

// The run does all later steps and samples again.
static void see_restore(struct reader *self, const struct wire_record_restore *restore)
{
    struct ledger_report *report = self->report;
    const uint64_t undone =
        report->last_step > restore->step ? report->last_step - restore->step : 0;
    report->restores++;
    report->steps_undone += undone;
    report->steps -= undone < report->steps ? undone : report->steps;
    close_windows(self);
    for (int i = 0; i < LEASES_MAX; i++) self->out[i].number = 0;
    self->next_step = report->last_step = restore->step;
    unmark(self, restore->data_position.cursor, self->trained_bytes * 8);
    for (uint32_t i = 0; i < restore->data_position.returned_count; i++)
        unmark(self, restore->data_position.returned[i].begin,
               restore->data_position.returned[i].end);
}

static int see(struct reader *self, uint16_t kind, const void *body, uint64_t seq)
{
    struct ledger_report *report = self->report;
    switch (kind) {
    case FRAME_RECORD_GENESIS: {
        const struct wire_record_genesis *genesis = body;
        report->last_step = self->next_step = genesis->step;
        report->epoch = genesis->epoch;
        self->whole = genesis->cursor;
        return 0;
    }
    case FRAME_RECORD_START:
        report->incarnation = ((const struct wire_record_start *)body)->incarnation;
        report->starts++;
        return 0;
    case FRAME_RECORD_MEMBER: see_member(report, body); return 0;
    case FRAME_RECORD_PHASE: see_phase(report, body); return 0;
    case FRAME_RECORD_ROUND:
        report->phase = PHASE_TRAIN; // No record says so by itself
        see_round(self, body);
        return 0;
    case FRAME_RECORD_COMMIT: return see_commit(self, body, seq);
    case FRAME_RECORD_WINDOW:
        report->phase = PHASE_TRAIN;
        see_window(self, body);
        return 0;
    case FRAME_RECORD_STEPS: return see_steps(self, body, seq);
    case FRAME_RECORD_GROUP:
        report->phase = PHASE_TRAIN;
        see_group(report, body);
        return 0;
    case FRAME_RECORD_LEASE: return see_lease(self, body, seq);
    case FRAME_RECORD_LEASE_END: return see_lease_end(self, body, seq);
    case FRAME_RECORD_EPOCH_END:
        report->epoch_ends++;
        report->end = *(const struct wire_epoch_end *)body;
        count_missing(self, &report->end.data_position);
        report->end.data_position = (struct wire_data_position){ 0 };
        return 0;
    case FRAME_RECORD_CHECKPOINT:
        report->checkpoints++;
        report->checkpoint = *(const struct wire_checkpoint *)body;
        return 0;
    case FRAME_RECORD_RESTORE: see_restore(self, body); return 0;
    default: return 0;
    }
}

// ---- what is proved -----------------------------------------------------------------------------

// Without the run's configuration nothing is verified: that says nothing against the records.
static void begin_evidence(struct reader *self, const char *dir)
{
    struct ledger_report *report = self->report;
    report->unverified_fault = evidence_open(dir, &report->unverified, &self->evidence);
    if (report->unverified_fault < 0) return;
    report->has_windows = self->evidence->pace->config == FRAME_WINDOWS_CONFIG;
    report->has_leases = self->evidence->pace->config == FRAME_LEASES_CONFIG;
}

static void end_evidence(struct reader *self)
{
    if (!self->evidence) return;
    self->report->proved_names = self->evidence->pace->evidence_counts;
    memcpy(self->report->proved, self->evidence->counts, sizeof self->report->proved);
    memcpy(self->report->disproof, self->evidence->text, sizeof self->report->disproof);
    evidence_close(&self->evidence);
}

// ---- the walk -----------------------------------------------------------------------------------

static int visit(void *arg, const struct record *record)
{
    struct reader *self = arg;
    uint16_t kind;
    const void *body;
    int rc = stored_unpack("ledger record", record->seq, record->bytes, record->count, &self->arena,
                           self->why, &kind, &body);
    if (rc < 0) return rc;
    self->report->records++;
    if (self->evidence && !evidence_hear(self->evidence, record->seq, kind, body))
        end_evidence(self);
    if (kind < REPORT_KINDS_MAX) self->report->of_kind[kind]++;
    return see(self, kind, body, record->seq);
}

int ledger_report_read(const char *dir, struct why *why, struct ledger_report *ret_report)
{
    struct ledger *ledger;
    struct reader self = { .report = ret_report, .why = why }; // 40 KiB
    int rc = ledger_open_readonly(dir, why, &ledger);
    if (rc < 0) return rc;
    self.arena = (struct wire_arena){ .bytes = malloc(ARENA_BYTES), .max = ARENA_BYTES };
    ret_report->members = calloc(MEMBERS_MAX, sizeof *ret_report->members);
    ensure(self.arena.bytes && ret_report->members);
    snprintf(ret_report->run, sizeof ret_report->run, "%.32s", ledger_run_id(ledger));
    uint64_t head;
    struct hash chain;
    ledger_head(ledger, &head, &chain);
    begin_evidence(&self, dir);
    if (head > 0) rc = ledger_each(ledger, 1, visit, &self, why);
    end_evidence(&self);
    ledger_close(&ledger);
    free(self.arena.bytes);
    free(self.dealt);
    free(self.clients);
    for (int i = 0; i < WINDOWS_OPEN; i++) free(self.windows[i].samples);
    for (int i = 0; i < LEASES_MAX; i++) free(self.out[i].samples);
    free(self.trained);
    if (rc < 0) ledger_report_free(ret_report);
    return rc;
}

void ledger_report_free(struct ledger_report *self)
{
    free(self->members);
    self->members = NULL;
}
