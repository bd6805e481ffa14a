// Short numbers for people: three digits and a unit, a duration, a bar.
#include "actors/shoal/show.h"
#include "common/run/lags.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *show_s(uint64_t count) { return count == 1 ? "" : "s"; }

char *show_count(double value, char text[SHOW_MAX])
{
    static const char units[] = "kMGTPE";
    size_t unit = 0;
    if (!isfinite(value)) return strcpy(text, "?");
    if (value < 1000) return snprintf(text, SHOW_MAX, "%.0f", value), text;
    // 999950 and above would be printed as 1000.0k
    for (value /= 1000; value >= 999.95 && unit + 2 < sizeof units; value /= 1000) unit++;
    snprintf(text, SHOW_MAX,
             value < 10    ? "%.2f%c"
             : value < 100 ? "%.1f%c"
                           : "%.0f%c",
             value, units[unit]);
    return text;
}

char *show_duration(double seconds, char text[SHOW_MAX])
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e8) return strcpy(text, "?");
    unsigned whole = (unsigned)(seconds + 0.5);
    if (seconds < 9.95) snprintf(text, SHOW_MAX, "%.1fs", seconds);
    else if (whole < 60) snprintf(text, SHOW_MAX, "%us", whole);
    else if (whole < 3600) snprintf(text, SHOW_MAX, "%um%02us", whole / 60, whole % 60);
    else snprintf(text, SHOW_MAX, "%uh%02um", whole / 3600, whole / 60 % 60);
    return text;
}

char *show_bar(double fraction, unsigned width, char text[SHOW_MAX])
{
    if (width > SHOW_MAX - 4) width = SHOW_MAX - 4;
    if (!(fraction > 0)) fraction = 0;
    if (fraction > 1) fraction = 1;
    unsigned full = (unsigned)(fraction * width);
    memset(text, '#', full);
    memset(text + full, '.', width - full);
    text[width] = 0;
    return text;
}

const char *show_lag(uint32_t bin, char text[SHOW_MAX])
{
    const uint64_t first = lags_first(bin), end = bin + 1 < LAGS_BINS ? lags_first(bin + 1) : 0;
    if (!end) snprintf(text, SHOW_MAX, "%" PRIu64 "+", first);
    else if (end == first + 1) snprintf(text, SHOW_MAX, "%" PRIu64, first);
    else snprintf(text, SHOW_MAX, "%" PRIu64 "-%" PRIu64, first, end - 1);
    return text;
}

// A life of the coordinator is numbered by the time of day of its start, in milliseconds.
const char *show_start(uint64_t incarnation, char text[SHOW_MAX])
{
    const time_t at = (time_t)(incarnation / 1000);
    struct tm day;
    if (incarnation == 0) snprintf(text, SHOW_MAX, "never");
    else if (!localtime_r(&at, &day) || strftime(text, SHOW_MAX, "%Y-%m-%d %H:%M:%S", &day) == 0)
        snprintf(text, SHOW_MAX, "?");
    return text;
}

int show_wider(int width, const char *name)
{
    return (int)strlen(name) > width ? (int)strlen(name) : width;
}
