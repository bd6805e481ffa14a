// The tokenizer of a model's folder, checked against the model's vocabulary when it is opened, so
// that every encoded id is one that the model has.
#include "actors/shoal/text/text_codec.h"
#include "common/text/tokenizer.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct text_codec {
    tokenizer_t *tokenizer;
    encoder_t *encoder;
};

// A folder without a tokenizer.json has a byte tokenizer if its vocabulary is that of bytes.
static int load(const char *dir, uint32_t vocab, struct why *why, tokenizer_t **ret_tokenizer)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    if (access(path, F_OK) == 0) return tokenizer_load(path, why, ret_tokenizer);
    if (vocab == TOKENIZER_BYTES_VOCAB) return tokenizer_new_bytes(why, ret_tokenizer);
    return why_set(why, FAULT_UNSUPPORTED,
                   "%s: a vocabulary of %u without a tokenizer.json; text cannot be made of it",
                   dir, vocab);
}

int text_codec_open(const char *dir, uint32_t vocab, struct why *why, text_codec_t **ret_codec)
{
    text_codec_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a tokenizer");
    int rc = load(dir, vocab, why, &self->tokenizer);
    if (rc == 0 && tokenizer_id_end(self->tokenizer) > vocab)
        rc = why_set(why, FAULT_FORMAT,
                     "%s: its tokenizer has ids up to %u, the model's vocabulary"
                     " ends at %u",
                     dir, tokenizer_id_end(self->tokenizer) - 1, vocab - 1);
    if (rc == 0) self->encoder = encoder_new(self->tokenizer);
    if (rc == 0 && !self->encoder) rc = why_set(why, FAULT_MEMORY, "an encoder");
    if (rc < 0) text_codec_close(&self);
    else *ret_codec = self;
    return rc;
}

void text_codec_close(text_codec_t **self)
{
    if (!*self) return;
    encoder_destroy(&(*self)->encoder);
    tokenizer_destroy(&(*self)->tokenizer);
    free(*self);
    *self = NULL;
}

int text_codec_encode(const text_codec_t *self, const char *text, size_t bytes, struct why *why,
                      uint32_t **ret_tokens, size_t *ret_count)
{
    struct token_list list = { 0 };
    tokenizer_template(self->tokenizer, false, &list);
    const int rc = tokenizer_encode(self->encoder, (const uint8_t *)text, bytes, 0, why, &list);
    if (rc < 0) {
        token_list_free(&list);
        return rc;
    }
    *ret_tokens = list.ids;
    *ret_count = list.count;
    return 0;
}

int text_codec_decode(const text_codec_t *self, const uint32_t *tokens, size_t count,
                      struct why *why, char **ret_text, size_t *ret_bytes)
{
    struct byte_list list = { 0 };
    for (size_t i = 0; i < count; i++) // Its only fault, FAULT_RANGE, means a token without text
        (void)tokenizer_decode(self->tokenizer, tokens + i, 1, false, NULL, &list);
    char *text = realloc(list.bytes, list.count + 1);
    if (!text) {
        byte_list_free(&list);
        return why_set(why, FAULT_MEMORY, "a text");
    }
    text[list.count] = 0;
    *ret_text = text;
    *ret_bytes = list.count;
    return 0;
}
