#pragma once
// large_pages -- memory that is filled once and walked through as a whole: what large pages fit into it are
// asked for, which the system may refuse. A first touch of 4 KiB costs as much as hashing them.
//
// From malloc's family: free() frees it. It begins at a multiple of 64 bytes. NULL: no memory. Any thread.

#include <stddef.h>

void *large_pages_new(size_t bytes);
