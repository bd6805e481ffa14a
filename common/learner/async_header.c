#include "common/learner/async_header.h"
#include "common/base/bytes.h"

#include <string.h>

void async_question_pack(enum async_kind kind, const struct async_push *push,
                         uint8_t ret_bytes[ASYNC_QUESTION_BYTES])
{
    memset(ret_bytes, 0, ASYNC_QUESTION_BYTES);
    ret_bytes[0] = (uint8_t)kind;
    le_put(ret_bytes + 8, push->instance, 8);
    le_put(ret_bytes + 16, push->place_number, 8);
    if (kind == ASYNC_PULL) return;
    uint32_t rate_bits;
    memcpy(&rate_bits, &push->rate, sizeof rate_bits);
    le_put(ret_bytes + 4, rate_bits, 4);
    le_put(ret_bytes + 24, push->sequence, 8);
    le_put(ret_bytes + 32, push->lease, 8);
    le_put(ret_bytes + 40, push->version, 8);
}

static bool are_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i]) return false;
    return true;
}

bool async_question_unpack(const uint8_t *bytes, size_t count, uint32_t member,
                           enum async_kind *ret_kind, struct async_push *ret_push)
{
    if (count != ASYNC_QUESTION_BYTES || !are_zero(bytes + 1, 3)) return false;
    if (bytes[0] != ASYNC_PUSH && bytes[0] != ASYNC_PULL) return false;
    if (bytes[0] == ASYNC_PULL && !(are_zero(bytes + 4, 4) && are_zero(bytes + 24, 24)))
        return false;
    const uint32_t rate_bits = (uint32_t)le_get(bytes + 4, 4);
    float rate;
    memcpy(&rate, &rate_bits, sizeof rate);
    if (!async_is_rate(rate)) return false;
    *ret_kind = bytes[0];
    *ret_push = (struct async_push){ .member = member,
                                     .instance = le_get(bytes + 8, 8),
                                     .place_number = le_get(bytes + 16, 8),
                                     .sequence = le_get(bytes + 24, 8),
                                     .lease = le_get(bytes + 32, 8),
                                     .version = le_get(bytes + 40, 8),
                                     .rate = rate };
    return true;
}

void async_answer_pack(const struct async_answer *answer, uint8_t ret_bytes[ASYNC_ANSWER_BYTES])
{
    memset(ret_bytes, 0, ASYNC_ANSWER_BYTES);
    ret_bytes[0] = (uint8_t)answer->verdict;
    le_put(ret_bytes + 8, answer->version, 8);
}

bool async_answer_unpack(const uint8_t *bytes, size_t count, struct async_answer *ret_answer)
{
    if (count != ASYNC_ANSWER_BYTES || bytes[0] >= ASYNC_VERDICTS || !are_zero(bytes + 1, 7))
        return false;
    *ret_answer = (struct async_answer){ bytes[0], le_get(bytes + 8, 8) };
    return true;
}
