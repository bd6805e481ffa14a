// linking -- keeps the list of trainers that link with one another, tells it, and judges by what they say of it.
//
// 1. Every STANDS makes a list from the roster: first the members of the newest group, then as many parameter servers
//    as the run has, then the trainers and the other servers whose links are known. If it differs from the list before,
//    it gets a new number and is told. What was said of the list before is kept for those that are in both, so that a
//    joiner never makes the links of others doubtful.
// 2. Whose links stand is asked at three places: may a joiner end the epoch, who is in the first window of an epoch,
//    and what is to be said of one that waits. If one cannot be reached, that is said rather than how long another waits.

#include "common/pace/windows/linking.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// A link may take so many heartbeats to come to stand before anything is said of it.
enum { LINKING_BEATS = 3, LISTS_MAX = 65536 }; // LISTS_MAX: in a life of the coordinator

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

static const struct wire_member *member_of(const struct run *run, const struct wire_place *place)
{
    return &run->roster.members[place->member];
}

static uint32_t place_of(const struct linking *self, const struct wire_place *trainer)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->trainers[i].member == trainer->member &&
            self->trainers[i].instance == trainer->instance)
            return i;
    return NO_MEMBER;
}

static bool is_in_group(const struct run *run, const struct wire_place *trainer)
{
    return standing_is_intact(run, trainer) &&
           window_place(windows_newest(run), trainer->member, trainer->instance) != NO_MEMBER;
}

// ---- the list -----------------------------------------------------------------------------------

static void list_trainer(const struct windows *self, const struct run *run, uint32_t member,
                         struct linking *list)
{
    const struct wire_member *at = &run->roster.members[member];
    const struct stands *stands = &self->stands[member];
    if (list->count == WINDOW_MEMBERS_MAX || !role_takes_steps(at->role) ||
        (at->state != MEMBER_PENDING && at->state != MEMBER_HEALTHY) ||
        !standing_has_links(self, run, member))
        return;
    struct wire_place place = { .member = member, .instance = at->instance };
    memcpy(place.links, stands->links, sizeof place.links);
    if (place_of(list, &place) == NO_MEMBER) list->trainers[list->count++] = place;
}

static void list_role(const struct windows *self, const struct run *run, uint8_t role,
                      uint32_t most, struct linking *list)
{
    for (uint32_t i = 0; i < run->roster.count && list->count < most; i++)
        if (run->roster.members[i].role == role) list_trainer(self, run, i, list);
}

// What trainer `from` of the old list has said, in bits of the new one.
static uint64_t carry_over(const struct linking *old, uint32_t from, const struct linking *list)
{
    uint64_t linked = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t place = place_of(old, &list->trainers[i]);
        if (place != NO_MEMBER && old->linked[from] & bit(place)) linked |= bit(i);
    }
    return linked;
}

static bool is_same(const struct linking *a, const struct linking *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->trainers[i].member == b->trainers[i].member &&
               a->trainers[i].instance == b->trainers[i].instance &&
               strcmp(a->trainers[i].links, b->trainers[i].links) == 0;
    return same;
}

static struct wire_linking frame_of(const struct linking *self)
{
    return (struct wire_linking){ .number = self->number,
                                  .trainers = self->trainers,
                                  .trainers_count = self->count };
}

// True: the list is another one, and was told.
static bool make_list(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *newest = windows_newest(run);
    struct linking list = { 0 }, *old = &self->linking;
    for (uint32_t i = 0; i < newest->group_count; i++)
        list_trainer(self, run, newest->group[i].member, &list);
    // The list has room for 64. Servers that stand by must not crowd out trainers, nor trainers the servers
    // mutant: servers: those that stand by crowd the trainers out of the list
    list_role(self, run, ACTOR_SERVER, list.count + places_servers_wanted(turn), &list);
    list_role(self, run, ACTOR_TRAINER, WINDOW_MEMBERS_MAX, &list);
    list_role(self, run, ACTOR_SERVER, WINDOW_MEMBERS_MAX, &list);
    if (list.count == 0 || is_same(old, &list)) return false;
    for (uint32_t i = 0; i < list.count; i++) {
        const uint32_t place = place_of(old, &list.trainers[i]);
        list.since_ms[i] = place == NO_MEMBER ? turn->now_ms : old->since_ms[place];
        // mutant: windows: a joiner makes the links of all others doubtful
        if (place != NO_MEMBER) list.linked[i] = carry_over(old, place, &list);
    }
    // Also after a restart no other list has had this number
    const uint64_t first = run->incarnation * LISTS_MAX;
    list.number = old->number < first ? first : old->number + 1;
    list.has_failed = old->has_failed;
    self->linking = list;
    const struct wire_linking told = frame_of(&self->linking);
    outbox_news(turn->out, FRAME_LINKING, &told);
    return true;
}

