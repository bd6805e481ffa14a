// leases -- the table has the state of the samples, the list who holds them. A task is found by where its first position
// is; what of it is todo, by the table.

#include "common/run/leases.h"
#include "common/base/ensure.h"
#include <string.h>

static const uint64_t END = UINT64_MAX;

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t pass_of(const struct table *table, uint64_t position)
{
    return position / table->pass_length;
}

static struct interval task_at(const struct table *table, const struct lease_rules *rules,
                               uint64_t position)
{
    const uint64_t begin = pass_of(table, position) * table->pass_length;
    const uint64_t end = begin > END - table->pass_length ? END : begin + table->pass_length;
    const uint64_t first = begin + (position - begin) / rules->task_samples * rules->task_samples;
    const uint64_t last = first > END - rules->task_samples ? END : first + rules->task_samples;
    return (struct interval){ first, min(last, end) };
}

static uint64_t first_todo(const struct table *table, uint64_t from)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->entries[i].state == TABLE_TODO && table->entries[i].end > from)
            return max(table->entries[i].begin, from);
    return max(table->cursor, from);
}

static uint32_t strikes_of(const struct leases *self, uint64_t task)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->struck_count; i++)
        if (self->struck[i].task == task) count += self->struck[i].count;
    return count;
}

bool leases_has_struck(const struct leases *self, const struct lease *lease)
{
    for (uint32_t i = 0; i < self->struck_count; i++) {
        const struct strikes *line = &self->struck[i];
        if (line->task == lease->task && line->member == lease->member &&
            line->instance == lease->instance)
            return true;
    }
    return false;
}

// ---- dealing ------------------------------------------------------------------------------------

static bool add(struct interval *list, uint32_t list_max, uint32_t *count, uint64_t begin,
                uint64_t end)
{
    if (begin >= end) return true;
    if (*count > 0 && list[*count - 1].end == begin) {
        list[*count - 1].end = end;
        return true;
    }
    if (*count == list_max) return false;
    list[(*count)++] = (struct interval){ begin, end };
    return true;
}

// It has struck no more tasks than there are lines.
static uint64_t choose(const struct leases *self, const struct table *table,
                       const struct lease_rules *rules, const struct lease *who)
{
    const uint64_t first = first_todo(table, 0), pass = pass_of(table, table_frontier(table));
    struct lease lease = *who;
    uint64_t at = first;
    for (uint32_t i = 0; i <= self->struck_count && at != END; i++) {
        const struct interval task = task_at(table, rules, at);
        if (rules->pass_barrier && pass_of(table, at) > pass) break;
        lease.task = task.begin;
        // mutant: leases: a process is dealt the task that it has just failed
        if (!leases_has_struck(self, &lease)) return at;
        at = first_todo(table, task.end);
    }
    return first;
}

// The first task to be dealt that has a strike already, and so needs no room for one; END: there is none.
static uint64_t choose_struck(const struct leases *self, const struct table *table,
                              const struct lease_rules *rules)
{
    const uint64_t pass = pass_of(table, table_frontier(table));
    uint64_t first = END;
    for (uint32_t i = 0; i < self->struck_count; i++) {
        const uint64_t task = self->struck[i].task;
        const bool waits = rules->pass_barrier && pass_of(table, task) > pass;
        if (task < first && !waits && task_at(table, rules, first_todo(table, task)).begin == task)
            first = task;
    }
    return first;
}

enum lease_answer leases_next(const struct leases *self, const struct table *table,
                              const struct lease_rules *rules, struct lease *lease,
                              struct interval *ret_list, uint32_t list_max, uint32_t *ret_count)
{
    const uint64_t first = choose(self, table, rules, lease);
    if (first == END) return LEASE_NONE_NOW;
    // mutant: leases: the next pass begins while a task of this one is out
    if (rules->pass_barrier && pass_of(table, first) > pass_of(table, table_frontier(table)))
        return LEASE_NONE_NOW;
    if (self->count == LEASES_MAX) return LEASE_FULL;
    struct interval task = task_at(table, rules, first);
    // mutant: leases: a task is dealt though no room is left for its strike
    if (strikes_of(self, task.begin) == 0 && self->struck_count + self->count >= STRIKES_KEPT_MAX) {
        const uint64_t struck = choose_struck(self, table, rules);
        if (struck == END) return LEASE_FULL;
        task = task_at(table, rules, struck);
    }
    bool fits = true;
    lease->task = task.begin;
    *ret_count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct wire_table_entry *entry = &table->entries[i];
        if (entry->state == TABLE_TODO)
            fits &= add(ret_list, list_max, ret_count, max(entry->begin, task.begin),
                        min(entry->end, task.end));
    }
    fits &= add(ret_list, list_max, ret_count, max(table->cursor, task.begin), task.end);
    return fits ? LEASE_OK : LEASE_FULL;
}

