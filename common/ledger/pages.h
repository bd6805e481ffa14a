#pragma once
// pages -- checks the file of LMDB before LMDB reads it. LMDB trusts the bytes of its pages: a
// flipped bit may become a wild pointer, or silently bring back an older state.
//
//     meta 0, meta 1 ──the newer one──▶ free list     every page of every tree once, each as the one
//                                  └──▶ tables ──▶ tables' trees     above it says; none of them free
//
// The check covers the numbers, kinds and sizes of all pages, the places and order of all entries,
// their counts, and the free list. Two facts show that the newer meta page is the newest that was
// written: a transaction writes the meta page that its number's lowest bit names, so the two
// numbers are neighbours; and it frees pages under its own number. contents.h checks the entries'
// contents. The layout is that of LMDB 0.9, mdb.c.

#include "common/base/fault.h"
#include <lmdb.h>

// Called before LMDB opens the file: LMDB looks for the second page behind the page size that the
// first one names, and divides by the page size of the newer one. FAULT_CORRUPT, FAULT_IO. A
// missing or empty file passes.
int pages_check_front(int dir_fd, const char *dir, struct why *why);

// Checks the state that this read transaction sees. FAULT_CORRUPT, with the page; FAULT_IO;
// FAULT_MEMORY; PAGES_OVERTAKEN if another process has written twice since it began: retry. Reads
// each page once: about 250,000 a second.
enum { PAGES_OVERTAKEN = 1 };
int pages_check(MDB_txn *txn, const char *dir, struct why *why);
