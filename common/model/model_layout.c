// The layout is computed, not stored: offsets follow from one table of a layer's tensors. Above it
// stand the checks of a shape, which everything else here relies on.
#include "common/model/model_layout.h"
#include "common/base/ensure.h"

#include <inttypes.h>
#include <stdio.h>

static int check_count(const char *name, uint32_t value, uint32_t low, uint32_t high,
                       struct why *why)
{
    if (value >= low && value <= high) return 0;
    return why_set(why, FAULT_RANGE,
                   "model shape: %s = %" PRIu32 ", allowed %" PRIu32 "..%" PRIu32 "; the shape "
                   "is refused",
                   name, value, low, high);
}

static int check_relations(const struct model_shape *shape, struct why *why)
{
    if (shape->heads % shape->kv_heads != 0)
        return why_set(why, FAULT_RANGE,
                       "model shape: kv_heads = %" PRIu32 ", allowed divisors of heads = %" PRIu32
                       "; the shape is refused",
                       shape->kv_heads, shape->heads);
    if (shape->head_dim % 2 != 0)
        return why_set(why, FAULT_RANGE,
                       "model shape: head_dim = %" PRIu32 ", allowed even numbers, since positions "
                       "rotate pairs; the shape is refused",
                       shape->head_dim);
    if (!(shape->rms_eps > 0.0 && shape->rms_eps <= 0.1))
        return why_set(why, FAULT_RANGE,
                       "model shape: rms_eps = %g, allowed above 0 and at most 0.1; the shape is "
                       "refused",
                       shape->rms_eps);
    return rope_check(&shape->rope_scaling, shape->rope_theta, why);
}

int model_shape_check(const struct model_shape *shape, struct why *why)
{
    const struct {
        const char *name;
        uint32_t value, low, high;
    } counts[] = {
        { "vocab", shape->vocab, 2, MODEL_VOCAB_MAX },
        { "dim", shape->dim, 1, MODEL_DIM_MAX },
        { "layers", shape->layers, 1, MODEL_LAYERS_MAX },
        { "heads", shape->heads, 1, MODEL_HEADS_MAX },
        { "kv_heads", shape->kv_heads, 1, shape->heads },
        { "head_dim", shape->head_dim, 2, MODEL_HEAD_DIM_MAX },
        { "ffn", shape->ffn, 1, MODEL_FFN_MAX },
        { "seq_len_max", shape->seq_len_max, 1, MODEL_POSITIONS_MAX },
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int rc =
            check_count(counts[i].name, counts[i].value, counts[i].low, counts[i].high, why);
        if (rc < 0) return rc;
    }
    return check_relations(shape, why);
}

uint32_t model_seq_len(const struct model_shape *shape)
{
    return shape->seq_len_max < MODEL_SEQ_LEN_MAX ? shape->seq_len_max : MODEL_SEQ_LEN_MAX;
}

// A layer's tensors in order: name, role, shape.
struct part {
    const char *name;
    enum model_role role;
    uint32_t rows, cols;
};

static struct part layer_part(const struct model_shape *shape, uint32_t index)
{
    const uint32_t dim = shape->dim, q = shape->heads * shape->head_dim;
    const uint32_t kv = shape->kv_heads * shape->head_dim;
    const struct part parts[MODEL_TENSORS_PER_LAYER] = {
        { "input_layernorm", MODEL_ATTENTION_NORM, dim, 0 },
        { "self_attn.q_proj", MODEL_Q, q, dim },
        { "self_attn.k_proj", MODEL_K, kv, dim },
        { "self_attn.v_proj", MODEL_V, kv, dim },
        { "self_attn.o_proj", MODEL_O, dim, q },
        { "post_attention_layernorm", MODEL_FFN_NORM, dim, 0 },
        { "mlp.gate_proj", MODEL_GATE, shape->ffn, dim },
        { "mlp.up_proj", MODEL_UP, shape->ffn, dim },
        { "mlp.down_proj", MODEL_DOWN, dim, shape->ffn },
    };
    return parts[index];
}