enum lease_answer leases_put(struct leases *self, struct table *table,
                             const struct lease_rules *rules, const struct lease *lease,
                             const struct interval *list, uint32_t count)
{
    ensure(lease->number > self->newest);
    if (self->count == LEASES_MAX ||
        table_deal_again(table, lease->number, list, count) != TABLE_OK)
        return LEASE_FULL;
    struct lease *own = &self->leases[self->count++];
    *own = *lease;
    own->deadline_ms = lease->since_ms + leases_time_ms(self, rules);
    self->newest = lease->number;
    return LEASE_OK;
}

// ---- ending -------------------------------------------------------------------------------------

enum lease_end leases_outcome(const struct leases *self, const struct lease_rules *rules,
                              const struct lease *lease)
{
    // mutant: leases: a process strikes a task again and again
    const uint32_t more = leases_has_struck(self, lease) ? 0 : 1;
    // mutant: leases: a task that fails is never given up
    return strikes_of(self, lease->task) + more <= rules->strikes_max ? LEASE_RETURNED
                                                                      : LEASE_GIVEN_UP;
}

static void forget_strikes(struct leases *self, uint64_t task)
{
    for (uint32_t i = 0; i < self->struck_count; i++)
        if (self->struck[i].task == task) self->struck[i--] = self->struck[--self->struck_count];
}

// Each task that is out has room for one line (leases_next). Beyond that a task's lines become one.
static void strike(struct leases *self, const struct lease *lease)
{
    uint32_t at = 0;
    if (leases_has_struck(self, lease)) return;
    while (at < self->struck_count && self->struck[at].task != lease->task) at++;
    const bool is_full = self->struck_count + self->count >= STRIKES_KEPT_MAX;
    const uint32_t count = is_full && at < self->struck_count ? self->struck[at].count : 0;
    if (count == 0) at = self->struck_count++;
    ensure(at < STRIKES_KEPT_MAX);
    self->struck[at] = (struct strikes){ lease->task, count + 1, lease->member, lease->instance };
}

static void note_time(struct leases *self, uint64_t took_ms)
{
    if (self->average_ms == 0) self->average_ms = took_ms + 1;
    else self->average_ms = (self->average_ms * (LEASE_AVERAGE - 1) + took_ms) / LEASE_AVERAGE + 1;
}

// No operation here makes more entries, so none is refused for want of room.
static void move(struct table *table, uint64_t number, enum lease_end end)
{
    struct interval list[64];
    if (end == LEASE_RETURNED) ensure(table_return_rest(table, number) == TABLE_OK);
    for (;;) { // As many intervals at a time as the list has room for
        uint32_t count = 0;
        for (uint32_t i = 0; i < table->count && count < 64; i++) {
            const struct wire_table_entry *entry = &table->entries[i];
            if (entry->state == TABLE_PENDING && entry->number == number)
                list[count++] = (struct interval){ entry->begin, entry->end };
        }
        if (count == 0) return;
        ensure((end == LEASE_DONE ? table_done : table_fail)(table, number, list, count) ==
               TABLE_OK);
    }
}

void leases_note_late(struct leases *self, uint64_t took_ms)
{
    if (self->average_ms) note_time(self, took_ms); // Else it had time_max_ms already
}

// Takes it off the list. False: it is not there.
static bool take_off(struct leases *self, uint64_t number, struct lease *ret_lease)
{
    uint32_t at = 0;
    while (at < self->count && self->leases[at].number != number) at++;
    if (at == self->count) return false;
    *ret_lease = self->leases[at];
    self->count--;
    memmove(&self->leases[at], &self->leases[at + 1], (self->count - at) * sizeof *ret_lease);
    return true;
}

enum lease_answer leases_give_back(struct leases *self, struct table *table, uint64_t number)
{
    struct lease lease;
    if (!take_off(self, number, &lease)) return LEASE_STALE;
    move(table, number, LEASE_RETURNED);
    return LEASE_OK;
}

