#pragma once
// disk_shell -- the ledger as the coordinator's disk (struct disk of common/actor/shell.h).
//
//     a store of the core ──▶ a record; a snapshot after every 1000 of them
//     SEND_COMMITS              ──▶ the records of the steps that a member asked for, one a mail
//     POSITION            ──▶ checks that this ledger contains what a member saw of the run
//     the start           ──▶ the newest snapshot and the records after it, into the core's run
//
// An fsync ends each turn before its messages leave. If the ledger differs from the core's state,
// the process dies. One thread.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/folder_shell.h"
#include "actors/coordinator/log_shell.h"
#include "common/actor/shell.h"
#include "common/ledger/ledger.h"

struct disk_shell {
    struct ledger *ledger;
    struct coordinator *core;  // Borrowed: its rules name the run, its run takes the records
    struct run_folder *folder; // Borrowed
    struct log_shell *log;     // Borrowed: hears of each record; NULL: none
    struct shell *shell;       // Borrowed: set before it runs
    uint8_t *buffer;           // For the record or snapshot that is being written
    struct wire_arena arena;   // For the record that is being read
    uint64_t snapshot_seq;     // Records that the newest snapshot covers
    unsigned warned_percent;   // How full the ledger was at the last warning
};

// The caller has filled in core and folder, and has just initialised the core. Opens and locks the
// ledger, and applies its records to the core's run. 0, or a fault of ledger_open; FAULT_CORRUPT if
// a record or the snapshot cannot be used. The caller closes it in both cases.
int disk_shell_open(struct disk_shell *self, const struct ledger_options *options, struct why *why);
void disk_shell_close(struct disk_shell *self);

struct disk disk_shell_port(struct disk_shell *self); // For shell_options; borrows self
