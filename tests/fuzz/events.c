// events -- turns bytes into events, and an event's choices into the fields of a body: the honest
// value, a value of the same name seen before, the sender's own, or a number at the edge of its
// range. Then mutations.

#include "tests/fuzz/events.h"
#include "common/actor/msg.h"
#include "common/crypto/identity.h"
#include "common/pace/rounds/bloom.h"
#include "common/base/ensure.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool event_next(const uint8_t **at, const uint8_t *end, struct event *ret_event)
{
    const uint8_t *p = *at;
    if (end - p < EVENT_HEAD) return false;
    const size_t left = (size_t)(end - p) - EVENT_HEAD;
    const unsigned power = p[2] & 15;
    *ret_event = (struct event){ .what = p[0],
                                 .signer = (p[1] & 15) % EVENT_PEOPLE,
                                 .bearer = (uint8_t)((p[1] & 15) + (p[1] >> 4)) % EVENT_PEOPLE,
                                 .other_run = p[2] & 0x10,
                                 .late = p[2] & 0x20,
                                 .after_ms = power ? UINT64_C(1) << power : 0,
                                 .choices = p + EVENT_HEAD,
                                 .choices_count = p[3] < left ? p[3] : (uint8_t)left };
    *at = p + EVENT_HEAD + ret_event->choices_count;
    return true;
}

const struct identity *event_identity(uint8_t person)
{
    static struct identity *identities[EVENT_PEOPLE];
    const uint8_t secret[SECRET_BYTES] = { 11, person };
    if (!identities[person]) ensure(identity_from_secret(secret, NULL, &identities[person]) == 0);
    return identities[person];
}

const struct event_person *event_people(void)
{
    static struct event_person people[EVENT_PEOPLE];
    static const uint8_t roles[EVENT_PEOPLE] = {
        ACTOR_COORDINATOR, ACTOR_TRAINER,      ACTOR_TRAINER,  ACTOR_TRAINER,
        ACTOR_WITNESS,     ACTOR_CHECKPOINTER, ACTOR_PROVIDER, ACTOR_TRAINER,
        ACTOR_WITNESS,     ACTOR_OPERATOR,     ACTOR_MONITOR,  ACTOR_TRAINER
    };
    for (uint8_t i = 0; i < EVENT_PEOPLE && people[0].name[0] == 0; i++) {
        const uint8_t place = EVENT_PEOPLE - 1 - i;
        struct event_person *person = &people[place];
        person->key = *identity_key(event_identity(place));
        person->role = roles[place];
        person->instance = 1000u + place;
        actor_name(person->role, &person->key, person->name);
    }
    return people;
}

// ---- the names of fields ------------------------------------------------------------------------

// A number for every name that a field of the table has: fields that are called alike share it.
static uint32_t number_of_name(const char *name)
{
    static const char *names[EVENT_NAMES_MAX];
    static uint32_t count;
    for (uint32_t i = 0; i < count; i++)
        if (names[i] == name || strcmp(names[i], name) == 0) return i;
    ensure(count < EVENT_NAMES_MAX);
    names[count] = name;
    return count++;
}

// What a field's name says of it beyond its type.
enum trait { PLAIN, ROLE, INSTANCE, PLACE, PLACE_AFTER, PERSON, CALLED, RUN, ENDPOINT, SIZE };

static enum trait trait_of_name(const char *name)
{
    static const struct {
        const char *name;
        enum trait trait;
    } known[] = { { "role", ROLE },         { "instance", INSTANCE }, { "client", PLACE },
                  { "index", PLACE },       { "member", PLACE },      { "begin", PLACE },
                  { "end", PLACE_AFTER },   { "key", PERSON },        { "author", PERSON },
                  { "name", CALLED },       { "to", CALLED },         { "run", RUN },
                  { "endpoint", ENDPOINT }, { "payload_bytes", SIZE } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].trait;
    return PLAIN;
}

struct seen {
    const struct wire_field *field;
    uint32_t number;
    enum trait trait;
};

