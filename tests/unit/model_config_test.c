// model_config_test -- config.json of published models is read, and what we do not compute is
// refused by name.

#include "tests/fuzz/model_check.h"
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
    assert_int_equal(model_parameter_count(&shape), 1100048384); // As its model card says
}

// The fields that matter of published models, and the parameters that their cards count.
static void published_models_have_their_number_of_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
        const char *text;
    } cards[] = {
        { "Llama 2 7B", 6738415616,
          "{\"architectures\": [\"LlamaForCausalLM\"], "
          "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 11008, "
          "\"max_position_embeddings\": 4096, \"model_type\": \"llama\", "
          "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 32, "
          "\"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, \"rope_scaling\": null, "
          "\"tie_word_embeddings\": false, \"torch_dtype\": \"float16\", "
          "\"vocab_size\": 32000}" },
        { "Llama 3.1 8B", 8030261248,
          "{\"architectures\": [\"LlamaForCausalLM\"], "
          "\"attention_bias\": false, \"attention_dropout\": 0.0, \"eos_token_id\": [128001, "
          "128008], \"hidden_size\": 4096, \"intermediate_size\": 14336, "
          "\"max_position_embeddings\": 131072, \"mlp_bias\": false, \"model_type\": \"llama\", "
          "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
          "\"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0, "
          "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192, "
          "\"rope_type\": \"llama3\"}, \"rope_theta\": 500000.0, \"vocab_size\": 128256}" },
        { "Llama 3.2 1B", 1235814400,
          "{\"architectures\": [\"LlamaForCausalLM\"], "
          "\"head_dim\": 64, \"hidden_size\": 2048, \"intermediate_size\": 8192, "
          "\"max_position_embeddings\": 131072, \"model_type\": \"llama\", "
          "\"num_attention_heads\": 32, \"num_hidden_layers\": 16, \"num_key_value_heads\": 8, "
          "\"rope_scaling\": {\"factor\": 32.0, \"high_freq_factor\": 4.0, "
          "\"low_freq_factor\": 1.0, \"original_max_position_embeddings\": 8192, "
          "\"rope_type\": \"llama3\"}, \"rope_theta\": 500000.0, "
          "\"tie_word_embeddings\": true, \"vocab_size\": 128256}" },
        { "SmolLM2 135M", 134515008,
          "{\"architectures\": [\"LlamaForCausalLM\"], "
          "\"hidden_size\": 576, \"intermediate_size\": 1536, \"is_llama_config\": true, "
          "\"max_position_embeddings\": 8192, \"model_type\": \"llama\", "
          "\"num_attention_heads\": 9, \"num_hidden_layers\": 30, \"num_key_value_heads\": 3, "
          "\"rope_interleaved\": false, \"rope_scaling\": null, \"rope_theta\": 100000, "
          "\"tie_word_embeddings\": true, \"transformers.js_config\": {\"kv_cache_dtype\": "
          "{\"fp16\": \"float16\"}}, \"vocab_size\": 49152}" },
        { "Mistral 7B v0.3", 7248023552,
          "{\"architectures\": [\"MistralForCausalLM\"], "
          "\"hidden_size\": 4096, \"intermediate_size\": 14336, "
          "\"max_position_embeddings\": 32768, \"model_type\": \"mistral\", "
          "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
          "\"rms_norm_eps\": 1e-05, \"rope_theta\": 1000000.0, \"sliding_window\": null, "
          "\"tie_word_embeddings\": false, \"vocab_size\": 32768}" },
    };
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        struct why why = { 0 };
        struct model_shape shape;
        if (model_shape_from_config_json(cards[i].text, strlen(cards[i].text), &why, &shape) < 0)
            fail_msg("%s: %s", cards[i].name, why.text);
        assert_int_equal(model_parameter_count(&shape), cards[i].parameters);
    }
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const double thetas[] = { 10000, 500000, 1, 12345.678901234567 };
    static const double epsilons[] = { 1e-5, 1e-6, 0.1, 1.0 / 3e5 };
    static const struct rope_scaling scalings[] = {
        { .type = ROPE_DEFAULT },
        { .type = ROPE_LINEAR, .factor = 1.0 / 3.0 + 1.0 },
        { .type = ROPE_LLAMA3,
          .factor = 8,
          .original = 16,
          .low_freq_factor = 1,
          .high_freq_factor = 4.1 },
        { .type = ROPE_YARN,
          .factor = 4,
          .original = 16,
          .beta_fast = 30.5,
          .beta_slow = 2,
          .attention_factor = 1.0 / 7.0,
          .truncate = true },
    };
    for (int i = 0; i < 4; i++) {
        struct model_shape shape = small, again;
        shape.rope_theta = thetas[i];
        shape.rms_eps = epsilons[i];
        shape.rope_scaling = scalings[i];
        shape.tied = i % 2;
        char *text = model_shape_to_config_json(&shape);
        assert_non_null(text);
        if (i == 0) assert_non_null(strstr(text, "\"rms_norm_eps\": 1e-5,"));
        struct why why = { 0 };
        if (model_shape_from_config_json(text, strlen(text), &why, &again) < 0)
            fail_msg("%s", why.text);
        assert_true(model_check_shapes_equal(&shape, &again));
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
             "\"max_position_embeddings\": 64}",
             fields, *fields ? ", " : "");
    return model_shape_from_config_json(text, strlen(text), why, ret_shape);
}

