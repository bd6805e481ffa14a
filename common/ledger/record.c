#include "common/base/bytes.h"
#include "common/ledger/record.h"
#include <inttypes.h>

static const char record_magic[4] = { 'S', 'L', 'R', 1 }, snapshot_magic[4] = { 'S', 'L', 'S', 1 };

struct hash record_chain(const struct hash *previous, uint64_t seq, const void *bytes, size_t count)
{
    uint8_t before[HASH_BYTES + 8];
    memcpy(before, previous->bytes, HASH_BYTES);
    be_put(before + HASH_BYTES, seq, 8);
    return hash_of_two(before, sizeof before, bytes, count);
}

static struct hash snapshot_hash(const struct snapshot *self)
{
    uint8_t before[4 + 8 + HASH_BYTES];
    memcpy(before, snapshot_magic, 4);
    be_put(before + 4, self->seq, 8);
    memcpy(before + 12, self->chain.bytes, HASH_BYTES);
    return hash_of_two(before, sizeof before, self->bytes, self->count);
}

void record_encode(const struct record *self, uint8_t *ret_stored)
{
    memcpy(ret_stored, record_magic, 4);
    be_put(ret_stored + 4, self->indexed, 4);
    be_put(ret_stored + 8, self->seq, 8);
    be_put(ret_stored + 16, self->indexed ? self->index_key : 0, 8);
    memcpy(ret_stored + 24, self->previous.bytes, HASH_BYTES);
    memcpy(ret_stored + 56, self->chain.bytes, HASH_BYTES);
    if (self->count) memcpy(ret_stored + RECORD_HEADER_BYTES, self->bytes, self->count);
}

void snapshot_encode(const struct snapshot *self, uint8_t *ret_stored)
{
    struct hash hash = snapshot_hash(self);
    memcpy(ret_stored, snapshot_magic, 4);
    memset(ret_stored + 4, 0, 4);
    be_put(ret_stored + 8, self->seq, 8);
    memcpy(ret_stored + 16, self->chain.bytes, HASH_BYTES);
    memcpy(ret_stored + 48, hash.bytes, HASH_BYTES);
    if (self->count) memcpy(ret_stored + SNAPSHOT_HEADER_BYTES, self->bytes, self->count);
}

// Checks the front of a record or snapshot: 4 bytes of magic, a flag up to `flag_max`, the number.
static int check_front(const char *what, const char *magic, const uint8_t *stored,
                       uint32_t flag_max, uint64_t seq, struct why *why, uint32_t *ret_flag)
{
    const uint32_t flag = (uint32_t)be_get(stored + 4, 4);
    if (memcmp(stored, magic, 4) != 0 || flag > flag_max)
        return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 " does not begin like one of version %d",
                       what, seq, magic[3]);
    if (be_get(stored + 8, 8) != seq)
        return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 " says that it is number %" PRIu64, what,
                       seq, be_get(stored + 8, 8));
    *ret_flag = flag;
    return 0;
}

static int short_of(const char *what, uint64_t seq, size_t count, int header, struct why *why)
{
    return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 " has %zu bytes, its header alone needs %d",
                   what, seq, count, header);
}

int record_decode(const uint8_t *stored, size_t count, uint64_t seq, struct why *why,
                  struct record *ret_record)
{
    uint32_t indexed;
    if (count < RECORD_HEADER_BYTES)
        return short_of("record", seq, count, RECORD_HEADER_BYTES, why);
    int rc = check_front("record", record_magic, stored, 1, seq, why, &indexed);
    if (rc < 0) return rc;
    struct record record = { .seq = seq,
                             .index_key = be_get(stored + 16, 8),
                             .indexed = indexed,
                             .bytes = stored + RECORD_HEADER_BYTES,
                             .count = count - RECORD_HEADER_BYTES };
    if (!indexed && record.index_key)
        return why_set(why, FAULT_CORRUPT,
                       "record %" PRIu64 " has an index key, but says that it "
                       "has none",
                       seq);
    memcpy(record.previous.bytes, stored + 24, HASH_BYTES);
    memcpy(record.chain.bytes, stored + 56, HASH_BYTES);
    struct hash chain = record_chain(&record.previous, seq, record.bytes, record.count);
    // mutant: the chain of the ledger is not checked
    if (!hash_equal(&chain, &record.chain))
        return why_set(why, FAULT_CORRUPT, "record %" PRIu64 " does not match its chain hash", seq);
    *ret_record = record;
    return 0;
}

int snapshot_decode(const uint8_t *stored, size_t count, uint64_t seq, struct why *why,
                    struct snapshot *ret_snapshot)
{
    uint32_t flag;
    if (count < SNAPSHOT_HEADER_BYTES)
        return short_of("snapshot", seq, count, SNAPSHOT_HEADER_BYTES, why);
    int rc = check_front("snapshot", snapshot_magic, stored, 0, seq, why, &flag);
    if (rc < 0) return rc;
    struct snapshot snapshot = { .seq = seq,
                                 .bytes = stored + SNAPSHOT_HEADER_BYTES,
                                 .count = count - SNAPSHOT_HEADER_BYTES };
    memcpy(snapshot.chain.bytes, stored + 16, HASH_BYTES);
    struct hash hash = snapshot_hash(&snapshot);
    if (memcmp(hash.bytes, stored + 48, HASH_BYTES) != 0)
        return why_set(why, FAULT_CORRUPT, "snapshot %" PRIu64 " does not match its hash", seq);
    *ret_snapshot = snapshot;
    return 0;
}
