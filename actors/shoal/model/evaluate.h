#pragma once
// evaluate -- how good a model is: its loss on tokens it never saw, and the text it writes.

#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/text/text_codec.h"
#include "common/model/generate.h"

struct evaluation {
    double nats; // Mean -ln p per token, over `tokens` of them
    uint64_t tokens;
    uint64_t bytes; // Of the text that those tokens stand for; 0: without a codec
};

struct evaluate_options {
    const char *data;          // A folder of token files (samples.h)
    const text_codec_t *codec; // To count bytes; NULL: they are not counted
    uint32_t seq_len;          // 1 to what the model allows
    uint32_t token_bytes, threads;
    bool (*stop)(void *arg); // NULL, or asked now and then: true ends it with FAULT_TIMEOUT
    void *arg;
};

// The loss over all files of `data`. Windows of seq_len + 1 tokens that overlap by one, so each
// token except a file's first is scored once, from the tokens before it in its window. A rest
// shorter than a window is not scored. FAULT_RANGE for a seq_len out of bounds or a token outside
// the vocabulary, FAULT_MEMORY, FAULT_TIMEOUT, and the faults of provider_open_local.
int evaluate_heldout(const struct model_folder *model, const struct evaluate_options *options,
                     struct why *why, struct evaluation *ret_evaluation);

enum { EVALUATE_PROMPT_MAX = 1 << 16 };

// A text of `tokens` tokens that follow `prompt` (1 to EVALUATE_PROMPT_MAX bytes), or of fewer if it
// ends. What the decoder read of the same prompt before is not read again. Bytes that a terminal
// might take for a command, and bytes that are not UTF-8, become '?'. The caller frees. FAULT_RANGE
// for a prompt or options out of bounds, FAULT_NAN, FAULT_MEMORY.
int evaluate_sample(decoder_t *decoder, const text_codec_t *codec, const char *prompt,
                    uint32_t tokens, const struct generate_options *how, struct why *why,
                    char **ret_text);

// A decoder whose window holds `tokens` tokens, or as many as the model allows. Borrows model and
// pool until the decoder is destroyed. FAULT_RANGE, FAULT_MEMORY.
int evaluate_decoder(const struct model_folder *model, uint64_t tokens, pool_t *pool,
                     struct why *why, decoder_t **ret_decoder);
