#include "actors/shoal/evaluate.h"
#include "common/data/provider.h"
#include "common/ensure.h"
#include "common/learn/model.h"
#include "common/text/tokenizer.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16 };

uint32_t evaluate_threads(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) return 1;
    return processors > POOL_THREADS_MAX ? POOL_THREADS_MAX : (uint32_t)processors;
}

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
        if (i % row != 0) sum += bytes[tokens[i]];          // A window's first is no target
    return sum;
}

static int score(const struct model_folder *folder, const struct evaluate_options *options,
                 provider_t *provider, model_t *model, struct why *why,
                 struct evaluation *ret_evaluation)
{
    uint64_t samples = provider_count(provider), row = (uint64_t)options->seq_len + 1;
    uint32_t *tokens = malloc(BATCH * row * sizeof *tokens);
    ensure(tokens);
    uint32_t *bytes = NULL;
    uint64_t bytes_sum = 0;
    double sum = 0;
    int rc = measure_tokens(folder, options->codec, why, &bytes);
    for (uint64_t at = 0; at < samples && rc == 0; at += BATCH) {
        uint32_t batch = samples - at < BATCH ? (uint32_t)(samples - at) : BATCH;
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
    if (options->seq_len < 1 || options->seq_len > folder->shape.seq_len_max)
        return why_set(why, FAULT_RANGE, "a window of %u tokens, the model allows 1..%u",
                       options->seq_len, folder->shape.seq_len_max);
    const struct model_options of_model = { .batch_max = BATCH, .seq_max = options->seq_len };
    pool_t *pool = pool_new(options->threads);
    int rc = provider_open_local(options->data, &samples, why, &provider);
    if (rc == 0) rc = model_new(&folder->shape, &of_model, pool, why, &model);
    if (rc == 0) rc = score(folder, options, provider, model, why, ret_evaluation);
    model_destroy(&model);
    provider_close(&provider);
    pool_destroy(&pool);
    return rc;
}

// ---- text ---------------------------------------------------------------------------------------

// How many bytes the UTF-8 character at `text` has; 0 if it is none, or a control character.
static size_t character(const unsigned char *text)
{
    unsigned char first = text[0];
    if (first == '\n' || (first >= 0x20 && first < 0x7f)) return 1;
    size_t count = first >= 0xc3 && first < 0xe0 ? 2 : first >= 0xe1 && first < 0xed ? 3 : 0;
    for (size_t i = 1; i < count; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return count;
}

static void make_printable(char *text, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t bytes = character((const unsigned char *)text + i);
        if (bytes == 0) text[i] = '?';
        i += bytes ? bytes : 1;
    }
}

int evaluate_decoder(const struct model_folder *model, uint64_t tokens, pool_t *pool,
                     struct why *why, decoder_t **ret_decoder)
{
    const uint32_t most = model->shape.seq_len_max;
    return decoder_new(&model->shape, model->params, tokens < most ? (uint32_t)tokens : most, pool,
                       why, ret_decoder);
}

int evaluate_sample(decoder_t *decoder, const text_codec_t *codec, const char *prompt,
                    uint32_t tokens, const struct generate_options *how, struct why *why,
                    char **ret_text)
{
    const size_t bytes = strlen(prompt);
    uint32_t *read = NULL;
    size_t count = 0, text_bytes = 0;
    if (bytes < 1 || bytes > EVALUATE_PROMPT_MAX)
        return why_set(why, FAULT_RANGE, "a prompt of %zu bytes, allowed 1..%d", bytes,
                       EVALUATE_PROMPT_MAX);
    uint32_t *said = malloc(((size_t)tokens + 1) * sizeof *said);
    int rc = said ? text_codec_encode(codec, prompt, bytes, why, &read, &count)
                  : why_set(why, FAULT_MEMORY, "%u tokens", tokens);
    if (rc == 0) rc = generate(decoder, read, (uint32_t)count, how, tokens, why, said);
    if (rc == 0) rc = text_codec_decode(codec, said, tokens, why, ret_text, &text_bytes);
    if (rc == 0) make_printable(*ret_text, text_bytes);
    free(read);
    free(said);
    return rc;
}
