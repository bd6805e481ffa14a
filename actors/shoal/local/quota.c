// quota -- a bucket that fills with time and that the processor time of the child empties. A tick fills and empties it,
// stops the child if it is below zero, else lets it go on, and says when to look again.

#include "actors/shoal/local/quota.h"
#include <signal.h>
#include <time.h>

enum {
    LOOK_US = 10000,  // Between two looks at a running child
    KEPT_US = 100000, // For so long unused time is kept
    US_PER_MS = 1000,
};

// Processor time of all threads of the process; `before`, if the process has ended.
static uint64_t spent_us(pid_t pid, uint64_t before)
{
    struct timespec spent;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0) return before;
    return (uint64_t)spent.tv_sec * 1000000 + (uint64_t)spent.tv_nsec / 1000;
}

static void update_left(struct quota *self, uint64_t now_us)
{
    const uint64_t spent = spent_us(self->pid, self->spent_us);
    self->left_us += self->fraction * (double)(now_us - self->looked_us);
    self->left_us -= (double)(spent - self->spent_us);
    if (self->left_us > self->fraction * KEPT_US) self->left_us = self->fraction * KEPT_US;
    self->looked_us = now_us;
    self->spent_us = spent;
}

uint64_t quota_tick(struct quota *self, pid_t pid, uint64_t now_us)
{
    if (self->fraction <= 0 || pid <= 0) return UINT64_MAX;
    if (pid != self->pid)
        *self = (struct quota){ .fraction = self->fraction,
                                .pid = pid,
                                .looked_us = now_us,
                                .spent_us = spent_us(pid, 0) };
    update_left(self, now_us);
    const bool stop = self->left_us < 0;
    if (stop != self->stopped) kill(pid, stop ? SIGSTOP : SIGCONT);
    self->stopped = stop;
    const double wait_us = stop ? -self->left_us / self->fraction : LOOK_US;
    return (now_us + (uint64_t)wait_us) / US_PER_MS + 1;
}

void quota_lift(struct quota *self, pid_t pid)
{
    if (self->stopped && pid > 0 && pid == self->pid) kill(pid, SIGCONT);
    self->stopped = false;
    self->fraction = 0;
}
