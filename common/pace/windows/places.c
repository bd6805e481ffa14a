// places -- counts a group by roles.

#include "common/pace/windows/places.h"
#include <string.h>

static bool is_server(const struct run *run, const struct wire_place *place)
{
    return run->roster.members[place->member].role == ACTOR_SERVER;
}

uint32_t places_servers(const struct run *run, const struct wire_place *group, uint32_t count)
{
    uint32_t servers = 0;
    for (uint32_t i = 0; i < count; i++) servers += is_server(run, &group[i]);
    return servers;
}

uint32_t places_servers_wanted(const struct turn *turn)
{
    return windows_config(turn->rules)->servers;
}

bool places_are_enough(const struct turn *turn, const struct wire_place *group, uint32_t count)
{
    const uint32_t servers = places_servers(turn->run, group, count), trainers = count - servers;
    // mutant: servers: a group begins without one of its servers
    return trainers > 0 && trainers >= turn->rules->min_clients &&
           servers >= places_servers_wanted(turn);
}

uint32_t places_first_owner(const struct turn *turn, const struct wire_window *window)
{
    const uint32_t servers = places_servers_wanted(turn);
    return servers ? window->group_count - servers : 0; // window_is_sound
}

uint64_t places_that_own(const struct turn *turn)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t own = 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (places_servers_wanted(turn) == 0 || is_server(turn->run, &window->group[i]))
            own |= (uint64_t)1 << i;
    return own;
}

static bool was_in_group(const struct run *run, const struct wire_place *place)
{
    return window_place(windows_newest(run), place->member, place->instance) != NO_MEMBER;
}

// The one that goes next; NO_MEMBER: none is too many.
static uint32_t choose_spare(const struct turn *turn, const struct wire_place *group,
                             uint32_t count)
{
    uint32_t spare = NO_MEMBER;
    if (places_servers(turn->run, group, count) <= places_servers_wanted(turn)) return NO_MEMBER;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_server(turn->run, &group[i])) continue;
        const bool keeps = was_in_group(turn->run, &group[i]);
        if (spare == NO_MEMBER || !keeps || was_in_group(turn->run, &group[spare])) spare = i;
    }
    return spare;
}

uint32_t places_without_spare(const struct turn *turn, struct wire_place *group, uint32_t count)
{
    for (;;) {
        const uint32_t spare = choose_spare(turn, group, count);
        if (spare == NO_MEMBER) return count;
        count--;
        memmove(&group[spare], &group[spare + 1], (count - spare) * sizeof *group);
    }
}
