// core_seeds -- the conversations that fuzzing starts from: a run from the first JOIN to its end,
// as its coordinator hears it, and as its members hear it.

#include "common/base/ensure.h"
#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

// The choice of one field. A field that is not named gets choice 0, the plausible value.
struct choice {
    const char *field;
    uint8_t choice;
};
#define NUMBER(n) (uint8_t)((n) << 4 | 10) // The number itself
#define ITEMS(n)  (uint8_t)((n) + 1)       // A list of n elements

struct seed {
    uint8_t bytes[16384];
    size_t used;
};

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
        const uint16_t part = field->type == WIRE_TYPE_PART ? event_part_kind(field, choice) : 0;
        if (part) add_choices(seed, wire_table_frame(part)->record, choices);
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
    if (wire_table_frame(kind)) add_choices(seed, wire_table_frame(kind)->record, choices);
    while (seed->used > head + EVENT_HEAD && seed->bytes[seed->used - 1] == 0) seed->used--;
    if (seed->used > head + EVENT_HEAD + 255) seed->used = head + EVENT_HEAD + 255;
    seed->bytes[head + 3] = (uint8_t)(seed->used - head - EVENT_HEAD);
}

#define SAY(kind, from, after, ...)                                                                \
    say(seed, kind, from, after, (const struct choice[]){ __VA_ARGS__, { NULL, 0 } })

static const uint8_t trainers[] = { 1, 2, 3, 7, 11 };
enum { TRAINERS = sizeof trainers };

// From all trainers: those that are not elected are refused.
static void say_round(struct seed *seed)
{
    for (int i = 0; i < TRAINERS; i++) SAY(FRAME_VOTE, trainers[i], 4, { NULL, 0 });
    SAY(FRAME_VOTE, 4, 0, { NULL, 0 });
}

static void say_holds(struct seed *seed)
{
    for (int i = 0; i < TRAINERS; i++) SAY(FRAME_HOLDS, trainers[i], 0, { NULL, 0 });
}

static void set_rules(struct seed *seed, uint8_t bits)
{
    const uint8_t event[] = { EVENT_RULES, 0, 0, 1, bits };
    memcpy(seed->bytes, event, sizeof event);
    seed->used = sizeof event;
}

static void begin_run(struct seed *seed)
{
    SAY(FRAME_JOIN, 6, 0, { NULL, 0 });
    for (uint8_t from = 4; from <= 5; from++) SAY(FRAME_JOIN, from, 0, { NULL, 0 });
    for (int i = 0; i < TRAINERS; i++) SAY(FRAME_JOIN, trainers[i], 0, { NULL, 0 });
    SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
    say_holds(seed);
}

static void ask_everything(struct seed *seed)
{
    for (uint8_t topic = 0; topic < 4; topic++)
        SAY(FRAME_ASK, 2, 0, { "topic", NUMBER(topic) }, { "from", NUMBER(0) });
    SAY(FRAME_PING, 2, 0, { NULL, 0 });
    SAY(FRAME_POSITION, 2, 0, { NULL, 0 });
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
    struct seed *seed = &room;
    for (uint8_t bit = 0; bit < 7; bit++) {
        char name[32];
        set_rules(seed, (uint8_t)(1 << bit));
        SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(1) }); // One of them begins paused
        begin_run(seed);
        say_round(seed);
        restart_by_snapshot(seed);
        say_round(seed);
        snprintf(name, sizeof name, "seed-rules-%u", bit);
        fuzz_write_seed(folder, name, room.bytes, room.used);
    }
}

static void end_of_epoch(struct seed *seed)
{
    say_holds(seed);
    SAY(FRAME_CHECKPOINT, 5, 0, { NULL, 0 });
    SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
    say_holds(seed);
}

// A finding "same"; then a finding "different" that the judges confirm: the author is ejected.
static void write_audits(const char *folder)
{
    static struct seed room;
    struct seed *seed = &room;
    set_rules(seed, 64);
    begin_run(seed);
    for (uint8_t round = 1; round <= 6; round++) {
        for (int i = 0; i < TRAINERS; i++)
            SAY(FRAME_FINDING, trainers[i], 0, { "finding", NUMBER(round < 3 ? 1 : 2) });
        say_round(seed);
        if (round % 3 == 0) end_of_epoch(seed);
    }
    fuzz_write_seed(folder, "seed-audits", room.bytes, room.used);
}

// Two witnesses name two results of one client, and both claims are shown.
static void write_equivocation(const char *folder)
{
    static struct seed room;
    struct seed *seed = &room;
    room.used = 0;
    begin_run(seed);
    for (int i = 0; i < TRAINERS; i++)
        SAY(FRAME_VOTE, trainers[i], 0, { "result", i % 2 ? 5 : 13 });
    SAY(FRAME_CLAIM_COPY, 2, 0, { NULL, 0 });
    SAY(FRAME_CLAIM_COPY, 3, 0, { NULL, 0 });
    say_round(seed);
    fuzz_write_seed(folder, "seed-equivocation", room.bytes, room.used);
}

