#pragma once
// log -- one line to stderr, in one write: a stable name first, then what happened as name=value.
//
//     log_line (LOG_WARNING, "broker.silent address=%s for_ms=%" PRIu64 "; connecting again", ...);
//
// Under systemd the line begins with its priority, as journald reads it; elsewhere with the time of
// day. Priorities are those of syslog: LOG_ERR for what ends something, LOG_WARNING for what is odd
// and goes on, LOG_INFO for a change of phase, LOG_DEBUG for the rest. A line is cut after 1023
// bytes. For shells and threads: cores do not log, they add a note to their outbox. Any thread.

#include <inttypes.h>
#include <syslog.h>

void log_line(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The time of day here, "hh:mm:ss.mmm"; returns `text`.
enum { LOG_TIME = 13 };
char *log_time(char text[LOG_TIME]);
