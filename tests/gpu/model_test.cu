// A whole replica through the plugin's table against the CPU's model: loss and gradient of three
// shapes, in float32 tightly and in bf16 loosely; in portions; with graphs and without; and that a
// step of DisTrO changes parameters to the CPU's bits.
#include "tests/gpu/check.cuh"

#include <unistd.h>

#define _Alignas alignas // As C++ calls it
extern "C" {
#include "common/optimizer/distro_plan.h"
#include "common/compute/cuda/plugin.h"
#include "common/crypto/merkle.h"
#include "common/model/batch.h"
#include "common/model/genesis.h"
#include "common/optimizer/apply.h"
#include "common/kernel/gradient.h"
extern const struct cuda_plugin shoal_cuda_plugin;
}

static const struct cuda_plugin *plugin = &shoal_cuda_plugin;

struct setting {
    const char *name;
    struct model_shape shape;
    uint32_t micro_batch, seq, samples;
};

static struct model_shape shape_of(uint32_t vocab, uint32_t dim, uint32_t layers, uint32_t heads,
                                   uint32_t kv_heads, uint32_t head_dim, uint32_t ffn, bool tied)
{
    struct model_shape shape = {};
    shape.vocab = vocab, shape.dim = dim, shape.layers = layers, shape.heads = heads;
    shape.kv_heads = kv_heads, shape.head_dim = head_dim, shape.ffn = ffn, shape.tied = tied;
    shape.seq_len_max = 256, shape.rope_theta = 10000, shape.rms_eps = 1e-5;
    return shape;
}

struct bed {
    const struct setting *setting;
    uint64_t floats;
    std::vector<float> parameters, cosine, sine;
    std::vector<uint32_t> tokens;
    model_t *model;
    chunks_t *chunks;
    payload_form_t *form;
    struct plan *plan;
    struct why why;
    char text[200];

    const char *label(const char *what, bool float32)
    {
        snprintf(text, sizeof text, "%s, %s, %s", what, float32 ? "float32" : "bf16",
                 setting->name);
        return text;
    }

    bool open(const struct setting *which)
    {
        setting = which;
        const struct model_shape *shape = &which->shape;
        floats = model_parameter_count(shape);
        parameters.resize(floats);
        genesis_fill(shape, 7, parameters.data());
        for (float &p : parameters) p += 0.05f * random_normal(); // Norms that are not all 1
        const size_t turns = (size_t)which->seq * shape->head_dim / 2;
        cosine.resize(turns), sine.resize(turns);
        rope_fill_tables(&shape->rope_scaling, shape->rope_theta, shape->head_dim, which->seq,
                         cosine.data(), sine.data());
        tokens.resize((size_t)which->samples * (which->seq + 1));
        for (uint32_t &token : tokens) token = random_bits() % 4 ? random_bits() % shape->vocab : 3;
        const struct model_options options = { which->micro_batch, which->seq, GEMM_FLOAT32,
                                               false };
        return model_new(shape, &options, NULL, &why, &model) == 0 &&
               chunks_of_model(shape, 16, &why, &chunks) == 0 &&
               payload_form_new(chunks, 4, true, &why, &form) == 0 &&
               plan_new(form, &why, &plan) == 0;
    }
    void close()
    {
        plan_destroy(&plan);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
        model_destroy(&model);
    }
    int replica(bool float32, bool graph, struct cuda_replica **ret)
    {
        const struct cuda_config config = { 0,
                                            setting->shape,
                                            setting->micro_batch,
                                            setting->seq,
                                            cosine.data(),
                                            sine.data(),
                                            plan,
                                            true,
                                            float32,
                                            graph,
                                            2,
                                            0,
                                            floats,
                                            NULL,
                                            0 };
        int rc = plugin->open(&config, &why, ret);
        if (rc == 0) rc = plugin->put(*ret, CUDA_PARAMETERS, parameters.data(), &why);
        return rc;
    }
};

static std::vector<double> wide_of(const std::vector<float> &x)
{
    return std::vector<double>(x.begin(), x.end());
}

