#pragma once
// turns -- whose question is answered next: fair turns among askers, by cost.
//
//     ring   ▶ anna ▶ ben ▶ carl ▶        those with a question that may be answered now
//              turn: `quantum` more, then answered while it has some left; what an answer costs more
//              than that is paid back in the next rounds
//
// So an asker with many connections, many questions or costly answers gets as much as any other, and
// waits while others have more due: deficit round robin (Shreedhar and Varghese 1995), with the debt
// after the answer, since its cost is known only then. An asker that leaves the ring keeps its debt,
// and no credit: idling saves nothing up.
//
// The owner says what is counted: bytes of answers (common/bulk), time of the processor (inbox.h).
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
    struct waiter *now; // Whose turn it is, or comes next; NULL: nobody waits
    bool has_begun;     // Its turn has: it has got its quantum
};

void turns_add(struct turns *self, struct waiter *waiter);    // Last; nothing if it is in the ring
void turns_remove(struct turns *self, struct waiter *waiter); // Nothing if it is not

// Whose question is answered now; NULL: nobody waits.
struct waiter *turns_next(struct turns *self);
// An answer that costs so much was given to the one whose turn it was.
void turns_charge(struct waiter *waiter, uint64_t cost);
