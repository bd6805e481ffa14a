#pragma once
// window -- one window with its lists, as the coordinator and the members keep it; and what follows
// from a window for each of its steps: how many samples, and which.
//
// A step has schedule_batch_size samples, by the samples done before it. The coordinator and every
// learner compute it from the same numbers (CONFIG and WINDOW).
//
// Pure; a value.

#include "common/run/rules.h"
#include "common/run/schedule.h"

enum { WINDOW_MEMBERS_MAX = 64, WINDOW_STEPS_MAX = 4096 };

struct window {
    struct wire_window frame; // Its lists lie below. number 0: no window
    struct wire_place group[WINDOW_MEMBERS_MAX];
    uint8_t lr_bits[4 * WINDOW_STEPS_MAX];
    struct interval samples[TABLE_INTERVALS_MAX];
};

// Keeps a copy. `frame` may be that of *self.
void window_keep(struct window *self, const struct wire_window *frame);

static inline uint64_t window_end(const struct wire_window *self)
{
    return self->step + self->steps;
}

// Where all must have come before the next window is recorded: so all have begun this one.
static inline uint64_t window_middle(const struct wire_window *self)
{
    return self->step + (self->steps + 1) / 2;
}

// The place in the group of this process of a member; NO_MEMBER (UINT32_MAX): it is not in it.
uint32_t window_place(const struct wire_window *self, uint32_t member, uint64_t instance);

// The samples of the step that follows `samples_done`.
uint32_t window_batch(const struct wire_windows_config *config, uint32_t seq_len,
                      uint64_t samples_done);

// The samples of steps [step, end) of the window.
uint64_t window_count(const struct wire_window *self, const struct wire_windows_config *config,
                      uint32_t seq_len, uint64_t step, uint64_t end);

// Whether its lists fit together: a rate for each step, the samples of all steps, and a group of trainers and then
// `servers` of config, each in the order of the roster. Nothing may be done with a window from outside before that.
bool window_is_sound(const struct wire_window *self, const struct wire_windows_config *config,
                     uint32_t seq_len);

// The rate of a step of the window, as the bits of the float.
uint32_t window_lr_bits(const struct wire_window *self, uint64_t step);

// The hash that the next STEPS and the next WINDOW name.
struct hash steps_hash(const struct wire_steps *steps);

// As the coordinator and the verifier of its ledger have it.
static inline const struct wire_windows_config *windows_config(const struct rules *rules)
{
    return rules_strategy(rules);
}

// As a member has it, of a run of windows.
static inline const struct wire_windows_config *windows_config_of(const struct wire_config *config)
{
    return config->strategy.body;
}
