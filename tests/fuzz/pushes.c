// What trainers and servers of an asynchronous run read of each other, and what a server makes of it (async_header.h,
// async_server.h). The first byte chooses:
//
//     'q', 'a'   the rest is the header of a question, or of an answer: it is refused, or means what its bytes say
//     's'        a server's life: groups begin, and questions come, of eight bytes each
//
// A server's life is accepted if a push was applied.

#include "common/base/ensure.h"
#include "common/learner/async_header.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"

#include <math.h>
#include <string.h>

enum { FLOATS = 4, TRAINERS = 5, OPERATION = 8 };

static bool check_question(const uint8_t *bytes, size_t count)
{
    uint8_t again[ASYNC_QUESTION_BYTES];
    struct async_push push;
    enum async_kind kind;
    if (!async_question_unpack(bytes, count, 3, &kind, &push)) return false;
    ensure(count == ASYNC_QUESTION_BYTES && push.member == 3 && async_is_rate(push.rate));
    async_question_pack(kind, &push, again);
    ensure(memcmp(bytes, again, count) == 0);
    return true;
}

static bool check_answer(const uint8_t *bytes, size_t count)
{
    uint8_t again[ASYNC_ANSWER_BYTES];
    struct async_answer answer;
    if (!async_answer_unpack(bytes, count, &answer)) return false;
    ensure(count == ASYNC_ANSWER_BYTES && async_verdict_text(answer.verdict)[0]);
    async_answer_pack(&answer, again);
    ensure(memcmp(bytes, again, count) == 0);
    return true;
}

// Small numbers, so that some of them fit; one in many is as large as can be.
static uint64_t number(uint8_t byte) { return byte == 255 ? UINT64_MAX : byte % 16; }

static void begin(struct async_server *server, const uint8_t *at)
{
    struct async_member trainers[TRAINERS];
    const uint32_t count = at[1] % (TRAINERS + 1);
    for (uint32_t i = 0; i < count; i++)
        trainers[i] = (struct async_member){ (at[2] + i) % 80, 1 + (at[3] >> i & 1) };
    async_server_begin(server, number(at[4]), trainers, count);
}

// A refusal leaves nothing behind but its count.
static void check_refused(struct async_server before, const struct async_server *after,
                          uint32_t member)
{
    for (int i = 0; i < ASYNC_TRAINERS_MAX; i++)
        if (before.lines[i].instance && before.lines[i].member == member)
            before.lines[i].refusals++;
    ensure(memcmp(&before, after, sizeof before) == 0);
}

static bool push(struct async_server *server, const struct async_push *said, bool finite)
{
    const float gradient[FLOATS] = { 1, -2, finite ? 3 : NAN, 0 };
    const struct async_server before = *server;
    const enum async_verdict verdict = async_server_judge(server, said, gradient, FLOATS);
    ensure(verdict < ASYNC_VERDICTS && verdict != ASYNC_TAKEN);
    ensure(memcmp(&before, server, sizeof before) == 0);
    async_server_settle(server, said, verdict);
    ensure(server->version == before.version + (verdict == ASYNC_APPLY));
    ensure(finite || verdict != ASYNC_APPLY);
    if (async_is_refusal(verdict)) check_refused(before, server, said->member);
    if (verdict != ASYNC_APPLY && verdict != ASYNC_STALE) return false;
    const enum async_verdict again = async_server_judge(server, said, gradient, FLOATS);
    ensure(again == (verdict == ASYNC_APPLY ? ASYNC_APPLIED_BEFORE : ASYNC_STALE));
    return verdict == ASYNC_APPLY;
}

static void pull(struct async_server *server, const struct async_push *said)
{
    const enum async_verdict verdict =
        async_server_judge_pull(server, said->member, said->instance, said->place_number);
    ensure(verdict == ASYNC_TAKEN || async_is_refusal(verdict));
    if (verdict == ASYNC_TAKEN) async_server_pulled(server, said->member);
    const struct async_line *line = async_server_line(server, said->member);
    ensure(verdict != ASYNC_TAKEN || line->pulled == server->version);
}

static bool live(const uint8_t *bytes, size_t count)
{
    struct async_server server;
    bool applied = false;
    if (count == 0) return false;
    async_server_init(&server, bytes[0] * 50u);
    for (const uint8_t *at = bytes + 1; (size_t)(bytes + count - at) >= OPERATION;
         at += OPERATION) {
        const struct async_push said = { .member = at[1] % 80,
                                         .instance = 1 + at[2] % 2,
                                         .sequence = number(at[3]),
                                         .lease = number(at[4]),
                                         .place_number = number(at[5]),
                                         .version = number(at[6]),
                                         .rate = 1 };
        switch (at[0] % 4) {
        case 0: begin(&server, at); break;
        case 1: pull(&server, &said); break;
        default: applied |= push(&server, &said, at[7] != 255); break;
        }
        ensure(async_server_is_sound(&server));
    }
    return applied;
}

bool pushes_fuzz_check(const uint8_t *bytes, size_t count)
{
    if (count == 0) return false;
    switch (bytes[0]) {
    case 'q': return check_question(bytes + 1, count - 1);
    case 'a': return check_answer(bytes + 1, count - 1);
    case 's': return live(bytes + 1, count - 1);
    default: return false;
    }
}

void pushes_fuzz_write_seeds(const char *folder)
{
    static const uint8_t one[] = {
        's', 30, 0, 2, 0, 0, 1, 0, 0, 0, // Trainers 0 and 1, of place 1
        1,   0,  0, 0, 0, 1, 0, 0,       // Trainer 0 pulls
        2,   0,  0, 1, 1, 1, 0, 0,       // ... and pushes
        2,   1,  0, 1, 2, 1, 0, 0,       // Trainer 1 has not pulled
    };
    const struct async_push push = { 0, 7, 1, 5, 2, 9, 0.5f };
    const struct async_answer answer = { ASYNC_APPLY, 10 };
    uint8_t question[1 + ASYNC_QUESTION_BYTES] = "q", pull[1 + ASYNC_QUESTION_BYTES] = "q",
                         said[1 + ASYNC_ANSWER_BYTES] = "a";
    async_question_pack(ASYNC_PUSH, &push, question + 1);
    async_question_pack(ASYNC_PULL, &push, pull + 1);
    async_answer_pack(&answer, said + 1);
    fuzz_write_seed(folder, "accepted-push", question, sizeof question);
    fuzz_write_seed(folder, "accepted-pull", pull, sizeof pull);
    fuzz_write_seed(folder, "accepted-answer", said, sizeof said);
    fuzz_write_seed(folder, "accepted-life", one, sizeof one);
    question[2] = 1; // A byte that is always zero
    fuzz_write_seed(folder, "refused-push", question, sizeof question);
    said[1] = ASYNC_VERDICTS;
    fuzz_write_seed(folder, "refused-answer", said, sizeof said);
}
