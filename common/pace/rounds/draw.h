#pragma once
// draw -- draws the next round: its seed, clients, witnesses, auditors and judges.
//
//     rules ─┐
//     roster ├─▶ draw_round ─▶ seed ─▶ clients, witnesses ─▶ judges, verifiers, debtors' auditors
//     round  ┘
//
// The draw follows from struct draw_from alone, and every reader of the ledger has that. The
// coordinator draws to open a round. The verifier of its ledger (evidence.h) calls the same
// function with the same rules, and the record must equal what it draws.
//
// Nobody can choose a seed: it follows from the run's seed and from all commits. In a run with
// audits it also follows from the key that the newest commit revealed. So a trainer that chooses a
// result does not know what the draw will be.
//
// Audits, in the order in which they are drawn:
//
//     judges     decide on a result that its auditor found different or withheld
//     verifiers  verification_percent of the clients that are left. Each recomputes a result of the
//                newest commit that is not its own; no two recompute the same one
//     debtors'   auditors of members with audit debt: of one result a round; from 8 clients on, of
//                up to a quarter as many results as clients
//
// So the results of a run's last round are verified by nobody, as no round is drawn after it; nor are those
// of the last one before the coordinator is restarted, as that forgets them. A result that is wrong there
// stays, clipped like any other. actors/README.md says it to users.
//
// Pure: no clock, no allocation, no randomness but the seed. One thread.

#include "common/pace/rounds/round.h"
#include "common/run/rules.h"

// All rules that a draw depends on; it sees no others. Members get them in the pace's part of
// CONFIG. The verifier checks every rule in this list, and evidence_test.c fails if a rule changes
// no draw there.
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

// All that a draw depends on; borrowed for the call.
struct draw_from {
    const struct draw_rules *rules;
    uint64_t run_seed, step;       // `step`: commits so far
    const struct roster *roster;   // With at least one healthy trainer
    const struct round *round;     // The newest round; it is closed
    const struct wire_debt *debts; // By member
};

// A dispute of the round before, and how the draw settled it.
struct draw_case {
    struct wire_audit audit;
    bool left;               // Left undecided: it was tried too often, or there was no room
    uint32_t judges, needed; // Judges that were appointed; how many of them must agree
};

struct draw {
    struct draw_case cases[AUDITS_MAX]; // In the order in which they were drawn
    uint32_t cases_count;

    // The lists that the drawn ROUND points to.
    struct wire_client clients[MEMBERS_MAX], witnesses[WITNESSES_MAX];
    struct wire_audit audits[AUDITS_MAX];
    struct interval audited[AUDITED_MAX];

    // Scratch: ranks and order of the committee, which clients audit, the samples of one audit.
    uint32_t positions[MEMBERS_MAX], order[MEMBERS_MAX];
    bool taken[MEMBERS_MAX];
    struct interval samples[TABLE_INTERVALS_MAX];
    struct wire_debt debts[MEMBERS_MAX]; // At the opening
};

// Writes number, seed, clients, witnesses, trainers and audits of the next round; the other members
// of *ret_round stay. Its lists point into *self (about 1.6 MiB), until the next draw.
void draw_round(struct draw *self, const struct draw_from *from, struct wire_round *ret_round);
