#pragma once
// fetch -- what fetching a blob and fetching a model have in common: the holders that may have it,
// which of them were asked, and the outcome.
//
//     holder:  untried ──asked──▶ serving ──▶ lacks | silent | differs | lied     never asked again
//
// Holders are asked in the order of their reputation, those of equal reputation in the order in which
// they were named.

#include "common/bulk/peers.h"

enum { FETCH_HOLDERS_MAX = 256, FETCH_REASON_MAX = 160 };

enum holder_state {
    HOLDER_UNTRIED,
    HOLDER_SERVING,
    HOLDER_LACKS,
    HOLDER_SILENT,
    HOLDER_DIFFERS, // Says that it has another size than it must have
    HOLDER_LIED,
    HOLDER_STATES
};

struct holder {
    struct peer *peer;
    uint8_t state;
    bool has_served;
};

struct fetch_namer; // fetcher.h

enum fetch_state { FETCH_GOING, FETCH_DONE, FETCH_FAILED };

struct fetch {
    struct peers *peers; // Borrowed
    struct holder *holders;
    uint32_t holders_count;
    enum fetch_state state;
    const struct fetch_namer *namer; // Borrowed; NULL: holders are named by their keys
    char reason[FETCH_REASON_MAX];   // Why it failed; of a success, a remark or empty

    // Takes the answer to one of its requests.
    void (*hear)(struct fetch *self, const struct answer *answer);
    // Whether a holder may have a piece that was asked of another one. NULL: each has all.
    bool (*may_have)(struct fetch *self, const struct peer *peer, uint32_t piece);
};

void fetch_init(struct fetch *self, struct peers *peers,
                void (*hear)(struct fetch *, const struct answer *));
void fetch_end(struct fetch *self);

// Adds holders that are not in the list yet, up to FETCH_HOLDERS_MAX. Those in the list may be
// asked again, except the ones that lied.
void fetch_add_holders(struct fetch *self, const struct wire_holder *list, uint32_t count);

struct holder *fetch_holder_of(struct fetch *self, const struct peer *peer); // NULL: none
struct holder *fetch_take_next(struct fetch *self); // It serves from now on. NULL: none is left

// Lets holders serve until there are `width`, plus two for each slow one (peers.h) that serves now.
// Returns the number that serve.
uint32_t fetch_widen(struct fetch *self, uint32_t width);
uint32_t fetch_count(const struct fetch *self, enum holder_state state);

// Ends it as failed; fetch_fail_for_holders with "no holder has it: 3 asked, 1 lack it, 2 silent:
// trainer.anna.3fa2b4c6d8e0f112 at 203.0.113.7:7000 and 1 more", where `what` is "it". Holders that serve lack it,
// too.
void fetch_fail(struct fetch *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fetch_fail_for_holders(struct fetch *self, const char *what);
