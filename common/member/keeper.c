// keeper -- in the order of a save: its lists, the shares, what is on record.

#include "common/member/keeper.h"
#include "common/base/ensure.h"
#include "common/member/replica.h"
#include <inttypes.h>
#include <string.h>

enum { RETRY_MS = 500, DOUBLINGS = 5 };

// ---- the lists ----------------------------------------------------------------------------------

void keeper_drop(struct keeper *self, const struct member_turn *turn)
{
    for (uint32_t i = 0; self->step && i < self->count; i++)
        blobs_release(turn->blobs, &self->lists[i], turn->out);
    self->step = 0;
}

void keeper_take(struct keeper *self, const struct member_turn *turn,
                 const struct wire_listed *said, const struct keeper_group *group)
{
    ensure(said->lists_count == group->count && group->count <= KEEPER_PLACES_MAX);
    keeper_drop(self, turn);
    self->in = said->window;
    self->step = said->step;
    self->place = said->place;
    self->count = said->lists_count;
    self->buddies = group->buddies;
    self->apart = group->apart;
    self->retry_ms = 0;
    self->failures = 0;
    self->fetching = self->whole = false;
    self->turn++; // What was asked for before counts no more
    for (uint32_t i = 0; i < said->lists_count; i++) {
        self->lists[i] = said->lists[i];
        self->members[i] = group->members[i];
        if (i == said->place) blobs_have_kept(turn->blobs, &said->lists[i], said->step);
        else blobs_want_kept(turn->blobs, &said->lists[i], said->step, self->members[i]);
    }
}

static bool are_here(const struct keeper *self, const struct blobs *blobs)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (blobs_state(blobs, &self->lists[i]) != BLOB_HERE) return false;
    return true;
}

// ---- the shares ---------------------------------------------------------------------------------

// The other members of the group, our predecessors first: the nearest has the longest part of what we want.
static uint32_t list_holders(const struct keeper *self, const struct member *member,
                             struct wire_holder *ret_list)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < self->count; i++) {
        const uint32_t place = (self->place + self->count - i) % self->count;
        const struct wire_member *at = member_at(member, self->members[place]);
        if (!at || !at->endpoint[0]) continue;
        ret_list[count].key = at->key;
        memcpy(ret_list[count++].endpoint, at->endpoint, sizeof at->endpoint);
    }
    return count;
}

void keeper_look(struct keeper *self, const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    struct wire_holder holders[KEEPER_PLACES_MAX];
    if (!self->step || self->whole || self->fetching || turn->in->now_ms < self->retry_ms ||
        !are_here(self, turn->blobs))
        return;
    self->fetching = true;
    const struct wire_fetch_share job = {
        .turn = ++self->turn,
        .step = self->step,
        .floats = replica->floats,
        .items = replica->items,
        .items_count = replica->items_count,
        .lists = self->lists,
        .lists_count = self->count,
        .place = self->place,
        .buddies = self->buddies,
        .holders = holders,
        .holders_count = list_holders(self, turn->member, holders),
        .apart = self->apart,
    };
    outbox_job(turn->out, PORT_FETCHER, FRAME_FETCH_SHARE, &job);
}

bool keeper_hear(struct keeper *self, const struct member_turn *turn, struct hash *ret_digest)
{
    const struct wire_fetched_share *said = turn->in->body;
    // mutant: keeping: an answer about earlier copies will do
    if (!self->step || !self->fetching || said->turn != self->turn) return false;
    self->fetching = false;
    if (!said->ok) {
        self->retry_ms = turn->in->now_ms + ((uint64_t)RETRY_MS << self->failures);
        self->failures += self->failures < DOUBLINGS;
        outbox_note(turn->out, "memory.incomplete step=%" PRIu64 " reason=\"%s\"; asking again",
                    said->step, said->reason);
        return false;
    }
    // mutant: keeping: a list goes before all have it
    self->whole = true;
    outbox_note(turn->out, "memory.holds step=%" PRIu64 " bytes=%" PRIu64, said->step, said->bytes);
    *ret_digest = said->digest;
    return true;
}

// ---- what is on record --------------------------------------------------------------------------

void keeper_recorded(struct keeper *self, const struct member_turn *turn, uint64_t in,
                     uint64_t step)
{
    if (in < self->kept_in || (in == self->kept_in && step <= self->kept_step)) return;
    self->kept_in = in;
    self->kept_step = step;
    if (self->in == in && self->step == step) keeper_drop(self, turn);
    outbox_job(turn->out, PORT_LEARNER, FRAME_KEPT, &(struct wire_kept){ in, step });
}
