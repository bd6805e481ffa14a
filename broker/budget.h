#pragma once
// budget -- the rate limit of one connection: a token bucket for frames and one for bytes.
//
//     the bucket is full at first       a frame that passes takes its bytes and 1 frame, or more frames if
//                                       its kind costs its receiver more (common/actor/cost.h)
//     the bucket has too little         the frame is refused; it takes nothing and counts as excess
//     excess above 4 bursts             the connection is cut
//
// The frames that pass never exceed the rate plus one burst. A connection that sends more than its
// budget is slowed to the rate, not silenced, since refused frames cost nothing. The bucket fills
// and the excess shrinks at the same rate, so a connection that sends less than twice its budget is
// never cut. At ten times the budget, the burst and the allowed excess are used up in 1/9 + 4/8 of
// the time in which a burst refills: after 2.4 s with a burst of 4 s.
//
// The rate suffices for all that an actor says by itself. What a member says in a round comes on top: each round
// that the coordinator opens adds its frames to the bucket, so a run with quick rounds loses nothing.
//
// Pure; one thread a bucket.

#include <stdint.h>

struct budget {
    uint32_t frames_s, frames_burst, bytes_s, bytes_burst; // Rates a second, and bursts
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

// Starts a budget, or replaces one by another. It fills only the part by which the bucket has
// grown, so a connection gains nothing by changing its role back and forth.
void bucket_fill(struct bucket *self, const struct budget *budget, uint64_t now_ms);

// Adds `frames` that do not come with time, and lowers the excess by them. The bucket never holds more than its burst.
void bucket_give(struct bucket *self, const struct budget *budget, uint64_t frames);

// Takes the cost of one frame of `bytes` bytes that counts as `frames`. OVER: ignore the frame. CUT: cut its
// connection.
enum budget_verdict bucket_take(struct bucket *self, const struct budget *budget, uint32_t frames,
                                uint64_t bytes, uint64_t now_ms);
