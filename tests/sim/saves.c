// saves -- the folder that all members see, and their saves in pieces there (common/checkpoint/pieces.h): a part takes
// its time, a crash of its member loses it, and the member that writes the last part makes the save whole. Then
// older ones go, as the saver lets them go.

#include "common/base/ensure.h"
#include "tests/sim/windows.h"
#include <inttypes.h>
#include <string.h>

static struct sim_save *find(struct sim *self, uint64_t born_unix_ms, uint64_t step,
                             uint64_t window)
{
    for (uint32_t i = 0; i < self->saves_count; i++) {
        struct sim_save *save = &self->saves[i];
        if (save->born_unix_ms == born_unix_ms && save->step == step &&
            (window == 0 ? save->whole : save->window == window))
            return save;
    }
    return NULL;
}

const struct sim_save *saves_find(const struct sim *self, uint64_t born_unix_ms, uint64_t step)
{
    return find((struct sim *)(uintptr_t)self, born_unix_ms, step, 0);
}

static bool is_readable(const struct sim *self, const struct pin *pin)
{
    const struct sim_save *save = saves_find(self, self->ghost.born_unix_ms, pin->step);
    return save && hash_equal(&save->digest, &pin->digest) && !save->decayed;
}

static bool is_older_readable(const struct sim *self)
{
    bool is = false;
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) is |= is_readable(self, &self->ghost.older[i]);
    return is;
}

bool saves_have(const struct sim *self, uint64_t step, const struct hash *digest)
{
    const struct sim_save *save = saves_find(self, self->ghost.born_unix_ms, step);
    return save && hash_equal(&save->digest, digest) && (!save->decayed || is_older_readable(self));
}

void saves_try(struct sim *self, uint64_t born_unix_ms, uint64_t step)
{
    struct sim_save *save = find(self, born_unix_ms, step, 0);
    if (!save || save->tried) return;
    save->tried = true;
    // With keep = 1 there need be no older one, with 2 none behind that
    if (born_unix_ms != self->ghost.born_unix_ms || self->disk.behind || saves_keep(self) < 2 ||
        !self->ghost.may_decay || !is_readable(self, &self->ghost.older[0]) ||
        step != self->ghost.restore_point.step || aside(self, "decay", 3) > 0)
        return;
    save->decayed = true;
    self->ghost.may_decay = false;
    self->faults[DECAYED]++;
}

uint32_t saves_keep(const struct sim *self) { return 1 + (uint32_t)aside(self, "kept", 3); }

static void drop(struct sim *self, uint32_t at)
{
    self->saves[at] = self->saves[--self->saves_count];
}

// Older attempts, and whole ones but for the newest and those to spare.
static void clean(struct sim *self, uint64_t born_unix_ms, uint64_t step, uint64_t spare)
{
    for (uint32_t i = self->saves_count; i-- > 0;) {
        const struct sim_save *save = &self->saves[i];
        uint32_t newer = 0;
        for (uint32_t j = 0; j < self->saves_count; j++)
            newer += self->saves[j].whole && self->saves[j].born_unix_ms == born_unix_ms &&
                     self->saves[j].step > save->step;
        const bool goes =
            save->whole ? newer >= saves_keep(self) && save->step < spare : save->step < step;
        if (save->born_unix_ms == born_unix_ms && goes) drop(self, i);
    }
}

static struct sim_save *find_or_begin(struct sim *self, uint64_t born_unix_ms, uint64_t step,
                                      uint64_t window, uint32_t workers, const struct hash *digest)
{
    struct sim_save *save = find(self, born_unix_ms, step, window);
    if (save) return save;
    ensure(self->saves_count < SAVES_MAX);
    save = &self->saves[self->saves_count++];
    *save = (struct sim_save){ .born_unix_ms = born_unix_ms,
                               .step = step,
                               .window = window,
                               .workers = workers,
                               .digest = *digest };
    return save;
}

void saves_begin(struct sim *self, uint64_t born_unix_ms, uint64_t step, uint64_t window,
                 uint32_t workers, const struct hash *digest)
{
    const struct sim_save *save = find_or_begin(self, born_unix_ms, step, window, workers, digest);
    if (!hash_equal(&save->digest, digest))
        broken(self, "the parts of a save are of one state", "step %" PRIu64, step);
}

void saves_add(struct sim *self, uint64_t born_unix_ms, uint64_t step, uint64_t window,
               uint32_t workers, const struct hash *part)
{
    static const struct hash nothing;
    struct sim_save *save = find_or_begin(self, born_unix_ms, step, window, workers, &nothing);
    save->digest = hash_of_two(&save->digest, HASH_BYTES, part, HASH_BYTES);
}

const struct sim_save *saves_written(struct sim *self, uint64_t born_unix_ms, uint64_t step,
                                     uint64_t window, uint32_t place, uint64_t spare)
{
    struct sim_save *save = find(self, born_unix_ms, step, window);
    if (!save) return NULL;
    const struct sim_save *before = find(self, born_unix_ms, step, 0);
    if (before && before->window >= window) return NULL; // A later attempt stays
    save->written |= (uint64_t)1 << place;
    save->whole = save->written == ((uint64_t)2 << (save->workers - 1)) - 1;
    if (!save->whole) return NULL;
    for (uint32_t i = self->saves_count; i-- > 0;) // An earlier one is replaced
        if (self->saves[i].whole && self->saves[i].born_unix_ms == born_unix_ms &&
            self->saves[i].step == step && self->saves[i].window < window)
            drop(self, i);
    clean(self, born_unix_ms, step, spare);
    return find(self, born_unix_ms, step, 0);
}
