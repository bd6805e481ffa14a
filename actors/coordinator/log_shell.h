#pragma once
// log_shell -- the run as numbers over steps, in the folder of --log, as it goes:
//
//     run.csv                     a row for each commit, below one line of names; a restart appends
//     events.out.tfevents.*       the same for TensorBoard, a file for each start
//
//     step           steps committed so far, those of this commit included
//     tokens         trained by them
//     loss           lower median of what the live trainers said last, at most a heartbeat old, as in RUN
//     learning_rate  of the commit; 0 where the pace of the run has none
//     seconds        since the commit before; empty for the first one of a process
//     tokens_per_s   tokens of the commit over these seconds
//     results        accepted in the commit; 0 where the pace of the run has none
//     unix_ms        when it was recorded
//
// It is for people: nothing depends on it, so a row that cannot be written is lost with a line in
// the log, and the run goes on. A crash may lose the newest row. After a restore the rows of the
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
    struct commit_facts facts;  // Of that commit
    uint64_t commit_ms, tokens; // Of the newest row: monotonic clock; 0: none in this process
    bool failed;                // The last row could not be written
};

// Makes the folder and opens both files; `number` of this life rises with each (event_file.h).
int log_shell_open(struct log_shell *self, uint64_t number, struct why *why);
void log_shell_close(struct log_shell *self);

void log_shell_hear(struct log_shell *self, uint16_t kind, const void *record); // Is on record
void log_shell_turn(void *self); // After a turn: writes the row, if there was a commit
