// copies -- the shares that learners copy in memory, and those of their predecessors (learner_copies.c, keeping.h). A copy is
// made behind a step, and hashed after a while; HAVE tells so. When all have told, the core gets the lists and
// has the fetcher get the shares before ours. The lists are blobs, whose hash says what they are of: so a list of
// another step, or of another cut, shows as another digest.

#include "tests/sim/leases.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ON_RECORD_MS = 20000 };

static struct sim_copies *copies_of(struct sim *self, uint8_t id)
{
    return &self->nodes[id].learner.exchange.copies;
}

static const struct wire_windows_config *config_of(const struct sim *self)
{
    return rules_strategy(&self->plan.rules);
}

// Of the window in hand: how many own a share, the first of them, and whether this one does.
static uint32_t owners_of(const struct sim *self, const struct sim_window *window)
{
    const uint32_t servers = config_of(self)->servers;
    return servers ? servers : window->count;
}

static uint32_t first_owner(const struct sim *self, const struct sim_window *window)
{
    return window->count - owners_of(self, window);
}

static struct wire_blob list_of(const struct sim_copy *copy, uint32_t place)
{
    const uint64_t numbers[3] = { copy->step, place, copy->count };
    return (struct wire_blob){ hash_of_two(&copy->digest, HASH_BYTES, numbers, sizeof numbers),
                               PAYLOAD_BYTES };
}

// ---- the learner --------------------------------------------------------------------------------

static void forget(struct sim_copies *copies)
{
    copies->newest = (struct sim_copy){ 0 };
    copies->listed = 0;
    copies->told = false;
}

static bool is_later(const struct sim_copies *copies, uint64_t window, uint64_t step)
{
    return window > copies->kept.window ||
           (window == copies->kept.window && step > copies->kept.step);
}

void copies_kept(struct sim *self, uint8_t id, const struct wire_kept *job)
{
    struct sim_copies *copies = copies_of(self, id);
    if (copies->newest.step == job->step && copies->newest.window == job->window) {
        copies->kept = copies->newest;
        forget(copies);
    } else if (is_later(copies, job->window, job->step)) copies->kept = (struct sim_copy){ 0 };
}

void copies_begin(struct sim *self, uint8_t id)
{
    struct sim_copies *copies = copies_of(self, id);
    const struct sim_window *window = &self->nodes[id].learner.exchange.windows[0];
    if (window->kept_window)
        copies_kept(self, id, &(struct wire_kept){ window->kept_window, window->kept_step });
    const bool same =
        copies->kept.step == window->kept_step && copies->kept.window == window->kept_window;
    // It may have been given before we heard of a newer one
    if (!same && (window->drops || is_later(copies, window->kept_window, window->kept_step)))
        copies->kept = (struct sim_copy){ 0 };
    if (window->drops) forget(copies);
}

void copies_step(struct sim *sim, uint8_t id)
{
    struct sim_copies *copies = copies_of(sim, id);
    const uint64_t healed_ms = sim->plan.heal_ms, since_ms = copies->since_ms;
    hold(copies->newest.step == 0 || faulty(sim) ||
             sim->now_ms < (since_ms > healed_ms ? since_ms : healed_ms) + ON_RECORD_MS,
         "copies are put on record once nothing goes wrong", "%s has those of %" PRIu64,
         sim->nodes[id].name, copies->newest.step);
    copies->somebody = copies->early;
    copies->early = false;
}

bool copies_take(struct sim *self, uint8_t id)
{
    const struct learner *learner = &self->nodes[id].learner;
    const struct sim_window *window = &learner->exchange.windows[0];
    struct sim_copies *copies = copies_of(self, id);
    const uint32_t every = config_of(self)->memory_every;
    const uint32_t owners = owners_of(self, window), first = first_owner(self, window);
    if (every == 0 || owners < 2 || window->place < first || learner->step % every != 0 ||
        copies->somebody)
        return false;
    ensure(copies->newest.step == 0);
    copies->newest = (struct sim_copy){ .step = learner->step,
                                        .window = window->number,
                                        .digest = learner->digest,
                                        .place = window->place - first,
                                        .count = owners,
                                        .has = (uint64_t)1 << (window->place - first) };
    copies->since_ms = self->now_ms;
    copies->copied = learner->step;
    copies->copied_window = window->number;
    return true;
}

