// Matrix products against plain C in double: the three forms, with and without something to add,
// for the types the model uses, on shapes that are round and that are not.
#include "common/compute/cuda/products.cuh"
#include "tests/gpu/check.cuh"

template <typename T, typename S>
static void test(enum product_form form, size_t m, size_t n, size_t k, int add, bool plain)
{
    mirror<T> a(m * k), b(n * k);
    mirror<S> c(m * n), d(m * n);
    fill_random(a, 1), fill_random(b, 1), fill_random(c, 1), d.poison();
    std::vector<double> expected(m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = add ? (double)value_of(c, i * n + j) : 0;
            for (size_t p = 0; p < k; p++)
                sum += (double)value_of(a, form == PRODUCT_TN ? p * m + i : i * k + p) *
                       (double)value_of(b, form == PRODUCT_NT ? j * k + p : p * n + j);
            expected[i * n + j] = sum;
        }
    S *to = add == 2 ? c.at : d.at; // 2: added to in place
    const struct product product = {
        form, m, n, k, a.at, b.at, add ? c.at : NULL, to, sizeof(T) == 2, sizeof(S) == 2
    };
    if (plain) product_run_plain(&device, &product);
    else product_run(&device, &product);
    mirror<S> &result = add == 2 ? c : d;
    result.down();
    char name[120];
    const char *forms[] = { "NT", "NN", "TN" };
    snprintf(name, sizeof name, "product %s %zu x %zu x %zu, %s to %s%s%s", forms[form], m, n, k,
             sizeof(T) == 2 ? "bf16" : "float32", sizeof(S) == 2 ? "bf16" : "float32",
             add ? add == 2 ? ", added in place" : ", added" : "", plain ? ", plain" : "");
    check_close(name, doubles(result), expected, sizeof(S) == 2 ? 4e-3 : 2e-6);
}

static void tests()
{
    const size_t shapes[][3] = { { 64, 96, 32 }, { 40, 24, 200 }, { 13, 37, 30 }, { 7, 3, 61 } };
    const enum product_form forms[] = { PRODUCT_NT, PRODUCT_NN, PRODUCT_TN };
    for (const auto &s : shapes)
        for (enum product_form form : forms)
            for (int add = 0; add < 3; add++) {
                test<float, float>(form, s[0], s[1], s[2], add, false);
                test<bf16, bf16>(form, s[0], s[1], s[2], add, false);
                test<bf16, float>(form, s[0], s[1], s[2], add, false);
            }
    for (enum product_form form : forms) {
        test<float, float>(form, 13, 37, 30, 0, true);
        test<bf16, bf16>(form, 13, 37, 30, 1, true);
        test<bf16, float>(form, 13, 37, 30, 2, true);
    }
}

int main() { return check_main(tests); }
