#pragma once
// ensure -- what must be true or the program is wrong. On in production, never compiled out: the
// process dies, systemd restarts it, and the record on disk says where it was.

_Noreturn void ensure_failed(const char *what, const char *file, int line);
#define ensure(what) ((what) ? (void)0 : ensure_failed(#what, __FILE__, __LINE__))
