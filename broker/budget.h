#pragma once
// budget -- how much one connection may say: a token bucket for frames and one for bytes.
//
//     in the bucket, full at first      every frame that is passed on takes 1 and its bytes
//     too little in it: refused         takes nothing, but is remembered as excess
//     excess above 4 bursts             cut
//
// What is passed on never exceeds the rate and a burst, and is never less than the rate either: who
// says more is slowed to its budget, not silenced, since what was refused costs nothing of what comes
// next. The bucket fills up and the excess is forgotten at the same rate, so who says less than twice
// its budget is never cut. At ten times it, a burst and the excess allowed are used up in 1/9 + 4/8 of
// what a burst takes to come back: with a burst of 4 s after 2.4 s.
//
// Pure.

#include <stdint.h>

struct budget {
    uint32_t frames_s, frames_burst, bytes_s, bytes_burst;
};
struct amount {
    int64_t frames, bytes;
}; // Thousandths of a frame, of a byte
struct bucket {
    struct amount left, excess, size;
    uint64_t filled_ms;
}; // Zeroed: never filled

enum budget_verdict { BUDGET_WITHIN, BUDGET_OVER, BUDGET_CUT };
enum { BUDGET_EXCESS_BURSTS = 4 };

// For a budget that begins or takes the place of another: to the brim, but no part of the bucket twice.
// So nobody gains by being one and then another by turns.
void bucket_fill(struct bucket *self, const struct budget *budget, uint64_t now_ms);
enum budget_verdict bucket_take(struct bucket *self, const struct budget *budget, uint64_t bytes,
                                uint64_t now_ms);
