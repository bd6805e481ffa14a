// leases_run -- first what each record does to the state and the table; then what it does to the run, by kind; then
// snapshots, which are checked whole before they are used.

#include "common/pace/leases/leases_run.h"
#include "common/base/ensure.h"
#include <string.h>

_Static_assert(sizeof(struct leases_run) <= RUN_PACE_BYTES,
               "the state of leases has room in a run");
_Static_assert(sizeof(struct wire_leases_snapshot) <= RUN_PART_BYTES,
               "its part of a snapshot has room");
_Static_assert((int)FATE_DONE == (int)LEASE_DONE && (int)FATE_RETURNED == (int)LEASE_RETURNED &&
                   (int)FATE_GIVEN_UP == (int)LEASE_GIVEN_UP,
               "a record says how a lease ends as leases.h does");

static struct leases_run *own(struct run *run) { return leases_run_times(run); }

// The address of an empty list may be NULL, which memmove does not allow.
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

static void keep_group(struct leases_run *self, const struct wire_group *group)
{
    ensure(group->group_count <= LEASES_GROUP_MAX);
    copy(self->places, group->group, group->group_count * sizeof *group->group);
    self->group = *group;
    self->group.group = self->places;
}

// ---- a group's life -----------------------------------------------------------------------------

static void keep_begin(struct leases_run *self, const struct table *table)
{
    struct wire_data_position *begin = &self->begin;
    begin->returned = self->begin_lists.returned;
    begin->failed = self->begin_lists.failed;
    ensure(table_undealt(table, &begin->cursor, self->begin_lists.returned, TABLE_INTERVALS_MAX,
                         &begin->returned_count) == TABLE_OK);
    ensure(table_list(table, TABLE_FAILED, 0, self->begin_lists.failed, TABLE_INTERVALS_MAX,
                      &begin->failed_count) == TABLE_OK);
}

void leases_run_begin(struct leases_run *self, const struct table *table,
                      const struct wire_group *group)
{
    ensure(!self->is_open && self->leases.count == 0);
    keep_group(self, group);
    keep_begin(self, table);
    self->is_open = true;
    self->dealt_before = self->leases.newest;
    // mutant: leases: what is left of the epoch before counts for the first step
    self->rest = 0;
    self->closing = (struct wire_close_group){ 0 };
    self->settled = false;
    self->differ = 0;
}

void leases_run_deal(struct leases_run *self, struct table *table, const struct wire_lease *record)
{
    static const struct lease_rules no_times;
    const struct lease lease = { .number = record->number,
                                 .member = record->member,
                                 .instance = record->instance,
                                 .task = record->task };
    ensure(self->is_open && self->closing.attempt == 0);
    ensure(leases_put(&self->leases, table, &no_times, &lease, record->samples,
                      record->samples_count) == LEASE_OK);
}

void leases_run_arm(struct leases_run *self, const struct lease_rules *rules, uint64_t now_ms)
{
    struct lease *lease = &self->leases.leases[self->leases.count - 1];
    ensure(self->leases.count > 0);
    lease->since_ms = now_ms;
    lease->deadline_ms = now_ms + leases_time_ms(&self->leases, rules);
}

const struct lease *leases_run_lease(const struct leases_run *self, uint64_t number)
{
    for (uint32_t i = 0; i < self->leases.count; i++)
        if (self->leases.leases[i].number == number) return &self->leases.leases[i];
    return NULL;
}

void leases_run_end(struct leases_run *self, struct table *table,
                    const struct wire_lease_ended *ended)
{
    const struct lease *lease = leases_run_lease(self, ended->lease);
    self->rest = ended->rest;
    if (ended->cause == LEASE_CAUSE_CLOSED) return; // A step without a lease
    ensure(lease && ended->fate < FATE_COUNT);
    if (ended->cause == LEASE_CAUSE_NO_DATA) {
        ensure(leases_give_back(&self->leases, table, ended->lease) == LEASE_OK);
        return;
    }
    ensure(leases_end(&self->leases, table, ended->lease, (enum lease_end)ended->fate,
                      lease->since_ms + ended->took_ms) == LEASE_OK);
    if (ended->cause == LEASE_CAUSE_LATE) leases_note_late(&self->leases, ended->took_ms);
}

