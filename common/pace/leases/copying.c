// copying -- where the newest memory save stands, by what servers say; then what is to be done about it.

#include "common/pace/leases/copying.h"
#include <inttypes.h>

static const struct leases_run *own(const struct turn *turn) { return leases_run_of(turn->run); }

static const struct memory_save *memory_of(const struct turn *turn) { return &own(turn)->memory; }

static uint64_t owners(const struct turn *turn)
{
    return leases_group_owners(&own(turn)->group, leases_config(turn->rules));
}

// ---- where the newest one stands ----------------------------------------------------------------

// Copies of the open group are not on record.
static bool is_open(const struct turn *turn)
{
    const struct leases_run *leases = own(turn);
    return leases->is_open && leases->closing.attempt == 0 &&
           leases->memory.copied_in == leases->group.number &&
           !memory_save_is_newest(&leases->memory);
}

static bool is_of_newest(const struct turn *turn, uint64_t number, uint64_t step)
{
    const struct memory_save *memory = memory_of(turn);
    return number == memory->copied_in && step == memory->copied.at.step;
}

static const struct wire_share_copied *copied(const struct lease_pace *self,
                                              const struct turn *turn, uint32_t place)
{
    const struct busy *busy = leases_busy(self, &own(turn)->group.group[place]);
    return busy && is_of_newest(turn, busy->copied.number, busy->copied.step) ? &busy->copied
                                                                              : NULL;
}

static const struct hash *kept(const struct lease_pace *self, const struct turn *turn,
                               uint32_t place)
{
    const struct busy *busy = leases_busy(self, &own(turn)->group.group[place]);
    // mutant: copying: what a server keeps of an earlier save counts
    return busy && is_of_newest(turn, busy->kept.number, busy->kept.step) &&
                   !hash_is_none(&busy->kept.digest)
               ? &busy->kept.digest
               : NULL;
}

// Places of servers, as bits, of whom `says` is false yet.
typedef bool says_fn(const struct lease_pace *self, const struct turn *turn, uint32_t place);

static uint64_t lacking(const struct lease_pace *self, const struct turn *turn, says_fn *says)
{
    uint64_t places = owners(turn);
    for (uint32_t i = 0; i < own(turn)->group.group_count; i++)
        if (places & leases_bit(i) && says(self, turn, i)) places &= ~leases_bit(i);
    return places;
}

static bool has_copied(const struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    return copied(self, turn, place) != NULL;
}

static bool has_kept(const struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    return kept(self, turn, place) != NULL;
}

// A server could not copy, or two have other digests of the same lists: it will not be whole.
static bool is_in_vain(const struct lease_pace *self, const struct turn *turn)
{
    const struct hash *one = NULL;
    for (uint32_t i = 0; i < own(turn)->group.group_count; i++) {
        if (!(owners(turn) & leases_bit(i))) continue;
        const struct wire_share_copied *copy = copied(self, turn, i);
        const struct hash *digest = kept(self, turn, i);
        // mutant: copying: a server that could not copy is waited for
        if (copy && hash_is_none(&copy->list.hash)) return true;
        // mutant: copying: a memory save whose servers have different digests is on record
        if (digest && one && !hash_equal(digest, one)) return true;
        if (digest) one = digest;
    }
    return false;
}

// ---- what is to be done -------------------------------------------------------------------------

static bool is_due(const struct turn *turn)
{
    const struct wire_leases_config *config = leases_config(turn->rules);
    const struct leases_run *leases = own(turn);
    const bool has_copied_here = leases->copy_number == leases->group.number;
    const uint64_t since = has_copied_here ? leases->copy_step : leases->group.step;
    const bool is_saved =
        leases->save_number == leases->group.number && leases->save_step == turn->run->step;
    // One server alone has nobody to keep its share. A step that is saved has its state: the next one is copied
    // mutant: copying: a step that is saved is copied, too, and has two states
    return config->memory_every > 0 && config->servers > 1 && !is_saved &&
           turn->run->step / config->memory_every > since / config->memory_every;
}

