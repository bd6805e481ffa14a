// tokenizer_write -- each part of a tokenizer.json becomes a JSON value; the whole is written last.
// Only the end checks whether memory ran out: json_pack with "o" takes NULL for a failure and
// returns NULL in turn.

#include "common/base/json_file.h"
#include "common/text/tokenizer_json.h"

// ---- tokenizer.json

static json_t *vocab(const bpe_t *bpe)
{
    json_t *json = json_object();
    int rc = json ? 0 : -1;
    for (uint32_t id = 0; rc == 0 && id < bpe_id_end(bpe); id++) {
        size_t count;
        const char *text = bpe_text(bpe, id, &count);
        if (text) rc = json_object_setn_new_nocheck(json, text, count, json_integer(id));
    }
    if (rc == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *merges(const bpe_t *bpe)
{
    json_t *json = json_array();
    int rc = json ? 0 : -1;
    for (uint32_t rank = 0; rc == 0 && rank < bpe_merge_count(bpe); rank++) {
        uint32_t left, right;
        size_t left_count, right_count;
        bpe_merge_at(bpe, rank, &left, &right);
        const char *a = bpe_text(bpe, left, &left_count);
        const char *b = bpe_text(bpe, right, &right_count);
        rc = json_array_append_new(json, json_pack("[s%, s%]", a, left_count, b, right_count));
    }
    if (rc == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *model(const bpe_t *bpe)
{
    const struct bpe_options *options = bpe_options_of(bpe);
    size_t count = 0;
    const char *unk = bpe_text(bpe, options->unk_id, &count);
    return json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", unk ? json_stringn(unk, count) : json_null(),
                     "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                     options->fuse_unk, "byte_fallback", 0, "ignore_merges", options->ignore_merges,
                     "vocab", vocab(bpe), "merges", merges(bpe));
}

static json_t *added_token(const struct added_token *token)
{
    return json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)token->id, "content",
                     token->content, (size_t)token->bytes, "single_word", 0, "lstrip",
                     token->lstrip, "rstrip", token->rstrip, "normalized", token->normalized,
                     "special", token->special);
}

// Ascending by id, because Hugging Face's reader numbers them in the order of the file.
static json_t *added_tokens(const tokenizer_t *self)
{
    const struct added_tokens *a = &self->plain, *b = &self->normalized;
    json_t *json = json_array();
    int rc = json ? 0 : -1;
    for (uint32_t i = 0, k = 0; rc == 0 && (i < a->count || k < b->count);) {
        const struct added_token *first = i < a->count ? &a->tokens[a->by_id[i]] : NULL;
        const struct added_token *second = k < b->count ? &b->tokens[b->by_id[k]] : NULL;
        const bool is_first = first && (!second || first->id < second->id);
        rc = json_array_append_new(json, added_token(is_first ? first : second));
        if (is_first) i++;
        else k++;
    }
    if (rc == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *byte_level(bool add_prefix_space, bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                     add_prefix_space, "trim_offsets", 1, "use_regex", use_regex);
}

static json_t *splitter(enum pretokenize_rule rule)
{
    const char *pattern = pretokenize_pattern(rule);
    if (pattern)
        return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", pattern,
                         "behavior", "Isolated", "invert", 0);
    return json_pack("{s:s, s:b}", "type", "Digits", "individual_digits",
                     rule == PRETOKENIZE_DIGIT);
}

static json_t *pre_tokenizer(const struct pretokenizer *self)
{
    const uint32_t splitters = self->count - self->gpt2_is_byte_level;
    json_t *last = byte_level(self->add_prefix_space, self->gpt2_is_byte_level);
    if (splitters == 0) return last;
    json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < splitters; i++)
        rc = json_array_append_new(list, splitter(self->chain[i]));
    if (rc == 0) rc = json_array_append(list, last);
    json_decref(last);
    if (rc == 0) return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
    json_decref(list);
    return NULL;
}

// The text of an id: a template names tokens by text.
static const char *name_of(const tokenizer_t *self, uint32_t id, size_t *ret_count)
{
    const struct added_token *token = added_tokens_by_id(&self->plain, id);
    if (!token) token = added_tokens_by_id(&self->normalized, id);
    if (!token) return bpe_text(self->bpe, id, ret_count);
    *ret_count = token->bytes;
    return token->content;
}

static int add_to_template(const tokenizer_t *self, uint32_t id, json_t *single, json_t *special)
{
    size_t count;
    const char *name = name_of(self, id, &count);
    int rc = json_array_append_new(
        single, json_pack("{s:{s:s%, s:i}}", "SpecialToken", "id", name, count, "type_id", 0));
    if (rc < 0) return rc;
    return json_object_setn_new(special, name, count,
                                json_pack("{s:s%, s:[I], s:[s%]}", "id", name, count, "ids",
                                          (json_int_t)id, "tokens", name, count));
}

static json_t *template(const tokenizer_t *self)
{
    json_t *single = json_array(), *special = json_object();
    int rc = single && special ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < self->before_count; i++)
        rc = add_to_template(self, self->before[i], single, special);
    if (rc == 0)
        rc = json_array_append_new(
            single, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
    for (uint32_t i = 0; rc == 0 && i < self->after_count; i++)
        rc = add_to_template(self, self->after[i], single, special);
    if (rc == 0)
        return json_pack("{s:s, s:o, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}], s:o}", "type",
                         "TemplateProcessing", "single", single, "pair", "Sequence", "id", "A",
                         "type_id", 0, "Sequence", "id", "B", "type_id", 1, "special_tokens",
                         special);
    json_decref(single);
    json_decref(special);
    return NULL;
}

static json_t *tokenizer(const tokenizer_t *self)
{
    const bool has_template = self->before_count + self->after_count > 0;
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added_tokens(self), "normalizer",
                     self->nfc ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer",
                     pre_tokenizer(&self->pretokenizer), "post_processor",
                     has_template ? template(self) : json_null(), "decoder",
                     byte_level(false, false), "model", model(self->bpe));
}

// ---- tokenizer_config.json

static json_t *config_of(const tokenizer_t *self, const struct tokenizer_config *config)
{
    json_t *json = json_pack("{s:s, s:b, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                             "clean_up_tokenization_spaces", 0, "add_prefix_space",
                             self->pretokenizer.add_prefix_space);
    int rc = json ? 0 : -1;
    if (rc == 0 && config->seq_len)
        rc = json_object_set_new(json, "model_max_length", json_integer(config->seq_len));
    if (rc == 0 && config->begin_token)
        rc = json_object_set_new(json, "bos_token", json_string(config->begin_token));
    if (rc == 0 && config->end_token)
        rc = json_object_set_new(json, "eos_token", json_string(config->end_token));
    if (rc == 0) return json;
    json_decref(json);
    return NULL;
}

int tokenizer_write_config(const tokenizer_t *self, const char *dir,
                           const struct tokenizer_config *config, struct why *why)
{
    return json_file_write(dir, "tokenizer_config.json", config_of(self, config), SIZE_MAX, why);
}

int tokenizer_write(const tokenizer_t *self, const char *dir, const struct tokenizer_config *config,
                    struct why *why)
{
    int rc = json_file_write(dir, "tokenizer.json", tokenizer(self), TOKENIZER_FILE_MAX, why);
    if (rc < 0) return rc;
    return tokenizer_write_config(self, dir, config, why);
}
