#pragma once
// text_file -- the bytes of one file in their order. A file named *.gz or *.zst is decompressed on
// the way, by zlib and libzstd; all else is handed out as it is.
//
// Reads the bytes that the file had when it was listed: what is appended later is not read, and a
// file that became shorter is FAULT_CORRUPT. So is compressed data that is damaged or ends too
// early. Memory is small, and for .zst as large as its window, at most 128 MiB. Not for two threads
// at once.

#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

typedef struct text_file text_file_t;

// `bytes` of the file are read. Borrows the path. FAULT_NOT_FOUND, FAULT_DENIED, FAULT_IO ...
int text_file_open(const char *path, uint64_t bytes, struct why *why, text_file_t **ret_self);
void text_file_close(text_file_t **self); // NULL is allowed

// The next bytes, at most `max`, which is 1 or more; *ret_count 0 at the end.
int text_file_read(text_file_t *self, uint8_t *out, size_t max, struct why *why, size_t *ret_count);

uint64_t text_file_consumed(const text_file_t *self); // Bytes of the file itself, so far

// The length of a file's name without .gz and .zst: that of the name that says what is in it.
size_t text_file_name(const char *path);
