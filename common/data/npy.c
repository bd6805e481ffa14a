// npy -- the fixed part says how long the header is; the dictionary is parsed from left to right by
// the functions take_*, whose first fault sets `bad`; then the fields are compared with what is
// accepted, and the shape with the length of the file.

#include "common/base/bytes.h"
#include "common/data/npy.h"
#include <inttypes.h>
#include <string.h>

enum { MAGIC_BYTES = 6, DESCR_MAX = 16, KEY_MAX = 16 };

// The text of the dictionary. `bad` stays set after the first fault.
struct text {
    const char *at, *end;
    bool bad;
};

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

struct fields {
    unsigned seen; // SEEN_*
    char descr[DESCR_MAX];
    bool fortran_order;
    uint32_t dimensions;
    uint64_t length; // Of the first dimension
};

static void skip_blanks(struct text *text)
{
    while (text->at < text->end && strchr(" \t\r\n", *text->at) && *text->at) text->at++;
}

static bool take(struct text *text, char wanted)
{
    skip_blanks(text);
    if (text->at == text->end || *text->at != wanted) return false;
    text->at++;
    return true;
}

static void need(struct text *text, char wanted)
{
    if (!take(text, wanted)) text->bad = true;
}

static bool take_word(struct text *text, const char *word)
{
    const size_t count = strlen(word);
    skip_blanks(text);
    if ((size_t)(text->end - text->at) < count || memcmp(text->at, word, count) != 0) return false;
    text->at += count;
    return true;
}

// A quoted string of printable characters without escapes, shorter than `max`.
static void take_string(struct text *text, char *out, size_t max)
{
    size_t count = 0;
    out[0] = 0;
    const char quote = take(text, '\'') ? '\'' : take(text, '"') ? '"' : 0;
    if (!quote) {
        text->bad = true;
        return;
    }
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at >= ' ' &&
           *text->at <= '~' && count + 1 < max)
        out[count++] = *text->at++;
    out[count] = 0;
    if (text->at == text->end || *text->at != quote) {
        text->bad = true;
        return;
    }
    text->at++;
}

static uint64_t take_number(struct text *text)
{
    uint64_t value = 0;
    int digits = 0;
    skip_blanks(text);
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++, digits++)
        value = value * 10 + (uint64_t)(*text->at - '0');
    if (digits < 1 || digits > 18) text->bad = true; // 18 digits cannot overflow 64 bits
    return value;
}

// (), (n,), (n, m) ...: a Python tuple, in which a single element has a comma behind it.
static void take_shape(struct text *text, struct fields *fields)
{
    bool comma = false;
    need(text, '(');
    while (!text->bad && !take(text, ')')) {
        if (fields->dimensions && !comma) {
            text->bad = true;
            return;
        }
        const uint64_t length = take_number(text);
        if (fields->dimensions++ == 0) fields->length = length;
        comma = take(text, ',');
    }
    if (fields->dimensions == 1 && !comma) text->bad = true;
}

static void take_pair(struct text *text, struct fields *fields)
{
    char key[KEY_MAX];
    unsigned seen = 0;
    take_string(text, key, sizeof key);
    need(text, ':');
    if (text->bad) return;
    if (strcmp(key, "descr") == 0) {
        seen = SEEN_DESCR;
        take_string(text, fields->descr, sizeof fields->descr);
    } else if (strcmp(key, "fortran_order") == 0) {
        seen = SEEN_ORDER;
        fields->fortran_order = take_word(text, "True");
        if (!fields->fortran_order && !take_word(text, "False")) text->bad = true;
    } else if (strcmp(key, "shape") == 0) {
        seen = SEEN_SHAPE;
        take_shape(text, fields);
    }
    if (!seen || fields->seen & seen) text->bad = true;
    fields->seen |= seen;
}

