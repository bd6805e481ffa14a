#pragma once
// pages -- memory that ends where a page without access begins, and begins behind another one. Whoever touches what is
// behind its end dies of SIGSEGV, also in assembly, which no sanitizer sees.

#include <sys/mman.h>
#include <unistd.h>

static inline size_t pages_room(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

// At its end: `bytes` is a multiple of what its elements are aligned to.
static inline void *pages_new(size_t bytes)
{
    const size_t page = pages_room(1), room = pages_room(bytes);
    char *all = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    if (room) assert_int_equal(mprotect(all + page, room, PROT_READ | PROT_WRITE), 0);
    return all + page + room - bytes;
}

static inline void pages_free(void *memory, size_t bytes)
{
    const size_t page = pages_room(1), room = pages_room(bytes);
    assert_int_equal(munmap((char *)memory + bytes - room - page, room + 2 * page), 0);
}
