// A line is judged as a whole before anything is made of it: that it ends, its name, its place
// behind the line before it, its digits.

#include "common/base/ensure.h"
#include "common/base/hex.h"
#include "tests/fuzz/bundle.h"

#include <stdlib.h>
#include <string.h>

static bool is_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t length = strspn(name, allowed);
    return length > 0 && length <= BUNDLE_NAME_MAX && !name[length] && name[0] != '.';
}

// Cuts the line in two strings, name and digits. NULL, or what is wrong with it.
static const char *cut(char *line, size_t length, const char *name_before, char **ret_digits)
{
    char *space = memchr(line, ' ', length);
    if (line[length - 1] != '\n' || strlen(line) != length) return "is cut off, or no text";
    if (!space) return "has no space behind its name";
    line[length - 1] = *space = 0;
    if (!is_name(line)) return "has a name that no file should have";
    if (strcmp(name_before, line) >= 0) return "does not ascend by name (LC_ALL=C sort)";
    if (strlen(space + 1) > 2 * BUNDLE_BYTES_MAX) return "is too long";
    *ret_digits = space + 1;
    return NULL;
}

const char *bundle_read(FILE *file, bundle_visit *visit, void *context)
{
    static char sentence[120];
    char name[BUNDLE_NAME_MAX + 1] = "", *line = NULL, *digits;
    const char *wrong = NULL;
    size_t room = 0;
    ssize_t length;
    int number = 0;
    while (!wrong && (length = getline(&line, &room, file)) > 0) {
        number++;
        if ((wrong = cut(line, (size_t)length, name, &digits))) break;
        const size_t count = strlen(digits) / 2;
        uint8_t *bytes = malloc(count + !count);
        ensure(bytes);
        strcpy(name, line);
        if (hex_decode(digits, bytes, count)) visit(context, name, bytes, count);
        else wrong = "has something else than pairs of hexadecimal digits";
        free(bytes);
    }
    free(line);
    if (wrong) snprintf(sentence, sizeof sentence, "line %d %s", number, wrong);
    else if (ferror(file))
        snprintf(sentence, sizeof sentence, "line %d cannot be read", number + 1);
    else if (number == 0) snprintf(sentence, sizeof sentence, "it is empty");
    else return NULL;
    return sentence;
}

const char *bundle_read_of(const char *target, bundle_visit *visit, void *context)
{
    char path[256];
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s.hex", target);
    FILE *file = fopen(path, "r");
    if (!file) return "it cannot be opened, or this is not the root of the source";
    const char *wrong = bundle_read(file, visit, context);
    fclose(file);
    return wrong;
}

bool bundle_write(FILE *file, const char *name, const uint8_t *bytes, size_t count)
{
    if (!is_name(name) || count > BUNDLE_BYTES_MAX) return false;
    char *digits = malloc(2 * count + 1);
    ensure(digits);
    const int written = fprintf(file, "%s %s\n", name, hex_encode(bytes, count, digits));
    free(digits);
    return written > 0;
}
