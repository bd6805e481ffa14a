// plot -- a picture of one or several trainings, from their logs: of `shoal train`, or of a
// coordinator, which --run finds in the folder of a run. Reads all logs first, so that a
// mistake leaves an older picture as it was; then the picture takes its place at once, so that a
// browser never sees half of it.

#include "actors/shoal/plot/chart.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/base/durable_file.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plot {
    const char *paths[CHART_LOGS_MAX];
    size_t paths_count;
    const char *run, *out, *title;
    char run_log[PATH_MAX];
    struct chart_log logs[CHART_LOGS_MAX];
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

// Puts the run's log before the others. It lies in the folder of --log itself, of `shoal testnet`,
// or of `shoal up`.
static int find_run(struct plot *self, struct why *why)
{
    static const char *const places[] = { "", "/metrics", "/run/metrics" };
    if (!self->run && self->paths_count == 0)
        return why_set(why, FAULT_USAGE, "a log of shoal train is needed, or --run DIR");
    if (!self->run) return 0;
    if (self->paths_count == CHART_LOGS_MAX)
        return why_set(why, FAULT_USAGE, "at most %d logs, that of --run included", CHART_LOGS_MAX);
    memmove(self->paths + 1, self->paths, self->paths_count * sizeof *self->paths);
    self->paths[0] = self->run_log;
    self->paths_count++;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int count =
            snprintf(self->run_log, sizeof self->run_log, "%s%s/run.csv", self->run, places[i]);
        if (count >= (int)sizeof self->run_log)
            return why_set(why, FAULT_USAGE, "--run: the path is too long");
        if (access(self->run_log, F_OK) == 0) return 0;
        if (errno != ENOENT && errno != ENOTDIR)
            return why_set(why, fault_from_errno(errno), "--run %s: %s: %s", self->run,
                           self->run_log, strerror(errno));
    }
    return why_set(why, FAULT_NOT_FOUND,
                   "--run %s: there is no run.csv in it: the coordinator writes one with --log DIR",
                   self->run);
}

static int read_logs(struct plot *self, struct why *why)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < self->paths_count; i++) {
        rc = curves_read(self->paths[i], why, &self->logs[i].curves);
        self->logs[i].name = shoal_shown(name_of(self->paths[i]));
    }
    return rc;
}

// Beside the first log: "a/4e-3.csv" becomes "a/4e-3.svg".
static int choose_out(const struct plot *self, char path[PATH_MAX], struct why *why)
{
    const char *log = self->paths[0], *dot = strrchr(name_of(log), '.');
    const int stem = (int)(dot && dot != name_of(log) ? (size_t)(dot - log) : strlen(log));
    const int count = self->out ? snprintf(path, PATH_MAX, "%s", self->out)
                                : snprintf(path, PATH_MAX, "%.*s.svg", stem, log);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (count >= PATH_MAX || !*name || strlen(name) > DURABLE_FILE_NAME_MAX)
        return why_set(why, FAULT_USAGE,
                       "the picture \"%.200s\": the name of a file has 1 to %d bytes, its path at "
                       "most %d; choose one with --out FILE",
                       path, DURABLE_FILE_NAME_MAX, PATH_MAX - 1);
    for (size_t i = 0; i < self->paths_count; i++)
        if (shoal_is_same_file(path, self->paths[i]))
            return why_set(why, FAULT_USAGE, "the picture %s: that is the log itself", path);
    return 0;
}

static int place(const char *path, const char *bytes, size_t count, struct why *why)
{
    struct durable_file file;
    char dir[PATH_MAX] = ".";
    const size_t slash = (size_t)(name_of(path) - path);
    if (slash) snprintf(dir, sizeof dir, "%.*s", (int)slash, path);
    int rc = durable_file_create(dir, name_of(path), why, &file);
    if (rc < 0) return why_wrap(why, rc, "the picture %s", path);
    rc = durable_file_append(&file, bytes, count, why);
    if (rc == 0) return durable_file_rename_only(&file, why);
    durable_file_abandon(&file);
    return rc;
}

static void say(const struct plot *self, const char *path)
{
    for (size_t i = 0; i < self->paths_count; i++) {
        const struct curves *curves = &self->logs[i].curves;
        const double loss = curves_last(curves, CURVE_LOSS);
        const double heldout = curves_last(curves, CURVE_HELDOUT);
        printf("%s: steps %" PRIu64 " to %" PRIu64, self->paths[i], curves->rows[0].step,
               curves->rows[curves->count - 1].step);
        if (!isnan(loss)) printf(", loss %.4f", loss);
        if (!isnan(heldout)) printf(", held out %.4f", heldout);
        putchar('\n');
    }
    printf("%s\n", path);
}

static int run(struct plot *self, struct why *why)
{
    char path[PATH_MAX], *bytes = NULL;
    size_t count = 0;
    int rc = find_run(self, why);
    if (rc == 0) rc = choose_out(self, path, why);
    if (rc == 0) rc = read_logs(self, why);
    FILE *picture = rc == 0 ? open_memstream(&bytes, &count) : NULL;
    if (rc < 0) return rc;
    if (!picture) return why_set(why, FAULT_MEMORY, "no memory for the picture");
    const char *title = self->title             ? self->title
                        : self->paths_count > 1 ? "Trainings beside each other"
                                                : self->logs[0].name;
    chart_draw(picture, shoal_shown(title), self->logs, self->paths_count);
    if (fclose(picture) != 0) rc = why_set(why, FAULT_MEMORY, "no memory for the picture");
    if (rc == 0) rc = place(path, bytes, count, why);
    if (rc == 0) say(self, path);
    free(bytes);
    return rc;
}

static const struct flag flags[] = {
    FLAG("run", 0, "DIR", TO_TEXT(struct plot, run),
         "A run: its folder, or the one that the coordinator's --log names"),
    FLAG("out", 'o', "FILE", TO_TEXT(struct plot, out),
         "The picture (beside the first log, ending in .svg)"),
    FLAG("title", 0, "TEXT", TO_TEXT(struct plot, title), "Stands above it (the log's name)"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .usage = "[LOG...]",
    .about = "Draws a training as an SVG: loss, held-out loss, learning rate and tokens/s over "
             "the steps. LOG is what shoal train --log wrote, --run what a coordinator wrote with "
             "its --log; up to "
             "six are drawn in one picture. "
             "Of a long training each point is the mean of some steps.\n\n"
             "  shoal plot 4e-3.csv                       (writes 4e-3.svg)\n"
             "  shoal plot --run their-run                (their-run/run/metrics/run.svg)\n"
             "  shoal plot 1e-3.csv 4e-3.csv --out rates.svg\n",
    .arguments = TO_LIST(struct plot, paths, paths_count, CHART_LOGS_MAX),
};

int shoal_plot(int argc, char **argv)
{
    static struct plot self;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    for (size_t i = 0; i < CHART_LOGS_MAX; i++) curves_free(&self.logs[i].curves);
    return fault_exit(rc, &why);
}