bool leases_run_must_step(const struct leases_run *self, uint64_t step)
{
    // mutant: saves: a state that was saved on the way has the number of the one that is put together
    const bool is_saved = (self->save_number == self->group.number && self->save_step == step) ||
                          (self->copy_number == self->group.number && self->copy_step == step);
    if (self->closing.attempt > 0) return false;
    // mutant: leases: two states have the number of one step
    return (step == self->group.step || is_saved) && self->leases.newest > self->dealt_before;
}

void leases_run_save(struct leases_run *self, const struct wire_save_share *save)
{
    ensure(self->is_open && self->closing.attempt == 0 && save->number == self->group.number);
    self->save_number = save->number;
    self->save_step = save->step;
}

void leases_run_copy(struct leases_run *self, const struct wire_save_share *copy)
{
    ensure(self->is_open && self->closing.attempt == 0 && copy->number == self->group.number);
    self->copy_number = copy->number;
    self->copy_step = copy->step;
}

void leases_run_close(struct leases_run *self, const struct wire_close_group *closing)
{
    ensure(self->is_open && self->leases.count == 0 && !self->settled);
    ensure(closing->number == self->group.number && closing->attempt > self->closing.attempt);
    self->closing = *closing;
    if (closing->save) self->save_number = closing->number, self->save_step = closing->step;
}

void leases_run_settle(struct leases_run *self, const struct wire_group_settled *settled)
{
    ensure(self->is_open && settled->attempt > 0 && settled->attempt == self->closing.attempt);
    self->settled = true;
    self->differ = settled->differ;
}

// The table as it was when the group began.
static void go_back(const struct leases_run *self, struct table *table)
{
    struct wire_table_entry *memory = table->entries < table->spare ? table->entries : table->spare;
    table_init(table, memory, table->capacity, table->pass_length, self->begin.cursor);
    ensure(table_restore(table, TABLE_TODO, 0, self->begin.returned, self->begin.returned_count) ==
           TABLE_OK);
    ensure(table_restore(table, TABLE_FAILED, 0, self->begin.failed, self->begin.failed_count) ==
           TABLE_OK);
}

// No strike: a task is not at fault when the group ends.
static void return_all(struct leases_run *self, struct table *table)
{
    // mutant: leases: what is out when a server dies is never trained
    for (uint32_t i = 0; i < self->leases.count; i++)
        ensure(table_return_rest(table, self->leases.leases[i].number) == TABLE_OK);
    self->leases.count = 0;
}

uint64_t leases_run_over(struct leases_run *self, struct table *table, uint64_t step)
{
    const uint64_t rest = self->rest;
    if (!self->is_open) return 0;
    self->is_open = false;
    return_all(self, table);
    // mutant: leases: what is trained of a step that nobody holds is lost
    if (self->settled || step > self->group.step) return 0;
    go_back(self, table);
    self->rest = 0;
    return rest;
}

void leases_run_restore(struct leases_run *self)
{
    ensure(!self->is_open);
    self->settled = false;
    self->rest = self->differ = 0;
    self->save_number = self->save_step = 0; // What is still being saved is given up
    self->copy_number = self->copy_step = 0;
    self->leases.struck_count = 0; // Its tasks are dealt again
    self->closing = (struct wire_close_group){ 0 };
}

bool leases_run_has_settled(const struct leases_run *self, uint32_t member, uint64_t instance)
{
    const uint32_t place = leases_group_place(&self->group, member, instance);
    return self->settled && place != UINT32_MAX && self->closing.members & leases_bit(place);
}

