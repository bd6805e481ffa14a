#include "tests/chaos/growth.h"
#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void growth_add(struct growth *self, double hours, double value)
{
    const double t = hours - self->mean_t, y = value - self->mean_y;
    if (self->count > 0) self->freedom++;
    self->count++;
    self->mean_t += t / self->count;
    self->mean_y += y / self->count;
    self->tt += t * (hours - self->mean_t);
    self->ty += t * (value - self->mean_y);
    self->yy += y * (value - self->mean_y);
    self->newest = value;
}

void growth_end_life(struct growth *self)
{
    *self = (struct growth){ .past_tt = self->past_tt + self->tt,
                             .past_ty = self->past_ty + self->ty,
                             .past_yy = self->past_yy + self->yy,
                             .freedom = self->freedom, .newest = self->newest };
}

bool growth_measure(const struct growth *self, struct growth_slope *ret_slope)
{
    const double tt = self->past_tt + self->tt, ty = self->past_ty + self->ty,
                 yy = self->past_yy + self->yy;
    if (self->freedom < GROWTH_SAMPLES_MIN || tt <= 0) return false;
    const double slope = ty / tt, rest = yy - slope * ty;       // Rounding may leave it below zero
    *ret_slope = (struct growth_slope){ slope, sqrt(fmax(rest, 0) / (self->freedom - 1) / tt) };
    return true;
}

bool growth_exceeds(const struct growth *self, double bound_per_hour)
{
    struct growth_slope slope;
    return growth_measure(self, &slope) &&
           slope.per_hour - GROWTH_SURE * slope.error > bound_per_hour;
}

// ---- reading ------------------------------------------------------------------------------------

static bool read_status(pid_t pid, double *ret_values)
{
    char path[64], line[256];
    unsigned long long number;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    unsigned found = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "RssAnon: %llu kB", &number) == 1)
            ret_values[GROWTH_MEMORY] = 1024 * (double)number, found |= 1;
        if (sscanf(line, "Threads: %llu", &number) == 1)
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
    for (struct dirent *entry; (entry = readdir(list)); ) count += entry->d_name[0] != '.';
    closedir(list);
    ret_values[GROWTH_DESCRIPTORS] = count;
    return read_status(pid, ret_values);
}

static double bytes;                    // nftw has no argument to hand on

static int add_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)path, (void)walk;
    if (type == FTW_F) bytes += 512 * (double)status->st_blocks;
    return 0;
}

double growth_read_folder(const char *path)
{
    bytes = 0;
    nftw(path, add_one, 32, FTW_PHYS);              // What vanishes meanwhile does not count
    return bytes;
}
