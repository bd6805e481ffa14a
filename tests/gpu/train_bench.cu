// What a step costs on this GPU: tokens/s and MFU of two models, and where the time goes.
//
//     train_bench             both models; under two minutes
//     train_bench kernels     only the kernels, one by one
//
// A step is loss and gradient of one batch in bf16 with float32 master weights, the norm of the
// gradient, clip, and AdamW; the median of STEPS after WARM. Work is counted as 6 · (weights in
// products) + 6 · layers · seq · heads · head_dim per token (causal attention, half a square), and
// MFU is of PEAK, the vendor's dense bf16 figure for an H100 or H200. Beside it stand what a plain
// copy and a large product reach here, on random numbers.
#include "common/compute/cuda/attention.cuh"
#include "common/compute/cuda/products.cuh"
#include "common/compute/cuda/rows.cuh"
#include "tests/gpu/check.cuh"

#include <algorithm>
#include <time.h>

#define _Alignas alignas // As C++ calls it
extern "C" {
#include "common/optimizer/distro_plan.h"
#include "common/compute/cuda/plugin.h"
#include "common/kernel/pool.h"
#include "common/model/genesis.h"
extern const struct cuda_plugin shoal_cuda_plugin;
}

#define PEAK 989e12
enum { WARM = 4, STEPS = 12, REPEATS = 20 };

static double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- one kernel at a time

// Median milliseconds of `work` by the device's clock.
template <typename F> static double milliseconds(F work)
{
    cudaEvent_t begin, end;
    std::vector<float> times(REPEATS);
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int i = 0; i < 3; i++) work();
    for (float &time : times) {
        cudaEventRecord(begin, device.stream);
        work();
        cudaEventRecord(end, device.stream);
        DEVICE_TRY(&device, cudaEventSynchronize(end));
        DEVICE_TRY(&device, cudaEventElapsedTime(&time, begin, end));
    }
    cudaEventDestroy(begin), cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    return (double)times[REPEATS / 2];
}

__global__ void random_kernel(bf16 *x, size_t count, float scale)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        uint32_t h = (uint32_t)i * 2654435761u ^ (uint32_t)(i >> 32);
        h ^= h >> 15, h *= 2246822519u, h ^= h >> 13, h *= 3266489917u, h ^= h >> 16;
        x[i] = from_float<bf16>(((float)h / 4294967296.0f - 0.5f) * 3.46f * scale);
    }
}

struct room { // Device memory with random bf16 in it
    bf16 *at = NULL;
    explicit room(size_t count)
    {
        DEVICE_TRY(&device, cudaMalloc(&at, count * sizeof *at));
        DEVICE_LAUNCH(&device, dim3(1024), dim3(256), 0, random_kernel, at, count, 1.0f);
    }
    ~room() { cudaFree(at); }
};

static void say(const char *name, double ms, double work, double bytes)
{
    printf("  %-34s %9.3f ms", name, ms);
    if (work > 0) printf("  %7.1f TFLOP/s", work / ms * 1e-9);
    if (bytes > 0) printf("  %7.1f GB/s", bytes / ms * 1e-6);
    printf("\n");
}

static void bench_products(size_t rows, size_t in, size_t out)
{
    room x(rows * in), w(out * in), y(rows * out);
    mirror<float> gradient(out * in);
    const double work = 2.0 * (double)rows * (double)in * (double)out;
    const struct product forms[] = {
        { PRODUCT_NT, rows, out, in, x.at, w.at, NULL, y.at, true, true },
        { PRODUCT_NN, rows, in, out, y.at, w.at, NULL, x.at, true, true },
        { PRODUCT_TN, out, in, rows, y.at, x.at, gradient.at, gradient.at, true, false },
    };
    const char *names[] = { "forward", "dX", "dW" };
    for (int i = 0; i < 3; i++) {
        char name[80];
        snprintf(name, sizeof name, "product %s %zu x %zu x %zu", names[i], rows, out, in);
        say(name, milliseconds([&] { product_run(&device, &forms[i]); }), work, 0);
    }
}

