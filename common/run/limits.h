#pragma once
// limits -- how large one run may be. Every count that comes from outside is checked against these
// before memory is allocated for it. Inside a core, a larger count is our own bug (ensure).

enum {
    MEMBERS_MAX = 16384,         // Of a run, so also of one committee, one deal and one bloom
    WITNESSES_MAX = 64,          // Of a round: the largest witness_nodes
    WITNESSES_OPEN = 32,         // Of a round if witness_nodes is 0, as in Psyche
    STRATEGY_BYTES = 512,        // Of the strategy's part of CONFIG; it has no pointers
    TABLE_INTERVALS_MAX = 65536, // Of a table, and of the samples that one ROUND lists
};