static void test_gradient(struct bed *bed, bool float32, const std::vector<float> &expected,
                          double expected_loss)
{
    struct cuda_replica *replica = NULL;
    std::vector<float> first(bed->floats), again(bed->floats);
    double loss = 0, same_loss = 0, loss_again = 0, norm = 0;
    const uint32_t samples = bed->setting->samples;
    int rc = bed->replica(float32, true, &replica);
    if (rc == 0) rc = plugin->loss(replica, bed->tokens.data(), samples, true, &bed->why, &loss);
    if (rc == 0) rc = plugin->get(replica, CUDA_GRADIENT, first.data(), &bed->why);
    // Again, and once more: by the third time every portion is the replay of a graph
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = plugin->loss(replica, bed->tokens.data(), samples, true, &bed->why, &loss_again);
    if (rc == 0) rc = plugin->get(replica, CUDA_GRADIENT, again.data(), &bed->why);
    if (rc == 0)
        rc = plugin->loss(replica, bed->tokens.data(), samples, false, &bed->why, &same_loss);
    if (rc == 0) rc = plugin->clip(replica, 0.0, &bed->why, &norm);
    if (rc < 0) {
        check_say(false, "%s: %s", bed->label("gradient", float32), bed->why.text);
        plugin->close(&replica);
        return;
    }
    check_close(bed->label("loss", float32), std::vector<double>(1, loss),
                std::vector<double>(1, expected_loss), float32 ? 1e-6 : 2e-3);
    check_close(bed->label("gradient", float32), wide_of(first), wide_of(expected),
                float32 ? 1e-4 : 3e-2);
    for (uint32_t t = 0; t < model_tensor_count(&bed->setting->shape);
         t++) { // A slip in a small one
        const struct model_tensor tensor = model_tensor_at(&bed->setting->shape, t);
        const uint64_t end = tensor.offset + model_tensor_size(&tensor);
        double difference = 0, length = 0;
        for (uint64_t i = tensor.offset; i < end; i++) {
            difference += pow((double)first[i] - (double)expected[i], 2);
            length += pow((double)expected[i], 2);
        }
        if (!(sqrt(difference) <= (float32 ? 1e-4 : 6e-2) * sqrt(length)))
            check_say(false, "gradient of %s: relative error %.2e", tensor.name,
                      sqrt(difference / length));
    }
    check_same(bed->label("gradient a second time", float32), again, first);
    check_say(loss == loss_again && loss == same_loss, "the loss of three ways: %.9g %.9g %.9g",
              loss, loss_again, same_loss);
    check_close("norm of the gradient", std::vector<double>(1, norm),
                std::vector<double>(1, gradient_norm(NULL, first.data(), bed->floats)), 1e-12);
    plugin->close(&replica);
}