static void bench_attention(const struct attention_shape &shape)
{
    const size_t rows = (size_t)shape.batch * shape.seq;
    const size_t out_count = rows * shape.heads * shape.head_dim;
    room qkv(rows * attention_width(shape)), d_qkv(rows * attention_width(shape));
    room out(out_count), d_out(out_count);
    mirror<float> log_sum(rows * shape.heads), delta(rows * shape.heads);
    const double work = 2.0 * (double)out_count * (double)shape.seq; // Half of the square
    char name[80];
    snprintf(name, sizeof name, "attention %u x %u, %u/%u x %u", shape.batch, shape.seq,
             shape.heads, shape.kv_heads, shape.head_dim);
    say(name,
        milliseconds([&] { attention_forward<bf16>(&device, out.at, log_sum.at, qkv.at, &shape); }),
        work, 0);
    say("  backward", milliseconds([&] {
            attention_back<bf16>(&device, d_qkv.at, delta.at, d_out.at, out.at, log_sum.at, qkv.at,
                                 &shape);
        }),
        2.5 * work, 0);
}

static void bench_rows(size_t rows, size_t dim, size_t ffn, size_t vocab)
{
    room x(rows * dim), y(rows * dim), dx(rows * dim), w(dim);
    room gate_up(rows * 2 * ffn), d_gate_up(rows * 2 * ffn), h(rows * ffn);
    mirror<float> inverse(rows), grad(dim), partial(NORM_PARTS * dim), losses(rows), weight(1);
    mirror<uint32_t> targets(rows);
    for (uint32_t &target : targets.host) target = random_bits() % (uint32_t)vocab;
    targets.up(), weight.up();
    const double row = (double)(rows * dim) * 2, wide = (double)(rows * ffn) * 2;
    say("norm", milliseconds([&] {
            norm_forward<bf16>(&device, y.at, inverse.at, x.at, w.at, 1e-5f, rows, dim);
        }),
        0, 2 * row);
    say("norm back", milliseconds([&] {
            norm_back<bf16>(&device, dx.at, y.at, x.at, w.at, inverse.at, rows, dim);
        }),
        0, 4 * row);
    say("norm back to the weights", milliseconds([&] {
            norm_weight_back<bf16>(&device, grad.at, partial.at, y.at, x.at, inverse.at, rows, dim);
        }),
        0, 2 * row);
    say("swiglu", milliseconds([&] { swiglu_forward<bf16>(&device, h.at, gate_up.at, rows, ffn); }),
        0, 3 * wide);
    say("swiglu back", milliseconds([&] {
            swiglu_back<bf16>(&device, d_gate_up.at, gate_up.at, h.at, rows, ffn);
        }),
        0, 5 * wide);
    const size_t some = rows < 8192 ? rows : 8192;
    room logits(some * vocab);
    say("classifier, 8192 rows", milliseconds([&] {
            classifier<bf16>(&device, logits.at, losses.at, targets.at, weight.at, some, vocab);
        }),
        0, 3.0 * (double)(some * vocab) * 2);
}

static void bench_kernels()
{
    const size_t copy = (size_t)1 << 32;
    {
        room from(copy / 2), to(copy / 2);
        say("copy of 4 GiB", milliseconds([&] {
                DEVICE_TRY(&device, cudaMemcpyAsync(to.at, from.at, copy, cudaMemcpyDeviceToDevice,
                                                    device.stream));
            }),
            0, 2.0 * (double)copy);
    }
    bench_products(8192, 8192, 8192);
    printf(" of the 124 M model, 65,536 rows\n");
    bench_products(65536, 768, 2304);
    bench_products(65536, 768, 768);
    bench_products(65536, 768, 4096);
    bench_products(65536, 2048, 768);
    bench_products(8192, 768, 50304);
    bench_attention({ 64, 1024, 12, 12, 64 });
    bench_rows(65536, 768, 2048, 50304);
    printf(" of the 1.1 B model, 16,384 rows\n");
    bench_products(16384, 2048, 2560);
    bench_products(16384, 2048, 11264);
    bench_attention({ 8, 2048, 32, 4, 64 });
    bench_rows(16384, 2048, 5632, 32000);
}

// ---- whole steps

struct model_case {
    const char *name;
    struct model_shape shape;
    uint32_t micro_batch, seq, samples;
};

struct fill_job {
    const struct model_shape *shape;
    uint64_t floats;
    float *to;
};

static void fill_task(void *arg, uint32_t task, uint32_t)
{
    const struct fill_job *job = (const struct fill_job *)arg;
    const struct pool_share share = pool_share_of(job->floats, 1, 256, task);
    genesis_fill_interval(job->shape, 1, share.first, share.end - share.first,
                          job->to + share.first);
}

