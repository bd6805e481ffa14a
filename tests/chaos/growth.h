#pragma once
// growth -- whether what should stay as it is keeps growing: memory, descriptors and threads of a
// process, disk use of a folder.
//
//     y │            .:'       A life is measured from GROWTH_SETTLED_S seconds of age on, always
//       │  ..:.:'  .:          at the same point of the run. Lives differ in where they begin, not
//       └───────────────▶ t    in how they grow, so each is held against its own means:
//
//     slope = Σ Σ (t - t̄)(y - ȳ) / Σ Σ (t - t̄)²      over lives, and samples of a life
//     error = √((Σ Σ (y - ȳ)² - slope · Σ Σ (t - t̄)(y - ȳ)) / freedom / Σ Σ (t - t̄)²)
//
// This is the least squares slope with one intercept for each life, and its standard error (any
// textbook on linear regression: the within-group estimator). Something grows if the slope is above
// its bound by more than GROWTH_SURE such errors: what only goes up and down does not, and what grows
// slowly is found once it was watched for long enough. The error is printed beside the slope, so
// that one can see what a run was too short to tell.

#include <stdbool.h>
#include <sys/types.h>

enum { GROWTH_SETTLED_S = 45, GROWTH_SURE = 3, GROWTH_SAMPLES_MIN = 8 };
enum growth_kind { GROWTH_MEMORY, GROWTH_DESCRIPTORS, GROWTH_THREADS, GROWTH_DISK, GROWTH_KINDS };

// Zero is a new one.
struct growth {
    double count, mean_t, mean_y, tt, ty, yy;       // Of the life that lasts
    double past_tt, past_ty, past_yy;               // Of those before
    unsigned freedom;                   // Samples beyond the first of each life
    double newest;
};

struct growth_slope { double per_hour, error; };

void growth_add(struct growth *self, double hours, double value);
void growth_end_life(struct growth *self);
// False: too few samples to say anything.
bool growth_measure(const struct growth *self, struct growth_slope *ret_slope);
bool growth_exceeds(const struct growth *self, double bound_per_hour);

// Into ret_values[GROWTH_MEMORY .. GROWTH_THREADS]: bytes of memory that is the process's own
// (RssAnon: pages of a mapped file are the kernel's to take back), descriptors, threads. False:
// there is no such process.
bool growth_read_process(pid_t pid, double *ret_values);
double growth_read_folder(const char *path);        // Bytes on disk; 0 if there is none
