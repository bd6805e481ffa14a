// schedule -- draws kind, victim and phase of each event, each from a wheel of its own: a
// wheel turns through all its entries, shuffled, before one comes up again.

#include "tests/chaos/schedule.h"
#include "common/wire/wire.h"
#include "tests/live/testbed.h"
#include <stdio.h>
#include <string.h>

// How often each kind comes up in one turn of the wheel, which actors it hits, and for how long.
static const struct {
    const char *name;
    unsigned share, ms_min, ms_max;
    bool network, disk;
} kinds[] = {
    [CHAOS_KILL] = { "SIGKILL", 6, 0, 0, false, false },
    [CHAOS_STOP] = { "SIGSTOP", 4, 200, 6000, false, false },
    [CHAOS_TERM] = { "SIGTERM", 3, 0, 0, false, false },
    [CHAOS_LOSSY] = { "loss", 1, 1000, 4000, true, false },
    [CHAOS_SLOW] = { "delay", 1, 1000, 4000, true, false },
    [CHAOS_MESSY] = { "copies, disorder, flipped bits", 1, 1000, 4000, true, false },
    [CHAOS_PARTITION] = { "partition", 1, 500, 8000, true, false },
    [CHAOS_ONE_WAY] = { "one-way partition", 1, 500, 8000, true, false },
    [CHAOS_DISK_FULL] = { "disk full", 1, 2000, 8000, false, true },
    [CHAOS_CLOCK] = { "clock", 2, 0, 0, false, false },
};
static const char *const victims[] = { "broker",   "coordinator", "data-provider", "checkpointer",
                                       "trainer0", "trainer1",    "trainer2",      "trainer3",
                                       "witness0", "witness1",    "witness2" };
static const char *const disks[] = { "coordinator", "checkpointer", "trainer1" };
static const uint8_t phases[] = { PHASE_TRAIN,   PHASE_WITNESS, PHASE_TRAIN, PHASE_COOLDOWN,
                                  PHASE_WAITING, PHASE_TRAIN,   PHASE_WARMUP };
static const int jumps[] = { 3600, -3600, 86400, -30 };
enum { VICTIMS = sizeof victims / sizeof *victims, PHASES = sizeof phases, WHEEL_MAX = 64 };

const char *chaos_kind_name(enum chaos_kind kind) { return kinds[kind].name; }

// Everything comes up once before anything comes up again.
struct wheel {
    unsigned list[WHEEL_MAX], count, next;
};

static unsigned turn(struct wheel *self, uint64_t *seed)
{
    if (self->next == 0)
        for (unsigned i = self->count; i > 1; i--) {
            const unsigned other = (unsigned)(testbed_draw(seed) % i), kept = self->list[i - 1];
            self->list[i - 1] = self->list[other];
            self->list[other] = kept;
        }
    const unsigned value = self->list[self->next];
    self->next = (self->next + 1) % self->count;
    return value;
}

static struct wheel wheel_of(unsigned count)
{
    struct wheel wheel = { .count = count };
    for (unsigned i = 0; i < count; i++) wheel.list[i] = i;
    return wheel;
}

void schedule_draw(uint64_t seed, unsigned count, uint64_t steps,
                   const struct chaos_permits *permits, struct chaos_event *ret_events)
{
    struct wheel hit = wheel_of(VICTIMS), when = wheel_of(PHASES), disk = wheel_of(3),
                 jump = wheel_of(4);
    struct wheel what = { 0 };
    bool runs_on = false; // Of the last full disk
    for (unsigned k = 0; k < CHAOS_KINDS; k++)
        for (unsigned n = 0; n < kinds[k].share; n++) what.list[what.count++] = k;
    for (unsigned i = 0; i < count; i++) {
        struct chaos_event *event = &ret_events[i];
        enum chaos_kind kind = (enum chaos_kind)turn(&what, &seed);
        // All is drawn in any case, so that an event that is not permitted does not change the
        // others.
        const unsigned victim = turn(&hit, &seed), phase = turn(&when, &seed),
                       place = turn(&disk, &seed);
        const unsigned length = kinds[kind].ms_max - kinds[kind].ms_min + 1;
        const unsigned ms = kinds[kind].ms_min + (unsigned)(testbed_draw(&seed) % length);
        const int seconds = jumps[turn(&jump, &seed)];
        const bool out =
            (kinds[kind].network && !permits->network) || (kinds[kind].disk && !permits->disk);
        if (kind == CHAOS_DISK_FULL) runs_on = !runs_on;
        if (out) kind = CHAOS_KILL;
        *event = (struct chaos_event){ .step = 1 + i * (steps - 2) / count,
                                       .phase = phases[phase],
                                       .kind = kind,
                                       .victim = kinds[kind].network ? ""
                                                 : kinds[kind].disk  ? disks[place]
                                                                     : victims[victim],
                                       .ms = ms,
                                       .seconds = kind == CHAOS_CLOCK ? seconds : 0,
                                       .runs_on = kind == CHAOS_DISK_FULL && runs_on };
    }
}

void chaos_event_text(const struct chaos_event *event, char ret_text[120])
{
    char more[48] = "";
    const char *restart = event->kind != CHAOS_DISK_FULL ? ""
                          : event->runs_on               ? ", as it runs"
                                                         : ", and restarted";
    if (event->ms) snprintf(more, sizeof more, " for %u ms%s", event->ms, restart);
    if (event->kind == CHAOS_CLOCK)
        snprintf(more, sizeof more, " by %d s, and restarted", event->seconds);
    snprintf(ret_text, 120, "%s%s%s%s in %s", chaos_kind_name(event->kind),
             event->victim[0] ? " " : "", event->victim, more,
             wire_enum_name(&wire_enum_phase, event->phase));
}