// Each field's name is looked at once: a conversation has some ten thousand fields.
static const struct seen *see(const struct wire_field *field)
{
    static struct seen seen[4096];
    size_t at = ((uintptr_t)field >> 3) % 4096;
    while (seen[at].field && seen[at].field != field) at = (at + 1) % 4096;
    if (!seen[at].field)
        seen[at] = (struct seen){ field, number_of_name(field->name), trait_of_name(field->name) };
    return &seen[at];
}

static uint32_t number_of_field(const struct wire_field *field) { return see(field)->number; }

static bool is_hash(const struct wire_field *field)
{
    return field->type == WIRE_TYPE_BIN && field->max == HASH_BYTES;
}

static uint64_t read_number(const struct wire_field *field, const void *at)
{
    uint64_t value = 0;
    switch (field->type) {
    case WIRE_TYPE_U16: memcpy(&value, at, 2); break;
    case WIRE_TYPE_U32: memcpy(&value, at, 4); break;
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64: memcpy(&value, at, 8); break;
    case WIRE_TYPE_U8:
    case WIRE_TYPE_BOOL:
    case WIRE_TYPE_ENUM: memcpy(&value, at, 1); break;
    default: break;
    }
    return value;
}

static void keep_record(struct event_memory *self, const struct wire_record *record,
                        const void *body)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        const uint8_t *at = (const uint8_t *)body + field->offset;
        const uint32_t number = number_of_field(field);
        const uint32_t age = self->names[number].used % EVENT_AGES;
        if (field->type == WIRE_TYPE_SUB) keep_record(self, field->record, at);
        else if (field->type == WIRE_TYPE_LIST) {
            const uint8_t *items;
            uint32_t count;
            memcpy(&items, at, sizeof items);
            memcpy(&count, (const uint8_t *)body + field->count_offset, sizeof count);
            for (uint32_t j = 0; j < count && j < EVENT_LIST_MAX; j++)
                keep_record(self, field->record, items + (size_t)j * field->record->size);
        } else if (field->type == WIRE_TYPE_PART) {
            const struct wire_part *part = (const struct wire_part *)at;
            if (part->kind) keep_record(self, wire_table_frame(part->kind)->record, part->body);
        } else if (is_hash(field)) {
            memcpy(&self->names[number].hashes[age], at, HASH_BYTES);
            self->names[number].used++;
        } else if (field->type <= WIRE_TYPE_I64) {
            self->names[number].values[age] = read_number(field, at);
            self->names[number].used++;
        }
    }
}

void event_memory_keep(struct event_memory *self, uint16_t kind, const void *body)
{
    keep_record(self, wire_table_frame(kind)->record, body);
}

// ---- a body -------------------------------------------------------------------------------------

struct maker {
    const struct event *event;
    const struct event_memory *memory;
    struct wire_arena *arena;
    uint32_t used;         // Choices
    uint32_t place;        // In the list that is being made
    uint8_t role;          // That the body says; ACTOR_COUNT: none yet
    const uint8_t *honest; // The record that is being made, as honest.h would; or NULL
};

static const void *honest_at(const struct maker *self, const struct wire_field *field)
{
    return self->honest ? self->honest + field->offset : NULL;
}

static uint8_t choose(struct maker *self)
{
    return self->used < self->event->choices_count ? self->event->choices[self->used++] : 0;
}

static uint64_t choose_any(struct maker *self, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes--) value = value << 8 | choose(self);
    return value;
}

static uint64_t remembered(const struct maker *self, const struct wire_field *field, uint32_t age)
{
    const uint32_t number = number_of_field(field), used = self->memory->names[number].used;
    if (used <= age) return field->min;
    return self->memory->names[number].values[(used - 1 - age) % EVENT_AGES];
}

// Of a list's element it is often its own place, and of a sender its own process.
static uint64_t plausible(const struct maker *self, const struct wire_field *field)
{
    if (self->honest) return read_number(field, honest_at(self, field));
    const bool in_list = self->place != UINT32_MAX;
    const struct event_person *person =
        &event_people()[in_list ? self->place % EVENT_PEOPLE : self->event->signer];
    const enum trait trait = see(field)->trait;
    if (trait == ROLE) return person->role;
    if (trait == SIZE) return EVENT_PAYLOAD_BYTES;
    // The coordinator speaks of others' processes, of the newest that was heard of.
    if (trait == INSTANCE && (in_list || self->event->signer != 0)) return person->instance;
    if (trait == PLACE_AFTER && in_list) return self->place + 1;
    if (trait == PLACE && in_list) return self->place;
    return remembered(self, field, 0);
}

