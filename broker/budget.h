#pragma once
// budget -- how much one connection may say: a token bucket for frames and one for bytes.
//
//     full at first; every frame takes 1 and its bytes; both fill up at a steady rate
//     above zero: passed on     below: dropped, and the debt still grows     DEBT_BURSTS below: cut
//
// Pure.

#include <stdbool.h>
#include <stdint.h>

struct budget { uint32_t frames_s, frames_burst, bytes_s, bytes_burst; };
struct bucket { int64_t frames, bytes; uint64_t filled_ms; };      // Thousandths of a frame, of a byte

enum budget_verdict { BUDGET_WITHIN, BUDGET_OVER, BUDGET_CUT };
enum { BUDGET_DEBT_BURSTS = 4 };

void bucket_fill(struct bucket *self, const struct budget *budget, uint64_t now_ms);   // To the brim
enum budget_verdict bucket_take(struct bucket *self, const struct budget *budget, uint64_t bytes,
                                uint64_t now_ms);
