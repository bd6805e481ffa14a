// Attention against its definition in double: the plain kernels, and those on the tensor cores.
#include "common/compute/cuda/attention.cuh"
#include "tests/gpu/check.cuh"

struct reference {
    std::vector<double> out, log_sum, d_qkv;
};

static struct reference reference_of(const struct attention_shape &shape,
                                     const std::vector<double> &qkv,
                                     const std::vector<double> &d_out)
{
    const size_t seq = shape.seq, d = shape.head_dim, width = attention_width(shape);
    const size_t out_width = shape.heads * d;
    struct reference result;
    result.out.assign(shape.batch * seq * out_width, 0);
    result.log_sum.assign(shape.batch * shape.heads * seq, 0);
    result.d_qkv.assign(qkv.size(), 0);
    std::vector<double> p(seq);
    for (size_t b = 0; b < shape.batch; b++)
        for (size_t h = 0; h < shape.heads; h++)
            for (size_t row = 0; row < seq; row++) {
                const size_t kv = h / (shape.heads / shape.kv_heads);
                const size_t q = (b * seq + row) * width + h * d;
                const size_t k = b * seq * width + (shape.heads + kv) * d;
                const size_t v = k + shape.kv_heads * d, at = (b * seq + row) * out_width + h * d;
                double total = 0, delta = 0;
                for (size_t j = 0; j <= row; j++) {
                    double score = 0;
                    for (size_t i = 0; i < d; i++) score += qkv[q + i] * qkv[k + j * width + i];
                    total += p[j] = exp(score / sqrt((double)d));
                }
                for (size_t j = 0; j <= row; j++) {
                    p[j] /= total;
                    for (size_t i = 0; i < d; i++)
                        result.out[at + i] += p[j] * qkv[v + j * width + i];
                }
                result.log_sum[(b * shape.heads + h) * seq + row] = log(total);
                for (size_t i = 0; i < d; i++) delta += d_out[at + i] * result.out[at + i];
                for (size_t j = 0; j <= row; j++) {
                    double dp = 0;
                    for (size_t i = 0; i < d; i++) dp += d_out[at + i] * qkv[v + j * width + i];
                    const double ds = p[j] * (dp - delta) / sqrt((double)d);
                    for (size_t i = 0; i < d; i++) {
                        result.d_qkv[q + i] += ds * qkv[k + j * width + i];
                        result.d_qkv[k + j * width + i] += ds * qkv[q + i];
                        result.d_qkv[v + j * width + i] += p[j] * d_out[at + i];
                    }
                }
            }
    return result;
}

template <typename T> static void test(const struct attention_shape &shape, bool plainly)
{
    const size_t rows = (size_t)shape.batch * shape.seq;
    mirror<T> qkv(rows * attention_width(shape)), out(rows * shape.heads * shape.head_dim);
    mirror<T> d_out(out.count()), d_qkv(qkv.count());
    mirror<float> log_sum((size_t)shape.batch * shape.heads * shape.seq), delta(log_sum.count());
    fill_random(qkv, 1), fill_random(d_out, 1), out.poison(), d_qkv.poison(), log_sum.poison();
    const struct reference expected = reference_of(shape, doubles(qkv), doubles(d_out));
    if (plainly) attention_plain_forward<T>(&device, out.at, log_sum.at, qkv.at, &shape);
    else attention_forward<T>(&device, out.at, log_sum.at, qkv.at, &shape);
    attention_back<T>(&device, d_qkv.at, delta.at, d_out.at, out.at, log_sum.at, qkv.at, &shape);
    if (plainly) {
        d_qkv.poison();
        attention_plain_back<T>(&device, d_qkv.at, delta.at, d_out.at, log_sum.at, qkv.at, &shape);
    }
    out.down(), log_sum.down(), d_qkv.down();
    char name[128];
    const char *way = plainly ? "plain" : "chosen";
    const double bound = sizeof(T) == 4 ? 2e-6 : 1e-2;
#define NAME(what)                                                                                 \
    (snprintf(name, sizeof name, "attention %s, %s, %s, batch %u seq %u heads %u/%u x %u", what,   \
              sizeof(T) == 4 ? "float32" : "bf16", way, shape.batch, shape.seq, shape.heads,       \
              shape.kv_heads, shape.head_dim),                                                     \
     name)
    check_close(NAME("out"), doubles(out), expected.out, bound);
    check_close(NAME("log sum"), doubles(log_sum), expected.log_sum, sizeof(T) == 4 ? 2e-6 : 1e-4);
    check_close(NAME("gradient"), doubles(d_qkv), expected.d_qkv, bound);
}

static void tests()
{
    test<float>({ 2, 9, 4, 2, 10 }, true);
    test<float>({ 1, 21, 2, 1, 64 }, true);
    test<bf16>({ 1, 13, 2, 2, 80 }, true);
    test<bf16>({ 1, 5, 1, 1, 300 }, false); // No flash for this one
    test<bf16>({ 1, 70, 2, 1, 64 }, true);
    test<bf16>({ 2, 70, 2, 1, 32 }, false);
    test<bf16>({ 1, 129, 1, 1, 48 }, false);
    test<bf16>({ 1, 200, 4, 2, 64 }, false);
    test<bf16>({ 1, 64, 1, 1, 64 }, false);
    test<bf16>({ 1, 1, 1, 1, 64 }, false);
    test<bf16>({ 1, 100, 2, 2, 96 }, false);
    test<bf16>({ 1, 150, 2, 1, 128 }, false);
}

int main() { return check_main(tests); }