static void make_number(struct maker *self, const struct wire_field *field, uint8_t *out)
{
    const uint8_t choice = choose(self);
    uint64_t value = plausible(self, field);
    switch (choice & 15) {
    case 0: break;
    case 1: value += 1u + (choice >> 4); break;
    case 2: value -= 1u + (choice >> 4); break;
    case 3: value = field->min; break;
    case 4: value = field->max; break;
    case 5: value = field->max - (choice >> 4); break;
    case 6: value = choose_any(self, 8); break;
    case 7: value = choose_any(self, 4); break;
    case 8: value = choose_any(self, 2); break;
    case 9: value = remembered(self, field, choice >> 4 & 7); break;
    default: value = choice >> 4; break;
    }
    if (field->type == WIRE_TYPE_I64) {
        const int64_t low = (int64_t)field->min, high = (int64_t)field->max;
        if ((int64_t)value < low) value = field->min;
        if ((int64_t)value > high) value = field->max;
    } else {
        if (value < field->min) value = field->min;
        if (value > field->max) value = field->max;
    }
    if (see(field)->trait == ROLE) self->role = (uint8_t)value;
    const uint8_t byte = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    switch (field->type) {
    case WIRE_TYPE_U16: memcpy(out, &two, 2); break;
    case WIRE_TYPE_U32: memcpy(out, &four, 4); break;
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64: memcpy(out, &value, 8); break;
    default: memcpy(out, &byte, 1);
    }
}

// Another one for every seed, and nothing that hashes to it (splitmix64's finaliser, four times).
static struct hash make_up_hash(const uint8_t seed[4])
{
    struct hash hash;
    uint32_t number;
    memcpy(&number, seed, sizeof number);
    for (uint64_t i = 0, word; i < HASH_BYTES / sizeof word; i++) {
        word = (number | (i + 1) << 32) * UINT64_C(0x9e3779b97f4a7c15);
        word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
        word ^= word >> 31;
        memcpy(hash.bytes + i * sizeof word, &word, sizeof word);
    }
    return hash;
}

static struct hash key_of(uint32_t person)
{
    struct hash hash;
    memcpy(hash.bytes, event_people()[person].key.bytes, HASH_BYTES);
    return hash;
}

// A hash that was seen under this name, one that belongs to this place of the list, a key, none.
static struct hash make_hash(struct maker *self, const struct wire_field *field)
{
    const uint32_t number = number_of_field(field), used = self->memory->names[number].used;
    const uint8_t choice = choose(self);
    const uint32_t place = self->place == UINT32_MAX ? 0 : self->place;
    const bool is_key = see(field)->trait == PERSON;
    const uint8_t seed[4] = { (uint8_t)number, (uint8_t)place, choice, (uint8_t)(place >> 8) };
    if (place >= EVENT_LIST_MAX) return make_up_hash(seed); // Of many, each another one
    switch (choice & 7) {
    case 0:
        if (self->honest) return *(const struct hash *)honest_at(self, field);
        if (is_key && self->place != UINT32_MAX) return key_of(place % EVENT_PEOPLE);
        if (is_key) return key_of(self->event->signer);
        if (used) return self->memory->names[number].hashes[(used - 1) % EVENT_AGES];
        return make_up_hash(seed);
    case 1:
        return used ? self->memory->names[number].hashes[(choice >> 3) % EVENT_AGES]
                    : make_up_hash(seed);
    case 2: return key_of((choice >> 3) % EVENT_PEOPLE);
    case 3: return (struct hash){ { 0 } };
    case 4: { // Of any other name
        const uint32_t other = choose(self) % EVENT_NAMES_MAX;
        return self->memory->names[other].hashes[(choice >> 3) % EVENT_AGES];
    }
    default: return make_up_hash(seed);
    }
}

