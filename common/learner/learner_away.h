#pragma once
// learner_away -- the state of a member that holds a share of it: where the rest lies (learner_away.c). For the learner's
// files alone; on its thread.

#include "common/learner/learner_inside.h"

// Whether this member keeps only its share of the moments in memory. _takes_parameters: and of the parameters, too, as a
// server does.
bool learner_away_is_on(const struct learner *self);
bool learner_away_takes_parameters(const struct learner *self);

// The bytes that this part of what members share out takes in memory: of the moments, and at a server of the parameters
// and the gradient. 0 where all of them are there anyway.
uint64_t learner_away_bytes(struct learner *self, struct interval part);

// An item of the state that is being taken: its number in the cut, and what the optimizer says of it; NULL: it is the
// parameters.
struct learner_away_item {
    struct learner *learner;
    uint32_t number;
    const struct state_item *item;
    bool is_written; // Else it lies in the copy already
};

// Where the items come from: those of the optimizer, and the parameters if they are away as well. `give` hands the floats
// of one to learner_away_put, `fill` writes one that is no floats to `values`. `copy`, if not NULL, has all of them in
// their places, and is taken; else they are written to a new one. `check`, if not NULL, takes the place of `give` for the
// optimizer's: it gives their leaves and has looked at them where they lie, in `copy`.
struct learner_away_source {
    int (*give)(const struct learner_away_item *to, void *arg, struct why *why);
    int (*fill)(const struct learner_away_item *to, void *values, void *arg, struct why *why);
    int (*check)(const struct state_item *item, void *arg, struct why *why,
                 struct hash *ret_leaves);
    void *arg;
    struct state_copy *copy;
};

// The floats [at.begin, at.end) of an item, from the beginning of a leaf on. Each of them comes once, in any order.
// FAULT_NAN: a value that no optimizer leaves behind; those of the disk.
int learner_away_put(const struct learner_away_item *to, struct interval at, const float *values,
                     struct why *why);

// Takes them: self->leaves has theirs then, and self->away is true. After a fault nothing is away, and the copy is
// freed. FAULT_MEMORY, and those of learner_away_put and of the source.
int learner_away_take(struct learner *self, const struct learner_away_source *source,
                      struct why *why);

// Gives the memory of what members share out back, but for this part of it.
void learner_away_release(struct learner *self, struct interval part);

// Moves a state that is in memory away, and gives its memory back. Faults of learner_away_take.
int learner_away_move(struct learner *self, struct why *why);

// Puts this part of what is away into the vectors, and gives the memory of the rest back. Needs self->away.
// FAULT_CORRUPT: the copy has changed on the disk.
int learner_away_read(struct learner *self, struct interval part, struct why *why);

// The copy is of an earlier step, or of no use.
void learner_away_drop(struct learner *self);
