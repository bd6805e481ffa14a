// keeping -- registers a memory save when the last member has said that it keeps its part, all with one digest. Whether
// the run can go back to it is looked up when it must: by the roster, as processes come and go.

#include "common/pace/windows/keeping.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include <inttypes.h>

// Whether this place keeps the newest recorded copies: the step whose data position the run knows, taken in its window.
static bool keeps(const struct windows *self, const struct run *run, const struct wire_place *place)
{
    const struct memory_save *memory = &windows_run_of(run)->memory;
    const struct stands *said = &self->stands[place->member];
    // mutant: keeping: copies from before a restore are kept
    return said->instance == place->instance && said->kept_window == memory->copied_in &&
           said->kept_step == memory->copied.at.step && !hash_is_none(&said->kept);
}

// All that own a share keep the same step, and it lies beyond what is committed.
static bool all_keep_a_later_one(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *first = windows_first(run);
    const uint32_t owner = places_first_owner(turn, first);
    const struct stands *one = &self->stands[first->group[owner].member];
    for (uint32_t i = owner; i < first->group_count; i++) {
        const struct stands *said = &self->stands[first->group[i].member];
        if (said->instance != first->group[i].instance || said->kept_step != one->kept_step ||
            said->kept_window != one->kept_window)
            return false;
    }
    return one->kept_step > run->step;
}

void keeping_hear(struct windows *self, const struct turn *turn)
{
    if (windows_are_open(turn->run) && all_keep_a_later_one(self, turn)) self->commit_ms = 0;
    keeping_register(self, turn);
}

void keeping_register(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct memory_save *memory = &windows_run_of(run)->memory;
    const struct wire_window *first = windows_first(run);
    if (!windows_are_open(run) || memory_save_is_newest(memory)) return;
    const uint32_t owner = places_first_owner(turn, first);
    const struct hash *digest = &self->stands[first->group[owner].member].kept;
    // mutant: keeping: a memory save is whole before all keep their part
    for (uint32_t i = owner; i < first->group_count; i++)
        if (!keeps(self, run, &first->group[i]) ||
            !hash_equal(&self->stands[first->group[i].member].kept, digest))
            return;
    const struct wire_record_kept record = { memory->copied_in, memory->copied.at.step, *digest };
    turn_put(turn, FRAME_RECORD_KEPT, &record);
    outbox_note(turn->out, "memory.kept step=%" PRIu64 " members=%u", record.step,
                first->group_count - owner);
}

bool keeping_point(const struct turn *turn, struct way_back *ret_way)
{
    const struct memory_save *memory = &windows_run_of(turn->run)->memory;
    uint32_t place;
    ret_way->lost = NO_MEMBER;
    if (!memory_save_is_whole(memory, &turn->run->roster, windows_config(turn->rules)->buddies,
                              &place)) {
        if (place != UINT32_MAX) ret_way->lost = memory->keepers[place].member;
        return false;
    }
    ret_way->point = run_point_whole(&memory->kept);
    ret_way->window = memory->kept_in;
    return true;
}