// A run's sequences are shorter than what a model for long texts allows.
static void more_positions_than_a_run_has_are_read(void **state)
{
    static const char format[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 48, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 100, "
        "\"max_position_embeddings\": %u}";
    static const struct {
        uint32_t positions, computed;
        int fault;
    } cases[] = { { 131072, 131072, 0 },
                  { 1048576, 131072, 0 },
                  { MODEL_POSITIONS_MAX, 131072, 0 },
                  { MODEL_POSITIONS_MAX + 1, 0, FAULT_RANGE },
                  { 0, 0, FAULT_RANGE } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        struct model_shape shape;
        struct why why = { 0 };
        snprintf(text, sizeof text, format, cases[i].positions);
        const int rc = model_shape_from_config_json(text, strlen(text), &why, &shape);
        if (rc != cases[i].fault) fail_msg("%u positions: %s", cases[i].positions, why.text);
        if (rc < 0) continue;
        assert_int_equal(shape.seq_len_max, cases[i].positions);
        assert_int_equal(model_seq_len(&shape), cases[i].computed);
    }
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
                               "\"default\"}",
                               NULL, &shape),
                     0);
    assert_true(shape.rope_theta == 5e5);
    assert_int_equal(read_with("\"head_dim\": null, \"rope_scaling\": null, "
                               "\"attention_dropout\": 0",
                               NULL, &shape),
                     0);
}

