// The demos of allreduce, sharded and server. Four trainers sum their gradients over direct links. On the way, each at a
// step of its own:
//
//     three tenths  trainer-2 is killed. The others go on; it comes back with the next barrier.
//                   sharded: its moments are lost, and all go back to what its neighbour has in memory
//     two fifths    trainer-5 joins
//     over half     server: a parameter server of the group is killed. The run goes back to what the others have of its share in memory,
//                   and on with the one that stood by, or with the one that was killed, as it is started again
//     three fifths  the coordinator is killed. The group goes on with the window that it has
//
// At the end one trainer alone takes the same steps (`shoal train`), and must end in the same state,
// the moments of AdamW included. How long things take is measured by the news: the trainers report
// the first step of each window, and its last one.

#include "actors/shoal/local/demo_play.h"
#include "actors/shoal/show.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { KILLED = 1, JOINING = 4 }; // Indices of trainers

struct pauses {
    uint64_t count, longest_us, sum_us;
};

static struct {
    uint64_t began_ms, began_step; // When the first window opened
    uint64_t step, step_ms;        // The newest step that any trainer has reported
    uint64_t kill_ms, kill_step, kill_window, kill_instance;
    uint64_t regroup_ms, regroup_step; // The first window without the process that was killed
    uint64_t next_ms;                  // The first step in it
    uint64_t back_ms;                  // The first window with it again
    uint64_t join_ms, joined_ms;       // trainer-5: its start; the first window with it
    uint64_t lost_ms, lost_step;       // The coordinator was killed
    uint64_t reborn_ms, reborn_step;   // Its next life was heard, and the steps by then
    // Of server: a parameter server was killed; the first window after it, and its step.
    uint32_t server_killed; // Its index
    uint64_t server_ms, server_window, server_step, server_instance, server_back_ms,
        server_back_step;
    struct hash alone;            // The state of one trainer alone; none: not known
    uint64_t alone_s, alone_peak; // How long it took, and the most memory that it had, bytes
    // Of sharded: what the steps waited for saves to the folder and for copies in memory, by the trainers' logs.
    struct pauses saved, copied;
} on; // There is one demo in a process

// ---- on the way ---------------------------------------------------------------------------------

static void plan(struct demo *self) { (void)self; }

static void kill_trainer(struct demo *self, uint64_t now_ms)
{
    on.kill_ms = now_ms;
    on.kill_step = on.step;
    on.kill_window = self->net.view->window.number;
    on.kill_instance = demo_instance(self, &self->net.keys[KILLED]);
    demo_kill(self, &self->net.trainers[KILLED], "window", on.step);
}

static void join(struct demo *self, uint64_t now_ms)
{
    struct why why = { 0 };
    on.join_ms = now_ms;
    if (testnet_start_late(&self->net, &why) < 0) demo_report_fail(&self->report, "%s", why.text);
    demo_say(self, "trainer-5 starts, and joins in the middle of the run");
}

static void kill_server(struct demo *self, uint64_t now_ms)
{
    const uint32_t index = demo_server_of_group(self);
    if (index == NO_MEMBER) return; // Not known yet: when progress is heard again
    on.server_killed = index;
    on.server_ms = now_ms;
    on.server_step = on.step;
    on.server_window = self->net.view->window.number;
    on.server_instance = demo_instance(self, &self->net.server_keys[index]);
    demo_kill(self, &self->net.servers[index], "window", on.step);
}

static bool is_due_server(const struct demo *self)
{
    return self->net.servers_count > 0 && !on.server_ms &&
           on.step >= self->setup.config.total_steps * 11 / 20;
}

// The first window without the process that was killed.
static void hear_server_replaced(struct demo *self, uint64_t now_ms)
{
    const struct view_window *window = &self->net.view->window;
    char line[200];
    const struct key *key = &self->net.server_keys[on.server_killed];
    if (!on.server_ms || on.server_back_ms || window->number <= on.server_window ||
        (demo_in_group(self, key) && demo_instance(self, key) == on.server_instance))
        return;
    on.server_back_ms = now_ms;
    on.server_back_step = window->step;
    snprintf(
        line, sizeof line,
        "three parameter servers are there again: next window %.1f s after the kill, from step "
        "%" PRIu64,
        (double)(now_ms - on.server_ms) / 1000, window->step);
    demo_say(self, line);
}

static void kill_coordinator(struct demo *self, uint64_t now_ms)
{
    on.lost_ms = now_ms;
    on.lost_step = on.step;
    demo_kill(self, self->net.coordinator, "window", on.step);
}

