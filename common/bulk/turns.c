// turns -- a ring in both directions. When its turn comes, one gets its bytes; it stays until they are
// used up, or it leaves.

#include "common/bulk/turns.h"
#include <stddef.h>

void turns_add(struct turns *self, struct turn *turn)
{
    if (turn->next) return;
    if (!self->now) self->now = turn->next = turn->before = turn;
    if (turn->next) return;
    // Behind all others
    turn->next = self->now;
    turn->before = self->now->before;
    turn->before->next = self->now->before = turn;
}

void turns_remove(struct turns *self, struct turn *turn)
{
    if (!turn->next) return;
    if (self->now == turn) {
        self->now = turn->next == turn ? NULL : turn->next;
        self->has_begun = false;
    }
    turn->before->next = turn->next;
    turn->next->before = turn->before;
    turn->next = turn->before = NULL;
    // mutant: bulk: an idle asker saves credit up
    if (turn->credit > 0) turn->credit = 0;
}

struct turn *turns_next(struct turns *self)
{
    while (self->now) {
        if (!self->has_begun) self->now->credit += TURN_BYTES;
        self->has_begun = true;
        // mutant: bulk: the first asker keeps its turn
        if (self->now->credit > 0) break;
        self->now = self->now->next;
        self->has_begun = false;
    }
    return self->now;
}

void turns_charge(struct turn *turn, uint64_t bytes)
{
    // mutant: bulk: what an answer takes is not counted
    turn->credit -= (int64_t)bytes;
}
