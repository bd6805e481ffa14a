// chart -- from top to bottom: title and legend, then the panels, then the steps below the last
// one. Each panel finds its own range first: round numbers around what its lines have (chart_axis).
// A line of more than CHART_POINTS_MAX steps is drawn through the means of equal intervals, so that
// the picture stays small however long the training was.

#include "actors/shoal/plot/chart.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    WIDTH = 760,
    LEFT = 62, // Of a panel, as the next three
    RIGHT = WIDTH - 18,
    TOP = 58,
    GAP = 42,
    LEGEND_ROW = 17,
    TICKS = 5,
    TEXT_MAX = 32
};

#define NARROWEST 1e-12  // An axis, as part of its lowest value: a double tells its ticks apart
#define TINY      1e-100 // Taken for 0: the reciprocal of less might be infinite

#define GREY   "#7d7d7d"
#define ORANGE "#d97706" // The held-out loss where there is one log
static const char *const colours[CHART_LOGS_MAX] = { "#3b82f6", "#e0508c", "#2f9e62",
                                                     "#9a6cf0", "#d97706", "#1497a8" };

// What is drawn in each panel, and how high it is.
static const struct panel {
    enum curve curves[2]; // The same twice: only one
    const char *name;
    int height;
    bool from_zero;
} panels[] = {
    { { CURVE_LOSS, CURVE_HELDOUT }, "loss, nats per token", 230, false },
    { { CURVE_RATE, CURVE_RATE }, "learning rate", 84, true },
    { { CURVE_TOKENS, CURVE_TOKENS }, "tokens/s", 84, true },
};
enum { PANELS = sizeof panels / sizeof *panels };

struct axis {
    double low, high, step; // Multiples of step
};

struct chart {
    FILE *out;
    const struct chart_log *logs;
    size_t count;
    struct axis x;
};

// ---- numbers ------------------------------------------------------------------------------------

// Round numbers around [low, high]: 1, 2 or 5 times a power of ten apart, about `ticks` of them.
static struct axis chart_axis(double low, double high, int ticks)
{
    if (!(high - low > fmax(NARROWEST * fabs(low), TINY)))
        high = low + (fabs(low) > TINY ? fabs(low) : 1);
    const double rough = (high - low) / ticks, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    const double step = power * (times <= 1.01 ? 1 : times <= 2.02 ? 2 : times <= 5.05 ? 5 : 10);
    return (struct axis){ floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step };
}

// "0.004", "2e-05", "12k", "1.5M", "12.345602M": with the digits that tell it from the next tick.
static const char *tick_text(double value, double step, char text[TEXT_MAX])
{
    if (fabs(value) < step / 1000) value = 0; // 0.3 - 3 x 0.1 is not 0
    const double needed =
        value != 0 ? floor(log10(fabs(value))) - floor(log10(step) + 1e-9) + 1 : 0;
    const int digits = needed < 6 ? 6 : needed > 17 ? 17 : (int)needed;
    if (fabs(value) >= 1e6) snprintf(text, TEXT_MAX, "%.*gM", digits, value / 1e6);
    else if (fabs(value) >= 1e4) snprintf(text, TEXT_MAX, "%.*gk", digits, value / 1e3);
    else snprintf(text, TEXT_MAX, "%.*g", digits, value);
    return text;
}

static double place(const struct axis *axis, double value, double from, double to)
{
    return from + (value - axis->low) / (axis->high - axis->low) * (to - from);
}

static bool has_curve(const struct chart *self, enum curve curve)
{
    for (size_t i = 0; i < self->count; i++)
        if (!isnan(curves_last(&self->logs[i].curves, curve))) return true;
    return false;
}

// ---- lines --------------------------------------------------------------------------------------

struct point {
    double x, y;
};

// The mean of tokens/s is that over time: the steps' seconds are added, not their rates.
static bool is_per_second(enum curve curve) { return curve == CURVE_TOKENS; }

// A step of no tokens per second has no time that could be added.
static bool is_drawn(enum curve curve, double value)
{
    return is_per_second(curve) ? value > TINY : !isnan(value);
}