static void make_text(struct maker *self, const struct wire_field *field, char *out)
{
    const struct event_person *people = event_people();
    const uint8_t choice = choose(self);
    const uint32_t place =
        self->place == UINT32_MAX ? self->event->signer : self->place % EVENT_PEOPLE;
    const char *text = "text";
    char name[ACTOR_NAME_MAX + 1];
    if (see(field)->trait == CALLED) {
        actor_name_with(self->role < ACTOR_COUNT ? self->role : people[place].role,
                        choice & 64 ? "anna" : "", &people[place].key, name);
        text = name;
    }
    if (see(field)->trait == RUN) text = "fuzz";
    if (see(field)->trait == ENDPOINT) text = "tcp://127.0.0.1:4";
    if (self->honest) text = honest_at(self, field);
    switch (choice & 7) {
    case 0: break;
    case 1: text = ""; break;
    case 2: text = people[(choice >> 3) % EVENT_PEOPLE].name; break;
    case 3: text = "\x7f\xff'\"\\ %s%n ../"; break;
    case 4:
        memset(out, 'x', field->max);
        out[field->max] = 0;
        return;
    default:
        for (uint64_t i = 0; i < (uint64_t)(choice >> 3) && i < field->max; i++) {
            const uint8_t byte = choose(self);
            out[i] = (char)(byte < 0x20 ? 0x20 + byte : byte);
        }
        return;
    }
    snprintf(out, field->max + 1, "%s", text);
}

static void *take(struct maker *self, size_t count)
{
    struct wire_arena *arena = self->arena;
    arena->used += (16 - arena->used % 16) % 16;
    ensure(arena->used <= arena->max && count <= arena->max - arena->used);
    arena->used += count;
    return arena->bytes + arena->used - count;
}

static void make_record(struct maker *self, const struct wire_record *record, const uint8_t *honest,
                        uint8_t *body);

// As many elements as an honest one has, or as there are clients; or as the choice says.
static void make_list(struct maker *self, const struct wire_field *field, uint8_t *body)
{
    const uint8_t choice = choose(self);
    const uint32_t before = self->place;
    const uint8_t *honest = NULL;
    uint32_t honest_count = 0;
    if (self->honest) {
        memcpy(&honest, self->honest + field->offset, sizeof honest);
        memcpy(&honest_count, self->honest + field->count_offset, sizeof honest_count);
    }
    uint32_t count = choice == 0     ? self->honest ? honest_count : 3
                     : choice == 255 ? EVENT_MANY
                                     : (choice - 1u) % EVENT_LIST_MAX;
    if (count > field->max) count = (uint32_t)field->max;
    uint8_t *items = take(self, (size_t)count * field->record->size);
    memset(items, 0, (size_t)count * field->record->size);
    for (self->place = 0; self->place < count; self->place++) {
        const size_t at = (size_t)self->place * field->record->size;
        make_record(self, field->record, self->place < honest_count ? honest + at : NULL,
                    items + at);
    }
    self->place = before;
    memcpy(body + field->offset, &items, sizeof items);
    memcpy(body + field->count_offset, &count, sizeof count);
}

uint16_t event_part_kind(const struct wire_field *field, uint8_t choice)
{
    uint16_t kind = FRAME_NONE;
    while (choice > 0 && (kind = wire_kind_next(kind)) != FRAME_NONE)
        if (wire_kind_flags(kind) & field->max) choice--;
    return kind;
}

// The part of an honest sender, borrowed whole; or one whose kind the choice names.
static void make_part(struct maker *self, const struct wire_field *field, uint8_t *out)
{
    const uint8_t choice = choose(self);
    const struct wire_part *honest = honest_at(self, field);
    struct wire_part part = { .kind = event_part_kind(field, choice) };
    if (choice == 0 && honest) part = *honest;
    else if (part.kind) {
        const struct wire_record *record = wire_table_frame(part.kind)->record;
        uint8_t *body = take(self, record->size);
        memset(body, 0, record->size);
        make_record(self, record, honest && honest->kind == part.kind ? honest->body : NULL, body);
        part.body = body;
    }
    memcpy(out, &part, sizeof part);
}

