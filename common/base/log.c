// A line is put together in one buffer and written by one fprintf, so that lines of several threads
// do not mix. The cores' notes are lines, too: so what a line tells is found by its form, in
// log_fields, and goes from there into JSON and into the journal's fields. JOURNAL_STREAM is set
// where systemd reads our stderr; it names the stream, since a child whose stderr is a file has the
// variable as well. If the journal does not take a record, the line goes to stderr.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "common/base/clock.h"
#include "common/base/log.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024, JOURNAL_BYTES = 4096, NUMBER_BYTES_MAX = 15, NAME_BYTES_MAX = 40 };

static struct log_style how;
static bool begun, has_journal; // log_begin was called; and stderr is the journal

// ---- the parts of a line ------------------------------------------------------------------------

size_t log_event(const char *line)
{
    const size_t count = strcspn(line, " ");
    const size_t named = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return named == count && memchr(line, '.', count) ? count : 0;
}

static bool ends_value(char c) { return c == 0 || c == ' ' || c == ',' || c == ';'; }

// Sets the value that begins at `at`; returns what follows it.
static const char *take_value(const char *at, struct log_field *field)
{
    if (*at == '"') {
        const char *end = at + 1;
        while (*end && !(*end == '"' && ends_value(end[1]))) end++;
        field->value = at + 1;
        field->value_bytes = (size_t)(end - at) - 1;
        return *end ? end + 1 : end;
    }
    field->value = at;
    field->value_bytes = strcspn(at, " ");
    at += field->value_bytes;
    while (field->value_bytes && strchr(",;", field->value[field->value_bytes - 1]))
        field->value_bytes--;
    return at;
}

size_t log_fields(const char *line, struct log_field *ret_fields, size_t max)
{
    size_t count = 0;
    for (const char *at = line; *at && count < max;) {
        const size_t named = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        struct log_field *field = &ret_fields[count];
        if (named && named <= NAME_BYTES_MAX && islower((unsigned char)*at) && at[named] == '=') {
            field->name = at;
            field->name_bytes = named;
            at = take_value(at + named + 1, field);
            count++;
        } else at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return count;
}

// ---- JSON ---------------------------------------------------------------------------------------

struct text {
    char *out;
    size_t used, max;
};

static void put(struct text *self, const char *bytes, size_t count)
{
    if (self->used + count + 1 > self->max) return;
    memcpy(self->out + self->used, bytes, count);
    self->used += count;
    self->out[self->used] = 0;
}

// Bytes of the UTF-8 character at `at`; 0: it is none.
static size_t utf8_bytes(const char *at, size_t left)
{
    const unsigned char first = (unsigned char)*at;
    const size_t count = first < 0x80                    ? 1
                         : first >= 0xc2 && first < 0xe0 ? 2
                         : first >= 0xe0 && first < 0xf0 ? 3
                         : first >= 0xf0 && first < 0xf5 ? 4
                                                         : 0;
    if (count == 0 || count > left) return 0;
    for (size_t i = 1; i < count; i++)
        if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
    const unsigned char second = count > 1 ? (unsigned char)at[1] : 0;
    const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return bad ? 0 : count;
}

// Texts may be a peer's words: what is no UTF-8 becomes a question mark.
static void put_string(struct text *self, const char *bytes, size_t count)
{
    put(self, "\"", 1);
    for (size_t i = 0, taken; i < count; i += taken) {
        char escape[8];
        taken = utf8_bytes(bytes + i, count - i);
        if (taken == 0) put(self, "?", taken = 1);
        else if (taken > 1) put(self, bytes + i, taken);
        else if (bytes[i] == '"' || bytes[i] == '\\') put(self, (char[]){ '\\', bytes[i] }, 2);
        else if ((unsigned char)bytes[i] < 0x20)
            put(self, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", bytes[i]));
        else put(self, bytes + i, 1);
    }
    put(self, "\"", 1);
}

// A number as JSON writes one. Longer ones are digests or keys that have digits alone.
static bool is_number(const char *text, size_t count)
{
    size_t i = count && text[0] == '-', from = i;
    if (count > NUMBER_BYTES_MAX) return false;
    while (i < count && isdigit((unsigned char)text[i])) i++;
    if (i == from || (text[from] == '0' && i > from + 1)) return false;
    if (i < count && text[i] == '.') {
        from = ++i;
        while (i < count && isdigit((unsigned char)text[i])) i++;
        if (i == from) return false;
    }
    if (i < count && text[i] == 'e') {
        i++;
        i += i < count && (text[i] == '-' || text[i] == '+');
        from = i;
        while (i < count && isdigit((unsigned char)text[i])) i++;
        if (i == from) return false;
    }
    return i == count;
}

static void put_fields(struct text *self, const char *line)
{
    struct log_field fields[LOG_FIELDS_MAX];
    const size_t count = log_fields(line, fields, LOG_FIELDS_MAX);
    put(self, ",\"fields\":{", 11);
    for (size_t i = 0; i < count; i++) {
        if (i) put(self, ",", 1);
        put_string(self, fields[i].name, fields[i].name_bytes);
        put(self, ":", 1);
        if (is_number(fields[i].value, fields[i].value_bytes))
            put(self, fields[i].value, fields[i].value_bytes);
        else put_string(self, fields[i].value, fields[i].value_bytes);
    }
    put(self, "}", 1);
}

size_t log_json(const struct log_style *style, int priority, uint64_t unix_ms, const char *line,
                char *out, size_t max)
{
    struct text text = { .out = out, .max = max };
    char begin[160];
    const size_t event = log_event(line);
    put(&text, begin,
        (size_t)snprintf(begin, sizeof begin,
                         "{\"unix_ms\":%" PRIu64 ",\"from\":\"%s\",\"priority\":%d", unix_ms,
                         style->actor, priority));
    if (event) {
        put(&text, ",\"event\":", 9);
        put_string(&text, line, event);
    }
    put(&text, ",\"text\":", 8);
    put_string(&text, line, strlen(line));
    put_fields(&text, line);
    put(&text, "}", 1);
    return text.used;
}

// ---- the journal --------------------------------------------------------------------------------

struct record {
    struct iovec parts[LOG_FIELDS_MAX + 4];
    int count;
    struct text text;
};

// NAME=value, the name in capitals.
static void put_part(struct record *self, const char *prefix, const char *name, size_t name_bytes,
                     const char *value, size_t value_bytes)
{
    struct text *text = &self->text;
    const size_t from = text->used, needed = strlen(prefix) + name_bytes + 1 + value_bytes;
    if (from + needed + 1 > text->max) return;
    put(text, prefix, strlen(prefix));
    put(text, name, name_bytes);
    for (size_t i = from; i < text->used; i++)
        text->out[i] = (char)toupper((unsigned char)text->out[i]);
    put(text, "=", 1);
    put(text, value, value_bytes);
    self->parts[self->count++] = (struct iovec){ text->out + from, text->used - from };
}

static bool send_to_journal(int priority, const char *line, const char *message)
{
    char bytes[LOG_JSON_MAX + JOURNAL_BYTES], digit = (char)('0' + (priority & 7));
    struct record record = { .text = { .out = bytes, .max = sizeof bytes } };
    struct log_field fields[LOG_FIELDS_MAX];
    const size_t count = log_fields(line, fields, LOG_FIELDS_MAX), event = log_event(line);
    put_part(&record, "", "MESSAGE", 7, message, strlen(message));
    put_part(&record, "", "PRIORITY", 8, &digit, 1);
    if (how.actor[0]) put_part(&record, "SHOAL_", "ACTOR", 5, how.actor, strlen(how.actor));
    if (event) put_part(&record, "SHOAL_", "EVENT", 5, line, event);
    for (size_t i = 0; i < count; i++)
        put_part(&record, "SHOAL_", fields[i].name, fields[i].name_bytes, fields[i].value,
                 fields[i].value_bytes);
    return sd_journal_sendv(record.parts, record.count) == 0;
}

// Whether stderr is the stream that JOURNAL_STREAM names.
static bool is_journal(void)
{
    const char *named = getenv("JOURNAL_STREAM");
    struct stat stream;
    char text[64];
    if (!named || fstat(STDERR_FILENO, &stream) != 0) return false;
    snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)stream.st_dev, (uintmax_t)stream.st_ino);
    return strcmp(text, named) == 0;
}

