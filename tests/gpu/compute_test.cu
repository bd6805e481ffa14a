// Both optimizers on the GPU and on the CPU, behind compute.h. First two members of one run, one on
// each device, for three rounds: their gradients are close, and after every commit of both results
// their digests are equal, also when one result is ten times as long and is clipped. Then single
// trainers with AdamW and with DisTrO: they stay close to each other, and their state, moved to the
// other device or to a new replica, is the same there.
#include "tests/gpu/check.cuh"

#define _Alignas alignas // As C++ calls it
extern "C" {
#include "common/compute/cuda/plugin.h"
#include "common/crypto/merkle.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/result.h"
extern const struct cuda_plugin shoal_cuda_plugin;
}

enum { MEMBERS = 2, SAMPLES = 3, SEQ = 20, ROUNDS = 3 };

struct member {
    compute_t *compute;
    optimizer_t *distro;
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
           good("compress", result_make(self->distro, 0.01f, &why, self->payload.data())) &&
           good("residual hashes", result_hashes(self->distro, &why, &self->from, &self->to));
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
                                     members[i].payload.size(), false };
    for (int i = 0; i < MEMBERS; i++) {
        if (!good("apply", result_apply(members[i].distro, results, MEMBERS, &step, &why)) ||
            !good("leaves", compute_leaves(members[i].compute, COMPUTE_PARAMETERS, &why,
                                           members[i].leaves.data())))
            return false;
        if (round == 1) result_discard(members[i].distro);
        else result_adopt(members[i].distro);
    }
    return true;
}

static std::vector<uint32_t> tokens_of(const struct model_shape *shape)
{
    std::vector<uint32_t> tokens(SAMPLES * (SEQ + 1));
    for (uint32_t &token : tokens) token = random_bits() % shape->vocab;
    return tokens;
}

// A step in two lanes: on the GPU the whole is what compute_gradient makes, and its parts add up to
// about the CPU's.
static void test_lanes(struct member *members, const std::vector<uint32_t> &tokens)
{
    const uint64_t floats = model_parameter_count(&compute_config(members[0].compute)->shape);
    std::vector<float> whole(floats), root(floats), sum(floats), part(floats), cpu(floats);
    const struct compute_lanes all = { tokens.data(), SAMPLES, { 0, 2 }, NULL, NULL, NULL };
    const struct compute_lanes left = { tokens.data(), SAMPLES, { 0, 1 }, sum.data(), NULL, NULL };
    struct compute_lanes right = {
        tokens.data() + SEQ + 1, SAMPLES, { 1, 2 }, part.data(), NULL, NULL
    };
    double loss, losses[2], apart[2];
    compute_t *gpu = members[1].compute;
    if (!good("whole", compute_gradient(gpu, tokens.data(), SAMPLES, &why, &loss)) ||
        !good("get", compute_get(gpu, COMPUTE_GRADIENT, &why, whole.data())) ||
        !good("root", compute_gradient_lanes(gpu, &all, &why, losses)) ||
        !good("get", compute_get(gpu, COMPUTE_GRADIENT, &why, root.data())) ||
        !good("left", compute_gradient_lanes(gpu, &left, &why, &apart[0])) ||
        !good("right", compute_gradient_lanes(gpu, &right, &why, &apart[1])) ||
        !good("of the CPU", compute_gradient_lanes(members[0].compute, &all, &why, losses)) ||
        !good("get", compute_get(members[0].compute, COMPUTE_GRADIENT, &why, cpu.data())))
        return;
    for (uint64_t i = 0; i < floats; i++) sum[i] += part[i];
    check_same("the root of the lanes", root, whole);
    check_close("its two parts", std::vector<double>(sum.begin(), sum.end()),
                std::vector<double>(cpu.begin(), cpu.end()), 1e-3);
    check_close("losses of lanes", { apart[0], apart[1] }, { losses[0], losses[1] }, 1e-5);
    right.sum = NULL;
    check_say(compute_gradient_lanes(gpu, &right, &why, apart) == FAULT_UNSUPPORTED,
              "a part as the GPU's gradient: %s", why.text);
}

