#pragma once
// train_report -- what `shoal train` reports on its way: a row per step for a file, and a line for
// people, redrawn in place on a terminal, elsewhere printed every few seconds.

#include "actors/shoal/status_line.h"
#include "common/base/fault.h"

struct train_row {
    uint64_t step;     // Done, this one included
    uint64_t tokens;   // Trained so far, over all steps
    uint32_t batch;    // Sequences in this step
    double loss, norm; // Nats per token before the update; of the gradient
    float rate;        // Learning rate
    double seconds;    // That this step took
    double heldout;    // Nats per token after it; NaN: not measured
};

struct train_report {
    FILE *log;        // NULL: none
    const char *path; // Of it; borrowed
    bool csv;
    uint64_t total_steps, first_step; // first_step: where this process began
    struct status_line line;
    double loss, heldout;   // A running mean; the last measured. NaN: none yet
    double seconds, tokens; // Of the steps so far, by this process
};

// `log` ends in .csv or .jsonl (else FAULT_USAGE) and is made or appended to; NULL: none. The log
// of a training that was killed and resumed has the steps after its checkpoint twice.
int train_report_open(struct train_report *self, const char *log, uint64_t first_step,
                      uint64_t total_steps, struct why *why);
// FAULT_IO, FAULT_DISK_FULL: the row could not be written.
int train_report_row(struct train_report *self, const struct train_row *row, uint32_t seq,
                     uint64_t now_ms, struct why *why);
void train_report_close(struct train_report *self);