static double work_per_token(const struct model_case *which)
{
    const struct model_shape *shape = &which->shape;
    double weights = (double)model_parameter_count(shape);
    if (!shape->tied) weights -= (double)shape->vocab * shape->dim; // Looked up, not multiplied
    return 6 * weights + 6.0 * shape->layers * which->seq * shape->heads * shape->head_dim;
}

static double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static int run_steps(struct cuda_replica *replica, const struct model_case *which, struct why *why,
                     double *ret_seconds, double *ret_loss)
{
    const struct cuda_plugin *plugin = &shoal_cuda_plugin;
    std::vector<uint32_t> tokens((size_t)which->samples * (which->seq + 1));
    for (uint32_t &token : tokens) token = random_bits() % which->shape.vocab;
    std::vector<double> times;
    int rc = 0;
    for (int i = 1; i <= WARM + STEPS && rc == 0; i++) {
        double norm;
        const double begin = now_s();
        const struct adamw_factors step = { 1.0f - 3e-5f,
                                            0.1f,
                                            0.95f,
                                            0.05f,
                                            (float)(1 / sqrt(1 - pow(0.95, i))),
                                            1e-8f,
                                            (float)(3e-4 / (1 - pow(0.9, i))),
                                            0.0f };
        rc = plugin->loss(replica, tokens.data(), which->samples, true, why, ret_loss);
        if (rc == 0) rc = plugin->clip(replica, 1.0, why, &norm);
        if (rc == 0) rc = plugin->adamw(replica, &step, CUDA_STATE, CUDA_STATE + 1, why);
        if (rc == 0) rc = plugin->wait(replica, why);
        if (i > WARM) times.push_back(now_s() - begin);
    }
    if (rc == 0) *ret_seconds = median(times);
    return rc;
}

// Compression, a commit of 16 results and the digest, at chunk 64 and k 8.
static void bench_exchange(struct cuda_replica *replica, const struct plan *plan, struct why *why)
{
    enum { RESULTS = 16 };
    const struct cuda_plugin *plugin = &shoal_cuda_plugin;
    std::vector<uint16_t> counts(plan->chunks * RESULTS), numbers(plan->slots * RESULTS);
    std::vector<float> values(plan->slots * RESULTS);
    std::vector<uint8_t> leaves((plan->total + 16383) / 16384 * 32);
    const struct cuda_coefficients chosen = { counts.data(), numbers.data(), values.data() };
    const struct cuda_compression compression = { CUDA_STATE, CUDA_STATE + 1, 0.999f, 1e-3f };
    double times[3][3] = {};
    int rc = plugin->put(replica, CUDA_STATE, NULL, why); // A moment until now
    for (int i = 0; i < 3 && rc == 0; i++) {
        double begin = now_s();
        rc = plugin->compress(replica, &compression, &chosen, why);
        times[0][i] = now_s() - begin;
        for (uint32_t r = 1; r < RESULTS; r++) {
            std::copy_n(counts.begin(), plan->chunks, counts.begin() + (long)r * plan->chunks);
            std::copy_n(numbers.begin(), plan->slots, numbers.begin() + (long)(r * plan->slots));
            std::copy_n(values.begin(), plan->slots, values.begin() + (long)(r * plan->slots));
        }
        const struct cuda_commit commit = { 0,           plan->chunks, RESULTS, 0,
                                            plan->slots, chosen,       1.0f,    1e-4f };
        begin = now_s();
        if (rc == 0) rc = plugin->apply(replica, &commit, why);
        if (rc == 0) rc = plugin->wait(replica, why);
        times[1][i] = now_s() - begin;
        begin = now_s();
        if (rc == 0) rc = plugin->leaves(replica, CUDA_PARAMETERS, leaves.data(), why);
        times[2][i] = now_s() - begin;
    }
    if (rc < 0) printf("  not measured: %s\n", why->text);
    else
        printf("  compress %.1f ms, apply %d results %.1f ms (with the copy to the device), digest"
               " %.1f ms\n",
               times[0][2] * 1e3, RESULTS, times[1][2] * 1e3, times[2][2] * 1e3);
}

