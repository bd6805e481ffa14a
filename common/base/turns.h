#pragma once
// turns -- whose question is answered next: fair turns among askers, by cost.
//
//     ring   ▶ anna ▶ ben ▶ carl ▶        askers with a question that may be answered now
//              turn: its credit grows by `quantum`, and it is answered while it has credit; an answer
//              that costs more leaves a debt, which is paid back in the next rounds
//
// So an asker with many connections, many questions or costly answers gets as much as any other: deficit
// round robin (Shreedhar and Varghese 1995). An answer is charged after it was given, since its cost is known
// only then. An asker that leaves the ring keeps its debt but no credit: an idle asker saves nothing up.
//
// The owner of the ring chooses the unit of cost: in common/bulk bytes of answers and the time that they take, in
// inbox.h microseconds.
//
// Pure: a value, no clock, no memory of its own. One thread.

#include <stdbool.h>
#include <stdint.h>

struct waiter { // One asker's; zero: not in the ring, no debt
    struct waiter *next, *before;
    int64_t credit; // Below zero: debt
};

struct turns {
    uint32_t quantum;   // Of each turn, above 0: set by the owner
    struct waiter *now; // The one whose turn it is or comes next; NULL: none waits
    bool has_begun;     // The turn of `now` has begun: it has got its quantum
};

void turns_add(struct turns *self, struct waiter *waiter);    // Last; nothing if it is in the ring
void turns_remove(struct turns *self, struct waiter *waiter); // Nothing if it is not

// The waiter whose question is answered now; NULL: none waits.
struct waiter *turns_next(struct turns *self);
// Charges the waiter whose turn it was for the answer that it got.
void turns_charge(struct waiter *waiter, uint64_t cost);