enum lease_answer leases_end(struct leases *self, struct table *table, uint64_t number,
                             enum lease_end end, uint64_t now_ms)
{
    struct lease lease;
    // mutant: leases: a lease that is over ends once more
    if (!take_off(self, number, &lease)) return LEASE_STALE;
    move(table, number, end);
    if (end == LEASE_RETURNED) strike(self, &lease);
    else forget_strikes(self, lease.task);
    if (end == LEASE_DONE) note_time(self, now_ms - min(now_ms, lease.since_ms));
    return LEASE_OK;
}

// ---- questions ----------------------------------------------------------------------------------

const struct lease *leases_find(const struct leases *self, uint64_t number, uint32_t member,
                                uint64_t instance)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const struct lease *lease = &self->leases[i];
        // mutant: leases: anybody ends a lease
        if (lease->number == number && lease->member == member && lease->instance == instance)
            return lease;
    }
    return NULL;
}

const struct lease *leases_late(const struct leases *self, uint64_t now_ms)
{
    const struct lease *late = NULL;
    for (uint32_t i = 0; i < self->count; i++) {
        const struct lease *lease = &self->leases[i];
        if (lease->deadline_ms <= now_ms && (!late || lease->deadline_ms < late->deadline_ms))
            late = lease;
    }
    return late;
}

uint64_t leases_due_ms(const struct leases *self)
{
    uint64_t due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < self->count; i++) due_ms = min(due_ms, self->leases[i].deadline_ms);
    return due_ms;
}

const struct lease *leases_of_dead(const struct leases *self, uint32_t member, uint64_t instance)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->leases[i].member == member && self->leases[i].instance != instance)
            return &self->leases[i];
    return NULL;
}

uint64_t leases_time_ms(const struct leases *self, const struct lease_rules *rules)
{
    if (self->average_ms == 0 || self->average_ms > rules->time_max_ms / LEASE_TIMES)
        return rules->time_max_ms;
    return max(LEASE_TIMES * self->average_ms, rules->time_min_ms);
}

void leases_rearm(struct leases *self, const struct lease_rules *rules, uint64_t now_ms)
{
    for (uint32_t i = 0; i < self->count; i++) {
        self->leases[i].since_ms = now_ms;
        // mutant: leases: after a restart leases have what was left of their time
        self->leases[i].deadline_ms = now_ms + leases_time_ms(self, rules);
    }
}

// ---- counting -----------------------------------------------------------------------------------

// What is known of one task while the entries are read in order.
struct seen {
    struct interval task;
    bool todo, pending, failed;
};

// Todo if some of it is, else pending if some of it is, else failed if some of it is.
static void add_task(struct lease_counts *counts, const struct seen *seen)
{
    counts->todo += seen->todo;
    counts->pending += !seen->todo && seen->pending;
    counts->failed += !seen->todo && !seen->pending && seen->failed;
}

static void see(struct lease_counts *counts, struct seen *seen, struct interval task, uint8_t state)
{
    if (task.begin != seen->task.begin || interval_empty(seen->task)) {
        add_task(counts, seen);
        *seen = (struct seen){ .task = task };
    }
    seen->todo |= state == TABLE_TODO;
    seen->pending |= state == TABLE_PENDING;
    seen->failed |= state == TABLE_FAILED;
}

struct lease_counts leases_count(const struct table *table, const struct lease_rules *rules)
{
    const uint64_t pass = pass_of(table, table_frontier(table));
    const uint64_t begin = pass * table->pass_length, end = begin + table->pass_length;
    const uint64_t all = (table->pass_length + rules->task_samples - 1) / rules->task_samples;
    struct lease_counts counts = { .pass = pass };
    struct seen seen = { 0 };
    for (uint32_t i = 0; i < table->count; i++) {
        const struct wire_table_entry *entry = &table->entries[i];
        const uint64_t last = min(entry->end, end);
        for (uint64_t at = max(entry->begin, begin); at < last;) {
            const struct interval task = task_at(table, rules, at);
            see(&counts, &seen, task, entry->state);
            at = task.end;
        }
    }
    if (table->cursor < end) { // From here on all is todo
        const struct interval task = task_at(table, rules, max(table->cursor, begin));
        see(&counts, &seen, task, TABLE_TODO);
        counts.todo += (end - task.end + rules->task_samples - 1) / rules->task_samples;
    }
    add_task(&counts, &seen);
    counts.done = all - counts.todo - counts.pending - counts.failed;
    return counts;
}
