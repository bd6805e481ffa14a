#pragma once
// large_pages -- memory that is filled once and walked through as a whole. It asks for as many large pages as fit into
// it; the system may refuse. (The first touch of a page of 4 KiB costs as much as hashing the page.)
//
// From malloc's family: free() frees it. It begins at a multiple of 64 bytes. NULL: no memory. Any thread.

#include <stddef.h>

void *large_pages_new(size_t bytes);

// Makes such memory zeros, or a part of it. Whole pages go back to the system until they are written to: so zeros take
// no memory.
void large_pages_zero(void *memory, size_t bytes);

// Gives the whole pages of a part back to the system. What they hold means nothing until it is written again.
void large_pages_release(void *memory, size_t bytes);