// ---- records ------------------------------------------------------------------------------------

static void apply_group(struct run *run, const struct wire_group *group)
{
    ensure(group->number == run->number + 1 && group->step == run->step);
    if (run->phase != PHASE_TRAIN) run_enter(run, PHASE_TRAIN);
    // The first state of a run is the end of no epoch, but a checkpoint of it has this data position all the same
    // mutant: leases: samples that a group has trained are done at the step that it began with
    if (run_has_digest(run)) run_point_take(run, &run->digest, &run->end_point);
    leases_run_begin(own(run), &run->table, group);
    memory_save_forget_copies(&own(run)->memory);
    run->number = group->number;
    run->epoch_elapsed_ms = group->epoch_elapsed_ms;
}

static void apply_end(struct run *run, const struct wire_lease_ended *ended)
{
    ensure(ended->step == run->step && ended->end >= ended->step);
    leases_run_end(own(run), &run->table, ended);
    run_advance(run, ended->end - ended->step, ended->samples);
}

static void apply_save(struct run *run, const struct wire_save_share *save)
{
    ensure(save->step == run->step);
    leases_run_save(own(run), save);
    run_note_save(run);
}

// Data positions are the coordinator's: they say what is done at that step.
static void apply_copy(struct run *run, const struct wire_save_share *copy)
{
    ensure(copy->step == run->step);
    leases_run_copy(own(run), copy);
    memory_save_copied(&own(run)->memory, run, copy->number);
}

static void apply_kept(struct run *run, const struct wire_record_kept *kept)
{
    struct leases_run *self = own(run);
    uint32_t first = 0; // Of the servers, which are behind the trainers
    while (first < self->group.group_count &&
           run->roster.members[self->places[first].member].role != ACTOR_SERVER)
        first++;
    memory_save_kept(&self->memory, kept, self->places + first, self->group.group_count - first);
}

static void apply_close(struct run *run, const struct wire_close_group *closing)
{
    leases_run_close(own(run), closing);
    if (closing->save) run_note_save(run);
}

static void apply_phase(struct run *run, const struct wire_record_phase *record)
{
    if (record->phase == PHASE_COOLDOWN)
        run->samples_done -= leases_run_over(own(run), &run->table, run->step);
    // The owner has seen it, and goes on
    if (record->phase == PHASE_WAITING && run->phase == PHASE_PAUSED) own(run)->differ = 0;
}

static void apply_restore(struct leases_run *self, const struct wire_record_restore *restore)
{
    leases_run_restore(self);
    memory_save_restore(&self->memory, restore->step);
}

// Snapshots point into the run, so what they list of leases lies there.
static void list(struct leases_run *self)
{
    for (uint32_t i = 0; i < self->leases.count; i++) {
        const struct lease *lease = &self->leases.leases[i];
        self->out[i] = (struct wire_lease_out){ .number = lease->number,
                                                .member = lease->member,
                                                .instance = lease->instance,
                                                .task = lease->task };
    }
    for (uint32_t i = 0; i < self->leases.struck_count; i++) {
        const struct strikes *line = &self->leases.struck[i];
        self->struck[i] = (struct wire_strikes){ .task = line->task,
                                                 .count = line->count,
                                                 .member = line->member,
                                                 .instance = line->instance };
    }
}

static bool apply(struct run *run, uint16_t kind, const void *record)
{
    struct leases_run *self = own(run);
    switch (kind) {
    case FRAME_RECORD_GROUP: apply_group(run, record); return true;
    case FRAME_RECORD_LEASE: leases_run_deal(self, &run->table, record); return true;
    case FRAME_RECORD_LEASE_END: apply_end(run, record); return true;
    case FRAME_RECORD_SAVE: apply_save(run, record); return true;
    case FRAME_RECORD_COPY: apply_copy(run, record); return true;
    case FRAME_RECORD_KEPT: apply_kept(run, record); return true;
    case FRAME_RECORD_CLOSE: apply_close(run, record); return true;
    case FRAME_RECORD_SETTLED: leases_run_settle(self, record); return true;
    case FRAME_RECORD_PHASE: apply_phase(run, record); return false;
    case FRAME_RECORD_RESTORE: apply_restore(self, record); return false;
    default: return false;
    }
}

