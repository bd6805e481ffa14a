#pragma once
// command -- the command line of a program as one table: parsing, --help, --usage, refusals and
// environment twins follow from it. And the flags that all actors share. argp parses.
//
//     static const struct flag flags[] = {
//         FLAG("model", 'm', "DIR", TO_TEXT(struct sample, model), "A model's folder",
//              .needed = true),
//         FLAG("tokens", 'n', "N", TO_NUMBER(struct sample, tokens, 1, 65536), "How many (200)"),
//         FLAG("json", 0, NULL, TO_SWITCH(struct sample, json), "Print one JSON object"),
//         FLAGS_OF(command_flags, struct sample, command),
//         { 0 },
//     };
//     static const struct command_line line = { .flags = flags, .about = "Text from a model.\n" };
//     struct sample self = { .tokens = 200 };
//     int rc = command_parse(&line, argc, argv, &self, &why);
//
// A flag sets a field of the command's own struct. What that field holds before is the default. A
// flag wins over its environment twin, the twin over the default. Flags of Psyche that have no
// counterpart here are refused by name, so that a Psyche user learns at once what is missing.

#include "common/actor/post.h"
#include "common/actor/ticket.h"
#include <stddef.h>

// ---- the table ----------------------------------------------------------------------------------

enum flag_kind {
    FLAG_END,
    FLAG_TEXT,
    FLAG_SWITCH,
    FLAG_COUNT,
    FLAG_NUMBER,
    FLAG_REAL,
    FLAG_LIST,
    FLAG_TABLE,
    FLAG_REFUSED
};

// Where a value goes, and what it may be. Made by the TO_ macros below.
struct flag_target {
    enum flag_kind kind;
    size_t offset;            // Of the field in the command's struct
    size_t count_offset;      // FLAG_LIST: of its size_t counter
    uint64_t min, max;        // FLAG_NUMBER: the range; FLAG_LIST: at most `max` values
    double low, high;         // FLAG_REAL: the range
    const struct flag *table; // FLAG_TABLE: the flags of the struct at `offset`
};

struct flag {
    const char *name;     // Without its dashes
    int letter;           // Or 0
    const char *argument; // What --help calls the value; NULL: the flag has none
    struct flag_target to;
    const char *about; // A sentence with the default and the environment twin; FLAG_REFUSED: why
    int group;         // --help shows one group after the other, and sorts within
    const char *env;   // Environment twin, or NULL. Set but empty counts as not set
    bool needed;       // FLAG_TEXT: without it the command line is refused
};

// A row: the sentence, and then .group, .env and .needed where they are not zero.
#define FLAG(flag, character, value, target, ...)                                                  \
    {                                                                                              \
        .name = flag, .letter = character, .argument = value, .to = target, .about = __VA_ARGS__   \
    }
// A row that stands for all rows of another table, whose struct lies within this one.
#define FLAGS_OF(rows, type, field)                                                                \
    {                                                                                              \
        .to = {.kind = FLAG_TABLE, .offset = offsetof(type, field), .table = rows }                \
    }
// The same for another table of the same struct.
#define FLAGS_TOO(rows)                                                                            \
    {                                                                                              \
        .to = {.kind = FLAG_TABLE, .table = rows }                                                 \
    }
// A row for a flag of Psyche's that is refused. It is not in --help.
#define FLAG_OF_PSYCHE(flag, reason)                                                               \
    {                                                                                              \
        .name = flag, .to = { .kind = FLAG_REFUSED }, .about = reason                              \
    }

// The field's offset; another type of field does not compile.
#define FLAG_FIELD(type, field, wanted)                                                            \
    (offsetof(type, field) +                                                                       \
     0 * sizeof(                                                                                   \
             char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), wanted) ? 1 : -1]))

#define TO_TEXT(type, field)                                                                       \
    {                                                                                              \
        .kind = FLAG_TEXT, .offset = FLAG_FIELD(type, field, const char *)                         \
    }
#define TO_SWITCH(type, field)                                                                     \
    {                                                                                              \
        .kind = FLAG_SWITCH, .offset = FLAG_FIELD(type, field, bool)                               \
    }
#define TO_COUNT(type, field) /* Adds one each time */                                             \
    {                                                                                              \
        .kind = FLAG_COUNT, .offset = FLAG_FIELD(type, field, int)                                 \
    }
#define TO_NUMBER(type, field, least, most)                                                        \
    {                                                                                              \
        .kind = FLAG_NUMBER, .offset = FLAG_FIELD(type, field, uint64_t), .min = least,            \
        .max = most                                                                                \
    }
#define TO_REAL(type, field, least, most)                                                          \
    {                                                                                              \
        .kind = FLAG_REAL, .offset = FLAG_FIELD(type, field, double), .low = least, .high = most   \
    }