// ---- who is linked with whom --------------------------------------------------------------------

// Both ends say so. One that is cut off may believe for long that its link stands.
static bool is_linked(const struct linking *self, const struct wire_place *a,
                      const struct wire_place *b)
{
    const uint32_t i = place_of(self, a), j = place_of(self, b);
    if (i == NO_MEMBER || j == NO_MEMBER) return false;
    // mutant: windows: a link stands if one of its ends says so
    return self->linked[i] & bit(j) && self->linked[j] & bit(i);
}

bool linking_stands(const struct windows *self, const struct wire_place *member,
                    const struct wire_place *group, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_linked(&self->linking, member, &group[i])) return false;
    return true;
}

static bool is_left(const struct windows *self, const struct run *run,
                    const struct wire_place *place)
{
    return standing_stays(self, run, place);
}

// The first member of the group that this trainer is not linked with; NULL: none is.
static const struct wire_place *first_unlinked(const struct windows *self, const struct run *run,
                                               const struct wire_place *trainer)
{
    const struct wire_window *newest = windows_newest(run);
    for (uint32_t i = 0; i < newest->group_count; i++) {
        const struct wire_place *other = &newest->group[i];
        if (other->member != trainer->member && is_left(self, run, other) &&
            !is_linked(&self->linking, trainer, other))
            return other;
    }
    return NULL;
}

bool linking_has_joined(const struct windows *self, const struct run *run, uint32_t member)
{
    const struct wire_place trainer = { .member = member,
                                        .instance = run->roster.members[member].instance };
    // mutant: windows: an epoch ends for a trainer whose links do not stand
    return place_of(&self->linking, &trainer) != NO_MEMBER && !first_unlinked(self, run, &trainer);
}

// The one that goes next; NO_MEMBER: all are linked. A server can be spared as long as there are too many of them; then
// a trainer can.
static uint32_t choose_out(const struct windows *self, const struct turn *turn,
                           const struct wire_place *group, uint32_t count, bool prefers_group)
{
    const struct run *run = turn->run;
    const bool spares = places_servers(run, group, count) > places_servers_wanted(turn);
    uint32_t out = NO_MEMBER, worst = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lacks = 0;
        for (uint32_t j = 0; j < count; j++)
            lacks += j != i && !is_linked(&self->linking, &group[i], &group[j]);
        if (lacks == 0) continue;
        // mutant: windows: a joiner drives a member out of the group
        if (prefers_group && !is_in_group(run, &group[i])) lacks += WINDOW_MEMBERS_MAX;
        // mutant: servers: a trainer that does not reach a server puts it out of the run
        if ((member_of(run, &group[i])->role == ACTOR_SERVER) == spares)
            lacks += 2 * WINDOW_MEMBERS_MAX;
        if (lacks >= worst) out = i, worst = lacks;
    }
    return out;
}

static uint32_t choose(const struct windows *self, const struct turn *turn,
                       struct wire_place *group, uint32_t count, bool prefers_group)
{
    for (;;) {
        const uint32_t out = choose_out(self, turn, group, count, prefers_group);
        if (out == NO_MEMBER) return places_without_spare(turn, group, count);
        count--;
        memmove(&group[out], &group[out + 1], (count - out) * sizeof *group);
    }
}

