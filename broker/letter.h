#pragma once
// letter -- takes one letter off the mail socket, and sends one. mail.c and news.c both use it.
//
//     in    [routing id][to][frame]
//     out   [routing id][from][frame]
//
// The sender's key is that of the connection, as the handshake proved it.
//
// Nothing is sent to a receiver for which too many bytes wait already (backlog.h). One thread.

#include "broker/post_office.h"
#include <zmq.h>

struct broker;

// Not to be copied: `frame` may lie within the struct itself (`part`).
struct delivery {
    struct route sender;
    char to[ACTOR_NAME_MAX + 1];
    const uint8_t *frame; // It lies in `part`
    size_t count;         // Bytes of the frame
    struct key user;      // The key of the connection
    int fd;               // The file descriptor of the connection
    uint32_t parts;       // The number of parts after the routing id
    uint64_t bytes;       // The bytes of those parts together
    bool is_sound;        // The parts are [to][frame], and `to` has the form of a name
    uint64_t now_ms;
    zmq_msg_t part;
};

enum letter_result { LETTER_NONE, LETTER_TAKEN, LETTER_DROPPED };

// Takes the next waiting letter off the socket whole; never blocks. LETTER_DROPPED: its connection
// has no proven key, or the letter has no part but the routing id; do not read it. Call letter_end
// after every call, also after LETTER_NONE.
enum letter_result letter_take(void *socket, uint64_t now_ms, struct delivery *ret_letter);
void letter_end(struct delivery *letter);

// False: not sent. errno is EHOSTUNREACH if the connection is gone, EAGAIN if too much waits for
// it.
bool letter_send(struct broker *self, const struct route *to, const char *from, const void *frame,
                 size_t count);

// letter_answer sends a frame of the broker's own. letter_refuse sends UNDELIVERABLE: a letter of
// this kind to `to` was not delivered, for this reason.
void letter_answer(struct broker *self, const struct route *to, uint16_t kind, const void *body);
void letter_refuse(struct broker *self, const struct delivery *letter, const char *to,
                   uint16_t kind, const char *reason);
