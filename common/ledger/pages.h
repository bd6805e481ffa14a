#pragma once
// pages -- whether the file that LMDB keeps is sound, looked at before LMDB does: it believes what
// lies in its pages, and a flipped bit there is a wild pointer, or an older state without a word.
//
//     meta 0, meta 1 ──the newer one──▶ free list     every page of every tree once, each as the one
//                                  └──▶ tables ──▶ tables' trees     above it says; none of them free
//
// Looked at are the numbers, kinds and sizes of all pages, the places and order of all entries,
// their counts, and the free list. That the newer meta is the newest that was written follows from
// three facts: a transaction writes the meta page that its number's lowest bit names, so the two
// numbers are neighbours; and it frees pages under its own number. What the entries say is for
// contents.h. Source of the layout: LMDB 0.9, mdb.c.

#include "common/base/fault.h"
#include <lmdb.h>

// Before the file is opened at all: LMDB looks for the second page where the size that the first one
// names ends, and divides by what the newer of them names. FAULT_CORRUPT, FAULT_IO. A file that is not
// there, or empty, is sound.
int pages_check_front(int dir_fd, const char *dir, struct why *why);

// Of the state that this read transaction sees. FAULT_CORRUPT, with the page; FAULT_IO;
// FAULT_MEMORY; PAGES_OVERTAKEN if another process has written twice since it began: try again.
// Reads each page once: some 250,000 a second.
enum { PAGES_OVERTAKEN = 1 };
int pages_check(MDB_txn *txn, const char *dir, struct why *why);