// ---- lines --------------------------------------------------------------------------------------

void log_begin(const struct log_style *style)
{
    how = *style;
    has_journal = is_journal();
    begun = true;
}

bool log_is_json(void) { return how.json; }

static struct tm now_here(uint64_t ms)
{
    const time_t s = (time_t)(ms / 1000);
    struct tm when;
    localtime_r(&s, &when);
    return when;
}

static char *print_time(uint64_t ms, char text[LOG_TIME])
{
    const struct tm when = now_here(ms);
    snprintf(text, LOG_TIME, "%02u:%02u:%02u.%03u", (unsigned)when.tm_hour % 100,
             (unsigned)when.tm_min % 100, (unsigned)when.tm_sec % 100, (unsigned)(ms % 1000));
    return text;
}

char *log_time(char text[LOG_TIME]) { return print_time(clock_unix_ms(), text); }

static void print_line(const char *line)
{
    char date[16], time[LOG_TIME];
    const uint64_t ms = clock_unix_ms();
    const struct tm when = now_here(ms);
    strftime(date, sizeof date, "%Y-%m-%d", &when);
    fprintf(stderr, "%s %s %s\n", date, print_time(ms, time), line);
}

void log_line(int priority, const char *format, ...)
{
    char line[LINE_MAX_BYTES], json[LOG_JSON_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (how.json) log_json(&how, priority, clock_unix_ms(), line, json, sizeof json);
    const char *message = how.json ? json : line;
    if (has_journal && send_to_journal(priority, line, message)) return;
    if (how.json) fprintf(stderr, "%s\n", json);
    else if (begun ? has_journal : getenv("JOURNAL_STREAM") != NULL)
        fprintf(stderr, "<%d>%s\n", priority, line);
    else print_line(line);
}

int log_exit(int fault, const struct why *why)
{
    if (!how.json || fault == FAULT_NONE) return fault_exit(fault, why);
    log_line(LOG_ERR, "actor.fails fault=%s reason=\"%s\"", fault_name(fault),
             why && why->text[0] ? why->text : fault_sentence(fault));
    return fault_exit_code(fault);
}
