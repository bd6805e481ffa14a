// tokenizer -- encoding goes through three layers, each for the text that the one before leaves:
// added tokens that are not normalized, added tokens that are (in the text as NFC leaves it), then
// words (pretokenize.h) merged by bpe.h. Decoding looks each id up among the added tokens first, then in the vocabulary.

#include "common/text/tokenizer.h"
#include "common/text/byte_alphabet.h"
#include "common/text/nfc.h"
#include "common/text/unicode.h"
#include <string.h>

int tokenizer_new_bytes(struct why *why, tokenizer_t **ret_self)
{
    const struct bpe_options options = { .unk_id = BPE_NONE };
    tokenizer_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a tokenizer");
    int rc = bpe_new(why, &self->bpe);
    for (unsigned i = 0; rc == 0 && i < TOKENIZER_BYTES_VOCAB; i++) {
        const uint8_t byte = (uint8_t)i;
        uint8_t text[2];
        const size_t count = byte_alphabet_write(&byte, 1, text);
        rc = bpe_add_token(self->bpe, i, (const char *)text, count, why);
    }
    if (rc == 0) bpe_finish(self->bpe, &options);
    if (rc < 0) tokenizer_destroy(&self);
    else *ret_self = self;
    return rc;
}

void tokenizer_destroy(tokenizer_t **self_p)
{
    tokenizer_t *self = *self_p;
    if (!self) return;
    bpe_destroy(&self->bpe);
    added_tokens_free(&self->plain);
    added_tokens_free(&self->normalized);
    free(self);
    *self_p = NULL;
}

static uint32_t added_id_end(const struct added_tokens *added, uint32_t end)
{
    for (uint32_t i = 0; i < added->count; i++)
        if (added->tokens[i].id >= end) end = added->tokens[i].id + 1;
    return end;
}

uint32_t tokenizer_id_end(const tokenizer_t *self)
{
    return added_id_end(&self->plain, added_id_end(&self->normalized, bpe_id_end(self->bpe)));
}

bool tokenizer_is_bytes(const tokenizer_t *self)
{
    if (tokenizer_id_end(self) != TOKENIZER_BYTES_VOCAB || bpe_merge_count(self->bpe) > 0 ||
        self->nfc || self->pretokenizer.add_prefix_space ||
        self->plain.count + self->normalized.count > 0)
        return false;
    for (unsigned i = 0; i < TOKENIZER_BYTES_VOCAB; i++)
        if (bpe_byte_id(self->bpe, (uint8_t)i) != i) return false;
    return true;
}

int tokenizer_find(const tokenizer_t *self, const char *content, struct why *why, uint32_t *ret_id)
{
    const size_t count = strlen(content);
    const struct added_token *token = added_tokens_find(&self->plain, content, count);
    if (!token) token = added_tokens_find(&self->normalized, content, count);
    const uint32_t id = token ? token->id : bpe_find(self->bpe, content, count);
    if (id == BPE_NONE)
        return why_set(why, FAULT_NOT_FOUND, "the vocabulary has no token \"%.80s\"", content);
    *ret_id = id;
    return 0;
}

// ---- encoding

struct encoder {
    const tokenizer_t *tokenizer;
    struct bpe_work *work;
    struct byte_list prefixed; // A text with the space that add_prefix_space puts before
    struct why *why;           // Of the present call, like the members below
    struct token_list *out;
    const uint8_t *continued; // Where a text begins that continues another; else NULL
};

encoder_t *encoder_new(const tokenizer_t *tokenizer)
{
    encoder_t *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->tokenizer = tokenizer;
    self->work = bpe_work_new();
    if (!self->work) encoder_destroy(&self);
    return self;
}

void encoder_destroy(encoder_t **self_p)
{
    encoder_t *self = *self_p;
    if (!self) return;
    bpe_work_destroy(&self->work);
    byte_list_free(&self->prefixed);
    free(self);
    *self_p = NULL;
}

static int encode_word(void *context, const uint8_t *word, size_t count)
{
    encoder_t *self = context;
    if (count > BPE_WORD_MAX)
        return why_set(self->why, FAULT_LIMIT, "a word of %zu bytes, allowed are %d", count,
                       BPE_WORD_MAX);
    return bpe_encode(self->tokenizer->bpe, self->work, word, count, self->why, self->out);
}

static void byte_list_add(struct byte_list *self, const void *bytes, size_t count)
{
    if (self->capacity - self->count < count) {
        self->capacity = 2 * self->capacity + count;
        self->bytes = realloc(self->bytes, self->capacity);
        ensure(self->bytes);
    }
    if (count) memcpy(self->bytes + self->count, bytes, count);
    self->count += count;
}

void byte_list_free(struct byte_list *self)
{
    free(self->bytes);
    *self = (struct byte_list){ 0 };
}

// A piece of text between added tokens, or all of it.
static int encode_text(encoder_t *self, const uint8_t *text, size_t count)
{
    const struct pretokenizer *pretokenizer = &self->tokenizer->pretokenizer;
    const bool goes_on = text == self->continued;
    if (pretokenizer->add_prefix_space && count > 0 && text[0] != ' ' && !goes_on) {
        self->prefixed.count = 0;
        byte_list_add(&self->prefixed, " ", 1);
        byte_list_add(&self->prefixed, text, count);
        text = self->prefixed.bytes;
        count = self->prefixed.count;
    }
    return pretokenize_words(pretokenizer, text, count, encode_word, self);
}

