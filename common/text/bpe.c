// bpe -- a vocabulary is built in three steps: tokens, merges by ascending rank, then the table of
// single bytes. A word is encoded in this order: a cache of recent words is asked; with
// ignore_merges the word itself may be a token; else its bytes become symbols, a heap gives the
// pair of lowest rank, leftmost first, and each merge offers the two pairs that it makes.

#include "common/text/bpe.h"
#include "common/text/byte_alphabet.h"
#include "common/text/pair_map.h"
#include "common/text/text_map.h"
#include <string.h>

struct token {
    size_t text, bytes;
    uint32_t text_count, bytes_count;
}; // `text` and `bytes` are offsets in the arena
struct merge {
    uint32_t left, right;
};

struct bpe {
    struct token *tokens; // By id; text_count 0: no such id
    uint32_t id_end, tokens_capacity, token_count;
    uint8_t *arena;
    size_t arena_count, arena_capacity;
    struct text_map ids;  // By text
    struct merge *merges; // By rank
    uint32_t merge_count, merges_capacity;
    struct pair_map made; // Left and right: rank << 32 | id of the token made
    uint32_t byte_ids[256];
    struct bpe_options options;
};

// ---- building

int bpe_new(struct why *why, bpe_t **ret_self)
{
    bpe_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a vocabulary");
    self->options.unk_id = BPE_NONE;
    memset(self->byte_ids, 0xff, sizeof self->byte_ids);
    *ret_self = self;
    return 0;
}

void bpe_destroy(bpe_t **self_p)
{
    bpe_t *self = *self_p;
    if (!self) return;
    free(self->tokens);
    free(self->arena);
    free(self->merges);
    text_map_free(&self->ids);
    pair_map_free(&self->made);
    free(self);
    *self_p = NULL;
}

static const uint8_t *text_of(const void *context, uint32_t id, size_t *ret_count)
{
    const bpe_t *self = context;
    *ret_count = self->tokens[id].text_count;
    return self->arena + self->tokens[id].text;
}

// Room in the arena for `count` bytes, not yet taken.
static uint8_t *arena_take(bpe_t *self, size_t count)
{
    if (self->arena_capacity - self->arena_count < count) {
        self->arena_capacity = 2 * self->arena_capacity + count;
        self->arena = realloc(self->arena, self->arena_capacity);
        ensure(self->arena);
    }
    return self->arena + self->arena_count;
}

static void token_store(bpe_t *self, uint32_t id, const char *text, size_t count)
{
    struct token *token = &self->tokens[id];
    size_t bytes = 0;
    uint8_t *scratch = arena_take(self, 2 * count);
    memcpy(scratch, text, count);
    *token = (struct token){ .text = self->arena_count, .text_count = (uint32_t)count };
    if (byte_alphabet_read(scratch, count, scratch + count, &bytes)) {
        token->bytes = self->arena_count + count;
        token->bytes_count = (uint32_t)bytes;
    } else { // Stands for its own text
        bytes = 0;
        token->bytes = token->text;
        token->bytes_count = token->text_count;
    }
    self->arena_count += count + bytes;
}

static void tokens_grow(bpe_t *self, uint32_t id)
{
    if (id >= self->tokens_capacity) {
        self->tokens_capacity = id + id / 2 + 1024;
        self->tokens = realloc(self->tokens, self->tokens_capacity * sizeof *self->tokens);
        ensure(self->tokens);
    }
    for (; self->id_end <= id; self->id_end++) self->tokens[self->id_end] = (struct token){ 0 };
}

int bpe_add_token(bpe_t *self, uint32_t id, const char *text, size_t count, struct why *why)
{
    if (id >= BPE_TOKENS_MAX)
        return why_set(why, FAULT_RANGE, "id %u, allowed is 0 to %d", id, BPE_TOKENS_MAX - 1);
    if (count < 1 || count > BPE_TOKEN_BYTES_MAX)
        return why_set(why, FAULT_RANGE, "a token of %zu bytes, allowed is 1 to %d", count,
                       BPE_TOKEN_BYTES_MAX);
    if (bpe_find(self, text, count) != BPE_NONE)
        return why_set(why, FAULT_FORMAT, "id %u: its text is that of id %u", id,
                       bpe_find(self, text, count));
    if (id < self->id_end && self->tokens[id].text_count)
        return why_set(why, FAULT_FORMAT, "id %u is given to two tokens", id);
    tokens_grow(self, id);
    token_store(self, id, text, count);
    text_map_add(&self->ids, text_of, self, id);
    self->token_count++;
    return 0;
}

