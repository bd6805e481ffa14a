#pragma once
// large_pages -- memory that is filled once and walked through as a whole. It asks for as many large pages as fit into
// it; the system may refuse. (The first touch of a page of 4 KiB costs as much as hashing the page.)
//
// From malloc's family: free() frees it. It begins at a multiple of 64 bytes. NULL: no memory. Any thread.

#include <stddef.h>

void *large_pages_new(size_t bytes);