uint32_t linking_choose(const struct windows *self, const struct turn *turn,
                        struct wire_place *group, uint32_t count)
{
    struct wire_place all[WINDOW_MEMBERS_MAX];
    memcpy(all, group, count * sizeof *group);
    const uint32_t left = choose(self, turn, group, count, true);
    if (places_are_enough(turn, group, left)) return left;
    memcpy(group, all, count * sizeof *group);
    return choose(self, turn, group, count, false);
}

// ---- what is said -------------------------------------------------------------------------------

// The end with the smaller key connects (common/group): it is the one that does not reach the other.
static void say_pair(const struct run *run, const struct wire_place *a, const struct wire_place *b,
                     char *text, size_t max)
{
    const bool a_connects = key_compare(&member_of(run, a)->key, &member_of(run, b)->key) < 0;
    const struct wire_place *from = a_connects ? a : b, *to = a_connects ? b : a;
    snprintf(text, max, "%s does not reach %.80s of %s; open that port", member_of(run, from)->name,
             to->links, member_of(run, to)->name);
}

// It has just come: its links may yet come to stand.
static bool is_young(const struct windows *self, const struct turn *turn,
                     const struct wire_place *trainer)
{
    const uint32_t place = place_of(&self->linking, trainer);
    return place == NO_MEMBER || turn->now_ms - self->linking.since_ms[place] <
                                     LINKING_BEATS * (uint64_t)turn->rules->heartbeat_ms;
}

// The first two that are not linked, and are to be waited for: all, if no group is here; else those of it.
static bool find_pair(const struct windows *self, const struct run *run,
                      const struct wire_place *group, uint32_t count, bool all,
                      const struct wire_place *ret_pair[2])
{
    for (uint32_t j = 1; j < count; j++)
        for (uint32_t i = 0; i < j; i++) {
            if (is_linked(&self->linking, &group[i], &group[j])) continue;
            if (!all && !(is_in_group(run, &group[i]) && is_in_group(run, &group[j]))) continue;
            ret_pair[0] = &group[i], ret_pair[1] = &group[j];
            return true;
        }
    return false;
}

static bool has_group(const struct run *run, const struct wire_place *group, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_in_group(run, &group[i])) return true;
    return false;
}

bool linking_stays_pending(const struct windows *self, const struct turn *turn, uint32_t member,
                           const struct wire_place *group, uint32_t count)
{
    const struct run *run = turn->run;
    const struct wire_place trainer = { .member = member,
                                        .instance = run->roster.members[member].instance };
    struct wire_place chosen[WINDOW_MEMBERS_MAX];
    memcpy(chosen, group, count * sizeof *group);
    const uint32_t left = linking_choose(self, turn, chosen, count);
    bool enters = is_in_group(run, &trainer);
    for (uint32_t i = 0; i < left; i++) enters |= chosen[i].member == member;
    const bool may_wait = has_group(run, chosen, left) ||
                          member_of(run, &trainer)->role == ACTOR_SERVER; // It stands by
    return !enters && places_are_enough(turn, chosen, left) && may_wait;
}

// Nobody waits for the links of a server that was not chosen, where the others are enough.
static uint32_t without_spare(const struct run *run, struct wire_place *group, uint32_t count,
                              const struct wire_place *chosen, uint32_t chosen_count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool stays = member_of(run, &group[i])->role != ACTOR_SERVER;
        for (uint32_t j = 0; j < chosen_count; j++) stays |= chosen[j].member == group[i].member;
        if (stays) group[left++] = group[i];
    }
    return left;
}

static void say_too_few(struct windows *self, const struct turn *turn,
                        const struct wire_place *group, uint32_t count)
{
    const uint32_t servers = places_servers(turn->run, group, count);
    const uint32_t wanted = places_servers_wanted(turn);
    if (servers < wanted)
        snprintf(self->lacks, sizeof self->lacks,
                 "waiting for parameter servers with links: %u of %u are here", servers, wanted);
    else
        snprintf(self->lacks, sizeof self->lacks,
                 "waiting for trainers with links: %u of %u are here (min_clients)",
                 count - servers, turn->rules->min_clients);
}

