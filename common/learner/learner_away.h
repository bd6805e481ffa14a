#pragma once
// learner_away -- the state of a member that holds a share of it: where the rest lies (learner_away.c). For the learner's
// files alone; on its thread.

#include "common/learner/learner_inside.h"

// Whether this member keeps only its share of the moments in memory.
bool learner_away_is_on(const struct learner *self);

// The bytes that this part of the moments takes in memory; 0 where all of them are there anyway.
uint64_t learner_away_moments(struct learner *self, struct interval part);

// Where all of the optimizer's items come from. `fill` writes one of them, `number` in the cut, to `values`: floats
// to the gradient's vector, the others to where the optimizer has them. `copy`, if not NULL, has all of them in their
// places, and is taken; else they are written to a new one. `check`, if not NULL, takes the place of `fill` for floats:
// it gives their leaves and has looked at them where they lie, in `copy`.
struct learner_away_source {
    int (*fill)(struct learner *self, const struct state_item *item, uint32_t number, void *values,
                void *arg, struct why *why);
    int (*check)(const struct state_item *item, void *arg, struct why *why,
                 struct hash *ret_leaves);
    void *arg;
    struct state_copy *copy;
};

// Takes them: self->leaves has theirs then, and self->away is true. After a fault nothing is away, and the copy is
// freed. FAULT_NAN: a value that no optimizer leaves behind; FAULT_MEMORY, those of the disk and of `fill`.
int learner_away_take(struct learner *self, const struct learner_away_source *source,
                      struct why *why);

// Puts this part of each moment into the optimizer's vectors, and gives the memory of the rest back. Needs self->away
// (or nothing is read). FAULT_CORRUPT: the copy has changed on the disk.
int learner_away_read(struct learner *self, struct interval part, struct why *why);

// The copy is of an earlier step, or of no use.
void learner_away_drop(struct learner *self);
