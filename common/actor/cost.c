#include "common/actor/cost.h"
#include "common/base/ensure.h"

uint64_t cost_of_hearing(uint16_t kind, uint64_t bytes)
{
    const unsigned flags = wire_kind_flags(kind);
    const unsigned signatures = (flags & WIRE_SIGNED ? 1u : 0) + (flags & WIRE_COPY ? 1u : 0);
    return COST_HEAR_US + signatures * COST_VERIFY_US + bytes / COST_BYTES_A_US;
}

// The body is a few numbers and a name without lists, so a small arena is enough.
static uint64_t of_commits(const struct effect *effect)
{
    _Alignas(8) uint8_t memory[4 * sizeof(struct wire_send_commits)];
    struct wire_arena arena = { .bytes = memory, .max = sizeof memory };
    struct wire_refusal refusal;
    const void *body;
    ensure(wire_unpack_body(effect->body, effect->bytes, effect->kind, &arena, &body, &refusal));
    const struct wire_send_commits *job = body;
    // mutant: cost: what is read from the ledger is free
    return (uint64_t)job->count * (COST_READ_US + COST_SAY_US);
}

uint64_t cost_of_effect(const struct effect *effect)
{
    const uint64_t bytes_us = effect->bytes / COST_BYTES_A_US;
    switch (effect->port) {
    case PORT_MAIL:
    case PORT_NEWS: return COST_SAY_US + bytes_us;
    case PORT_DISK:
        return effect->kind == FRAME_SEND_COMMITS ? of_commits(effect) : COST_STORE_US + bytes_us;
    default: return 0;
    }
}

uint64_t cost_of_effects(const struct outbox *out, uint32_t count)
{
    uint64_t us = 0;
    for (uint32_t i = count; i < out->count; i++) us += cost_of_effect(&out->effects[i]);
    return us;
}

// Frames for each kind. Beside it: how often an honest sender needs the kind at most, and the work
// that it causes. CLAIM, REVEAL and ACK are all that a member may send to another member
// (broker/post_office.c). They cost more than their work, because each goes down the receiver's
// line as a whole: 2,000 frames a second are 166 REVEAL or CLAIM or 333 ACK, which is at most 1
// Mbit/s. An honest member needs less than half of its budget for them. With 64 elected witnesses
// that have all lost the news, a trainer sends 63 CLAIM a second (MEMBER_RETRY_MS): 756 frames. One
// of these witnesses acknowledges as many of 64 trainers: 378 frames. A REVEAL comes out of what
// each round adds (COST_ROUND_FRAMES); rounds so quick that this is more are not for slow lines.
static const struct {
    uint16_t kind;
    uint32_t frames;
} frames[] = {
    { FRAME_ASK, 10 },        // When it is behind, each 700 ms a topic: a roster, or 64 commits
    { FRAME_JOIN, 20 },       // Each 700 ms until it is admitted: a record, a change told to all
    { FRAME_LEAVE, 20 },      // The same, when it goes
    { FRAME_HOLDS, 20 },      // Each 700 ms until it is heard: an answer
    { FRAME_UNREAD, 20 },     // As HOLDS, where a save cannot be read
    { FRAME_PING, 4 },        // One a second, and two a window
    { FRAME_VOTE, 4 },        // One a round, then each 700 ms: an answer
    { FRAME_STANDS, 4 },      // Two a window, and as a vote
    { FRAME_BUSY, 4 },        // One a second, and two a task
    { FRAME_SETTLED, 4 },     // One an epoch, then each second
    { FRAME_GET_TASK, 20 },   // One a task, then each second: a record
    { FRAME_TASK_END, 20 },   // The same
    { FRAME_FINDING, 4 },     // As a vote, for each audit
    { FRAME_CHECKPOINT, 20 }, // One for each checkpoint: a record
    { FRAME_CONTROL, 20 },    // By hand: a record
    { FRAME_REACH, 50 },      // Each few seconds until it is reached: a connection
    { FRAME_POSITION, 20 },   // One for each life: the ledger is read, another signature
    { FRAME_RECALL, 10 },     // One for each connection: the broker sends all that it has kept
    { FRAME_CLAIM, 12 },      // One a second to each elected witness that has not acknowledged it
    { FRAME_REVEAL, 12 },     // One a second to each auditor, until the round ends: a fetch
    { FRAME_ACK, 6 },         // One for each CLAIM that comes by mail
    { FRAME_CLAIM_COPY, 8 },  // Two when a claim differs, one when asked: two signatures
};

uint32_t cost_in_frames(uint16_t kind)
{
    // mutant: cost: letters between members are as cheap as the cheapest
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        if (frames[i].kind == kind) return frames[i].frames;
    return 1;
}
