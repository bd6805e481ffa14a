#include "common/run/older.h"
#include "common/base/ensure.h"

const struct wire_saved_step *older_saves_at(const struct wire_older_saves *self, unsigned i)
{
    ensure(i < OLDER_SAVES_MAX);
    return i == 0 ? &self->first : i == 1 ? &self->second : &self->third;
}

uint64_t older_saves_spare(const struct wire_older_saves *self, uint64_t newest, uint32_t keep)
{
    uint64_t step = newest;
    for (uint32_t i = 0; i < OLDER_SAVES_MAX && i + 1 < keep; i++) {
        const struct wire_saved_step *older = older_saves_at(self, i);
        // mutant: older: the save that a run may go back to is removed
        if (!hash_is_none(&older->digest)) step = older->step;
    }
    return step;
}
