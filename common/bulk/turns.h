#pragma once
// turns -- whose question is answered next: fair turns among askers, by bytes.
//
//     ring   ▶ anna ▶ ben ▶ carl ▶        those with a question that may be answered now
//              turn: TURN_BYTES more, then answered while it has some left; what an answer takes more
//              than that is paid back in the next rounds
//
// So an asker with many connections, many questions or large answers gets as much as any other, and
// waits while others have more due: deficit round robin (Shreedhar and Varghese 1995), with the debt
// after the answer, since its length is known only then. An asker that leaves the ring keeps its debt,
// and no credit: idling saves nothing up.
//
// Pure: a value, no clock, no memory of its own. One thread.

#include <stdbool.h>
#include <stdint.h>

enum { TURN_BYTES = 256 << 10 };

struct turn { // One asker's; zero: not in the ring, no debt
    struct turn *next, *before;
    int64_t credit; // Bytes; below zero: debt
};

struct turns {
    struct turn *now; // Whose turn it is, or comes next; NULL: nobody waits
    bool has_begun;   // Its turn has: it has got its bytes
};

void turns_add(struct turns *self, struct turn *turn);    // Last; nothing if it is in the ring
void turns_remove(struct turns *self, struct turn *turn); // Nothing if it is not

// Whose question is answered now; NULL: nobody waits.
struct turn *turns_next(struct turns *self);
// An answer of `bytes` was given to the one whose turn it was.
void turns_charge(struct turn *turn, uint64_t bytes);
