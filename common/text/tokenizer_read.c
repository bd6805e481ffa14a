// tokenizer_read -- in this order: the root's keys, the model (vocabulary, then merges), the
// normalizer, the added tokens, then pre-tokenizer, post-processor and decoder (tokenizer_parts.c). Each part needs those
// before it. The first fault ends the reading and destroys what was built.

#include "common/text/nfc.h"
#include "common/text/tokenizer_json.h"
#include "common/text/tokenizer_parts.h"
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, VALUES_MAX = 8 << 20 };

// ---- the model

static int read_vocab(const json_t *model, const char *place, bpe_t *bpe, struct why *why)
{
    const json_t *vocab = json_object_get(model, "vocab");
    const char *text;
    json_t *id;
    int rc = 0;
    if (!json_is_object(vocab))
        return why_set(why, FAULT_FORMAT, "%s: 'vocab' is missing or no object; refused", place);
    json_object_foreach((json_t *)vocab, text, id)
    {
        char shown[STRICT_JSON_SHOWN];
        const json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;
        if (number < 0 || number >= BPE_TOKENS_MAX)
            rc = why_set(why, FAULT_RANGE, "its id is not a number of 0 to %d", BPE_TOKENS_MAX - 1);
        else rc = bpe_add_token(bpe, (uint32_t)number, text, strlen(text), why);
        if (rc < 0)
            return why_wrap(why, rc, "%s: vocab '%s'", place, strict_json_shown(text, shown));
    }
    return 0;
}

// The two sides of "a b" or ["a", "b"].
struct sides {
    const char *left, *right;
    size_t left_count, right_count;
};

static bool read_sides(const json_t *merge, struct sides *sides)
{
    if (json_is_array(merge)) {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        *sides = (struct sides){ json_string_value(left), json_string_value(right),
                                 json_string_length(left), json_string_length(right) };
        return json_array_size(merge) == 2 && sides->left && sides->right;
    }
    const char *text = json_string_value(merge), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return false;
    *sides = (struct sides){ text, space + 1, (size_t)(space - text), strlen(space + 1) };
    return strncmp(text, "#version", 8) != 0; // Hugging Face's reader skips such a line
}

static int read_merge(const json_t *merge, bpe_t *bpe, struct why *why)
{
    struct sides sides;
    if (!read_sides(merge, &sides))
        return why_set(why, FAULT_FORMAT, "neither \"left right\" nor [\"left\", \"right\"]");
    const uint32_t left = bpe_find(bpe, sides.left, sides.left_count);
    const uint32_t right = bpe_find(bpe, sides.right, sides.right_count);
    if (left == BPE_NONE || right == BPE_NONE) {
        char shown[STRICT_JSON_SHOWN];
        const char *text = left == BPE_NONE ? sides.left : sides.right;
        return why_set(why, FAULT_FORMAT, "'%s' is not a token", strict_json_shown(text, shown));
    }
    return bpe_add_merge(bpe, left, right, why);
}

static int read_merges(const json_t *model, const char *place, bpe_t *bpe, struct why *why)
{
    const json_t *merges;
    int rc = strict_json_array(model, place, "merges", BPE_MERGES_MAX, why, &merges);
    for (size_t i = 0; rc == 0 && i < json_array_size(merges); i++) {
        rc = read_merge(json_array_get(merges, i), bpe, why);
        if (rc < 0) why_wrap(why, rc, "%s: merges[%zu]", place, i);
    }
    return rc;
}