static void bench_model(const struct model_case *which)
{
    struct why why = {};
    const struct model_shape *shape = &which->shape;
    const uint64_t floats = model_parameter_count(shape);
    std::vector<float> parameters(floats), cosine(which->seq * shape->head_dim / 2), sine(cosine);
    rope_fill_tables(&shape->rope_scaling, shape->rope_theta, shape->head_dim, which->seq,
                     cosine.data(), sine.data());
    pool_t *pool = pool_new(16);
    struct fill_job fill = { shape, floats, parameters.data() };
    pool_run(pool, 256, fill_task, &fill);
    pool_destroy(&pool);
    chunks_t *chunks = NULL;
    payload_form_t *form = NULL;
    struct plan *plan = NULL;
    struct cuda_replica *replica = NULL;
    double seconds = 0, loss = 0;
    int rc = chunks_of_model(shape, 64, &why, &chunks);
    if (rc == 0) rc = payload_form_new(chunks, 8, true, &why, &form);
    if (rc == 0) rc = plan_new(form, &why, &plan);
    const struct cuda_config config = { 0,
                                        *shape,
                                        which->micro_batch,
                                        which->seq,
                                        cosine.data(),
                                        sine.data(),
                                        plan,
                                        true,
                                        false,
                                        true,
                                        2,
                                        0,
                                        floats,
                                        NULL,
                                        0 };
    const uint64_t bytes = rc == 0 ? shoal_cuda_plugin.memory_bytes(&config) : 0;
    if (rc == 0) rc = shoal_cuda_plugin.open(&config, &why, &replica);
    if (rc == 0) rc = shoal_cuda_plugin.put(replica, CUDA_PARAMETERS, parameters.data(), &why);
    if (rc == 0) rc = run_steps(replica, which, &why, &seconds, &loss);
    if (rc < 0) printf("shoal %s: not measured: %s\n", which->name, why.text);
    else {
        const double rate = (double)which->samples * which->seq / seconds;
        printf("shoal %-6s %6.1f M parameters, batch %u x %u, micro-batch %u: %8.0f tokens/s, MFU"
               " %4.1f %%, %.1f ms a step, loss %.3f, %.1f GiB\n",
               which->name, (double)floats * 1e-6, which->samples, which->seq, which->micro_batch,
               rate, rate * work_per_token(which) / PEAK * 100, seconds * 1e3, loss,
               (double)bytes / (1 << 30));
        bench_exchange(replica, plan, &why);
    }
    shoal_cuda_plugin.close(&replica);
    plan_destroy(&plan);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
    fflush(stdout);
}

static struct model_shape shape_of(uint32_t vocab, uint32_t dim, uint32_t layers, uint32_t heads,
                                   uint32_t kv_heads, uint32_t ffn, uint32_t seq, bool tied)
{
    struct model_shape shape = {};
    shape.vocab = vocab, shape.dim = dim, shape.layers = layers, shape.heads = heads;
    shape.kv_heads = kv_heads, shape.head_dim = dim / heads, shape.ffn = ffn;
    shape.seq_len_max = seq, shape.rope_theta = 10000, shape.rms_eps = 1e-5, shape.tied = tied;
    return shape;
}

int main(int argc, char **argv)
{
    struct why why = {};
    struct cuda_device found;
    if (shoal_cuda_plugin.find(0, &why, &found) < 0 || device_open(&device, 0, &why) < 0) {
        printf("skipped: %s\n", why.text);
        return 0;
    }
    printf("%s, %d processors, compute capability %d.%d, driver for CUDA %d.%d, cuBLASLt %zu\n",
           found.name, found.processors, found.major, found.minor, found.driver / 1000,
           found.driver % 1000 / 10, cublasLtGetVersion());
    bench_kernels();
    const int rc = device_wait(&device, &why);
    if (rc < 0) printf("not measured: %s\n", why.text);
    device_close(&device);
    if (rc < 0) return 1;
    if (argc > 1 && strcmp(argv[1], "kernels") == 0) return 0;
    const struct model_case cases[] = {
        { "124M", shape_of(50304, 768, 12, 12, 12, 2048, 1024, true), 64, 1024, 64 },
        { "1.1B", shape_of(32000, 2048, 22, 32, 4, 5632, 2048, false), 8, 2048, 8 },
    };
    for (const struct model_case &which : cases) bench_model(&which);
    return 0;
}
