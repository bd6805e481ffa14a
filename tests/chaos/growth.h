#pragma once
// growth -- whether figures that should stay constant keep growing: memory, descriptors and threads
// of a process, disk use of a folder.
//
//     y │            .:'       A life is measured from GROWTH_SETTLED_S seconds of age on, always
//       │  ..:.:'  .:          at the same point of the run. Lives differ in where they begin, not
//       └───────────────▶ t    in how they grow: what counts is from one look to the next, in a life.
//
//     rate  = Σ Δy / Σ Δt
//     error = √(Σ (Δy - rate · Δt)² · n / (n - 1)) / Σ Δt
//
// This is the ratio estimator and its standard error (Cochran, Sampling Techniques, 6.4), over n
// differences. Something grows if its rate is above its bound by more than GROWTH_SURE errors. What
// goes up and down does not, and k steps of one height are √k errors: memory that is taken once and
// kept is no growth, taken ten times it is. (A least squares line through the values themselves
// takes one step for a slope, and is sure of it.) The error is printed beside the rate, so that one
// can see what a run was too short to tell.

#include <stdbool.h>
#include <sys/types.h>

enum { GROWTH_SETTLED_S = 45, GROWTH_SURE = 3, GROWTH_SAMPLES_MIN = 30 };
enum growth_kind { GROWTH_MEMORY, GROWTH_DESCRIPTORS, GROWTH_THREADS, GROWTH_DISK, GROWTH_KINDS };

// Zero is a new one.
struct growth {
    bool lives; // There was a look in this life: at, newest
    double at, newest;
    unsigned count; // Differences, and sums over them
    double t, y, tt, ty, yy;
};

struct growth_rate {
    double per_hour, error;
};

void growth_add(struct growth *self, double hours, double value);
void growth_end_life(struct growth *self);
void growth_pool(struct growth *self, const struct growth *other); // As if they were lives of one
// False: too few samples to say anything.
bool growth_measure(const struct growth *self, struct growth_rate *ret_rate);
bool growth_exceeds(const struct growth *self, double bound_per_hour);

// Into ret_values[GROWTH_MEMORY .. GROWTH_THREADS]: bytes of memory that is the process's own
// (RssAnon: pages of a mapped file are the kernel's to take back), descriptors, threads. False:
// there is no such process.
bool growth_read_process(pid_t pid, double *ret_values);
double growth_read_folder(const char *path); // Bytes on disk; 0 if there is none
