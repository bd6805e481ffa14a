#include "common/base/large_pages.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 2 << 20 };

void *large_pages_new(size_t bytes)
{
    const size_t align = bytes < PAGE ? LINE : PAGE;
    if (bytes > SIZE_MAX / 2) return NULL;
    void *memory = aligned_alloc(align, (bytes + LINE) / LINE * LINE); // At least one line
    // Whole pages alone: no memory is taken that was not asked for
    if (memory && align == PAGE) madvise(memory, bytes / PAGE * PAGE, MADV_HUGEPAGE);
    return memory;
}