// The token whose text is both texts together.
static uint32_t find_joined(bpe_t *self, uint32_t left, uint32_t right)
{
    const struct token a = self->tokens[left], b = self->tokens[right];
    uint8_t *scratch = arena_take(self, (size_t)a.text_count + b.text_count);
    memcpy(scratch, self->arena + a.text, a.text_count);
    memcpy(scratch + a.text_count, self->arena + b.text, b.text_count);
    return bpe_find(self, (const char *)scratch, (size_t)a.text_count + b.text_count);
}

int bpe_add_merge(bpe_t *self, uint32_t left, uint32_t right, struct why *why)
{
    ensure(left < self->id_end && right < self->id_end);
    if (self->merge_count == BPE_MERGES_MAX)
        return why_set(why, FAULT_LIMIT, "more than %d merges", BPE_MERGES_MAX);
    const uint32_t made = find_joined(self, left, right);
    if (made == BPE_NONE)
        return why_set(why, FAULT_FORMAT,
                       "merge %u of ids %u and %u makes a text that is not a token",
                       self->merge_count, left, right);
    struct pair_slot *slot = pair_map_add(&self->made, pair_of(left, right));
    if (slot->value)
        return why_set(why, FAULT_FORMAT, "merge %u of ids %u and %u is there already, as merge %u",
                       self->merge_count, left, right, (uint32_t)(slot->value >> 32) - 1);
    slot->value = (uint64_t)(self->merge_count + 1) << 32 | made; // Ranks from 1: never 0
    if (self->merge_count == self->merges_capacity) {
        self->merges_capacity = 2 * self->merges_capacity + 1024;
        self->merges = realloc(self->merges, self->merges_capacity * sizeof *self->merges);
        ensure(self->merges);
    }
    self->merges[self->merge_count++] = (struct merge){ left, right };
    return 0;
}

void bpe_finish(bpe_t *self, const struct bpe_options *options)
{
    self->options = *options;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[2];
        const uint8_t value = (uint8_t)byte;
        const size_t count = byte_alphabet_write(&value, 1, text);
        self->byte_ids[byte] = bpe_find(self, (const char *)text, count);
    }
}

// ---- looking

const struct bpe_options *bpe_options_of(const bpe_t *self) { return &self->options; }

uint32_t bpe_id_end(const bpe_t *self) { return self->id_end; }

uint32_t bpe_token_count(const bpe_t *self) { return self->token_count; }

uint32_t bpe_find(const bpe_t *self, const char *text, size_t count)
{
    return text_map_find(&self->ids, text_of, self, (const uint8_t *)text, count);
}

uint32_t bpe_byte_id(const bpe_t *self, uint8_t byte) { return self->byte_ids[byte]; }

const char *bpe_text(const bpe_t *self, uint32_t id, size_t *ret_count)
{
    if (id >= self->id_end || !self->tokens[id].text_count) return NULL;
    return (const char *)text_of(self, id, ret_count);
}

const uint8_t *bpe_bytes(const bpe_t *self, uint32_t id, size_t *ret_count)
{
    if (id >= self->id_end || !self->tokens[id].text_count) return NULL;
    *ret_count = self->tokens[id].bytes_count;
    return self->arena + self->tokens[id].bytes;
}

uint32_t bpe_merge_count(const bpe_t *self) { return self->merge_count; }

void bpe_merge_at(const bpe_t *self, uint32_t rank, uint32_t *ret_left, uint32_t *ret_right)
{
    ensure(rank < self->merge_count);
    *ret_left = self->merges[rank].left;
    *ret_right = self->merges[rank].right;
}