static void what_we_do_not_compute_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int fault;
        const char *word;
    } cases[] = {
        { "\"rope_parameters\": 3", FAULT_UNSUPPORTED, "rope_parameters = 3, allowed null or an" },
        { "\"layer_types\": [\"sliding_attention\"]", FAULT_UNSUPPORTED, "layer_types" },
        { "\"rope_interleaved\": true", FAULT_UNSUPPORTED,
          "rope_interleaved = true, allowed false" },
        { "\"partial_rotary_factor\": 0.5", FAULT_UNSUPPORTED, "partial_rotary_factor = 0.5" },
        { "\"sliding_window\": 63", FAULT_UNSUPPORTED, "sliding_window = 63, allowed null or" },
        { "\"sliding_window\": \"wide\"", FAULT_FORMAT, "sliding_window is not a whole number" },
        { "\"hidden_act\": \"gelu\"", FAULT_UNSUPPORTED,
          "hidden_act = \"gelu\", allowed \"silu\"" },
        { "\"attention_bias\": true", FAULT_UNSUPPORTED, "attention_bias" },
        { "\"mlp_bias\": true", FAULT_UNSUPPORTED, "mlp_bias" },
        { "\"quantization_config\": {\"bits\": 4}", FAULT_UNSUPPORTED, "quantization_config" },
        { "\"architectures\": [\"MistralForCausalLM\"]", FAULT_UNSUPPORTED,
          "model_type = \"llama\", allowed that of the architectures" },
        { "\"architectures\": [\"GemmaForCausalLM\"]", FAULT_UNSUPPORTED, "architectures = [" },
        { "\"architectures\": []", FAULT_UNSUPPORTED, "architectures = []" },
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

// ---- Rotation

#define LLAMA3                                                                                     \
    "\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "                       \
    "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 16"
#define YARN "\"type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 16"

static void rotations_are_read_in_both_spellings(void **state)
{
    (void)state;
    const struct rope_scaling llama3 = { .type = ROPE_LLAMA3,
                                         .factor = 8,
                                         .original = 16,
                                         .low_freq_factor = 1,
                                         .high_freq_factor = 4 };
    const struct rope_scaling linear = { .type = ROPE_LINEAR, .factor = 2.5 };
    const struct rope_scaling yarn = { .type = ROPE_YARN,
                                       .factor = 4,
                                       .original = 16,
                                       .beta_fast = 32,
                                       .beta_slow = 1,
                                       .truncate = true,
                                       .attention_factor = rope_attention_factor(4) };
    struct rope_scaling given = yarn;
    given.beta_fast = 8;
    given.attention_factor = 1;
    given.truncate = false;
    const struct {
        const char *fields;
        double theta;
        struct rope_scaling scaling;
    } cases[] = {
        { "\"rope_scaling\": {" LLAMA3 "}, \"rope_theta\": 5e5", 5e5, llama3 },
        { "\"rope_parameters\": {" LLAMA3 ", \"rope_theta\": 500000}", 5e5, llama3 },
        { "\"rope_parameters\": {" LLAMA3 ", \"type\": \"llama3\"}, \"rope_theta\": 7", 7, llama3 },
        { "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}", 1e4, linear },
        { "\"rope_scaling\": {" YARN ", \"finetuned\": true, \"mscale\": null}", 1e4, yarn },
        { "\"rope_scaling\": {" YARN ", \"beta_fast\": 8, \"attention_factor\": 1.0, "
          "\"truncate\": false}",
          1e4, given },
        { "\"rope_scaling\": {\"factor\": null}", 1e4, { .type = ROPE_DEFAULT } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct why why = { 0 };
        struct model_shape shape;
        if (read_with(cases[i].fields, &why, &shape) < 0)
            fail_msg("%s: %s", cases[i].fields, why.text);
        if (!model_check_scalings_equal(&shape.rope_scaling, &cases[i].scaling) ||
            shape.rope_theta != cases[i].theta)
            fail_msg("%s is read wrongly", cases[i].fields);
    }
}

static void other_rotations_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int fault;
        const char *word;
    } cases[] = {
        { "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}", FAULT_UNSUPPORTED,
          "rope_scaling.type = \"dynamic\", allowed \"default\", \"linear\", "
          "\"llama3\" or \"yarn\"" },
        { "\"rope_parameters\": {\"rope_type\": 3}", FAULT_UNSUPPORTED, "rope_type = 3" },
        { "\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": \"llama3\"}", FAULT_UNSUPPORTED,
          "rope_scaling.type = \"linear\", allowed the same as rope_type" },
        { "\"rope_scaling\": {\"type\": \"linear\"}", FAULT_FORMAT,
          "rope_scaling.factor is missing" },
        { "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}", FAULT_RANGE,
          "factor = 0.5, allowed 1..1e+06" },
        { "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"facter\": 3}",
          FAULT_UNSUPPORTED,
          "rope_scaling.facter = 3, allowed nothing of that name with \"linear\"" },
        { "\"rope_scaling\": {" LLAMA3 ", \"beta_fast\": 32}", FAULT_UNSUPPORTED,
          "beta_fast = 32" },
        { "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
          "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 16}",
          FAULT_RANGE, "high_freq_factor = 4, allowed above low_freq_factor = 4" },
        { "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
          "\"high_freq_factor\": 4}",
          FAULT_FORMAT, "original_max_position_embeddings is missing" },
        { "\"rope_scaling\": {" YARN ", \"mscale\": 0.7}", FAULT_UNSUPPORTED, "mscale = 0.7" },
        { "\"rope_scaling\": {" YARN ", \"truncate\": 1}", FAULT_UNSUPPORTED, "truncate = 1" },
        { "\"rope_scaling\": {" YARN ", \"attention_factor\": 0}", FAULT_RANGE,
          "attention_factor = 0" },
        { "\"rope_scaling\": {" YARN "}, \"rope_theta\": 1", FAULT_RANGE,
          "with yarn rope_theta = 1" },
        { "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 8.0, "
          "\"original_max_position_embeddings\": 16}",
          FAULT_UNSUPPORTED,
          "factor = 8.0, allowed max_position_embeddings / original_max_position_embeddings = 4" },
        { "\"rope_scaling\": {" YARN "}, \"rope_parameters\": {" LLAMA3 "}", FAULT_UNSUPPORTED,
          "rope_scaling = {" },
        { "\"rope_parameters\": {\"rope_theta\": 5}, \"rope_theta\": 6", FAULT_UNSUPPORTED,
          "rope_parameters.rope_theta = 5, allowed the same as rope_theta outside" },
        { "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}", FAULT_UNSUPPORTED,
          "rope_parameters.partial_rotary_factor = 0.5, allowed 1.0" },
        { "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}",
          FAULT_UNSUPPORTED, "full_attention" },
        { "\"original_max_position_embeddings\": 32", FAULT_UNSUPPORTED,
          "original_max_position_embeddings = 32, allowed null" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct why why = { 0 };
        struct model_shape shape = { .vocab = 77 };
        const int rc = read_with(cases[i].fields, &why, &shape);
        if (rc != cases[i].fault || !strstr(why.text, cases[i].word))
            fail_msg("%s: %s: \"%s\"", cases[i].fields, fault_name(rc), why.text);
        assert_int_equal(shape.vocab, 77);
    }
}

// ---- Mistral

static int read_mistral(const char *fields, uint32_t positions, struct why *why)
{
    char text[1000];
    struct model_shape shape;
    snprintf(text, sizeof text,
             "{%s%s\"architectures\": [\"MistralForCausalLM\"], \"model_type\": \"mistral\", "
             "\"vocab_size\": 256, \"hidden_size\": 48, \"num_hidden_layers\": 2, "
             "\"num_attention_heads\": 4, \"intermediate_size\": 100, "
             "\"max_position_embeddings\": %u}",
             fields, *fields ? ", " : "", positions);
    return model_shape_from_config_json(text, strlen(text), why, &shape);
}

static void mistral_is_read_if_its_window_cuts_nothing(void **state)
{
    (void)state;
    struct why why = { 0 };
    assert_int_equal(
        read_mistral("\"num_key_value_heads\": 2, \"sliding_window\": null", 32768, &why), 0);
    assert_int_equal(read_mistral("\"num_key_value_heads\": 2, \"sliding_window\": 64", 64, &why),
                     0);
    assert_int_equal(read_mistral("\"num_key_value_heads\": null", 4096, &why), 0);
    assert_int_equal(read_mistral("\"num_key_value_heads\": 2", 4097, &why), FAULT_UNSUPPORTED);
    assert_non_null(strstr(why.text, "sliding_window is absent, which means 4096"));
    assert_int_equal(
        read_mistral("\"num_key_value_heads\": 2, \"sliding_window\": 4096", 32768, &why),
        FAULT_UNSUPPORTED);
    assert_non_null(strstr(why.text, "sliding_window = 4096"));
    assert_int_equal(read_mistral("\"sliding_window\": null", 64, &why), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "num_key_value_heads is missing"));
}

