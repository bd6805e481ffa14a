// seats -- the keys and roles of the run's members. A ROSTER of the coordinator replaces them, a MEMBERS adds and
// removes some. They are sorted by key, since each letter of a member looks its seat up.

#include "broker/broker.h"
#include "common/base/ensure.h"
#include <stdlib.h>
#include <string.h>

static int compare_seats(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    const int order = key_compare(&x->key, &y->key);
    return order ? order : (x->role > y->role) - (x->role < y->role);
}

static struct seat seat_of(const struct wire_member *member)
{
    return (struct seat){ member->key, member->role,
                          member->state == MEMBER_PENDING || member->state == MEMBER_HEALTHY };
}

static struct seat *find_seat(const struct broker *self, const struct seat *seat)
{
    return self->seats_count
               ? bsearch(seat, self->seats, self->seats_count, sizeof *seat, compare_seats)
               : NULL;
}

void broker_keep_seats(struct broker *self, const struct wire_roster *roster)
{
    free(self->seats);
    self->seats = calloc((size_t)roster->members_count + 1, sizeof *self->seats);
    self->seats_count = 0;
    ensure(self->seats);
    for (uint32_t i = 0; i < roster->members_count; i++)
        if (roster->members[i].state != MEMBER_EJECTED)
            self->seats[self->seats_count++] = seat_of(&roster->members[i]);
    qsort(self->seats, self->seats_count, sizeof *self->seats, compare_seats);
}

// Ignored before the first ROSTER. A member whose index another key has taken keeps its seat until the next ROSTER.
void broker_change_seats(struct broker *self, const struct wire_members *change)
{
    if (!self->seats) return;
    self->seats =
        realloc(self->seats, (self->seats_count + change->members_count + 1) * sizeof *self->seats);
    ensure(self->seats);
    uint32_t count = self->seats_count;
    for (uint32_t i = 0; i < change->members_count; i++) {
        const struct seat seat = seat_of(&change->members[i]);
        struct seat *found = find_seat(self, &seat);
        if (found) *found = seat;
        else if (change->members[i].state != MEMBER_EJECTED) self->seats[count++] = seat;
    }
    self->seats_count = count;
    qsort(self->seats, self->seats_count, sizeof *self->seats, compare_seats);
    for (uint32_t i = 0; i < change->members_count; i++) {
        const struct wire_member *member = &change->members[i];
        struct seat *seat =
            find_seat(self, &(struct seat){ .key = member->key, .role = member->role });
        if (member->state != MEMBER_EJECTED || !seat) continue;
        self->seats_count--;
        memmove(seat, seat + 1, (size_t)(self->seats + self->seats_count - seat) * sizeof *seat);
    }
}

bool broker_has_seat(const struct broker *self, const struct key *key, uint8_t role)
{
    const struct seat seat = { .key = *key, .role = role };
    if (role == ACTOR_COORDINATOR) return admission_is_owner(self->admission, key);
    return find_seat(self, &seat);
}

bool broker_takes_part(const struct broker *self, const struct peer *peer)
{
    if (!self->seats) return true;
    if (peer->role == ACTOR_COORDINATOR) return admission_is_owner(self->admission, &peer->key);
    const struct seat seat = { .key = peer->key, .role = peer->role };
    const struct seat *found = find_seat(self, &seat);
    return found && found->takes_part;
}