// Where the white space that ends at `end` begins, at `from` or later.
static size_t spaces_before(const uint8_t *text, size_t from, size_t end)
{
    while (end > from) {
        size_t at = end - 1, length;
        while (at > from && (text[at] & 0xc0) == 0x80) at--;
        const uint32_t code_point = unicode_next(text + at, end - at, &length);
        if (unicode_class_of(code_point) != UNICODE_SPACE || at + length != end) break;
        end = at;
    }
    return end;
}

static size_t spaces_behind(const uint8_t *text, size_t count, size_t at)
{
    for (size_t length; at < count; at += length)
        if (unicode_class_of(unicode_next(text + at, count - at, &length)) != UNICODE_SPACE) break;
    return at;
}

typedef int encode_gap_fn(encoder_t *self, const uint8_t *text, size_t count);

// Appends the ids of the added tokens of one set and calls `gap` for the text between them. As in
// Hugging Face, the search goes on behind a token's content, even within the white space that
// rstrip added to it: an added token that is white space is found there again, unless its lstrip
// leaves nothing of it. Such tokens all end where the white space ends, which is therefore found
// once.
static int encode_around(encoder_t *self, const struct added_tokens *added, const uint8_t *text,
                         size_t count, encode_gap_fn *gap)
{
    const struct added_token *token;
    size_t done = 0, from = 0, spaces_end = 0, at;
    while ((token = added_tokens_search(added, text, count, from, &at))) {
        from = at + token->bytes;
        if (token->rstrip && from >= spaces_end) spaces_end = spaces_behind(text, count, from);
        const size_t end = token->rstrip ? spaces_end : from;
        if (token->lstrip) at = done < at ? spaces_before(text, done, at) : done;
        if (done < at) {
            int rc = gap(self, text + done, at - done);
            if (rc < 0) return rc;
        }
        if (at < end) token_list_add(self->out, token->id);
        done = end;
    }
    return gap(self, text + done, count - done);
}

// A piece of text between added tokens that are not normalized, or all of it.
static int encode_normalized(encoder_t *self, const uint8_t *text, size_t count)
{
    const struct added_tokens *added = &self->tokenizer->normalized;
    uint8_t *normal;
    if (!self->tokenizer->nfc || nfc_begin(text, count) == count)
        return encode_around(self, added, text, count, encode_text);
    int rc = nfc_normalize(text, count, self->why, &normal, &count);
    if (rc < 0) return rc;
    const uint8_t *continued = self->continued;
    self->continued = continued && text == continued ? normal : NULL;
    rc = encode_around(self, added, normal, count, encode_text);
    self->continued = continued;
    free(normal);
    return rc;
}

int tokenizer_encode(encoder_t *self, const uint8_t *text, size_t count, unsigned flags,
                     struct why *why, struct token_list *out)
{
    const tokenizer_t *tokenizer = self->tokenizer;
    self->why = why;
    self->out = out;
    self->continued = flags & ENCODE_CONTINUES ? text : NULL;
    return encode_around(self, &tokenizer->plain, text, count, encode_normalized);
}

void tokenizer_template(const tokenizer_t *self, bool behind, struct token_list *out)
{
    const uint32_t *ids = behind ? self->after : self->before;
    const uint32_t count = behind ? self->after_count : self->before_count;
    for (uint32_t i = 0; i < count; i++) token_list_add(out, ids[i]);
}

// ---- cuts

// True if a token of the set could reach over the cut of pretokenize_last_cut, between a letter and
// a line feed: a token with rstrip, or one that has a line feed in its content.
static bool reaches_over(const struct added_tokens *added)
{
    for (uint32_t i = 0; i < added->count; i++)
        if (added->tokens[i].rstrip ||
            memchr(added->tokens[i].content, '\n', added->tokens[i].bytes))
            return true;
    return false;
}

size_t tokenizer_last_cut(const tokenizer_t *self, const uint8_t *text, size_t count)
{
    if (reaches_over(&self->plain) || reaches_over(&self->normalized)) return 0;
    if (tokenizer_is_bytes(self)) return count;
    return pretokenize_last_cut(&self->pretokenizer, text, count);
}

// ---- decoding

int tokenizer_decode(const tokenizer_t *self, const uint32_t *ids, size_t count, bool skip_special,
                     struct why *why, struct byte_list *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const struct added_token *token = added_tokens_by_id(&self->plain, ids[i]);
        if (!token) token = added_tokens_by_id(&self->normalized, ids[i]);
        const uint8_t *bytes = token ? NULL : bpe_bytes(self->bpe, ids[i], &length);
        if (token && !(skip_special && token->special))
            byte_list_add(out, token->content, token->bytes);
        else if (bytes) byte_list_add(out, bytes, length);
        else if (!token)
            return why_set(why, FAULT_RANGE,
                           "token %zu is %u, which the vocabulary of %u does not "
                           "have",
                           i, ids[i], tokenizer_id_end(self));
    }
    return 0;
}
