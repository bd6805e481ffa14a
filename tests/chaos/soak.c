// soak -- takes the figures of each actor at every entry of Cooldown, prints a line a minute, and
// judges at the end which figure grows above its bound.

#include "common/base/clock.h"
#include "tests/chaos/soak.h"
#include "tests/test.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE_MS = 60000 };

// In the order of enum growth_kind: what is counted, and in which unit it is said.
static const struct {
    const char *name, *unit;
    double scale, bound;
} kinds[GROWTH_KINDS] = { { "memory", " MiB", 1 << 20, 16 },
                          { "descriptors", "", 1, 30 },
                          { "threads", "", 1, 10 },
                          { "disk", " MiB", 1 << 20, 16 } };

void soak_begin(struct soak *self, const struct testbed *bed, const struct soak_limits *limits)
{
    const uint64_t now_ms = clock_ms();
    *self = (struct soak){ .limits = *limits,
                           .began_ms = now_ms,
                           .line_ms = now_ms + MINUTE_MS,
                           .commit_ms = now_ms,
                           .commits = bed->news.commits };
}

static double hours_since(uint64_t began_ms) { return (double)(clock_ms() - began_ms) / 3600000; }

static double disk_of(const struct testbed *bed, const char *name)
{
    char path[300], more[300];
    snprintf(path, sizeof path, "%s/%s", bed->dir, name);
    snprintf(more, sizeof more, "%s/checkpoints", bed->dir);
    return growth_read_folder(path) +
           (strcmp(name, "checkpointer") == 0 ? growth_read_folder(more) : 0);
}

static void look_at(struct soak *self, const struct testbed *bed, unsigned index)
{
    const struct testbed_actor *actor = &bed->actors[index];
    struct soaked *soaked = &self->actors[index];
    const uint64_t settled_ms = 1000 * GROWTH_SETTLED_S, now_ms = clock_ms();
    double values[GROWTH_KINDS];
    if (now_ms - self->began_ms >= settled_ms)
        growth_add(&soaked->of[GROWTH_DISK], hours_since(self->began_ms),
                   disk_of(bed, actor->name));
    if (!actor->pid || now_ms - soaked->born_ms < settled_ms) return;
    if (!growth_read_process(actor->pid, values)) return;
    for (unsigned kind = 0; kind < GROWTH_DISK; kind++)
        growth_add(&soaked->of[kind], hours_since(soaked->born_ms), values[kind]);
}

static void mind_lives(struct soak *self, const struct testbed *bed)
{
    for (unsigned i = 0; i < bed->actors_count; i++) {
        struct soaked *soaked = &self->actors[i];
        if (soaked->lives == bed->actors[i].lives) continue;
        soaked->lives = bed->actors[i].lives;
        soaked->born_ms = clock_ms();
        for (unsigned kind = 0; kind < GROWTH_DISK; kind++) growth_end_life(&soaked->of[kind]);
    }
}

static void say(struct soak *self, const struct testbed *bed, unsigned events, unsigned restarts)
{
    double sums[GROWTH_KINDS] = { 0 };
    for (unsigned i = 0; i < bed->actors_count; i++)
        for (unsigned kind = 0; kind < GROWTH_KINDS; kind++)
            sums[kind] += self->actors[i].of[kind].newest;
    printf("%4.0f min  epoch %" PRIu64 ", %" PRIu64 " commits, %u events, %u started again; ",
           60 * hours_since(self->began_ms), bed->news.run.epoch, bed->news.commits, events,
           restarts);
    for (unsigned kind = 0; kind < GROWTH_KINDS; kind++)
        printf("%s %.*f%s%s", kinds[kind].name, kinds[kind].scale > 1,
               sums[kind] / kinds[kind].scale, kinds[kind].unit,
               kind + 1 < GROWTH_KINDS ? ", " : "\n");
    fflush(stdout);
}

