#pragma once
// ledger_report -- what a run's ledger says has happened, counted record by record, and whether the
// ledger proves it. Works beside a running coordinator, after its end, or on a copy. The ledger
// is only read.

#include "common/pace/evidence.h"
#include "common/actor/msg.h"
#include "common/base/fault.h"

enum { REPORT_KINDS_MAX = 256, REPORT_POSITIONS_MAX = 1 << 30 };

struct report_member {
    struct key key;
    char name[ACTOR_NAME_MAX + 1];
    uint8_t role, state;
    uint64_t results, samples; // Of it, in commits; results: or tasks that it finished
    uint64_t windows;          // That have it in their group; or such groups, of leases
};

struct ledger_report {
    char run[WIRE_RUN_MAX + 1];
    uint64_t incarnation; // Of the newest START; 0: none is on record
    uint64_t records;
    uint64_t of_kind[REPORT_KINDS_MAX]; // By frame number
    // A run has rounds, windows or leases, by its strategy. A commit is a record that commits steps. Of leases
    // `windows` are the groups.
    bool has_windows, has_leases;
    uint64_t rounds, windows, commits, voids, starts, epoch_ends, checkpoints, restores;
    uint64_t steps; // Distinct steps committed
    uint64_t steps_twice, steps_skipped;
    uint64_t steps_undone;           // By restores, and so not in `steps`
    uint64_t samples, samples_twice; // Committed; samples_twice: had been committed before
    uint64_t
        samples_missing; // At the newest end of an epoch: neither committed nor to be dealt again
    uint64_t last_step, epoch, epochs; // last_step: commits applied at the head
    uint8_t phase;
    struct wire_epoch_end end;         // The newest: step and digest; its list is empty
    struct wire_checkpoint checkpoint; // The newest
    const char *const *proved_names;   // What the records prove so far, NULL at the end,
    uint64_t proved[PACE_COUNTS_MAX];  // and how often
    char disproof[EVIDENCE_TEXT_MAX];  // Why a record does not hold; "": all that are verified hold
    int unverified_fault;              // 0, or the fault of evidence_open: no record is verified
    struct why unverified;             // Its text
    struct report_member *members;
    uint32_t members_count;
};

// Fills a zeroed struct. FAULT_CORRUPT if a record cannot be what it says, and the ledger's own
// faults. Draws or signatures that do not hold are no fault of reading: `disproof` says so. Nor is
// a configuration that is missing or invalid: the records are counted and not verified, and
// `unverified` says why. Before the first WINDOW or GROUP has_windows or has_leases is then false.
int ledger_report_read(const char *dir, struct why *why, struct ledger_report *ret_report);
void ledger_report_free(struct ledger_report *self);
