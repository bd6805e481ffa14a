#pragma once
// log_shell -- the run as numbers over steps, in the folder of --log, as it goes:
//
//     run.csv                     a line of column names, then the rows; a restart appends
//     events.out.tfevents.*       the same for TensorBoard, a file for each start
//
// There is a row for each turn of the shell's loop that recorded a commit. If it recorded several, the row is that of
// the newest.
//
//     step           steps committed so far, those of this commit included
//     tokens         trained by them
//     loss           lower median of what the live trainers said last, at most a heartbeat old, as in RUN
//     learning_rate  of the commit; 0 where the pace of the run has none
//     seconds        since the row before; empty for the first row of a process, and after a restore
//     tokens_per_s   tokens trained since the row before, over these seconds
//     results        accepted in the commit; 0 where the pace of the run has none
//     unix_ms        when the row was made: after the commit was recorded, and what follows from it was sent
//
// It is for people: nothing depends on it, so a row that cannot be written is lost, and the run goes on. When several
// rows in a row are lost, the log tells of the first. A crash may lose the newest row. After a restore the rows of the
// steps that are done again follow those that were given up.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/event_file_shell.h"

struct log_shell {
    const struct coordinator *core; // Borrowed
    const char *dir;                // Borrowed; NULL: no log, and the functions below do nothing
    int csv;                        // The file run.csv
    off_t csv_bytes;                // Of whole rows
    struct event_file events;
    bool has_commit;            // A commit is recorded, its row not yet written
    struct commit_facts facts;  // Of the newest such commit
    uint64_t commit_ms, tokens; // Of the newest row: monotonic clock; 0: none in this process
    bool failed;                // The last row could not be written
};

// Makes the folder and opens both files. `incarnation`: that of the coordinator, which rises with each start; it is in
// the name of the event file (event_file_shell.h). The caller calls log_shell_close after a fault, too.
int log_shell_open(struct log_shell *self, uint64_t incarnation, struct why *why);
void log_shell_close(struct log_shell *self);

// For each record that was appended to the ledger. The row of one that commits steps follows in log_shell_turn, when
// the record is durable.
void log_shell_hear(struct log_shell *self, uint16_t kind, const void *record);

// For the end of each turn of the shell's loop: writes a row, if a commit was heard.
void log_shell_turn(void *self);
