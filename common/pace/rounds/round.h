#pragma once
// round -- the newest round of a run, as its records tell it: who takes part, who recomputes what,
// what was found of it, what its commit accepted.
//
//     ROUND ──▶ round_open ──▶ FINDING, FINDING ... ──▶ COMMIT ──▶ round_close ──▶ the next ROUND
//
// The coordinator draws a ROUND and applies it here (draw.h, run.h); the verifier of a ledger applies
// the same records and draws again (evidence.h); an observer applies the news. A struct round is a
// value of about 5 MiB, most of it never touched: take it zeroed from the system. Pure: no I/O, no
// clock. One thread.

#include "common/run/roster.h"
#include "common/pace/rounds/audits.h"

struct round {
    bool open;                // No COMMIT has ended it
    struct wire_round opened; // Its lists are NULL and lie below: see round_frame
    struct interval dealt[TABLE_INTERVALS_MAX], returned[TABLE_INTERVALS_MAX];
    struct wire_client clients[MEMBERS_MAX], witnesses[WITNESSES_MAX];
    struct wire_audit audits[AUDITS_MAX];
    struct interval audited[AUDITED_MAX];
    struct wire_found findings[AUDITS_MAX]; // By audit
    uint32_t dealt_count, returned_count, clients_count, witnesses_count, audits_count,
        audited_count;

    struct wire_commit last; // The newest COMMIT; its list is NULL and lies below
    struct wire_accepted accepted[MEMBERS_MAX];
    uint32_t accepted_count; // 0 after a restart, which forgets them: see round_forget
    struct hash
        last_commit;       // The commit's hash, which the next ROUND and COMMIT name as `previous`
    struct hash audit_key; // The key that it revealed
};

// Whether a ROUND from outside can be what it says: it has clients, its samples are as many as its
// batch, its audits are sound.
bool round_is_sound(const struct wire_round *round);

// This ROUND is the newest; its audits are sound. What the newest COMMIT said stays.
void round_open(struct round *self, const struct wire_round *round);

// This COMMIT is the newest and ends the open round, if that was heard of at all.
void round_close(struct round *self, const struct wire_commit *commit);

// A restart: the results of the newest commit are forgotten, so nobody audits them.
void round_forget(struct round *self);

// A restore: what the audits and the newest commit are about is given up.
void round_give_up(struct round *self);

// The newest ROUND with its lists in place, borrowed until the round changes.
struct wire_round round_frame(const struct round *self);

// Places among the clients and the witnesses of the newest round, or NO_MEMBER.
uint32_t round_client_place(const struct round *self, uint32_t member);
uint32_t round_witness_place(const struct round *self, uint32_t member);

// Places among the clients of those that train, rising, to `ret_clients` (room for all). Returns how many.
uint32_t round_trainers(const struct round *self, uint32_t *ret_clients);

// The place of this client's audit, or UINT32_MAX; the samples of the audit at a place.
uint32_t round_audit_place(const struct round *self, uint32_t client);
const struct interval *round_audit_samples(const struct round *self, uint32_t place);

// Whether a member is a party to an audit of the newest round: its result is recomputed, or it accuses.
bool round_is_party(const struct round *self, uint32_t member);

// Whether the newest round's commit has a result of this member. False as well before the commit, and
// if the ROUND or the COMMIT was not heard.
bool round_accepts(const struct round *self, uint32_t member);

// The samples at positions [begin, end) of the newest round's list, written to `ret_list` (room for
// as many intervals as the round dealt). Returns how many intervals.
uint32_t round_samples_at(const struct round *self, uint32_t begin, uint32_t end,
                          struct interval *ret_list);

// ---- audit debts: what the findings of the newest round leave -----------------------------------

// To be called with the next ROUND before it is opened: a member whose result was not shown to its
// auditor, and that has no judges in the next round, owes an audit. `debts`: by member.
void round_leave_cases(const struct round *self, const struct wire_round *next,
                       struct wire_debt *debts);

// Takes a finding, the first at its place: whether its audit is paid, and whether judges have found
// that a result was withheld, so that its trainer owes audits: 8, and each time twice as many.
void round_hear_finding(struct round *self, const struct wire_record_finding *record,
                        struct wire_debt *debts);
