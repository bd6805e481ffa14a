#pragma once
// journal -- one small record that survives a crash: the last promises of a member. Two slots in
// one file are written in turn, each with a number and a hash; the newest whole one counts. So a
// crash in the middle of a write leaves the previous record, and a write costs one fdatasync.
//
//     struct journal *journal;
//     rc = journal_open(dir, &why, &journal);             // takes the directory's lock as well
//     count = journal_read(journal, &bytes); rc = journal_write(journal, bytes, count, &why);
//
// One process (instance_lock on <dir>/lock; FAULT_BUSY names the holder), one thread.

#include "common/base/fault.h"
#include <stdint.h>

enum { JOURNAL_RECORD_MAX = 3968 };

struct journal;

// Makes the directory (0700) if it does not exist. The names of directory and file are durable when
// it returns. FAULT_CORRUPT if both slots are damaged.
int journal_open(const char *dir, struct why *why, struct journal **ret_journal);
void journal_close(struct journal **self_p);

// The newest record: its bytes, borrowed until the next write, and their count; 0: none yet.
size_t journal_read(const struct journal *self, const uint8_t **ret_bytes);

// Durable when it returns 0.
int journal_write(struct journal *self, const void *bytes, size_t count, struct why *why);