bool leases_run_apply(struct run *run, uint16_t kind, const void *record)
{
    const bool is_ours = apply(run, kind, record);
    list(own(run));
    return is_ours;
}

// ---- snapshots ----------------------------------------------------------------------------------

struct wire_part leases_run_store(const struct run *run, void *memory)
{
    const struct leases_run *self = leases_run_of(run);
    struct wire_leases_snapshot *snapshot = memory;
    *snapshot = (struct wire_leases_snapshot){
        .is_open = self->is_open,
        .group = self->group,
        .begin = self->begin,
        .closing = self->closing,
        .dealt_before = self->dealt_before,
        .settled = self->settled,
        .differ = self->differ,
        .rest = self->rest,
        .save_number = self->save_number,
        .save_step = self->save_step,
        .copy_number = self->copy_number,
        .copy_step = self->copy_step,
        .memory = memory_save_store(&self->memory),
        .newest = self->leases.newest,
        .average_ms = self->leases.average_ms,
        .leases = self->out,
        .leases_count = self->leases.count,
        .struck = self->struck,
        .struck_count = self->leases.struck_count,
    };
    return (struct wire_part){ FRAME_LEASES_SNAPSHOT, snapshot };
}

// Whether it can be the data position of a table: two lists below the cursor that have no sample in common.
static bool position_fits(const struct wire_data_position *at)
{
    if (!interval_list_tidy(at->returned, at->returned_count) ||
        !interval_list_tidy(at->failed, at->failed_count) ||
        at->returned_count + at->failed_count > TABLE_INTERVALS_MAX ||
        (at->returned_count && at->returned[at->returned_count - 1].end > at->cursor) ||
        (at->failed_count && at->failed[at->failed_count - 1].end > at->cursor))
        return false;
    for (uint32_t i = 0, j = 0; i < at->returned_count && j < at->failed_count;) {
        if (at->returned[i].end <= at->failed[j].begin) i++;
        else if (at->failed[j].end <= at->returned[i].begin) j++;
        else return false;
    }
    return true;
}

// Whether its lists can be those of a group: what is bounded otherwise, the wire has bounded.
static bool group_fits(const struct run *run, const struct wire_leases_snapshot *from)
{
    bool fits = from->group.group_count <= LEASES_GROUP_MAX;
    for (uint32_t i = 0; i < from->group.group_count && fits; i++)
        fits = from->group.group[i].member < run->roster.count;
    const uint64_t all = fits ? leases_group_all(&from->group) : 0;
    fits = fits && (!from->is_open || from->group.number > 0) && !(from->differ & ~all) &&
           !(from->closing.members & ~all) && (!from->settled || from->closing.attempt > 0);
    for (uint32_t i = 0; i < from->memory.keepers_count && fits; i++)
        fits = from->memory.keepers[i].member < run->roster.count;
    return fits && position_fits(&from->begin) &&
           position_fits(&from->memory.copied.data_position) &&
           position_fits(&from->memory.kept.data_position);
}

static bool is_pending(const struct table *table, uint64_t number)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->entries[i].state == TABLE_PENDING && table->entries[i].number == number)
            return true;
    return false;
}

static bool is_out(const struct wire_leases_snapshot *from, uint64_t number)
{
    for (uint32_t i = 0; i < from->leases_count; i++)
        if (from->leases[i].number == number) return true;
    return false;
}