static void tell_listed(struct sim *self, uint8_t id)
{
    struct sim_copies *copies = copies_of(self, id);
    const struct sim_copy *copy = &copies->newest;
    struct wire_blob lists[NODES_MAX];
    if (copies->told || copy->count == 0 ||
        copies->listed != ((uint64_t)2 << (copy->count - 1)) - 1)
        return;
    copies->told = true;
    const struct wire_blob ours = list_of(copy, copy->place);
    store_add(self, &self->nodes[id].store, &ours.hash, ours.bytes); // As learner_copies.c does
    for (uint32_t i = 0; i < copy->count; i++) lists[i] = list_of(copy, i);
    learner_says(
        self, id, FRAME_LISTED,
        &(struct wire_listed){ copy->window, copy->step, copy->place, lists, copy->count });
}

void copies_hashed(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct sim_copies *copies = copies_of(self, id);
    struct sim_copy *copy = &copies->newest;
    if (copy->step != word->step || copy->window != word->window) return;
    const struct wire_blob list = list_of(copy, copy->place);
    store_add(self, &self->nodes[id].store, &list.hash, list.bytes);
    copy->hashed = true;
    copies->listed |= (uint64_t)1 << copy->place;
    tell_listed(self, id);
}

void copies_tell(struct sim *self, uint8_t id, struct wire_sim_word *word)
{
    struct sim_copies *copies = copies_of(self, id);
    word->copying = copies->newest.step > 0;
    word->copy = copies->newest.hashed ? copies->newest.step : 0;
    copies->somebody |= word->copying;
}

void copies_hear(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct sim_copies *copies = copies_of(self, id);
    const uint64_t step = self->nodes[id].learner.exchange.holder.step;
    if (word->step == step) copies->somebody |= word->copying;
    if (word->step == step + 1) copies->early |= word->copying;
    const uint32_t first = first_owner(self, &self->nodes[id].learner.exchange.windows[0]);
    if (word->copy == 0 || word->copy != copies->newest.step || word->from < first) return;
    copies->listed |= (uint64_t)1 << (word->from - first);
    tell_listed(self, id);
}

// ---- not in step --------------------------------------------------------------------------------

void copies_begin_group(struct sim *self, uint8_t id, const struct wire_take_group *job)
{
    struct sim_copies *copies = copies_of(self, id);
    if (job->kept_in) copies_kept(self, id, &(struct wire_kept){ job->kept_in, job->kept_step });
    if (copies->kept.step != job->kept_step || copies->kept.window != job->kept_in)
        copies->kept = (struct sim_copy){ 0 };
    forget(copies);
}

void copies_take_share(struct sim *self, uint8_t id, const struct wire_save_share *job,
                       uint32_t place, const struct hash *share)
{
    struct sim_copies *copies = copies_of(self, id);
    forget(copies); // One that is not on record has been given up
    copies->newest = (struct sim_copy){ .step = job->step,
                                        .window = job->number,
                                        .digest = *share,
                                        .place = place,
                                        .count = self->nodes[id].learner.group.servers,
                                        .has = (uint64_t)1 << place,
                                        .apart = true };
}

// The name of the list is made of the share before its digest is that of the state.
bool copies_hash_share(struct sim *self, uint8_t id, uint64_t number, uint64_t step,
                       struct wire_blob *ret_list)
{
    struct sim_copy *copy = &copies_of(self, id)->newest;
    if (copy->step != step || copy->window != number || copy->hashed) return false;
    *ret_list = list_of(copy, copy->place);
    store_add(self, &self->nodes[id].store, &ret_list->hash, ret_list->bytes);
    copy->hashed = true;
    return true;
}

void copies_list(struct sim *self, uint8_t id, const struct wire_keep_shares *job)
{
    struct sim_copy *copy = &copies_of(self, id)->newest;
    if (!copy->hashed || copy->step != job->step || copy->window != job->number ||
        job->lists_count != copy->count)
        return;
    const struct wire_blob *ours = &job->lists[copy->place];
    store_add(self, &self->nodes[id].store, &ours->hash, ours->bytes);
    learner_says(self, id, FRAME_LISTED,
                 &(struct wire_listed){ copy->window, copy->step, copy->place, job->lists,
                                        job->lists_count });
}

