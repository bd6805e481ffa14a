// curves -- the first line tells what the log is: a line of names is CSV, a line that begins with
// "{" is JSON lines. Then each line becomes one row.

#include "actors/shoal/plot/curves.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, NO_CURVE = CURVES, STEP_COLUMN = CURVES + 1 };

#define VALUE_MAX 1e100 // A number beyond it is none: sums of more might be infinite

static const char *const names[CURVES] = { "loss", "heldout_loss", "learning_rate",
                                           "tokens_per_s" };

struct reader {
    const char *path;
    struct curves *curves;
    uint64_t line;
    int columns[COLUMNS_MAX]; // Of CSV: a curve, NO_CURVE or STEP_COLUMN
    size_t columns_count;     // 0: JSON lines
    struct why *why;
};

static int refuse(const struct reader *self, const char *reason)
{
    return why_set(self->why, FAULT_FORMAT, "%s:%" PRIu64 ": %s", self->path, self->line, reason);
}

static void add_row(struct curves *self, const struct curves_row *row)
{
    while (self->count && self->rows[self->count - 1].step >= row->step) self->count--;
    if (self->count == self->capacity) {
        self->capacity = self->capacity ? self->capacity * 2 : 256;
        self->rows = realloc(self->rows, self->capacity * sizeof *self->rows);
        ensure(self->rows);
    }
    self->rows[self->count++] = *row;
}

static struct curves_row empty_row(void)
{
    return (struct curves_row){ .values = { NAN, NAN, NAN, NAN } };
}

// ---- CSV ----------------------------------------------------------------------------------------

static int column_of(const char *name)
{
    if (strcmp(name, "step") == 0) return STEP_COLUMN;
    for (int curve = 0; curve < CURVES; curve++)
        if (strcmp(name, names[curve]) == 0) return curve;
    return NO_CURVE;
}

static int read_names(struct reader *self, char *line)
{
    bool has_step = false;
    for (char *name; (name = strsep(&line, ","));) {
        if (self->columns_count == COLUMNS_MAX) return refuse(self, "more than 64 columns");
        const int column = column_of(name);
        has_step |= column == STEP_COLUMN;
        self->columns[self->columns_count++] = column;
    }
    return has_step ? 0
                    : refuse(self, "neither names of columns with a \"step\" nor JSON lines: give "
                                   "what shoal train --log wrote");
}

static bool read_number(const char *text, double *ret_value)
{
    char *end;
    *ret_value = strtod(text, &end);
    return *text && !*end;
}

static int read_csv(struct reader *self, char *line)
{
    struct curves_row row = empty_row();
    size_t column = 0;
    double value;
    for (char *field; (field = strsep(&line, ",")); column++) {
        if (column == self->columns_count) return refuse(self, "more fields than columns");
        const int what = self->columns[column];
        if (what == NO_CURVE || (!*field && what != STEP_COLUMN)) continue;
        if (!read_number(field, &value)) return refuse(self, "a field is no number");
        if (what != STEP_COLUMN) row.values[what] = fabs(value) <= VALUE_MAX ? value : NAN;
        else if (value >= 0 && value <= (double)(1ll << 53)) row.step = (uint64_t)value;
        else return refuse(self, "the step is no number of steps");
    }
    if (column < self->columns_count) return refuse(self, "fewer fields than columns");
    add_row(self->curves, &row);
    return 0;
}

// ---- JSON lines ---------------------------------------------------------------------------------

static int read_json(struct reader *self, const char *line)
{
    struct curves_row row = empty_row();
    json_t *object = json_loads(line, 0, NULL);
    const json_t *step = json_object_get(object, "step");
    const bool has_step = json_is_integer(step) && json_integer_value(step) >= 0;
    if (has_step) row.step = (uint64_t)json_integer_value(step);
    for (int curve = 0; curve < CURVES; curve++) {
        const json_t *value = json_object_get(object, names[curve]);
        if (json_is_number(value) && fabs(json_number_value(value)) <= VALUE_MAX)
            row.values[curve] = json_number_value(value);
    }
    json_decref(object);
    if (!has_step) return refuse(self, "no JSON object with a \"step\"");
    add_row(self->curves, &row);
    return 0;
}

// ---- the file -----------------------------------------------------------------------------------

static int read_line(struct reader *self, char *line, size_t count)
{
    self->line++;
    if (line[count - 1] != '\n') return 0; // Still being written
    line[count - 1] = 0;
    if (count > 1 && line[count - 2] == '\r') line[count - 2] = 0;
    if (self->line == 1 && line[0] != '{') return read_names(self, line);
    return self->columns_count ? read_csv(self, line) : read_json(self, line);
}

int curves_read(const char *path, struct why *why, struct curves *ret_curves)
{
    struct reader self = { .path = path, .curves = ret_curves, .why = why };
    char *line = NULL;
    size_t line_bytes = 0;
    int rc = 0;
    *ret_curves = (struct curves){ 0 };
    FILE *file = fopen(path, "re");
    if (!file) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    for (ssize_t count; rc == 0 && (count = getline(&line, &line_bytes, file)) > 0;)
        rc = read_line(&self, line, (size_t)count);
    if (rc == 0 && ferror(file)) rc = why_set(why, FAULT_IO, "%s: %s", path, strerror(errno));
    if (rc == 0 && ret_curves->count == 0)
        rc = why_set(why, FAULT_FORMAT, "%s: it has no step yet", path);
    free(line);
    fclose(file);
    return rc;
}

void curves_free(struct curves *self)
{
    free(self->rows);
    *self = (struct curves){ 0 };
}

double curves_last(const struct curves *self, enum curve curve)
{
    for (size_t i = self->count; i > 0; i--)
        if (!isnan(self->rows[i - 1].values[curve])) return self->rows[i - 1].values[curve];
    return NAN;
}
