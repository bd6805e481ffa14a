// A line is put together in one buffer and written by one fprintf, so that lines of several threads
// do not mix. The cores' notes are lines, too: so what a line tells is found by its form, in
// log_fields, and goes from there into JSON and into the journal's fields. JOURNAL_STREAM is set
// where systemd reads our stderr; it names the stream, since a child whose stderr is a file has the
// variable as well. If the journal does not take a record, the line goes to stderr. If there is no
// memory for the JSON of a line, the line is written as it is.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "common/base/clock.h"
#include "common/base/log.h"
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 1024,
    JOURNAL_BYTES = 4096,
    NUMBER_BYTES_MAX = 15,
    NAME_BYTES_MAX = 40,
    UTF8_BYTES_MAX = 4
};

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

// Texts may be a peer's words, so what is not UTF-8 becomes question marks, one for each byte.
// jansson takes no such text, and says of each character whether it is one.
static json_t *text_of(const char *bytes, size_t count)
{
    char clean[LINE_MAX_BYTES];
    json_t *text = json_stringn(bytes, count);
    if (text || count > sizeof clean) return text;
    memcpy(clean, bytes, count);
    for (size_t i = 0, taken; i < count; i += taken) {
        for (taken = 1; taken <= UTF8_BYTES_MAX && taken <= count - i && !text; taken++)
            text = json_stringn(bytes + i, taken);
        taken = text ? taken - 1 : 1;
        if (!text) clean[i] = '?';
        json_decref(text);
        text = NULL;
    }
    return json_stringn(clean, count);
}

// A number as JSON writes one, or a text. Longer numbers are digests or keys that have digits
// alone.
static json_t *value_of(const struct log_field *field)
{
    const size_t count = field->value_bytes;
    const bool may_be_number = count > 0 && count <= NUMBER_BYTES_MAX &&
                               !isspace((unsigned char)field->value[0]) &&
                               isdigit((unsigned char)field->value[count - 1]);
    json_t *number = may_be_number ? json_loadb(field->value, count, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_number(number)) return number;
    json_decref(number);
    return text_of(field->value, count);
}

static json_t *fields_of(const char *line)
{
    struct log_field fields[LOG_FIELDS_MAX];
    const size_t count = log_fields(line, fields, LOG_FIELDS_MAX);
    json_t *object = json_object();
    for (size_t i = 0; i < count;
         i++) // The first wins: what a peer has said comes behind what we say
        if (!json_object_getn(object, fields[i].name, fields[i].name_bytes))
            json_object_setn_new(object, fields[i].name, fields[i].name_bytes,
                                 value_of(&fields[i]));
    return object;
}

size_t log_json(const struct log_style *style, int priority, uint64_t unix_ms, const char *line,
                char *out, size_t max)
{
    const size_t event = log_event(line);
    json_t *object =
        json_pack("{s:I, s:s, s:i, s:o*, s:o, s:o}", "unix_ms", (json_int_t)unix_ms, "from",
                  style->actor, "priority", priority, "event", event ? text_of(line, event) : NULL,
                  "text", text_of(line, strlen(line)), "fields", fields_of(line));
    const size_t count =
        object ? json_dumpb(object, out, max, JSON_COMPACT | JSON_REAL_PRECISION(15)) : 0;
    json_decref(object);
    out[count < max ? count : 0] = 0;
    return count < max ? count : 0;
}

// ---- the journal --------------------------------------------------------------------------------

struct record {
    struct iovec parts[LOG_FIELDS_MAX + 4];
    int count;
    char bytes[LOG_JSON_MAX + JOURNAL_BYTES];
    size_t used;
};

// NAME=value, the name in capitals.
static void put_part(struct record *self, const char *prefix, const char *name, size_t name_bytes,
                     const char *value, size_t value_bytes)
{
    char *part = self->bytes + self->used;
    const size_t prefix_bytes = strlen(prefix), named = prefix_bytes + name_bytes;
    const size_t count = named + 1 + value_bytes;
    if (count > sizeof self->bytes - self->used) return;
    memcpy(part, prefix, prefix_bytes);
    for (size_t i = 0; i < name_bytes; i++)
        part[prefix_bytes + i] = (char)toupper((unsigned char)name[i]);
    part[named] = '=';
    memcpy(part + named + 1, value, value_bytes);
    self->used += count;
    self->parts[self->count++] = (struct iovec){ part, count };
}

static bool send_to_journal(int priority, const char *line, const char *message)
{
    const char digit = (char)('0' + (priority & 7));
    struct record record;
    record.count = 0, record.used = 0;
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
    const bool is_json =
        how.json && log_json(&how, priority, clock_unix_ms(), line, json, sizeof json) > 0;
    const char *message = is_json ? json : line;
    if (has_journal && send_to_journal(priority, line, message)) return;
    if (is_json) fprintf(stderr, "%s\n", json);
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
