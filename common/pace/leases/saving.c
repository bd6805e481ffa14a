// saving -- when a save is due, who is told, and when it is on record.

#include "common/pace/leases/saving.h"
#include <inttypes.h>
#include <stdio.h>

static const struct leases_run *own(const struct turn *turn) { return leases_run_of(turn->run); }

bool saving_is_in_pieces(const struct turn *turn)
{
    return leases_config(turn->rules)->shared_dir[0] != 0;
}

// ---- when ---------------------------------------------------------------------------------------

// Where the group saved last, or began.
static uint64_t since(const struct turn *turn, struct wire_data_position *ret_position)
{
    const struct run *run = turn->run;
    const struct leases_run *leases = own(turn);
    // mutant: saves: the timer runs from the beginning of the epoch, whatever was saved since
    const bool has_saved =
        leases->save_number == leases->group.number && run->save_point.at.step == leases->save_step;
    *ret_position = has_saved ? run_point_whole(&run->save_point).data_position : leases->begin;
    return has_saved ? leases->save_step : leases->group.step;
}

// A step that is copied in memory has its state: the next one is saved.
static bool is_copied(const struct turn *turn)
{
    const struct leases_run *leases = own(turn);
    return leases->copy_number == leases->group.number && leases->copy_step == turn->run->step;
}

bool saving_is_due(const struct turn *turn)
{
    const struct wire_leases_config *config = leases_config(turn->rules);
    const uint64_t length = turn->run->table.pass_length;
    struct wire_data_position position;
    const uint64_t step = since(turn, &position);
    const uint64_t from = position.returned_count ? position.returned[0].begin : position.cursor;
    const uint64_t pass = table_frontier(&turn->run->table) / length;
    return (config->save_steps &&
            turn->run->step / config->save_steps > step / config->save_steps) ||
           (config->save_passes &&
            turn->run->step > step && // A save is of a step that has none yet
            pass / config->save_passes > from / length / config->save_passes);
}

// ---- who ----------------------------------------------------------------------------------------

static bool is_of_group(const struct turn *turn)
{
    const struct leases_run *leases = own(turn);
    return leases->is_open && leases->closing.attempt == 0 && leases->save_number > 0 &&
           leases->save_number == leases->group.number;
}

static bool is_newest(const struct leases_run *leases, const struct wire_share_saved *saved)
{
    return saved->number == leases->save_number && saved->step == leases->save_step;
}

// Places of servers that have not said how their part of the newest save ended, as bits.
static uint64_t writing(const struct lease_pace *self, const struct turn *turn)
{
    const struct leases_run *leases = own(turn);
    uint64_t places =
        is_of_group(turn) ? leases_group_owners(&leases->group, leases_config(turn->rules)) : 0;
    for (uint32_t i = 0; i < leases->group.group_count; i++) {
        const struct busy *busy = leases_busy(self, &leases->group.group[i]);
        if (busy && is_newest(leases, &busy->saved)) places &= ~leases_bit(i);
    }
    return places;
}

static void tell(struct lease_pace *self, const struct turn *turn, uint64_t places)
{
    const struct leases_run *leases = own(turn);
    const struct wire_save_share order = { leases->save_number, leases->save_step };
    self->save_tell_ms = turn->now_ms + turn->rules->heartbeat_ms;
    leases_mail(turn, places, FRAME_SAVE_SHARE, &order);
}

void saving_look(struct lease_pace *self, const struct turn *turn, bool goes_on)
{
    const uint64_t places = writing(self, turn);
    if (places) {
        // mutant: saves: a server that has not heard of a save is never told again
        if (turn->now_ms >= self->save_tell_ms) tell(self, turn, places);
        return;
    }
    // mutant: copying: a step that is copied is saved, too, and has two states
    if (!goes_on || !saving_is_in_pieces(turn) || !saving_is_due(turn) || is_copied(turn)) return;
    const struct wire_save_share order = { own(turn)->group.number, turn->run->step };
    // mutant: saves: servers are told to save before that is stored
    turn_put(turn, FRAME_RECORD_SAVE, &order);
    tell(self, turn, writing(self, turn));
}

uint64_t saving_due_ms(const struct lease_pace *self, const struct turn *turn)
{
    return writing(self, turn) ? self->save_tell_ms : 0;
}

// ---- what became of it --------------------------------------------------------------------------

// What a group puts together has a digest on record, or will have. Not so what is saved on the way.
static bool is_right(const struct turn *turn, const struct wire_share_saved *saved)
{
    const struct run *run = turn->run;
    const struct wire_record_restore *end = &run->end_point.at;
    // mutant: saves: a save of another state than the one that was put together is the run's
    if (end->step == saved->step && !hash_is_none(&end->digest))
        return hash_equal(&end->digest, &saved->digest);
    return own(turn)->closing.attempt == 0 || own(turn)->closing.step != saved->step;
}

void saving_hear(const struct lease_pace *self, const struct turn *turn, uint32_t member)
{
    const struct run *run = turn->run;
    const struct wire_share_saved *saved = &self->busy[member].saved;
    // mutant: saves: a save that the run has given up is gone back to
    if (run->roster.members[member].role != ACTOR_SERVER || saved->number == 0 ||
        !is_newest(own(turn), saved) || hash_is_none(&saved->digest) ||
        run->save_point.at.step != saved->step || run->checkpoint.step >= saved->step ||
        !is_right(turn, saved))
        return;
    turn_put_saved(turn, &saved->digest, leases_config(turn->rules)->keep);
}
