// differ -- whom the checks of a step name, and whether a closing that found no majority ends the epoch. Places
// are those of its oldest window, which stays the first of the run until another one opens. Whom a closing
// named is kept in windows_run.

#include "common/pace/windows/differ.h"
#include "common/pace/windows/standing.h"
#include "common/run/holder.h"
#include <inttypes.h>
#include <stdio.h>

// The members that saw all checks of a step saw the same ones: the first that said so is enough.
uint64_t differ_find(const struct windows *self, const struct run *run, uint64_t end)
{
    const struct wire_window *window = windows_first(run);
    const uint64_t last = (uint64_t)1 << (window->group_count - 1), all = last | (last - 1);
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct stands *stands = &self->stands[window->group[i].member];
        uint64_t step;
        if (!stands->broken || !standing_step(self, run, i, &step) || step != end ||
            stands->window < window->number)
            continue;
        // A set with no place, or with every place, names nobody
        const uint64_t differ = stands->differ & all;
        if (differ != 0 && differ != all) return differ;
    }
    return 0;
}

// "t1, t2"
static void list_names(const struct run *run, uint64_t places, char *text, size_t max)
{
    const struct wire_window *window = windows_first(run);
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < window->group_count && used < max; i++) {
        if (!(places >> i & 1)) continue;
        const int more = snprintf(text + used, max - used, "%s%s", used ? ", " : "",
                                  run->roster.members[window->group[i].member].name);
        used += more > 0 ? (size_t)more : 0;
    }
}

void differ_note(const struct turn *turn, uint64_t end, uint64_t differ)
{
    const uint32_t count = windows_first(turn->run)->group_count;
    const bool is_minority = holder_is_minority(differ, count);
    char outside[128], inside[128];
    if (differ == 0) return;
    list_names(turn->run, differ, outside, sizeof outside);
    list_names(turn->run, ~differ, inside, sizeof inside);
    if (is_minority)
        outbox_note(turn->out,
                    "state.differs step=%" PRIu64
                    " minority=\"%s\" majority=\"%s\"; the minority is "
                    "left out until it has fetched the state",
                    end, outside, inside);
    else
        outbox_note(turn->out,
                    "state.differs step=%" PRIu64 " of=\"%s\" from=\"%s\"; no majority: the epoch "
                    "ends, and the digests of the whole states are compared",
                    end, outside, inside);
}

bool differ_ends_epoch(const struct run *run)
{
    const struct windows_run *self = windows_run_of(run);
    const struct wire_steps *closing = &self->closing;
    const bool is_newest = closing->differ != 0 && self->open == 0 && closing->end == run->step &&
                           closing->number == windows_first(run)->number;
    return is_newest && !holder_is_minority(closing->differ, windows_first(run)->group_count);
}
