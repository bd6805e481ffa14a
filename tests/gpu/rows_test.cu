// The kernels that go along rows against plain C in double, for both types and for widths that fill
// 16 bytes and that do not. AdamW's against the CPU's own kernel, to the bit.
#include "common/compute/cuda/rows.cuh"
#include "common/compute/cuda/vector.cuh"
#include "tests/gpu/check.cuh"

extern "C" {
#include "common/kernel/kernels.h"
}

template <typename T> static double bound() { return sizeof(T) == 4 ? 2e-6 : 6e-3; }
template <typename T> static const char *type() { return sizeof(T) == 4 ? "float32" : "bf16"; }

static char label_text[128];
static const char *label(const char *name, const char *type, size_t width)
{
    snprintf(label_text, sizeof label_text, "%s, %s, width %zu", name, type, width);
    return label_text;
}

template <typename T> static void test_norm(size_t rows, size_t dim)
{
    mirror<T> x(rows * dim), w(dim), y(rows * dim), dy(rows * dim), dx(rows * dim);
    mirror<float> inverse(rows), grad(dim), partial(NORM_PARTS * dim);
    fill_random(x, 1), fill_random(w, 1), fill_random(dy, 1), fill_random(dx, 1);
    fill_random(grad, 1), y.poison();
    const float eps = 1e-5f;
    std::vector<double> expected(rows * dim), expected_dx = doubles(dx), expected_w = doubles(grad);
    for (size_t r = 0; r < rows; r++) {
        double square = 0, mean = 0;
        for (size_t i = 0; i < dim; i++) square += pow((double)plain(x.host[r * dim + i]), 2);
        const double scale = 1 / sqrt(square / (double)dim + (double)eps);
        for (size_t i = 0; i < dim; i++) {
            const double u = (double)plain(x.host[r * dim + i]) * scale;
            const double g = (double)plain(dy.host[r * dim + i]) * (double)plain(w.host[i]);
            expected[r * dim + i] = u * (double)plain(w.host[i]);
            expected_w[i] += (double)plain(dy.host[r * dim + i]) * u;
            mean += g * u / (double)dim;
        }
        for (size_t i = 0; i < dim; i++) {
            const double u = (double)plain(x.host[r * dim + i]) * scale;
            const double g = (double)plain(dy.host[r * dim + i]) * (double)plain(w.host[i]);
            expected_dx[r * dim + i] += (g - u * mean) * scale;
        }
    }
    norm_forward<T>(&device, y.at, inverse.at, x.at, w.at, eps, rows, dim);
    norm_weight_back<T>(&device, grad.at, partial.at, dy.at, x.at, inverse.at, rows, dim);
    norm_back<T>(&device, dx.at, dy.at, x.at, w.at, inverse.at, rows, dim);
    y.down(), dx.down(), grad.down();
    check_close(label("norm", type<T>(), dim), doubles(y), expected, bound<T>());
    check_close(label("norm back", type<T>(), dim), doubles(dx), expected_dx, bound<T>());
    check_close(label("norm back to the weights", type<T>(), dim), doubles(grad), expected_w, 1e-5);
}

template <typename T> static void test_embedding(size_t rows, size_t dim)
{
    const uint32_t vocab = 17;
    mirror<T> table(vocab * dim), x(rows * dim), dx(rows * dim);
    mirror<float> grad(vocab * dim);
    mirror<uint32_t> tokens(rows), token(rows), start(rows + 1), order(rows), count(1);
    fill_random(table, 1), fill_random(dx, 1), fill_random(grad, 1), x.poison();
    for (size_t r = 0; r < rows; r++)
        tokens.host[r] = random_bits() % 3 ? 5 : random_bits() % vocab;
    std::vector<double> expected(rows * dim), expected_grad = doubles(grad);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < dim; i++) {
            expected[r * dim + i] = (double)plain(table.host[tokens.host[r] * dim + i]);
            expected_grad[tokens.host[r] * dim + i] += (double)plain(dx.host[r * dim + i]);
        }
    uint32_t buckets = 0, placed = 0;
    for (uint32_t t = 0; t < vocab; t++) {
        const uint32_t first = placed;
        for (uint32_t r = 0; r < rows; r++)
            if (tokens.host[r] == t) order.host[placed++] = r;
        if (placed == first) continue;
        token.host[buckets] = t, start.host[buckets] = first, buckets++;
    }
    start.host[buckets] = placed, count.host[0] = buckets;
    tokens.up(), token.up(), start.up(), order.up(), count.up();
    const struct embedding_buckets list = { count.at, token.at, start.at, order.at };
    embedding_gather<T>(&device, x.at, tokens.at, table.at, rows, dim);
    embedding_back<T>(&device, grad.at, dx.at, &list, rows, dim);
    x.down(), grad.down();
    check_close(label("embedding", type<T>(), dim), doubles(x), expected, 0);
    check_close(label("embedding back", type<T>(), dim), doubles(grad), expected_grad, 1e-6);
}

