// keeping -- registers a memory save when the last member has said that it keeps its part, all with one digest. Whether
// the run can go back to it is looked up when it must: by the roster, as processes come and go.

#include "common/pace/windows/keeping.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include <inttypes.h>

// Whether this place keeps the newest recorded copies: the step whose data position the run knows, taken in its window.
static bool keeps(const struct windows *self, const struct run *run, const struct wire_place *place)
{
    const struct windows_run *of = windows_run_of(run);
    const struct stands *said = &self->stands[place->member];
    // mutant: keeping: copies from before a restore are kept
    return said->instance == place->instance && said->kept_window == of->copied_window &&
           said->kept_step == of->copied.at.step && !hash_is_none(&said->kept);
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
    const struct windows_run *of = windows_run_of(run);
    const struct wire_window *first = windows_first(run);
    if (!windows_are_open(run) || of->copied_window == 0 ||
        (of->copied_window == of->kept_window && of->copied.at.step == of->kept.at.step))
        return;
    const uint32_t owner = places_first_owner(turn, first);
    const struct hash *digest = &self->stands[first->group[owner].member].kept;
    // mutant: keeping: a memory save is whole before all keep their part
    for (uint32_t i = owner; i < first->group_count; i++)
        if (!keeps(self, run, &first->group[i]) ||
            !hash_equal(&self->stands[first->group[i].member].kept, digest))
            return;
    const struct wire_record_kept record = { of->copied_window, of->copied.at.step, *digest };
    turn_put(turn, FRAME_RECORD_KEPT, &record);
    outbox_note(turn->out, "memory.kept step=%" PRIu64 " members=%u", record.step,
                first->group_count - owner);
}

// Its process is here, and not another one of its key.
static bool is_here(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = &run->roster.members[place->member];
    // mutant: keeping: a process that has restarted keeps what it kept
    return member->instance == place->instance &&
           (member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING);
}

bool keeping_point(const struct turn *turn, struct way_back *ret_way)
{
    const struct windows_run *of = windows_run_of(turn->run);
    const uint32_t count = of->keepers_count, buddies = windows_config(turn->rules)->buddies;
    ret_way->lost = NO_MEMBER;
    if (hash_is_none(&of->kept.at.digest)) return false;
    for (uint32_t place = 0; place < count; place++) {
        bool found = false;
        // mutant: keeping: a share is looked for with one buddy more than have it
        for (uint32_t i = 0; i <= buddies && i < count; i++)
            found |= is_here(turn->run, &of->keepers[(place + i) % count]);
        // mutant: keeping: a memory save lacks a share and is gone back to
        if (!found) {
            ret_way->lost = of->keepers[place].member;
            return false;
        }
    }
    ret_way->point = run_point_whole(&of->kept);
    ret_way->window = of->kept_window;
    return true;
}
