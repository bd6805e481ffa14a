#pragma once
// draw -- the next round as chance has it: its seed, its clients, witnesses, auditors and judges.
//
//     rules ─┐
//     roster ├─▶ draw_round ──▶ seed ──▶ clients, witnesses ──▶ judges, verifiers, debtors' auditors
//     round  ┘
//
// All of it follows from what stands in struct draw_from, which every reader of the ledger has. The
// coordinator draws to open a round; the verifier of its ledger (evidence.h) calls the same function
// with the same rules, and what it draws must be what the record says. Nobody may choose a seed: it
// follows from the run's seed and all that was committed; and where results are audited, also from
// the key that the newest commit revealed, so that a trainer that chooses a result does not know
// what will be drawn because of it.
//
// Audits, in the order in which they are drawn:
//
//     judges     of a result that its auditor called different, or was not shown: they decide
//     verifiers  verification_percent of the clients that are left; each gets a result of the newest
//                commit that is not its own, and no two the same one
//     debtors'   results of members that owe audits: one a round, or a quarter of the clients' number
//
// Pure: no clock, no allocation, no chance but the seed. One thread.

#include "common/pace/rounds/round.h"
#include "common/run/rules.h"

// Every rule that a draw follows from: it sees no others. They are told in the pace's part of CONFIG. A
// rule that is added here is checked by the verifier, and its test asks for it (evidence_test.c).
#define DRAW_RULES(R)                                                                              \
    R(uint32_t, witness_nodes)  /* Witnesses of a round; 0: all, but at most WITNESSES_OPEN */     \
    R(bool, witness_standalone) /* Elect among witness actors, not among trainers */               \
    R(uint32_t, verification_percent) /* Of a round's clients that recompute instead of training */

struct draw_rules {
#define DRAW_RULE(type, name) type name;
    DRAW_RULES(DRAW_RULE)
#undef DRAW_RULE
};

struct draw_rules draw_rules(const struct rules *rules);

// All that a draw may look at; borrowed for the call.
struct draw_from {
    const struct draw_rules *rules;
    uint64_t run_seed, step;       // Step: commits so far
    const struct roster *roster;   // Not empty of healthy trainers
    const struct round *round;     // The newest, closed
    const struct wire_debt *debts; // By member
};

// A dispute of the round before, and what was made of it.
struct draw_case {
    struct wire_audit audit;
    bool left;               // Tried too often, or no room: nobody judges it any more
    uint32_t judges, needed; // Appointed; that must agree
};

struct draw {
    struct draw_case cases[AUDITS_MAX]; // In the order in which judges were sought
    uint32_t cases_count;

    // The lists that the drawn ROUND points to.
    struct wire_client clients[MEMBERS_MAX], witnesses[WITNESSES_MAX];
    struct wire_audit audits[AUDITS_MAX];
    struct interval audited[AUDITED_MAX];

    // Scratch: positions and order of the committee, which clients audit, the samples of one audit.
    uint32_t positions[MEMBERS_MAX], order[MEMBERS_MAX];
    bool taken[MEMBERS_MAX];
    struct interval samples[TABLE_INTERVALS_MAX];
    struct wire_debt debts[MEMBERS_MAX]; // At the opening
};

// Writes number, seed, clients, witnesses, trainers and audits of the next round; nothing else of
// *ret_round changes. Its lists are borrowed from *self, about 1.6 MiB, until the next draw.
void draw_round(struct draw *self, const struct draw_from *from, struct wire_round *ret_round);
