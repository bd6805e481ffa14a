#include "common/pace/pace.h"

const struct pace *pace_of(const struct rules *rules)
{
    for (uint32_t i = 0; paces[i]; i++)
        if (paces[i]->config == rules->frame.strategy.kind) return paces[i];
    return NULL;
}

const char *pace_lacks(const struct turn *turn)
{
    return turn->pace->lacks ? turn->pace->lacks(turn) : NULL;
}

const char *pace_why_paused(const struct turn *turn)
{
    return turn->pace->why_paused ? turn->pace->why_paused(turn) : NULL;
}

bool pace_admits(const struct turn *turn) { return turn->pace->admits && turn->pace->admits(turn); }

bool pace_took_part(const struct turn *turn, uint32_t member)
{
    return !turn->pace->took_part || turn->pace->took_part(turn, member);
}

struct commit_facts pace_facts(const struct pace *self, const void *record)
{
    return self->facts ? self->facts(record) : (struct commit_facts){ 0 };
}

bool pace_is_doubted(const struct turn *turn, uint32_t member)
{
    return turn->pace->is_doubted && turn->pace->is_doubted(turn->run, member);
}

uint64_t pace_ahead(const struct turn *turn)
{
    return turn->pace->ahead ? turn->pace->ahead(turn->run) : 0;
}

struct wire_task_counts pace_count_tasks(const struct turn *turn)
{
    return turn->pace->count_tasks ? turn->pace->count_tasks(turn) : (struct wire_task_counts){ 0 };
}

struct interval pace_held_by(const struct turn *turn, uint32_t member)
{
    const struct wire_member *place = &turn->run->roster.members[member];
    if (!roster_is_here(place)) return (struct interval){ 0, 0 };
    if (turn->pace->held_by) return turn->pace->held_by(turn->run, member);
    const bool keeps = role_takes_steps(place->role) || place->role == ACTOR_CHECKPOINTER;
    return (struct interval){ 0, keeps ? PACE_WHOLE : 0 };
}

bool pace_alone_is_as_far(const struct turn *turn, uint32_t member)
{
    bool others = false;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        if (i == member || interval_length(pace_held_by(turn, i)) == 0) continue;
        if (turn->presence->step_held[i] >= turn->run->step) return false;
        others = true;
    }
    return others && turn->run->step > turn->rules->first_step;
}