// ---- Another dtype

static void only_the_dtype_changes(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1e-05, 0.1], \"dtype\": \"bfloat16\", "
                               "\"b\": {\"c\": null}}";
    char *changed = model_config_with_dtype(text, "float32");
    assert_string_equal(changed, "{\n  \"a\": [\n    1e-5,\n    0.1\n  ],\n"
                                 "  \"dtype\": \"float32\",\n"
                                 "  \"b\": {\n    \"c\": null\n  }\n}");
    free(changed);
    changed = model_config_with_dtype("{\"torch_dtype\": \"float16\"}", "bfloat16");
    assert_string_equal(changed, "{\n  \"torch_dtype\": \"bfloat16\"\n}");
    free(changed);
    changed = model_config_with_dtype("{}", "bfloat16");
    assert_string_equal(changed, "{\n  \"torch_dtype\": \"bfloat16\"\n}");
    free(changed);
}

// ---- Damage at random

// Whatever a few changed bytes make of a config: it is refused with a reason, or what was read can
// be written and read again.
static void changed_bytes_are_refused_or_understood(void **state)
{
    (void)state;
    static const char from[] =
        "{\"rope_scaling\": {" LLAMA3 "}, \"rope_theta\": 5e5, "
        "\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 48, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 100, "
        "\"max_position_embeddings\": 64, \"sliding_window\": null}";
    unsigned seed = 5, accepted = 0;
    for (int turn = 0; turn < 20000; turn++) {
        char text[sizeof from];
        memcpy(text, from, sizeof from);
        for (int change = rand_r(&seed) % 3; change >= 0; change--)
            text[(size_t)rand_r(&seed) % (sizeof from - 1)] = (char)(rand_r(&seed) % 128);
        accepted += model_check_config(text, sizeof from - 1);
    }
    assert_in_range(accepted, 100, 19900);
}

