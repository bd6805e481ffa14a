// memory_save -- what records do to it, in the order of a save's life; then whether its shares are still here.

#include "common/run/memory_save.h"
#include "common/base/ensure.h"

static const struct wire_record_restore nothing;

void memory_save_copied(struct memory_save *self, const struct run *run, uint64_t in)
{
    run_point_take(run, &nothing.digest, &self->copied);
    self->copied_in = in;
}

void memory_save_forget_copies(struct memory_save *self)
{
    self->copied.at = nothing;
    self->copied_in = 0;
}

bool memory_save_is_newest(const struct memory_save *self)
{
    return self->copied_in == 0 ||
           (self->copied_in == self->kept_in && self->copied.at.step == self->kept.at.step);
}

void memory_save_kept(struct memory_save *self, const struct wire_record_kept *record,
                      const struct wire_place *keepers, uint32_t count)
{
    ensure(record->step == self->copied.at.step && record->window == self->copied_in);
    ensure(count <= MEMORY_KEEPERS_MAX);
    const struct wire_record_restore copied = run_point_whole(&self->copied);
    run_point_load(&self->kept, &copied);
    self->kept.at.digest = record->digest;
    self->kept_in = record->window;
    self->keepers_count = count;
    for (uint32_t i = 0; i < count; i++)
        self->keepers[i] = (struct wire_place){ .member = keepers[i].member,
                                                .instance = keepers[i].instance,
                                                .links = "" };
}

void memory_save_restore(struct memory_save *self, uint64_t step)
{
    memory_save_forget_copies(self);
    // mutant: keeping: a memory save that was given up is gone back to
    if (self->kept.at.step <= step) return;
    self->kept.at = nothing;
    self->kept_in = self->keepers_count = 0;
}

// ---- where its shares are -----------------------------------------------------------------------

// Whether the process that kept something can still have it.
typedef bool has_fn(const struct roster *roster, const struct wire_place *place);

// Its process is here, and not another one of its key.
static bool is_here(const struct roster *roster, const struct wire_place *place)
{
    const struct wire_member *member = &roster->members[place->member];
    // mutant: keeping: a process that has restarted keeps what it kept
    return member->instance == place->instance && roster_is_here(member);
}

// Its lease ran out, and no other process of its key came: it may be cut off and live.
static bool may_return(const struct roster *roster, const struct wire_place *place)
{
    const struct wire_member *member = &roster->members[place->member];
    // mutant: keeping: a keeper that was replaced is waited for
    return member->instance == place->instance && member->state == MEMBER_DROPPED;
}

static bool may_live(const struct roster *roster, const struct wire_place *place)
{
    return is_here(roster, place) || may_return(roster, place);
}

// The first place whose share no process has; UINT32_MAX: each share is with one.
static uint32_t lost_place(const struct memory_save *self, const struct roster *roster,
                           uint32_t buddies, has_fn *has)
{
    const uint32_t count = self->keepers_count;
    for (uint32_t place = 0; place < count; place++) {
        bool found = false;
        // mutant: keeping: a share is looked for with one buddy more than have it
        for (uint32_t i = 0; i <= buddies && i < count; i++)
            found |= has(roster, &self->keepers[(place + i) % count]);
        // mutant: keeping: a memory save lacks a share and is gone back to
        if (!found) return place;
    }
    return UINT32_MAX;
}

bool memory_save_is_whole(const struct memory_save *self, const struct roster *roster,
                          uint32_t buddies, uint32_t *ret_place)
{
    *ret_place = UINT32_MAX;
    if (hash_is_none(&self->kept.at.digest)) return false;
    *ret_place = lost_place(self, roster, buddies, is_here);
    return *ret_place == UINT32_MAX;
}

bool memory_save_may_keep(const struct memory_save *self, const struct run *run, uint32_t buddies,
                          uint32_t member)
{
    const struct roster *roster = &run->roster;
    bool keeps = false;
    // mutant: keeping: who alone keeps what the run went back to is not waited for
    for (uint32_t i = 0; i < self->keepers_count; i++)
        keeps |= self->keepers[i].member == member && may_return(roster, &self->keepers[i]);
    // mutant: keeping: a keeper is waited for though the others have all shares
    const bool is_needed = lost_place(self, roster, buddies, is_here) != UINT32_MAX;
    // mutant: keeping: a keeper is waited for though a share is lost for certain
    return keeps && is_needed && lost_place(self, roster, buddies, may_live) == UINT32_MAX &&
           self->kept.at.step == run->step &&
           (!run_has_digest(run) || hash_equal(&self->kept.at.digest, &run->digest));
}

bool memory_save_refers_to(const struct memory_save *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->keepers_count; i++)
        if (self->keepers[i].member == member) return true;
    return false;
}

struct wire_memory_save memory_save_store(const struct memory_save *self)
{
    return (struct wire_memory_save){ .copied = run_point_whole(&self->copied),
                                      .copied_in = self->copied_in,
                                      .kept = run_point_whole(&self->kept),
                                      .kept_in = self->kept_in,
                                      .keepers = (struct wire_place *)self->keepers,
                                      .keepers_count = self->keepers_count };
}

void memory_save_load(struct memory_save *self, const struct wire_memory_save *from)
{
    // mutant: keeping: a snapshot forgets the copies that are not kept yet
    run_point_load(&self->copied, &from->copied);
    self->copied_in = from->copied_in;
    // mutant: keeping: a snapshot forgets the memory save
    run_point_load(&self->kept, &from->kept);
    self->kept_in = from->kept_in;
    self->keepers_count = from->keepers_count;
    for (uint32_t i = 0; i < from->keepers_count; i++) self->keepers[i] = from->keepers[i];
}
