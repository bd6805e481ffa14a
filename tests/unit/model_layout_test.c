// model_layout_test -- the tensors of a Llama have the promised names and places and leave no gaps.

#include "common/model/model_layout.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct model_shape small = { .vocab = 256,
                                          .dim = 48,
                                          .layers = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 16,
                                          .ffn = 100,
                                          .seq_len_max = 64,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static void tensors_have_the_names_and_places_we_promise(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t offset;
        uint32_t rows, cols;
    } wanted[] = {
        { "model.embed_tokens.weight", 0, 256, 48 },
        { "model.layers.0.input_layernorm.weight", 12288, 48, 0 },
        { "model.layers.0.self_attn.q_proj.weight", 12336, 64, 48 },
        { "model.layers.0.self_attn.k_proj.weight", 15408, 32, 48 },
        { "model.layers.0.self_attn.v_proj.weight", 16944, 32, 48 },
        { "model.layers.0.self_attn.o_proj.weight", 18480, 48, 64 },
        { "model.layers.0.post_attention_layernorm.weight", 21552, 48, 0 },
        { "model.layers.0.mlp.gate_proj.weight", 21600, 100, 48 },
        { "model.layers.0.mlp.up_proj.weight", 26400, 100, 48 },
        { "model.layers.0.mlp.down_proj.weight", 31200, 48, 100 },
        { "model.layers.1.input_layernorm.weight", 36000, 48, 0 },
    };
    for (uint32_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct model_tensor tensor = model_tensor_at(&small, i);
        assert_string_equal(tensor.name, wanted[i].name);
        assert_int_equal(tensor.offset, wanted[i].offset);
        assert_int_equal(tensor.rows, wanted[i].rows);
        assert_int_equal(tensor.cols, wanted[i].cols);
    }
    assert_string_equal(model_tensor_at(&small, 19).name, "model.norm.weight");
    assert_string_equal(model_tensor_at(&small, 20).name, "lm_head.weight");
    assert_int_equal(model_tensor_count(&small), 21);
    assert_int_equal(model_parameter_count(&small), 12288 + 2 * 23712 + 48 + 12288);
}

static void tensors_cover_the_vector_without_gaps(void **state)
{
    (void)state;
    for (uint32_t layers = 1; layers <= 12; layers++) {
        for (int tied = 0; tied <= 1; tied++) {
            struct model_shape shape = small;
            shape.layers = layers;
            shape.tied = tied;
            uint64_t at = 0;
            for (uint32_t i = 0; i < model_tensor_count(&shape); i++) {
                const struct model_tensor tensor = model_tensor_at(&shape, i);
                assert_int_equal(tensor.offset, at);
                at += model_tensor_size(&tensor);
            }
            assert_int_equal(at, model_parameter_count(&shape));
        }
    }
}

static void kernels_find_what_the_table_names(void **state)
{
    (void)state;
    const struct model_layer_offsets at = model_layer_offsets(&small, 1);
    assert_int_equal(at.attention_norm, model_tensor_at(&small, 10).offset);
    assert_int_equal(at.qkv, model_tensor_at(&small, 11).offset);
    assert_int_equal(at.o, model_tensor_at(&small, 14).offset);
    assert_int_equal(at.ffn_norm, model_tensor_at(&small, 15).offset);
    assert_int_equal(at.gate_up, model_tensor_at(&small, 16).offset);
    assert_int_equal(at.down, model_tensor_at(&small, 18).offset);
    assert_int_equal(model_final_norm_offset(&small), model_tensor_at(&small, 19).offset);
    assert_int_equal(model_head_offset(&small), model_tensor_at(&small, 20).offset);
    struct model_shape tied = small;
    tied.tied = true;
    assert_int_equal(model_head_offset(&tied), 0);
}

static void expect_shape_refused(struct model_shape shape, const char *word)
{
    struct why why = { 0 };
    assert_int_equal(model_shape_check(&shape, &why), FAULT_RANGE);
    if (!strstr(why.text, word)) fail_msg("\"%s\" does not say \"%s\"", why.text, word);
}

#define REFUSED(field, bad, word)                                                                  \
    do {                                                                                           \
        struct model_shape shape_ = small;                                                         \
        shape_.field = (bad);                                                                      \
        expect_shape_refused(shape_, word);                                                        \
    } while (0)

static void shapes_out_of_bounds_are_refused_by_name(void **state)
{
    (void)state;
    assert_int_equal(model_shape_check(&small, NULL), 0);
    REFUSED(vocab, 1, "vocab = 1, allowed 2..1048576");
    REFUSED(vocab, MODEL_VOCAB_MAX + 1, "vocab");
    REFUSED(dim, 0, "dim = 0");
    REFUSED(dim, MODEL_DIM_MAX + 1, "dim");
    REFUSED(layers, 0, "layers = 0");
    REFUSED(layers, 257, "layers = 257, allowed 1..256");
    REFUSED(heads, 0, "heads = 0");
    REFUSED(heads, 5, "kv_heads = 2, allowed divisors of heads = 5");
    REFUSED(kv_heads, 0, "kv_heads = 0, allowed 1..4");
    REFUSED(kv_heads, 8, "kv_heads = 8, allowed 1..4");
    REFUSED(head_dim, 15, "head_dim = 15, allowed even");
    REFUSED(head_dim, 0, "head_dim = 0");
    REFUSED(ffn, 0, "ffn = 0");
    REFUSED(seq_len_max, 0, "seq_len_max = 0");
    REFUSED(rope_theta, 0.5, "rope_theta = 0.5");
    REFUSED(rope_theta, 0.0 / 0.0, "rope_theta");
    REFUSED(rms_eps, 0, "rms_eps = 0");
    REFUSED(rms_eps, 1, "rms_eps = 1");
}

TESTS(TEST(tensors_have_the_names_and_places_we_promise),
      TEST(tensors_cover_the_vector_without_gaps), TEST(kernels_find_what_the_table_names),
      TEST(shapes_out_of_bounds_are_refused_by_name))