static uint64_t part_size(const struct part *part)
{
    return (uint64_t)part->rows * (part->cols ? part->cols : 1);
}

// From the start of a layer to its part number `index`; with MODEL_TENSORS_PER_LAYER, the size of a
// layer.
static uint64_t part_offset(const struct model_shape *shape, uint32_t index)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < index; i++) {
        const struct part part = layer_part(shape, i);
        offset += part_size(&part);
    }
    return offset;
}

static uint64_t layer_offset(const struct model_shape *shape, uint32_t layer)
{
    return (uint64_t)shape->vocab * shape->dim +
           layer * part_offset(shape, MODEL_TENSORS_PER_LAYER);
}

uint64_t model_final_norm_offset(const struct model_shape *shape)
{
    return layer_offset(shape, shape->layers);
}

uint64_t model_head_offset(const struct model_shape *shape)
{
    return shape->tied ? 0 : model_final_norm_offset(shape) + shape->dim;
}

uint64_t model_parameter_count(const struct model_shape *shape)
{
    ensure(model_shape_check(shape, NULL) == 0);
    const uint64_t body = model_final_norm_offset(shape) + shape->dim;
    return shape->tied ? body : body + (uint64_t)shape->vocab * shape->dim;
}

struct model_layer_offsets model_layer_offsets(const struct model_shape *shape, uint32_t layer)
{
    ensure(layer < shape->layers);
    const uint64_t start = layer_offset(shape, layer);
    return (struct model_layer_offsets){
        .attention_norm = start,
        .qkv = start + part_offset(shape, 1),
        .o = start + part_offset(shape, 4),
        .ffn_norm = start + part_offset(shape, 5),
        .gate_up = start + part_offset(shape, 6),
        .down = start + part_offset(shape, 8),
    };
}

uint32_t model_tensor_count(const struct model_shape *shape)
{
    ensure(model_shape_check(shape, NULL) == 0);
    return 2 + shape->layers * MODEL_TENSORS_PER_LAYER + (shape->tied ? 0 : 1);
}

static struct model_tensor tensor_outside_layers(const char *name, enum model_role role,
                                                 uint64_t offset, uint32_t rows, uint32_t cols)
{
    struct model_tensor tensor = { .role = role, .offset = offset, .rows = rows, .cols = cols };
    snprintf(tensor.name, sizeof tensor.name, "%s.weight", name);
    return tensor;
}

struct model_tensor model_tensor_at(const struct model_shape *shape, uint32_t index)
{
    const uint32_t count = model_tensor_count(shape);
    const uint32_t in_layers = shape->layers * MODEL_TENSORS_PER_LAYER;
    ensure(index < count);
    if (index == 0)
        return tensor_outside_layers("model.embed_tokens", MODEL_EMBEDDING, 0, shape->vocab,
                                     shape->dim);
    if (index == in_layers + 1)
        return tensor_outside_layers("model.norm", MODEL_FINAL_NORM, model_final_norm_offset(shape),
                                     shape->dim, 0);
    if (index == in_layers + 2)
        return tensor_outside_layers("lm_head", MODEL_HEAD, model_head_offset(shape), shape->vocab,
                                     shape->dim);

    const uint32_t layer = (index - 1) / MODEL_TENSORS_PER_LAYER;
    const uint32_t number = (index - 1) % MODEL_TENSORS_PER_LAYER;
    const struct part part = layer_part(shape, number);
    struct model_tensor tensor = { .role = part.role, .rows = part.rows, .cols = part.cols };
    tensor.offset = layer_offset(shape, layer) + part_offset(shape, number);
    snprintf(tensor.name, sizeof tensor.name, "model.layers.%" PRIu32 ".%s.weight", layer,
             part.name);
    return tensor;
}

uint64_t model_tensor_size(const struct model_tensor *tensor)
{
    return (uint64_t)tensor->rows * (tensor->cols ? tensor->cols : 1);
}
