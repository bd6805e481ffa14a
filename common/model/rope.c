// Checks first, then one function for each scaling's frequency, then the tables. log, exp, sine and
// cosine come from elementary.h, since a C library's differ in their last bits.
#include "common/model/rope.h"
#include "common/base/ensure.h"
#include "common/kernel/elementary.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

enum { HEAD_DIM_MAX = 512 };
static const double TURN = 6.283185307179586; // 2 pi

const char *rope_type_name(enum rope_type type)
{
    static const char *const names[] = { "default", "linear", "llama3", "yarn" };
    ensure(type < ROPE_TYPES);
    return names[type];
}

static int check_real(const char *name, double value, double low, double high, struct why *why)
{
    if (value >= low && value <= high) return 0;
    return why_set(why, FAULT_RANGE, "rope scaling: %s = %g, allowed %g..%g; the shape is refused",
                   name, value, low, high);
}

static int check_order(const char *low_name, double low, const char *high_name, double high,
                       struct why *why)
{
    int rc = check_real(low_name, low, 1e-3, 1e6, why);
    if (rc == 0) rc = check_real(high_name, high, 1e-3, 1e6, why);
    if (rc < 0 || low < high) return rc;
    return why_set(why, FAULT_RANGE,
                   "rope scaling: %s = %g, allowed above %s = %g; the shape is refused", high_name,
                   high, low_name, low);
}

static int check_yarn(const struct rope_scaling *scaling, double theta, struct why *why)
{
    if (theta <= 1.0)
        return why_set(why, FAULT_RANGE,
                       "rope scaling: with yarn rope_theta = %g, allowed above "
                       "1; the shape is refused",
                       theta);
    int rc = check_order("beta_slow", scaling->beta_slow, "beta_fast", scaling->beta_fast, why);
    if (rc == 0) rc = check_real("attention_factor", scaling->attention_factor, 1e-3, 100, why);
    return rc;
}

int rope_check(const struct rope_scaling *scaling, double theta, struct why *why)
{
    if (!(theta >= 1.0 && theta <= 1e9))
        return why_set(why, FAULT_RANGE,
                       "model shape: rope_theta = %g, allowed 1..1e9; the shape is refused", theta);
    if ((unsigned)scaling->type >= ROPE_TYPES)
        return why_set(why, FAULT_RANGE,
                       "rope scaling: type = %u, allowed 0..%d; the shape is "
                       "refused",
                       (unsigned)scaling->type, ROPE_TYPES - 1);
    if (scaling->type == ROPE_DEFAULT) return 0;
    int rc = check_real("factor", scaling->factor, 1, 1e6, why);
    if (rc < 0 || scaling->type == ROPE_LINEAR) return rc;
    if (scaling->original < 1 || scaling->original > ROPE_POSITIONS_MAX)
        return why_set(why, FAULT_RANGE,
                       "rope scaling: original positions = %" PRIu32 ", allowed "
                       "1..%d; the shape is refused",
                       scaling->original, ROPE_POSITIONS_MAX);
    return scaling->type == ROPE_LLAMA3
               ? check_order("low_freq_factor", scaling->low_freq_factor, "high_freq_factor",
                             scaling->high_freq_factor, why)
               : check_yarn(scaling, theta, why);
}

double rope_attention_factor(double factor)
{
    return factor <= 1.0 ? 1.0 : 0.1 * elementary_log(factor) + 1.0;
}

static double llama3_frequency(const struct rope_scaling *scaling, double frequency)
{
    const double turns = scaling->original * frequency / TURN; // In the original positions
    const double low = scaling->low_freq_factor, high = scaling->high_freq_factor;
    if (turns > high) return frequency;
    if (turns < low) return frequency / scaling->factor;
    const double smooth = (turns - low) / (high - low);
    return (1.0 - smooth) * frequency / scaling->factor + smooth * frequency;
}

// The index, not a whole number, of the pair that turns `turns` times in the original positions.
static double yarn_dimension(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                             double turns)
{
    return head_dim * elementary_log(scaling->original / (turns * TURN)) /
           (2.0 * elementary_log(theta));
}

// Where the blend begins and ends. Clamped by head_dim and not by the number of pairs, since
// transformers does so.
static void yarn_range(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                       double *ret_low, double *ret_high)
{
    double low = yarn_dimension(scaling, theta, head_dim, scaling->beta_fast);
    double high = yarn_dimension(scaling, theta, head_dim, scaling->beta_slow);
    if (scaling->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    if (low < 0.0) low = 0.0;
    if (high > head_dim - 1.0) high = head_dim - 1.0;
    *ret_low = low;
    *ret_high = low == high ? high + 0.001 : high;
}

static double yarn_frequency(const struct rope_scaling *scaling, double low, double high,
                             uint32_t pair, double frequency)
{
    double ramp = (pair - low) / (high - low);
    if (ramp < 0.0) ramp = 0.0;
    if (ramp > 1.0) ramp = 1.0;
    return ramp * frequency / scaling->factor + (1.0 - ramp) * frequency;
}

void rope_fill_frequencies(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                           double *ret_frequencies)
{
    double low = 0.0, high = 1.0;
    ensure(rope_check(scaling, theta, NULL) == 0 && head_dim % 2 == 0 && head_dim <= HEAD_DIM_MAX);
    if (scaling->type == ROPE_YARN) yarn_range(scaling, theta, head_dim, &low, &high);
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        const double exponent = -2.0 * i / head_dim;
        const double plain = elementary_exp(exponent * elementary_log(theta));
        switch (scaling->type) {
        case ROPE_LINEAR: ret_frequencies[i] = plain / scaling->factor; break;
        case ROPE_LLAMA3: ret_frequencies[i] = llama3_frequency(scaling, plain); break;
        case ROPE_YARN: ret_frequencies[i] = yarn_frequency(scaling, low, high, i, plain); break;
        case ROPE_DEFAULT:
        case ROPE_TYPES: ret_frequencies[i] = plain; break;
        }
    }
}

void rope_fill_tables(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                      uint32_t positions, float *ret_cosine, float *ret_sine)
{
    double frequencies[HEAD_DIM_MAX / 2];
    const uint32_t half = head_dim / 2;
    const double gain = scaling->type == ROPE_YARN ? scaling->attention_factor : 1.0;
    ensure(head_dim <= HEAD_DIM_MAX && positions <= ROPE_POSITIONS_MAX);
    rope_fill_frequencies(scaling, theta, head_dim, frequencies);
    for (uint32_t i = 0; i < half; i++) {
        for (uint32_t p = 0; p < positions; p++) {
            double sine, cosine;
            elementary_sine_cosine(p * frequencies[i], &sine, &cosine);
            ret_sine[(size_t)p * half + i] = (float)(sine * gain);
            ret_cosine[(size_t)p * half + i] = (float)(cosine * gain);
        }
    }
}
