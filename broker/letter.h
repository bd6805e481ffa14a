#pragma once
// letter -- one letter of the post office: how it is taken off the socket, and how one is sent. What
// mail.c and news.c both stand on.
//
//     in    [routing id][to][frame]       the sender's key is that of the connection, by the word of
//     out   [routing id][from][frame]     the handshake
//
// A receiver for whom too much waits already is sent nothing (backlog.h). One thread.

#include "broker/post_office.h"
#include <zmq.h>

struct broker;

struct delivery {
    struct route sender;
    char to[ACTOR_NAME_MAX + 1];
    const uint8_t *frame; // In `part`
    size_t count;
    struct key user; // The key of the connection
    int fd;          // Its descriptor
    uint32_t parts;  // What came after the routing id: how many parts, and how many bytes they have
    uint64_t bytes;
    bool is_sound; // It is [to][frame], and `to` can be a name
    uint64_t now_ms;
    zmq_msg_t part;
};

enum letter_heard { LETTER_NOTHING, LETTER_TAKEN, LETTER_OF_NOBODY };

// The next letter that waits, if any; never blocks, and takes it off the socket whole. OF_NOBODY: no
// key is proven behind it, and there is nothing to look at. letter_end follows in each case.
enum letter_heard letter_take(void *socket, uint64_t now_ms, struct delivery *ret_letter);
void letter_end(struct delivery *letter);

// False: not sent, and errno says why: EHOSTUNREACH, gone; EAGAIN, too much waits for it already.
bool letter_send(struct broker *self, const struct route *to, const char *from, const void *frame,
                 size_t count);

// A frame of the broker's own; and the one that says why a letter of this kind went nowhere.
void letter_answer(struct broker *self, const struct route *to, uint16_t kind, const void *body);
void letter_refuse(struct broker *self, const struct delivery *letter, const char *to,
                   uint16_t kind, const char *reason);