// ---- encoding

// A cache of encoded words. The hash of a word names its only slot; a newer word replaces an older
// one. A slot fills one cache line of the processor.
enum { CACHE_SLOTS = 1 << 16, CACHE_BYTES = 30, CACHE_IDS = 8 };
struct cached {
    uint8_t bytes_count, ids_count, bytes[CACHE_BYTES];
    uint32_t ids[CACHE_IDS];
};
_Static_assert(sizeof(struct cached) == 64, "a line of the cache");

// A word while it is merged: symbols in a linked list, and a heap of (rank << 32 | index) of
// neighbours that may merge. An entry may be out of date; that is checked when it leaves the heap.
struct symbol {
    uint32_t id, before, after;
}; // `before` and `after` are indexes; AT_END beyond either end
#define AT_END UINT32_MAX
#define MERGED (UINT32_MAX - 1) // `after` of a symbol that was merged into the one before it

struct bpe_work {
    struct cached *cache;
    struct symbol *symbols;
    uint64_t *heap;
    size_t symbols_room, heap_count, heap_room;
    uint8_t *text; // A word in byte_alphabet.h's characters, for ignore_merges
    size_t text_room;
};

struct bpe_work *bpe_work_new(void)
{
    struct bpe_work *self = calloc(1, sizeof *self);
    if (self) self->cache = calloc(CACHE_SLOTS, sizeof *self->cache);
    if (self && !self->cache) bpe_work_destroy(&self);
    return self;
}

void bpe_work_destroy(struct bpe_work **self_p)
{
    struct bpe_work *self = *self_p;
    if (!self) return;
    free(self->cache);
    free(self->symbols);
    free(self->heap);
    free(self->text);
    free(self);
    *self_p = NULL;
}

static void heap_push(struct bpe_work *self, uint64_t entry)
{
    if (self->heap_count == self->heap_room) {
        self->heap_room = 2 * self->heap_room + 256;
        self->heap = realloc(self->heap, self->heap_room * sizeof *self->heap);
        ensure(self->heap);
    }
    size_t at = self->heap_count++;
    for (; at > 0 && self->heap[(at - 1) / 2] > entry; at = (at - 1) / 2)
        self->heap[at] = self->heap[(at - 1) / 2];
    self->heap[at] = entry;
}

static uint64_t heap_pop(struct bpe_work *self)
{
    const uint64_t top = self->heap[0], last = self->heap[--self->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < self->heap_count; at = child) {
        if (child + 1 < self->heap_count && self->heap[child + 1] < self->heap[child]) child++;
        if (self->heap[child] >= last) break;
        self->heap[at] = self->heap[child];
    }
    self->heap[at] = last;
    return top;
}

// Rank and token of the merge of a symbol with the one after it; 0 if there is none.
static uint64_t merge_at(const bpe_t *self, const struct bpe_work *work, uint32_t at)
{
    const struct symbol *symbol = &work->symbols[at];
    if (symbol->after >= MERGED) return 0;
    const struct pair_slot *slot =
        pair_map_find(&self->made, pair_of(symbol->id, work->symbols[symbol->after].id));
    return slot ? slot->value : 0;
}

static void offer(const bpe_t *self, struct bpe_work *work, uint32_t at)
{
    const uint64_t merge = merge_at(self, work, at);
    if (merge) heap_push(work, (merge & ~(uint64_t)UINT32_MAX) | at);
}

static void merge_all(const bpe_t *self, struct bpe_work *work, uint32_t count)
{
    work->heap_count = 0;
    for (uint32_t at = 0; at + 1 < count; at++) offer(self, work, at);
    while (work->heap_count > 0) {
        const uint64_t entry = heap_pop(work);
        const uint32_t at = (uint32_t)entry;
        const uint64_t merge = merge_at(self, work, at);
        if (merge >> 32 != entry >> 32) continue; // The symbols changed since: out of date
        struct symbol *symbol = &work->symbols[at], *next = &work->symbols[symbol->after];
        symbol->id = (uint32_t)merge;
        symbol->after = next->after;
        next->after = MERGED;
        if (symbol->after != AT_END) work->symbols[symbol->after].before = at;
        if (symbol->before != AT_END) offer(self, work, symbol->before);
        offer(self, work, at);
    }
}

