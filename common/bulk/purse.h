#pragma once
// purse -- how many bytes of what a server holds one asker may have. A purse holds bytes; an answer
// takes its own out of it. While it is empty the asker waits, it is not cut off.
//
//     at first and at most    all that is held here, twice
//     as time goes            all that is held here, once each PURSE_MS
//     as something comes      its bytes, once: each asker may have all that is new here
//
// So an honest asker does not notice it. A joiner fetches a whole state at full speed, and does so
// again if it is restarted; a member fetches each new blob once, from one of its holders. An asker
// that fetches the same things without end gets no more than a member that had its blobs from this
// server alone, and what is held here once more each ten minutes. What is held counts as `least`
// bytes at least, so that small runs may be restarted often.
//
// An answer is given while anything is in the purse, and may leave a debt. Pure: a value, no clock.
// One thread.

#include <stdbool.h>
#include <stdint.h>

enum { PURSE_TIMES = 2, PURSE_MS = 600000 };

struct purse { // Zero: full
    int64_t left;
    uint64_t filled_ms, ever, part; // part: of a byte, in PURSE_MS-ths
    bool is_begun;
};

// What is held now, and how many bytes have ever come (0: what is new counts for nothing).
struct purse_source {
    uint64_t held, least, ever;
};

// Whether an answer may be given now. Fills the purse if it is empty.
bool purse_is_open(struct purse *self, const struct purse_source *from, uint64_t now_ms);
void purse_take(struct purse *self, uint64_t bytes);
