#pragma once
// tap -- a read-only ear on one run, and the mouth of an operator: what `zmq-monitor`, `shoal
// status` and the demo's observer listen with.
//
//     tap_open ─▶ HELLO ─▶ WELCOME ─▶ RECALL ─▶ last value of each state topic ─▶ TAP_COMPLETE
//                                               every broadcast from then on   ─▶ TAP_FRAME ...
//
// That the kept state has been told is known by a letter to nobody, sent right after the RECALL:
// mail keeps its order, so when it comes back as undeliverable all of the state has come before it.
//
// A tap can slow nobody: its queues are bounded, and what does not fit is lost at the broker. Needs
// no key: without one it makes an identity for this process alone. One thread.

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
    TAP_FRAME,    // A frame whose signature, where it must have one, has been verified
    TAP_COMPLETE, // All that the broker keeps of the run has been heard
    TAP_BAD,      // Something that could not be taken; letter.reason says why
};

struct tap;

int tap_open(const struct tap_options *options, struct why *why, struct tap **ret_tap);
void tap_close(struct tap **self_p); // NULL is allowed

// Waits until something is to be taken, `fd` is readable (-1: none), or `until_ms` of the monotonic
// clock has come; at most a second. True if `fd` is readable.
bool tap_wait(struct tap *self, int fd, uint64_t until_ms);

// What waits: call again until TAP_NOTHING. The letter's pointers live until the next call.
enum tap_result tap_take(struct tap *self, struct letter *ret_letter);

bool tap_mail(struct tap *self, const char *to, uint16_t kind, const void *body);

bool tap_is_connected(const struct tap *self); // The broker has answered at least once

// FAULT_UNREACHABLE, with what is known of why no broker answers at `address`.
int tap_no_answer(const struct tap *self, const char *address, unsigned patience_ms,
                  struct why *why);

// The head of the letter, as wire_print_json takes it.
struct wire_head tap_head(const struct letter *letter);

// "RUN,COMMIT": kinds of news, at most `max`. FAULT_USAGE names the one that is none, and what was
// meant.
int tap_parse_topics(const char *list, size_t max, struct why *why, uint16_t *ret_kinds,
                     size_t *ret_count);
