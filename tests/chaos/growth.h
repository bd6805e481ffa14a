#pragma once
// growth -- whether figures that should stay constant keep growing: memory, descriptors and threads
// of a process, disk use of a folder.
//
//     y │            .:'       A life is measured from GROWTH_SETTLED_S seconds of age on, always
//       │  ..:.:'  .:          at the same point of the run. It is cut in four quarters. What counts
//       │  1    2    3    4    is the floor of each, the least value in it: what goes up and down
//       └───────────────▶ t    comes back to the floor, what is never given back raises it.
//
//     rate i = Σ (floor i+1 - floor i) / Σ (begin i+1 - begin i)       sums over lives, i = 1, 2, 3
//
// Something grows if the least of the three rates is above its bound. A process that has just begun
// takes memory for what it does for the first time, and its heap rises to its highest use in steps
// that become rarer: in one quarter or two there are some, in each of them only if something leaks.
// What is taken less often than once in a quarter is not seen: a run of an hour does not tell a
// step in each half hour from first use. The greatest rate is printed, too.

#include <stdbool.h>
#include <sys/types.h>

enum {
    GROWTH_SETTLED_S = 45,
    GROWTH_SAMPLES_MIN = 30, // Looks, in all lives
    GROWTH_LIFE_MIN = 8,     // Looks; a shorter life does not count
    GROWTH_FLOORS_MAX = 64
};
enum growth_kind { GROWTH_MEMORY, GROWTH_DESCRIPTORS, GROWTH_THREADS, GROWTH_DISK, GROWTH_KINDS };

// Zero is a new one.
struct growth {
    // This life: the least value of each `stride` looks, and when the first of them was. When the
    // list is full, neighbours become one.
    struct growth_floor {
        double at, least;
    } floors[GROWTH_FLOORS_MAX];
    unsigned floors_count, stride, in_last; // in_last: looks in the newest floor
    double newest;
    // Lives before.
    unsigned looks;
    double rise[3], hours[3];
};

struct growth_rate {
    double least, most; // An hour
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