// On from a checkpoint, paused, and back to it.
static void write_restore(const char *folder, struct seed *seed)
{
    SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(2) });
    say_round(seed);
    SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(0) });
    say_round(seed);
    say_holds(seed);
    SAY(EVENT_WAKE, 0, 11, { NULL, 0 });
    SAY(EVENT_WAKE, 0, 11, { NULL, 0 });
    SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(3) });
    SAY(FRAME_CONTROL, 0, 0, { "action", NUMBER(1) });
    SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
    say_holds(seed);
    say_round(seed);
    fuzz_write_seed(folder, "seed-restore", seed->bytes, seed->used);
}

void core_write_seeds_coordinator(const char *folder)
{
    static struct seed room;
    struct seed *seed = &room;
    room.used = 0;
    begin_run(seed);
    fuzz_write_seed(folder, "seed-warmup", room.bytes, room.used);
    ask_everything(seed);
    for (int round = 0; round < 3; round++) say_round(seed);
    say_holds(seed);
    ask_everything(seed);
    fuzz_write_seed(folder, "seed-epoch", room.bytes, room.used);
    end_of_epoch(seed);
    const size_t checkpointed = room.used;
    SAY(EVENT_RESTART, 0, 0, { NULL, 0 });
    say_round(seed);
    SAY(FRAME_LEAVE, 3, 0, { NULL, 0 });
    restart_by_snapshot(seed);
    for (int round = 0; round < 2; round++) say_round(seed);
    end_of_epoch(seed);
    SAY(EVENT_WAKE, 0, 13, { NULL, 0 });
    fuzz_write_seed(folder, "seed-finished", room.bytes, room.used);
    room.used = checkpointed;
    write_restore(folder, seed);
    write_audits(folder);
    write_equivocation(folder);
    write_rules(folder);
}

// The process's own part: all that its core has asked of it, and what it asks because of that.
static void answer(struct seed *seed)
{
    for (int n = 0; n < 6; n++) SAY(EVENT_ANSWER, 0, 0, { NULL, 0 });
}

