#pragma once
// limits -- how large one run may be. Every count that comes from outside is held against these
// before memory is taken for it; inside, a larger one is a mistake of ours.

enum {
    MEMBERS_MAX = 16384,         // Of a run: what one committee, one deal and one bloom can hold
    WITNESSES_MAX = 64,          // Elected per round at most: the largest witness_nodes
    WITNESSES_OPEN = 32,         // When witness_nodes is 0: everybody up to this many (Psyche's)
    STRATEGY_BYTES = 64,         // Room for the part of CONFIG of any strategy: no pointers in it
    TABLE_INTERVALS_MAX = 65536, // Of a table, and of what a round deals: what one ROUND can list
};
