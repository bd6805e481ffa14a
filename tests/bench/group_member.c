// Members meet at a barrier before they link, so that all have a port by then.

#include "tests/bench/group_member.h"
#include "tests/bench/gloo_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *shared;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

void print_processor(void)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0) {
            printf("%ld x %s", sysconf(_SC_NPROCESSORS_ONLN), strchr(line, ':') + 2);
            break;
        }
    if (file) fclose(file);
}

int member_add(struct member *self, struct why *why)
{
    const float *nodes[] = { self->values };
    struct group_blame blame;
    if (self->gloo) {
        gloo_add(self->gloo, self->values, self->count);
        return 0;
    }
    const struct group_sum sum = { .number = self->number++,
                                   .floats = self->count,
                                   .lanes = self->members,
                                   .batch = self->members,
                                   .nodes = nodes,
                                   .result = self->values,
                                   .timeout_ms = WAIT_MS };
    return group_add(self->group, &sum, why, &blame);
}

void member_form(struct member *self, uint32_t members)
{
    struct why why = { 0 };
    struct group_blame blame;
    self->members = members;
    self->number = 0;
    const int rc = group_form(self->group, ++self->window, shared->members, members, self->place,
                              WAIT_MS, &why, &blame);
    if (rc < 0) _exit(fault_exit(rc, &why));
}

void member_open(struct member *self)
{
    struct identity *identity;
    struct why why;
    uint8_t secret[SECRET_BYTES];
    memset(secret, 1 + (int)self->place, sizeof secret);
    ensure(identity_from_secret(secret, &why, &identity) == 0);
    const char *address = self->address ? self->address : "127.0.0.1";
    char bind[64];
    snprintf(bind, sizeof bind, "%s:0", address);
    const struct group_options options = { .identity = identity,
                                           .run = "bench",
                                           .instance = 1,
                                           .bind = bind,
                                           .link = self->way == SEALED ? GROUP_SEALED : GROUP_PLAIN,
                                           .connections = self->connections ? self->connections : 1,
                                           .called_fd = -1 };
    ensure(group_new(&options, &why, &self->group) == 0);
    struct group_member *own = &shared->members[self->place];
    own->key = *identity_key(identity);
    own->instance = 1;
    snprintf(own->endpoint, sizeof own->endpoint, "tcp://%s:%u", address, group_port(self->group));
}

void member_start(struct member *self)
{
    const size_t page = 2 << 20, bytes = (self->count * sizeof(float) + page - 1) / page * page;
    self->values = aligned_alloc(page, bytes);
    ensure(self->values);
    madvise(self->values, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < self->count; i++) self->values[i] = (float)(i % 7);
    if (self->way != GLOO) member_open(self);
    pthread_barrier_wait(&shared->barrier);
    if (self->way != GLOO) member_form(self, self->members);
}

int members_run(enum way way, uint32_t members, size_t bytes, member_body *body, void *arg)
{
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, members);
    char dir[] = "/tmp/group_bench.XXXXXX", command[64];
    int failed = 0;
    ensure(mkdtemp(dir));
    fflush(NULL);
    for (uint32_t place = 0; place < members; place++)
        if (fork() == 0) {
            struct member self = {
                .place = place, .members = members, .way = way, .count = bytes / sizeof(float)
            };
            member_start(&self);
            if (way == GLOO) self.gloo = gloo_new((int)place, (int)members, dir);
            body(&self, arg);
            _exit(0);
        }
    for (uint32_t place = 0; place < members; place++) {
        int status;
        ensure(wait(&status) > 0);
        failed += status != 0;
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ensure(system(command) == 0);
    return failed;
}