static void make_bytes(struct maker *self, const struct wire_field *field, uint8_t *out)
{
    const uint8_t choice = choose(self);
    if (choice == 0 && self->honest) { // Borrowed like the rest of what is honest
        memcpy(out, honest_at(self, field), sizeof(struct wire_bytes));
        return;
    }
    const bool is_bloom = choice == 254 && field->max >= 64;
    const uint8_t items = is_bloom ? choose(self) : 0;
    uint32_t count = choice == 255 ? (uint32_t)field->max : choice;
    if (is_bloom) count = (uint32_t)bloom_bytes(items ? items : 3);
    if (count > field->max) count = (uint32_t)field->max;
    uint8_t *bytes = take(self, count);
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = is_bloom && i < BLOOM_HEAD_BYTES ? 0 : i < 64 ? choose(self) : (uint8_t)i;
    if (is_bloom) bytes[0] = items ? items : 3;
    const struct wire_bytes view = { bytes, count };
    memcpy(out, &view, sizeof view);
}

static void make_float(struct maker *self, const struct wire_field *field, uint8_t *out)
{
    static const float values[] = { 0, 1, -1, 1e-45f, 3.4e38f, -3.4e38f, 0.5f, -0.0f };
    const uint8_t choice = choose(self);
    const float single = values[choice % 8];
    const double wide = (double)single;
    if (choice == 0 && self->honest) {
        memcpy(out, honest_at(self, field),
               field->type == WIRE_TYPE_F64 ? sizeof wide : sizeof single);
        return;
    }
    if (field->type == WIRE_TYPE_F64) memcpy(out, &wide, sizeof wide);
    else memcpy(out, &single, sizeof single);
}

static void make_bin(struct maker *self, const struct wire_field *field, uint8_t *out)
{
    const uint8_t choice = choose(self);
    if (choice == 0 && self->honest) memcpy(out, honest_at(self, field), field->max);
    else memset(out, choice, field->max);
}

static void make_record(struct maker *self, const struct wire_record *record, const uint8_t *honest,
                        uint8_t *body)
{
    const uint8_t *around = self->honest;
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        uint8_t *out = body + field->offset;
        self->honest = honest;
        switch (field->type) {
        case WIRE_TYPE_F32:
        case WIRE_TYPE_F64: make_float(self, field, out); break;
        case WIRE_TYPE_STR: make_text(self, field, (char *)out); break;
        case WIRE_TYPE_BYTES: make_bytes(self, field, out); break;
        case WIRE_TYPE_SUB: make_record(self, field->record, honest_at(self, field), out); break;
        case WIRE_TYPE_LIST: make_list(self, field, body); break;
        case WIRE_TYPE_PART: make_part(self, field, out); break;
        case WIRE_TYPE_BIN:
            if (is_hash(field)) {
                const struct hash hash = make_hash(self, field);
                memcpy(out, &hash, sizeof hash);
            } else make_bin(self, field, out);
            break;
        default: make_number(self, field, out);
        }
    }
    self->honest = around;
}

void *event_body(const struct event *event, const struct event_memory *memory, const void *honest,
                 struct wire_arena *arena)
{
    const struct wire_record *record = wire_table_frame(event->what)->record;
    struct maker maker = {
        .event = event, .memory = memory, .arena = arena, .place = UINT32_MAX, .role = ACTOR_COUNT
    };
    struct wire_refusal refusal;
    arena->used = 0;
    uint8_t *body = take(&maker, record->size);
    memset(body, 0, record->size);
    make_record(&maker, record, honest, body);
    ensure(wire_valid(event->what, body, &refusal));
    return body;
}

// ---- mutations ----------------------------------------------------------------------------------

enum { EVENTS_MAX = 512 };

static uint32_t roll(uint32_t *seed, size_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return below ? (uint32_t)((*seed >> 8) % below) : 0;
}

static bool comes_from_outside(uint16_t kind)
{
    return wire_kind_flags(kind) & (WIRE_MAIL | WIRE_NEWS);
}

