#pragma once
// model_check -- what must hold of any bytes whatsoever as a config.json, an index or a weights
// file, checked by the fuzzer and by unit tests. Dies (ensure) where it does not hold.

#include "common/base/ensure.h"
#include "common/checkpoint/safetensors.h"
#include "common/model/model_config.h"

#include <stdlib.h>
#include <string.h>

static inline bool model_check_scalings_equal(const struct rope_scaling *a,
                                              const struct rope_scaling *b)
{
    return a->type == b->type && a->factor == b->factor && a->original == b->original &&
           a->low_freq_factor == b->low_freq_factor && a->high_freq_factor == b->high_freq_factor &&
           a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow &&
           a->attention_factor == b->attention_factor && a->truncate == b->truncate;
}

static inline bool model_check_shapes_equal(const struct model_shape *a,
                                            const struct model_shape *b)
{
    return a->vocab == b->vocab && a->dim == b->dim && a->layers == b->layers &&
           a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->ffn == b->ffn && a->seq_len_max == b->seq_len_max && a->rope_theta == b->rope_theta &&
           a->rms_eps == b->rms_eps && a->tied == b->tied &&
           model_check_scalings_equal(&a->rope_scaling, &b->rope_scaling);
}

// A refusal says why, in one line, without what could move a cursor.
static inline void model_check_why(const struct why *why)
{
    ensure(why->text[0]);
    for (const char *at = why->text; *at; at++) ensure(*at >= ' ' && *at <= '~');
}

static inline void model_check_reads_back(char *text, const struct model_shape *shape)
{
    struct model_shape again;
    ensure(text && model_shape_from_config_json(text, strlen(text), NULL, &again) == 0);
    ensure(model_check_shapes_equal(shape, &again));
    free(text);
}

// Refused, or what was read is a model, and is read again from what we write of it.
static inline bool model_check_config(const char *bytes, size_t count)
{
    struct why why = { 0 };
    struct model_shape shape;
    double frequencies[MODEL_HEAD_DIM_MAX / 2];
    if (model_shape_from_config_json(bytes, count, &why, &shape) < 0) {
        model_check_why(&why);
        return false;
    }
    ensure(model_shape_check(&shape, NULL) == 0);
    rope_fill_frequencies(&shape.rope_scaling, shape.rope_theta, shape.head_dim, frequencies);
    for (uint32_t i = 0; i < shape.head_dim / 2; i++) // So that every position has an angle
        ensure(frequencies[i] >= 0 && frequencies[i] <= 1);
    model_check_reads_back(model_shape_to_config_json(&shape), &shape);
    char *text = strndup(bytes, count);
    ensure(text);
    model_check_reads_back(model_config_with_dtype(text, "bfloat16"), &shape);
    free(text);
    return true;
}

// Of a file in `dir`: refused, or all that it says is there can be read.
static inline bool model_check_weights(int dir, const char *name)
{
    enum { MOST = 4096 };
    struct why why = { 0 };
    safetensors_t *set;
    static float values[MOST];
    if (safetensors_open_at(dir, name, false, &why, &set) < 0) {
        model_check_why(&why);
        return false;
    }
    for (size_t i = 0; i < safetensors_count(set); i++) {
        const struct safetensors_tensor *tensor = safetensors_tensor(set, i);
        const uint64_t elements = (tensor->end - tensor->begin) / layout_dtype_bytes(tensor->dtype);
        const uint64_t last = elements < MOST ? elements : MOST;
        ensure(layout_name_valid(tensor->name) && safetensors_find(set, tensor->name) == tensor);
        ensure(safetensors_read(set, tensor, elements - last, last, values, NULL) == 0);
    }
    safetensors_close(&set);
    return true;
}
