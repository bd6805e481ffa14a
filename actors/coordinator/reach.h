#pragma once
// reach -- can others connect to a member? Decides which questions (REACH) are tried, when a try is
// over, and what the asker is told. reach_shell has the sockets.
//
//     REACH ─▶ reach_hear ─▶ REACH_TRY ─▶ [connect, find the asker's key] ─▶ reach_end ─▶ ACK
//                  └─▶ REACH_SAYS: not now, or what was found before    time is up ┘└─▶ REFUSED
//
// Only a REACH that comes through the broker is heard: the broker has admitted its sender. A key
// may have one address tried at a time, and may begin one try in REACH_AGAIN_MS. The answer of a
// try is kept for REACH_KEPT_MS: the same question gets it without another try. REACH_PLACES keys
// are remembered. Another key takes the place of the one whose try ended first, of those that may
// begin a try again; if none may, it is told to ask again.
//
// The coordinator tries from its own machine: another member may reach less or more than it does.
// So a member may be started without asking.
//
// Pure: a value, no clock, no socket. One thread.

#include "common/actor/msg.h"

enum {
    REACH_PLACES = 256,       // Keys that are remembered
    REACH_TRIES_MAX = 64,     // At once
    REACH_DEADLINE_MS = 3000, // Of a try: three SYNs at most
    REACH_AGAIN_MS = 2000,    // From the start of a key's try to the start of its next
    REACH_KEPT_MS = 5000,     // From the end of a try: the same question gets the same answer
};

// How a try ended.
enum reach_end {
    REACH_PROVED, // The program there has proved that it has the asker's key
    REACH_OTHER,  // Something else is there, or hangs up
    REACH_FAILED, // No connection: `error` is an errno
    REACH_LATE,   // A connection, and no word within the deadline: a stopped process, for example
    REACH_BUSY,   // A program of a run is there, and takes no more probes now
};

struct reach_place {
    struct key key; // None: a free place
    char asker[ACTOR_NAME_MAX + 1], endpoint[128];
    uint64_t number, began_ms, ended_ms;
    bool is_tried; // A try is under way
    uint8_t end;   // Of the try that is over
    int error;
};

struct reach {
    uint32_t tries; // Under way
    struct reach_place places[REACH_PLACES];
};

struct reach_answer {
    char to[ACTOR_NAME_MAX + 1];
    uint16_t kind; // FRAME_ACK or FRAME_REFUSED
    struct wire_ack ack;
    struct wire_refused refused;
};

enum reach_verdict { REACH_NOTHING, REACH_TRY, REACH_SAYS };

// Takes a REACH. REACH_TRY: the shell tries the endpoint of places[*ret_place], which is in
// numbers. REACH_SAYS: *ret_answer is to be sent. REACH_NOTHING: the try that it asks for is under
// way, or the message did not come through the broker.
enum reach_verdict reach_hear(struct reach *self, const struct msg *in, uint32_t *ret_place,
                              struct reach_answer *ret_answer);

// Whether a JOIN of this key is to be ignored: its address is being tried, or was found unreachable
// within the last REACH_KEPT_MS. A member that can be reached repeats its JOIN; another asks again,
// or ends.
bool reach_holds_back(const struct reach *self, const struct key *key, uint64_t now_ms);

// A try is over: what to tell the asker. `error` counts with REACH_FAILED only. If its cause may be
// the coordinator's own machine (no descriptor left, for example), the answer is "not now".
void reach_end(struct reach *self, uint32_t index, enum reach_end end, int error, uint64_t now_ms,
               struct reach_answer *ret_answer);

// The place of a try whose time is up; REACH_PLACES: none. The shell ends it.
uint32_t reach_late(const struct reach *self, uint64_t now_ms);
uint64_t reach_due_ms(const struct reach *self); // When the next one is; UINT64_MAX: never
