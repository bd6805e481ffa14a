// nfc -- most characters are in NFC whatever stands beside them. So we copy most of a text, and give
// utf8proc only the stretches that NFC may change. A stretch is a run of characters that NFC may
// change, and the one before it if that may join with the first. The character behind a stretch
// joins with nothing before it, so each stretch is normalized alone.

#include "common/text/nfc.h"
#include "common/text/unicode.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

// The next stretch that NFC may change, at `from` or later: [begin, end), empty at the text's end.
struct stretch {
    size_t begin, end;
};

static struct stretch next_stretch(const uint8_t *text, size_t count, size_t from)
{
    size_t base = from, at = from, length; // base: where a character that may join the next begins
    for (; at < count; at += length) {
        const unsigned flags = unicode_classes[unicode_next(text + at, count - at, &length)];
        if (flags & UNICODE_NFC_CHANGES) break;
        base = flags & UNICODE_NFC_JOINS ? at : at + length;
    }
    struct stretch stretch = { base, at };
    for (; stretch.end < count; stretch.end += length)
        if (!(unicode_classes[unicode_next(text + stretch.end, count - stretch.end, &length)] &
              UNICODE_NFC_CHANGES))
            break;
    if (stretch.end == at) stretch.begin = stretch.end; // Nothing changes up to the text's end
    return stretch;
}

size_t nfc_begin(const uint8_t *text, size_t count) { return next_stretch(text, count, 0).begin; }

// Marks are the characters that have a combining class.
static int check_marks(const uint8_t *text, size_t count, struct why *why)
{
    size_t marks = 0, length;
    for (size_t at = 0; at < count; at += length) {
        const uint32_t code_point = unicode_next(text + at, count - at, &length);
        const bool is_mark = utf8proc_get_property((int32_t)code_point)->combining_class != 0;
        marks = is_mark ? marks + 1 : 0;
        if (marks > NFC_MARKS_MAX)
            return why_set(why, FAULT_LIMIT, "more than %d combining characters in a row",
                           NFC_MARKS_MAX);
    }
    return 0;
}

struct text {
    uint8_t *bytes; // Owned
    size_t count, capacity;
};

static int put(struct text *self, const void *bytes, size_t count, struct why *why)
{
    if (self->capacity - self->count < count || !self->bytes) {
        const size_t capacity = 2 * self->capacity + count + 1;
        uint8_t *grown = realloc(self->bytes, capacity);
        if (!grown) return why_set(why, FAULT_MEMORY, "a text of %zu bytes in NFC", capacity);
        self->bytes = grown;
        self->capacity = capacity;
    }
    if (count) memcpy(self->bytes + self->count, bytes, count);
    self->count += count;
    return 0;
}

// A stretch of valid UTF-8. utf8proc turns it into code points, puts them in order, joins them and
// writes UTF-8 over them.
static int put_normalized(struct text *self, const uint8_t *text, size_t count, struct why *why)
{
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    const utf8proc_ssize_t capacity = 4 * (utf8proc_ssize_t)count; // One becomes 4 at most
    int rc = check_marks(text, count, why);
    if (rc < 0) return rc;
    utf8proc_int32_t *points = malloc(((size_t)capacity + 1) * sizeof *points);
    if (!points) return why_set(why, FAULT_MEMORY, "%zu characters", count);
    utf8proc_ssize_t left =
        utf8proc_decompose(text, (utf8proc_ssize_t)count, points, capacity, options);
    if (left >= 0 && left <= capacity) left = utf8proc_reencode(points, left, options);
    rc = left >= 0 && left <= 4 * capacity
             ? put(self, points, (size_t)left, why)
             : why_set(why, FAULT_FORMAT, "utf8proc: %s", utf8proc_errmsg(left));
    free(points);
    return rc;
}

int nfc_normalize(const uint8_t *text, size_t count, struct why *why, uint8_t **ret_text,
                  size_t *ret_count)
{
    struct text self = { 0 };
    size_t done = 0;
    int rc = 0;
    do {
        const struct stretch stretch = next_stretch(text, count, done);
        rc = put(&self, text + done, stretch.begin - done, why);
        if (rc == 0 && stretch.begin < stretch.end)
            rc = put_normalized(&self, text + stretch.begin, stretch.end - stretch.begin, why);
        done = stretch.end;
    } while (rc == 0 && done < count);
    if (rc < 0) {
        free(self.bytes);
        return rc;
    }
    *ret_text = self.bytes;
    *ret_count = self.count;
    return 0;
}
