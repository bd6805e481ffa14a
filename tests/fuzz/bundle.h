#pragma once
// bundle -- all inputs that a target must be tried with, always, in tests/fuzz/corpus/TARGET.hex.
//
//     accepted-two 0102ff
//     refused-empty
//
// One line is one input: its name, a space, its bytes as hexadecimal digits. Names are letters,
// digits, '-', '_' and '.', and do not begin with a '.', since an unpacked input is a file. Lines
// ascend by name (LC_ALL=C sort), so an input that comes or goes is one line of a diff.
//
// From the root of the source, without libFuzzer (fuzz_main.c):
//
//     replay TARGET                       tries it with its bundle
//     replay --unpack TARGET FOLDER       one file for each input
//     replay --lines FILE...              one line for each file, in the order given

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { BUNDLE_NAME_MAX = 64, BUNDLE_BYTES_MAX = 1 << 20 };

// Borrows all it is given, for the call. `bytes` are a block of just this length, so that a
// sanitizer sees a read beyond them.
typedef void bundle_visit(void *context, const char *name, const uint8_t *bytes, size_t count);

// Calls `visit` for each input, in order. NULL, or a sentence that is overwritten by the next call
// and says which line is malformed (the lines before it have been visited) or that there is none.
const char *bundle_read(FILE *file, bundle_visit *visit, void *context);

// The same for the bundle of a target; from the root of the source.
const char *bundle_read_of(const char *target, bundle_visit *visit, void *context);

// One line. False if `name` is none, or the line cannot be written.
bool bundle_write(FILE *file, const char *name, const uint8_t *bytes, size_t count);
