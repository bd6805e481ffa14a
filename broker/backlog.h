#pragma once
// backlog -- how many bytes wait in the broker's memory for each receiver, and which receivers must
// be cut because of that.
//
// ZeroMQ limits a queue in frames (SNDHWM) and does not report its length. So this file counts
// bytes, as common/net/connections.h does for the incoming direction: the wire bytes that were
// given to the library for a connection, less those that its peer acknowledged (TCP_INFO). The
// limits:
//
//     mail of one receiver        BACKLOG_MAX and a frame: a further letter is undeliverable, and
//                                 its sender is told. The COMMIT, ROUND and ROSTER of 16,384
//                                 members are about 7 MiB
//     mail of the coordinator     BACKLOG_TRUSTED_MAX and a frame: the votes of such a round are
//                                 about 3 MiB each. Mail from others never cuts the coordinator's
//                                 connection
//     mail of all others          BACKLOG_ALL_MAX together: the receivers with the most are cut
//     news                        BACKLOG_NEWS_MAX published and not yet taken: cut. All
//                                 subscribers share one copy, so this limits them all together
//     a stalled receiver          takes nothing for BACKLOG_STALLED_MS while something waits: cut.
//                                 (On Linux 6.18 the kernel's TCP_USER_TIMEOUT never ends while a
//                                 peer that does not read goes on sending)
//
// So at most 320 MiB wait in all, plus what arrives between two sweeps. A sweep comes every second,
// or when memory has grown by 16 MiB. Small letters cost up to twice their bytes on the wire.
//
// Only the library knows the subscriptions. So for a subscriber, all bytes count that were
// published since the last measurement that showed nothing waiting for it.
//
// Pure: descriptors are numbers. It only names the receivers to cut; the caller cuts them. One
// thread.

#include "common/net/connections.h"

enum {
    BACKLOG_MAX = 16 << 20,
    BACKLOG_TRUSTED_MAX = 128 << 20,
    BACKLOG_ALL_MAX = 128 << 20,
    BACKLOG_NEWS_MAX = 64 << 20,
    BACKLOG_STALLED_MS = 30000
};

enum connection_where { AT_MAIL, AT_NEWS, WHERE_COUNT }; // At which socket of the broker

struct backlog;

struct backlog *backlog_new(void);
void backlog_destroy(struct backlog **self_p);

void backlog_opened(struct backlog *self, int fd, enum connection_where where);
// Does nothing if the descriptor has become a connection of the other socket, as in connections.h.
void backlog_closed(struct backlog *self, int fd, enum connection_where where);
void backlog_trust(struct backlog *self, int fd, bool trusted); // True: the coordinator's

// A part of `bytes` bytes was given to the library: for one receiver of mail, or for all
// subscribers.
void backlog_sent(struct backlog *self, int fd, uint64_t bytes);
void backlog_published(struct backlog *self, uint64_t bytes);

// The kernel's counts of a connection: bytes acknowledged since it was opened, and whether the
// kernel holds none for it.
void backlog_measured(struct backlog *self, int fd, uint64_t acknowledged, bool none_wait,
                      uint64_t now_ms);

bool backlog_is_full(struct backlog *self, int fd); // At the last measurement: send it no mail now

// Calls cut(arg, fd) for each receiver above its limit or stalled. Call it after all have been
// measured; a receiver that was never measured is not cut.
void backlog_cut_full(struct backlog *self, uint64_t now_ms, connections_cut *cut, void *arg);