// Each lease is of a process of the group and has samples in the table, and no other samples are pending there.
static bool leases_fit(const struct run *run, const struct wire_leases_snapshot *from)
{
    bool fits = from->leases_count == 0 || (from->is_open && from->closing.attempt == 0);
    for (uint32_t i = 0; i < from->leases_count && fits; i++) {
        const struct wire_lease_out *lease = &from->leases[i];
        fits = lease->number > (i ? from->leases[i - 1].number : 0) &&
               lease->number <= from->newest && is_pending(&run->table, lease->number) &&
               leases_group_place(&from->group, lease->member, lease->instance) != UINT32_MAX;
    }
    for (uint32_t i = 0; i < run->table.count && fits; i++)
        fits = run->table.entries[i].state != TABLE_PENDING ||
               is_out(from, run->table.entries[i].number);
    return fits;
}

// One line a task and process.
static bool strikes_fit(const struct wire_leases_snapshot *from)
{
    bool fits = from->leases_count <= LEASES_MAX && from->struck_count <= STRIKES_KEPT_MAX;
    for (uint32_t i = 0; i < from->struck_count && fits; i++)
        for (uint32_t j = 0; j < i && fits; j++)
            fits = from->struck[i].task != from->struck[j].task ||
                   from->struck[i].member != from->struck[j].member ||
                   from->struck[i].instance != from->struck[j].instance;
    return fits;
}

static void load_lists(struct leases *self, const struct wire_leases_snapshot *from)
{
    // mutant: leases: a snapshot forgets which tasks are out
    self->count = from->leases_count;
    for (uint32_t i = 0; i < from->leases_count; i++)
        self->leases[i] = (struct lease){ .number = from->leases[i].number,
                                          .member = from->leases[i].member,
                                          .instance = from->leases[i].instance,
                                          .task = from->leases[i].task };
    // mutant: leases: a snapshot forgets the strikes
    self->struck_count = from->struck_count;
    for (uint32_t i = 0; i < from->struck_count; i++)
        self->struck[i] = (struct strikes){ from->struck[i].task, from->struck[i].count,
                                            from->struck[i].member, from->struck[i].instance };
}

static void load_begin(struct leases_run *self, const struct wire_data_position *begin)
{
    self->begin = *begin;
    copy(self->begin_lists.returned, begin->returned,
         begin->returned_count * sizeof *begin->returned);
    copy(self->begin_lists.failed, begin->failed, begin->failed_count * sizeof *begin->failed);
    self->begin.returned = self->begin_lists.returned;
    self->begin.failed = self->begin_lists.failed;
}

bool leases_run_load(struct run *run, const struct wire_part *part)
{
    struct leases_run *self = own(run);
    const struct wire_leases_snapshot *from = part->body;
    if (part->kind != FRAME_LEASES_SNAPSHOT || !group_fits(run, from) || !leases_fit(run, from) ||
        !strikes_fit(from))
        return false;
    keep_group(self, &from->group);
    load_begin(self, &from->begin);
    self->is_open = from->is_open;
    // mutant: leases: a snapshot forgets that the group is closed
    self->closing = from->closing;
    self->dealt_before = from->dealt_before;
    self->settled = from->settled;
    self->differ = from->differ;
    // mutant: leases: a snapshot forgets the samples of the step in hand
    self->rest = from->rest;
    // mutant: saves: a snapshot forgets that a group saves
    self->save_number = from->save_number;
    self->save_step = from->save_step;
    self->copy_number = from->copy_number;
    self->copy_step = from->copy_step;
    memory_save_load(&self->memory, &from->memory);
    self->leases.newest = from->newest;
    self->leases.average_ms = from->average_ms;
    load_lists(&self->leases, from);
    list(self);
    return true;
}

bool leases_run_refers_to(const struct run *run, uint32_t member)
{
    const struct leases_run *self = leases_run_of(run);
    for (uint32_t i = 0; i < self->group.group_count; i++)
        if (self->group.group[i].member == member) return true;
    return memory_save_refers_to(&self->memory, member);
}
