#pragma once
// disk_shell -- the ledger as the coordinator's disk (struct disk of common/actor/shell.h).
//
//     a store of the core ──▶ a record; a snapshot after each SNAPSHOT_EVERY of them
//     RECITE              ──▶ one COMMIT by mail for each step that somebody asks for
//     POSITION            ──▶ whether what a member once heard from us is in this ledger
//     the start           ──▶ the newest snapshot and the records after it, into the core's run
//
// One thread.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/folder_shell.h"
#include "common/actor/shell.h"
#include "common/ledger/ledger.h"

struct disk_shell {
    struct ledger *ledger;
    struct coordinator *core;  // Borrowed: its rules name the run, its run follows the records
    struct run_folder *folder; // Borrowed
    struct shell *shell;       // Borrowed: set before it runs
    uint8_t *buffer;           // For the record or snapshot on its way to the disk
    struct wire_arena arena;   // For what is read
    uint64_t snapshot_seq;     // Records that the newest snapshot covers
    unsigned warned_percent;   // Of the ledger's room
};

// With core and folder filled in, the core fresh: opens the ledger, which is locked from then on, and
// brings the core's run to where its records end. To be closed also where that failed.
int disk_shell_open(struct disk_shell *self, const struct ledger_options *options, struct why *why);
void disk_shell_close(struct disk_shell *self);

struct disk disk_shell_port(struct disk_shell *self); // For shell_options; borrows self