// The newest step of any trainer.
static void hear_progress(struct demo *self, uint64_t now_ms)
{
    const struct run_view *view = self->net.view;
    for (uint32_t i = 0; i < view->roster.count; i++) {
        if (view->progress[i].step <= on.step) continue;
        on.step = view->progress[i].step;
        on.step_ms = now_ms;
    }
    if (on.regroup_ms && !on.next_ms && on.step > on.regroup_step) {
        char line[160];
        on.next_ms = now_ms;
        snprintf(line, sizeof line,
                 "the group goes on without trainer-%d: next window %" PRIu64 " ms after the kill, "
                 "next step %" PRIu64 " ms after it",
                 KILLED + 1, on.regroup_ms - on.kill_ms, on.next_ms - on.kill_ms);
        demo_say(self, line);
    }
}

static void hear_window(struct demo *self, uint64_t now_ms)
{
    const struct view_window *window = &self->net.view->window;
    char line[160];
    if (!on.began_ms) on.began_ms = now_ms, on.began_step = window->step;
    hear_server_replaced(self, now_ms);
    const bool is_new = demo_instance(self, &self->net.keys[KILLED]) != on.kill_instance;
    const bool is_in = demo_in_group(self, &self->net.keys[KILLED]);
    if (on.kill_ms && !on.regroup_ms && window->number > on.kill_window && (!is_in || is_new))
        on.regroup_ms = now_ms, on.regroup_step = window->step;
    if (on.regroup_ms && !on.back_ms && is_in && is_new) {
        on.back_ms = now_ms;
        snprintf(line, sizeof line, "trainer-%d is back in the group, %.1f s after the kill",
                 KILLED + 1, (double)(on.back_ms - on.kill_ms) / 1000);
        demo_say(self, line);
    }
    if (on.join_ms && !on.joined_ms && demo_in_group(self, &self->net.keys[JOINING])) {
        on.joined_ms = now_ms;
        snprintf(line, sizeof line, "trainer-%d is in the group, %.1f s after its start",
                 JOINING + 1, (double)(on.joined_ms - on.join_ms) / 1000);
        demo_say(self, line);
    }
}

static void hear_reborn(struct demo *self, uint64_t now_ms)
{
    char line[160];
    on.reborn_ms = now_ms;
    on.reborn_step = on.step;
    snprintf(line, sizeof line,
             "coordinator is back after %.1f s; meanwhile the group took %" PRIu64 " steps",
             (double)(on.reborn_ms - on.lost_ms) / 1000, (uint64_t)(on.reborn_step - on.lost_step));
    demo_say(self, line);
}

static void hear(struct demo *self, unsigned heard, uint64_t now_ms)
{
    const uint64_t total = self->setup.config.total_steps;
    if (heard & VIEW_PROGRESS) hear_progress(self, now_ms);
    if (heard & VIEW_WINDOW) hear_window(self, now_ms);
    if (heard & VIEW_REBORN && on.lost_ms && !on.reborn_ms) hear_reborn(self, now_ms);
    if (!(heard & VIEW_PROGRESS) || self->net.view->now.phase != PHASE_TRAIN) return;
    if (!on.kill_ms && on.step >= total * 3 / 10) kill_trainer(self, now_ms);
    else if (!on.join_ms && on.step >= total * 2 / 5) join(self, now_ms);
    else if (is_due_server(self)) kill_server(self, now_ms);
    else if (!on.lost_ms && on.step >= total * 3 / 5) kill_coordinator(self, now_ms);
}

// ---- one trainer alone --------------------------------------------------------------------------

static int wait_for(pid_t pid, const char *log, struct why *why)
{
    struct rusage used;
    int status;
    char text[64];
    const bool ended = wait4(pid, &status, 0, &used) == pid;
    if (ended) on.alone_peak = (uint64_t)used.ru_maxrss * 1024;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    process_print_end(status, text, sizeof text);
    return why_set(why, FAULT_UNAVAILABLE, "shoal train %s; see %s", text, log);
}

// Opening it verifies it: the digest is that of the state in its files.
static int read_alone(const struct demo *self, const char *dir, struct why *why)
{
    checkpoint_t *checkpoint;
    char run[CHECKPOINT_RUN_MAX + 1];
    snprintf(run, sizeof run, "%.32s.train", self->setup.config.run_id);
    const int rc = checkpoint_open(dir, self->setup.config.total_steps, run, why, &checkpoint);
    if (rc < 0) return rc;
    on.alone = checkpoint_info(checkpoint)->digest;
    checkpoint_close(&checkpoint);
    return 0;
}

