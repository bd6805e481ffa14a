#pragma once
// tap -- observes one run, and sends an operator's mail. `zmq-monitor`, `shoal status` and the
// demo's observer use it.
//
//     tap_open ─▶ HELLO ─▶ WELCOME ─▶ RECALL ─▶ last value of each state topic ─▶ TAP_COMPLETE
//                                               every broadcast from then on   ─▶ TAP_FRAME ...
//
// Right after the RECALL the tap sends a letter to a name that no actor has. Mail keeps its order,
// so when that letter comes back as undeliverable, all of the kept state has arrived.
//
// A tap slows no other actor: its queues are bounded, and the broker drops the broadcasts that do
// not fit; TAP_COMPLETE says nothing about those. It needs no key: without one it makes an identity
// for this process. One thread.

#include "common/actor/last_heard.h"
#include "common/actor/post.h"

struct tap_options {
    const struct ticket *broker;     // Copied
    const char *run;                 // Kept by the caller until tap_close
    const struct identity *identity; // Borrowed; NULL: a new one
    uint8_t role;                    // ACTOR_MONITOR or ACTOR_OPERATOR
    const uint16_t *kinds;           // News to hear, kinds_count of them; NULL: all
    size_t kinds_count;
};

enum tap_result {
    TAP_NOTHING,
    TAP_FRAME,    // A frame; its signature has been verified if its kind requires one
    TAP_COMPLETE, // All state that the broker keeps of the run has arrived
    TAP_BAD,      // A frame that was dropped; letter.reason tells why
    TAP_HEARD,    // An answer to tap_ask_heard; see tap_heard
};

struct tap;

int tap_open(const struct tap_options *options, struct why *why, struct tap **ret_tap);
void tap_close(struct tap **self_p); // NULL is allowed

// Blocks until a frame can be taken, `fd` is readable (-1: none), or the monotonic clock reaches
// `until_ms`; at most a second. True if `fd` is readable.
bool tap_wait(struct tap *self, int fd, uint64_t until_ms);

// Takes the next frame; call it until TAP_NOTHING. The letter's pointers live until the next call.
enum tap_result tap_take(struct tap *self, struct letter *ret_letter);

bool tap_mail(struct tap *self, const char *to, uint16_t kind, const void *body);

// Asks the broker when it last heard the actor of that name (last_heard.h). The answer comes as
// TAP_HEARD; tap_heard reads it and returns the name, or NULL if the letter is something else.
void tap_ask_heard(struct tap *self, const char *name);
const char *tap_heard(const struct letter *letter, struct last_heard *ret_heard);

// The identity in use: the one that was given, or the one that was made. Lives as long as the tap.
const struct identity *tap_identity(const struct tap *self);

bool tap_is_connected(const struct tap *self);  // The broker has answered at least once
bool tap_is_refused(const struct tap *self);    // The broker does not let our key in: give up
bool tap_knows_run(const struct tap *self);     // The broker has had news of the run
uint64_t tap_silent_ms(const struct tap *self); // How long the broker has been silent

// Returns FAULT_DENIED if the broker does not let our key in, else FAULT_UNREACHABLE. The text
// tells why no broker answers at `address`, if that is known.
int tap_no_answer(const struct tap *self, const char *address, unsigned patience_ms,
                  struct why *why);

// The head of the letter, as wire_print_json takes it.
struct wire_head tap_head(const struct letter *letter);

// Reads a list such as "RUN,COMMIT": kinds of news, at most `max`. FAULT_USAGE names the word that
// is not a kind, and the nearest kind.
int tap_parse_topics(const char *list, size_t max, struct why *why, uint16_t *ret_kinds,
                     size_t *ret_count);