// The ids of the word's bytes as a list of symbols; how many, or a fault.
static int64_t take_bytes(const bpe_t *self, struct bpe_work *work, const uint8_t *word,
                          size_t count, struct why *why)
{
    uint32_t made = 0;
    bool was_unk = false;
    if (count > work->symbols_room) {
        work->symbols_room = 2 * count;
        work->symbols = realloc(work->symbols, work->symbols_room * sizeof *work->symbols);
        ensure(work->symbols);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t id = self->byte_ids[word[i]];
        const bool is_unk = id == BPE_NONE;
        if (is_unk && self->options.unk_id == BPE_NONE)
            return why_set(why, FAULT_RANGE,
                           "the byte 0x%02x, %zu bytes into a word, is not a token "
                           "and there is no unk_token",
                           word[i], i);
        if (is_unk && was_unk && self->options.fuse_unk) continue;
        was_unk = is_unk;
        work->symbols[made] =
            (struct symbol){ is_unk ? self->options.unk_id : id, made - 1, made + 1 };
        made++;
    }
    work->symbols[0].before = AT_END;
    work->symbols[made - 1].after = AT_END;
    return made;
}

static uint32_t find_whole(const bpe_t *self, struct bpe_work *work, const uint8_t *word,
                           size_t count)
{
    if (count > BPE_TOKEN_BYTES_MAX) return BPE_NONE;
    if (2 * count > work->text_room) {
        work->text_room = 4 * count;
        work->text = realloc(work->text, work->text_room);
        ensure(work->text);
    }
    const size_t length = byte_alphabet_write(word, count, work->text);
    return bpe_find(self, (const char *)work->text, length);
}

// Encodes a word that is not in the cache, or too long for it.
static int encode_uncached(const bpe_t *self, struct bpe_work *work, const uint8_t *word,
                           size_t count, struct why *why, struct token_list *out)
{
    if (self->options.ignore_merges) {
        const uint32_t id = find_whole(self, work, word, count);
        if (id != BPE_NONE) {
            token_list_add(out, id);
            return 0;
        }
    }
    const int64_t made = take_bytes(self, work, word, count, why);
    if (made < 0) return (int)made;
    if (self->merge_count) merge_all(self, work, (uint32_t)made);
    token_list_reserve(out, (size_t)made);
    for (uint32_t at = 0; at != AT_END; at = work->symbols[at].after)
        out->ids[out->count++] = work->symbols[at].id;
    return 0;
}

// FNV-1a, folded. It only chooses the slot; the word itself is compared.
static uint32_t slot_of(const uint8_t *word, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ word[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32 ^ hash >> 16) % CACHE_SLOTS;
}

int bpe_encode(const bpe_t *self, struct bpe_work *work, const uint8_t *word, size_t count,
               struct why *why, struct token_list *out)
{
    ensure(count > 0 && count <= BPE_WORD_MAX);
    if (count > CACHE_BYTES) return encode_uncached(self, work, word, count, why, out);
    struct cached *slot = &work->cache[slot_of(word, count)];
    if (slot->bytes_count == count && memcmp(slot->bytes, word, count) == 0) {
        token_list_reserve(out, CACHE_IDS);
        memcpy(out->ids + out->count, slot->ids, sizeof slot->ids);
        out->count += slot->ids_count;
        return 0;
    }
    const size_t before = out->count;
    int rc = encode_uncached(self, work, word, count, why, out);
    const size_t made = out->count - before;
    if (rc < 0 || made > CACHE_IDS) return rc;
    *slot = (struct cached){ .bytes_count = (uint8_t)count, .ids_count = (uint8_t)made };
    memcpy(slot->bytes, word, count);
    memcpy(slot->ids, out->ids + before, made * sizeof *slot->ids);
    return 0;
}
