#pragma once
// log -- one line to stderr, in one write: a stable name first, then what happened as name=value.
//
//     log_begin (&(struct log_style){ .actor = "trainer.3fa2b1c4d5e6f708", .json = true });
//     log_line (LOG_WARNING, "broker.silent address=%s for_ms=%" PRIu64 "; connecting again", ...);
//
//     2026-11-22 21:55:03.123 broker.silent address=10.0.0.1:5550 for_ms=5000; connecting again
//     {"unix_ms":1795384503123,"from":"trainer.3fa2b1c4d5e6f708","priority":4,
//      "event":"broker.silent","text":"broker.silent address=...",
//      "fields":{"address":"10.0.0.1:5550","for_ms":5000}}                    (in one line)
//
// Under systemd, after log_begin, a line goes to the journal as a record: MESSAGE, PRIORITY,
// SHOAL_ACTOR, SHOAL_EVENT, and SHOAL_<NAME> for each name=value, so that `journalctl SHOAL_STEP=100`
// finds lines. Before log_begin, and in programs that do not call it, the line begins with its
// priority there. Priorities are those of syslog: LOG_ERR for what ends something, LOG_WARNING for
// what is odd and goes on, LOG_INFO for a change of phase, LOG_DEBUG for the rest. A line is cut
// after 1023 bytes. For shells and threads: cores do not log, they add a note to their outbox. Any
// thread, but no signal handler. Without memory for its JSON a line is written as it is.

#include "common/base/fault.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

struct log_style {
    char actor[48]; // The name that lines carry; "": none
    bool json;      // Lines are JSON objects
};

// How this process logs from now on. Call it before other threads start.
void log_begin(const struct log_style *style);

void log_line(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Texts that a program prints beside its log are lines of the log where lines are JSON.
bool log_is_json(void);

// fault_exit of an actor: its last line is one of the log, if lines are JSON.
int log_exit(int fault, const struct why *why);

// The time of day here, "hh:mm:ss.mmm"; returns `text`.
enum { LOG_TIME = 13 };
char *log_time(char text[LOG_TIME]);

// ---- the parts of a line ------------------------------------------------------------------------

// What stands as name=value in a line, in its order, at most `max`. A value ends at a space, or at
// the quotation mark that a space, a comma, a semicolon or the line's end follows. Borrows `line`.
enum { LOG_FIELDS_MAX = 24 };
struct log_field {
    const char *name, *value;
    size_t name_bytes, value_bytes;
};
size_t log_fields(const char *line, struct log_field *ret_fields, size_t max);

// The stable name that a line begins with, as a count of bytes; 0: it has none.
size_t log_event(const char *line);

// Writes the JSON object of a line, without a line break. Returns its bytes; 0, and no text: there
// is no memory, or `max` is too small. LOG_JSON_MAX has room for every line. Of two values with one
// name the first counts.
enum { LOG_JSON_MAX = 16384 };
size_t log_json(const struct log_style *style, int priority, uint64_t unix_ms, const char *line,
                char *out, size_t max);
