// growth -- keeps the floors of a life and the sums of the estimator (growth.h), and reads the
// figures from /proc and from folders.

#include "tests/chaos/growth.h"
#include <inttypes.h>
#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void halve(struct growth *self)
{
    for (unsigned i = 0; i < GROWTH_FLOORS_MAX / 2; i++) {
        const struct growth_floor *two = &self->floors[2 * i];
        self->floors[i] = (struct growth_floor){ two[0].at, fmin(two[0].least, two[1].least) };
    }
    self->floors_count = GROWTH_FLOORS_MAX / 2;
    self->stride *= 2;
}

void growth_add(struct growth *self, double hours, double value)
{
    self->newest = value;
    if (self->floors_count == 0) self->stride = 1;
    if (self->floors_count > 0 && self->in_last < self->stride) {
        struct growth_floor *last = &self->floors[self->floors_count - 1];
        last->least = fmin(last->least, value);
        self->in_last++;
        return;
    }
    if (self->floors_count == GROWTH_FLOORS_MAX) halve(self);
    self->floors[self->floors_count++] = (struct growth_floor){ hours, value };
    self->in_last = 1;
}

static unsigned looks_of_life(const struct growth *self)
{
    return self->floors_count ? (self->floors_count - 1) * self->stride + self->in_last : 0;
}

static double floor_of(const struct growth_floor *floors, unsigned count)
{
    double least = floors[0].least;
    for (unsigned i = 1; i < count; i++) least = fmin(least, floors[i].least);
    return least;
}

// What the three quarters have more than the one before them. The oldest looks are left over if
// four does not divide their number.
void growth_end_life(struct growth *self)
{
    const unsigned count = self->floors_count / 4, left = self->floors_count % 4;
    const struct growth_floor *quarter = &self->floors[left];
    if (looks_of_life(self) >= GROWTH_LIFE_MIN) {
        self->looks += looks_of_life(self);
        for (unsigned i = 0; i < 3; i++, quarter += count) {
            self->rise[i] += floor_of(quarter + count, count) - floor_of(quarter, count);
            self->hours[i] += quarter[count].at - quarter[0].at;
        }
    }
    self->floors_count = self->in_last = 0;
}

void growth_pool(struct growth *self, const struct growth *other)
{
    struct growth ended = *other;
    growth_end_life(&ended);
    self->looks += ended.looks;
    for (unsigned i = 0; i < 3; i++)
        self->rise[i] += ended.rise[i], self->hours[i] += ended.hours[i];
    self->newest += other->newest;
}

bool growth_measure(const struct growth *self, struct growth_rate *ret_rate)
{
    struct growth all = { 0 };
    growth_pool(&all, self);
    if (all.looks < GROWTH_SAMPLES_MIN) return false;
    *ret_rate = (struct growth_rate){ INFINITY, -INFINITY };
    for (unsigned i = 0; i < 3; i++) {
        const double rate = all.hours[i] > 0 ? all.rise[i] / all.hours[i] : 0;
        ret_rate->least = fmin(ret_rate->least, rate);
        ret_rate->most = fmax(ret_rate->most, rate);
    }
    return true;
}

bool growth_exceeds(const struct growth *self, double bound_per_hour)
{
    struct growth_rate rate;
    return growth_measure(self, &rate) && rate.least > bound_per_hour;
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
