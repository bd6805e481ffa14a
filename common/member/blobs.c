// Entries lie in one array: first those that are not here yet, then those that are here; an
// open-addressing table by hash leads to them. Every turn takes what the fetcher answered, then
// sends FETCH for wanted blobs that are due. Forgetting sends FORGET for a hash only when no entry
// of that hash is left.

#include "common/member/blobs.h"
#include <string.h>

enum { PLACES = 2 * BLOBS_MAX };
static const uint64_t UNDATED = UINT64_MAX; // The step is not known: no FORGET reaches it

static uint32_t home(const struct hash *hash) { return (uint32_t)(hash_to_number(hash) % PLACES); }

// The next slot from `at` on that leads to a blob of this hash, or the empty slot where it belongs.
static uint32_t next_of(const struct blobs *self, const struct hash *hash, uint32_t at)
{
    while (self->places[at] && !hash_equal(&self->entries[self->places[at] - 1].hash, hash))
        at = (at + 1) % PLACES;
    return at;
}

// The slot of the blob that has this hash and this size.
static uint32_t find(const struct blobs *self, const struct hash *hash, uint32_t bytes)
{
    uint32_t at = next_of(self, hash, home(hash));
    // mutant: blobs: a hash alone is a name
    while (self->places[at] && self->entries[self->places[at] - 1].bytes != bytes)
        at = next_of(self, hash, (at + 1) % PLACES);
    return at;
}

static struct blob_entry *known(struct blobs *self, const struct wire_blob *name)
{
    uint32_t place = self->places[find(self, &name->hash, name->bytes)];
    return place ? &self->entries[place - 1] : NULL;
}

// True if a blob of this hash is known, of any size.
static bool is_known_hash(const struct blobs *self, const struct hash *hash)
{
    return self->places[next_of(self, hash, home(hash))] != 0;
}

static void exchange(struct blobs *self, uint32_t a, uint32_t b)
{
    if (a == b) return;
    uint32_t *to_a = &self->places[find(self, &self->entries[a].hash, self->entries[a].bytes)];
    uint32_t *to_b = &self->places[find(self, &self->entries[b].hash, self->entries[b].bytes)];
    struct blob_entry entry = self->entries[a];
    self->entries[a] = self->entries[b];
    self->entries[b] = entry;
    *to_a = b + 1;
    *to_b = a + 1;
}

// Moves an entry from those that are not here to those that are. Returns its new address.
static struct blob_entry *arrived(struct blobs *self, struct blob_entry *entry)
{
    exchange(self, (uint32_t)(entry - self->entries), --self->wanted);
    entry = &self->entries[self->wanted];
    entry->state = BLOB_HERE;
    return entry;
}

// Removes an entry. In the table the slots that follow without a gap move up, so that searches find
// them.
static void take_out(struct blobs *self, uint32_t index)
{
    if (index < self->wanted) {
        exchange(self, index, --self->wanted);
        index = self->wanted;
    }
    exchange(self, index, --self->count);
    uint32_t hole = find(self, &self->entries[self->count].hash, self->entries[self->count].bytes);
    for (uint32_t i = (hole + 1) % PLACES; self->places[i]; i = (i + 1) % PLACES) {
        uint32_t from = home(&self->entries[self->places[i] - 1].hash);
        bool stays = hole <= i ? hole < from && from <= i : hole < from || from <= i;
        if (stays) continue;
        self->places[hole] = self->places[i];
        hole = i;
    }
    self->places[hole] = 0;
}

uint8_t blobs_state(const struct blobs *self, const struct wire_blob *name)
{
    uint32_t place = self->places[find(self, &name->hash, name->bytes)];
    return place ? self->entries[place - 1].state : BLOB_UNKNOWN;
}

static struct blob_entry *add(struct blobs *self, const struct wire_blob *name, uint64_t step)
{
    if (self->count == BLOBS_MAX) return NULL;
    const uint32_t index = self->count++, place = find(self, &name->hash, name->bytes);
    self->entries[index] = (struct blob_entry){ .hash = name->hash,
                                                .step = step,
                                                .bytes = name->bytes,
                                                .first_step = step,
                                                .state = BLOB_WANTED };
    self->places[place] = index + 1;
    exchange(self, index, self->wanted++);
    return &self->entries[self->wanted - 1];
}

void blobs_inherit(struct blobs *self, const struct wire_inherited *inherited)
{
    for (uint32_t i = 0; i < inherited->blobs_count && self->count < BLOBS_INHERITED_MAX; i++) {
        const struct wire_blob *blob = &inherited->blobs[i];
        if (known(self, blob)) continue;
        arrived(self, add(self, blob, UNDATED))->has_step = true;
        self->undated = true;
    }
}

