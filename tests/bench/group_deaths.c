// How long a sum takes is measured before; then the last member sets a timer to a share of it.

#include "common/base/clock.h"
#include "tests/bench/group_deaths.h"
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static void add(struct member *self)
{
    struct why why = { 0 };
    const int rc = member_add(self, &why);
    if (rc < 0) _exit(fault_exit(rc, &why));
}

static void die(struct member *self, void *arg)
{
    const int percent = *(int *)arg;
    const uint32_t last = self->members - 1;
    struct why why = { 0 };
    double took_s[3];
    for (int i = 0; i < 3; i++) {
        pthread_barrier_wait(&shared->barrier);
        const double start_s = clock_s();
        add(self);
        took_s[i] = clock_s() - start_s;
    }
    pthread_barrier_wait(&shared->barrier);
    const double start_s = clock_s(), after_s = median(took_s, 3) * percent / 100;
    if (self->place == last) {
        const uint64_t after_us = (uint64_t)(1e6 * after_s) + 1;
        const struct itimerval timer = { .it_value = { .tv_sec = (time_t)(after_us / 1000000),
                                                       .tv_usec =
                                                           (suseconds_t)(after_us % 1000000) } };
        shared->died_s = start_s + after_s;
        setitimer(ITIMER_REAL, &timer, NULL);
    }
    while (member_add(self, &why) == 0) continue; // It may have been done before the death
    shared->known_s[self->place] = clock_s();
    if (shared->known_s[self->place] - shared->died_s > 1) // Something was waited for in vain
        fprintf(stderr, "a death at %d %%: member %u knew after %.1f s: %s\n", percent, self->place,
                shared->known_s[self->place] - shared->died_s, why.text);
    member_form(self, last);
    shared->formed_s[self->place] = clock_s();
    add(self);
    shared->again_s[self->place] = clock_s();
}

static double last_of(const double *at_s, uint32_t count)
{
    double last_s = 0;
    for (uint32_t m = 0; m < count; m++) last_s = at_s[m] > last_s ? at_s[m] : last_s;
    return last_s;
}

struct group_death group_death(enum way way, uint32_t members, size_t bytes, int percent)
{
    ensure(members_run(way, members, bytes, die, &percent) == 1);
    const double known_s = last_of(shared->known_s, members - 1);
    const double formed_s = last_of(shared->formed_s, members - 1);
    return (struct group_death){ .known_ms = 1e3 * (known_s - shared->died_s),
                                 .formed_ms = 1e3 * (formed_s - known_s),
                                 .again_ms = 1e3 * (last_of(shared->again_s, members - 1) -
                                                    shared->died_s) };
}
