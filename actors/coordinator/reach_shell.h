#pragma once
// reach_shell -- the sockets of reach: tries addresses without blocking, and tells what it found.
//
//     connect ─▶ probe for the asker's key (common/net/handshake.h) ─▶ its answer ─▶ hang up
//
// reach_shell_fd is readable when reach_shell_take has something to do: epoll, with a timer in it. An
// address is in numbers, so nothing is looked up. A try costs a descriptor for REACH_DEADLINE_MS at
// most. One thread.

#include "actors/coordinator/reach.h"
#include "common/base/fault.h"
#include "common/crypto/identity.h"

typedef void reach_tell_fn(void *arg, const struct reach_answer *answer);

struct reach_shell;

// `identity`, borrowed, is ours. `run` is hashed and not kept. `tell` sends an answer to its asker; it is called from
// reach_shell_hear and reach_shell_take. FAULT_BUSY: no descriptor is left, or no memory for one.
int reach_shell_new(const struct identity *identity, const char *run, reach_tell_fn *tell,
                    void *arg, struct why *why, struct reach_shell **ret_shell);
void reach_shell_destroy(struct reach_shell **self_p); // NULL is allowed

int reach_shell_fd(const struct reach_shell *self);
void reach_shell_hear(struct reach_shell *self, const struct msg *in);             // A REACH
bool reach_shell_holds_back(const struct reach_shell *self, const struct msg *in); // A JOIN
void reach_shell_take(struct reach_shell *self);                                   // Never blocks
