// post_office -- the broker's table of names, driven by bytes: eight per event.
//
//     what (HELLO, mail, lost, silence), connection, person, name said, instance, seconds, whose key,
//     label
//
// Names and connections lead to each other, whatever the label, and no two keys share a name.

#include "broker/post_office.h"
#include "common/base/ensure.h"
#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"

#include <string.h>
#include <sys/mman.h>

enum { EVENT_BYTES = 8, ROUTES = 16 };

// Of one byte and more, so that one can begin like another.
static struct route route_of(uint8_t number)
{
    struct route route = { .count = (uint8_t)(1 + number % 5) };
    memset(route.bytes, number % ROUTES / 5, route.count);
    return route;
}

// The name of a person in a role, made up once.
static const char *name_of(int person, uint8_t role)
{
    static char names[EVENT_PEOPLE][ACTOR_COUNT][ACTOR_NAME_MAX + 1];
    char *name = names[person][role];
    if (!name[0]) actor_name(role, &event_people()[person].key, name);
    return name;
}

static void check(struct post_office *office, uint64_t now_ms)
{
    const struct event_person *people = event_people();
    uint32_t found = 0;
    for (int i = 0; i < EVENT_PEOPLE; i++)
        for (uint8_t role = 0; role < ACTOR_COUNT; role++) {
            const char *name = name_of(i, role);
            const struct peer *peer = post_office_named(office, name);
            if (!peer) continue;
            const struct route route = peer->route;
            ensure(actor_name_is_same(peer->name, name) && peer->role == role);
            ensure(actor_name_fits(peer->name, role, &peer->key));
            ensure(role == ACTOR_COORDINATOR || key_equal(&peer->key, &people[i].key));
            const uint64_t heard_ms = peer->heard_ms;
            ensure(heard_ms <= now_ms && post_office_sender(office, &route, heard_ms) == peer);
            ensure(post_office_at(office, &peer->connection) == peer);
            found += role != ACTOR_COORDINATOR || i == 0; // All share the name of that role
        }
    ensure(found == office->count);
}

static void take(struct post_office *office, const uint8_t *event, uint64_t *now_ms)
{
    static const char *const labels[] = { "", "anna", "b-2", "Not sound" };
    const struct event_person *person = &event_people()[event[2] % EVENT_PEOPLE];
    const struct route route = route_of(event[1]);
    struct key connection = { { 0 } }; // Now and then two connections have the same
    memcpy(connection.bytes, route.bytes, event[7] & 128 ? 1 : route.count);
    struct wire_hello hello = { .role = event[3] % ACTOR_COUNT, .instance = event[4] };
    *now_ms += UINT64_C(1000) * (event[5] % 16);
    switch (event[0] % 4) {
    case 0:
        actor_name_with(hello.role, labels[event[7] % 4],
                        event[6] % 8 ? &person->key : &event_people()[0].key, hello.name);
        post_office_hello(office, &route, &person->key, &connection, &hello, false, *now_ms);
        break;
    case 1: post_office_sender(office, &route, *now_ms); break;
    case 2: post_office_forget(office, &route); break;
    case 3: post_office_expire(office, *now_ms); break;
    }
}

// Two words at a time, and unwatched: the tables are large and nearly empty.
__attribute__((no_sanitize("address"))) static uint32_t count_used(const uint32_t *table,
                                                                   size_t words)
{
    uint32_t used = 0;
    for (size_t i = 0; i < words; i += 2) {
        uint64_t two;
        memcpy(&two, table + i, sizeof two);
        if (two) used += (uint32_t)two && two >> 32 ? 2 : 1;
    }
    return used;
}

// The tables keep nothing of an actor that has gone.
static void check_tables(const struct post_office *office)
{
    enum { WORDS = sizeof office->by_route / sizeof *office->by_route };
    _Static_assert(WORDS % 2 == 0 && sizeof office->by_name == sizeof office->by_route,
                   "whole pairs");
    ensure(count_used(office->by_route, WORDS) == office->count);
    ensure(count_used(office->by_name, WORDS) == office->count);
}

bool core_check_post_office(const uint8_t *bytes, size_t count)
{
    static struct post_office *office;
    uint64_t now_ms = 1;
    if (!office)
        office = mmap(NULL, sizeof *office, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(office != MAP_FAILED && madvise(office, sizeof *office, MADV_DONTNEED) == 0);
    for (size_t at = 0; at + EVENT_BYTES <= count && at < 100 * EVENT_BYTES; at += EVENT_BYTES) {
        take(office, bytes + at, &now_ms);
        check(office, now_ms);
    }
    check_tables(office);
    return count >= EVENT_BYTES;
}
