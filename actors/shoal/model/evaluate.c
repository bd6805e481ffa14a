// Two measures of a model. Held-out loss: samples in batches of about TOKENS tokens, the loss
// weighted by the number of samples. Text: encode the prompt, generate, decode, and make it safe
// for a terminal.
#include "actors/shoal/model/evaluate.h"
#include "common/base/ensure.h"
#include "common/data/provider.h"
#include "common/model/model.h"
#include "common/text/unicode.h"
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 4096 }; // At a time

// How many bytes of text each token stands for. The caller frees.
static int measure_tokens(const struct model_folder *folder, const text_codec_t *codec,
                          struct why *why, uint32_t **ret_bytes)
{
    uint32_t *bytes = calloc(folder->shape.vocab, sizeof *bytes);
    ensure(bytes);
    for (uint32_t i = 0; i < folder->shape.vocab && codec; i++) {
        char *text;
        size_t count;
        const int rc = text_codec_decode(codec, &i, 1, why, &text, &count);
        if (rc < 0) {
            free(bytes);
            return rc;
        }
        free(text);
        bytes[i] = (uint32_t)count;
    }
    *ret_bytes = bytes;
    return 0;
}

static uint64_t count_bytes(const uint32_t *tokens, uint32_t batch, uint64_t row,
                            const uint32_t *bytes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < batch * row; i++)
        if (i % row != 0) sum += bytes[tokens[i]]; // The first token of a window is no target
    return sum;
}

static uint32_t batch_of(const struct evaluate_options *options)
{
    const uint32_t samples = TOKENS / options->seq_len;
    return samples ? samples : 1;
}

static int score(const struct model_folder *folder, const struct evaluate_options *options,
                 provider_t *provider, model_t *model, struct why *why,
                 struct evaluation *ret_evaluation)
{
    uint64_t samples = provider_count(provider), row = (uint64_t)options->seq_len + 1;
    const uint32_t batch_max = batch_of(options);
    uint32_t *tokens = malloc(batch_max * row * sizeof *tokens);
    ensure(tokens);
    uint32_t *bytes = NULL;
    uint64_t bytes_sum = 0;
    double sum = 0;
    int rc = measure_tokens(folder, options->codec, why, &bytes);
    for (uint64_t at = 0; at < samples && rc == 0; at += batch_max) {
        uint32_t batch = samples - at < batch_max ? (uint32_t)(samples - at) : batch_max;
        double loss = 0;
        if (options->stop && options->stop(options->arg))
            rc = why_set(why, FAULT_TIMEOUT, "stopped");
        if (rc == 0) rc = provider_read(provider, at, batch, tokens, why);
        if (rc == 0)
            rc = model_loss(model, folder->params, tokens, batch, options->seq_len, why, &loss);
        sum += loss * batch;
        if (rc == 0) bytes_sum += count_bytes(tokens, batch, row, bytes);
    }
    free(tokens);
    free(bytes);
    if (rc < 0) return rc;
    *ret_evaluation = (struct evaluation){ .nats = sum / (double)samples,
                                           .tokens = samples * options->seq_len,
                                           .bytes = bytes_sum };
    return 0;
}

int evaluate_heldout(const struct model_folder *folder, const struct evaluate_options *options,
                     struct why *why, struct evaluation *ret_evaluation)
{
    struct samples_config samples = { .token_bytes = options->token_bytes,
                                      .seq_len = options->seq_len,
                                      .vocab_size = folder->shape.vocab };
    provider_t *provider = NULL;
    model_t *model = NULL;
    if (options->seq_len < 1 || options->seq_len > model_seq_len(&folder->shape))
        return why_set(why, FAULT_RANGE, "a window of %u tokens, the model allows 1..%u",
                       options->seq_len, model_seq_len(&folder->shape));
    // Without a gradient no activations need be kept
    const struct model_options of_model = { .batch_max = batch_of(options),
                                            .seq_max = options->seq_len,
                                            .recompute = true };
    pool_t *pool = pool_new(options->threads);
    int rc = provider_open_local(options->data, &samples, why, &provider);
    if (rc == 0) rc = model_new(&folder->shape, &of_model, pool, why, &model);
    if (rc == FAULT_MEMORY) rc = why_wrap(why, rc, "a shorter --seq-len takes less");
    if (rc == 0) rc = score(folder, options, provider, model, why, ret_evaluation);
    model_destroy(&model);
    provider_close(&provider);
    pool_destroy(&pool);
    return rc;
}

// ---- text ---------------------------------------------------------------------------------------

// A byte that is not UTF-8, or a control character, becomes '?'.
static void make_printable(char *text, size_t count)
{
    size_t length;
    for (size_t i = 0; i < count; i += length) {
        const uint32_t c = unicode_next((const uint8_t *)text + i, count - i, &length);
        const bool control = c < 0x20 ? c != '\n' && c != '\t' : c >= 0x7f && c < 0xa0;
        if (control || c == UNICODE_INVALID) memset(text + i, '?', length);
    }
}

int evaluate_decoder(const struct model_folder *model, uint64_t tokens, pool_t *pool,
                     struct why *why, decoder_t **ret_decoder)
{
    const uint32_t most = model_seq_len(&model->shape);
    return decoder_new(&model->shape, model->params, tokens < most ? (uint32_t)tokens : most, pool,
                       why, ret_decoder);
}

int evaluate_sample(decoder_t *decoder, const text_codec_t *codec, const char *prompt,
                    uint32_t tokens, const struct generate_options *how, struct why *why,
                    char **ret_text)
{
    const size_t bytes = strlen(prompt);
    uint32_t *read = NULL;
    uint32_t said_count = 0;
    size_t count = 0, text_bytes = 0;
    if (bytes < 1 || bytes > EVALUATE_PROMPT_MAX)
        return why_set(why, FAULT_RANGE, "a prompt of %zu bytes, allowed 1..%d", bytes,
                       EVALUATE_PROMPT_MAX);
    uint32_t *said = malloc(((size_t)tokens + 1) * sizeof *said);
    int rc = said ? text_codec_encode(codec, prompt, bytes, why, &read, &count)
                  : why_set(why, FAULT_MEMORY, "%u tokens", tokens);
    if (rc == 0) rc = generate(decoder, read, (uint32_t)count, how, tokens, why, said, &said_count);
    if (rc == 0) rc = text_codec_decode(codec, said, said_count, why, ret_text, &text_bytes);
    if (rc == 0) make_printable(*ret_text, text_bytes);
    free(read);
    free(said);
    return rc;
}