// ---- the fetcher --------------------------------------------------------------------------------

static struct sim_copy *find(struct sim_copies *copies, uint64_t step, const struct hash *digest)
{
    struct sim_copy *each[2] = { &copies->newest, &copies->kept };
    for (int i = 0; i < 2; i++)
        if (each[i]->step == step && step > 0 && (!digest || hash_equal(&each[i]->digest, digest)))
            return each[i];
    return NULL;
}

// One of the holders has this place's share, and can be reached.
static bool is_served(struct sim *self, uint8_t id, const struct wire_fetch_share *job,
                      const struct sim_copy *own, uint32_t place)
{
    for (uint32_t i = 0; i < job->holders_count; i++) {
        const uint8_t other = node_at(&job->holders[i]);
        if (!self->nodes[other].up || !reachable(self, id, other)) continue;
        const struct sim_copy *copy =
            find(copies_of(self, other), own->step, own->apart ? NULL : &own->digest);
        if (copy && copy->count == own->count && copy->window == own->window &&
            copy->has >> place & 1)
            return true;
    }
    return false;
}

void copies_fetch(struct sim *self, uint8_t id, const struct wire_fetch_share *job)
{
    struct sim_copy *own = find(copies_of(self, id), job->step, NULL);
    struct wire_fetched_share said = { .turn = job->turn, .step = job->step, .bytes = 100 };
    said.ok = own && own->count == job->lists_count && own->place == job->place &&
              own->apart == job->apart;
    for (uint32_t i = 1; said.ok && i <= job->buddies && i < own->count; i++) {
        const uint32_t place = (own->place + own->count - i) % own->count;
        said.ok = is_served(self, id, job, own, place);
        if (said.ok) own->has |= (uint64_t)1 << place;
    }
    // A list may have been released since
    for (uint32_t i = 0; said.ok && i < own->count; i++)
        said.ok = store_has(&self->nodes[id].store, &job->lists[i].hash);
    if (said.ok && own->apart) {
        said.digest = hash_of(job->lists, job->lists_count * sizeof *job->lists);
        own->digest = said.digest;
    } else if (said.ok) {
        bool sound = true;
        for (uint32_t i = 0; i < own->count; i++) {
            const struct wire_blob list = list_of(own, i);
            sound = sound && hash_equal(&list.hash, &job->lists[i].hash);
        }
        said.digest =
            sound ? own->digest : hash_of(job->lists, job->lists_count * sizeof *job->lists);
    } else snprintf(said.reason, sizeof said.reason, "nobody has it");
    fetcher_says(self, id, FRAME_FETCHED_SHARE, &said);
}

static void add_places(const struct sim *self, uint8_t id, uint64_t step, const struct hash *digest,
                       uint64_t here[NODES_MAX])
{
    struct sim_copies *copies = copies_of((struct sim *)self, id);
    const struct sim_copy *copy = find(copies, step, digest);
    if (self->nodes[id].up && copy && copy->count < NODES_MAX) here[copy->count] |= copy->has;
}

static bool are_whole(const uint64_t here[NODES_MAX])
{
    for (uint32_t count = 1; count < NODES_MAX; count++)
        if (here[count] == ((uint64_t)2 << (count - 1)) - 1) return true;
    return false;
}

bool copies_serve(const struct sim *self, uint8_t id, const struct wire_fetch_model *job)
{
    uint64_t here[NODES_MAX] = { 0 };
    add_places(self, id, job->step, &job->digest, here);
    for (uint32_t i = 0; i < job->holders_count; i++) {
        const uint8_t other = node_at(&job->holders[i]);
        if (reachable(self, id, other)) add_places(self, other, job->step, &job->digest, here);
    }
    return are_whole(here);
}

bool copies_lie(const struct sim *self, uint64_t step, const struct hash *digest)
{
    uint64_t here[NODES_MAX] = { 0 };
    for (uint32_t i = 0; i < self->ghost.members_count; i++) {
        const struct ghost_member *member = &self->ghost.members[i];
        const uint8_t id = check_node(self, i);
        if (id != NOBODY && self->nodes[id].instance == member->instance &&
            (member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING))
            add_places(self, id, step, digest, here);
    }
    return are_whole(here);
}
