// table -- an operation that moves samples reads the map as stretches without gaps (walk), and writes the changed
// stretches into the spare half (build), which keeps them canonical. At the end the halves change places,
// unless the capacity is exceeded. Such operations differ only in which stretches they change.

#include "common/run/table.h"
#include "common/base/ensure.h"

static const uint64_t END = UINT64_MAX;

void table_init(struct table *self, struct wire_table_entry *memory, uint32_t capacity,
                uint64_t pass_length, uint64_t cursor)
{
    ensure(pass_length > 0);
    *self = (struct table){
        .pass_length = pass_length,
        .cursor = cursor,
        .capacity = capacity,
        .entries = memory,
        .spare = memory + capacity,
    };
}

// ---- Reading: the map as stretches from 0 to END without gaps, with done stretches and the tail ----

struct walk {
    uint32_t next;
    uint64_t at;
};

static bool walk_on(struct walk *walk, const struct table *table,
                    struct wire_table_entry *ret_stretch)
{
    if (walk->at == END) return false;
    const bool listed = walk->next < table->count;
    const uint64_t begin = listed ? table->entries[walk->next].begin : table->cursor;
    if (walk->at < begin) {
        *ret_stretch =
            (struct wire_table_entry){ .begin = walk->at, .end = begin, .state = TABLE_DONE };
    } else if (listed) {
        *ret_stretch = table->entries[walk->next++];
    } else {
        *ret_stretch =
            (struct wire_table_entry){ .begin = walk->at, .end = END, .state = TABLE_TODO };
    }
    walk->at = ret_stretch->end;
    return true;
}

// ---- Writing: stretches in rising order into the spare half, made canonical on the way ----

struct build {
    const struct table *table;
    uint32_t count;               // Entries so far, those beyond the capacity included
    struct wire_table_entry last; // Not written yet: the next stretch may continue it
};

static void build_flush(struct build *build)
{
    if (build->last.begin == build->last.end || build->last.state == TABLE_DONE) return;
    if (build->count < build->table->capacity) build->table->spare[build->count] = build->last;
    build->count++;
}

static void build_add(struct build *build, uint64_t begin, uint64_t end, uint8_t state,
                      uint64_t number)
{
    if (begin == end) return;
    if (build->last.end == begin && build->last.state == state && build->last.number == number) {
        build->last.end = end;
        return;
    }
    build_flush(build);
    build->last = (struct wire_table_entry){ begin, end, state, number };
}

// Every operation that moves samples ends here. The halves change places only if all entries had room.
static enum table_answer build_end(struct build *build, struct table *self)
{
    const bool tail = build->last.state == TABLE_TODO; // The last stretch ends at END
    const uint64_t cursor = tail ? build->last.begin : END;
    if (!tail) build_flush(build);
    if (build->count > self->capacity) return TABLE_FULL;
    struct wire_table_entry *entries = self->spare;
    self->spare = self->entries;
    self->entries = entries;
    self->count = build->count;
    self->cursor = cursor;
    return TABLE_OK;
}

// ---- The operations ----

enum table_answer table_deal(struct table *self, uint64_t number, uint64_t count,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count)
{
    struct build build = { .table = self };
    struct wire_table_entry stretch;
    uint32_t listed = 0;
    uint64_t left = count;
    for (struct walk walk = { 0 }; walk_on(&walk, self, &stretch);) {
        if (stretch.state == TABLE_TODO && left > 0) {
            const uint64_t length = stretch.end - stretch.begin,
                           take = length < left ? length : left;
            if (listed == list_max) return TABLE_LIST_FULL;
            ret_list[listed++] = (struct interval){ stretch.begin, stretch.begin + take };
            build_add(&build, stretch.begin, stretch.begin + take, TABLE_PENDING, number);
            stretch.begin += take;
            left -= take;
        }
        build_add(&build, stretch.begin, stretch.end, stretch.state, stretch.number);
    }
    if (left > 0) return TABLE_EXHAUSTED;
    const enum table_answer answer = build_end(&build, self);
    if (answer == TABLE_OK) *ret_count = listed;
    return answer;
}

struct mark {
    uint8_t state;
    uint64_t number;
};

// Changes the listed samples from `from` to `to`; all of them must be in `from`. Neighbours with one mark
// are one stretch, so an interval with one mark lies within one stretch.
static enum table_answer mark(struct table *self, struct mark from, struct mark to,
                              const struct interval *list, uint32_t count)
{
    struct build build = { .table = self };
    struct wire_table_entry stretch;
    uint32_t next = 0;
    if (!interval_list_tidy(list, count)) return TABLE_UNTIDY;
    for (struct walk walk = { 0 }; walk_on(&walk, self, &stretch);) {
        for (; next < count && list[next].begin < stretch.end; next++) {
            const struct interval *at = &list[next];
            if (stretch.state != from.state || stretch.number != from.number) return TABLE_STATE;
            if (at->end > stretch.end) return TABLE_STATE;
            build_add(&build, stretch.begin, at->begin, stretch.state, stretch.number);
            build_add(&build, at->begin, at->end, to.state, to.number);
            stretch.begin = at->end;
        }
        build_add(&build, stretch.begin, stretch.end, stretch.state, stretch.number);
    }
    return build_end(&build, self);
}

