#pragma once
// knock -- who of many endpoints answers a TCP connection? Each connection is closed as soon as it is
// there: nothing is sent.
//
//     struct knock knocks[] = { { .endpoint = "tcp://192.0.2.7:7000" }, .. };
//     knock_all (knocks, count, 3000);
//     if (knocks[0].error) printf ("%s", knock_says (knocks[0].error));    "does not answer"
//
// At most KNOCK_AT_ONCE connections are open at a time, and one thread waits for all of them.

#include <stdint.h>

enum { KNOCK_AT_ONCE = 64 };

struct knock {
    const char *endpoint; // Borrowed, for the call; as endpoint.h has it
    int error; // 0: it answers; ETIMEDOUT: silence; ECANCELED: its turn did not come; EINVAL:
               // no endpoint; else what the kernel says, such as ECONNREFUSED
};

// Begins one connection, without blocking: *ret_fd is writable when it is made, or cannot be
// (SO_ERROR), and the caller's to close. Else an errno, and -1: EINVAL: no endpoint in numbers.
int knock_begin(const char *endpoint, int *ret_fd);

// Returns after `ms` at the latest. So that everybody gets a turn, one that is silent is given up the
// sooner the more there are, but not before a quarter of a second.
void knock_all(struct knock *list, uint32_t count, unsigned ms);

const char *knock_says(int error); // "answers", "refuses the connection", ...
