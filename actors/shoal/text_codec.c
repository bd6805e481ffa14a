#include "actors/shoal/text_codec.h"
#include "common/data/byte_tokenizer.h"
#include <stdlib.h>

struct text_codec { uint32_t vocab; };

int text_codec_open(const char *dir, uint32_t vocab, struct why *why, text_codec_t **ret_codec)
{
    if (vocab != BYTE_VOCAB)
        return why_set(why, FAULT_UNSUPPORTED,
                       "%s: a vocabulary of %u; only byte tokens (256) are turned into text", dir,
                       vocab);
    text_codec_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a tokenizer");
    self->vocab = vocab;
    *ret_codec = self;
    return 0;
}

void text_codec_close(text_codec_t **self)
{
    free(*self);
    *self = NULL;
}

int text_codec_encode(const text_codec_t *self, const char *text, size_t bytes, struct why *why,
                      uint32_t **ret_tokens, size_t *ret_count)
{
    (void)self;
    uint32_t *tokens = malloc((bytes + 1) * sizeof *tokens);
    if (!tokens) return why_set(why, FAULT_MEMORY, "%zu tokens", bytes);
    for (size_t i = 0; i < bytes; i++) tokens[i] = (unsigned char)text[i];
    *ret_tokens = tokens;
    *ret_count = bytes;
    return 0;
}

int text_codec_decode(const text_codec_t *self, const uint32_t *tokens, size_t count,
                      struct why *why, char **ret_text, size_t *ret_bytes)
{
    char *text = malloc(count + 1);
    if (!text) return why_set(why, FAULT_MEMORY, "a text of %zu tokens", count);
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] >= self->vocab) {
            free(text);
            return why_set(why, FAULT_RANGE, "token %u at place %zu, allowed 0..%u", tokens[i], i,
                           self->vocab - 1);
        }
        text[i] = (char)tokens[i];
    }
    text[count] = 0;
    *ret_text = text;
    *ret_bytes = count;
    return 0;
}
