// The GPU behind compute.h beside the CPU behind compute.h: two members of one run, three rounds.
// Their gradients are close; after every commit of both results their digests are equal, also of
// one whose values are ten times what the other's are, and clipped. Then two that are alone, with
// AdamW and with DisTrO: close to each other, and what they remember, moved to the other device or to
// a fresh replica, is the same there.
#include "tests/gpu/check.cuh"

#define _Alignas alignas // As C++ calls it
extern "C" {
#include "common/compute/compute.h"
#include "common/compute/cuda/plugin.h"
#include "common/crypto/merkle.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
extern const struct cuda_plugin shoal_cuda_plugin;
}

enum { MEMBERS = 2, SAMPLES = 3, SEQ = 20, ROUNDS = 3 };

struct member {
    compute_t *compute;
    std::vector<uint8_t> payload;
    std::vector<struct hash> leaves;
    double loss, norm;
    struct hash from, to;
};

static struct why why;

static bool good(const char *what, int rc)
{
    if (rc < 0) check_say(false, "%s: %s", what, why.text);
    return rc == 0;
}

static bool train(struct member *self, const std::vector<uint32_t> &tokens)
{
    return good("gradient",
                compute_gradient(self->compute, tokens.data(), SAMPLES, &why, &self->loss)) &&
           good("clip", compute_clip(self->compute, 1.0, &why, &self->norm)) &&
           good("compress", compute_compress(self->compute, 0.01f, &why, self->payload.data())) &&
           good("residual hashes",
                compute_residual_hashes(self->compute, &why, &self->from, &self->to));
}

static std::vector<uint8_t> multiplied(const payload_form_t *form,
                                       const std::vector<uint8_t> &payload, float by)
{
    std::vector<uint8_t> result(payload.size());
    std::vector<uint16_t> numbers(PAYLOAD_TOP_K_MAX);
    std::vector<float> values(PAYLOAD_TOP_K_MAX);
    payload_clear(form, result.data());
    for (uint32_t c = 0; c < chunks_count(payload_chunks(form)); c++) {
        const uint32_t count = payload_read(form, c, payload.data(), numbers.data(), values.data());
        for (uint32_t i = 0; i < count; i++) values[i] *= by;
        payload_write(form, c, numbers.data(), values.data(), count, result.data());
    }
    return result;
}

static bool apply(const payload_form_t *form, struct member *members, int round)
{
    const struct apply_step step = { 0.01f, 0.1f, NULL };
    struct apply_result results[MEMBERS];
    members[round % 2].payload = multiplied(form, members[round % 2].payload, -10.0f);
    for (int i = 0; i < MEMBERS; i++) // In any order
        results[MEMBERS - 1 - i] = { (uint64_t)i * SAMPLES, members[i].payload.data(),
                                     members[i].payload.size() };
    for (int i = 0; i < MEMBERS; i++) {
        if (!good("apply", compute_apply(members[i].compute, results, MEMBERS, &step, &why)) ||
            !good("leaves", compute_leaves(members[i].compute, &why, members[i].leaves.data())))
            return false;
        if (round == 1) compute_discard(members[i].compute);
        else compute_adopt(members[i].compute);
    }
    return true;
}

static void run(const payload_form_t *form, struct member *members, const struct model_shape *shape)
{
    std::vector<struct hash> before(1), after(1);
    for (int round = 0; round < ROUNDS; round++) {
        std::vector<uint32_t> tokens(SAMPLES * (SEQ + 1));
        for (uint32_t &token : tokens) token = random_bits() % shape->vocab;
        const struct hash adopted = members[1].to, stayed = members[1].from;
        for (int i = 0; i < MEMBERS; i++)
            if (!train(&members[i], tokens)) return;
        check_close("loss", { members[1].loss }, { members[0].loss }, 1e-5);
        check_close("norm", { members[1].norm }, { members[0].norm }, 1e-4);
        if (round > 0) { // Round 1's candidate was discarded
            const struct hash expected = round == 2 ? stayed : adopted;
            check_say(hash_equal(&members[1].from, &expected),
                      "round %d starts from the residual"
                      " that the one before led to",
                      round);
        }
        if (!apply(form, members, round)) return;
        check_same("leaves after a commit", members[1].leaves, members[0].leaves);
    }
    std::vector<float> mine(compute_host(members[0].compute),
                            compute_host(members[0].compute) + model_parameter_count(shape));
    if (!good("pull", compute_pull(members[1].compute, &why))) return;
    check_same("parameters",
               std::vector<float>(compute_host(members[1].compute),
                                  compute_host(members[1].compute) + mine.size()),
               mine);
    uint32_t beyond[SEQ + 1] = { shape->vocab };
    double loss;
    check_say(compute_gradient(members[1].compute, beyond, 1, &why, &loss) == FAULT_RANGE,
              "a token outside the vocabulary: %s", why.text);
    members[0].payload[0] ^= 1;
    const struct apply_step step = { 0.01f, 0.1f, NULL };
    const struct apply_result bad = { 0, members[0].payload.data(), members[0].payload.size() };
    check_say(compute_apply(members[1].compute, &bad, 1, &step, &why) == FAULT_FORMAT,
              "a payload that is none: %s", why.text);
}

