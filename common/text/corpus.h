#pragma once
// corpus -- texts of files and folders, as documents, in pieces that fit into memory.
//
// A file named *.jsonl or *.ndjson has a document in each line, a record: the text in one field of a
// JSON object; lines of white space alone are passed over. One named *.json has that, or an array
// of records. A record is bad if it is no JSON, too large, or has no text in that field: a fault,
// or passed over and named. Any other file is one document. Any of them may be compressed, and then
// has .gz or .zst behind its name (text_file.h). A folder stands for all files below it in
// ascending order of path, hidden ones left out; links are followed. Archives are refused by name.
//
// A document is one unit, or several if it is long; the owner's `cut` says where it may be cut. The
// same files give the same units in the same order.
//
// Not for two threads at once, except corpus_check.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum {
    CORPUS_UNIT_BYTES = 1 << 20,  // A longer document is cut, if `cut` allows it
    CORPUS_UNIT_MAX = 64 << 20,   // A longer one without a place to cut is refused
    CORPUS_BATCH_BYTES = 8 << 20, // About how much text corpus_next reads at once
    CORPUS_BATCH_UNITS = 8192,
    CORPUS_FILES_MAX = 1 << 20,
};

// The last offset at or before `count` where the text may be cut, whatever follows; 0: none.
typedef size_t corpus_cut_fn(const void *context, const uint8_t *text, size_t count);

// Hears of a bad record that is passed over: file, line and what is wrong with it.
typedef void corpus_skip_fn(void *context, const char *text);

struct corpus_options {
    const char *field; // Of a record that has the text; borrowed
    corpus_cut_fn *cut;
    const void *context;  // For `cut`; borrowed
    corpus_skip_fn *skip; // NULL: a bad record is a fault
    void *skip_context;   // Borrowed
};

struct corpus_unit {
    uint8_t *text;
    size_t count;
    bool begins, ends;     // The first, the last unit of its document
    const char *path;      // The file it comes from
    uint64_t offset, line; // Its first byte there, decompressed; line: of a record, from 1; else 0
};

typedef struct corpus corpus_t;

// Lists the files. FAULT_NOT_FOUND, FAULT_FORMAT for an empty folder or file and for a path that is
// neither file nor folder, FAULT_UNSUPPORTED, FAULT_LIMIT, FAULT_DENIED, FAULT_IO.
int corpus_open(const char *const *paths, size_t count, const struct corpus_options *options,
                struct why *why, corpus_t **ret_self);
void corpus_close(corpus_t **self);

uint64_t corpus_bytes(const corpus_t *self);      // Of all files
uint64_t corpus_bytes_read(const corpus_t *self); // Of them so far
uint64_t corpus_text_bytes(const corpus_t *self); // Of the units so far
uint64_t corpus_records(const corpus_t *self);    // Read so far, those passed over included
uint64_t corpus_skipped(const corpus_t *self);    // Passed over so far

// The next units, which live until the next call; *ret_count 0 at the end. FAULT_FORMAT with file,
// line and what to do, also at the end if all there was are bad records; FAULT_LIMIT, FAULT_IO.
int corpus_next(corpus_t *self, struct why *why, const struct corpus_unit **ret_units,
                size_t *ret_count);

// FAULT_FORMAT, with its place, if the unit is not valid UTF-8. Any thread.
int corpus_check(const struct corpus_unit *unit, struct why *why);

// The owner cannot use a unit, and why->text says why, its place first. Of a record (line > 0) it is
// passed over like a bad one, if that is wished: 0. Else `fault`.
int corpus_skip(corpus_t *self, const struct corpus_unit *unit, int fault, struct why *why);