static void run(const payload_form_t *form, struct member *members, const struct model_shape *shape)
{
    std::vector<struct hash> before(1), after(1);
    for (int round = 0; round < ROUNDS; round++) {
        const std::vector<uint32_t> tokens = tokens_of(shape);
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
    test_lanes(members, tokens_of(shape));
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
    check_say(compute_gradient_at(members[1].compute, mine.data(), tokens_of(shape).data(), 1, &why,
                                  &loss) == FAULT_UNSUPPORTED,
              "a GPU recomputes no result: %s", why.text);
    check_say(result_residual(members[1].distro, &members[1].from) == NULL,
              "nor shows its residual");
    members[0].payload[0] ^= 1;
    const struct apply_step step = { 0.01f, 0.1f, NULL };
    const struct apply_result bad = { 0, members[0].payload.data(), members[0].payload.size(),
                                      false };
    check_say(result_apply(members[1].distro, &bad, 1, &step, &why) == FAULT_FORMAT,
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
                      : rc == FAULT_UNAVAILABLE && rc_auto == 0 && found.kind == COMPUTE_CPU,
              "auto: %s", found.text);
}

// ---- alone

struct alone {
    const struct compute_device *device;
    const struct compute_config *config;
    const struct optimizer_kind *kind;
    const struct optimizer_place *place;
    compute_t *compute;
    optimizer_t *optimizer;
    struct tags_item room[OPTIMIZER_ITEMS_MAX];
    struct tags tags;
    void *values[OPTIMIZER_ITEMS_MAX];
};

static const struct optimizer_settings settings = { 0.1,  0.9,  0.95, 1e-8, 0,   false,
                                                    0.9f, true, 16,   4,    true };

// A replica with an optimizer above it.
static bool open_both(const struct compute_device *device, const struct compute_config *config,
                      const struct optimizer_kind *kind, const struct optimizer_place *place,
                      const struct optimizer_settings *how, compute_t **ret_compute,
                      optimizer_t **ret_optimizer)
{
    struct compute_config asked = *config;
    if (!good("optimizer", optimizer_new(kind, place, how, &why, ret_optimizer))) return false;
    optimizer_ask(*ret_optimizer, &asked);
    return good("new", compute_new(device, &asked, &why, ret_compute)) &&
           good("begin", optimizer_begin(*ret_optimizer, *ret_compute, &why));
}

static bool open_alone(struct alone *self, const std::vector<float> &params)
{
    if (!open_both(self->device, self->config, self->kind, self->place, &settings, &self->compute,
                   &self->optimizer))
        return false;
    std::copy(params.begin(), params.end(), compute_host(self->compute));
    return good("push", compute_push(self->compute, &why));
}

static bool pull_alone(struct alone *self)
{
    tags_init(&self->tags, self->room, OPTIMIZER_ITEMS_MAX);
    return good("pull", compute_pull(self->compute, &why)) &&
           good("pull the state",
                optimizer_pull(self->optimizer, OPTIMIZER_OWN, &self->tags, &why, self->values));
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
    std::vector<uint32_t> tokens(SAMPLES * (SEQ + 1));
    for (size_t i = 0; i < tokens.size(); i++)
        tokens[i] = (uint32_t)(i * i + i / 5) % self->config->shape.vocab;
    double loss = -1, norm, again;
    for (int i = 0; i < steps; i++) {
        if (!good("gradient",
                  compute_gradient(self->compute, tokens.data(), SAMPLES, &why, &loss)) ||
            !good("loss", compute_loss(self->compute, tokens.data(), SAMPLES, &why, &again)) ||
            !good("clip", compute_clip(self->compute, 1.0, &why, &norm)))
            return -1;
        if (i == 0) check_close("the loss without a gradient", { again }, { loss }, 1e-9);
        if (!good("step", optimizer_step(self->optimizer, 0.01f, &why))) return -1;
    }
    return loss;
}

// Moves the parameters and the state of `from` to another replica on `device`.
static bool move_to(const struct alone *from, const struct compute_device *device, struct alone *to)
{
    to->device = device, to->config = from->config;
    to->kind = from->kind, to->place = from->place;
    if (!open_alone(to, params_of(from)) || !pull_alone(to)) return false;
    const std::vector<std::vector<uint8_t>> state = state_of(from);
    for (size_t i = 0; i < state.size(); i++)
        memcpy(to->values[i], state[i].data(), state[i].size());
    return good("push the state", optimizer_push(to->optimizer, OPTIMIZER_OWN, &why)) &&
           pull_alone(to);
}

static bool same_digest(const struct alone *a, const struct alone *b)
{
    const struct hash parameters = {};
    struct hash mine, theirs;
    return good("digest", optimizer_digest(a->optimizer, &parameters, &why, &mine)) &&
           good("digest", optimizer_digest(b->optimizer, &parameters, &why, &theirs)) &&
           hash_equal(&mine, &theirs);
}

static void test_alone(const char *name, const struct compute_device devices[MEMBERS],
                       const struct compute_config *config, const struct optimizer_kind *kind,
                       const struct optimizer_place *place, const std::vector<float> &genesis)
{
    struct alone cpu = {}, gpu = {}, again = {}, across = {};
    cpu.device = &devices[0], gpu.device = &devices[1], cpu.config = gpu.config = config;
    cpu.kind = gpu.kind = kind, cpu.place = gpu.place = place;
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
        check_say(same_digest(&gpu, &across), "%s: the digest of its state, on both devices", name);
        learn(&gpu, 2), learn(&again, 2), learn(&across, 2);
        all = pull_alone(&gpu) && pull_alone(&again);
        check_same("two steps more, without and with an interruption", params_of(&again),
                   params_of(&gpu));
        ((float *)gpu.values[0])[3] = NAN;
        check_say(optimizer_push(gpu.optimizer, OPTIMIZER_OWN, &why) == FAULT_NAN,
                  "a state that is none: %s", why.text);
    }
    for (struct alone *each : { &cpu, &gpu, &again, &across }) {
        compute_destroy(&each->compute);
        optimizer_destroy(&each->optimizer);
    }
}

