// windows_evidence -- a window follows from the records before it: number, step, group, samples and rates; and
// steps are committed in order, each within an open window.

#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include "common/pace/windows/voided.h"
#include "common/pace/windows/windows.h"
#include <inttypes.h>
#include <string.h>

enum { COUNT_WINDOWS, COUNT_STEPS };

static struct windows_run *own(struct evidence *evidence)
{
    return (struct windows_run *)(void *)evidence->pace_state;
}

static bool group_is_sound(struct evidence *evidence, const struct wire_window *window)
{
    const uint32_t servers = windows_config(&evidence->rules)->servers;
    const uint32_t trainers = window->group_count - servers; // window_is_sound
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint32_t member = window->group[i].member;
        const struct wire_member *place =
            member < evidence->roster.count ? &evidence->roster.members[member] : NULL;
        if (!place || place->role != (i < trainers ? ACTOR_TRAINER : ACTOR_SERVER) ||
            place->state != MEMBER_HEALTHY || place->instance != window->group[i].instance)
            return evidence_refuse(evidence,
                                   "window %" PRIu64 " has member %u at place %u, which is no "
                                   "healthy %s with this process",
                                   window->number, member, i,
                                   i < trainers ? "trainer" : "parameter server");
    }
    return true;
}

static bool rates_are_those_of_rules(struct evidence *evidence, const struct wire_window *window)
{
    for (uint64_t k = window->step; k < window_end(window); k++) {
        const float rate = schedule_rate(&evidence->rules.lr, (uint32_t)(k + 1), NULL);
        uint32_t bits;
        memcpy(&bits, &rate, sizeof bits);
        if (window_lr_bits(window, k) != bits)
            return evidence_refuse(evidence, "the rate of step %" PRIu64 " is not the schedule's",
                                   k + 1);
    }
    return true;
}

static bool hear_window(struct evidence *evidence, const struct wire_window *window)
{
    struct windows_run *self = own(evidence);
    const struct wire_window *before = &self->window[self->open > 1].frame;
    const uint64_t step = self->open ? window_end(before) : evidence->step;
    if (window->number != evidence->number + 1 || self->open == WINDOWS_OPEN_MAX ||
        window->step != step || !hash_equal(&window->previous, &self->last_steps) ||
        window->closed_from != self->closing.number || window->closed != self->closing.closed ||
        window->closed_at != self->closing.end)
        return evidence_refuse(evidence,
                               "window %" PRIu64 " at step %" PRIu64
                               " does not follow window %" PRIu64 " and step %" PRIu64,
                               window->number, window->step, evidence->number, step);
    if (!window_is_sound(window, windows_config(&evidence->rules), evidence->rules.seq_len))
        return evidence_refuse(evidence,
                               "window %" PRIu64 " has not the samples and rates of %u steps, or "
                               "no group in the order of the roster",
                               window->number, window->steps);
    if (!group_is_sound(evidence, window) || !rates_are_those_of_rules(evidence, window))
        return false;
    if (self->open == 0) self->taken = 0;
    window_keep(&self->window[self->open++], window);
    evidence->number = window->number;
    evidence->counts[COUNT_WINDOWS]++;
    return true;
}

static bool void_is_sound(struct evidence *evidence, const struct wire_steps *steps)
{
    const struct windows_run *self = own(evidence);
    const struct wire_window *window = &self->window[0].frame;
    const struct wire_voided *said = &steps->voided;
    bool is_member = said->times == 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        is_member |= window->group[i].member == said->member;
    return (is_member && (said->times == 0 || (steps->closed && said->step == steps->end)) &&
            (said->times == 0 || said->times == voided_times(&self->voided, said->step) + 1)) ||
           evidence_refuse(evidence,
                           "step %" PRIu64 " is called void for the %u. time by member %u, which "
                           "does not follow from window %" PRIu64 " and its end at %" PRIu64,
                           said->step, said->times, said->member, steps->number, steps->end);
}

static bool differ_is_sound(struct evidence *evidence, const struct wire_steps *steps)
{
    const struct windows_run *self = own(evidence);
    const uint32_t count = self->window[0].frame.group_count;
    const uint64_t last = count ? (uint64_t)1 << (count - 1) : 0, all = last | (last - 1);
    return steps->differ == 0 || (steps->closed && steps->differ < all && count > 1) ||
           evidence_refuse(evidence,
                           "the states of places %" PRIx64 " of window %" PRIu64
                           " are said to differ, which has %u and %s closed",
                           steps->differ, steps->number, count, steps->closed ? "is" : "is not");
}

static bool hear_steps(struct evidence *evidence, const struct wire_steps *steps)
{
    struct windows_run *self = own(evidence);
    const struct wire_window *window = &self->window[0].frame;
    const struct wire_window *newest = &self->window[self->open > 1].frame;
    if (self->open == 0 || steps->number != window->number || steps->step != evidence->step ||
        steps->end < steps->step || steps->end > window_end(window) ||
        (steps->end == steps->step && !steps->closed) ||
        (steps->closed && steps->closed != newest->number) ||
        !hash_equal(&steps->previous, &self->last_steps) ||
        steps->samples != window_count(window, windows_config(&evidence->rules),
                                       evidence->rules.seq_len, steps->step, steps->end))
        return evidence_refuse(evidence,
                               "steps %" PRIu64 " to %" PRIu64 " of window %" PRIu64
                               " do not follow step %" PRIu64,
                               steps->step, steps->end, steps->number, evidence->step);
    if (!void_is_sound(evidence, steps) || !differ_is_sound(evidence, steps)) return false;
    self->last_steps = steps_hash(steps);
    voided_hear_steps(&self->voided, steps);
    if (steps->closed) {
        self->open = 0;
        self->closing = *steps;
    } else if (steps->end == window_end(window) && --self->open > 0)
        window_keep(&self->window[0], &self->window[1].frame);
    evidence->step = steps->end;
    evidence->counts[COUNT_STEPS] += steps->end - steps->step;
    return true;
}

static bool hear_kept(struct evidence *evidence, const struct wire_record_kept *kept)
{
    const struct windows_run *self = own(evidence);
    return (self->open > 0 && kept->step > 0 && kept->step <= evidence->step &&
            kept->window <= self->window[0].frame.number && !hash_is_none(&kept->digest)) ||
           evidence_refuse(evidence,
                           "a memory save of step %" PRIu64 " and window %" PRIu64
                           " at step %" PRIu64 ", which does not follow",
                           kept->step, kept->window, evidence->step);
}

bool windows_verifies(struct evidence *evidence, uint16_t kind, const void *record)
{
    switch (kind) {
    case FRAME_RECORD_WINDOW: return hear_window(evidence, record);
    case FRAME_RECORD_STEPS: return hear_steps(evidence, record);
    case FRAME_RECORD_KEPT: return hear_kept(evidence, record);
    case FRAME_RECORD_PHASE: voided_hear_phase(&own(evidence)->voided, record); return true;
    case FRAME_RECORD_RESTORE: own(evidence)->voided = (struct wire_voided){ 0 }; return true;
    default: return true;
    }
}