// ---- No config

static void what_is_no_config_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "",
                                         "{",
                                         "[1]",
                                         "3",
                                         "{\"model_type\": \"llama\"}",
                                         "{\"vocab_size\": 3}",
                                         "{\"model_type\": 7}",
                                         "nonsense" };
    struct model_shape shape;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_true(model_shape_from_config_json(texts[i], strlen(texts[i]), NULL, &shape) < 0);
    char *deep = malloc(MODEL_CONFIG_BYTES_MAX + 1);
    memset(deep, '[', MODEL_CONFIG_BYTES_MAX + 1);
    assert_int_equal(model_shape_from_config_json(deep, MODEL_CONFIG_BYTES_MAX, NULL, &shape),
                     FAULT_LIMIT);
    assert_int_equal(model_shape_from_config_json(deep, MODEL_CONFIG_BYTES_MAX + 1, NULL, &shape),
                     FAULT_LIMIT);
    free(deep);
    for (size_t bytes = 0; bytes < strlen(tiny_llama); bytes++) // Cut anywhere
        assert_true(model_shape_from_config_json(tiny_llama, bytes, NULL, &shape) < 0);
}

TESTS(TEST(a_config_of_hugging_face_is_read),
      TEST(published_models_have_their_number_of_parameters), TEST(what_is_written_is_read_back),
      TEST(more_positions_than_a_run_has_are_read), TEST(what_is_absent_has_hugging_faces_default),
      TEST(what_we_do_not_compute_is_refused_by_name), TEST(rotations_are_read_in_both_spellings),
      TEST(other_rotations_are_refused_by_name), TEST(mistral_is_read_if_its_window_cuts_nothing),
      TEST(only_the_dtype_changes), TEST(changed_bytes_are_refused_or_understood),
      TEST(what_is_no_config_is_refused))
