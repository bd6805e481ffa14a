#pragma once
// show -- numbers for people. Pure; each writes into the caller's buffer and returns it.

#include <stdint.h>

enum {
    SHOW_MAX = 64,
    SHOW_NAMES = 32 // The least width of a column of names: that of all without labels
};

const char *show_s(uint64_t count);                       // Of a plural: "s", but "" of one
char *show_count(double value, char text[SHOW_MAX]);      // 987, 18.4k, 3.20M
char *show_duration(double seconds, char text[SHOW_MAX]); // 0.8s, 42s, 3m05s, 2h10m
const char *show_lag(uint32_t bin,
                     char text[SHOW_MAX]); // Of a bin (common/run/lags.h): 0, 2-3, 64+
char *show_bar(double fraction, unsigned width,
               char text[SHOW_MAX]); // "#####.....": at most 60 wide
// When a life of the coordinator began: 2026-11-30 07:15:55, in local time; never.
const char *show_start(uint64_t incarnation, char text[SHOW_MAX]);
int show_wider(int width, const char *name); // A column for this name, too
