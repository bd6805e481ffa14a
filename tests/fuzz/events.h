#pragma once
// events -- bytes as a conversation: what a fuzzer's input says to a core, one message after the
// other, each from some sender, after some time, with fields that the bytes choose.
//
//     event:   what  from  after  count  choices[count]
//     what     a frame's number of frames.def, or one of enum event_what
//     from     low half: the signer; high half: the bearer, as a distance from the signer
//     after    low half: milliseconds since the event before, as a power of two; 0: none.
//              High half: 1 of another run, 2 of the incarnation before
//     choices  one byte for each field, in the table's order; where they end, all further are 0
//
// A choice of 0 is the plausible value: what an honest sender would say (honest.h); where that is
// unknown, what a field of this name held when it was last seen in this conversation, or what
// belongs to the sender (its name, its role, its process). Others are that value plus or minus one,
// the ends of the range, older values of the name, any value at all. So an event of four bytes is a
// message that fits, and a mutation of one byte changes one field; the sender is signed for after
// all mutations, by construction.

#include "common/actor/name.h"
#include "common/wire/wire_table.h"

enum event_what {
    EVENT_ANSWER = 240, // The job at place choices[0] is done; choices[1]: failed
    EVENT_WAKE = 241,
    EVENT_QUIT = 242,
    EVENT_RESTART = 243, // The process dies and comes back with what it had stored;
                         // choices[0]: by way of a snapshot
    EVENT_RULES = 244,   // As first event: choices[0] are bits of other settings
    EVENT_REBORN = 245,  // The coordinator that speaks to us has restarted
};

struct event {
    uint8_t what, signer, bearer; // Both below EVENT_PEOPLE
    bool other_run, late;
    uint64_t after_ms;
    const uint8_t *choices;
    uint8_t choices_count;
};

enum {
    EVENT_PEOPLE = 12,
    EVENT_HEAD = 4,
    EVENT_NAMES_MAX = 512,
    EVENT_AGES = 8,
    EVENT_LIST_MAX = 24,
    EVENT_MANY = 3000, // Of a list, if its choice is 255
    EVENT_PAYLOAD_BYTES = 9
}; // Of every result, if nothing else is said

// False at the end of the bytes. A last event that is cut short has fewer choices.
bool event_next(const uint8_t **at, const uint8_t *end, struct event *ret_event);

// The senders of a conversation: made up once, the same in every run. The first is the coordinator.
struct event_person {
    struct key key;
    uint8_t role;
    char name[ACTOR_NAME_MAX + 1];
    uint64_t instance;
};
const struct event_person *event_people(void);
struct identity;
const struct identity *event_identity(uint8_t person); // What they sign with: their key is its

// What the fields of a name held lately.
struct event_memory {
    struct {
        uint32_t used;
        uint64_t values[EVENT_AGES];
        struct hash hashes[EVENT_AGES];
    } names[EVENT_NAMES_MAX];
};
void event_memory_keep(struct event_memory *self, uint16_t kind, const void *body);

// The kind of a PART field: the first that it may be for a choice of 1, and so on. FRAME_NONE for 0
// and behind the last; a choice of 0 becomes the honest sender's part where that is known.
uint16_t event_part_kind(const struct wire_field *field, uint8_t choice);

// The body of a frame of this kind, in the arena, within all that the table declares. `honest` is
// the body that an honest sender would say, borrowed as long as the result; NULL: unknown.
void *event_body(const struct event *event, const struct event_memory *memory, const void *honest,
                 struct wire_arena *arena);

// A mutation of a conversation: doubles, drops, swaps, moves, re-addresses an event, changes a
// choice; every second time libFuzzer's own.
size_t event_mutate(uint8_t *bytes, size_t count, size_t max, uint32_t seed);
void event_print_dictionary(void); // One event of each kind that comes from outside
