// windows_member_keep -- the member's part of memory saves (keeping.h).
//
// 1. The learner says that all members of the group have copies of a step, and which blobs have the hashes of their
//    leaves (LISTED). Ours is here; the others are fetched from their members.
// 2. Once all are here, the fetcher is told to fetch the shares of our predecessors (FETCH_SHARE), as often as it takes:
//    after half a second, then twice as long each time, 16 seconds at most. Lists that do not fit fail each time.
// 3. Its answer is the digest of that step. It is said in each STANDS from then on.
// 4. When RUN, STEPS or WINDOW says that it is on record, all members have their parts: the lists are released, and the
//    learner drops older copies.
//
// With parameter servers all this is among them: the trainers keep nothing.
//
// A window with `drops` ends a memory save that is not on record by then.

#include "common/pace/windows/windows_member.h"
#include <inttypes.h>
#include <string.h>

enum { KEEP_RETRY_MS = 500, KEEP_DOUBLINGS = 5 };

// ---- the lists ----------------------------------------------------------------------------------

// Ends the save in hand. An answer of the fetcher that is still to come is ignored.
void windows_member_keep_drop(struct windows_member *self, const struct member_turn *turn)
{
    struct windows_keeping *keeping = &self->keeping;
    for (uint32_t i = 0; keeping->step && i < keeping->count; i++)
        blobs_release(turn->blobs, &keeping->lists[i], turn->out);
    keeping->step = 0;
}

static void hear_listed(struct windows_member *self, const struct member_turn *turn,
                        const struct wire_listed *said)
{
    struct windows_keeping *keeping = &self->keeping;
    const struct wire_window *newest = windows_member_newest(self);
    windows_member_keep_drop(self, turn);
    const uint32_t servers = windows_config_of(&turn->member->config)->servers;
    const uint32_t owners = servers ? servers : newest->group_count;
    if (!windows_member_in_hand(self) || said->lists_count != owners ||
        newest->group_count < owners)
        return;
    keeping->window = said->window;
    keeping->step = said->step;
    keeping->place = said->place;
    keeping->count = said->lists_count;
    keeping->retry_ms = 0;
    keeping->failures = 0;
    keeping->fetching = keeping->whole = false;
    keeping->turn++; // What was asked for before counts no more
    for (uint32_t i = 0; i < said->lists_count; i++) {
        keeping->lists[i] = said->lists[i];
        keeping->members[i] = newest->group[newest->group_count - owners + i].member;
        if (i == said->place) blobs_have_kept(turn->blobs, &said->lists[i], said->step);
        else blobs_want_kept(turn->blobs, &said->lists[i], said->step, keeping->members[i]);
    }
}

static bool are_here(const struct windows_keeping *keeping, const struct blobs *blobs)
{
    for (uint32_t i = 0; i < keeping->count; i++)
        if (blobs_state(blobs, &keeping->lists[i]) != BLOB_HERE) return false;
    return true;
}

// ---- the shares ---------------------------------------------------------------------------------

// The other members of the group, our predecessors first: the nearest has the longest part of what we want.
static uint32_t list_holders(const struct windows_keeping *keeping, const struct member *member,
                             struct wire_holder *ret_list)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < keeping->count; i++) {
        const uint32_t place = (keeping->place + keeping->count - i) % keeping->count;
        const struct wire_member *at = member_at(member, keeping->members[place]);
        if (!at || !at->endpoint[0]) continue;
        ret_list[count].key = at->key;
        memcpy(ret_list[count++].endpoint, at->endpoint, sizeof at->endpoint);
    }
    return count;
}

void windows_member_keep_look(struct windows_member *self, const struct member_turn *turn)
{
    struct windows_keeping *keeping = &self->keeping;
    const struct replica *replica = turn->replica;
    struct wire_holder holders[WINDOW_MEMBERS_MAX];
    if (!keeping->step || keeping->whole || keeping->fetching ||
        turn->in->now_ms < keeping->retry_ms || !are_here(keeping, turn->blobs))
        return;
    keeping->fetching = true;
    const struct wire_fetch_share job = {
        .turn = ++keeping->turn,
        .step = keeping->step,
        .floats = replica->floats,
        .items = replica->items,
        .items_count = replica->items_count,
        .lists = keeping->lists,
        .lists_count = keeping->count,
        .place = keeping->place,
        .buddies = windows_config_of(&turn->member->config)->buddies,
        .holders = holders,
        .holders_count = list_holders(keeping, turn->member, holders),
    };
    outbox_job(turn->out, PORT_FETCHER, FRAME_FETCH_SHARE, &job);
}

static void hear_fetched(struct windows_member *self, const struct member_turn *turn,
                         const struct wire_fetched_share *said)
{
    struct windows_keeping *keeping = &self->keeping;
    // mutant: keeping: an answer about earlier copies will do
    if (!keeping->step || !keeping->fetching || said->turn != keeping->turn) return;
    keeping->fetching = false;
    if (!said->ok) {
        keeping->retry_ms = turn->in->now_ms + ((uint64_t)KEEP_RETRY_MS << keeping->failures);
        keeping->failures += keeping->failures < KEEP_DOUBLINGS;
        outbox_note(turn->out, "memory.incomplete step=%" PRIu64 " reason=\"%s\"; asking again",
                    said->step, said->reason);
        return;
    }
    self->stands.kept = said->digest;
    self->stands.kept_step = keeping->step;
    self->stands.kept_window = keeping->window;
    self->say_ms = 0;
    // mutant: keeping: a list goes before all have it
    keeping->whole = true;
    outbox_note(turn->out, "memory.holds step=%" PRIu64 " bytes=%" PRIu64, said->step, said->bytes);
}

void windows_member_keep_hear(struct windows_member *self, const struct member_turn *turn)
{
    switch (turn->in->kind) {
    case FRAME_LISTED: hear_listed(self, turn, turn->in->body); break;
    case FRAME_FETCHED_SHARE: hear_fetched(self, turn, turn->in->body); break;
    }
}

// ---- what is on record --------------------------------------------------------------------------

void windows_member_keep_recorded(struct windows_member *self, const struct member_turn *turn,
                                  uint64_t window, uint64_t step)
{
    if (window < self->kept_window || (window == self->kept_window && step <= self->kept_step))
        return;
    self->kept_window = window;
    self->kept_step = step;
    if (self->keeping.window == window && self->keeping.step == step)
        windows_member_keep_drop(self, turn);
    outbox_job(turn->out, PORT_LEARNER, FRAME_KEPT, &(struct wire_kept){ window, step });
}
