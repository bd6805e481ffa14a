// hostile_provider -- a data-provider that is late, for tests only: the objects of
// shoal-data-provider, linked with --wrap. Its samples are right.
//
//     HOSTILE_MS=n        how late it answers each question for samples (380)
//     HOSTILE_AFTER=n     after how many that it answered at once (0)

#include "common/bulk/bulk_server_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

size_t __real_bulk_answer(struct bulk_server *self, struct seat *seat);
size_t __wrap_bulk_answer(struct bulk_server *self, struct seat *seat);
size_t __wrap_bulk_answer(struct bulk_server *self, struct seat *seat)
{
    static unsigned long count;
    const unsigned long ms = number("HOSTILE_MS", 380);
    if (seat->mail.head.kind == FRAME_WANT_SAMPLES && ++count > number("HOSTILE_AFTER", 0)) {
        fprintf(stderr, "hostile.kept count=%lu\n", count);
        nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 }, NULL);
    }
    return __real_bulk_answer(self, seat);
}
