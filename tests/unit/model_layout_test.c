#include "common/learn/model_config.h"
#include "common/learn/model_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct model_shape small =
    { .vocab = 256, .dim = 48, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16,
                                          .ffn = 100, .seq_len_max = 64, .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static void tensors_have_the_names_and_places_we_promise(void **state)
{
    (void)state;
    static const struct { const char *name; uint64_t offset; uint32_t rows, cols; } wanted[] = {
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

#define REFUSED(field, bad, word) \
    do { \
        struct model_shape shape_ = small; \
        shape_.field = (bad); \
        expect_shape_refused(shape_, word); \
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

// ---- config.json

static const char tiny_llama[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, \"bos_token_id\": 1,"
    " \"hidden_act\": \"silu\", \"hidden_size\": 2048, \"initializer_range\": 0.02, "
    "\"intermediate_size\": 5632,"
    " \"max_position_embeddings\": 2048, \"model_type\": \"llama\", \"num_attention_heads\": "
    "32, \"num_hidden_layers\": 22,"
    " \"num_key_value_heads\": 4, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-5, "
    "\"rope_scaling\": null,"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\", \"use_cache\": true, "
    "\"vocab_size\": 32000}";

static void a_config_of_hugging_face_is_read(void **state)
{
    (void)state;
    struct why why = { 0 };
    struct model_shape shape;
    if (model_shape_from_config_json(tiny_llama, strlen(tiny_llama), &why, &shape) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(shape.dim, 2048);
    assert_int_equal(shape.head_dim, 64);
    assert_int_equal(shape.kv_heads, 4);
    assert_true(shape.rope_theta == 10000 && shape.rms_eps == 1e-5 && !shape.tied);
    assert_int_equal(model_parameter_count(&shape), 1100048384);       // As its model card says
}

static bool shapes_equal(const struct model_shape *a, const struct model_shape *b)
{
    return a->vocab == b->vocab && a->dim == b->dim && a->layers == b->layers
        && a->heads == b->heads
        && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->ffn == b->ffn
        && a->seq_len_max == b->seq_len_max && a->rope_theta == b->rope_theta
            && a->rms_eps == b->rms_eps
        && a->tied == b->tied;
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const double thetas[] = { 10000, 500000, 1, 12345.678901234567 };
    static const double epsilons[] = { 1e-5, 1e-6, 0.1, 1.0 / 3e5 };
    for (int i = 0; i < 4; i++) {
        struct model_shape shape = small, again;
        shape.rope_theta = thetas[i];
        shape.rms_eps = epsilons[i];
        shape.tied = i % 2;
        char *text = model_shape_to_config_json(&shape);
        assert_non_null(text);
        if (i == 0) assert_non_null(strstr(text, "\"rms_norm_eps\": 1e-5,"));
        assert_int_equal(model_shape_from_config_json(text, strlen(text), NULL, &again), 0);
        assert_true(shapes_equal(&shape, &again));
        free(text);
    }
}

// The small configuration with one piece of text put in at the front.
static int read_with(const char *fields, struct why *why, struct model_shape *ret_shape)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{%s%s\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 48, "
             "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 100, "
             "\"max_position_embeddings\": 64}", fields, *fields ? ", " : "");
    return model_shape_from_config_json(text, strlen(text), why, ret_shape);
}

static void what_is_absent_has_hugging_faces_default(void **state)
{
    (void)state;
    struct model_shape shape;
    assert_int_equal(read_with("", NULL, &shape), 0);
    assert_int_equal(shape.kv_heads, 4);
    assert_int_equal(shape.head_dim, 12);
    assert_true(shape.rope_theta == 10000 && shape.rms_eps == 1e-6 && !shape.tied);
    assert_int_equal(read_with("\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": "
                               "\"default\"}", NULL, &shape), 0);
    assert_true(shape.rope_theta == 5e5);
    assert_int_equal(read_with("\"head_dim\": null, \"rope_scaling\": null, "
                               "\"attention_dropout\": 0", NULL, &shape), 0);
}

static void what_we_do_not_compute_is_refused_by_name(void **state)
{
    (void)state;
    static const struct { const char *fields; int fault; const char *word; } cases[] = {
        { "\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"llama3\"}", FAULT_UNSUPPORTED,
          "rope_scaling = {\"factor\"" },
        { "\"rope_parameters\": {\"rope_theta\": 1e4, \"rope_type\": \"yarn\"}", FAULT_UNSUPPORTED,
          "rope_parameters" },
        { "\"rope_parameters\": 3", FAULT_UNSUPPORTED, "rope_parameters" },
        { "\"hidden_act\": \"gelu\"", FAULT_UNSUPPORTED,
          "hidden_act = \"gelu\", allowed \"silu\"" },
        { "\"attention_bias\": true", FAULT_UNSUPPORTED, "attention_bias" },
        { "\"mlp_bias\": true", FAULT_UNSUPPORTED, "mlp_bias" },
        { "\"quantization_config\": {\"bits\": 4}", FAULT_UNSUPPORTED, "quantization_config" },
        { "\"architectures\": [\"MistralForCausalLM\"]", FAULT_UNSUPPORTED, "architectures" },
        { "\"num_key_value_heads\": 3", FAULT_RANGE, "kv_heads = 3" },
        { "\"num_key_value_heads\": -1", FAULT_RANGE, "num_key_value_heads = -1" },
        { "\"head_dim\": 99999999999", FAULT_RANGE, "head_dim" },
        { "\"head_dim\": 12.0", FAULT_FORMAT, "head_dim is not a whole number" },
        { "\"rms_norm_eps\": \"small\"", FAULT_FORMAT, "rms_norm_eps" },
        { "\"tie_word_embeddings\": 1", FAULT_FORMAT, "tie_word_embeddings" },
        { "\"hidden_size\": 48", FAULT_FORMAT, "duplicate" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct why why = { 0 };
        struct model_shape shape = { .vocab = 77 };
        const int rc = read_with(cases[i].fields, &why, &shape);
        if (rc != cases[i].fault || !strstr(why.text, cases[i].word))
            fail_msg("%s: %s: \"%s\"", cases[i].fields, fault_name(rc), why.text);
        assert_int_equal(shape.vocab, 77);
    }
}

static void what_is_no_config_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] =
        { "", "{", "[1]", "3", "{\"model_type\": \"llama\"}", "{\"vocab_size\": 3}",
                                         "{\"model_type\": 7}", "nonsense" };
    struct model_shape shape;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_true(model_shape_from_config_json(texts[i], strlen(texts[i]), NULL, &shape) < 0);
    char *deep = malloc(MODEL_CONFIG_BYTES_MAX + 1);
    memset(deep, '[', MODEL_CONFIG_BYTES_MAX + 1);
    assert_int_equal(model_shape_from_config_json(deep, MODEL_CONFIG_BYTES_MAX, NULL, &shape),
                     FAULT_FORMAT);
    assert_int_equal(model_shape_from_config_json(deep, MODEL_CONFIG_BYTES_MAX + 1, NULL, &shape),
                     FAULT_LIMIT);
    free(deep);
    for (size_t bytes = 0; bytes < strlen(tiny_llama); bytes++)     // Cut anywhere
        assert_true(model_shape_from_config_json(tiny_llama, bytes, NULL, &shape) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_have_the_names_and_places_we_promise),
        cmocka_unit_test(tensors_cover_the_vector_without_gaps),
        cmocka_unit_test(kernels_find_what_the_table_names),
        cmocka_unit_test(shapes_out_of_bounds_are_refused_by_name),
        cmocka_unit_test(a_config_of_hugging_face_is_read),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_is_absent_has_hugging_faces_default),
        cmocka_unit_test(what_we_do_not_compute_is_refused_by_name),
        cmocka_unit_test(what_is_no_config_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
