// loose -- members of a window trust one another; but no word that one of them says of where it stands may cost the
// others a step that is committed, or stop the run for good. Until all is healed one trainer says anything: it is at
// an earlier step, or in another window; it lacks what it has; others are dead, or their part is missing; it has
// stopped; its links do not stand. Its learner is honest: the exchange of the group is as ever.
//
// What it does not say, as the others may have nothing but its word for it: that it has what it lacks, that it has lost
// its state, that it keeps a copy, what it has saved, that a step is void, and a false answer to LEVEL.

#include "tests/sim/windows.h"

static uint64_t some_bits(struct sim *self) { return roll(self, 0) & roll(self, 0); }

struct parcel *windows_twist(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (!self->plan.loose || id != self->plan.loose || !faulty(self) ||
        effect->kind != FRAME_STANDS || roll(self, 2))
        return NULL;
    struct wire_stands said = *(const struct wire_stands *)unpack(
        self, &self->scratch, effect->kind, effect->body, effect->bytes);
    if (said.unsound || said.differ || said.level) return NULL;
    switch (roll(self, 8)) {
    case 0: said.step = roll(self, said.step + 1); break;
    case 1: said.window += between(self, 1, 5); break;
    case 2: said.window = roll(self, said.window + 1); break;
    case 3: said.has = false; break;
    case 4: said.dead = some_bits(self); break;
    case 5:
        said.broken = true;
        said.missing = (uint32_t)roll(self, self->plan.trainers + 1);
        said.overdue = roll(self, 2);
        said.dead = roll(self, 2) ? some_bits(self) : 0;
        break;
    case 6: said.stopped = true; break;
    default: said.linked &= some_bits(self);
    }
    return lie_pack(self, id, FRAME_STANDS, &said);
}
