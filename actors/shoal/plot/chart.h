#pragma once
// chart -- draws logs as an SVG: loss and held-out loss, learning rate, tokens/s, one panel below
// the other over the same steps. A number that no log has gets no panel.
//
//      title                                  ── 4e-3.csv  loss 1.83   ─o─ held out 1.81
//      3 ┤╲
//      2 ┤ ╲_______          loss, nats per token
//      1 ┤
//        └─┬────┬────┬─
//          0   100  200      step
//
// The background is transparent, and all colours are of medium lightness, so the picture can be
// read on white and on black. Text is text: it can be searched and read aloud. Pure, but for the
// file.

#include "actors/shoal/plot/curves.h"
#include <stdio.h>

enum {
    CHART_LOGS_MAX = 6,    // As many colours
    CHART_POINTS_MAX = 160 // Of a line; of more steps, each point is the mean of its neighbours
};

struct chart_log {
    const char *name;     // UTF-8, for the legend
    struct curves curves; // At least one row
};

// 1 to CHART_LOGS_MAX logs. Whether it was written is for the caller to ask of `out`. `title` is
// UTF-8.
void chart_draw(FILE *out, const char *title, const struct chart_log *logs, size_t count);
