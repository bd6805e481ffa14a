#pragma once
// group_member -- the members of a measured group: processes that share a piece of memory, each with
// a vector and a link to the others.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/crypto/identity.h"
#include "common/group/group.h"

#include <pthread.h>
#include <stddef.h>

enum { MEMBERS_MAX = 8, REPEATS_MAX = 400, WAIT_MS = 60000 };

enum way { PLAIN, SEALED, GLOO, WAYS };

struct shared {
    pthread_barrier_t barrier;
    struct group_member members[MEMBERS_MAX];
    double took_s[REPEATS_MAX][MEMBERS_MAX], waiting_share;
    double died_s, known_s[MEMBERS_MAX], formed_s[MEMBERS_MAX], again_s[MEMBERS_MAX];
    long extra_kib[MEMBERS_MAX];
};
extern struct shared *shared;

struct member {
    uint32_t place, members;
    enum way way;
    uint64_t window, number;
    size_t count;         // Floats
    const char *address;  // NULL: 127.0.0.1
    uint32_t connections; // 0: 1
    float *values;
    group_t *group;
    void *gloo;
};

void member_open(struct member *self);  // Of ours: binds its port, and enters it for the others
void member_start(struct member *self); // Takes the vector, and links with the others
int member_add(struct member *self, struct why *why); // Sums in place
// The next window, of the first `members`.
void member_form(struct member *self, uint32_t members);

typedef void member_body(struct member *self, void *arg);
// Runs members of a way; each ends after the body. Returns how many did not end with 0.
int members_run(enum way way, uint32_t members, size_t bytes, member_body *body, void *arg);

double median(double *values, int count); // Sorts them
void print_processor(void);               // One line: how many, and which
