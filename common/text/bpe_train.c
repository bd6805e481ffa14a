// bpe_train -- learns merges from counted words. Each worker counts words in a map of its own;
// finish joins the maps, turns words into symbols, counts each pair of neighbours and puts the
// pairs into a queue. Then, until the vocabulary is full: the commonest pair leaves the queue,
// becomes a token in every word of its list, and the pairs that come up in those words enter the
// queue. A count in the queue may be out of date: it is compared with the true one when it leaves,
// and put back if it fell.

#include "common/text/bpe_train.h"
#include "common/text/byte_alphabet.h"
#include "common/text/pair_map.h"
#include "common/text/word_counts.h"
#include <string.h>

enum { WORD_MAX = 1 << 20, SAY_EVERY = 64 };

struct word {
    size_t at;
    uint32_t count;
    uint64_t times;
}; // A run of `symbols`

struct pair {
    uint64_t pair; // left << 32 | right
    int64_t times; // In all words; too low, never too high, where the pair overlaps itself ("aaa")
    uint32_t *fresh, fresh_count, fresh_capacity; // Words it came up in since it was queued
};

struct place {     // An entry of the queue
    int64_t times; // The count when it entered the queue
    uint64_t pair;
    uint32_t number;              // Counts up; of two entries with the same pair the newer is first
    uint32_t *words, words_count; // Owned
};

struct bpe_train {
    struct bpe_train_options options;
    struct word_counts counts[BPE_TRAIN_WORKERS_MAX];
    uint64_t words_seen[BPE_TRAIN_WORKERS_MAX];
    bpe_t *vocabulary; // Tokens so far; ids without a gap
    uint32_t byte_ids[256];
    struct word *words;
    uint32_t words_count;
    uint32_t *symbols;
    struct pair *pairs;
    uint32_t pairs_count, pairs_capacity;
    struct pair_map pair_numbers; // Pair to 1 + its index in `pairs`
    uint32_t *touched;            // Pairs with fresh words
    uint32_t touched_count, touched_capacity;
    struct place *queue; // A heap
    uint32_t queue_count, queue_capacity, places;
    uint64_t *merges; // Pairs, in order
    uint32_t merges_count, merges_capacity;
};

// Makes room for one more item. Dies when memory is out.
static void *grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    *capacity = 2 * *capacity + 16;
    array = realloc(array, *capacity * size);
    ensure(array);
    return array;
}

// ---- the beginning

static int add_text(bpe_train_t *self, const char *text, size_t count, struct why *why)
{
    return bpe_add_token(self->vocabulary, bpe_id_end(self->vocabulary), text, count, why);
}

static int add_special(bpe_train_t *self, struct why *why)
{
    for (uint32_t i = 0; i < self->options.special_count; i++) {
        const char *text = self->options.special_tokens[i];
        int rc = strlen(text) > ADDED_TOKEN_BYTES_MAX
                     ? why_set(why, FAULT_RANGE, "above %d bytes", ADDED_TOKEN_BYTES_MAX)
                     : add_text(self, text, strlen(text), why);
        if (rc < 0) return why_wrap(why, rc, "special token '%.60s'", text);
    }
    return 0;
}

// In the order of their characters; one that is a special token already is that token.
static int add_bytes(bpe_train_t *self, struct why *why)
{
    int rc = 0;
    for (uint32_t code_point = 0, found = 0; rc == 0 && found < 256; code_point++) {
        const int byte = byte_alphabet_byte(code_point);
        if (byte < 0) continue;
        char text[2];
        const uint8_t value = (uint8_t)byte;
        const size_t count = byte_alphabet_write(&value, 1, (uint8_t *)text);
        found++;
        if (bpe_find(self->vocabulary, text, count) == BPE_NONE)
            rc = add_text(self, text, count, why);
        self->byte_ids[byte] = bpe_find(self->vocabulary, text, count);
    }
    return rc;
}

static int check_options(const struct bpe_train_options *options, struct why *why)
{
    if (options->vocab_size < 1 || options->vocab_size > BPE_TOKENS_MAX)
        return why_set(why, FAULT_RANGE, "a vocabulary of %u tokens, allowed is 1 to %d",
                       options->vocab_size, BPE_TOKENS_MAX);
    if (options->workers < 1 || options->workers > BPE_TRAIN_WORKERS_MAX)
        return why_set(why, FAULT_RANGE, "%u workers, allowed is 1 to %d", options->workers,
                       BPE_TRAIN_WORKERS_MAX);
    if (options->special_count > BPE_TRAIN_SPECIAL_MAX)
        return why_set(why, FAULT_RANGE, "%u special tokens, allowed are %d",
                       options->special_count, BPE_TRAIN_SPECIAL_MAX);
    return 0;
}

