// turns -- a doubly linked ring. A waiter gets the quantum when its turn comes, and keeps the turn until the quantum
// is used up or the waiter leaves the ring.

#include "common/base/turns.h"
#include <stddef.h>

void turns_add(struct turns *self, struct waiter *waiter)
{
    if (waiter->next) return;
    if (!self->now) self->now = waiter->next = waiter->before = waiter;
    if (waiter->next) return;
    // Behind all others
    waiter->next = self->now;
    waiter->before = self->now->before;
    waiter->before->next = self->now->before = waiter;
}

void turns_remove(struct turns *self, struct waiter *waiter)
{
    if (!waiter->next) return;
    if (self->now == waiter) {
        self->now = waiter->next == waiter ? NULL : waiter->next;
        self->has_begun = false;
    }
    waiter->before->next = waiter->next;
    waiter->next->before = waiter->before;
    waiter->next = waiter->before = NULL;
    // mutant: turns: an idle asker saves credit up
    if (waiter->credit > 0) waiter->credit = 0;
}

struct waiter *turns_next(struct turns *self)
{
    while (self->now) {
        if (!self->has_begun) self->now->credit += self->quantum;
        self->has_begun = true;
        // mutant: turns: the first asker keeps its turn
        if (self->now->credit > 0) break;
        self->now = self->now->next;
        self->has_begun = false;
    }
    return self->now;
}

void turns_charge(struct waiter *waiter, uint64_t cost)
{
    // mutant: turns: what an answer costs is not counted
    waiter->credit -= (int64_t)cost;
}
