#include "common/text/word_counts.h"
#include "common/base/ensure.h"
#include <stdlib.h>
#include <string.h>

static const uint8_t *text_of(const void *context, uint32_t number, size_t *ret_count)
{
    const struct word_counts *self = context;
    *ret_count = self->words[number].bytes;
    return self->text + self->words[number].at;
}

static void add_new(struct word_counts *self, const uint8_t *word, uint32_t bytes, uint64_t times)
{
    ensure(self->count < 1u << 31);
    if (self->count == self->capacity) {
        self->capacity = 2 * self->capacity + 1024;
        self->words = realloc(self->words, self->capacity * sizeof *self->words);
        ensure(self->words);
    }
    if (self->text_capacity - self->text_count < bytes) {
        self->text_capacity = 2 * self->text_capacity + bytes + 65536;
        self->text = realloc(self->text, self->text_capacity);
        ensure(self->text);
    }
    memcpy(self->text + self->text_count, word, bytes);
    self->words[self->count] = (struct word_count){ times, self->text_count, bytes };
    self->text_count += bytes;
    text_map_add(&self->map, text_of, self, self->count++);
}

void word_counts_add(struct word_counts *self, const uint8_t *word, uint32_t bytes, uint64_t times)
{
    const uint32_t number = text_map_find(&self->map, text_of, self, word, bytes);
    if (number == TEXT_MAP_NONE) add_new(self, word, bytes, times);
    else self->words[number].times += times;
}

void word_counts_free(struct word_counts *self)
{
    free(self->words);
    free(self->text);
    text_map_free(&self->map);
    *self = (struct word_counts){ 0 };
}
