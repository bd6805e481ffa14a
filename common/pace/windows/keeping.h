#pragma once
// keeping -- memory saves: which are whole, and whether the run can go back to the newest.
//
//     after step k   each owner of a share copies it ─▶ STANDS copied k ─▶ RECORD_STEPS ends at k
//     beside the     hashes of the leaves go round, each fetches
//     steps behind   the shares of its predecessors ─▶ STANDS kept k, the digest ─▶ RECORD_KEPT: memory save k, and who keeps it
//     a death        the share of place p is with the process of place p, or with one of the `buddies` places behind it
//                    ─▶ RESTORE to k; else to the newest save on a disk
//
// At most two generations are in memory: the one on record and the next. A member makes the next copies only once it has
// heard (RUN, STEPS, WINDOW) that its newest are on record, and drops the older ones then. When a window breaks, copies
// that are not on record are dropped.
//
// Pure; one thread.

#include "common/pace/windows/windows.h"

// A member has said something (STANDS). If all keep a step that is not on record, the steps up to it are committed now.
void keeping_hear(struct windows *self, const struct turn *turn);

// Records the newest copies as a memory save, if each member of the group that made them has said that it keeps them.
void keeping_register(struct windows *self, const struct turn *turn);

// True: all shares of the newest memory save are with processes that are here; *ret_way says where it leads. False:
// `lost` is a member whose share nobody has; NO_MEMBER: there is no memory save.
bool keeping_point(const struct turn *turn, struct way_back *ret_way);