int bpe_train_new(const struct bpe_train_options *options, struct why *why, bpe_train_t **ret_self)
{
    int rc = check_options(options, why);
    if (rc < 0) return rc;
    bpe_train_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a tokenizer's trainer");
    self->options = *options;
    rc = bpe_new(why, &self->vocabulary);
    if (rc == 0) rc = add_special(self, why);
    if (rc == 0) rc = add_bytes(self, why);
    if (rc < 0) bpe_train_destroy(&self);
    else *ret_self = self;
    return rc;
}

void bpe_train_destroy(bpe_train_t **self_p)
{
    bpe_train_t *self = *self_p;
    if (!self) return;
    for (uint32_t i = 0; i < BPE_TRAIN_WORKERS_MAX; i++) word_counts_free(&self->counts[i]);
    for (uint32_t i = 0; i < self->pairs_count; i++) free(self->pairs[i].fresh);
    for (uint32_t i = 0; i < self->queue_count; i++) free(self->queue[i].words);
    bpe_destroy(&self->vocabulary);
    pair_map_free(&self->pair_numbers);
    free(self->words);
    free(self->symbols);
    free(self->pairs);
    free(self->touched);
    free(self->queue);
    free(self->merges);
    free(self);
    *self_p = NULL;
}

// ---- words

struct counting {
    struct word_counts *counts;
    uint64_t words;
};

static int count_word(void *context, const uint8_t *word, size_t count)
{
    struct counting *self = context;
    word_counts_add(self->counts, word, count < WORD_MAX ? (uint32_t)count : WORD_MAX, 1);
    self->words++;
    return 0;
}

void bpe_train_add(bpe_train_t *self, uint32_t worker, const uint8_t *text, size_t count,
                   unsigned flags)
{
    const struct pretokenizer *pretokenizer = &self->options.pretokenizer;
    struct counting counting = { .counts = &self->counts[worker] };
    ensure(worker < self->options.workers);
    if (pretokenizer->add_prefix_space && !(flags & ENCODE_CONTINUES) && count && text[0] != ' ') {
        uint8_t *prefixed = malloc(count + 1);
        ensure(prefixed);
        prefixed[0] = ' ';
        memcpy(prefixed + 1, text, count);
        pretokenize_words(pretokenizer, prefixed, count + 1, count_word, &counting);
        free(prefixed);
    } else {
        pretokenize_words(pretokenizer, text, count, count_word, &counting);
    }
    self->words_seen[worker] += counting.words;
}

// All workers' words in the first's map.
static void join_counts(bpe_train_t *self)
{
    for (uint32_t i = 1; i < self->options.workers; i++) {
        struct word_counts *counts = &self->counts[i];
        for (uint32_t k = 0; k < counts->count; k++)
            word_counts_add(&self->counts[0], counts->text + counts->words[k].at,
                            counts->words[k].bytes, counts->words[k].times);
        word_counts_free(counts);
        self->words_seen[0] += self->words_seen[i];
    }
}

// ---- the queue

// The commonest first, then the lowest ids. bpe_train.h explains two entries with the same pair.
static bool goes_before(const struct place *a, const struct place *b)
{
    if (a->times != b->times) return a->times > b->times;
    if (a->pair != b->pair) return a->pair < b->pair;
    return a->number > b->number;
}

static void queue_push(bpe_train_t *self, const struct place *place)
{
    self->queue = grow(self->queue, self->queue_count, &self->queue_capacity, sizeof *self->queue);
    size_t at = self->queue_count++;
    for (; at > 0 && goes_before(place, &self->queue[(at - 1) / 2]); at = (at - 1) / 2)
        self->queue[at] = self->queue[(at - 1) / 2];
    self->queue[at] = *place;
}

static struct place queue_pop(bpe_train_t *self)
{
    const struct place top = self->queue[0], last = self->queue[--self->queue_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < self->queue_count; at = child) {
        if (child + 1 < self->queue_count &&
            goes_before(&self->queue[child + 1], &self->queue[child]))
            child++;
        if (!goes_before(&self->queue[child], &last)) break;
        self->queue[at] = self->queue[child];
    }
    self->queue[at] = last;
    return top;
}