void soak_watch(struct soak *self, struct testbed *bed, unsigned events, unsigned restarts)
{
    const uint64_t now_ms = clock_ms();
    mind_lives(self, bed);
    if (bed->news.commits > self->commits) {
        self->commits = bed->news.commits;
        self->commit_ms = now_ms;
    }
    if (now_ms - self->commit_ms > 1000 * self->limits.patience_s)
        testbed_fail(bed, "no commit for %u s, after %" PRIu64 " of them", self->limits.patience_s,
                     self->commits);
    if (bed->news.entered[PHASE_COOLDOWN] != self->cooldowns) {
        self->cooldowns = bed->news.entered[PHASE_COOLDOWN];
        self->cooldown_commits = self->commits;
        self->samples++;
        for (unsigned i = 0; i < bed->actors_count; i++) look_at(self, bed, i);
    }
    if (now_ms < self->line_ms) return;
    self->line_ms += MINUTE_MS;
    say(self, bed, events, restarts);
}

// ---- the end ------------------------------------------------------------------------------------

static double bound_of(const struct soak *self, const char *name, unsigned kind)
{
    double bound = kinds[kind].bound * kinds[kind].scale;
    if (kind == GROWTH_DISK && strcmp(name, "coordinator") == 0)
        bound += self->limits.ledger_bytes * (double)self->commits / hours_since(self->began_ms);
    return bound;
}

static void print_row(const char *name, const struct growth *of)
{
    printf("%-14s", name);
    for (unsigned kind = 0; kind < GROWTH_KINDS; kind++) {
        const double scale = kinds[kind].scale;
        struct growth_rate rate;
        printf("  %7.*f", scale > 1, of[kind].newest / scale);
        if (growth_measure(&of[kind], &rate))
            printf(" %+6.1f..%+6.1f", rate.least / scale, rate.most / scale);
        else printf("   too few looks");
    }
    printf("\n");
}

// Prints a row, and below it what is too much. Returns how much is, and says the newest of it.
static unsigned judge(const struct soak *self, const char *name, const struct growth *of,
                      char ret_text[200])
{
    unsigned grown = 0;
    print_row(name, of);
    for (unsigned kind = 0; kind < GROWTH_KINDS; kind++) {
        const double bound = bound_of(self, name, kind), scale = kinds[kind].scale;
        struct growth_rate rate;
        if (!growth_exceeds(&of[kind], bound)) continue;
        growth_measure(&of[kind], &rate);
        snprintf(ret_text, 200, "%s: %s +%.1f to +%.1f%s an hour, allowed are %.0f", name,
                 kinds[kind].name, rate.least / scale, rate.most / scale, kinds[kind].unit,
                 bound / scale);
        printf("GROWS %s\n", ret_text);
        grown++;
    }
    return grown;
}

// All actors of a kind run the same program: pooled, they may show what one alone is too short to
// show.
static unsigned judge_kind(const struct soak *self, const struct testbed *bed, const char *kind,
                           char ret_text[200])
{
    struct growth of[GROWTH_KINDS] = { 0 };
    for (unsigned i = 0; i < bed->actors_count; i++)
        for (unsigned k = 0; k < GROWTH_KINDS && strncmp(bed->actors[i].name, kind, 7) == 0; k++)
            growth_pool(&of[k], &self->actors[i].of[k]);
    return judge(self, kind, of, ret_text);
}

void soak_judge(const struct soak *self, struct testbed *bed)
{
    unsigned grown = 0;
    char text[200] = "";
    printf("\n%u looks at Cooldown; newest; growth an hour in the quarters, least..most\n%-14s",
           self->samples, "");
    for (unsigned kind = 0; kind < GROWTH_KINDS; kind++)
        printf("  %s%-*s", kinds[kind].name, 22 - (int)strlen(kinds[kind].name), kinds[kind].unit);
    printf("\n");
    for (unsigned i = 0; i < bed->actors_count; i++)
        grown += judge(self, bed->actors[i].name, self->actors[i].of, text);
    grown += judge_kind(self, bed, "witness", text) + judge_kind(self, bed, "trainer", text);
    fflush(stdout);
    if (grown) testbed_fail(bed, "%u things grow; %s", grown, text);
}
