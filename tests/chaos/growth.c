// growth -- reads the figures from /proc and from folders, and keeps the sums of the estimator
// (growth.h).

#include "tests/chaos/growth.h"
#include <inttypes.h>
#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void growth_add(struct growth *self, double hours, double value)
{
    const double t = hours - self->at, y = value - self->newest;
    if (self->lives) {
        self->count++;
        self->t += t, self->y += y;
        self->tt += t * t, self->ty += t * y, self->yy += y * y;
    }
    self->lives = true;
    self->at = hours;
    self->newest = value;
}

void growth_end_life(struct growth *self) { self->lives = false; }

void growth_pool(struct growth *self, const struct growth *other)
{
    self->count += other->count;
    self->t += other->t, self->y += other->y;
    self->tt += other->tt, self->ty += other->ty, self->yy += other->yy;
    self->newest += other->newest;
}

bool growth_measure(const struct growth *self, struct growth_rate *ret_rate)
{
    if (self->count < GROWTH_SAMPLES_MIN || self->t <= 0) return false;
    const double n = self->count, rate = self->y / self->t;
    const double rest = self->yy - 2 * rate * self->ty + rate * rate * self->tt;
    // Rounding may leave the rest a little below zero.
    *ret_rate = (struct growth_rate){ rate, sqrt(fmax(rest, 0) * n / (n - 1)) / self->t };
    return true;
}

bool growth_exceeds(const struct growth *self, double bound_per_hour)
{
    struct growth_rate rate;
    return growth_measure(self, &rate) && rate.per_hour - GROWTH_SURE * rate.error > bound_per_hour;
}

// ---- reading ------------------------------------------------------------------------------------

static bool read_status(pid_t pid, double *ret_values)
{
    char path[64], line[256];
    uint64_t number;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    unsigned found = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "RssAnon: %" PRIu64 " kB", &number) == 1)
            ret_values[GROWTH_MEMORY] = 1024 * (double)number, found |= 1;
        if (sscanf(line, "Threads: %" PRIu64, &number) == 1)
            ret_values[GROWTH_THREADS] = (double)number, found |= 2;
    }
    if (file) fclose(file);
    return found == 3;
}

bool growth_read_process(pid_t pid, double *ret_values)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *list = opendir(path);
    double count = 0;
    if (!list) return false;
    for (struct dirent *entry; (entry = readdir(list));) count += entry->d_name[0] != '.';
    closedir(list);
    ret_values[GROWTH_DESCRIPTORS] = count;
    return read_status(pid, ret_values);
}

static double bytes; // nftw has no argument to hand on

static int add_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)path, (void)walk;
    if (type == FTW_F) bytes += 512 * (double)status->st_blocks;
    return 0;
}

double growth_read_folder(const char *path)
{
    bytes = 0;
    nftw(path, add_one, 32, FTW_PHYS); // What vanishes meanwhile does not count
    return bytes;
}