// ---- pairs

static uint32_t pair_number(bpe_train_t *self, uint64_t pair)
{
    struct pair_slot *slot = pair_map_add(&self->pair_numbers, pair);
    if (slot->value == 0) {
        self->pairs =
            grow(self->pairs, self->pairs_count, &self->pairs_capacity, sizeof *self->pairs);
        self->pairs[self->pairs_count++] = (struct pair){ .pair = pair };
        slot->value = self->pairs_count;
    }
    return (uint32_t)slot->value - 1;
}

static void add_pair(bpe_train_t *self, uint32_t left, uint32_t right, uint32_t word)
{
    const uint32_t number = pair_number(self, pair_of(left, right));
    struct pair *pair = &self->pairs[number];
    pair->times += (int64_t)self->words[word].times;
    if (pair->fresh_count && pair->fresh[pair->fresh_count - 1] == word) return;
    if (pair->fresh_count == 0) {
        self->touched = grow(self->touched, self->touched_count, &self->touched_capacity,
                             sizeof *self->touched);
        self->touched[self->touched_count++] = number;
    }
    pair->fresh = grow(pair->fresh, pair->fresh_count, &pair->fresh_capacity, sizeof *pair->fresh);
    pair->fresh[pair->fresh_count++] = word;
}

static void drop_pair(bpe_train_t *self, uint32_t left, uint32_t right, uint32_t word)
{
    self->pairs[pair_number(self, pair_of(left, right))].times -= (int64_t)self->words[word].times;
}

// Each pair with fresh words gets an entry in the queue, and the entry owns the list of words.
static void queue_touched(bpe_train_t *self)
{
    for (uint32_t i = 0; i < self->touched_count; i++) {
        struct pair *pair = &self->pairs[self->touched[i]];
        const struct place place = { pair->times, pair->pair, self->places++, pair->fresh,
                                     pair->fresh_count };
        if (pair->times > 0) queue_push(self, &place);
        else free(pair->fresh);
        pair->fresh = NULL;
        pair->fresh_count = pair->fresh_capacity = 0;
    }
    self->touched_count = 0;
}

static void take_words(bpe_train_t *self)
{
    const struct word_counts *counts = &self->counts[0];
    self->words = malloc((counts->count + 1) * sizeof *self->words);
    self->symbols = malloc((counts->text_count + 1) * sizeof *self->symbols);
    ensure(self->words && self->symbols);
    self->words_count = counts->count;
    for (size_t i = 0; i < counts->text_count; i++)
        self->symbols[i] = self->byte_ids[counts->text[i]];
    for (uint32_t i = 0; i < counts->count; i++) {
        const struct word_count *from = &counts->words[i];
        self->words[i] = (struct word){ from->at, from->bytes, from->times };
        for (uint32_t k = 1; k < from->bytes; k++)
            add_pair(self, self->symbols[from->at + k - 1], self->symbols[from->at + k], i);
    }
    queue_touched(self);
}

// ---- merging

static void merge_in_word(bpe_train_t *self, uint32_t number, uint32_t left, uint32_t right,
                          uint32_t made)
{
    struct word *word = &self->words[number];
    uint32_t *symbols = self->symbols + word->at, wrote = 0;
    for (uint32_t read = 0; read < word->count;) {
        if (symbols[read] != left || read + 1 == word->count || symbols[read + 1] != right) {
            symbols[wrote++] = symbols[read++];
            continue;
        }
        if (wrote > 0) {
            drop_pair(self, symbols[wrote - 1], left, number);
            add_pair(self, symbols[wrote - 1], made, number);
        }
        read += 2;
        if (read < word->count) {
            drop_pair(self, right, symbols[read], number);
            add_pair(self, made, symbols[read], number);
        }
        symbols[wrote++] = made;
    }
    word->count = wrote;
}

// The token with both texts together; made if it is not there.
static int find_or_add(bpe_train_t *self, uint32_t left, uint32_t right, struct why *why,
                       uint32_t *ret_id)
{
    static const char too_long[] = "a token above the limit";
    size_t left_count, right_count;
    const char *a = bpe_text(self->vocabulary, left, &left_count);
    const char *b = bpe_text(self->vocabulary, right, &right_count);
    if (left_count + right_count > BPE_TOKEN_BYTES_MAX)
        return why_set(why, FAULT_LIMIT, "%s of %d bytes", too_long, BPE_TOKEN_BYTES_MAX);
    char text[BPE_TOKEN_BYTES_MAX];
    memcpy(text, a, left_count);
    memcpy(text + left_count, b, right_count);
    const size_t count = left_count + right_count;
    *ret_id = bpe_find(self->vocabulary, text, count);
    if (*ret_id != BPE_NONE) return 0;
    *ret_id = bpe_id_end(self->vocabulary);
    return add_text(self, text, count, why);
}

