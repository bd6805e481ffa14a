#pragma once
// keeping -- memory saves: which are whole, and whether the run can go back to the newest.
//
//     after step k   each member copies its share ─▶ STANDS copied k ─▶ RECORD_STEPS ends at k
//     beside the     hashes of the leaves go round, each fetches
//     steps behind   the shares of its predecessors ─▶ STANDS kept k, the digest ─▶ RECORD_KEPT: k is kept by these
//     a death        the share of place p is with the process of place p, or with one of the `buddies` places behind it
//                    ─▶ RESTORE to k; else to the newest save on a disk
//
// Two generations are in memory: a member drops the copies of an earlier step once it has heard (RUN, STEPS, WINDOW) that a
// later one is on record, and makes no new ones before that. A window that breaks ends what is not recorded by then.
//
// Pure; one thread.

#include "common/pace/windows/windows.h"

// A member has said something (STANDS). If all keep a step that is not on record, the steps up to it are committed now.
void keeping_hear(struct windows *self, const struct turn *turn);

// Records the newest copies as a memory save, if each member of the group that made them has said that it keeps them.
void keeping_register(struct windows *self, const struct turn *turn);

// The newest memory save, if all shares of it are with processes that are here. False: the run cannot go back to it.
// Then, if there is one, `lost` is a member whose share is with nobody; else NO_MEMBER.
bool keeping_point(const struct turn *turn, struct way_back *ret_way);