static void test_both_alone(const struct compute_device devices[MEMBERS],
                            const struct compute_config *config,
                            const struct optimizer_place *place, const std::vector<float> &genesis)
{
    test_alone("DisTrO alone", devices, config, &optimizer_distro, place, genesis);
    struct compute_config bounded = *config;
    bounded.batch_max = SAMPLES;
    test_alone("AdamW alone", devices, &bounded, &optimizer_adamw, place, genesis);
    optimizer_t *adamw = NULL;
    if (!good("adamw", optimizer_new(&optimizer_adamw, place, &settings, &why, &adamw))) return;
    optimizer_ask(adamw, &bounded);
    const struct compute_memory memory = compute_memory(&devices[1], &bounded);
    const uint64_t floats = genesis.size(), copies = optimizer_memory(adamw, &devices[1]);
    check_say(memory.device > 4 * floats * 4 && memory.host >= floats * 4 &&
                  copies == 2 * floats * 4 && optimizer_memory(adamw, &devices[0]) == 0,
              "memory with moments: %llu bytes on the device, %llu and %llu beside it",
              (unsigned long long)memory.device, (unsigned long long)memory.host,
              (unsigned long long)copies);
    optimizer_destroy(&adamw);
}

// A share of AdamW's: the same bits on both devices, and what is not its own stays.
static void test_share(const struct compute_device devices[MEMBERS],
                       const struct compute_config *config, const struct optimizer_place *place,
                       const std::vector<float> &genesis)
{
    struct optimizer_place upper = *place;
    upper.at.begin = DIGEST_LEAF_FLOATS;
    struct alone cpu = {}, gpu = {};
    cpu.device = &devices[0], gpu.device = &devices[1], cpu.config = gpu.config = config;
    cpu.kind = gpu.kind = &optimizer_adamw, cpu.place = gpu.place = &upper;
    std::vector<float> gradient(genesis.size());
    for (size_t i = 0; i < gradient.size(); i++) gradient[i] = (float)(i % 101) * 1e-3f - 0.05f;
    bool all = genesis.size() > DIGEST_LEAF_FLOATS;
    check_say(all, "the model has more than one leaf");
    for (struct alone *each : { &cpu, &gpu }) {
        all = all && open_alone(each, genesis) &&
              good("gradient", compute_put(each->compute, COMPUTE_GRADIENT, gradient.data(), &why));
        for (int i = 0; i < 2 && all; i++)
            all = good("step", optimizer_step(each->optimizer, 0.01f, &why));
        all = all && pull_alone(each);
    }
    if (all) {
        const std::vector<float> mine = params_of(&gpu);
        check_same("a share of the parameters", mine, params_of(&cpu));
        check_say(std::equal(mine.begin(), mine.begin() + DIGEST_LEAF_FLOATS, genesis.begin()) &&
                      mine.back() != genesis.back(),
                  "what is not its own stays");
        check_say(same_digest(&cpu, &gpu), "the digest of a share's state");
    }
    for (struct alone *each : { &cpu, &gpu }) {
        compute_destroy(&each->compute);
        optimizer_destroy(&each->optimizer);
    }
    upper.at.begin = 0, upper.at.end = DIGEST_LEAF_FLOATS;
    optimizer_t *distro = NULL;
    check_say(optimizer_new(&optimizer_distro, &upper, &settings, &why, &distro) ==
                  FAULT_UNSUPPORTED,
              "a share of DisTrO's: %s", why.text);
}

