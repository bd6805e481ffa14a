// The demo of distro. In this order: what happens on the way (demo_kills), then what the verdict adds
// for it (commits, the share of each trainer, the two kills), then what is printed.

#include "actors/shoal/local/demo_kills.h"
#include "actors/shoal/local/demo_play.h"
#include "actors/shoal/show.h"
#include <inttypes.h>

enum { DEMO_KILLS = 2, COMMITS_MIN = 300 };

static struct demo_kill kills[DEMO_KILLS]; // There is one demo in a process

// ---- on the way ---------------------------------------------------------------------------------

static void plan(struct demo *self)
{
    uint64_t total = self->setup.config.total_steps;
    // In the middle of an epoch: there a restarted process has most to catch up with.
    kills[0] = (struct demo_kill){ .name = "trainer-2",
                                   .key = self->net.keys[1],
                                   .at_step = total / 4 + total / 20 };
    kills[1] = (struct demo_kill){ .name = "coordinator", .at_step = total / 2 + total / 20 };
}

static struct child *victim(struct demo *self, int kill)
{
    return kill == 0 ? &self->net.trainers[1] : self->net.coordinator;
}

static void say_killed(struct demo *self, int which)
{
    char line[160];
    snprintf(line, sizeof line,
             "kill -9 %s (pid %d), in RoundTrain of round %" PRIu64 ", step %" PRIu64,
             kills[which].name, (int)victim(self, which)->pid, self->net.view->round.opened.round,
             self->net.view->now.step);
    demo_say(self, line);
}

static void say_back(struct demo *self, const struct demo_kill *kill)
{
    char line[200];
    if (key_is_none(&kill->key))
        snprintf(line, sizeof line,
                 "coordinator is back: its next life was heard after %.1f s, its first commit "
                 "(round %" PRIu64 ") after %.1f s",
                 (double)(kill->reborn_ms - kill->ms) / 1000, kill->back_round,
                 (double)(kill->back_ms - kill->ms) / 1000);
    else
        snprintf(line, sizeof line,
                 "%s is back: its result was committed again in round %" PRIu64 ", %" PRIu64
                 " rounds and %.1f s "
                 "after the kill",
                 kill->name, kill->back_round, (uint64_t)(kill->back_round - kill->round),
                 (double)(kill->back_ms - kill->ms) / 1000);
    demo_say(self, line);
}

// Kills at the news that a round has opened, not at a time: so a kill always falls in RoundTrain.
static void hear(struct demo *self, unsigned heard, uint64_t now_ms)
{
    const struct run_view *view = self->net.view;
    for (int i = 0; i < DEMO_KILLS; i++) {
        if (demo_kill_is_due(&kills[i], view, heard, now_ms)) {
            say_killed(self, i);
            fleet_kill(victim(self, i));
        } else if (demo_kill_came_back(&kills[i], view, heard, now_ms)) say_back(self, &kills[i]);
    }
}

// ---- the verdict --------------------------------------------------------------------------------

static const struct report_member *member_of(const struct demo_report *report, uint32_t trainer)
{
    for (uint32_t i = 0; i < report->ledger.members_count; i++)
        if (key_equal(&report->ledger.members[i].key, &report->trainers[trainer]))
            return &report->ledger.members[i];
    return NULL;
}

static double share_of(const struct demo_report *report, uint32_t trainer)
{
    const struct report_member *member = member_of(report, trainer);
    if (!member || report->ledger.samples == 0) return 0;
    return (double)member->samples / (double)report->ledger.samples;
}

static void judge(struct demo *self)
{
    struct demo_report *report = &self->report;
    if (report->ledger.commits < COMMITS_MIN)
        demo_report_fail(report, "%" PRIu64 " commits, fewer than %d", report->ledger.commits,
                         COMMITS_MIN);
    for (uint32_t i = 0; i < report->trainers_count; i++)
        if (share_of(report, i) < 0.1)
            demo_report_fail(report, "trainer-%u supplied %.1f %% of the samples, less than 10 %%",
                             i + 1, 100 * share_of(report, i));
    for (int i = 0; i < DEMO_KILLS; i++)
        if (kills[i].state == KILL_WAITING)
            demo_report_fail(report, "%s was not killed", kills[i].name);
        else if (kills[i].state == KILL_DOWN)
            demo_report_fail(report, "%s was killed and did not commit again", kills[i].name);
}

// ---- for people, and for programs ---------------------------------------------------------------

static const char *note(const struct demo_report *report, uint32_t trainer)
{
    static char text[64];
    const struct report_member *member = member_of(report, trainer);
    snprintf(text, sizeof text, "%5.1f %% of the samples in %4" PRIu64 " results",
             100 * share_of(report, trainer), member ? member->results : 0);
    return text;
}

static void print(const struct demo *self, FILE *out)
{
    const uint64_t voids = self->report.ledger.voids;
    fprintf(out, "  void rounds       %" PRIu64 "\n", voids);
    for (int i = 0; i < DEMO_KILLS; i++) {
        const struct demo_kill *kill = &kills[i];
        if (kill->state != KILL_BACK) continue;
        fprintf(out,
                "  kill -9           %s in RoundTrain of round %" PRIu64 "; %s %" PRIu64
                " rounds and %.1f s later\n",
                kill->name, kill->round,
                key_is_none(&kill->key) ? "first commit" : "its next commit",
                kill->back_round - kill->round, (double)(kill->back_ms - kill->ms) / 1000);
    }
    demo_report_print_replicas(&self->report, out, note);
    demo_report_print_end(&self->report, out,
                          "Four trainers trained one model. Two processes were killed on the way. "
                          "All replicas hold the same bits.");
}

static json_t *replicas_to_json(const struct demo_report *report)
{
    char hex[HASH_HEX];
    json_t *list = json_array();
    for (uint32_t i = 0; i < report->trainers_count; i++) {
        const struct report_member *member = member_of(report, i);
        json_array_append_new(list, json_pack("{s:i, s:f, s:I, s:I, s:s}", "trainer", (int)i + 1,
                                              "share", share_of(report, i), "samples",
                                              (json_int_t)(member ? member->samples : 0), "results",
                                              (json_int_t)(member ? member->results : 0), "digest",
                                              hash_to_hex(&report->digests[i], hex)));
    }
    return list;
}

static json_t *kills_to_json(void)
{
    static const char *const states[] = { "not killed", "killed", "back" };
    json_t *list = json_array();
    for (int i = 0; i < DEMO_KILLS; i++) {
        const struct demo_kill *kill = &kills[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:I, s:f}", "name", kill->name, "state", states[kill->state],
                      "round", (json_int_t)kill->round, "back_round", (json_int_t)kill->back_round,
                      "seconds",
                      kill->state == KILL_BACK ? (double)(kill->back_ms - kill->ms) / 1000 : 0.0));
    }
    return list;
}

static json_t *to_json(const struct demo *self)
{
    return json_pack("{s:o, s:o}", "replicas", replicas_to_json(&self->report), "kills",
                     kills_to_json());
}

const struct demo_play demo_rounds = {
    .strategy = "distro",
    .settings = "state.toml",
    .plan = plan,
    .hear = hear,
    .judge = judge,
    .print = print,
    .to_json = to_json,
};
