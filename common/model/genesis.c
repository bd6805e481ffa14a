// A number of the vector is a hash of seed and index, summed to a near-normal integer, times the
// unit of its tensor. The tensors are walked in order and each fills its part of the interval.
#include "common/model/genesis.h"
#include "common/base/ensure.h"

#include <math.h>

enum { WORDS = 3, UNIFORMS = 4 * WORDS };

// SplitMix64 (Steele, Lea and Flood 2014): the finaliser of a counter.
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// About normal, standard deviation 65536: twelve uniforms have variance (2^32 - 1) / 12 each.
static int32_t normal(uint64_t seed, uint64_t index)
{
    int32_t sum = -UNIFORMS * 65535 / 2;
    for (uint64_t word = 0; word < WORDS; word++) {
        const uint64_t counter = index * WORDS + word + 1;
        const uint64_t bits = mix(mix(seed) + counter * 0x9e3779b97f4a7c15ULL);
        sum += (int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff) +
               (int32_t)(bits >> 32 & 0xffff) + (int32_t)(bits >> 48);
    }
    return sum;
}

// The value of one unit of normal(); 0 for a norm. Square root and division are correctly rounded
// on every machine.
static float unit_of(const struct model_shape *shape, enum model_role role)
{
    switch (role) {
    case MODEL_ATTENTION_NORM:
    case MODEL_FFN_NORM:
    case MODEL_FINAL_NORM: return 0.0f;
    case MODEL_O:
    case MODEL_DOWN: return (float)(0.02 / sqrt(2.0 * shape->layers) / 65536.0);
    case MODEL_EMBEDDING:
    case MODEL_Q:
    case MODEL_K:
    case MODEL_V:
    case MODEL_GATE:
    case MODEL_UP:
    case MODEL_HEAD: break;
    }
    return (float)(0.02 / 65536.0);
}

void genesis_fill_interval(const struct model_shape *shape, uint64_t seed, uint64_t first,
                           uint64_t count, float *ret_parameters)
{
    const uint64_t total = model_parameter_count(shape), end = first + count;
    ensure(first <= total && count <= total - first);
    for (uint32_t t = 0; t < model_tensor_count(shape); t++) {
        const struct model_tensor tensor = model_tensor_at(shape, t);
        const uint64_t tensor_end = tensor.offset + model_tensor_size(&tensor);
        const uint64_t from = first > tensor.offset ? first : tensor.offset;
        const uint64_t to = end < tensor_end ? end : tensor_end;
        const float unit = unit_of(shape, tensor.role);
        for (uint64_t i = from; i < to; i++)
            ret_parameters[i - first] = unit == 0.0f ? 1.0f : (float)normal(seed, i) * unit;
    }
}

void genesis_fill(const struct model_shape *shape, uint64_t seed, float *ret_parameters)
{
    genesis_fill_interval(shape, seed, 0, model_parameter_count(shape), ret_parameters);
}