static void test_words()
{
    struct compute_device found = {};
    check_say(compute_find("cpu", &why, &found) == 0 && found.kind == COMPUTE_CPU && found.text[0],
              "cpu: %s", found.text);
    check_say(compute_find("tpu", &why, &found) == FAULT_USAGE, "another word: %s", why.text);
    const int rc = compute_find("cuda", &why, &found), rc_auto = compute_find("auto", &why, &found);
    check_say(rc == 0 ? found.kind == COMPUTE_CUDA
                      : rc == FAULT_UNREACHABLE && rc_auto == 0 && found.kind == COMPUTE_CPU,
              "auto: %s", found.text);
}

// ---- alone

struct alone {
    const struct compute_device *device;
    const struct compute_config *config;
    compute_t *compute;
    struct tags_item room[COMPUTE_ITEMS];
    struct tags tags;
    void *values[COMPUTE_ITEMS];
};

static bool open_alone(struct alone *self, const std::vector<float> &params)
{
    if (!good("new", compute_new(self->device, self->config, &why, &self->compute))) return false;
    std::copy(params.begin(), params.end(), compute_host(self->compute));
    return good("push", compute_push(self->compute, &why));
}

static bool pull_alone(struct alone *self)
{
    tags_init(&self->tags, self->room, COMPUTE_ITEMS);
    return good("pull", compute_pull(self->compute, &why)) &&
           good("pull the state",
                compute_pull_state(self->compute, &self->tags, &why, self->values));
}

static std::vector<float> params_of(const struct alone *self)
{
    const float *host = compute_host(self->compute);
    return std::vector<float>(host, host + model_parameter_count(&self->config->shape));
}

static std::vector<std::vector<uint8_t>> state_of(const struct alone *self)
{
    std::vector<std::vector<uint8_t>> state;
    for (size_t i = 0; i < self->tags.count; i++) {
        const uint8_t *bytes = (const uint8_t *)self->values[i];
        const struct tags_item *item = &self->room[i];
        state.emplace_back(bytes, bytes + item->elements * item->element_bytes);
    }
    return state;
}

// Some steps on the same few samples, as solo.c takes them. The last loss, or -1.
static double learn(struct alone *self, int steps)
{
    const struct compute_config *config = self->config;
    const struct apply_step step = { 0.01f, 0.1f, NULL };
    std::vector<uint32_t> tokens(SAMPLES * (SEQ + 1));
    for (size_t i = 0; i < tokens.size(); i++)
        tokens[i] = (uint32_t)(i * i + i / 5) % config->shape.vocab;
    std::vector<uint8_t> payload(config->form ? payload_bytes(config->form) : 0);
    double loss = -1, norm, again;
    for (int i = 0; i < steps; i++) {
        if (!good("gradient",
                  compute_gradient(self->compute, tokens.data(), SAMPLES, &why, &loss)) ||
            !good("loss", compute_loss(self->compute, tokens.data(), SAMPLES, &why, &again)) ||
            !good("clip", compute_clip(self->compute, 1.0, &why, &norm)))
            return -1;
        if (i == 0) check_close("the loss without a gradient", { again }, { loss }, 1e-9);
        if (!config->form) {
            if (!good("adamw", compute_adamw(self->compute, 0.01f, &why))) return -1;
            continue;
        }
        const struct apply_result result = { 0, payload.data(), payload.size() };
        if (!good("compress", compute_compress(self->compute, 0.01f, &why, payload.data())) ||
            !good("apply", compute_apply(self->compute, &result, 1, &step, &why)))
            return -1;
        compute_adopt(self->compute);
    }
    return loss;
}

// Takes what `from` remembers, and its parameters, to another replica on `device`.
static bool move_to(const struct alone *from, const struct compute_device *device, struct alone *to)
{
    to->device = device, to->config = from->config;
    if (!open_alone(to, params_of(from)) || !pull_alone(to)) return false;
    const std::vector<std::vector<uint8_t>> state = state_of(from);
    for (size_t i = 0; i < state.size(); i++)
        memcpy(to->values[i], state[i].data(), state[i].size());
    return good("push the state", compute_push_state(to->compute, &why)) && pull_alone(to);
}

