// Which member of the group is late with its part of the steps (common/run/lateness.h), as this
// member sees it, the owner of a share.
//
// What a member took is counted from the begin of the step. The group tells for how long the sum
// slept because that member's part was missing; before that we computed our own part, and cannot know
// when its bytes came. So a member took at least as long as we did: if we are the slow one, nobody
// is late here, and the others see us; and our own work hides at most as much of the lateness of
// another as it takes. Ours is what we computed.

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/learner/learner_windows.h"
#include <inttypes.h>
#include <string.h>

enum { LATE_FLOOR_US = 200000 };

static uint32_t as_u32(uint64_t us) { return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX - 1; }

void learner_late_open(struct learner_window_work *work)
{
    const uint64_t timeout_us = (uint64_t)work->config.step_timeout_ms * 1000;
    const uint32_t ceiling = as_u32(timeout_us);
    lateness_init(&work->lateness, ceiling < LATE_FLOOR_US ? ceiling : LATE_FLOOR_US, ceiling);
}

bool learner_same_group(const struct learner_window *a, const struct learner_window *b)
{
    return a && a->said.group_count == b->said.group_count &&
           memcmp(a->members, b->members, a->said.group_count * sizeof *a->members) == 0;
}

void learner_late_begin(struct learner_window_work *work, const struct learner_window *next)
{
    if (learner_same_group(work->now, next)) return;
    memset(work->late_row, 0, sizeof work->late_row);
    work->late = 0;
}

static bool has_part(const struct learner *self, uint32_t place)
{
    const struct learner_window_work *work = self->window;
    const uint32_t lanes = work->config.lanes;
    return !interval_empty(lane_samples(lanes, work->batch, learner_lanes(self, place)));
}

static void say(const struct learner *self, uint32_t place, bool late)
{
    const struct learner_window_work *work = self->window;
    const uint64_t window = work->now->said.number;
    char key[KEY_HEX];
    key_to_hex(&work->now->members[place].key, key);
    if (late)
        log_line(LOG_WARNING,
                 "step.late step=%" PRIu64 " window=%" PRIu64
                 " member=%u key=%.8s took_ms=%u others_ms=%u; it is left out when a step takes "
                 "longer than step_timeout, %g s",
                 self->step, window, place, key, work->late_ms, work->usual_ms,
                 work->config.step_timeout_ms / 1000.0);
    else
        log_line(LOG_INFO,
                 "step.on_time_again step=%" PRIu64 " window=%" PRIu64 " member=%u key=%.8s",
                 self->step, window, place, key);
}

void learner_late_note(struct learner *self, uint64_t computed_us, const uint64_t *waited_us)
{
    struct learner_window_work *work = self->window;
    const uint32_t count = work->now->said.group_count, before = work->late;
    uint32_t took[GROUP_MEMBERS_MAX] = { 0 }, worst = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        took[i] = has_part(self, i) ? as_u32(computed_us + waited_us[i]) : LATENESS_NO_PART;
    const uint32_t median = lateness_turn(&work->lateness, took, work->late_row, count);
    for (uint32_t i = 0; i < count; i++)
        if (work->late_row[i] == LATENESS_ROW && took[i] != LATENESS_NO_PART &&
            (worst == UINT32_MAX || took[i] > took[worst]))
            worst = i;
    work->late = worst == UINT32_MAX ? 0 : worst + 1;
    if (work->late) {
        work->late_ms = took[worst] / 1000;
        work->usual_ms = median / 1000;
    }
    if (work->late == before) return;
    if (work->late) say(self, worst, true);
    else say(self, before - 1, false);
    work->told_us = 0; // The next STEPPED is due
}