static int merge_place(bpe_train_t *self, const struct place *place, struct why *why)
{
    const uint32_t left = (uint32_t)(place->pair >> 32), right = (uint32_t)place->pair;
    uint32_t made;
    int rc = find_or_add(self, left, right, why, &made);
    if (rc < 0) return rc;
    self->merges =
        grow(self->merges, self->merges_count, &self->merges_capacity, sizeof *self->merges);
    self->merges[self->merges_count++] = place->pair;
    for (uint32_t i = 0; i < place->words_count; i++)
        merge_in_word(self, place->words[i], left, right, made);
    queue_touched(self);
    return 0;
}

static int merge_all(bpe_train_t *self, bpe_train_say *say, void *context, struct why *why)
{
    const uint32_t size = self->options.vocab_size;
    int rc = 0;
    for (uint32_t round = 0; rc == 0 && bpe_id_end(self->vocabulary) < size;) {
        if (self->queue_count == 0) break;
        struct place top = queue_pop(self);
        const int64_t times = self->pairs[pair_number(self, top.pair)].times;
        if (top.times != times && times > 0) { // The count fell: back into the queue
            top.times = times;
            queue_push(self, &top);
            continue;
        }
        const bool enough = times < 1 || (uint64_t)times >= self->options.min_frequency;
        if (times > 0 && enough) rc = merge_place(self, &top, why);
        free(top.words);
        if (!enough) break;
        if (rc == 0 && say && ++round % SAY_EVERY == 0 &&
            !say(context, bpe_id_end(self->vocabulary), size))
            rc = why_set(why, FAULT_TIMEOUT, "stopped");
    }
    return rc;
}

// ---- the end

// A pair may have been merged twice; its rank is that of its last merge.
static int add_merges(bpe_train_t *self, struct why *why)
{
    struct pair_map last = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < self->merges_count; i++)
        pair_map_add(&last, self->merges[i])->value = i;
    for (uint32_t i = 0; rc == 0 && i < self->merges_count; i++)
        if (pair_map_find(&last, self->merges[i])->value == i)
            rc = bpe_add_merge(self->vocabulary, (uint32_t)(self->merges[i] >> 32),
                               (uint32_t)self->merges[i], why);
    pair_map_free(&last);
    return rc;
}

static int make_tokenizer(bpe_train_t *self, struct why *why, tokenizer_t **ret_tokenizer)
{
    const struct bpe_options options = { .unk_id = BPE_NONE };
    tokenizer_t *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) return why_set(why, FAULT_MEMORY, "a tokenizer");
    int rc = add_merges(self, why);
    for (uint32_t i = 0; rc == 0 && i < self->options.special_count; i++) {
        const char *text = self->options.special_tokens[i];
        const struct added_token token = {
            .content = (char *)text, .special = true, .id = i, .bytes = (uint32_t)strlen(text)
        };
        rc = added_tokens_add(&tokenizer->plain, &token, why);
    }
    if (rc == 0) rc = added_tokens_finish(&tokenizer->plain, why);
    if (rc < 0) {
        tokenizer_destroy(&tokenizer);
        return rc;
    }
    bpe_finish(self->vocabulary, &options);
    tokenizer->bpe = self->vocabulary;
    tokenizer->pretokenizer = self->options.pretokenizer;
    self->vocabulary = NULL;
    *ret_tokenizer = tokenizer;
    return 0;
}

int bpe_train_finish(bpe_train_t *self, bpe_train_say *say, void *context, struct why *why,
                     tokenizer_t **ret_tokenizer, struct bpe_train_result *ret_result)
{
    join_counts(self);
    if (self->words_seen[0] == 0) return why_set(why, FAULT_RANGE, "the text has no words");
    take_words(self);
    int rc = merge_all(self, say, context, why);
    if (rc < 0) return rc;
    rc = make_tokenizer(self, why, ret_tokenizer);
    if (rc < 0) return rc;
    *ret_result = (struct bpe_train_result){ self->words_seen[0], self->words_count,
                                             bpe_merge_count((*ret_tokenizer)->bpe) };
    return 0;
}