static void test_alone(const char *name, const struct compute_device devices[MEMBERS],
                       const struct compute_config *config, const std::vector<float> &genesis)
{
    struct alone cpu = {}, gpu = {}, again = {}, across = {};
    cpu.device = &devices[0], gpu.device = &devices[1], cpu.config = gpu.config = config;
    bool all = open_alone(&cpu, genesis) && open_alone(&gpu, genesis);
    const double first = all ? learn(&cpu, 2) : 0, second = all ? learn(&gpu, 2) : 0;
    all = all && pull_alone(&cpu) && pull_alone(&gpu);
    if (all) {
        check_close(name, { second }, { first }, 1e-4);
        check_say(first < log(config->shape.vocab) && gpu.tags.count == cpu.tags.count &&
                      gpu.tags.count > 0,
                  "%s: it learns, and has a state", name);
        std::vector<double> mine, theirs;
        for (float x : params_of(&gpu)) mine.push_back((double)x);
        for (float x : params_of(&cpu)) theirs.push_back((double)x);
        check_close("parameters", mine, theirs, 1e-4);
        all = move_to(&gpu, &devices[1], &again) && move_to(&gpu, &devices[0], &across);
    }
    if (all) {
        for (size_t i = 0; i < gpu.tags.count; i++) {
            check_same(gpu.room[i].name, state_of(&again)[i], state_of(&gpu)[i]);
            check_same("the same on the CPU", state_of(&across)[i], state_of(&gpu)[i]);
        }
        learn(&gpu, 2), learn(&again, 2), learn(&across, 2);
        all = pull_alone(&gpu) && pull_alone(&again);
        check_same("two steps more, without and with an interruption", params_of(&again),
                   params_of(&gpu));
        ((float *)gpu.values[0])[3] = NAN;
        check_say(compute_push_state(gpu.compute, &why) == FAULT_NAN, "a state that is none: %s",
                  why.text);
    }
    for (struct alone *each : { &cpu, &gpu, &again, &across }) compute_destroy(&each->compute);
}

static void test_both_alone(const struct compute_device devices[MEMBERS],
                            const struct compute_config *config, const std::vector<float> &genesis)
{
    const struct adamw_options adamw = { 0.9, 0.95, 1e-8, 0.1 };
    std::vector<struct layout_tensor> room(model_tensor_count(&config->shape));
    struct layout layout;
    if (!good("layout", model_tensors_layout(&config->shape, room.data(), &why, &layout))) return;
    test_alone("DisTrO alone", devices, config, genesis);
    struct compute_config without = *config;
    without.form = NULL, without.adamw = &adamw, without.layout = &layout;
    without.batch_max = SAMPLES;
    test_alone("AdamW alone", devices, &without, genesis);
    const struct compute_memory memory = compute_memory(&devices[1], &without);
    check_say(memory.device > 4 * genesis.size() * 4 && memory.host >= 3 * genesis.size() * 4,
              "memory with moments: %llu bytes on the device, %llu beside it",
              (unsigned long long)memory.device, (unsigned long long)memory.host);
}

static void test_form(bool one_bit)
{
    struct model_shape shape = {};
    shape.vocab = 90, shape.dim = 48, shape.layers = 1, shape.heads = 3, shape.kv_heads = 1;
    shape.head_dim = 16, shape.ffn = 64, shape.seq_len_max = SEQ, shape.rope_theta = 10000;
    shape.rms_eps = 1e-5;
    chunks_t *chunks = NULL;
    payload_form_t *form = NULL;
    if (!good("chunks", chunks_of_model(&shape, 16, &why, &chunks)) ||
        !good("form", payload_form_new(chunks, 4, one_bit, &why, &form)))
        return;
    const uint64_t floats = model_parameter_count(&shape);
    struct compute_device devices[MEMBERS] = {};
    devices[1].kind = COMPUTE_CUDA, devices[1].plugin = &shoal_cuda_plugin;
    struct compute_config config = {};
    config.shape = shape, config.micro_batch = 2, config.seq = SEQ, config.form = form;
    config.decay = 0.9f, config.trains = true, config.float32 = true;
    std::vector<float> genesis(floats);
    genesis_fill(&shape, 3, genesis.data());
    struct member members[MEMBERS] = {};
    bool all = true;
    for (int i = 0; i < MEMBERS && all; i++) {
        members[i].payload.resize(payload_bytes(form));
        members[i].leaves.resize(digest_leaf_count(floats));
        all = good("new", compute_new(&devices[i], &config, &why, &members[i].compute));
        if (!all) break;
        std::copy(genesis.begin(), genesis.end(), compute_host(members[i].compute));
        all = good("push", compute_push(members[i].compute, &why));
    }
    const struct compute_memory memory = compute_memory(&devices[1], &config);
    check_say(memory.device > floats * 4 && memory.host >= floats * 4,
              "memory: %llu bytes on the device, %llu beside it", (unsigned long long)memory.device,
              (unsigned long long)memory.host);
    if (all) run(form, members, &shape);
    if (one_bit) test_both_alone(devices, &config, genesis);
    for (struct member &member : members) compute_destroy(&member.compute);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

static void tests()
{
    test_words();
    test_form(true);
    test_form(false);
}

int main() { return check_main(tests); }