template <typename T> static void test_rope(size_t head_dim)
{
    const size_t rows = 14, seq = 7, heads = 3, width = head_dim * 4, half = head_dim / 2;
    mirror<T> x(rows * width);
    mirror<float> cosine(seq * half), sine(seq * half);
    fill_random(x, 1);
    for (size_t i = 0; i < seq * half; i++) {
        cosine.host[i] = cosf((float)i);
        sine.host[i] = sinf((float)i);
    }
    cosine.up(), sine.up();
    for (int turn = 1; turn >= -1; turn -= 2) {
        std::vector<double> expected = doubles(x);
        for (size_t r = 0; r < rows; r++)
            for (size_t h = 0; h < heads; h++)
                for (size_t i = 0; i < half; i++) {
                    const size_t low = r * width + h * head_dim + i, high = low + half;
                    const double c = (double)cosine.host[r % seq * half + i];
                    const double s = (double)sine.host[r % seq * half + i] * turn;
                    const double a = expected[low], b = expected[high];
                    expected[low] = a * c - b * s, expected[high] = b * c + a * s;
                }
        rope<T>(&device, x.at, cosine.at, sine.at, rows, seq, heads, head_dim, width, (float)turn);
        x.down();
        check_close(label(turn > 0 ? "rope" : "rope back", type<T>(), head_dim), doubles(x),
                    expected, bound<T>());
    }
}

template <typename T> static void test_swiglu(size_t rows, size_t ffn)
{
    mirror<T> gate_up(rows * 2 * ffn), y(rows * ffn), dy(rows * ffn), d(rows * 2 * ffn);
    fill_random(gate_up, 2), fill_random(dy, 1), y.poison(), d.poison();
    std::vector<double> expected(rows * ffn), expected_d(rows * 2 * ffn);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < ffn; i++) {
            const size_t gate = r * 2 * ffn + i, up = gate + ffn;
            const double g = (double)plain(gate_up.host[gate]);
            const double u = (double)plain(gate_up.host[up]), s = 1 / (1 + exp(-g));
            const double out = (double)plain(dy.host[r * ffn + i]);
            expected[r * ffn + i] = g * s * u;
            expected_d[gate] = out * u * (s + g * s * (1 - s));
            expected_d[up] = out * g * s;
        }
    swiglu_forward<T>(&device, y.at, gate_up.at, rows, ffn);
    swiglu_back<T>(&device, d.at, gate_up.at, dy.at, rows, ffn);
    y.down(), d.down();
    check_close(label("swiglu", type<T>(), ffn), doubles(y), expected, bound<T>());
    check_close(label("swiglu back", type<T>(), ffn), doubles(d), expected_d, bound<T>());
}

