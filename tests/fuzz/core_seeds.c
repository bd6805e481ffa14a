// core_seeds -- conversations to begin with: a run from the first JOIN to its end, as its
// coordinator hears it, and as its members do.

#include "common/ensure.h"
#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

// What a field's choice is to be; of all that are not named: 0, what is plausible.
struct choice { const char *field; uint8_t choice; };
#define NUMBER(n) (uint8_t)((n) << 4 | 10)      // The number itself
#define ITEMS(n) (uint8_t)((n) + 1)             // So many elements of a list

struct seed { uint8_t bytes[16384]; size_t used; };

static uint8_t choice_of(const struct choice *choices, const char *name)
{
    for (; choices && choices->field; choices++)
        if (strcmp(choices->field, name) == 0) return choices->choice;
    return 0;
}

static void add_choices(struct seed *seed, const struct wire_record *record,
                        const struct choice *choices)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        const uint8_t choice = choice_of(choices, field->name);
        if (field->type == WIRE_TYPE_SUB) {
            add_choices(seed, field->record, choices);
            continue;
        }
        seed->bytes[seed->used++] = choice;
        const uint32_t items = choice ? choice - 1u : 3;
        for (uint32_t j = 0; field->type == WIRE_TYPE_LIST && j < items; j++)
            add_choices(seed, field->record, choices);
        ensure(seed->used < sizeof seed->bytes / 2);
    }
}

// One message; what follows the last choice that is not 0 need not be said.
static void say(struct seed *seed, uint16_t kind, uint8_t from, uint8_t after,
                const struct choice *choices)
{
    const size_t head = seed->used;
    seed->bytes[seed->used++] = (uint8_t)kind;
    seed->bytes[seed->used++] = from;
    seed->bytes[seed->used++] = after;
    seed->used++;
    if (wire_body_size(kind)) add_choices(seed, wire_table_frame(kind)->record, choices);
    while (seed->used > head + EVENT_HEAD && seed->bytes[seed->used - 1] == 0) seed->used--;
    if (seed->used > head + EVENT_HEAD + 255) seed->used = head + EVENT_HEAD + 255;
    seed->bytes[head + 3] = (uint8_t)(seed->used - head - EVENT_HEAD);
}

#define SAY(kind, from, after, ...) \
    say(seed, kind, from, after, (const struct choice[]){ __VA_ARGS__, { NULL, 0 } })

static void say_round(struct seed *seed)
{
    for (uint8_t from = 1; from <= 4; from++)
        SAY(FRAME_VOTE, from, 4, { "complete", 4 }, { "result", 5 }, { "payload", 5 },
            { "payload_bytes", NUMBER(9) }, { "participants", 254 });
}

static void set_rules(struct seed *seed, uint8_t bits)
{
    const uint8_t event[] = { EVENT_RULES, 0, 0, 1, bits };
    memcpy(seed->bytes, event, sizeof event);
    seed->used = sizeof event;
}

static void begin_run(struct seed *seed)
{
    SAY(FRAME_JOIN, 6, 0, { "samples", NUMBER(15) }, { "data", 5 });
    for (uint8_t from = 1; from <= 5; from++) SAY(FRAME_JOIN, from, 0, { "samples", 3 });
    SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
    for (uint8_t from = 1; from <= 3; from++) SAY(FRAME_HOLDS, from, 0, { "digest", 5 });
}

static void restart_by_snapshot(struct seed *seed)
{
    static const uint8_t event[] = { EVENT_RESTART, 0, 0, 1, 1 };
    memcpy(seed->bytes + seed->used, event, sizeof event);
    seed->used += sizeof event;
}

// The same under every other setting.
static void write_rules(const char *folder)
{
    static struct seed room;
    for (uint8_t bit = 0; bit < 6; bit++) {
        char name[32];
        set_rules(&room, (uint8_t)(1 << bit));
        begin_run(&room);
        say_round(&room);
        restart_by_snapshot(&room);
        say_round(&room);
        snprintf(name, sizeof name, "seed-rules-%u", bit);
        fuzz_write_seed(folder, name, room.bytes, room.used);
    }
}

