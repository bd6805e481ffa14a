#pragma once
// added_tokens -- tokens that are found in the text itself, before it is cut into pieces: special
// tokens such as <|endoftext|> and others that were added to a vocabulary. At each place the
// longest one wins, and the search goes on behind it.
//
// Built by one thread (add ..., then finish), then read by any number. All zero is an empty set.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { ADDED_TOKENS_MAX = 1 << 16, ADDED_TOKEN_BYTES_MAX = 4096 };

struct added_token {
    char *content;       // Owned
    uint32_t id, bytes;  // bytes: of the content, 1 or more
    bool special;        // Left out by a decoder that is asked to
    bool normalized;     // Searched for after those that are not normalized
    bool lstrip, rstrip; // The token includes the white space before (lstrip) or behind (rstrip) it
};

struct added_tokens {
    struct added_token *tokens; // Owned; after finish, ascending by content
    uint32_t count, capacity;
    uint32_t *by_id;  // Owned; after finish: indexes into `tokens`, by id
    bool begins[256]; // The bytes that some content begins with
};

// Keeps the token and its content. No two tokens of a set have the same content. FAULT_LIMIT,
// FAULT_RANGE, FAULT_MEMORY.
int added_tokens_add(struct added_tokens *self, const struct added_token *token, struct why *why);
int added_tokens_finish(struct added_tokens *self, struct why *why); // FAULT_MEMORY
void added_tokens_free(struct added_tokens *self);

// The first token in text[from .. count), the longest of those at its place; NULL if there is none.
// *ret_at is where its content begins.
const struct added_token *added_tokens_search(const struct added_tokens *self, const uint8_t *text,
                                              size_t count, size_t from, size_t *ret_at);

// The one with the content, or NULL.
const struct added_token *added_tokens_find(const struct added_tokens *self, const char *content,
                                            size_t count);

// The one with the id, or NULL.
const struct added_token *added_tokens_by_id(const struct added_tokens *self, uint32_t id);