#define TO_LIST(type, field, counter, most) /* Appends to an array of texts */                     \
    {                                                                                              \
        .kind = FLAG_LIST, .offset = FLAG_FIELD(type, field[0], const char *),                     \
        .count_offset = FLAG_FIELD(type, counter, size_t), .max = most                             \
    }

// A default by which a command knows that a FLAG_NUMBER was not given.
#define COMMAND_NOT_GIVEN UINT64_MAX

enum { COMMAND_STRAY_MAX = 800 };

struct command_line {
    const struct flag *flags;     // Ended by a row of zeros; NULL: none
    const char *usage;            // What --usage says of the arguments that are no flags, or NULL
    const char *about;            // Sentences, an empty line, two examples
    struct flag_target arguments; // TO_TEXT: one; TO_LIST: several; zeros: none are taken
    const char *none;             // Error text if there is no argument; NULL: that is allowed
    // Where no arguments are taken: error text for one, in which the flag is named that was meant. NULL
    // as the field or as the answer: "Too many arguments".
    const char *(*stray)(const char *argument, char text[COMMAND_STRAY_MAX]);
    // Checks that concern several flags at once; NULL: there are none.
    int (*check)(const void *self, struct why *why);
};

// Reads environment and arguments into *self. A wrong line (an unknown flag, a missing flag, a
// fault of `check`) ends the process with EX_USAGE, a mistyped flag with the one that was meant; --help, --usage
// and --version end it with 0. A number out of its range is FAULT_USAGE with flag, value and range. Texts are
// borrowed from argv and the environment.
int command_parse(const struct command_line *line, int argc, char **argv, void *self,
                  struct why *why);

// ---- flags that all actors share ----------------------------------------------------------------

struct command {
    const char *identity_path; // -i, --identity-secret-key-path, IDENTITY_SECRET_KEY_PATH
    const char *run_id;        // --run-id, RUN_ID
    const char *server_addr;   // --server-addr, SERVER_ADDR: the broker's host:port
    const char *server_key;    // --server-key, SERVER_KEY: of its connections, 64 hex digits
    const char *owner;         // --owner, OWNER: the public key of the run's coordinator
    const char *ticket_text;   // --ticket, TICKET: all four at once, or a file that has them
    const char *state_dir;     // --state-dir, STATE_DIRECTORY
    bool json;                 // --json; of an actor: for its log
    int verbose;               // -v
    struct ticket ticket;      // Run, broker and keys from all of these, once checked
};

// For FLAGS_OF, with a struct command. --help shows them after all others.
enum { COMMAND_GROUP = 9 };
extern const struct flag command_flags[];

// Checks the shared flags together: a fault's text names flag, value and what is allowed. A flag
// wins over the ticket; the ticket fills in run_id and server_addr if they are not given. Fills in
// `ticket` for the post.
int command_check(struct command *self, struct why *why);

// The same for a command that needs a broker. FAULT_USAGE if its address or its key is not known.
// `address` is the default address; NULL: none.
int command_check_broker(struct command *self, const char *address, struct why *why);

// FAULT_USAGE if --run-id is not a run's name: 1 to WIRE_RUN_MAX of PLAIN_NAME_RULE.
int command_check_run(const char *run, struct why *why);

// The key that --owner gives; zeros if it is not given. FAULT_USAGE if it is none.
int command_owner(const struct command *self, struct why *why, struct key *ret_owner);

// How an actor's log looks from now on: --json, and the name that lines carry. Call it before
// threads start; again once the name is known in full.
void command_log(const struct command *self, const char *actor);

// Values that we pass on to another program or write into a line: FAULT_USAGE names one of more than
// COMMAND_TEXT_MAX bytes. NULL: not given.
enum { COMMAND_TEXT_MAX = 255 };
int command_check_texts(const char *const *texts, size_t count, struct why *why);

// Checks the value of --name: FAULT_USAGE says what a label may be (common/actor/name.h). NULL and ""
// stand for no label.
int command_check_label(const char *label, struct why *why);

// Loads the identity that path or environment name. From here on the process leaves no core dump and
// no debugger of the same user reads it, unless SHOAL_DUMPABLE is set.
int command_identity(const struct command *self, struct why *why, struct identity **ret_identity);

// getenv, but empty counts as not set.
const char *command_env(const char *name);

// A number within [min, max], or FAULT_USAGE.
int command_number(const char *flag, const char *text, uint64_t min, uint64_t max, struct why *why,
                   uint64_t *ret_value);

#ifdef SHOAL_BLAS
#define SHOAL_VERSION "0.1.0, built with BLAS=1: float32 products are NOT reproducible"
#else
#define SHOAL_VERSION "0.1.0"
#endif
