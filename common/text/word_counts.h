#pragma once
// word_counts -- how often each word occurs. All zero is an empty one. Not for two threads at once.

#include "common/text/text_map.h"

struct word_count {
    uint64_t times;
    size_t at;
    uint32_t bytes;
}; // at: offset in `text`
struct word_counts {
    struct word_count *words; // Owned, as all below; in the order of first occurrence
    uint8_t *text;
    size_t text_count, text_capacity;
    uint32_t count, capacity;
    struct text_map map;
};

// Dies when memory is out, or above 2^31 words.
void word_counts_add(struct word_counts *self, const uint8_t *word, uint32_t bytes, uint64_t times);
void word_counts_free(struct word_counts *self);
