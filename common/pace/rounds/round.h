#pragma once
// round -- the newest round of a run, as its records say: its clients and witnesses, its audits and
// their findings, and what its commit accepted.
//
//     ROUND ──▶ round_open ──▶ FINDING, FINDING ... ──▶ COMMIT ──▶ round_close ──▶ the next ROUND
//
// The coordinator draws a ROUND and applies it here (draw.h, run.h); the verifier of a ledger
// applies the same records and draws again (evidence.h); an observer applies the news. A struct
// round is a value of about 5 MiB, most of it never touched: allocate it zeroed (calloc). Pure: no
// I/O, no clock. One thread.

#include "common/run/roster.h"
#include "common/pace/rounds/audits.h"

struct round {
    bool open;                // No COMMIT has ended it
    struct wire_round opened; // Its lists are NULL and are kept below: see round_frame
    struct interval dealt[TABLE_INTERVALS_MAX], returned[TABLE_INTERVALS_MAX];
    struct wire_client clients[MEMBERS_MAX], witnesses[WITNESSES_MAX];
    struct wire_audit audits[AUDITS_MAX];
    struct interval audited[AUDITED_MAX];
    struct wire_found findings[AUDITS_MAX]; // By audit
    uint32_t dealt_count, returned_count, clients_count, witnesses_count, audits_count,
        audited_count;

    struct wire_commit last; // The newest COMMIT; its list is NULL and is kept below
    struct wire_accepted accepted[MEMBERS_MAX];
    uint32_t accepted_count; // 0 after a restart: see round_forget
    struct hash
        last_commit;       // The commit's hash, which the next ROUND and COMMIT name as `previous`
    struct hash audit_key; // The key that it revealed
};

// Whether a ROUND from outside is consistent: it has clients, its samples are as many as its batch,
// its audits are sound (audits.h).
bool round_is_sound(const struct wire_round *round);

// Copies a ROUND as the newest; its audits must be sound (ensure). The newest COMMIT stays.
void round_open(struct round *self, const struct wire_round *round);

// Copies a COMMIT as the newest, and ends the open round. It need not be a commit of that round: an
// observer may have missed the ROUND.
void round_close(struct round *self, const struct wire_commit *commit);

// For a restart: forgets the results of the newest commit, so nobody audits them.
void round_forget(struct round *self);

// For a restore: forgets the audits and the results of the newest commit, because they are given
// up.
void round_give_up(struct round *self);

// The newest ROUND. Its lists point into *self, until the round changes.
struct wire_round round_frame(const struct round *self);

// The index of a member in the list of clients, or of witnesses, of the newest round; or NO_MEMBER.
uint32_t round_client_place(const struct round *self, uint32_t member);
uint32_t round_witness_place(const struct round *self, uint32_t member);

// Writes the indices of the clients that train, rising, to `ret_clients` (room for all clients).
// Returns how many.
uint32_t round_trainers(const struct round *self, uint32_t *ret_clients);

// The index of this client's audit, or UINT32_MAX; and the samples of the audit at an index.
uint32_t round_audit_place(const struct round *self, uint32_t client);
const struct interval *round_audit_samples(const struct round *self, uint32_t place);

// Whether a member is a party to an audit of the newest round: its result is recomputed, or it is
// the accuser.
bool round_is_party(const struct round *self, uint32_t member);

// Whether the commit of the newest round accepted a result of this member. False before that
// commit, and if the ROUND or the COMMIT was missed.
bool round_accepts(const struct round *self, uint32_t member);

// Writes the samples [begin, end) of the newest round's list to `ret_list` (room for as many
// intervals as the round dealt). Returns how many intervals.
uint32_t round_samples_at(const struct round *self, uint32_t begin, uint32_t end,
                          struct interval *ret_list);

// ---- audit debts: they follow from the findings of the newest round -----------------------------

// Call it with the next ROUND before round_open. A member gets an audit debt of 1 if its auditor or
// its judges found its result withheld, without a verdict, and the next round has no judges for
// that case. `debts`: by member.
void round_add_debts(const struct round *self, const struct wire_round *next,
                     struct wire_debt *debts);

// Records a finding, the first of its audit. If the result was found to be the same, the author's
// audit debt shrinks by 1. If the judges' verdict is now "withheld", the author's debt is set to 8,
// to 16 the next time, and so on up to 64.
void round_hear_finding(struct round *self, const struct wire_record_finding *record,
                        struct wire_debt *debts);
