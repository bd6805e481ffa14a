// windows_run -- applies the records of windows. WINDOW makes its samples pending. STEPS makes those of the
// committed steps done; the window goes when all its steps are, or when it is closed. Then the samples that
// are left go back to the table, with those of a later window.
//
// Whose state of the newest step is wrong is kept until a later step is committed, or until it is in a window again
// and so has fetched the state: windows that close without a step may lie between (seed 46850 of the simulator).

#include "common/pace/windows/windows_run.h"
#include "common/base/ensure.h"
#include "common/pace/windows/voided.h"
#include "common/run/holder.h"
#include <string.h>

_Static_assert(sizeof(struct windows_run) <= RUN_PACE_BYTES,
               "the state of windows has room in a run");
_Static_assert(sizeof(struct wire_windows_snapshot) <= RUN_PART_BYTES,
               "its part of a snapshot has room");

static struct windows_run *own(struct run *run)
{
    return (struct windows_run *)(void *)run->pace_state;
}

// ---- whose state is wrong -------------------------------------------------------------------------

// If there is no room, the oldest goes. Only one machine that is named again and again, each time as a new process,
// can fill it.
static void name(struct windows_run *self, const struct wire_place *place)
{
    if (self->named_count == WINDOW_MEMBERS_MAX)
        memmove(self->named, self->named + 1, --self->named_count * sizeof *self->named);
    self->named[self->named_count++] =
        (struct wire_place){ .member = place->member, .instance = place->instance, .links = "" };
}

static void name_minority(struct windows_run *self, const struct wire_steps *closing)
{
    const struct wire_window *window = &self->window[0].frame;
    if (!holder_is_minority(closing->differ, window->group_count)) return;
    for (uint32_t i = 0; i < window->group_count; i++)
        // mutant: windows: a state that is known to differ speaks for the run
        if (closing->differ >> i & 1) name(self, &window->group[i]);
}

static void clear_those_in(struct windows_run *self, const struct wire_window *window)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < self->named_count; i++)
        if (window_place(window, self->named[i].member, self->named[i].instance) == UINT32_MAX)
            self->named[kept++] = self->named[i];
    self->named_count = kept;
}

bool windows_run_names(const struct run *run, uint32_t member)
{
    const struct windows_run *self = windows_run_of(run);
    for (uint32_t i = 0; i < self->named_count; i++)
        if (self->named[i].member == member &&
            self->named[i].instance == run->roster.members[member].instance)
            return true;
    return false;
}

// ---- records ------------------------------------------------------------------------------------

static void apply_window(struct run *run, const struct wire_window *window)
{
    struct windows_run *self = own(run);
    const bool follows = self->open > 0;
    ensure(window->number == run->number + 1 && self->open < WINDOWS_OPEN_MAX);
    ensure(window->step == (follows ? window_end(&self->window[0].frame) : run->step));
    if (run->phase != PHASE_TRAIN) run_enter(run, PHASE_TRAIN);
    ensure(table_deal_again(&run->table, window->number, window->samples, window->samples_count) ==
           TABLE_OK);
    window_keep(&self->window[self->open++], window);
    if (!follows) self->taken = 0;
    // Members drop them, too (`drops` in WINDOW)
    // mutant: keeping: copies from before a break are put on record
    if (!follows) memory_save_forget_copies(&self->memory);
    clear_those_in(self, window);
    run->number = window->number;
    run->epoch_elapsed_ms = window->epoch_elapsed_ms;
}

// The oldest window is over. The last one stays: its group is that of the newest step.
static void shift(struct windows_run *self)
{
    self->taken = 0;
    if (--self->open > 0) window_keep(&self->window[0], &self->window[1].frame);
}

static void keep_closing(struct windows_run *self, const struct wire_steps *steps)
{
    if (steps->left_out.count) memcpy(self->left_out, steps->left_out.data, steps->left_out.count);
    self->closing = *steps;
    self->closing.left_out.data = self->left_out;
}

// The processes of a group, by place. Returns how many.
static uint32_t list_group(const struct wire_window *window, struct wire_place *ret_list)
{
    for (uint32_t i = 0; i < window->group_count; i++)
        ret_list[i] = (struct wire_place){ .member = window->group[i].member,
                                           .instance = window->group[i].instance,
                                           .links = "" };
    return window->group_count;
}

static void apply_steps(struct run *run, const struct wire_steps *steps)
{
    struct windows_run *self = own(run);
    const struct wire_window *window = &self->window[0].frame;
    ensure(self->open > 0 && steps->number == window->number && steps->step == run->step);
    ensure(steps->end >= run->step && steps->end <= window_end(window));
    ensure(hash_equal(&steps->previous, &self->last_steps));
    const uint32_t count =
        (uint32_t)interval_list_slice(window->samples, window->samples_count, self->taken,
                                      self->taken + steps->samples, NULL, run->scratch);
    ensure(table_done(&run->table, steps->number, run->scratch, count) == TABLE_OK);
    run_advance(run, steps->end - steps->step, steps->samples);
    self->taken += steps->samples;
    if (steps->saved) {
        run_note_save(run);
        self->save_window = steps->number;
        self->savers_count = list_group(window, self->savers);
    }
    if (steps->copied) memory_save_copied(&self->memory, run, steps->number);
    self->last_steps = steps_hash(steps);
    voided_hear_steps(&self->voided, steps);
    // mutant: windows: who was named is forgotten when a window closes without a step
    if (steps->end > steps->step) self->named_count = 0;
    if (steps->closed) {
        name_minority(self, steps);
        // mutant: windows: the samples of a closed window are lost
        for (uint32_t i = 0; i < self->open; i++)
            ensure(table_return_rest(&run->table, self->window[i].frame.number) == TABLE_OK);
        self->open = 0;
        keep_closing(self, steps);
    } else if (steps->end == window_end(window)) shift(self);
}