static void test_form(bool one_bit)
{
    struct model_shape shape = {};
    shape.vocab = 90, shape.dim = 48, shape.layers = 1, shape.heads = 3, shape.kv_heads = 1;
    shape.head_dim = 16, shape.ffn = 64, shape.seq_len_max = SEQ, shape.rope_theta = 10000;
    shape.rms_eps = 1e-5;
    std::vector<struct layout_tensor> room(model_tensor_count(&shape));
    struct layout layout;
    if (!good("layout", model_tensors_layout(&shape, room.data(), &why, &layout))) return;
    const uint64_t floats = model_parameter_count(&shape);
    struct compute_device devices[MEMBERS] = {};
    devices[1].kind = COMPUTE_CUDA, devices[1].plugin = &shoal_cuda_plugin;
    struct compute_config config = {};
    config.shape = shape, config.micro_batch = 2, config.seq = SEQ, config.lanes = 2;
    config.trains = true, config.precision = GEMM_FLOAT32;
    const struct optimizer_place place = { &shape, &layout, { 0, floats }, NULL };
    struct optimizer_settings how = settings;
    how.one_bit = one_bit;
    std::vector<float> genesis(floats);
    genesis_fill(&shape, 3, genesis.data());
    struct member members[MEMBERS] = {};
    bool all = true;
    for (int i = 0; i < MEMBERS && all; i++) {
        members[i].leaves.resize(digest_leaf_count(floats));
        all = open_both(&devices[i], &config, &optimizer_distro, &place, &how, &members[i].compute,
                        &members[i].distro);
        if (!all) break;
        members[i].payload.resize(payload_bytes(result_form(members[i].distro)));
        std::copy(genesis.begin(), genesis.end(), compute_host(members[i].compute));
        all = good("push", compute_push(members[i].compute, &why));
    }
    const struct compute_memory memory = compute_memory(&devices[1], &config);
    check_say(memory.device > floats * 4 && memory.host >= floats * 4,
              "memory: %llu bytes on the device, %llu beside it", (unsigned long long)memory.device,
              (unsigned long long)memory.host);
    if (all) run(result_form(members[0].distro), members, &shape);
    if (one_bit) {
        test_both_alone(devices, &config, &place, genesis);
        test_share(devices, &config, &place, genesis);
    }
    for (struct member &member : members) {
        compute_destroy(&member.compute);
        optimizer_destroy(&member.distro);
    }
}

static void tests()
{
    test_words();
    test_form(true);
    test_form(false);
}

int main() { return check_main(tests); }
