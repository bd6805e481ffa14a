// voided -- whom the coordinator names: a member whose own part is unsound before one that merely measured the sum;
// and which samples: those of its lanes, or of the whole step.

#include "common/pace/windows/voided.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include "common/vector/lanes.h"
#include <inttypes.h>
#include <stdio.h>

// ---- the durable half ---------------------------------------------------------------------------

void voided_hear_steps(struct wire_voided *self, const struct wire_steps *steps)
{
    if (steps->voided.times) *self = steps->voided;
}

void voided_hear_phase(struct wire_voided *self, const struct wire_record_phase *phase)
{
    if (phase->phase == PHASE_WARMUP && self->times >= VOIDED_MAX)
        *self = (struct wire_voided){ 0 };
}

bool voided_pauses(const struct run *run)
{
    return voided_times(&windows_run_of(run)->voided, run->step) >= VOIDED_MAX;
}

// ---- what members say ---------------------------------------------------------------------------

static uint8_t unsound_at(const struct windows *self, const struct run *run, uint32_t place,
                          uint64_t step)
{
    const struct wire_place *at = &windows_first(run)->group[place];
    const struct stands *stands = &self->stands[at->member];
    uint64_t stands_at;
    const bool counts = stands->broken && standing_step(self, run, place, &stands_at) &&
                        stands_at == step && stands->window >= windows_first(run)->number;
    return counts ? stands->unsound : UNSOUND_NONE;
}

// The place that is named; NO_MEMBER: nobody calls the step void.
static uint32_t choose(const struct windows *self, const struct run *run, uint64_t step)
{
    uint32_t chosen = NO_MEMBER;
    for (uint32_t i = windows_first(run)->group_count; i-- > 0;) {
        const uint8_t unsound = unsound_at(self, run, i, step);
        if (unsound != UNSOUND_NONE && (unsound != UNSOUND_SUM || chosen == NO_MEMBER)) chosen = i;
    }
    return chosen;
}

// The positions among which the samples of these lanes of a step lie.
static struct interval positions(const struct turn *turn, uint64_t step, uint32_t place, bool all)
{
    const struct run *run = turn->run;
    const struct wire_windows_config *config = windows_config(turn->rules);
    const struct wire_window *window = windows_first(run);
    const struct wire_place *of_first = &window->group[place];
    struct interval hull = { UINT64_MAX, 0 };
    if (step >= window_end(window)) { // Its group may have other places
        window = windows_newest(run);
        place = window_place(window, of_first->member, of_first->instance);
    }
    const uint32_t computers =
        places_servers_wanted(turn) ? places_first_owner(turn, window) : window->group_count;
    all = all || place >= computers;
    const uint64_t begin = window_count(window, config, turn->rules->seq_len, window->step, step);
    const uint32_t batch = window_batch(config, turn->rules->seq_len, window->samples_done + begin);
    const struct interval of =
        all ? (struct interval){ 0, batch }
            : lane_samples(config->lanes, batch, lanes_of_member(config->lanes, computers, place));
    const size_t count =
        interval_list_slice(window->samples, window->samples_count, begin + of.begin,
                            begin + of.end, NULL, turn->run->scratch);
    for (size_t i = 0; i < count; i++) {
        const struct interval *at = &run->scratch[i];
        if (at->begin < hull.begin) hull.begin = at->begin;
        if (at->end > hull.end) hull.end = at->end;
    }
    return count ? hull : (struct interval){ 0, 0 };
}

struct wire_voided voided_find(const struct windows *self, const struct turn *turn, uint64_t end)
{
    const struct run *run = turn->run;
    const uint32_t place = choose(self, run, end);
    if (place == NO_MEMBER || end >= window_end(windows_newest(run)))
        return (struct wire_voided){ 0 };
    const uint8_t unsound = unsound_at(self, run, place, end);
    const struct interval at = positions(turn, end, place, unsound == UNSOUND_SUM);
    return (struct wire_voided){ .step = end,
                                 .times = voided_times(&windows_run_of(run)->voided, end) + 1,
                                 .member = windows_first(run)->group[place].member,
                                 .unsound = unsound,
                                 .from = at.begin,
                                 .to = at.end };
}

void voided_pause(const struct turn *turn)
{
    // mutant: windows: a step that is void again and again is tried for ever
    if (voided_pauses(turn->run) && !turn->run->pausing)
        turn_put(turn, FRAME_RECORD_PAUSE, &(struct wire_record_pause){ true });
}

void voided_settle(const struct turn *turn, const struct wire_voided *voided)
{
    char words[160];
    if (voided->times == 0) return;
    voided_words(turn->run, voided, words, sizeof words);
    outbox_note(turn->out, "step.void step=%" PRIu64 " times=%u because=\"%s\"", voided->step,
                voided->times, words);
    voided_pause(turn);
}

void voided_words(const struct run *run, const struct wire_voided *voided, char *text, size_t max)
{
    const char *name = run->roster.members[voided->member].name;
    const uint64_t last = voided->to ? voided->to - 1 : 0;
    switch (voided->unsound) {
    case UNSOUND_TOKENS:
        snprintf(text, max,
                 "%s read a token outside the vocabulary in samples %" PRIu64 "..%" PRIu64, name,
                 voided->from, last);
        break;
    case UNSOUND_SUM:
        snprintf(text, max,
                 "%s found that the sum of the gradients of samples %" PRIu64 "..%" PRIu64
                 " is not finite",
                 name, voided->from, last);
        break;
    default:
        snprintf(text, max,
                 "the gradient of %s, of samples %" PRIu64 "..%" PRIu64 ", is not finite", name,
                 voided->from, last);
    }
}
