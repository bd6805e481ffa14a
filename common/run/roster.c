// roster -- members by index and by key. roster_put changes both orders and the counts together.
// The other functions change a member that keeps its index and its key.

#include "common/run/roster.h"
#include "common/base/ensure.h"
#include <string.h>

// The place in by_key where this key is, or would be inserted.
static uint32_t key_place(const struct roster *self, const struct key *key)
{
    uint32_t low = 0, high = self->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (key_compare(&self->members[self->by_key[middle]].key, key) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t roster_find(const struct roster *self, const struct key *key)
{
    const uint32_t place = key_place(self, key);
    if (place == self->count) return NO_MEMBER;
    const uint32_t index = self->by_key[place];
    return key_equal(&self->members[index].key, key) ? index : NO_MEMBER;
}

static void insert_key(struct roster *self, uint32_t index, const struct key *key)
{
    const uint32_t place = key_place(self, key);
    memmove(&self->by_key[place + 1], &self->by_key[place],
            (self->count - place) * sizeof *self->by_key);
    self->by_key[place] = index;
    self->count++;
}

static void remove_key(struct roster *self, const struct key *key)
{
    const uint32_t place = key_place(self, key);
    memmove(&self->by_key[place], &self->by_key[place + 1],
            (self->count - place - 1) * sizeof *self->by_key);
    self->count--;
}

void roster_put(struct roster *self, const struct wire_member *member)
{
    ensure(member->index <= self->count && member->index < MEMBERS_MAX);
    struct wire_member *place = &self->members[member->index];
    if (member->index == self->count) {
        insert_key(self, member->index, &member->key);
    } else {
        self->counts[place->role][place->state]--;
        if (!key_equal(&place->key, &member->key)) {
            remove_key(self, &place->key);
            insert_key(self, member->index, &member->key);
        }
    }
    *place = *member;
    self->counts[member->role][member->state]++;
    self->changed[member->index] = ++self->version;
}

bool roster_load(struct roster *self, uint64_t version, const struct wire_member *members,
                 uint32_t count)
{
    if (count > MEMBERS_MAX) return false;
    for (uint32_t i = 0; i < count; i++)
        if (members[i].index != i) return false;
    memset(self->counts, 0, sizeof self->counts);
    self->count = 0;
    for (uint32_t i = 0; i < count; i++) roster_put(self, &members[i]);
    for (uint32_t i = 0; i < count; i++) self->changed[i] = version;
    self->version = version;
    return true;
}

bool roster_change(struct roster *self, const struct wire_members *change)
{
    uint32_t count = self->count;
    // mutant: roster: a change is taken beyond a gap
    if (self->version < change->from || self->version >= change->version) return false;
    if (self->version == 0 && self->count > 0)
        return false; // They are of another run, or copy of it
    for (uint32_t i = 0; i < change->members_count; i++) {
        const uint32_t index = change->members[i].index;
        // mutant: roster: a full one takes no change
        if (index > count || (index == count && count == MEMBERS_MAX)) return false;
        count += index == count;
    }
    for (uint32_t i = 0; i < change->members_count; i++) roster_put(self, &change->members[i]);
    for (uint32_t i = 0; i < change->members_count; i++)
        self->changed[change->members[i].index] = change->version;
    self->version = change->version;
    return true;
}

uint32_t roster_changes(const struct roster *self, uint64_t since, struct wire_member *lines,
                        uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        // mutant: roster: the newest change is not told
        if (self->changed[i] <= since) continue;
        if (count == max) return max + 1;
        lines[count++] = self->members[i];
    }
    return count;
}

void roster_set_state(struct roster *self, uint32_t index, uint8_t state)
{
    struct wire_member member = self->members[index];
    ensure(index < self->count);
    member.state = state;
    roster_put(self, &member);
}

void roster_move_trainers(struct roster *self, uint8_t from, uint8_t to)
{
    self->version++;
    for (uint32_t i = 0; i < self->count; i++) {
        if (!role_takes_steps(self->members[i].role) || self->members[i].state != from) continue;
        self->members[i].state = to;
        // mutant: roster: who enters an epoch is not told
        self->changed[i] = self->version;
    }
    for (uint8_t role = 0; role < ACTOR_COUNT; role++) {
        if (!role_takes_steps(role)) continue;
        self->counts[role][to] += self->counts[role][from];
        self->counts[role][from] = 0;
    }
}

uint32_t roster_count(const struct roster *self, uint8_t role, uint8_t state)
{
    return self->counts[role][state];
}

uint32_t roster_trainers(const struct roster *self, uint64_t round)
{
    uint32_t count = roster_count(self, ACTOR_TRAINER, MEMBER_HEALTHY) +
                     roster_count(self, ACTOR_TRAINER, MEMBER_PENDING);
    for (uint32_t i = 0; i < self->count; i++) {
        const struct wire_member *member = &self->members[i];
        count += member->role == ACTOR_TRAINER && member->state == MEMBER_DROPPED &&
                 member->dropped_number + ROSTER_DROPPED_ROUNDS > round;
    }
    return count;
}