static int train_alone(struct demo *self, struct why *why)
{
    struct arguments arguments = { 0 };
    char log[PATH_MAX + 32], dir[PATH_MAX + 32];
    const uint64_t began_ms = clock_ms();
    pid_t pid;
    demo_say(self, "one trainer alone takes the same steps: shoal train");
    snprintf(log, sizeof log, "%s/run/logs/alone.log", self->setup.dir);
    snprintf(dir, sizeof dir, "%s/alone", self->setup.dir);
    arguments_add(&arguments, "%s/shoal", self->net.fleet.dir);
    arguments_add(&arguments, "train");
    arguments_add(&arguments, "%s/state.toml", self->setup.dir);
    arguments_add(&arguments, "--data-config=%s/data.toml", self->setup.dir);
    arguments_add(&arguments, "--checkpoint-dir=%s", dir);
    const struct process_options options = { .arguments = &arguments, .log = log };
    int rc = process_start(&options, why, &pid);
    if (rc == 0) rc = wait_for(pid, log, why);
    if (rc == 0) rc = read_alone(self, dir, why);
    on.alone_s = (clock_ms() - began_ms + 500) / 1000;
    return rc;
}

// ---- the verdict --------------------------------------------------------------------------------

static void judge(struct demo *self)
{
    struct demo_report *report = &self->report;
    if (!hash_equal(&on.alone, &report->ledger.end.digest))
        demo_report_fail(report, "one trainer alone ends in another state");
    if (!on.next_ms)
        demo_report_fail(report, "no step was seen after the kill of trainer-%d", KILLED + 1);
    if (!on.back_ms) demo_report_fail(report, "trainer-%d did not come back", KILLED + 1);
    if (!on.joined_ms) demo_report_fail(report, "trainer-%d did not join", JOINING + 1);
    if (!on.reborn_ms) demo_report_fail(report, "the coordinator did not come back");
}

// Adds the pauses that the lines of one kind in a log tell.
static void add_pauses(const char *path, const char *kind, struct pauses *pauses)
{
    FILE *log = fopen(path, "re");
    char line[1024];
    while (log && fgets(line, sizeof line, log)) {
        const char *at = strstr(line, kind), *us = at ? strstr(at, " waited_us=") : NULL;
        if (!us) continue;
        const uint64_t waited = strtoull(us + strlen(" waited_us="), NULL, 10);
        pauses->count++;
        pauses->sum_us += waited;
        if (waited > pauses->longest_us) pauses->longest_us = waited;
    }
    if (log) fclose(log);
}

static int after_shares(struct demo *self, struct why *why)
{
    char path[PATH_MAX + 48];
    for (uint32_t i = 0; i < self->report.trainers_count; i++) {
        snprintf(path, sizeof path, "%s/run/logs/trainer-%u.log", self->setup.dir, i + 1);
        add_pauses(path, " save.copied ", &on.saved);
        add_pauses(path, " memory.copied ", &on.copied);
    }
    for (uint32_t i = 0; i < self->net.servers_count; i++) {
        snprintf(path, sizeof path, "%s/run/logs/parameter-server-%u.log", self->setup.dir, i + 1);
        add_pauses(path, " save.copied ", &on.saved);
        add_pauses(path, " memory.copied ", &on.copied);
    }
    return train_alone(self, why);
}

static void judge_shares(struct demo *self)
{
    judge(self);
    if (!on.saved.count) demo_report_fail(&self->report, "no trainer has saved its share");
    if (!on.copied.count)
        demo_report_fail(&self->report, "no trainer has copied its share in memory");
}

static void judge_servers(struct demo *self)
{
    judge(self);
    if (!on.saved.count) demo_report_fail(&self->report, "no parameter server has saved its share");
    if (!on.copied.count)
        demo_report_fail(&self->report, "no parameter server has copied its share in memory");
    if (!on.server_ms) demo_report_fail(&self->report, "no parameter server was killed");
    else if (!on.server_back_ms)
        demo_report_fail(&self->report, "no window was seen after the kill of parameter-server-%u",
                         on.server_killed + 1);
}

static double steps_per_s(void)
{
    const uint64_t ms = on.step_ms - on.began_ms;
    return ms ? 1000.0 * (double)(on.step - on.began_step) / (double)ms : 0;
}

static double records_a_step(const struct demo_report *report)
{
    const uint64_t made =
        report->ledger.of_kind[FRAME_RECORD_WINDOW] + report->ledger.of_kind[FRAME_RECORD_STEPS];
    return report->ledger.steps ? (double)made / (double)report->ledger.steps : 0;
}

static const char *note(const struct demo_report *report, uint32_t trainer)
{
    (void)report;
    return trainer == KILLED ? "killed, and back" : trainer == JOINING ? "joined on the way" : "";
}

// From one event to the next, in ms. -1: one of them was not seen.
static int64_t took_ms(uint64_t from_ms, uint64_t to_ms)
{
    return from_ms && to_ms >= from_ms ? (int64_t)(to_ms - from_ms) : -1;
}

