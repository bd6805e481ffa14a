// share_list -- one run of leaves for each item: first those of the items that are cut, in their order, then those
// that each place has, or place 0 alone: then the runs of the others are empty.

#include "common/vector/share_list.h"
#include "common/base/ensure.h"
#include <string.h>

static bool is_cut(const struct state_cut *cut, uint32_t item)
{
    return cut->bytes[item] == cut->bytes[0];
}

struct share_list share_list_of(const struct state_cut *cut, uint32_t place, uint32_t places,
                                enum share_rest rest)
{
    struct share_list self = { 0 };
    ensure(cut->count > 0 && place < places && places <= SHARE_PLACES_MAX);
    for (int of_all = 0; of_all <= 1; of_all++)
        for (uint32_t i = 0; i < cut->count; i++) {
            const uint64_t first = state_cut_place(cut, i) / STATE_LEAF_BYTES;
            const uint64_t leaves = state_item_leaves(cut->bytes[i]);
            if (is_cut(cut, i) == of_all) continue;
            // mutant: shares: what only the first has is in the lists of all
            const bool has = rest == SHARE_ALIKE || place == 0;
            const struct interval at = of_all ? (struct interval){ 0, has ? leaves : 0 }
                                              : interval_share(leaves, place, places);
            self.runs[self.count++] = (struct interval){ first + at.begin, first + at.end };
            self.cut_count += !of_all;
        }
    return self;
}

uint64_t share_list_leaves(const struct share_list *self)
{
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < self->count; i++) leaves += interval_length(self->runs[i]);
    return leaves;
}

// What each place has was written by place 0; the others are compared with that.
static bool agrees(const struct share_list *self, const uint8_t *bytes, const struct hash *leaves)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const size_t count = interval_length(self->runs[i]) * HASH_BYTES;
        if (i >= self->cut_count && memcmp(&leaves[self->runs[i].begin], bytes, count) != 0)
            return false;
        bytes += count;
    }
    return true;
}

enum share_fit share_list_join(const struct state_cut *cut, uint32_t place, uint32_t places,
                               enum share_rest rest, const uint8_t *bytes, size_t count,
                               struct hash *leaves)
{
    const struct share_list self = share_list_of(cut, place, places, rest);
    if (count != share_list_leaves(&self) * HASH_BYTES) return SHARE_OTHER_COUNT;
    // mutant: shares: what each member has is not compared
    if (place > 0 && !agrees(&self, bytes, leaves)) return SHARE_DIFFERS;
    for (uint32_t i = 0; i < self.count; i++) {
        const size_t run = interval_length(self.runs[i]) * HASH_BYTES;
        if (run > 0) memcpy(&leaves[self.runs[i].begin], bytes, run);
        bytes += run;
    }
    return SHARE_FITS;
}