// Inherited blobs get the step after the run's, so that they are kept as long as the newest ones.
// Their first_step is 0, because they may belong to an old commit: blobs_forget_step must not
// remove them.
void blobs_date(struct blobs *self, uint64_t run_step)
{
    for (uint32_t i = 0; self->undated && i < self->count; i++)
        if (self->entries[i].step == UNDATED) {
            self->entries[i].step = run_step + 1;
            self->entries[i].first_step = 0;
        }
    self->undated = false;
}

static void count_use(struct blob_entry *entry, bool kept)
{
    if (kept) entry->users++;
    else entry->has_step = true;
}

static void have(struct blobs *self, const struct wire_blob *name, uint64_t step, bool kept)
{
    struct blob_entry *entry = known(self, name);
    if (!entry) entry = add(self, name, step);
    if (!entry) return;
    if (entry->state != BLOB_HERE) entry = arrived(self, entry);
    if (step > entry->step) entry->step = step;
    count_use(entry, kept);
}

void blobs_have(struct blobs *self, const struct wire_blob *name, uint64_t step)
{
    have(self, name, step, false);
}

void blobs_have_kept(struct blobs *self, const struct wire_blob *name, uint64_t step)
{
    have(self, name, step, true);
}

// A commit names a blob that so far only its author was known to have. Those that voted for it have
// it, so it is asked for once more, and at once: an author may be silent towards us alone.
static void name_in_commit(struct blobs *self, struct blob_entry *entry)
{
    // mutant: blobs: a commit waits for the author of its payload
    if (entry->author == UINT32_MAX || entry->state == BLOB_HERE) return;
    entry->author = UINT32_MAX;
    entry->state = BLOB_WANTED;
    entry->retry_ms = self->due_ms = 0;
}

static void want(struct blobs *self, const struct wire_blob *name, uint64_t step, uint32_t author,
                 bool kept)
{
    struct blob_entry *entry = known(self, name);
    if (entry) {
        if (step > entry->step) entry->step = step;
        if (step < entry->first_step) entry->first_step = step; // An older commit, heard later
        count_use(entry, kept);
        if (author == UINT32_MAX) name_in_commit(self, entry);
        return;
    }
    entry = add(self, name, step);
    if (!entry) return;
    entry->author = author;
    count_use(entry, kept);
    self->due_ms = 0;
}

void blobs_want(struct blobs *self, const struct wire_blob *name, uint64_t step, uint32_t author)
{
    want(self, name, step, author, false);
}

void blobs_want_kept(struct blobs *self, const struct wire_blob *name, uint64_t step,
                     uint32_t author)
{
    want(self, name, step, author, true);
}

// A commit names it, and it is one of the newest: our next round waits for it. What a member lacks that
// is far behind comes in bulk, where each repeated request would take the place of a first one.
static bool is_urgent(const struct blob_entry *entry, const struct member *member)
{
    // mutant: blobs: all that a member lacks is urgent that is far behind
    return entry->author == UINT32_MAX && entry->step + BLOBS_URGENT_STEPS >= member->now.step;
}

void blobs_fetch(struct blobs *self, const struct member *member, uint64_t now_ms,
                 struct outbox *out)
{
    struct wire_holder holders[64];
    uint32_t asked = 0;
    if (self->wanted == 0 || now_ms < self->due_ms) return;
    self->due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < self->wanted; i++) {
        struct blob_entry *entry = &self->entries[i];
        if (entry->state != BLOB_WANTED) continue;
        if (asked == BLOBS_FETCH_MAX) {
            self->due_ms = now_ms; // The others follow in the next turn, which an answer brings
            return;
        }
        uint32_t count = now_ms < entry->retry_ms
                             ? 0
                             : member_holders(member, entry->author, entry->tries, holders, 64);
        if (now_ms >= entry->retry_ms) entry->retry_ms = now_ms + BLOBS_RETRY_MS;
        if (count == 0) {
            if (entry->retry_ms < self->due_ms) self->due_ms = entry->retry_ms;
            continue;
        }
        struct wire_blob blob = { entry->hash, entry->bytes };
        entry->state = BLOB_COMING;
        entry->turn = ++self->turns;
        entry->tries++;
        asked++;
        outbox_job(out, PORT_FETCHER, FRAME_FETCH,
                   &(struct wire_fetch){ .blobs = &blob,
                                         .blobs_count = 1,
                                         .holders = holders,
                                         .holders_count = count,
                                         .turn = entry->turn,
                                         .urgent = is_urgent(entry, member) });
    }
}

static void send_forget(const struct wire_blob *blobs, uint32_t count, struct outbox *out)
{
    const struct wire_forget job = { blobs, count };
    outbox_job(out, PORT_DISK, FRAME_FORGET, &job);
    outbox_job(out, PORT_FETCHER, FRAME_FORGET, &job);
}

