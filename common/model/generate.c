// A token is chosen in three steps: weights from the logits, the candidates that top_k and top_p
// leave, one draw among them. All sums have a written order, so that the choice is the same
// everywhere. Below stands the loop that reads, chooses and appends, and makes room when the window
// is full.
#include "common/model/generate.h"
#include "common/kernel/elementary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int generate_check(const struct generate_options *options, struct why *why)
{
    const double temperature = (double)options->temperature, top_p = (double)options->top_p;
    if (temperature != 0 && !(temperature >= 0.01 && temperature <= 10))
        return why_set(why, FAULT_RANGE,
                       "temperature = %g, allowed 0 or 0.01..10; nothing is "
                       "generated",
                       temperature);
    if (!(top_p > 0 && top_p <= 1))
        return why_set(why, FAULT_RANGE,
                       "top_p = %g, allowed above 0 and up to 1; nothing is "
                       "generated",
                       top_p);
    return 0;
}

// ---- one token

// SplitMix64: 0 <= result < 1.
static double uniform(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static uint32_t likeliest(const float *logits, uint32_t vocab)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static int likelier(const void *a, const void *b)
{
    const struct generate_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static double weight(const struct generate_options *options, float logit, float high)
{
    return elementary_exp(((double)logit - (double)high) / (double)options->temperature);
}

// Sums are taken in the order of the candidates: those of all tokens, or the likeliest first.
static uint32_t draw(const struct generate_options *options,
                     const struct generate_candidate *candidates, uint32_t count, float high,
                     double total, uint64_t *state)
{
    const double mark = uniform(state) * total;
    double passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        passed += weight(options, candidates[i].logit, high);
        if (passed > mark) return candidates[i].token;
    }
    return candidates[count - 1].token;
}

static double sum_of(const struct generate_options *options,
                     const struct generate_candidate *candidates, uint32_t count, float high)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += weight(options, candidates[i].logit, high);
    return sum;
}

// How many of the sorted candidates make up top_p of their weight: at least one.
static uint32_t nucleus(const struct generate_options *options,
                        const struct generate_candidate *candidates, uint32_t count)
{
    const float high = candidates[0].logit;
    const double enough = (double)options->top_p * sum_of(options, candidates, count, high);
    double passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        passed += weight(options, candidates[i].logit, high);
        if (passed >= enough) return i + 1;
    }
    return count;
}

uint32_t generate_choose(const struct generate_options *options, const float *logits,
                         uint32_t vocab, struct generate_candidate *scratch, uint64_t *state)
{
    const uint32_t best = likeliest(logits, vocab);
    uint32_t count = vocab;
    if (options->temperature == 0.0f || options->top_k == 1) return best;
    for (uint32_t i = 0; i < vocab; i++) scratch[i] = (struct generate_candidate){ logits[i], i };
    if (options->top_k != 0 || options->top_p < 1) qsort(scratch, vocab, sizeof *scratch, likelier);
    if (options->top_k != 0 && options->top_k < vocab) count = options->top_k;
    if (options->top_p < 1) count = nucleus(options, scratch, count);
    return draw(options, scratch, count, logits[best],
                sum_of(options, scratch, count, logits[best]), state);
}

// ---- a text

struct window {
    decoder_t *decoder;
    uint32_t *tokens;      // All: the prompt, then what was chosen
    uint32_t first, count; // The decoder has to read [first, count)
    uint32_t seq_max;
    float *logits;
    struct generate_candidate *scratch;
};

// Reads the tokens that are not read yet, at least one, and takes the logits after the last.
static int read_on(struct window *self, struct why *why)
{
    if (self->count - self->first > self->seq_max) {
        self->first = self->count - (self->seq_max + 1) / 2;
        decoder_rewind(self->decoder, 0);
    }
    const uint32_t at = self->first + decoder_count(self->decoder);
    return decoder_read(self->decoder, self->tokens + at, self->count - at, 1, why, self->logits);
}

static bool is_end(const struct generate_options *options, uint32_t token)
{
    for (uint32_t i = 0; i < options->ends_count; i++)
        if (options->ends[i] == token) return true;
    return false;
}

static int run(struct window *self, const struct generate_options *options, uint32_t vocab,
               uint32_t end, struct why *why)
{
    uint64_t state = options->seed;
    int rc = 0;
    while (rc == 0 && self->count < end) {
        rc = read_on(self, why);
        if (rc < 0) break;
        const uint32_t token = generate_choose(options, self->logits, vocab, self->scratch, &state);
        if (is_end(options, token)) break;
        self->tokens[self->count++] = token;
    }
    return rc;
}

int generate(decoder_t *decoder, const uint32_t *prompt, uint32_t prompt_count,
             const struct generate_options *options, uint32_t count, struct why *why,
             uint32_t *ret_tokens, uint32_t *ret_count)
{
    int rc = generate_check(options, why);
    if (rc < 0) return rc;
    if (prompt_count < 1 || prompt_count > GENERATE_MAX || count > GENERATE_MAX)
        return why_set(why, FAULT_RANGE,
                       "a prompt of %" PRIu32 " tokens and a text of %" PRIu32
                       ", allowed 1..%d and 0..%d; nothing is generated",
                       prompt_count, count, GENERATE_MAX, GENERATE_MAX);
    const uint32_t vocab = decoder_shape(decoder)->vocab;
    struct window self = { .decoder = decoder,
                           .count = prompt_count,
                           .seq_max = decoder_seq_max(decoder),
                           .tokens = malloc(((size_t)prompt_count + count) * sizeof(uint32_t)),
                           .logits = malloc(vocab * sizeof(float)),
                           .scratch = malloc(vocab * sizeof(struct generate_candidate)) };
    if (self.tokens && self.logits && self.scratch) {
        memcpy(self.tokens, prompt, prompt_count * sizeof *prompt);
        decoder_keep(decoder, prompt, prompt_count - 1);
        rc = run(&self, options, vocab, prompt_count + count, why);
        const uint32_t said = self.count - prompt_count;
        if (rc == 0 && said > 0)
            memcpy(ret_tokens, self.tokens + prompt_count, said * sizeof *ret_tokens);
        if (rc == 0 && ret_count) *ret_count = said;
    } else rc = why_set(why, FAULT_MEMORY, "a text of %" PRIu32 " tokens", count);
    free(self.tokens);
    free(self.logits);
    free(self.scratch);
    return rc;
}
