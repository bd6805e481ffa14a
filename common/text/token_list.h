#pragma once
// token_list -- token ids in memory that grows. All zero is an empty one.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/ensure.h"

struct token_list {
    uint32_t *ids; // Owned
    size_t count, capacity;
};

// Makes room for `more` ids beyond `count`. Dies when memory is out: a list is bounded by a text
// that is in memory already.
static inline void token_list_reserve(struct token_list *self, size_t more)
{
    if (self->capacity - self->count >= more) return;
    self->capacity = 2 * self->capacity + more + 256;
    self->ids = realloc(self->ids, self->capacity * sizeof *self->ids);
    ensure(self->ids);
}

static inline void token_list_add(struct token_list *self, uint32_t id)
{
    token_list_reserve(self, 1);
    self->ids[self->count++] = id;
}

static inline void token_list_free(struct token_list *self)
{
    free(self->ids);
    *self = (struct token_list){ 0 };
}