void core_write_seeds_coordinator(const char *folder)
{
    static struct seed room;
    struct seed *seed = &room;
    room.used = 0;
    begin_run(seed);
    fuzz_write_seed(folder, "seed-warmup", room.bytes, room.used);
    for (int round = 0; round < 3; round++) say_round(seed);
    fuzz_write_seed(folder, "seed-epoch", room.bytes, room.used);
    SAY(FRAME_ASK, 2, 0, { "topic", NUMBER(3) });
    for (uint8_t from = 1; from <= 3; from++) SAY(FRAME_HOLDS, from, 0, { "digest", 13 });
    SAY(FRAME_CHECKPOINT, 5, 0, { NULL, 0 });
    SAY(EVENT_RESTART, 0, 0, { NULL, 0 });
    SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(0) });
    SAY(FRAME_CONTROL, 0, 5, { "action", NUMBER(1) });
    SAY(EVENT_WAKE, 0, 12, { NULL, 0 });
    restart_by_snapshot(seed);
    for (uint8_t from = 1; from <= 3; from++) SAY(FRAME_HOLDS, from, 0, { "digest", 13 });
    say_round(seed);
    SAY(FRAME_LEAVE, 3, 0, { NULL, 0 });
    SAY(FRAME_PING, 2, 13, { NULL, 0 });
    SAY(EVENT_WAKE, 0, 13, { NULL, 0 });
    fuzz_write_seed(folder, "seed-cooldown", room.bytes, room.used);
    write_rules(folder);
}

static void answer(struct seed *seed, int times)
{
    while (times--) SAY(EVENT_ANSWER, 0, 0, { NULL, 0 });
}

void core_write_seeds_member(const char *folder)
{
    static struct seed room;
    struct seed *seed = &room;
    room.used = 0;
    SAY(FRAME_WELCOME, 0, 0, { NULL, 0 });
    SAY(FRAME_ADMITTED, 0, 0, { NULL, 0 });
    SAY(FRAME_CONFIG, 0, 0, { NULL, 0 });
    SAY(FRAME_ROSTER, 0, 0, { "version", NUMBER(1) }, { "members", ITEMS(12) },
        { "state", NUMBER(1) });
    SAY(FRAME_RUN, 0, 0, { "phase", NUMBER(1) }, { "log_seq", NUMBER(1) }, { "pin_digest", 3 });
    answer(seed, 3);
    fuzz_write_seed(folder, "seed-warmup", room.bytes, room.used);
    for (uint8_t round = 1; round <= 3; round++) {
        SAY(FRAME_RUN, 0, 1, { "phase", NUMBER(2) }, { "round", NUMBER(round) },
            { "step", NUMBER(round - 1) }, { "log_seq", NUMBER(2 * round) }, { "pin_digest", 3 });
        SAY(FRAME_ROUND, 0, 0, { "round", NUMBER(round) }, { "step", NUMBER(round - 1) },
            { "batch_size", NUMBER(3) }, { "base", 3 }, { "dealt", ITEMS(3) },
            { "clients", ITEMS(3) }, { "witnesses", ITEMS(5) }, { "returned", ITEMS(0) });
        SAY(EVENT_WAKE, 0, 9, { NULL, 0 });
        answer(seed, 2);
        for (uint8_t n = 0; n < 9; n++)             // One of three is what the seed dealt
            SAY(FRAME_CLAIM, n / 3, 0, { "client", NUMBER(n / 3) }, { "begin", NUMBER(n % 3) },
                { "end", NUMBER(n % 3 + 1) }, { "round", NUMBER(round) }, { "base", 3 },
                { "step", NUMBER(round - 1) }, { "payload", 5 }, { "payload_bytes", NUMBER(9) });
        answer(seed, 4);
        SAY(FRAME_COMMIT, 0, 6, { "outcome", NUMBER(1) }, { "round", NUMBER(round) },
            { "step", NUMBER(round - 1) }, { "payload", 5 }, { "payload_bytes", NUMBER(9) },
            { "base", 3 });
        answer(seed, 4);
    }
    fuzz_write_seed(folder, "seed-rounds", room.bytes, room.used);
    SAY(EVENT_RESTART, 0, 0, { NULL, 0 });
    SAY(FRAME_EPOCH_END, 0, 0, { "step", NUMBER(3) });
    SAY(FRAME_RUN, 0, 11, { "phase", NUMBER(4) }, { "step", NUMBER(3) }, { "log_seq", NUMBER(9) },
        { "pin_digest", 3 });
    answer(seed, 4);
    SAY(EVENT_REBORN, 0, 0, { NULL, 0 });
    SAY(FRAME_ACK, 2, 0, { "kind", 0 });
    SAY(FRAME_RUN, 0, 11, { "phase", NUMBER(5) }, { "step", NUMBER(3) }, { "log_seq", NUMBER(11) },
        { "pin_digest", 3 });
    SAY(EVENT_QUIT, 0, 0, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { "kind", NUMBER(0) });
    fuzz_write_seed(folder, "seed-end", room.bytes, room.used);
}
