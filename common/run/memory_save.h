#pragma once
// memory_save -- the newest state that lies in the memory of the members of a run, share by share: the durable half.
//
//     copied   each owner of a share has a copy of it, or is told to make one. Its digest is not known yet
//     kept     RECORD_KEPT: each has the copies of its `buddies` predecessors, too. The run can go back there
//
//     share of place p: with the process of place p, or with one of the `buddies` places behind it
//
// `copied_in`, `kept_in`: the number of the window or group in which the copies were made; 0: there are none. There are
// two generations at most. Who makes copies, and when they are dropped, is the pace's.
//
// Pure. One thread.

#include "common/run/run.h"

enum { MEMORY_KEEPERS_MAX = 64 };

struct memory_save {
    struct run_point copied, kept;
    uint64_t copied_in, kept_in;
    struct wire_place keepers
        [MEMORY_KEEPERS_MAX]; // The processes that have the shares, by place. Their links are ""
    uint32_t keepers_count;
};

// Each owner has a copy of its share of the run's present step, or is told to make one.
void memory_save_copied(struct memory_save *self, const struct run *run, uint64_t in);

// The copies that are not kept are dropped, or will not be completed.
void memory_save_forget_copies(struct memory_save *self);

// The copies are kept by these processes. `record` is of the newest copies (ensured).
void memory_save_kept(struct memory_save *self, const struct wire_record_kept *record,
                      const struct wire_place *keepers, uint32_t count);

// The run went back to this step: what is later is given up.
void memory_save_restore(struct memory_save *self, uint64_t step);

// Whether the newest copies are on record already, or there are none.
bool memory_save_is_newest(const struct memory_save *self);

// Whether each share is with a process that is here. False: *ret_place is a place whose share nobody has; UINT32_MAX:
// nothing is kept.
bool memory_save_is_whole(const struct memory_save *self, const struct roster *roster,
                          uint32_t buddies, uint32_t *ret_place);

// Whether to wait for this member: the run is at the step that is kept, no share is lost for certain, and those that are
// here do not have all shares. The member keeps one, its lease ran out, and no other process of its key came.
bool memory_save_may_keep(const struct memory_save *self, const struct run *run, uint32_t buddies,
                          uint32_t member);

bool memory_save_refers_to(const struct memory_save *self, uint32_t member);

// As a part of SNAPSHOT, whose lists point into *self, and back. A snapshot comes from a ledger that was verified.
struct wire_memory_save memory_save_store(const struct memory_save *self);
void memory_save_load(struct memory_save *self, const struct wire_memory_save *from);
