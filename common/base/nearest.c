// The edit distance of two names, and the rule how small it must be to be offered.
#include "common/base/nearest.h"

#include <ctype.h>
#include <string.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static int same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

// Letters to insert, remove, change or swap with their neighbour (Damerau 1964, each place once).
static size_t distance(const char *a, size_t a_count, const char *b, size_t b_count)
{
    size_t rows[NEAREST_MAX + 1][NEAREST_MAX + 1];
    for (size_t j = 0; j <= b_count; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_count; i++) {
        rows[i][0] = i;
        for (size_t j = 1; j <= b_count; j++) {
            const size_t change = rows[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
            rows[i][j] = least(change, 1 + least(rows[i - 1][j], rows[i][j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                rows[i][j] = least(rows[i][j], 1 + rows[i - 2][j - 2]);
        }
    }
    return rows[a_count][b_count];
}

bool nearest_offer(struct nearest *self, const char *name, size_t count)
{
    const size_t wanted_count = strnlen(self->wanted, NEAREST_MAX + 1);
    if (count > NEAREST_MAX || wanted_count > NEAREST_MAX) return false;
    const size_t allowed = wanted_count < 3 ? 1 : wanted_count / 3;
    const size_t apart = distance(self->wanted, wanted_count, name, count);
    if (apart > allowed || (self->best[0] && apart >= self->distance)) return false;
    memcpy(self->best, name, count);
    self->best[count] = 0;
    self->distance = apart;
    return true;
}
