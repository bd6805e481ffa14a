#pragma once
// instance_lock -- at most one living process per directory. LMDB lets a second process write to
// the same file, and binding a Unix socket steals it from a running owner, so this lock comes
// first.
//
// The lock is the kernel's (flock): it ends with the process, however the process ends, so nothing
// needs cleaning up. The file stays and has the process id of its last holder.

#include "common/base/fault.h"

// Takes the lock on the file `name` in the directory `dir_fd`. If another process holds it, waits up
// to a second for that one to end, because a process that was just killed still does; then refuses,
// naming it (FAULT_BUSY). `dir` is that directory's name, for the text.
int instance_lock_take(int dir_fd, const char *dir, const char *name, struct why *why, int *ret_fd);

void instance_lock_release(int fd); // -1 is allowed