// The whole dictionary, each key once, and nothing behind it but blanks.
static bool parse_fields(const char *at, size_t count, struct fields *ret_fields)
{
    struct text text = { .at = at, .end = at + count };
    struct fields fields = { 0 };
    bool comma = true;
    need(&text, '{');
    while (!text.bad && !take(&text, '}')) {
        if (!comma) return false;
        take_pair(&text, &fields);
        comma = take(&text, ',');
    }
    skip_blanks(&text);
    if (text.bad || text.at != text.end || fields.seen != SEEN_ALL) return false;
    *ret_fields = fields;
    return true;
}

// Where the dictionary begins and ends, from the fixed part.
static int parse_frame(const uint8_t *bytes, size_t count, const char *name, struct why *why,
                       size_t *ret_begin, size_t *ret_end)
{
    if (count < MAGIC_BYTES + 4 || memcmp(bytes, "\x93NUMPY", MAGIC_BYTES) != 0)
        return why_set(why, FAULT_FORMAT, "%s: does not begin as a NumPy array does", name);
    const unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return why_set(why, FAULT_UNSUPPORTED, "%s: NumPy format %u.%u; 1.0, 2.0 and 3.0 are read",
                       name, major, minor);
    const size_t begin = major == 1 ? MAGIC_BYTES + 4 : MAGIC_BYTES + 6;
    if (count < begin) return why_set(why, FAULT_FORMAT, "%s: ends within its NumPy header", name);
    const uint64_t length = le_get(bytes + 8, begin - 8);
    if (length > NPY_HEADER_MAX - begin)
        return why_set(why, FAULT_LIMIT,
                       "%s: a NumPy header of %" PRIu64 " bytes; at most %zu are read", name,
                       length, NPY_HEADER_MAX - begin);
    if (length > count - begin)
        return why_set(why, FAULT_FORMAT, "%s: ends within its NumPy header", name);
    *ret_begin = begin;
    *ret_end = begin + (size_t)length;
    return 0;
}

static int check_fields(const struct fields *fields, const char *name, struct why *why)
{
    if (strcmp(fields->descr, "<u2") != 0 && strcmp(fields->descr, "<u4") != 0)
        return why_set(why, FAULT_UNSUPPORTED,
                       "%s: elements of type '%s'; tokens are '<u2' or"
                       " '<u4' (unsigned, little-endian, 2 or 4 bytes)",
                       name, fields->descr);
    if (fields->fortran_order)
        return why_set(why, FAULT_UNSUPPORTED, "%s: fortran_order is True; it must be False", name);
    if (fields->dimensions != 1)
        return why_set(why, FAULT_UNSUPPORTED, "%s: an array of %u dimensions; tokens have one",
                       name, fields->dimensions);
    return 0;
}

bool npy_is_name(const char *name)
{
    const size_t count = strlen(name);
    return count >= 4 && strcmp(name + count - 4, ".npy") == 0;
}

int npy_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, const char *name,
              struct why *why, struct npy *ret_npy)
{
    size_t begin = 0, end = 0;
    struct fields fields;
    int rc = parse_frame(bytes, count, name, why, &begin, &end);
    if (rc < 0) return rc;
    if (!parse_fields((const char *)bytes + begin, end - begin, &fields))
        return why_set(why, FAULT_FORMAT,
                       "%s: its NumPy header is not a dictionary of descr,"
                       " fortran_order and shape, each once",
                       name);
    rc = check_fields(&fields, name, why);
    if (rc < 0) return rc;
    const uint32_t token_bytes = fields.descr[2] == '2' ? 2 : 4;
    if (file_bytes < end || (file_bytes - end) % token_bytes != 0 ||
        (file_bytes - end) / token_bytes != fields.length)
        return why_set(why, FAULT_FORMAT,
                       "%s: its shape says %" PRIu64 " tokens of %u bytes after %zu"
                       " bytes of header, and the file has %" PRIu64 " bytes",
                       name, fields.length, token_bytes, end, file_bytes);
    if (end % token_bytes)
        return why_set(why, FAULT_FORMAT,
                       "%s: its elements of %u bytes begin at byte %zu; it must "
                       "be a multiple of their size",
                       name, token_bytes, end);
    *ret_npy = (struct npy){ .offset = end, .tokens = fields.length, .token_bytes = token_bytes };
    return 0;
}