static void enter(struct seed *seed)
{
    SAY(FRAME_WELCOME, 0, 0, { NULL, 0 });
    SAY(FRAME_ADMITTED, 0, 0, { NULL, 0 });
    SAY(FRAME_CONFIG, 0, 0, { NULL, 0 });
    SAY(FRAME_ROSTER, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
}

// A round in which each trainer trains, reveals what is audited, or recomputes it; other roles
// say nothing.
static void train_round(struct seed *seed)
{
    SAY(FRAME_ROUND, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    SAY(FRAME_BEAT, 0, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_REVEAL, 3, 0, { NULL, 0 });
    SAY(FRAME_REVEAL, 2, 0, { NULL, 0 });
    for (uint8_t from = 1; from <= 3; from++) SAY(FRAME_CLAIM, from, 0, { NULL, 0 });
    SAY(FRAME_CLAIM, 0x12, 0, { NULL, 0 }); // By mail, from 3
    SAY(FRAME_CLAIM, 0x13, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_ACK, 2, 0, { NULL, 0 });
    SAY(FRAME_PROGRESS, 2, 0, { NULL, 0 });
    SAY(FRAME_SEND_CLAIM, 0, 0, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
    SAY(FRAME_COMMIT, 0, 9, { NULL, 0 });
    answer(seed);
}

static void end_epoch(struct seed *seed)
{
    SAY(FRAME_EPOCH_END, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
    SAY(EVENT_WAKE, 0, 11, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
}

// The process dies and finds its way back to the step of the run.
static void come_back(struct seed *seed)
{
    SAY(EVENT_RESTART, 0, 0, { NULL, 0 });
    enter(seed);
    answer(seed);
}

// Messages that no honest sender sends: each is refused or not counted.
static void lie(struct seed *seed)
{
    SAY(FRAME_ROUND, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    SAY(FRAME_CLAIM, 0x12, 0, { "payload_bytes", NUMBER(8) });
    SAY(FRAME_CLAIM, 2, 0, { NULL, 0 });
    SAY(FRAME_CLAIM, 0x12, 0, { "payload", 5 }); // Another claim of the same round
    SAY(FRAME_REFUSED, 0, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_COMMIT, 0, 0, { "outcome", NUMBER(0) }, { "accepted", ITEMS(0) });
}

static void write_life(const char *folder, struct seed *seed)
{
    seed->used = 0;
    enter(seed);
    fuzz_write_seed(folder, "seed-warmup", seed->bytes, seed->used);
    for (int round = 0; round < 2; round++) train_round(seed);
    SAY(FRAME_CONTROL, 0, 0, { NULL, 0 });
    train_round(seed);
    end_epoch(seed);
    fuzz_write_seed(folder, "seed-epoch", seed->bytes, seed->used);
    come_back(seed);
    for (int round = 0; round < 2; round++) train_round(seed);
    SAY(EVENT_QUIT, 0, 0, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
    fuzz_write_seed(folder, "seed-restart", seed->bytes, seed->used);
}

static void write_second_epoch(const char *folder, struct seed *seed)
{
    seed->used = 0;
    enter(seed);
    for (int round = 0; round < 4; round++) train_round(seed);
    come_back(seed);
    train_round(seed);
    lie(seed);
    SAY(EVENT_REBORN, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 11, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { NULL, 0 }); // It has shown where its ledger stands
    SAY(FRAME_ADMITTED, 0, 0, { NULL, 0 });
    train_round(seed);
    end_epoch(seed);
    SAY(EVENT_QUIT, 0, 0, { NULL, 0 });
    SAY(FRAME_ACK, 0, 0, { NULL, 0 });
    fuzz_write_seed(folder, "seed-finished", seed->bytes, seed->used);
}

// From step 3 back to step 2, which is pinned.
static void write_member_restore(const char *folder, struct seed *seed)
{
    seed->used = 0;
    enter(seed);
    for (int round = 0; round < 3; round++) train_round(seed);
    SAY(FRAME_RUN, 0, 0, { "phase", NUMBER(0) }, { "epoch", NUMBER(1) }, { "step", NUMBER(2) },
        { "restored_step", NUMBER(2) }, { "restored_epoch", NUMBER(1) });
    answer(seed);
    SAY(EVENT_WAKE, 0, 11, { NULL, 0 });
    answer(seed);
    for (int round = 0; round < 2; round++) train_round(seed);
    end_epoch(seed);
    fuzz_write_seed(folder, "seed-restore", seed->bytes, seed->used);
}

// What the core has asked of its process goes wrong, and then not; so long that blobs are
// forgotten.
static void write_failures(const char *folder, struct seed *seed)
{
    static const uint8_t failed[] = { EVENT_ANSWER, 0, 0, 2, 0, 2 };
    seed->used = 0;
    enter(seed);
    for (int round = 0; round < 8; round++) {
        SAY(FRAME_ROUND, 0, 0, { NULL, 0 });
        SAY(FRAME_RUN, 0, 0, { NULL, 0 });
        for (uint8_t from = 2; from <= 3; from++) SAY(FRAME_CLAIM, from, 0, { NULL, 0 });
        for (int n = 0; n < 3; n++) {
            memcpy(seed->bytes + seed->used, failed, sizeof failed);
            seed->used += sizeof failed;
        }
        SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
        answer(seed);
        SAY(FRAME_COMMIT, 0, 0, { NULL, 0 });
        answer(seed);
    }
    end_epoch(seed);
    SAY(EVENT_RESTART, 0, 0, { NULL, 0 });
    SAY(FRAME_ADMITTED, 0, 0, { NULL, 0 });
    SAY(FRAME_CONFIG, 0, 0, { NULL, 0 });
    SAY(FRAME_ROSTER, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    SAY(EVENT_ANSWER, 0, 0, { NULL, 0 }); // Built, but not available at once
    for (int n = 0; n < 4; n++) {
        memcpy(seed->bytes + seed->used, failed, sizeof failed);
        seed->used += sizeof failed;
        SAY(EVENT_WAKE, 0, 10, { NULL, 0 });
    }
    answer(seed);
    fuzz_write_seed(folder, "seed-failures", seed->bytes, seed->used);
}

// The coordinator begins another run of the name between claim and vote.
static void write_another_run(const char *folder, struct seed *seed)
{
    seed->used = 0;
    enter(seed);
    SAY(FRAME_ROUND, 0, 0, { NULL, 0 });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    answer(seed);
    SAY(FRAME_ADMITTED, 0, 0, { "born_unix_ms", NUMBER(7) });
    SAY(FRAME_RUN, 0, 0, { NULL, 0 });
    for (uint8_t from = 2; from <= 3; from++) SAY(FRAME_CLAIM, from, 0, { NULL, 0 });
    answer(seed);
    SAY(EVENT_WAKE, 0, 11, { NULL, 0 });
    fuzz_write_seed(folder, "seed-another-run", seed->bytes, seed->used);
}

void core_write_seeds_member(const char *folder)
{
    static struct seed room;
    write_life(folder, &room);
    write_second_epoch(folder, &room);
    write_member_restore(folder, &room);
    write_failures(folder, &room);
    write_another_run(folder, &room);
}
