#include "common/base/large_pages.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, PAGE = 2 << 20 };

void *large_pages_new(size_t bytes)
{
    const size_t align = bytes < PAGE ? LINE : PAGE;
    void *memory = NULL;
    if (bytes > SIZE_MAX / 2) return NULL;
    if (posix_memalign(&memory, align, (bytes + LINE) / LINE * LINE) != 0)
        return NULL; // At least one line, also for 0 bytes
    // Only whole large pages: one that is needed in part would take memory that was not asked for
    if (align == PAGE) madvise(memory, bytes / PAGE * PAGE, MADV_HUGEPAGE);
    return memory;
}

// The whole pages within the memory; the rest is before *ret_begin and from *ret_end on. False: there are none.
static bool whole_pages(const uint8_t *memory, size_t bytes, size_t *ret_begin, size_t *ret_end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)memory;
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    *ret_begin = begin - at, *ret_end = end - at;
    return begin < end;
}

void large_pages_zero(void *memory, size_t bytes)
{
    uint8_t *at = memory;
    size_t begin, end;
    // Private memory that is given back is zero when it is touched again (madvise(2))
    if (!whole_pages(at, bytes, &begin, &end) ||
        madvise(at + begin, end - begin, MADV_DONTNEED) < 0) {
        memset(at, 0, bytes);
        return;
    }
    memset(at, 0, begin);
    memset(at + end, 0, bytes - end);
}

void large_pages_release(void *memory, size_t bytes)
{
    uint8_t *at = memory;
    size_t begin, end;
    if (whole_pages(at, bytes, &begin, &end))
        madvise(at + begin, end - begin, MADV_DONTNEED); // Refused: it stays, no more
}