const char *linking_lacks(struct windows *self, const struct turn *turn,
                          const struct wire_place *group, uint32_t count, bool late)
{
    const struct run *run = turn->run;
    const struct wire_place *pair[2];
    struct wire_place chosen[WINDOW_MEMBERS_MAX];
    memcpy(chosen, group, count * sizeof *group);
    const uint32_t left = linking_choose(self, turn, chosen, count);
    const bool too_few = !places_are_enough(turn, chosen, left);
    const bool all = too_few || !has_group(run, chosen, left);
    if (late && !too_few) return NULL;
    struct wire_place awaited[WINDOW_MEMBERS_MAX];
    memcpy(awaited, group, count * sizeof *group);
    if (!too_few) count = without_spare(run, awaited, count, chosen, left);
    if (!find_pair(self, run, awaited, count, all, pair)) {
        // All known links stand; too few trainers are here
        if (too_few) say_too_few(self, turn, chosen, left);
        return too_few ? self->lacks : NULL;
    }
    char text[192];
    say_pair(run, pair[0], pair[1], text, sizeof text);
    if (!late && (is_young(self, turn, pair[0]) || is_young(self, turn, pair[1])))
        snprintf(self->lacks, sizeof self->lacks, "waiting for the link of %s and %s",
                 member_of(run, pair[0])->name, member_of(run, pair[1])->name);
    else snprintf(self->lacks, sizeof self->lacks, "waiting for links: %s", text);
    return self->lacks;
}

uint64_t linking_wait_ms(const struct windows *self, const struct turn *turn)
{
    const uint64_t took_ms = turn->now_ms - self->barrier_ended_ms;
    const uint64_t least_ms = WINDOW_BARRIERS * self->barrier_ms;
    return took_ms < least_ms ? least_ms - took_ms : 0;
}

// In steps of ten seconds: each is news, and a line of the log.
static void say_wait(struct windows *self, const struct turn *turn, const struct wire_place *waits)
{
    const uint64_t left_s = (linking_wait_ms(self, turn) + 9999) / 10000 * 10;
    if (left_s == 0 || turn->run->phase != PHASE_TRAIN) return;
    snprintf(self->linking.words, sizeof self->linking.words,
             "%s waits to join: this epoch lasts at least %" PRIu64 " s more",
             member_of(turn->run, waits)->name, left_s);
}

// A server for which there is no place: it waits for the death of another one.
static bool stands_by(const struct turn *turn, const struct wire_place *waits)
{
    const struct run *run = turn->run;
    const struct wire_window *newest = windows_newest(run);
    return member_of(run, waits)->role == ACTOR_SERVER &&
           places_servers(run, newest->group, newest->group_count) >= places_servers_wanted(turn);
}

// Who waits to join, and why. Of one that is left out the reason has been said.
static void look(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    struct linking *list = &self->linking;
    list->words[0] = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct wire_place *waits = &list->trainers[i], *other;
        if (is_young(self, turn, waits) ||
            (is_in_group(run, waits) && !self->is_left_out[waits->member]))
            continue;
        other = first_unlinked(self, run, waits);
        const bool enters = // It needs no epoch (opening.c)
            places_servers_wanted(turn) > 0 && member_of(run, waits)->role == ACTOR_TRAINER;
        if (!other && !enters && !self->is_left_out[waits->member] && !stands_by(turn, waits))
            say_wait(self, turn, waits);
        if (!other) continue;
        char text[192];
        say_pair(run, waits, other, text, sizeof text);
        snprintf(list->words, sizeof list->words, "%s waits to join: %.156s",
                 member_of(run, waits)->name, text);
        return;
    }
}

void linking_hear(struct windows *self, const struct turn *turn, const struct msg *in,
                  uint32_t member)
{
    const struct wire_stands *said = in->body;
    struct linking *list = &self->linking;
    const bool told = make_list(self, turn);
    const uint32_t place =
        place_of(list, &(struct wire_place){ .member = member, .instance = said->instance });
    // mutant: windows: what is said of another list counts
    if (said->linking == list->number && place != NO_MEMBER) {
        list->linked[place] = said->linked;
    } else if (!told && list->number) {
        const struct wire_linking again = frame_of(list);
        outbox_mail(turn->out, in->from, FRAME_LINKING, &again);
    }
    look(self, turn);
}