static void print_pauses(const char *what, const struct pauses *pauses, FILE *out)
{
    fprintf(out, "  %-17s %" PRIu64 " shares; the steps waited %.2f ms for one, at most %.2f ms\n",
            what, pauses->count,
            pauses->count ? (double)pauses->sum_us / 1000 / (double)pauses->count : 0,
            (double)pauses->longest_us / 1000);
}

// Copies in memory take more than shares of such a small model save: the guide has the sums.
static void print_memory(const struct demo *self, FILE *out)
{
    fprintf(out, "  memory at most   ");
    for (uint32_t i = 0; i < self->report.trainers_count; i++)
        fprintf(out, " %.0f", (double)self->net.trainers[i].peak_bytes / (1 << 20));
    fprintf(out, " MiB: trainers 1 to %u; one trainer alone %.0f MiB\n",
            self->report.trainers_count, (double)on.alone_peak / (1 << 20));
}

static void print(const struct demo *self, FILE *out)
{
    const struct demo_report *report = &self->report;
    const int64_t next_ms = took_ms(on.kill_ms, on.next_ms);
    char hex[HASH_HEX], back[32], next[32] = "not seen";
    if (next_ms >= 0) snprintf(next, sizeof next, "after %" PRId64 " ms", next_ms);
    fprintf(out,
            "  speed             %.1f steps/s, kills and barriers included; %.3f records a step\n",
            steps_per_s(), records_a_step(report));
    fprintf(out,
            "  kill -9           trainer-%d at step %" PRIu64
            "; next step of the others: %s; it is "
            "back: %s\n",
            KILLED + 1, on.kill_step, next, demo_after_s(on.kill_ms, on.back_ms, back));
    fprintf(out,
            "  kill -9           coordinator at step %" PRIu64 "; it is back: %s, %" PRIu64
            " steps meanwhile\n",
            on.lost_step, demo_after_s(on.lost_ms, on.reborn_ms, back),
            on.reborn_ms ? on.reborn_step - on.lost_step : 0);
    if (on.server_ms)
        fprintf(out,
                "  kill -9           parameter-server-%u at step %" PRIu64
                "; three are there again: "
                "%s, from step %" PRIu64 "\n",
                on.server_killed + 1, on.server_step,
                demo_after_s(on.server_ms, on.server_back_ms, back), on.server_back_step);
    fprintf(out, "  joined            trainer-%d is in the group: %s\n", JOINING + 1,
            demo_after_s(on.join_ms, on.joined_ms, back));
    if (on.saved.count || on.copied.count) {
        print_memory(self, out);
        print_pauses("saves to the disk", &on.saved, out);
        if (on.copied.count) print_pauses("copies in memory", &on.copied, out);
    }
    demo_report_print_replicas(report, out, note);
    fprintf(out, "    %-55s  %.32s\n", "one trainer alone", hash_to_hex(&on.alone, hex));
    demo_report_print_end(report, out, "digest equal to one undisturbed trainer alone");
}

static json_t *json_ms(int64_t ms) { return ms < 0 ? json_null() : json_integer(ms); }
static json_t *json_s(int64_t ms) { return ms < 0 ? json_null() : json_real((double)ms / 1000); }

static json_t *to_json(const struct demo *self)
{
    char hex[HASH_HEX];
    json_t *digests = json_array();
    for (uint32_t i = 0; i < self->report.trainers_count; i++)
        json_array_append_new(digests, json_string(hash_to_hex(&self->report.digests[i], hex)));
    return json_pack("{s:f, s:f, s:o, s:o, s:o, s:o, s:s, s:o}", "steps_per_s", steps_per_s(),
                     "records_a_step", records_a_step(&self->report), "kill_to_step_ms",
                     json_ms(took_ms(on.kill_ms, on.next_ms)), "kill_to_back_s",
                     json_s(took_ms(on.kill_ms, on.back_ms)), "join_s",
                     json_s(took_ms(on.join_ms, on.joined_ms)), "coordinator_back_s",
                     json_s(took_ms(on.lost_ms, on.reborn_ms)), "alone",
                     hash_to_hex(&on.alone, hex), "replicas", digests);
}

#define THE_SAME .late = 1, .plan = plan, .hear = hear, .print = print, .to_json = to_json

const struct demo_play demo_windows = { .strategy = "allreduce",
                                        .settings = "allreduce.toml",
                                        .after = train_alone,
                                        .judge = judge,
                                        THE_SAME };
const struct demo_play demo_shares = { .strategy = "sharded",
                                       .settings = "sharded.toml",
                                       .saves = true,
                                       .after = after_shares,
                                       .judge = judge_shares,
                                       THE_SAME };
const struct demo_play demo_servers = { .strategy = "server",
                                        .mode = "sync",
                                        .settings = "server.toml",
                                        .saves = true,
                                        .standby = 1,
                                        .after = after_shares,
                                        .judge = judge_servers,
                                        THE_SAME };
