// The reading half of choices.h: lines from anywhere, bounded before they are believed. A line is measured, then
// parsed; then its question, its choices and its answer are checked. The first fault ends the reading and names the
// line.

#include "actors/shoal/model/choices.h"
#include "common/base/strict_json.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16, VALUES_MAX = 4096 }; // Of the JSON of a line

static void question_free(struct choices_question *self)
{
    free(self->question);
    for (uint32_t i = 0; i < self->count && self->choices; i++) free(self->choices[i]);
    free(self->choices);
}

void choices_free(struct choices *self)
{
    for (size_t i = 0; i < self->count; i++) question_free(&self->questions[i]);
    free(self->questions);
    *self = (struct choices){ 0 };
}

static int copy(const char *text, struct why *why, char **ret_copy)
{
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : why_set(why, FAULT_MEMORY, "a question");
}

static int read_choices(const json_t *list, const char *place, struct why *why,
                        struct choices_question *question)
{
    const size_t count = json_array_size(list);
    if (count < 2)
        return why_set(why, FAULT_RANGE, "%s: %zu choices, allowed 2..%d", place, count,
                       CHOICES_MAX);
    question->choices = calloc(count, sizeof *question->choices);
    if (!question->choices) return why_set(why, FAULT_MEMORY, "%zu choices", count);
    question->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *choice = json_array_get(list, i);
        const size_t bytes = json_string_length(choice);
        if (!json_is_string(choice))
            return why_set(why, FAULT_FORMAT, "%s: choice %zu is no string", place, i);
        if (bytes < 1 || bytes > CHOICES_TEXT_MAX)
            return why_set(why, FAULT_RANGE, "%s: choice %zu has %zu bytes, allowed 1..%d", place,
                           i, bytes, CHOICES_TEXT_MAX);
        const int rc = copy(json_string_value(choice), why, &question->choices[i]);
        if (rc < 0) return rc;
    }
    return 0;
}

// A number from 0, or a letter from A.
static int read_answer(const json_t *answer, const char *place, struct why *why,
                       struct choices_question *question)
{
    const char *letter = json_string_value(answer);
    json_int_t number = -1;
    if (json_is_integer(answer)) number = json_integer_value(answer);
    else if (letter && letter[0] >= 'A' && letter[0] <= 'Z' && letter[1] == 0)
        number = letter[0] - 'A';
    if (number < 0 || number >= (json_int_t)question->count)
        return why_set(why, FAULT_RANGE,
                       "%s: 'answer' must be a number of 0 to %u or a letter of A to %c", place,
                       question->count - 1,
                       'A' + (question->count < 26 ? (int)question->count : 26) - 1);
    question->answer = (uint32_t)number;
    return 0;
}

static int read_object(const json_t *object, const char *place, struct why *why,
                       struct choices_question *question)
{
    const char *text;
    const json_t *list;
    int rc = strict_json_text(object, place, "question", CHOICES_TEXT_MAX, why, &text);
    if (rc == 0) rc = copy(text, why, &question->question);
    if (rc == 0) rc = strict_json_array(object, place, "choices", CHOICES_MAX, why, &list);
    if (rc == 0) rc = read_choices(list, place, why, question);
    return rc < 0 ? rc : read_answer(json_object_get(object, "answer"), place, why, question);
}

static int grow(struct choices *self, const char *place, struct why *why)
{
    if (self->count == CHOICES_QUESTIONS_MAX)
        return why_set(why, FAULT_LIMIT, "%s: more than %d questions", place,
                       CHOICES_QUESTIONS_MAX);
    if (self->count & (self->count - 1)) return 0; // Doubles at powers of two
    const size_t capacity = self->count ? 2 * self->count : 1;
    struct choices_question *questions = realloc(self->questions, capacity * sizeof *questions);
    if (!questions) return why_set(why, FAULT_MEMORY, "%zu questions", capacity);
    self->questions = questions;
    return 0;
}

static int parse_line(struct choices *self, const char *place, const char *line, size_t count,
                      uint64_t number, struct why *why)
{
    struct choices_question question = { .line = number };
    json_t *object = NULL;
    size_t blank = 0;
    // strchr would also find the zero at the end of its string
    while (blank < count && strchr(" \t\r", line[blank]) && line[blank]) blank++;
    if (blank == count) return 0;
    int rc = strict_json_parse(place, line, count, DEPTH_MAX, VALUES_MAX, why, &object);
    if (rc == 0) rc = read_object(object, place, why, &question);
    if (rc == 0) rc = grow(self, place, why);
    json_decref(object);
    if (rc < 0) question_free(&question);
    else self->questions[self->count++] = question;
    return rc;
}

// Reads the next line, without its end; of a line that is too long only CHOICES_LINE_MAX + 1 bytes. False at
// the end of the file.
static bool read_line(FILE *file, char *line, size_t *ret_count)
{
    size_t count = 0;
    int c;
    while ((c = getc_unlocked(file)) != EOF && c != '\n') {
        if (count > CHOICES_LINE_MAX) break;
        line[count++] = (char)c;
    }
    *ret_count = count;
    return c != EOF || count > 0;
}

static int read_lines(struct choices *self, FILE *file, const char *path, char *line,
                      struct why *why)
{
    char place[200];
    size_t count;
    int rc = 0;
    for (uint64_t number = 1; rc == 0 && read_line(file, line, &count); number++) {
        snprintf(place, sizeof place, "%.150s:%" PRIu64, path, number);
        rc = count <= CHOICES_LINE_MAX
                 ? parse_line(self, place, line, count, number, why)
                 : why_set(why, FAULT_LIMIT, "%s: a line of more than %d bytes", place,
                           CHOICES_LINE_MAX);
    }
    if (rc == 0 && ferror(file)) rc = why_set(why, FAULT_IO, "%s: %s", path, strerror(errno));
    if (rc == 0 && self->count == 0) rc = why_set(why, FAULT_FORMAT, "%s: no question in it", path);
    return rc;
}

int choices_read(const char *path, struct why *why, struct choices *ret_choices)
{
    struct choices self = { 0 };
    struct stat status;
    FILE *file = fopen(path, "re");
    if (!file) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    int rc = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode)
                 ? 0
                 : why_set(why, FAULT_FORMAT, "%s: no regular file", path);
    if (rc == 0 && (uint64_t)status.st_size > CHOICES_FILE_MAX)
        rc = why_set(why, FAULT_LIMIT, "%s: more than 2^30 bytes", path);
    char *line = malloc(CHOICES_LINE_MAX + 2);
    if (rc == 0)
        rc = line ? read_lines(&self, file, path, line, why)
                  : why_set(why, FAULT_MEMORY, "a line of %s", path);
    free(line);
    fclose(file);
    if (rc < 0) choices_free(&self);
    else *ret_choices = self;
    return rc;
}