static void tell_copy(struct lease_pace *self, const struct turn *turn, uint64_t places)
{
    const struct memory_save *memory = memory_of(turn);
    const struct wire_copy_share order = { .number = memory->copied_in,
                                           .step = memory->copied.at.step,
                                           .kept_step = memory->kept.at.step,
                                           .kept_in = memory->kept_in };
    self->copy_tell_ms = turn->now_ms + turn->rules->heartbeat_ms;
    leases_mail(turn, places, FRAME_COPY_SHARE, &order);
}

// The lists of all servers, in the order of their places.
static void tell_keep(struct lease_pace *self, const struct turn *turn, uint64_t places)
{
    const struct wire_group *group = &own(turn)->group;
    struct wire_blob lists[LEASES_GROUP_MAX];
    struct wire_keep_shares order = { .number = memory_of(turn)->copied_in,
                                      .step = memory_of(turn)->copied.at.step,
                                      .lists = lists };
    self->copy_tell_ms = turn->now_ms + turn->rules->heartbeat_ms;
    for (uint32_t i = 0; i < group->group_count; i++)
        if (owners(turn) & leases_bit(i)) lists[order.lists_count++] = copied(self, turn, i)->list;
    leases_mail(turn, places, FRAME_KEEP_SHARES, &order);
}

static void put_kept(const struct lease_pace *self, const struct turn *turn)
{
    const uint32_t first = leases_group_servers(&own(turn)->group, leases_config(turn->rules));
    const struct wire_record_kept record = { memory_of(turn)->copied_in,
                                             memory_of(turn)->copied.at.step,
                                             *kept(self, turn, first) };
    turn_put(turn, FRAME_RECORD_KEPT, &record);
    outbox_note(turn->out, "memory.kept step=%" PRIu64 " members=%u", record.step,
                own(turn)->group.group_count - first);
}

static void go_on(struct lease_pace *self, const struct turn *turn)
{
    const uint64_t to_copy = lacking(self, turn, has_copied);
    const uint64_t to_keep = lacking(self, turn, has_kept);
    const bool is_time = turn->now_ms >= self->copy_tell_ms;
    // What has just been told of the first half says nothing of the second
    const bool is_next = !to_copy && to_keep && !self->copy_keeps;
    self->copy_keeps = !to_copy;
    // mutant: copying: a memory save is on record before all servers keep their part
    if (!to_copy && !to_keep) put_kept(self, turn);
    else if (to_copy && is_time) tell_copy(self, turn, to_copy);
    else if (!to_copy && (is_time || is_next)) tell_keep(self, turn, to_keep);
}

void copying_look(struct lease_pace *self, const struct turn *turn, bool goes_on)
{
    if (is_open(turn) && !is_in_vain(self, turn)) {
        go_on(self, turn);
        return;
    }
    if (!goes_on || !is_due(turn)) return;
    const struct wire_save_share order = { own(turn)->group.number, turn->run->step };
    self->copy_keeps = false;
    // mutant: copying: servers are told to copy before that is stored
    turn_put(turn, FRAME_RECORD_COPY, &order);
    tell_copy(self, turn, owners(turn));
}

uint64_t copying_due_ms(const struct lease_pace *self, const struct turn *turn)
{
    return is_open(turn) && !is_in_vain(self, turn) ? self->copy_tell_ms : 0;
}

bool copying_point(const struct turn *turn, struct way_back *ret_way)
{
    const struct memory_save *memory = memory_of(turn);
    uint32_t place;
    ret_way->lost = NO_MEMBER;
    if (!memory_save_is_whole(memory, &turn->run->roster, leases_config(turn->rules)->buddies,
                              &place)) {
        if (place != UINT32_MAX) ret_way->lost = memory->keepers[place].member;
        return false;
    }
    ret_way->point = run_point_whole(&memory->kept);
    ret_way->window = memory->kept_in;
    return true;
}
