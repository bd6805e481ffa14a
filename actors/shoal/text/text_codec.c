// The tokenizer of a model's folder, checked against the model's vocabulary when it is opened, so
// that every encoded id is one that the model has.
#include "actors/shoal/text/text_codec.h"
#include "common/base/dirfile.h"
#include "common/base/strict_json.h"
#include "common/text/tokenizer.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// ---- the end of a text

// One id, or an array of them.
static uint32_t add_ids(const json_t *value, uint32_t vocab, uint32_t ends[])
{
    const size_t size = json_is_array(value) ? json_array_size(value) : 1;
    uint32_t count = 0;
    for (size_t i = 0; i < size && count < TEXT_CODEC_ENDS_MAX; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        const json_int_t number = json_integer_value(id); // 0 for what is no integer
        if (json_is_integer(id) && number >= 0 && number < vocab) ends[count++] = (uint32_t)number;
    }
    return count;
}

// Without such a file *ret_root is NULL.
static int read_json(const char *dir, const char *name, struct why *why, json_t **ret_root)
{
    enum { ENDS_DEPTH_MAX = 64, ENDS_VALUES_MAX = 1 << 23 };
    char *text;
    size_t count;
    *ret_root = NULL;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", dir, strerror(errno));
    int rc = dirfile_slurp(fd, name, true, TOKENIZER_FILE_MAX, why, &text, &count);
    close(fd);
    if (rc == FAULT_NOT_FOUND) return 0;
    if (rc == 0) {
        rc = strict_json_parse(name, text, count, ENDS_DEPTH_MAX, ENDS_VALUES_MAX, why, ret_root);
        free(text);
    }
    return rc < 0 ? why_wrap(why, rc, "%s", dir) : 0;
}

// The token is a text, or an object with the text in `content`.
int text_codec_end_token(const char *dir, const char *name, struct why *why, char **ret_text)
{
    json_t *root;
    const int rc = read_json(dir, name, why, &root);
    const json_t *token = json_object_get(root, "eos_token");
    if (json_is_object(token)) token = json_object_get(token, "content");
    *ret_text = json_is_string(token) ? strdup(json_string_value(token)) : NULL;
    json_decref(root);
    return rc;
}

int text_codec_ends(const text_codec_t *self, const char *dir, uint32_t vocab, struct why *why,
                    uint32_t ret_ends[TEXT_CODEC_ENDS_MAX], uint32_t *ret_count)
{
    static const char *const with_token[] = { "tokenizer_config.json", "special_tokens_map.json" };
    static const char *const with_ids[] = { "generation_config.json", "config.json" };
    uint32_t count = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && count == 0 && i < 2; i++) {
        char *token;
        rc = text_codec_end_token(dir, with_token[i], why, &token);
        if (token) count = tokenizer_find(self->tokenizer, token, NULL, &ret_ends[0]) == 0;
        free(token);
    }
    for (size_t i = 0; rc == 0 && count == 0 && i < 2; i++) {
        json_t *root;
        rc = read_json(dir, with_ids[i], why, &root);
        count = add_ids(json_object_get(root, "eos_token_id"), vocab, ret_ends);
        json_decref(root);
    }
    *ret_count = count;
    return rc;
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
