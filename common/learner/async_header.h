#pragma once
// async_header -- what a trainer asks of a server of an asynchronous run, and what it is told: the headers of a
// question and its answer over the links of their group (common/group/group.h), beside the floats.
//
//     push    the gradient of the share     ─▶   verdict, version                no floats
//     pull    no floats                     ─▶   verdict, version                the share's parameters, if TAKEN
//
// The rate of a push travels with it: a server knows no schedule. Little-endian, of fixed size. Unpacking is total
// and strict: any other bytes are refused, also a rate that no optimizer takes. Pure; any thread.

#include "common/learner/async_server.h"
#include <stddef.h>

enum async_kind { ASYNC_PUSH = 1, ASYNC_PULL };
enum { ASYNC_QUESTION_BYTES = 48, ASYNC_ANSWER_BYTES = 16 };

// `push`: of a pull only instance and place_number travel. The member does not: a link says whose it is.
void async_question_pack(enum async_kind kind, const struct async_push *push,
                         uint8_t ret_bytes[ASYNC_QUESTION_BYTES]);
// False: no such question. `member` is the one that asks.
bool async_question_unpack(const uint8_t *bytes, size_t count, uint32_t member,
                           enum async_kind *ret_kind, struct async_push *ret_push);

struct async_answer {
    enum async_verdict verdict;
    uint64_t version; // Of the share, behind the push, or of the parameters
};

void async_answer_pack(const struct async_answer *answer, uint8_t ret_bytes[ASYNC_ANSWER_BYTES]);
bool async_answer_unpack(const uint8_t *bytes, size_t count, struct async_answer *ret_answer);