// One trainer's round: its own result is committed, so it adopts. What the payload says is applied
// on both sides.
static void test_step(struct bed *bed)
{
    const struct plan *plan = bed->plan;
    struct cuda_replica *replica = NULL;
    std::vector<uint16_t> counts(plan->chunks), numbers(plan->slots);
    std::vector<float> values(plan->slots), got(bed->floats), candidate(bed->floats);
    const struct cuda_coefficients chosen = { counts.data(), numbers.data(), values.data() };
    std::vector<uint8_t> payload(payload_bytes(bed->form));
    std::vector<struct hash> leaves(digest_leaf_count(bed->floats));
    double loss, norm;
    int rc = bed->replica(false, false, &replica);
    if (rc == 0)
        rc = plugin->loss(replica, bed->tokens.data(), bed->setting->samples, true, &bed->why,
                          &loss);
    if (rc == 0) rc = plugin->clip(replica, 1.0, &bed->why, &norm);
    const struct cuda_compression compression = { CUDA_STATE, CUDA_STATE + 1, 0.9f, 0.01f };
    struct cuda_compression wrong = compression;
    wrong.candidate = CUDA_GRADIENT; // Which is none of state
    if (rc == 0) {
        rc = plugin->compress(replica, &wrong, &chosen, &bed->why);
        check_say(rc == FAULT_UNSUPPORTED, "a candidate that is no state: %s", bed->why.text);
        rc = plugin->compress(replica, &compression, &chosen, &bed->why);
    }
    if (rc == 0) rc = plugin->get(replica, CUDA_STATE, got.data(), &bed->why);
    if (rc == 0) check_same("the residual stays", got, std::vector<float>(bed->floats));
    if (rc == 0) rc = plugin->get(replica, CUDA_STATE + 1, candidate.data(), &bed->why);
    if (rc == 0) check_say(candidate != got, "the candidate is another");
    payload_clear(bed->form, payload.data());
    for (uint32_t c = 0; c < plan->chunks && rc == 0; c++) {
        const struct plan_part &part = plan->parts[chunks_part_of(bed->chunks, c)];
        const uint64_t slot = part.slot + (uint64_t)(c - part.first) * part.top_k;
        payload_write(bed->form, c, &numbers[slot], &values[slot], counts[c], payload.data());
        for (uint32_t i = 0; i < counts[c]; i++) values[slot + i] = values[slot + i] > 0 ? 1 : -1;
    }
    const struct apply_step step = { 0.003f, 0.1f, NULL };
    const struct apply_result result = { 0, payload.data(), payload.size(), false };
    std::vector<float> expected = bed->parameters;
    if (rc == 0) rc = apply_commit(bed->form, &result, 1, &step, NULL, expected.data(), &bed->why);
    const struct cuda_commit commit = { 0,
                                        plan->chunks,
                                        1,
                                        0,
                                        plan->slots,
                                        chosen,
                                        fmaf(-step.rate, step.weight_decay, 1.0f),
                                        step.rate };
    if (rc == 0) rc = plugin->apply(replica, &commit, &bed->why);
    if (rc == 0) rc = plugin->get(replica, CUDA_PARAMETERS, got.data(), &bed->why);
    if (rc == 0) rc = plugin->leaves(replica, CUDA_PARAMETERS, leaves[0].bytes, &bed->why);
    if (rc < 0) {
        check_say(false, "a step: %s", bed->why.text);
        plugin->close(&replica);
        return;
    }
    check_same(bed->label("parameters after a commit", false), got, expected);
    const struct hash digest = merkle_root(leaves.data(), leaves.size());
    check_same("their digest", std::vector<struct hash>(1, digest),
               std::vector<struct hash>(1, digest_of(expected.data(), bed->floats)));
    // From the new parameters, which the bf16 copy must have followed
    double after = 0, expected_after = 0;
    const struct batch batch = { bed->tokens.data(), bed->setting->samples, bed->setting->seq,
                                 bed->setting->micro_batch };
    rc = plugin->loss(replica, bed->tokens.data(), batch.count, false, &bed->why, &after);
    if (rc == 0) rc = batch_loss(bed->model, expected.data(), &batch, &bed->why, &expected_after);
    check_close("the loss after it", std::vector<double>(1, after),
                std::vector<double>(1, rc == 0 ? expected_after : -1), 2e-3);
    plugin->close(&replica);
}

static void test_nan(struct bed *bed)
{
    struct cuda_replica *replica = NULL;
    double loss = -1;
    std::vector<float> broken = bed->parameters;
    broken[model_final_norm_offset(&bed->setting->shape)] = NAN;
    int rc = bed->replica(false, false, &replica);
    if (rc == 0) rc = plugin->put(replica, CUDA_PARAMETERS, broken.data(), &bed->why);
    if (rc == 0) rc = plugin->loss(replica, bed->tokens.data(), 1, true, &bed->why, &loss);
    check_say(rc == FAULT_NAN && strstr(bed->why.text, "samples 0..0"), "a NaN is named: %s",
              bed->why.text);
    plugin->close(&replica);
}

static void test_setting(const struct setting *setting)
{
    struct bed bed = {};
    if (!bed.open(setting)) {
        check_say(false, "%s: %s", setting->name, bed.why.text);
        return;
    }
    std::vector<float> expected(bed.floats), scratch(bed.floats);
    double loss = 0;
    const struct batch batch = { bed.tokens.data(), setting->samples, setting->seq,
                                 setting->micro_batch };
    const int rc = batch_gradient(bed.model, bed.parameters.data(), &batch, NULL, scratch.data(),
                                  &bed.why, expected.data(), &loss);
    if (rc < 0) check_say(false, "%s: %s", setting->name, bed.why.text);
    else {
        test_gradient(&bed, true, expected, loss);
        test_gradient(&bed, false, expected, loss);
        test_step(&bed);
        test_nan(&bed);
    }
    bed.close();
}

static void tests()
{
    const struct setting settings[] = {
        { "grouped heads", shape_of(96, 32, 2, 4, 2, 32, 48, false), 2, 24, 3 },
        { "a tied head, odd widths", shape_of(61, 30, 1, 3, 3, 10, 37, true), 1, 13, 2 },
        { "one layer, head_dim 64", shape_of(130, 64, 1, 2, 1, 64, 40, false), 1, 70, 1 },
    };
    for (const struct setting &setting : settings) test_setting(&setting);
}

int main() { return check_main(tests); }
