#include "actors/member/blobs.h"
#include "common/ensure.h"
#include <string.h>

static uint32_t slot(const struct hash *hash)
{
    uint32_t at;
    memcpy(&at, hash->bytes, sizeof at);
    return at % BLOBS_MAX;
}

static struct blob_entry *find(struct blobs *self, const struct hash *hash)
{
    for (uint32_t i = slot(hash), n = 0; n < BLOBS_MAX; n++, i = (i + 1) % BLOBS_MAX) {
        if (self->entries[i].state == BLOB_UNKNOWN) return &self->entries[i];
        if (hash_equal(&self->entries[i].hash, hash)) return &self->entries[i];
    }
    return NULL;
}

// Taking one out of an open table: what follows it without a gap moves up.
static void take_out(struct blobs *self, uint32_t at)
{
    if (self->entries[at].state != BLOB_HERE) self->wanted--;
    self->count--;
    uint32_t hole = at;
    for (uint32_t i = (at + 1) % BLOBS_MAX; self->entries[i].state != BLOB_UNKNOWN; i = (i + 1) % BLOBS_MAX) {
        uint32_t home = slot(&self->entries[i].hash);
        bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
        if (stays) continue;
        self->entries[hole] = self->entries[i];
        hole = i;
    }
    memset(&self->entries[hole], 0, sizeof self->entries[hole]);
}

uint8_t blobs_state(const struct blobs *self, const struct hash *hash)
{
    struct blob_entry *entry = find((struct blobs *)(uintptr_t)self, hash);
    return entry ? entry->state : BLOB_UNKNOWN;
}

static struct blob_entry *add(struct blobs *self, const struct hash *hash, uint32_t bytes, uint64_t step,
                              uint8_t state)
{
    if (self->count >= BLOBS_MAX / 4 * 3) return NULL;
    struct blob_entry *entry = find(self, hash);
    *entry = (struct blob_entry){ .hash = *hash, .step = step, .bytes = bytes, .state = state };
    self->count++;
    if (state != BLOB_HERE) self->wanted++;
    return entry;
}

void blobs_have(struct blobs *self, const struct hash *hash, uint32_t bytes, uint64_t step)
{
    struct blob_entry *entry = find(self, hash);
    if (!entry || entry->state == BLOB_UNKNOWN) {
        add(self, hash, bytes, step, BLOB_HERE);
    } else {
        if (entry->state != BLOB_HERE) self->wanted--;
        entry->state = BLOB_HERE;
        if (step > entry->step) entry->step = step;
    }
}

void blobs_want(struct blobs *self, const struct hash *hash, uint32_t bytes, uint64_t step, uint32_t author)
{
    struct blob_entry *entry = find(self, hash);
    if (entry && entry->state != BLOB_UNKNOWN) {
        if (step > entry->step) entry->step = step;
        return;
    }
    entry = add(self, hash, bytes, step, BLOB_WANTED);
    if (entry) entry->author = author;
}

void blobs_fetch(struct blobs *self, const struct member *member, uint64_t now_ms, struct outbox *out)
{
    struct wire_holder holders[64];
    if (self->wanted == 0) return;
    for (uint32_t i = 0; i < BLOBS_MAX; i++) {
        struct blob_entry *entry = &self->entries[i];
        if (entry->state != BLOB_WANTED || now_ms < entry->retry_ms) continue;
        uint32_t count = member_holders(member, entry->author, holders, 64);
        entry->retry_ms = now_ms + BLOBS_RETRY_MS;
        if (count == 0) continue;
        struct wire_blob blob = { entry->hash, entry->bytes };
        entry->state = BLOB_COMING;
        outbox_job(out, PORT_FETCHER, FRAME_FETCH, &(struct wire_fetch){
            .blobs = &blob, .blobs_count = 1, .holders = holders, .holders_count = count });
    }
}

bool blobs_hear(struct blobs *self, const struct wire_fetched *fetched, uint64_t now_ms, struct outbox *out)
{
    struct blob_entry *entry = find(self, &fetched->hash);
    if (!entry || entry->state != BLOB_COMING) return false;
    if (fetched->ok) {
        entry->state = BLOB_HERE;
        self->wanted--;
        return true;
    }
    char hex[HASH_HEX];
    outbox_note(out, "blob.missing hash=%.16s reason=\"%s\"; asking again", hash_to_hex(&fetched->hash, hex),
                fetched->reason);
    entry->state = BLOB_WANTED;
    entry->retry_ms = now_ms + BLOBS_RETRY_MS;
    return false;
}

void blobs_forget(struct blobs *self, uint64_t before_step, struct outbox *out)
{
    struct wire_blob gone[256];
    uint32_t count = 0;
    for (uint32_t i = 0; i < BLOBS_MAX; i++) {
        while (self->entries[i].state != BLOB_UNKNOWN && self->entries[i].step < before_step) {
            gone[count++] = (struct wire_blob){ self->entries[i].hash, self->entries[i].bytes };
            take_out(self, i);
            if (count < 256) continue;
            outbox_job(out, PORT_FETCHER, FRAME_FORGET, &(struct wire_forget){ before_step, gone, count });
            count = 0;
        }
    }
    if (count)
        outbox_job(out, PORT_FETCHER, FRAME_FORGET, &(struct wire_forget){ before_step, gone, count });
}
