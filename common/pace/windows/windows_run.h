#pragma once
// windows_run -- the durable half of windows: which are open, and how much of them is committed.
//
//     RECORD_WINDOW ─▶ its samples are pending ─▶ RECORD_STEPS, STEPS ... ─▶ done
//                                                 RECORD_STEPS, closed    ─▶ the rest is todo again
//
// It lies in struct run (pace_state); only records change it. Pure. One thread.

#include "common/pace/windows/window.h"
#include "common/run/memory_save.h"

enum { WINDOWS_OPEN_MAX = 2 };

struct windows_run {
    uint32_t open;                          // 0..WINDOWS_OPEN_MAX, the older first
    struct window window[WINDOWS_OPEN_MAX]; // Without an open one, the first is the newest that was
    uint64_t taken;                         // Samples of the first that are committed
    struct hash last_steps;                 // Of the newest STEPS; none: there is none yet
    struct wire_steps closing; // The newest that closed a window; number 0: there is none yet
    uint8_t left_out[8];       // Of that one
    // The newest window when the run last went back: it and those before it are of another past. 0: it never did.
    uint64_t before_restore;
    struct wire_voided voided; // The newest step that was void (voided.h)
    // Processes whose states of the newest step were found to differ from what most held (differ.h), in no
    // window since. Their links are "".
    struct wire_place named[WINDOW_MEMBERS_MAX];
    uint32_t named_count;
    // Saves: the window in which the members took the newest step that they save (run.h, save_point), and who they
    // were. 0 and none: there is none yet.
    uint64_t save_window;
    struct wire_place savers[WINDOW_MEMBERS_MAX];
    uint32_t savers_count;
    struct memory_save memory;
};

// The functions of struct run_pace (run.h).
bool windows_run_apply(struct run *run, uint16_t kind, const void *record);
struct wire_part windows_run_store(const struct run *run, void *memory);
bool windows_run_load(struct run *run, const struct wire_part *part);
bool windows_run_refers_to(const struct run *run, uint32_t member);

// Whether this process was in the group that took the newest step that is saved.
bool windows_run_saves(const struct run *run, uint32_t member, uint64_t instance);

// Whether this member's process is one of `named`.
bool windows_run_names(const struct run *run, uint32_t member);

static inline const struct windows_run *windows_run_of(const struct run *run)
{
    return (const struct windows_run *)(const void *)run->pace_state;
}

static inline bool windows_are_open(const struct run *run) { return windows_run_of(run)->open > 0; }

// The oldest and the newest that is open. Without one, the newest that was; its number may be 0.
static inline const struct wire_window *windows_first(const struct run *run)
{
    return &windows_run_of(run)->window[0].frame;
}
static inline const struct wire_window *windows_newest(const struct run *run)
{
    const struct windows_run *self = windows_run_of(run);
    return &self->window[self->open > 1].frame;
}