// Those of it that own shares: the parameter servers, if it has any.
static uint32_t list_owners(const struct run *run, const struct wire_window *window,
                            struct wire_place *ret_list)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t all = list_group(window, group);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all; i++)
        if (run->roster.members[group[i].member].role == ACTOR_SERVER) ret_list[count++] = group[i];
    if (count > 0) return count;
    memcpy(ret_list, group, all * sizeof *group);
    return all;
}

// Its owners are those of the copies: a window that follows without a break has the same ones.
static void apply_kept(struct run *run, const struct wire_record_kept *kept)
{
    struct wire_place owners[WINDOW_MEMBERS_MAX];
    const uint32_t count = list_owners(run, windows_first(run), owners);
    memory_save_kept(&own(run)->memory, kept, owners, count);
}

static void apply_restore(struct windows_run *self, const struct run *run,
                          const struct wire_record_restore *restore)
{
    self->before_restore = run->number;
    ensure(self->open == 0);
    self->window[0].frame = (struct wire_window){ 0 };
    self->voided = (struct wire_voided){ 0 };
    self->named_count = 0;
    memory_save_restore(&self->memory, restore->step);
}

bool windows_run_apply(struct run *run, uint16_t kind, const void *record)
{
    struct windows_run *self = own(run);
    switch (kind) {
    case FRAME_RECORD_WINDOW: apply_window(run, record); return true;
    case FRAME_RECORD_STEPS: apply_steps(run, record); return true;
    case FRAME_RECORD_KEPT: apply_kept(run, record); return true;
    case FRAME_RECORD_RESTORE: apply_restore(self, run, record); return false;
    case FRAME_RECORD_PHASE: voided_hear_phase(&self->voided, record); return false;
    default: return false;
    }
}

// ---- snapshots ----------------------------------------------------------------------------------

struct wire_part windows_run_store(const struct run *run, void *memory)
{
    const struct windows_run *self = windows_run_of(run);
    struct wire_windows_snapshot *snapshot = memory;
    *snapshot = (struct wire_windows_snapshot){
        .open = (uint8_t)self->open,
        .first = self->window[0].frame,
        .taken = self->taken,
        .last_steps = self->last_steps,
        .closing = self->closing,
        .voided = self->voided,
        .named = self->named,
        .named_count = self->named_count,
        .save_window = self->save_window,
        .memory = memory_save_store(&self->memory),
        .savers = self->savers,
        .savers_count = self->savers_count,
        .before_restore = self->before_restore,
    };
    if (self->open > 1) snapshot->second = self->window[1].frame;
    return (struct wire_part){ FRAME_WINDOWS_SNAPSHOT, snapshot };
}

bool windows_run_load(struct run *run, const struct wire_part *part)
{
    struct windows_run *self = own(run);
    const struct wire_windows_snapshot *from = part->body;
    if (part->kind != FRAME_WINDOWS_SNAPSHOT) return false;
    self->open = from->open;
    window_keep(&self->window[0], &from->first);
    // mutant: windows: a snapshot forgets the second window
    if (from->open > 1) window_keep(&self->window[1], &from->second);
    self->taken = from->taken;
    self->last_steps = from->last_steps;
    self->voided = from->voided;
    self->save_window = from->save_window;
    memory_save_load(&self->memory, &from->memory);
    // mutant: saves: a snapshot forgets who saves
    self->savers_count = from->savers_count;
    for (uint32_t i = 0; i < from->savers_count; i++) self->savers[i] = from->savers[i];
    // mutant: windows: a snapshot forgets which windows were before a restore
    self->before_restore = from->before_restore;
    keep_closing(self, &from->closing);
    self->named_count = 0;
    // mutant: windows: a snapshot forgets who was named
    for (uint32_t i = 0; i < from->named_count; i++) name(self, &from->named[i]);
    return true;
}

bool windows_run_refers_to(const struct run *run, uint32_t member)
{
    const struct windows_run *self = windows_run_of(run);
    const struct wire_window *window = windows_first(run);
    for (uint32_t i = 0; i < window->group_count; i++)
        if (window->group[i].member == member) return true;
    for (uint32_t i = 0; i < self->savers_count; i++)
        if (self->savers[i].member == member) return true;
    return memory_save_refers_to(&self->memory, member);
}

bool windows_run_saves(const struct run *run, uint32_t member, uint64_t instance)
{
    const struct windows_run *self = windows_run_of(run);
    for (uint32_t i = 0; i < self->savers_count; i++)
        if (self->savers[i].member == member && self->savers[i].instance == instance) return true;
    return false;
}