void blobs_spare(struct blobs *self, const struct hash *hash, struct outbox *out)
{
    const struct wire_blob blob = { .hash = *hash };
    // mutant: blobs: what comes late stays
    if (hash_is_none(hash) || is_known_hash(self, hash)) return;
    if (self->spared_count++ < BLOBS_SPARED_MAX) self->spared[self->spared_count - 1] = *hash;
    send_forget(&blob, 1, out);
}

void blobs_mark(struct blobs *self) { self->spared_count = 0; }

bool blobs_spared_since(const struct blobs *self, const struct hash *hash)
{
    if (self->spared_count > BLOBS_SPARED_MAX) return true;
    for (uint32_t i = 0; i < self->spared_count; i++)
        if (hash_equal(&self->spared[i], hash)) return true;
    return false;
}

static struct blob_entry *coming(struct blobs *self, const struct hash *hash, uint64_t turn)
{
    uint32_t at = next_of(self, hash, home(hash));
    for (; self->places[at]; at = next_of(self, hash, (at + 1) % PLACES)) {
        struct blob_entry *entry = &self->entries[self->places[at] - 1];
        // mutant: blobs: an answer to an earlier question will do
        if (entry->state == BLOB_COMING && entry->turn == turn) return entry;
    }
    return NULL;
}

static void hear_fetched(struct blobs *self, const struct wire_fetched *fetched, uint64_t now_ms,
                         struct outbox *out)
{
    struct blob_entry *entry = coming(self, &fetched->hash, fetched->turn);
    if (fetched->ok) blobs_spare(self, &fetched->hash, out); // It may have been forgotten meanwhile
    if (!entry) return;
    if (fetched->ok) {
        arrived(self, entry);
        return;
    }
    char hex[HASH_HEX];
    outbox_note(out, "blob.missing hash=%.16s reason=\"%s\"; asking again",
                hash_to_hex(&fetched->hash, hex), fetched->reason);
    entry->state = BLOB_WANTED;
    entry->retry_ms = now_ms + BLOBS_RETRY_MS;
    if (entry->retry_ms < self->due_ms) self->due_ms = entry->retry_ms;
}

void blobs_hear(void *state, const struct member_turn *turn)
{
    struct blobs *self = state;
    if (turn->in->kind == FRAME_INHERITED) blobs_inherit(self, turn->in->body);
    if (turn->in->kind == FRAME_FETCHED)
        hear_fetched(self, turn->in->body, turn->in->now_ms, turn->out);
    if (turn->heard & HEARD_RUN) blobs_date(self, turn->member->now.step);
}

void blobs_look(void *state, const struct member_turn *turn)
{
    blobs_fetch(state, turn->member, turn->in->now_ms, turn->out);
}

static void forget(struct blobs *self, uint64_t from_step, uint64_t before_step, struct outbox *out)
{
    struct wire_blob gone[256];
    uint32_t count = 0;
    for (uint32_t i = self->count;
         i-- > 0;) { // Backwards: an entry that fills a gap has been checked already
        const struct blob_entry *entry = &self->entries[i];
        // mutant: blobs: what is kept goes with its step
        // mutant: blobs: what is named again is forgotten with the first attempt
        if (entry->first_step < from_step || entry->step >= before_step || entry->users) continue;
        const struct wire_blob blob = { entry->hash, entry->bytes };
        take_out(self, i);
        if (!is_known_hash(self, &blob.hash)) gone[count++] = blob;
        if (count < 256) continue;
        send_forget(gone, count, out);
        count = 0;
    }
    if (count) send_forget(gone, count, out);
}

void blobs_release(struct blobs *self, const struct wire_blob *name, struct outbox *out)
{
    struct blob_entry *entry = known(self, name);
    // mutant: blobs: what is kept goes, though others need it
    if (!entry || entry->users == 0 || --entry->users > 0 || entry->has_step) return;
    take_out(self, (uint32_t)(entry - self->entries));
    if (!is_known_hash(self, &name->hash)) send_forget(name, 1, out);
}

// Half of the table is left for coming steps, for attempts that fail, and for what is kept.
uint64_t blobs_steps_kept(uint64_t wanted, uint32_t each)
{
    const uint64_t fit = BLOBS_MAX / 2 / (each ? each : 1);
    // mutant: blobs: as many steps are kept in the largest run
    return fit < wanted ? fit : wanted;
}

void blobs_forget(struct blobs *self, uint64_t before_step, struct outbox *out)
{
    forget(self, 0, before_step, out);
}

void blobs_forget_step(struct blobs *self, uint64_t step, struct outbox *out)
{
    forget(self, step, step + 1, out);
}