static uint8_t roll_what(uint32_t *seed)
{
    static const uint8_t others[] = { EVENT_ANSWER, EVENT_ANSWER,  EVENT_WAKE,
                                      EVENT_QUIT,   EVENT_RESTART, EVENT_REBORN };
    uint8_t known[128];
    uint32_t count = 0;
    for (uint16_t kind = wire_kind_next(0); kind && kind < 100; kind = wire_kind_next(kind))
        if (comes_from_outside(kind)) known[count++] = (uint8_t)kind;
    const uint32_t place = roll(seed, count + sizeof others);
    return place < count ? known[place] : others[place - count];
}

// Room of `count` bytes at `at`; 0 if there is none.
static size_t open_gap(uint8_t *bytes, size_t used, size_t max, size_t at, size_t count)
{
    if (used + count > max) return 0;
    memmove(bytes + at + count, bytes + at, used - at);
    return count;
}

size_t event_mutate(uint8_t *bytes, size_t count, size_t max, uint32_t seed)
{
    size_t starts[EVENTS_MAX + 1];
    size_t events = 0;
    struct event event;
    const uint8_t *at = bytes;
    if (seed & 1 && count) return fuzz_mutate_blindly(bytes, count, max);
    while (events < EVENTS_MAX) {
        starts[events] = (size_t)(at - bytes);
        if (!event_next(&at, bytes + count, &event)) break;
        events++;
    }
    starts[events] = (size_t)(at - bytes);
    count = starts[events];
    const size_t one = roll(&seed, events), other = roll(&seed, events);
    const size_t begin = events ? starts[one] : 0;
    const size_t length = events ? starts[one + 1] - begin : 0;
    uint8_t copy[EVENT_HEAD + 255];
    switch (events ? roll(&seed, 8) : 0) {
    case 0: { // A new one that fits
        const size_t place = events ? starts[roll(&seed, events + 1)] : 0;
        if (!open_gap(bytes, count, max, place, EVENT_HEAD)) return count;
        bytes[place] = roll_what(&seed);
        bytes[place + 1] = (uint8_t)roll(&seed, EVENT_PEOPLE);
        bytes[place + 2] = (uint8_t)(roll(&seed, 4) ? 0 : roll(&seed, 14));
        bytes[place + 3] = 0;
        return count + EVENT_HEAD;
    }
    case 1: // Twice, or said again later
        memcpy(copy, bytes + begin, length);
        if (!open_gap(bytes, count, max, starts[other], length)) return count;
        memcpy(bytes + starts[other], copy, length);
        return count + length;
    case 2: // Lost
        memmove(bytes + begin, bytes + begin + length, count - begin - length);
        return count - length;
    case 3: // Overtaken by the next one
        if (one + 1 == events) return count;
        memcpy(copy, bytes + begin, length);
        memmove(bytes + begin, bytes + begin + length, starts[one + 2] - starts[one + 1]);
        memcpy(bytes + begin + (starts[one + 2] - starts[one + 1]), copy, length);
        return count;
    case 4: bytes[begin + 1] = (uint8_t)roll(&seed, 256); return count; // Signed by another
    case 5: bytes[begin + 2] = (uint8_t)roll(&seed, 64); return count;
    default: { // Another choice; a field more if there is none
        const size_t place = begin + length;
        if (length > EVENT_HEAD && roll(&seed, 3)) {
            bytes[begin + EVENT_HEAD + roll(&seed, length - EVENT_HEAD)] =
                (uint8_t)roll(&seed, 256);
            return count;
        }
        const size_t more = 1 + roll(&seed, 6);
        if (length + more > EVENT_HEAD + 255 || !open_gap(bytes, count, max, place, more))
            return count;
        memset(bytes + place, 0, more);
        bytes[place + more - 1] = (uint8_t)roll(&seed, 256);
        bytes[begin + 3] = (uint8_t)(length - EVENT_HEAD + more);
        return count + more;
    }
    }
}

void event_print_dictionary(void)
{
    for (uint16_t kind = wire_kind_next(0); kind && kind < 100; kind = wire_kind_next(kind)) {
        const uint8_t bytes[EVENT_HEAD] = { (uint8_t)kind, 0, 0, 0 };
        if (comes_from_outside(kind))
            fuzz_print_token("event_", wire_kind_name(kind), bytes, sizeof bytes);
    }
}
