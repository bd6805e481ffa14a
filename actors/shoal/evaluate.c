#include "actors/shoal/evaluate.h"
#include "common/data/provider.h"
#include "common/ensure.h"
#include "common/learn/model.h"
#include "common/text/tokenizer.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16, SAMPLE_WINDOW_MAX = 1024 };

uint32_t evaluate_threads(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) return 1;
    return processors > POOL_THREADS_MAX ? POOL_THREADS_MAX : (uint32_t)processors;
}

static int score(const struct model_folder *folder, const struct evaluate_options *options,
                 provider_t *provider, model_t *model, struct why *why,
                 struct evaluation *ret_evaluation)
{
    uint64_t samples = provider_count(provider), row = (uint64_t)options->seq_len + 1;
    uint32_t *tokens = malloc(BATCH * row * sizeof *tokens);
    ensure(tokens);
    double sum = 0;
    int rc = 0;
    for (uint64_t at = 0; at < samples && rc == 0; at += BATCH) {
        uint32_t batch = samples - at < BATCH ? (uint32_t)(samples - at) : BATCH;
        double loss = 0;
        if (options->stop && options->stop(options->arg))
            rc = why_set(why, FAULT_TIMEOUT, "stopped");
        if (rc == 0) rc = provider_read(provider, at, batch, tokens, why);
        if (rc == 0)
            rc = model_loss(model, folder->params, tokens, batch, options->seq_len, why, &loss);
        sum += loss * batch;
    }
    free(tokens);
    if (rc < 0) return rc;
    *ret_evaluation =
        (struct evaluation){ .nats = sum / (double)samples, .tokens = samples * options->seq_len };
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
    pool_t *pool = pool_new(options->threads);
    int rc = provider_open_local(options->data, &samples, why, &provider);
    if (rc == 0) rc = model_new(&folder->shape, BATCH, options->seq_len, pool, why, &model);
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

static int generate(const struct model_folder *folder, const char *prompt, uint32_t count,
                    const struct model_sampling *sampling, pool_t *pool, struct why *why,
                    char *text)
{
    size_t length = strlen(prompt);
    uint32_t window = folder->shape.seq_len_max < SAMPLE_WINDOW_MAX ? folder->shape.seq_len_max
                                                                    : SAMPLE_WINDOW_MAX;
    uint32_t *tokens = calloc(length + count, sizeof *tokens);
    model_t *model = NULL;
    ensure(tokens);
    for (size_t i = 0; i < length; i++) tokens[i] = (unsigned char)prompt[i];
    int rc = model_new(&folder->shape, 1, window, pool, why, &model);
    if (rc == 0)
        rc = model_generate(model, folder->params, tokens, (uint32_t)length, sampling, count, why,
                            tokens + length);
    for (uint32_t i = 0; i < count && rc == 0; i++) text[i] = (char)tokens[length + i];
    model_destroy(&model);
    free(tokens);
    return rc;
}

int evaluate_sample(const struct model_folder *folder, const char *prompt, uint32_t count,
                    float temperature, uint64_t seed, uint32_t threads, struct why *why,
                    char ret_text[EVALUATE_TEXT_MAX + 1])
{
    struct model_sampling sampling = { .seed = seed, .temperature = temperature };
    if (folder->shape.vocab != TOKENIZER_BYTES_VOCAB)
        return why_set(why, FAULT_UNSUPPORTED,
                       "a vocabulary of %u; only byte tokens (256) are turned into text",
                       folder->shape.vocab);
    if (!prompt[0] || strlen(prompt) > EVALUATE_TEXT_MAX || count > EVALUATE_TEXT_MAX)
        return why_set(why, FAULT_RANGE,
                       "a prompt of %zu bytes and a text of %u, allowed 1..%d and 0..%d",
                       strlen(prompt), count, EVALUATE_TEXT_MAX, EVALUATE_TEXT_MAX);
    pool_t *pool = pool_new(threads);
    int rc = generate(folder, prompt, count, &sampling, pool, why, ret_text);
    pool_destroy(&pool);
    if (rc < 0) return rc;
    ret_text[count] = 0;
    make_printable(ret_text, count);
    return 0;
}
