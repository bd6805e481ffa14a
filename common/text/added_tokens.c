// added_tokens -- the set is sorted once, when it is finished. A search tests each place of the
// text for a byte that some token begins with; only there does it narrow the sorted list, byte by
// byte, and it returns the longest token that matches there.

#include "common/text/added_tokens.h"
#include <stdlib.h>
#include <string.h>

int added_tokens_add(struct added_tokens *self, const struct added_token *token, struct why *why)
{
    if (token->bytes < 1 || token->bytes > ADDED_TOKEN_BYTES_MAX)
        return why_set(why, FAULT_RANGE, "an added token of %u bytes, allowed is 1 to %d",
                       token->bytes, ADDED_TOKEN_BYTES_MAX);
    if (self->count == ADDED_TOKENS_MAX)
        return why_set(why, FAULT_LIMIT, "more than %d added tokens", ADDED_TOKENS_MAX);
    if (self->count == self->capacity) {
        const uint32_t capacity = 2 * self->capacity + 16;
        struct added_token *tokens = realloc(self->tokens, capacity * sizeof *tokens);
        if (!tokens) return why_set(why, FAULT_MEMORY, "%u added tokens", capacity);
        self->tokens = tokens;
        self->capacity = capacity;
    }
    struct added_token *kept = &self->tokens[self->count];
    *kept = *token;
    kept->content = strndup(token->content, token->bytes);
    if (!kept->content) return why_set(why, FAULT_MEMORY, "an added token");
    self->begins[(uint8_t)kept->content[0]] = true;
    self->count++;
    return 0;
}

static int order_content(const void *left, const void *right)
{
    const struct added_token *a = left, *b = right;
    return strcmp(a->content, b->content);
}

static int order_id(const void *left, const void *right, void *context)
{
    const struct added_token *tokens = context;
    const uint32_t a = tokens[*(const uint32_t *)left].id, b = tokens[*(const uint32_t *)right].id;
    return (a > b) - (a < b);
}

int added_tokens_finish(struct added_tokens *self, struct why *why)
{
    if (self->count == 0) return 0;
    self->by_id = malloc(self->count * sizeof *self->by_id);
    if (!self->by_id) return why_set(why, FAULT_MEMORY, "%u added tokens", self->count);
    for (uint32_t i = 0; i < self->count; i++) self->by_id[i] = i;
    qsort(self->tokens, self->count, sizeof *self->tokens, order_content);
    qsort_r(self->by_id, self->count, sizeof *self->by_id, order_id, self->tokens);
    return 0;
}

void added_tokens_free(struct added_tokens *self)
{
    for (uint32_t i = 0; i < self->count; i++) free(self->tokens[i].content);
    free(self->tokens);
    free(self->by_id);
    *self = (struct added_tokens){ 0 };
}

// The first token in [first, end) whose byte `at` is `byte` or higher. All tokens of [first, end)
// have the same first `at` bytes.
static uint32_t lower_bound(const struct added_tokens *self, uint32_t first, uint32_t end,
                            uint32_t at, unsigned byte)
{
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if ((uint8_t)self->tokens[middle].content[at] < byte) first = middle + 1;
        else end = middle;
    }
    return first;
}

// The longest token that text[0 .. count) begins with. The sorted list is narrowed byte by byte. Of
// tokens with the same beginning the shortest is sorted first, so only the first can end here.
static const struct added_token *longest(const struct added_tokens *self, const uint8_t *text,
                                         size_t count)
{
    const struct added_token *found = NULL;
    uint32_t first = 0, end = self->count;
    for (uint32_t at = 0; at < count && text[at]; at++) {
        first = lower_bound(self, first, end, at, text[at]);
        end = lower_bound(self, first, end, at, text[at] + 1u);
        if (first == end) break;
        if (self->tokens[first].bytes == at + 1) found = &self->tokens[first];
    }
    return found;
}

const struct added_token *added_tokens_search(const struct added_tokens *self, const uint8_t *text,
                                              size_t count, size_t from, size_t *ret_at)
{
    if (self->count == 0) return NULL;
    for (size_t at = from; at < count; at++) {
        if (!self->begins[text[at]]) continue;
        const struct added_token *found = longest(self, text + at, count - at);
        if (!found) continue;
        *ret_at = at;
        return found;
    }
    return NULL;
}

const struct added_token *added_tokens_find(const struct added_tokens *self, const char *content,
                                            size_t count)
{
    const struct added_token *found = longest(self, (const uint8_t *)content, count);
    return found && found->bytes == count ? found : NULL;
}

const struct added_token *added_tokens_by_id(const struct added_tokens *self, uint32_t id)
{
    uint32_t first = 0, end = self->count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (self->tokens[self->by_id[middle]].id < id) first = middle + 1;
        else end = middle;
    }
    const struct added_token *found =
        first < self->count ? &self->tokens[self->by_id[first]] : NULL;
    return found && found->id == id ? found : NULL;
}
