// A line is put together in one buffer and written by one fprintf, so that lines of several threads
// do not mix. JOURNAL_STREAM is set where systemd reads our stderr.
#include "common/base/clock.h"
#include "common/base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

char *log_time(char text[LOG_TIME])
{
    const uint64_t ms = clock_unix_ms();
    const time_t s = (time_t)(ms / 1000);
    struct tm when;
    localtime_r(&s, &when);
    snprintf(text, LOG_TIME, "%02u:%02u:%02u.%03u", (unsigned)when.tm_hour % 100,
             (unsigned)when.tm_min % 100, (unsigned)when.tm_sec % 100, (unsigned)(ms % 1000));
    return text;
}

void log_line(int priority, const char *format, ...)
{
    char line[1024], time[LOG_TIME];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (getenv("JOURNAL_STREAM")) fprintf(stderr, "<%d>%s\n", priority, line);
    else fprintf(stderr, "%s %s\n", log_time(time), line);
}
