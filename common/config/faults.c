#include "common/config/faults.h"

#include <string.h>

#include "common/base/log.h"
#include "common/config/text.h"

void config_faults_init(struct config_faults *self, const char *file)
{
    *self = (struct config_faults){ .count = 0 };
    struct config_text name = config_text_in(self->file, sizeof self->file);
    config_text_add_safe(&name, file, strlen(file));
}

static const char *line_of(const char *bytes, size_t count, uint32_t line, size_t *ret_count)
{
    const char *end = bytes + count;
    for (uint32_t i = 1; i < line && bytes; i++) {
        bytes = memchr(bytes, '\n', (size_t)(end - bytes));
        if (bytes) bytes++;
    }
    if (!bytes) return NULL;
    const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
    *ret_count = (size_t)((newline ? newline : end) - bytes);
    while (*ret_count > 0 && bytes[*ret_count - 1] == '\r') --*ret_count;
    return bytes;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++) count += (*text & 0xc0) != 0x80;
    return count;
}

// A value of several lines is underlined to the end of its first line.
static uint32_t width_of(struct toml_place place, const char *source)
{
    const size_t line_end = characters(source) + 1;
    size_t end = place.end_line == place.line ? place.end_column : line_end;
    if (place.end_line == 0) end = place.column + 1;
    if (end > line_end) end = line_end;
    return end > place.column ? (uint32_t)(end - place.column) : 1;
}

void config_faults_add(struct config_faults *self, bool warning, struct toml_place place,
                       const char *bytes, size_t count, const char *text, const char *note)
{
    *(warning ? &self->warnings : &self->errors) += 1;
    if (self->count == CONFIG_FAULTS_MAX) return;
    struct config_fault *fault = &self->list[self->count++];
    *fault =
        (struct config_fault){ .line = place.line, .column = place.column, .warning = warning };
    struct config_text out = config_text_in(fault->text, sizeof fault->text);
    config_text_add_safe(&out, text, strlen(text));
    out = config_text_in(fault->note, sizeof fault->note);
    config_text_add_safe(&out, note, strlen(note));

    size_t line_count;
    const char *line = place.line && bytes ? line_of(bytes, count, place.line, &line_count) : NULL;
    if (!line || line_count >= sizeof fault->source) return;
    out = config_text_in(fault->source, sizeof fault->source);
    config_text_add_safe(&out, line, line_count);
    fault->width = width_of(place, fault->source);
}

static bool is_after(const struct config_fault *a, const struct config_fault *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

// Insertion sort, because it is stable: faults at the same place stay in the order they were found.
void config_faults_sort(struct config_faults *self)
{
    for (uint32_t i = 1; i < self->count; i++) {
        const struct config_fault fault = self->list[i];
        uint32_t place = i;
        for (; place > 0 && is_after(&self->list[place - 1], &fault); place--)
            self->list[place] = self->list[place - 1];
        self->list[place] = fault;
    }
}

static void print_fault(const struct config_fault *fault, const char *file, FILE *out)
{
    fprintf(out, "%s:", file);
    if (fault->line) fprintf(out, "%u:%u:", fault->line, fault->column);
    fprintf(out, " %s: %s", fault->warning ? "warning" : "error", fault->text);
    if (fault->source[0]) {
        fprintf(out, "\n%4u | %s\n     | %*s^", fault->line, fault->source, (int)fault->column - 1,
                "");
        for (uint32_t i = 1; i < fault->width; i++) fputc('~', out);
        if (fault->note[0]) fprintf(out, "  %s", fault->note);
    } else if (fault->note[0]) {
        fprintf(out, ": %s", fault->note);
    }
    fputc('\n', out);
}

static void print_count(uint32_t count, const char *what, FILE *out)
{
    fprintf(out, "%u %s%s", count, what, count == 1 ? "" : "s");
}

void config_faults_print(const struct config_faults *self, FILE *out)
{
    for (uint32_t i = 0; i < self->count; i++) print_fault(&self->list[i], self->file, out);
    if (self->errors + self->warnings > self->count)
        fprintf(out, "%s: %u more not shown\n", self->file,
                self->errors + self->warnings - self->count);
    if (self->errors == 0) return;
    fprintf(out, "%s: ", self->file);
    print_count(self->errors, "error", out);
    fprintf(out, ": nothing is loaded\n");
}

void config_faults_log(const struct config_faults *self)
{
    if (!log_is_json()) config_faults_print(self, stderr);
    for (uint32_t i = 0; log_is_json() && i < self->count; i++) {
        const struct config_fault *fault = &self->list[i];
        log_line(fault->warning ? LOG_WARNING : LOG_ERR,
                 "config.%s file=%s line=%u column=%u reason=\"%s\" note=\"%s\"",
                 fault->warning ? "warning" : "error", self->file, fault->line, fault->column,
                 fault->text, fault->note);
    }
}