enum table_answer table_deal_again(struct table *self, uint64_t number, const struct interval *list,
                                   uint32_t count)
{
    const struct mark from = { TABLE_TODO, 0 }, to = { TABLE_PENDING, number };
    return mark(self, from, to, list, count);
}

enum table_answer table_done(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count)
{
    const struct mark from = { TABLE_PENDING, number }, to = { TABLE_DONE, 0 };
    return mark(self, from, to, list, count);
}

enum table_answer table_fail(struct table *self, uint64_t number, const struct interval *list,
                             uint32_t count)
{
    const struct mark from = { TABLE_PENDING, number }, to = { TABLE_FAILED, 0 };
    return mark(self, from, to, list, count);
}

enum table_answer table_return_rest(struct table *self, uint64_t number)
{
    struct build build = { .table = self };
    struct wire_table_entry stretch;
    for (struct walk walk = { 0 }; walk_on(&walk, self, &stretch);) {
        const bool rest = stretch.state == TABLE_PENDING && stretch.number == number;
        build_add(&build, stretch.begin, stretch.end, rest ? TABLE_TODO : stretch.state,
                  rest ? 0 : stretch.number);
    }
    return build_end(&build, self);
}

enum table_answer table_restore(struct table *self, uint8_t state, uint64_t number,
                                const struct interval *list, uint32_t count)
{
    ensure(state == TABLE_PENDING || number == 0);
    const struct mark from = { TABLE_DONE, 0 }, to = { state, number };
    return mark(self, from, to, list, count);
}

enum table_answer table_list(const struct table *self, uint8_t state, uint64_t number,
                             struct interval *ret_list, uint32_t list_max, uint32_t *ret_count)
{
    uint32_t listed = 0;
    ensure(state != TABLE_DONE && (state == TABLE_PENDING || number == 0));
    for (uint32_t i = 0; i < self->count; i++) {
        const struct wire_table_entry *entry = &self->entries[i];
        if (entry->state != state || entry->number != number) continue;
        if (listed == list_max) return TABLE_LIST_FULL;
        ret_list[listed++] = (struct interval){ entry->begin, entry->end };
    }
    *ret_count = listed;
    return TABLE_OK;
}

bool table_load(struct table *self, const struct wire_table_entry *entries, uint32_t count)
{
    if (count > self->capacity) return false;
    for (uint32_t i = 0; i < count; i++) self->entries[i] = entries[i];
    self->count = count;
    return table_check(self);
}

// ---- Questions ----

enum table_answer table_undealt(const struct table *self, uint64_t *ret_cursor,
                                struct interval *ret_list, uint32_t list_max, uint32_t *ret_count)
{
    struct wire_table_entry stretch;
    uint32_t listed = 0;
    *ret_cursor = END;
    for (struct walk walk = { 0 }; walk_on(&walk, self, &stretch);) {
        if (stretch.state != TABLE_TODO && stretch.state != TABLE_PENDING) continue;
        const bool goes_on = listed > 0 && ret_list[listed - 1].end == stretch.begin;
        if (stretch.end == END) *ret_cursor = goes_on ? ret_list[--listed].begin : stretch.begin;
        else if (goes_on) ret_list[listed - 1].end = stretch.end;
        else if (listed == list_max) return TABLE_LIST_FULL;
        else ret_list[listed++] = (struct interval){ stretch.begin, stretch.end };
    }
    *ret_count = listed;
    return TABLE_OK;
}

uint64_t table_frontier(const struct table *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->entries[i].state != TABLE_FAILED) return self->entries[i].begin;
    return self->cursor;
}

uint8_t table_state_at(const struct table *self, uint64_t position)
{
    uint32_t low = 0, high = self->count;
    if (position >= self->cursor) return TABLE_TODO;
    while (low < high) { // The first entry that ends after the position
        const uint32_t middle = low + (high - low) / 2;
        if (self->entries[middle].end <= position) low = middle + 1;
        else high = middle;
    }
    if (low == self->count || self->entries[low].begin > position) return TABLE_DONE;
    return self->entries[low].state;
}

bool table_equal(const struct table *a, const struct table *b)
{
    if (a->pass_length != b->pass_length || a->cursor != b->cursor) return false;
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct wire_table_entry *x = &a->entries[i], *y = &b->entries[i];
        if (x->begin != y->begin || x->end != y->end) return false;
        if (x->state != y->state || x->number != y->number) return false;
    }
    return true;
}

static bool entry_is_sound(const struct wire_table_entry *entry)
{
    if (entry->begin >= entry->end) return false;
    if (entry->state != TABLE_TODO && entry->state != TABLE_PENDING && entry->state != TABLE_FAILED)
        return false;
    return entry->state == TABLE_PENDING || entry->number == 0;
}

bool table_check(const struct table *self)
{
    if (self->pass_length == 0 || self->count > self->capacity) return false;
    for (uint32_t i = 0; i < self->count; i++) {
        const struct wire_table_entry *entry = &self->entries[i], *next = entry + 1;
        if (!entry_is_sound(entry) || entry->end > self->cursor) return false;
        if (i + 1 == self->count) return entry->end < self->cursor || entry->state != TABLE_TODO;
        if (entry->end > next->begin) return false;
        if (entry->end == next->begin && entry->state == next->state &&
            entry->number == next->number)
            return false;
    }
    return true;
}
