#include "common/learn/elementary.h"
#include "common/learn/model_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int check_prompt(const model_t *self, const uint32_t *tokens, uint32_t count,
                        struct why *why)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i] >= self->shape.vocab)
            return why_set(why, FAULT_RANGE,
                           "model: token %" PRIu32 " at position %" PRIu32 " of the prompt, "
                           "allowed 0..%" PRIu32 "; nothing is computed",
                           tokens[i], i, self->shape.vocab - 1);
    }
    return 0;
}

// Logits after the last of the `count` tokens in self->inputs.
static void logits_after(model_t *self, const float *params, uint32_t count, float *ret_logits)
{
    const struct model_shape *shape = &self->shape;
    self->batch = 1;
    self->seq = count;
    self->rows = count;
    self->params = params;
    self->grad = NULL;
    self->kernels = kernels_chosen();
    model_forward(self);
    const float *last = self->last_norm + (size_t)(count - 1) * shape->dim;
    model_product(self, GEMM_NT, false, 1, shape->vocab, shape->dim, last,
                  params + model_head_offset(shape), ret_logits);
}

static int check_finite(const float *logits, uint32_t vocab, struct why *why)
{
    for (uint32_t i = 0; i < vocab; i++) {
        if (!isfinite(logits[i]))
            return why_set(why, FAULT_NAN,
                           "model: logit %" PRIu32 " is %g, allowed finite numbers; no token is "
                           "chosen", i, (double)logits[i]);
    }
    return 0;
}

int model_logits_last(model_t *self, const float *params, const uint32_t *tokens, uint32_t count,
                      struct why *why, float *ret_logits)
{
    if (count < 1 || count > self->seq_max)
        return why_set(why, FAULT_RANGE,
                       "model: %" PRIu32 " tokens, allowed 1..%" PRIu32 "; nothing is computed",
                       count, self->seq_max);
    const int rc = check_prompt(self, tokens, count, why);
    if (rc < 0) return rc;
    memcpy(self->inputs, tokens, count * sizeof *tokens);
    logits_after(self, params, count, ret_logits);
    return 0;
}

static uint32_t likeliest(const float *logits, uint32_t vocab)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < vocab; i++) if (logits[i] > logits[best]) best = i;
    return best;
}

// SplitMix64: 0 <= result < 1.
static double uniform(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

// In proportion to e^(logit / temperature): the weights are summed twice, in one order.
static uint32_t draw(const float *logits, uint32_t vocab, float temperature, uint64_t *state)
{
    const double high = (double)logits[likeliest(logits, vocab)];
    double total = 0.0, passed = 0.0;
    for (uint32_t i = 0; i < vocab; i++)
        total += elementary_exp(((double)logits[i] - high) / (double)temperature);
    const double mark = uniform(state) * total;
    for (uint32_t i = 0; i < vocab; i++) {
        passed += elementary_exp(((double)logits[i] - high) / (double)temperature);
        if (passed > mark) return i;
    }
    return vocab - 1;
}

static int check_generate(const model_t *self, const uint32_t *prompt, uint32_t prompt_count,
                          const struct model_sampling *sampling, uint32_t count, struct why *why)
{
    const float temperature = sampling->temperature;
    if (prompt_count < 1)
        return why_set(why, FAULT_RANGE,
                       "model: an empty prompt, allowed 1 token or more; nothing is generated");
    if (count > MODEL_GENERATE_MAX)
        return why_set(why, FAULT_RANGE,
                       "model: %" PRIu32 " tokens to generate, allowed 0..%d; nothing is generated",
                       count, MODEL_GENERATE_MAX);
    if (temperature != 0.0f && !(temperature >= 0.01f && temperature <= 10.0f))
        return why_set(why, FAULT_RANGE,
                       "model: temperature = %g, allowed 0 or 0.01..10; nothing is generated",
                       (double)temperature);
    return check_prompt(self, prompt, prompt_count, why);
}

int model_generate(model_t *self, const float *params, const uint32_t *prompt,
                   uint32_t prompt_count, const struct model_sampling *sampling, uint32_t count,
                   struct why *why, uint32_t *ret_tokens)
{
    int rc = check_generate(self, prompt, prompt_count, sampling, count, why);
    if (rc < 0) return rc;
    uint32_t seen = prompt_count < self->seq_max ? prompt_count : self->seq_max;
    memcpy(self->inputs, prompt + prompt_count - seen, seen * sizeof *prompt);
    uint64_t state = sampling->seed;
    for (uint32_t i = 0; i < count; i++) {
        logits_after(self, params, seen, self->logits);
        rc = check_finite(self->logits, self->shape.vocab, why);
        if (rc < 0) return rc;
        ret_tokens[i] = sampling->temperature == 0.0f ? likeliest(self->logits, self->shape.vocab)
                      : draw(self->logits, self->shape.vocab, sampling->temperature, &state);
        if (seen == self->seq_max) memmove(self->inputs, self->inputs + 1, --seen * sizeof *prompt);
        self->inputs[seen++] = ret_tokens[i];
    }
    return 0;
}
