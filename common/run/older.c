#include "common/run/older.h"
#include "common/base/ensure.h"

const struct wire_saved_step *older_saves_at(const struct wire_older_saves *self, unsigned i)
{
    ensure(i < OLDER_SAVES_MAX);
    return i == 0 ? &self->first : i == 1 ? &self->second : &self->third;
}
