#pragma once
// evaluate -- how good a model is: its loss on tokens it never saw, and the text it writes.

#include "actors/shoal/model_folder.h"

struct evaluation {
    double nats;                    // Mean -ln p per token, over `tokens` of them
    uint64_t tokens;
};

// Over all samples of a folder of token files (samples.h): windows of seq_len tokens, one after the
// other, each token but a file's first predicted once, from the tokens before it in its window.
// What is left at a file's end, less than a window, is not scored. `stop` (may be NULL) is asked
// now and then; true ends it with FAULT_TIMEOUT.
struct evaluate_options {
    const char *data;
    uint32_t seq_len, token_bytes, threads;
    bool (*stop)(void *arg);
    void *arg;
};
int evaluate_heldout(const struct model_folder *model, const struct evaluate_options *options,
                     struct why *why, struct evaluation *ret_evaluation);

enum { EVALUATE_TEXT_MAX = 65536 };

// `count` bytes that follow `prompt` (1 or more bytes), by a model whose tokens are bytes; ended by
// a zero that does not count. Bytes that a terminal might take for a command, and what is no UTF-8,
// become '?'.
int evaluate_sample(const struct model_folder *model, const char *prompt, uint32_t count,
                    float temperature, uint64_t seed, uint32_t threads, struct why *why,
                    char ret_text[EVALUATE_TEXT_MAX + 1]);

uint32_t evaluate_threads(void);    // As many as there are processors, at most POOL_THREADS_MAX
