#pragma once
// progress -- the state of the run in one line: redrawn in place on a terminal, else printed again
// every few seconds. Lines about events are printed above it and stay.

#include "actors/shoal/run/run_view.h"
#include "actors/shoal/status_line.h"

struct progress {
    struct status_line line;
    const double *baselines; // Nats per byte of orders 0, 1 and 2; NULL: none are known
    uint64_t began_ms;
    double loss;              // A running mean over rounds; 0: none yet
    uint64_t beats, heard_ms; // Of the coordinator, and when the newest was there
};

void progress_init(struct progress *self, FILE *out, const double *baselines, uint64_t now_ms);

// A commit came: the loss of the trainers, as they report it.
void progress_hear(struct progress *self, const struct run_view *view);

// Prints the line if it is due; returns when it is due next.
uint64_t progress_tick(struct progress *self, const struct run_view *view, uint64_t now_ms);
void progress_event(struct progress *self, uint64_t now_ms,
                    const char *line);    // Printed behind the time since the start
void progress_end(struct progress *self); // Leaves the cursor on a line of its own