// The means of the values and of their steps in equal intervals of the x axis; at most
// CHART_POINTS_MAX points. Returns their number.
static size_t thin_out(const struct chart *self, const struct curves *curves, enum curve curve,
                       struct point points[CHART_POINTS_MAX])
{
    size_t valued = 0, count = 0, in_point = 0, last_interval = SIZE_MAX;
    for (size_t i = 0; i < curves->count; i++)
        valued += is_drawn(curve, curves->rows[i].values[curve]) ? 1 : 0;
    for (size_t i = 0, seen = 0; i < curves->count; i++) {
        const struct curves_row *row = &curves->rows[i];
        if (!is_drawn(curve, row->values[curve])) continue;
        const double at = place(&self->x, (double)row->step, 0, CHART_POINTS_MAX);
        const size_t interval = valued <= CHART_POINTS_MAX   ? seen
                                : at >= CHART_POINTS_MAX - 1 ? CHART_POINTS_MAX - 1
                                                             : (size_t)at;
        seen++;
        if (interval != last_interval) points[count++] = (struct point){ 0 }, in_point = 0;
        last_interval = interval;
        struct point *point = &points[count - 1];
        in_point++;
        point->x += ((double)row->step - point->x) / (double)in_point;
        const double value = is_per_second(curve) ? 1 / row->values[curve] : row->values[curve];
        point->y += (value - point->y) / (double)in_point;
    }
    for (size_t i = 0; i < count && is_per_second(curve); i++) points[i].y = 1 / points[i].y;
    return count;
}

static void widen(struct axis *range, double value)
{
    range->low = fmin(range->low, value); // Of a NaN and a number: the number
    range->high = fmax(range->high, value);
}

static struct axis axis_of(const struct chart *self, const struct panel *panel)
{
    static struct point points[CHART_POINTS_MAX];
    struct axis range = { .low = NAN, .high = NAN };
    for (size_t i = 0; i < self->count; i++)
        for (int which = 0; which < 2; which++) {
            const struct curves *curves = &self->logs[i].curves;
            const size_t count = thin_out(self, curves, panel->curves[which], points);
            for (size_t p = 0; p < count; p++) widen(&range, points[p].y);
        }
    if (panel->from_zero) widen(&range, 0);
    return chart_axis(range.low, range.high, panel->height > 100 ? TICKS : 2);
}

static struct axis steps_axis(const struct chart *self)
{
    struct axis range = { .low = NAN, .high = NAN };
    for (size_t i = 0; i < self->count; i++) {
        const struct curves *curves = &self->logs[i].curves;
        widen(&range, (double)curves->rows[0].step);
        widen(&range, (double)curves->rows[curves->count - 1].step);
    }
    if (range.low <= range.high / 5) range.low = 0;
    range.high = fmax(range.high, range.low + fmax(1, NARROWEST * range.low));
    const struct axis ticks = chart_axis(range.low, range.high, 8);
    // The panel ends where the steps end: only the ticks are round.
    return (struct axis){ range.low, range.high, ticks.step < 1 ? 1 : ticks.step };
}

static const char *colour_of(const struct chart *self, size_t log, enum curve curve)
{
    return curve == CURVE_HELDOUT && self->count == 1 ? ORANGE : colours[log];
}

static void draw_line(const struct chart *self, size_t log, enum curve curve,
                      const struct axis *axis, double top, double bottom)
{
    static struct point points[CHART_POINTS_MAX];
    const size_t count = thin_out(self, &self->logs[log].curves, curve, points);
    const char *colour = colour_of(self, log, curve);
    const bool dotted = curve == CURVE_HELDOUT;
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) {
        points[i].x = place(&self->x, points[i].x, LEFT, RIGHT);
        points[i].y = place(axis, points[i].y, bottom, top);
    }
    fprintf(self->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s points=\"",
            colour, dotted ? " stroke-dasharray=\"5 3\"" : "");
    for (size_t i = 0; i < count; i++)
        fprintf(self->out, "%s%.1f,%.1f", i ? " " : "", points[i].x, points[i].y);
    fputs("\"/>\n", self->out);
    for (size_t i = 0; i < count && (count == 1 || (dotted && count <= CHART_POINTS_MAX / 4)); i++)
        fprintf(self->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", points[i].x,
                points[i].y, colour);
}

// ---- text and frame -----------------------------------------------------------------------------

// What XML does not allow is left out or written as an entity.
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", out);
        else if (*text == '>') fputs("&gt;", out);
        else if (*text == '&') fputs("&amp;", out);
        else if (*text == '"') fputs("&quot;", out);
        else if ((unsigned char)*text >= 0x20 && *text != 0x7f) putc(*text, out);
    }
}