static int check_model(const json_t *model, const char *place, struct why *why)
{
    static const char *const keys[] = { "type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL };
    static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *dropout = json_object_get(model, "dropout");
    const char *type = "BPE";
    bool byte_fallback = false;
    // Files older than 2020 have no 'type'.
    int rc = json_is_object(model) && !json_object_get(model, "type")
                 ? 0
                 : tokenizer_read_type(model, place, why, &type);
    if (rc == 0 && strcmp(type, "BPE") != 0) rc = tokenizer_refuse_type(place, type, "BPE", why);
    if (rc == 0) rc = tokenizer_check_keys(model, place, keys, why);
    if (rc == 0)
        rc = tokenizer_read_flag(model, place, "byte_fallback", false, why, &byte_fallback);
    if (rc < 0) return rc;
    if (byte_fallback) return tokenizer_refuse(place, why, "'byte_fallback' is true");
    if (!tokenizer_is_none(dropout) &&
        !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return tokenizer_refuse(place, why, "'dropout' is not null and not 0");
    for (size_t i = 0; i < 2; i++) {
        const json_t *affix = json_object_get(model, affixes[i]);
        if (!tokenizer_is_none(affix) && !(json_is_string(affix) && json_string_length(affix) == 0))
            return why_set(why, FAULT_UNSUPPORTED,
                           "%s: '%s' is not null and not \"\"; refused, "
                           "because it may change ids",
                           place, affixes[i]);
    }
    return 0;
}

static int read_model(const json_t *model, const char *whole, bpe_t *bpe, struct why *why)
{
    struct bpe_options options = { .unk_id = BPE_NONE };
    const json_t *unk = json_object_get(model, "unk_token");
    char place[TOKENIZER_PLACE_MAX];
    snprintf(place, sizeof place, "%s: model", whole);
    int rc = check_model(model, place, why);
    if (rc == 0) rc = tokenizer_read_flag(model, place, "fuse_unk", false, why, &options.fuse_unk);
    if (rc == 0)
        rc = tokenizer_read_flag(model, place, "ignore_merges", false, why, &options.ignore_merges);
    if (rc == 0 && !tokenizer_is_none(unk) && !json_is_string(unk))
        rc = why_set(why, FAULT_FORMAT, "%s: 'unk_token' is not a text; refused", place);
    if (rc == 0) rc = read_vocab(model, place, bpe, why);
    if (rc == 0) rc = read_merges(model, place, bpe, why);
    if (rc < 0) return rc;
    if (json_is_string(unk))
        options.unk_id = bpe_find(bpe, json_string_value(unk), json_string_length(unk));
    bpe_finish(bpe, &options);
    return 0;
}

// ---- added tokens

// The id that Hugging Face's reader gives, whatever the file says: that of the vocabulary, or the
// next one after the vocabulary and the added tokens so far.
static uint32_t expected_id(const tokenizer_t *self, const char *content, size_t count,
                            uint32_t added_end)
{
    const uint32_t id = bpe_find(self->bpe, content, count), size = bpe_token_count(self->bpe);
    if (id != BPE_NONE) return id;
    return added_end > size ? added_end : size;
}

static int check_added(const tokenizer_t *self, const struct added_token *token, uint32_t added_end,
                       struct why *why)
{
    size_t length;
    const uint32_t expected = expected_id(self, token->content, token->bytes, added_end);
    if (token->id != expected)
        return why_set(why, FAULT_FORMAT,
                       "its id is %u, but vocabulary and place make it %u; "
                       "refused",
                       token->id, expected);
    const char *text = bpe_text(self->bpe, token->id, &length);
    if (text && (length != token->bytes || memcmp(text, token->content, length) != 0))
        return why_set(why, FAULT_FORMAT, "its id %u is another token's in the vocabulary; refused",
                       token->id);
    return 0;
}

// Hugging Face looks for the content in NFC in a text in NFC, and decodes to the content as it is.
static int check_content_nfc(const struct added_token *token, struct why *why)
{
    const uint8_t *content = (const uint8_t *)token->content;
    uint8_t *normal;
    size_t count;
    int rc = nfc_normalize(content, token->bytes, why, &normal, &count);
    if (rc < 0) return rc;
    if (count != token->bytes || memcmp(normal, content, count) != 0)
        rc = why_set(why, FAULT_UNSUPPORTED,
                     "its content is not in NFC, as the normalizer makes every text; refused");
    free(normal);
    return rc;
}

static int read_added(const json_t *value, const char *place, struct why *why,
                      struct added_token *token)
{
    static const char *const keys[] = { "id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL };
    uint64_t id;
    const char *content;
    bool single_word = false;
    if (!json_is_object(value)) return why_set(why, FAULT_FORMAT, "%s: not an object", place);
    int rc = tokenizer_check_keys(value, place, keys, why);
    if (rc == 0) rc = strict_json_number(value, place, "id", BPE_TOKENS_MAX - 1, why, &id);
    if (rc == 0)
        rc = strict_json_text(value, place, "content", ADDED_TOKEN_BYTES_MAX, why, &content);
    if (rc == 0) rc = tokenizer_read_flag(value, place, "single_word", false, why, &single_word);
    if (rc == 0) rc = tokenizer_read_flag(value, place, "lstrip", false, why, &token->lstrip);
    if (rc == 0) rc = tokenizer_read_flag(value, place, "rstrip", false, why, &token->rstrip);
    if (rc == 0)
        rc = tokenizer_read_flag(value, place, "normalized", true, why, &token->normalized);
    if (rc == 0) rc = tokenizer_read_flag(value, place, "special", false, why, &token->special);
    if (rc < 0) return rc;
    if (single_word) return tokenizer_refuse(place, why, "'single_word' is true");
    token->content = (char *)content; // Only read: added_tokens_add copies it
    token->bytes = (uint32_t)strlen(content);
    token->id = (uint32_t)id;
    return 0;
}

// No two added tokens have the same content. Within a set, which is sorted, they would be
// neighbours.
static int check_twins(const tokenizer_t *self, const char *place, struct why *why)
{
    const struct added_tokens *const sets[] = { &self->plain, &self->normalized };
    for (int set = 0; set < 2; set++)
        for (uint32_t i = 0; i < sets[set]->count; i++) {
            const struct added_token *token = &sets[set]->tokens[i];
            char shown[STRICT_JSON_SHOWN];
            if ((i == 0 || strcmp(token[-1].content, token->content) != 0) &&
                (set == 1 || !added_tokens_find(sets[1], token->content, token->bytes)))
                continue;
            return why_set(why, FAULT_FORMAT, "%s: two added tokens '%s'; refused", place,
                           strict_json_shown(token->content, shown));
        }
    return 0;
}

static int read_added_tokens(const json_t *root, const char *whole, tokenizer_t *self,
                             struct why *why)
{
    const json_t *list = json_object_get(root, "added_tokens");
    uint32_t added_end = 0;
    int rc = 0;
    if (tokenizer_is_none(list)) return 0;
    rc = strict_json_array(root, whole, "added_tokens", ADDED_TOKENS_MAX, why, &list);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct added_token token;
        char place[TOKENIZER_PLACE_MAX];
        snprintf(place, sizeof place, "%s: added_tokens[%zu]", whole, i);
        rc = read_added(json_array_get(list, i), place, why, &token);
        if (rc == 0) rc = check_added(self, &token, added_end, why);
        if (rc == 0 && self->nfc && token.normalized) rc = check_content_nfc(&token, why);
        if (rc == 0)
            rc = added_tokens_add(token.normalized ? &self->normalized : &self->plain, &token, why);
        if (rc < 0) return why_wrap(why, rc, "%s", place);
        if (token.id >= added_end) added_end = token.id + 1;
    }
    if (rc == 0) rc = added_tokens_finish(&self->plain, why);
    if (rc == 0) rc = added_tokens_finish(&self->normalized, why);
    if (rc == 0) rc = check_twins(self, whole, why);
    return rc;
}

// ---- the whole

static int check_root(const json_t *root, const char *place, struct why *why)
{
    static const char *const keys[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL
    };
    static const char *const none[] = { "truncation", "padding" };
    const json_t *version = json_object_get(root, "version");
    int rc = tokenizer_check_keys(root, place, keys, why);
    if (rc < 0) return rc;
    if (version && (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        return why_set(why, FAULT_UNSUPPORTED, "%s: 'version' is not \"1.0\"; refused", place);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!tokenizer_is_none(json_object_get(root, none[i])))
            return why_set(why, FAULT_UNSUPPORTED,
                           "%s: '%s' is not null; refused, because it may "
                           "change ids",
                           place, none[i]);
    return 0;
}

int tokenizer_read(const char *place, const char *text, size_t count, struct why *why,
                   tokenizer_t **ret_self)
{
    json_t *root = NULL;
    if (count > TOKENIZER_FILE_MAX)
        return why_set(why, FAULT_LIMIT, "%s has %zu bytes, allowed are %d; refused", place, count,
                       TOKENIZER_FILE_MAX);
    tokenizer_t *self = calloc(1, sizeof *self);
    int rc = self ? bpe_new(why, &self->bpe) : why_set(why, FAULT_MEMORY, "a tokenizer");
    if (rc == 0) rc = strict_json_parse(place, text, count, DEPTH_MAX, VALUES_MAX, why, &root);
    if (rc == 0) rc = check_root(root, place, why);
    if (rc == 0) rc = read_model(json_object_get(root, "model"), place, self->bpe, why);
    if (rc == 0) rc = tokenizer_read_normalizer(root, place, &self->nfc, why);
    if (rc == 0) rc = read_added_tokens(root, place, self, why);
    if (rc == 0) rc = tokenizer_read_pretokenizer(root, place, &self->pretokenizer, why);
    if (rc == 0) rc = tokenizer_read_post_processor(root, place, self, why);
    if (rc == 0) rc = tokenizer_check_decoder(root, place, why);
    json_decref(root);
    if (rc < 0) tokenizer_destroy(&self);
    else *ret_self = self;
    return rc;
}
