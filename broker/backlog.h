#pragma once
// backlog -- what waits in our memory for each receiver, and who has to go because of it.
//
// ZeroMQ bounds a queue in frames (SNDHWM), and does not tell how long it is. So, the counterpart
// of what common/net/connections.h does for what comes in: the bytes that were given to the library for a
// connection, as they are on the wire, less those that its peer has acknowledged, as the kernel
// counts them (TCP_INFO). What bounds what:
//
//     mail of one receiver        BACKLOG_MAX and a frame: a further letter is undeliverable, and its
//                                 sender told so. The COMMIT, ROUND and ROSTER of 16,384 members are
//                                 some 7 MiB
//     mail of the coordinator     BACKLOG_TRUSTED_MAX and a frame: the votes of such a round are some
//                                 3 MiB each. It loses no connection for what others say to it
//     mail of all others          BACKLOG_ALL_MAX together: the receivers with the most are cut off
//     news                        BACKLOG_NEWS_MAX published and not yet taken: cut off. All who wait
//                                 share one copy, so this bounds them all together
//     who takes nothing           BACKLOG_STALLED_MS, while something waits for it: cut off. (The
//                                 kernel's TCP_USER_TIMEOUT never ends, on Linux 6.18, while a peer
//                                 that does not read goes on talking)
//
// So 320 MiB in all, whoever reads and whoever does not, and what comes between two sweeps: one a
// second, or as soon as memory has grown by 16 MiB. Small letters cost up to twice their bytes on the
// wire.
//
// Who subscribed to what only the library knows: for the news everything counts that was published
// since the subscriber was last seen to have taken all.
//
// Pure: descriptors are numbers, and who is to be cut is said, not done. One thread.

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
void backlog_closed(struct backlog *self, int fd);
void backlog_trust(struct backlog *self, int fd, bool trusted); // It is the coordinator's

// A part of so many bytes was given to the library: for one receiver of mail, or to be published.
void backlog_sent(struct backlog *self, int fd, uint64_t bytes);
void backlog_published(struct backlog *self, uint64_t bytes);

// What the kernel says of a connection: bytes acknowledged since it was opened, and whether none
// wait for it there.
void backlog_measured(struct backlog *self, int fd, uint64_t acknowledged, bool none_wait,
                      uint64_t now_ms);

bool backlog_is_full(struct backlog *self, int fd); // As last measured: no mail for it now

// Those that are too far behind, or take nothing; once all have been measured. What was not is not
// cut.
void backlog_cut_full(struct backlog *self, uint64_t now_ms, connections_cut *cut, void *arg);
