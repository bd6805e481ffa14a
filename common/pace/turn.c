// turn -- every change of the run is a record, and every message that follows from it comes later
// in the outbox. So no peer learns of a change that is not on disk. First records and phases, then
// members, then answers.

#include "common/pace/turn.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void turn_put(const struct turn *turn, uint16_t kind, const void *record)
{
    struct run *run = turn->run;
    // mutant: a member is admitted before it is stored
    outbox_store(turn->out, kind, record);
    const struct effect *stored = &turn->out->effects[turn->out->count - 1];
    run->chain = run_chain(&run->chain, run->log_seq + 1, kind, stored->body, stored->bytes);
    run_apply(run, kind, record);
}

void turn_put_saved(const struct turn *turn, const struct hash *digest, uint32_t keep)
{
    const struct wire_record_restore *at = &turn->run->save_point.at;
    struct wire_checkpoint record = {
        .epoch = at->epoch, .step = at->step, .digest = *digest, .pieces = true, .keep = keep
    };
    snprintf(record.name, sizeof record.name, "step-%08" PRIu64, record.step);
    turn_put(turn, FRAME_RECORD_CHECKPOINT, &record);
    outbox_note(turn->out, "checkpoint.saved step=%" PRIu64 " in pieces", record.step);
}

void turn_enter(const struct turn *turn, const struct wire_record_phase *record, const char *cause)
{
    const struct run *run = turn->run;
    struct wire_record_phase whole = *record;
    snprintf(whole.cause, sizeof whole.cause, "%s", cause);
    turn_put(turn, FRAME_RECORD_PHASE, &whole);
    turn_arm(turn);
    outbox_note(turn->out, "phase.entered phase=%s epoch=%" PRIu64 " step=%" PRIu64 " cause=\"%s\"",
                run_phase_name(run->phase), run->epoch, run->step, cause);
}

void turn_arm(const struct turn *turn)
{
    const struct rules *rules = turn->rules;
    // mutant: a round takes twice its time, and never less (2)
    const uint32_t lasts_ms[PHASE_COUNT] = {
        [PHASE_WAITING] = rules->waiting_ms,   [PHASE_WARMUP] = rules->warmup_ms,
        [PHASE_TRAIN] = rules->train_ms,       [PHASE_WITNESS] = rules->witness_ms,
        [PHASE_COOLDOWN] = rules->cooldown_ms,
    };
    const uint8_t phase = turn->run->phase;
    const bool ends = phase != PHASE_FINISHED && phase != PHASE_PAUSED;
    turn->presence->deadline_ms = ends ? turn->now_ms + lasts_ms[phase] : UINT64_MAX;
}

// ---- members ------------------------------------------------------------------------------------

uint32_t turn_member(const struct turn *turn, const struct msg *in)
{
    const struct roster *roster = &turn->run->roster;
    const uint32_t index = roster_find(roster, &in->sender);
    if (index == NO_MEMBER || roster->members[index].state == MEMBER_DROPPED ||
        roster->members[index].state == MEMBER_WITHDRAWN) {
        turn_refuse(turn, in, REFUSAL_NOT_MEMBER, 0,
                    index == NO_MEMBER
                        ? "not a member of this run; JOIN first"
                        : "the lease ran out or the member left; JOIN again for the next epoch");
        return NO_MEMBER;
    }
    // mutant: guilt: an ejected member is heard
    if (roster->members[index].state == MEMBER_EJECTED) {
        turn_refuse(turn, in, REFUSAL_EJECTED, 0, "this identity was ejected; give up");
        return NO_MEMBER;
    }
    // A member's incarnation is its instance: refuse a late message of its earlier process.
    if (in->incarnation != 0 && in->incarnation < roster->members[index].instance) {
        turn_refuse_older(turn, in, in->incarnation);
        return NO_MEMBER;
    }
    turn->presence->heard_ms[index] = turn->now_ms;
    return index;
}

bool turn_is_live(const struct turn *turn, uint32_t member)
{
    return turn->run->roster.members[member].state == MEMBER_HEALTHY;
}

uint32_t turn_count_missing(const struct turn *turn)
{
    if (turn->run->phase != PHASE_WAITING) return 0;
    const uint32_t wanted = turn->rules->init_min_clients;
    const uint32_t pending = roster_count(&turn->run->roster, ACTOR_TRAINER, MEMBER_PENDING);
    return pending < wanted ? wanted - pending : 0;
}

void turn_set_state(const struct turn *turn, uint32_t index, uint8_t state)
{
    struct wire_member member = turn->run->roster.members[index];
    member.state = state;
    if (state == MEMBER_DROPPED) member.dropped_number = turn->run->number;
    turn_put(turn, FRAME_RECORD_MEMBER, &member);
    turn_tell_roster(turn); // Other members may be waiting for it
    outbox_note(turn->out, "member.%s name=%s index=%u",
                wire_enum_name(&wire_enum_member_state, state), member.name, index);
}

void turn_tell_roster(const struct turn *turn)
{
    turn->presence->roster_changed = true;
    turn->presence->roster_ms = 0;
}

void turn_tell_roster_later(const struct turn *turn, uint32_t delay_ms)
{
    if (!turn->presence->roster_changed) turn->presence->roster_ms = turn->now_ms + delay_ms;
    turn->presence->roster_changed = true;
}

// ---- answers ------------------------------------------------------------------------------------

void turn_ack(const struct turn *turn, const struct msg *in, uint64_t round,
              const struct hash *hash)
{
    struct wire_ack ack = { .kind = in->kind, .round = round };
    if (hash) ack.hash = *hash;
    outbox_mail(turn->out, in->from, FRAME_ACK, &ack);
}

void turn_refuse(const struct turn *turn, const struct msg *in, uint8_t reason, uint64_t round,
                 const char *format, ...)
{
    struct wire_refused refused = { .kind = in->kind, .reason = reason, .round = round };
    va_list args;
    va_start(args, format);
    vsnprintf(refused.text, sizeof refused.text, format, args);
    va_end(args);
    if (in->from[0]) outbox_mail(turn->out, in->from, FRAME_REFUSED, &refused);
}

// Mail to this name reaches the newer process, so the refusal names the instance that is refused.
void turn_refuse_older(const struct turn *turn, const struct msg *in, uint64_t instance)
{
    turn_refuse(turn, in, REFUSAL_REPLACED, instance,
                "a newer process uses this identity; stop one of "
                "the two, an identity is for one process");
}

void turn_mail_refusal(const struct turn *turn, const char *to, uint16_t kind, uint8_t reason,
                       uint64_t round, const char *text)
{
    struct wire_refused refused = { .kind = kind, .reason = reason, .round = round };
    snprintf(refused.text, sizeof refused.text, "%s", text);
    outbox_mail(turn->out, to, FRAME_REFUSED, &refused);
}
