// evidence -- takes the records one by one. It checks each against the state that the records
// before it lead to (the roster, the newest number, the step), then applies it to that state. The
// pace checks every record first. Phases, the table of samples and checkpoints are not checked, and
// so not kept.

#include "common/pace/evidence.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void evidence_init(struct evidence *self, const struct rules *rules, evidence_verify_fn *verify)
{
    self->rules = *rules;
    self->verify = verify;
    self->pace = pace_of(rules);
    ensure(self->pace && self->pace->evidence_bytes <= sizeof self->pace_state);
}

bool evidence_refuse(struct evidence *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->text, sizeof self->text, format, args);
    va_end(args);
    return false;
}

const void *evidence_signed(struct evidence *self, unsigned place, const struct wire_bytes *frame,
                            uint16_t kind, const struct key *key)
{
    struct wire_arena arena = { .bytes = self->frames[place], .max = sizeof self->frames[place] };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    if (!wire_unpack(frame->data, frame->count, WIRE_MAIL, &arena, &head, &body, &refusal) ||
        head.kind != kind || strcmp(head.run, self->rules.run_id) != 0 ||
        !key_equal(&head.sender, key) ||
        !self->verify(key, frame->data, wire_signed_bytes(frame->data, frame->count),
                      wire_signature(frame->data, frame->count)))
        return NULL;
    return body;
}

// ---- the beginning, members ---------------------------------------------------------------------

static bool hear_genesis(struct evidence *self, const struct wire_record_genesis *genesis)
{
    const struct rules *rules = &self->rules;
    if (strcmp(genesis->run, rules->run_id) != 0 || !hash_equal(&genesis->config, &rules->config))
        return evidence_refuse(
            self, "the run was begun with another configuration than the one beside it");
    if (genesis->seed != rules->run_seed)
        return evidence_refuse(self, "the run's seed is %" PRIu64 "; its name leads to %" PRIu64,
                               genesis->seed, rules->run_seed);
    if (genesis->epoch != rules->first_epoch || genesis->step != rules->first_step ||
        genesis->cursor != rules->first_position ||
        !hash_equal(&genesis->digest, &rules->genesis_digest))
        return evidence_refuse(self,
                               "the run was begun at epoch %" PRIu64 ", step %" PRIu64
                               ", sample %" PRIu64 "; the configuration says "
                               "%" PRIu64 ", %" PRIu64 ", %" PRIu64 " (or another digest)",
                               genesis->epoch, genesis->step, genesis->cursor, rules->first_epoch,
                               rules->first_step, rules->first_position);
    self->run_seed = genesis->seed;
    self->step = genesis->step;
    return true;
}

static bool hear_start(struct evidence *self, const struct wire_record_start *start)
{
    if (!self->born_unix_ms) self->born_unix_ms = start->unix_ms;
    return true;
}

static bool hear_member(struct evidence *self, const struct wire_member *member)
{
    if (member->index > self->roster.count || member->index >= MEMBERS_MAX)
        return evidence_refuse(self, "a member has index %u, but the next free one is %u",
                               member->index, self->roster.count);
    const uint32_t known = roster_find(&self->roster, &member->key);
    if (known != NO_MEMBER && known != member->index)
        return evidence_refuse(self, "one key has the indices %u and %u", known, member->index);
    if (member->state == MEMBER_EJECTED ||
        (member->index < self->roster.count &&
         self->roster.members[member->index].state == MEMBER_EJECTED))
        return evidence_refuse(self, "member %u is %s without an ejection, or in spite of one",
                               member->index,
                               wire_enum_name(&wire_enum_member_state, member->state));
    static const struct wire_member newcomer;
    const struct wire_member *was = known == NO_MEMBER ? &newcomer : &self->roster.members[known];
    const bool lives_on = known != NO_MEMBER && member->instance == was->instance;
    if (member->joined_number != (lives_on ? was->joined_number : self->number))
        return evidence_refuse(self, "%s joined in number %" PRIu64 "; the newest is %" PRIu64,
                               member->name, member->joined_number, self->number);
    roster_put(&self->roster, member);
    return true;
}

static bool hear_phase(struct evidence *self, const struct wire_record_phase *record)
{
    if (record->phase == PHASE_WARMUP)
        roster_move_trainers(&self->roster, MEMBER_PENDING, MEMBER_HEALTHY);
    if (record->phase == PHASE_WAITING || record->phase == PHASE_PAUSED)
        roster_move_trainers(&self->roster, MEMBER_HEALTHY, MEMBER_PENDING);
    return true;
}

static bool hear_restore(struct evidence *self, const struct wire_record_restore *restore)
{
    if (restore->step > self->step)
        return evidence_refuse(self, "a restore to step %" PRIu64 " at step %" PRIu64,
                               restore->step, self->step);
    self->step = restore->step;
    return true;
}

// ---- records ------------------------------------------------------------------------------------

static bool hear(struct evidence *self, uint16_t kind, const void *body)
{
    switch (kind) {
    case FRAME_RECORD_GENESIS: return hear_genesis(self, body);
    case FRAME_RECORD_START: return hear_start(self, body);
    case FRAME_RECORD_MEMBER: return hear_member(self, body);
    case FRAME_RECORD_PHASE: return hear_phase(self, body);
    case FRAME_RECORD_RESTORE: return hear_restore(self, body);
    default: return true; // Nothing to check
    }
}

bool evidence_hear(struct evidence *self, uint64_t seq, uint16_t kind, const void *body)
{
    if ((kind == FRAME_RECORD_GENESIS) != (seq == 1))
        return evidence_refuse(self,
                               "record %" PRIu64 " is a %s: record 1, and no other, is a GENESIS",
                               seq, wire_kind_name(kind));
    if (self->pace->verifies(self, kind, body) && hear(self, kind, body)) return true;
    char text[EVIDENCE_TEXT_MAX];
    memcpy(text, self->text, sizeof text);
    return evidence_refuse(self, "record %" PRIu64 ": %.350s", seq, text);
}