static void put_label(const struct chart *self, double x, double y, const char *anchor,
                      const char *text)
{
    fprintf(self->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_text(self->out, text);
    fputs("</text>\n", self->out);
}

static void draw_rule(const struct chart *self, double x1, double y1, double x2, double y2,
                      bool is_axis)
{
    fprintf(self->out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"" GREY
            "\" stroke-opacity=\"%s\"/>\n",
            x1, y1, x2, y2, is_axis ? "0.9" : "0.25");
}

static void draw_panel(const struct chart *self, const struct panel *panel, double top, bool last)
{
    char text[TEXT_MAX];
    const double bottom = top + panel->height;
    const struct axis axis = axis_of(self, panel);
    fprintf(self->out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", LEFT, top - 9,
            panel->name);
    const int rules = (int)round((axis.high - axis.low) / axis.step);
    for (int i = 0; i <= rules; i++) {
        const double at = axis.low + i * axis.step, y = place(&axis, at, bottom, top);
        draw_rule(self, LEFT, y, RIGHT, y, i == 0);
        put_label(self, LEFT - 7, y + 4, "end", tick_text(at, axis.step, text));
    }
    const double first = ceil(self->x.low / self->x.step);
    const int ticks = (int)(floor(self->x.high / self->x.step) - first);
    for (int i = 0; i <= ticks; i++) {
        const double at = (first + i) * self->x.step, x = place(&self->x, at, LEFT, RIGHT);
        draw_rule(self, x, bottom, x, bottom + 4, true);
        if (last) put_label(self, x, bottom + 18, "middle", tick_text(at, self->x.step, text));
    }
    if (last) put_label(self, (LEFT + RIGHT) / 2, bottom + 36, "middle", "step");
    for (size_t i = 0; i < self->count; i++)
        for (int which = 0; which < (panel->curves[0] == panel->curves[1] ? 1 : 2); which++)
            draw_line(self, i, panel->curves[which], &axis, top, bottom);
}

// One entry: a piece of the line, and what it is with its last value.
static void draw_entry(const struct chart *self, size_t log, enum curve curve, double x, double y)
{
    const double value = curves_last(&self->logs[log].curves, curve);
    const bool dotted = curve == CURVE_HELDOUT;
    if (isnan(value)) return;
    fprintf(self->out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"2\"%s/>\n",
            x, y - 4, x + 24, y - 4, colour_of(self, log, curve),
            dotted ? " stroke-dasharray=\"5 3\"" : "");
    fprintf(self->out, "<text x=\"%.1f\" y=\"%.1f\">%s, last %.4g</text>\n", x + 31, y,
            dotted ? "held-out loss" : "loss", value);
}

static void draw_legend(const struct chart *self)
{
    for (size_t i = 0; i < self->count; i++) {
        const double y = TOP - 12 + (double)(i * LEGEND_ROW);
        if (self->count > 1) {
            fprintf(self->out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">", LEFT, y, colours[i]);
            put_text(self->out, self->logs[i].name);
            fputs("</text>\n", self->out);
        }
        draw_entry(self, i, CURVE_LOSS, self->count > 1 ? 330 : LEFT, y);
        draw_entry(self, i, CURVE_HELDOUT, self->count > 1 ? 530 : LEFT + 200, y);
    }
}

void chart_draw(FILE *out, const char *title, const struct chart_log *logs, size_t count)
{
    ensure(count >= 1 && count <= CHART_LOGS_MAX);
    struct chart self = { .out = out, .logs = logs, .count = count };
    double top = TOP + 22 + (double)((count - 1) * LEGEND_ROW);
    int height = (int)top, last = 0;
    for (int i = 0; i < PANELS; i++)
        if (has_curve(&self, panels[i].curves[0]) || has_curve(&self, panels[i].curves[1]))
            height += panels[i].height + GAP, last = i;
    height += 6;
    self.x = steps_axis(&self);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"" GREY
            "\">\n<title>",
            WIDTH, height, WIDTH, height);
    put_text(out, title);
    fprintf(out, "</title>\n<text x=\"%d\" y=\"26\" font-size=\"16\">", LEFT);
    put_text(out, title);
    fputs("</text>\n", out);
    draw_legend(&self);
    for (int i = 0; i < PANELS; i++) {
        if (!has_curve(&self, panels[i].curves[0]) && !has_curve(&self, panels[i].curves[1]))
            continue;
        draw_panel(&self, &panels[i], top, i == last);
        top += panels[i].height + GAP;
    }
    fputs("</svg>\n", out);
}
