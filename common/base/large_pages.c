#include "common/base/large_pages.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

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