template <typename T> static void test_classifier(size_t rows, size_t vocab)
{
    mirror<T> logits(rows * vocab);
    mirror<float> losses(rows), weight(1);
    mirror<double> sum(1);
    mirror<uint32_t> targets(rows);
    fill_random(logits, 3), losses.poison();
    for (size_t r = 0; r < rows; r++) targets.host[r] = random_bits() % (uint32_t)vocab;
    weight.host[0] = 0.37f;
    targets.up(), weight.up();
    std::vector<double> expected = doubles(logits), expected_losses(rows), expected_sum(1);
    for (size_t r = 0; r < rows; r++) {
        double *row = &expected[r * vocab], total = 0;
        for (size_t i = 0; i < vocab; i++) total += exp(row[i]);
        expected_losses[r] = log(total) - row[targets.host[r]];
        expected_sum[0] += expected_losses[r];
        for (size_t i = 0; i < vocab; i++)
            row[i] = (double)0.37f * (exp(row[i]) / total - (i == targets.host[r]));
    }
    const std::vector<T> before = logits.host;
    classifier<T>(&device, logits.at, losses.at, targets.at, NULL, rows, vocab);
    logits.down();
    check_same(label("classifier without gradient", type<T>(), vocab), logits.host, before);
    classifier<T>(&device, logits.at, losses.at, targets.at, weight.at, rows, vocab);
    loss_sum(&device, sum.at, losses.at, rows);
    logits.down(), losses.down(), sum.down();
    check_close(label("classifier loss", type<T>(), vocab), doubles(losses), expected_losses, 1e-5);
    check_close(label("classifier gradient", type<T>(), vocab), doubles(logits), expected,
                sizeof(T) == 4 ? 1e-5 : 6e-3);
    check_close("loss sum", sum.host, expected_sum, 1e-5);
}

static void test_vector(size_t count)
{
    mirror<float> p(count), m(count), v(count), g(count);
    mirror<bf16> narrow(count);
    mirror<double> norm(1), parts(VECTOR_PARTS);
    fill_random(p, 1), fill_random(m, 0.1f), fill_random(g, 1), narrow.poison();
    for (size_t i = 0; i < count; i++) v.host[i] = fabsf(random_normal());
    v.up();
    mirror<uint64_t> bare(4); // The first, and the places 10..19 of an interval that begins at 5
    bare.host = { 0, 6, 15, 25 }, bare.up();
    const struct adamw_step step = {
        { 0.99f, 0.1f, 0.95f, 0.05f, 2.0f, 1e-8f, 3e-2f, 0.0f }, bare.at, 2, 5
    };
    std::vector<float> expected_p(p.host), expected_m(m.host), expected_v(v.host);
    std::vector<double> length(1);
    for (size_t i = 0; i < count; i++) {
        struct adamw_factors by = step.by;
        if (i == 0 || (i >= 10 && i < 20)) by.keep = 1.0f;
        kernels_chosen()->adamw(1, &by, &g.host[i], &expected_p[i], &expected_m[i], &expected_v[i]);
        length[0] += (double)g.host[i] * (double)g.host[i];
    }
    length[0] = sqrt(length[0]);
    vector_norm(&device, norm.at, parts.at, g.at, count);
    vector_adamw(&device, p.at, narrow.at, m.at, v.at, g.at, &step, count);
    p.down(), m.down(), v.down(), narrow.down(), norm.down();
    check_close(label("norm of a vector", "float32", count), norm.host, length, 1e-12);
    check_same(label("adamw's parameters", "float32", count), p.host, expected_p);
    check_same("adamw's first moments", m.host, expected_m);
    check_same("adamw's second moments", v.host, expected_v);
    std::vector<bf16> expected_narrow(count);
    for (size_t i = 0; i < count; i++) expected_narrow[i] = rounded<bf16>(p.host[i]);
    check_same("adamw's bf16 copy", narrow.host, expected_narrow);
    narrow.poison();
    vector_narrow(&device, narrow.at, p.at, count);
    narrow.down();
    check_same("bf16 copy", narrow.host, expected_narrow);
    std::vector<double> expected = doubles(g);
    for (double &x : expected) x *= 1.5 / length[0];
    vector_clip(&device, g.at, norm.at, 1e30, count); // Longer than it is: nothing
    vector_clip(&device, g.at, norm.at, 1.5, count);
    g.down();
    check_close("clip", doubles(g), expected, 1e-6);
}

template <typename T> static void test_type()
{
    test_norm<T>(37, 64), test_norm<T>(300, 30), test_norm<T>(5, 520);
    test_embedding<T>(41, 16), test_embedding<T>(41, 9);
    test_rope<T>(16), test_rope<T>(10), test_rope<T>(64);
    test_swiglu<T>(11, 40), test_swiglu<T>(11, 27);
    test_classifier<T>(3, 1000), test_classifier<T>(2, 331);
}

static void tests()
{
    test_type<float>();
    test_type<bf16>();
    test_vector(5003);
    test_vector(3);
}

int main() { return check_main(tests); }
