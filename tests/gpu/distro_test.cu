// DisTrO on the device against the CPU's own kernels: the transform within 1e-6; the choice, a
// commit and the leaves of a digest to the bit. Sides that are odd, one, not powers of two, and too
// large for shared memory.
#include "common/compute/cuda/distro.cuh"
#include "tests/gpu/check.cuh"

#define _Alignas alignas // As C++ calls it
extern "C" {
#include "common/optimizer/distro_plan.h"
#include "common/crypto/merkle.h"
#include "common/optimizer/distro_kernels.h"
}

struct setting {
    const char *name;
    struct chunks_tensor tensors[4];
    uint32_t count, total, limit, top_k;
};

// The plan with everything it points to on the device.
struct device_plan {
    struct plan plan;
    mirror<plan_part> parts;
    mirror<plan_table> tables;
    mirror<float> floats;
    explicit device_plan(const struct plan &host)
        : plan(host), parts(host.parts_count), tables(host.tables_count), floats(host.floats_count)
    {
        parts.host.assign(host.parts, host.parts + host.parts_count);
        tables.host.assign(host.tables, host.tables + host.tables_count);
        floats.host.assign(host.floats, host.floats + host.floats_count);
        parts.up(), tables.up(), floats.up();
        plan.parts = parts.at, plan.tables = tables.at, plan.floats = floats.at;
    }
};

struct bed {
    const struct setting *setting;
    chunks_t *chunks;
    payload_form_t *form;
    struct plan *plan;
    struct distro_scratch *scratch;
    void *device_scratch;
};

static char text[160];
static const char *label(const struct bed *bed, const char *what)
{
    snprintf(text, sizeof text, "%s, %s", what, bed->setting->name);
    return text;
}

// The transform is a sum in another order than the CPU's, so it is close. The choice is exact: from
// the momentum that the device arrived at, the CPU's kernel chooses the same.
static void test_compress(const struct bed *bed, const device_plan &plan)
{
    const uint64_t total = bed->plan->total;
    const float decay = 0.999f, rate = 0.01f;
    mirror<float> gradient(total), residual(total), candidate(total), values(bed->plan->slots);
    mirror<uint16_t> counts(bed->plan->chunks), numbers(bed->plan->slots);
    mirror<uint32_t> largest(1);
    const bool sparse = bed->setting->top_k == 7; // Fewer than top_k that are not zero, and ties
    fill_random(gradient, 1), fill_random(residual, 0.1f);
    for (uint64_t i = 0; i < total && sparse; i++) {
        gradient.host[i] = 0;
        residual.host[i] = i < total / 2    ? (i % 100 == 3 ? 1.0f : 0.0f)
                           : i % 256 == 255 ? 3.0f // After many that are equal
                           : i % 2          ? -2.0f
                                            : 2.0f;
    }
    residual.up(), gradient.up();
    candidate.host = residual.host, candidate.up(); // Between tensors nothing is written
    DEVICE_TRY(&device, cudaMemsetAsync(largest.at, 0, 4, device.stream));
    const struct distro_compression job = { gradient.at,  residual.at,
                                            candidate.at, decay,
                                            rate,         { counts.at, numbers.at, values.at },
                                            largest.at };
    distro_compress(&device, &plan.plan, &job, bed->device_scratch);
    candidate.down(), counts.down(), numbers.down(), values.down(), largest.down();

    const struct distro_kernels *kernels = distro_kernels_best();
    std::vector<float> momentum = candidate.host, y(DISTRO_ELEMENTS_MAX);
    std::vector<double> expected = doubles(residual);
    std::vector<uint16_t> chosen(DISTRO_ELEMENTS_MAX), expected_counts, expected_numbers, got;
    uint32_t most = 0;
    for (uint32_t c = 0; c < bed->plan->chunks; c++) {
        const struct chunk chunk = chunks_at(bed->chunks, c);
        const struct plan_part &part = bed->plan->parts[chunks_part_of(bed->chunks, c)];
        const uint64_t slot = part.slot + (uint64_t)(c - part.first) * part.top_k;
        float *own = &momentum[chunk.coefficients];
        kernels->encode(chunk.part->row_dct, chunk.part->column_dct, &gradient.host[chunk.at],
                        chunk.part->columns, bed->scratch, y.data());
        for (uint32_t i = 0; i < chunk.part->elements; i++) {
            double *to = &expected[chunk.coefficients + i];
            *to = (double)rate * (double)y[i] + (double)decay * *to;
        }
        for (uint32_t i = 0; i < counts.host[c] && i < part.top_k; i++) {
            const uint16_t number = numbers.host[slot + i];
            if (number >= chunk.part->elements || own[number] != 0.0f) most = UINT32_MAX;
            else own[number] = values.host[slot + i];
            got.push_back(number);
        }
        const uint32_t count =
            kernels->select(chunk.part->elements, own, part.top_k, bed->scratch, chosen.data());
        expected_counts.push_back((uint16_t)count);
        expected_numbers.insert(expected_numbers.end(), chosen.begin(), chosen.begin() + count);
        for (uint32_t i = 0; i < chunk.part->elements; i++) {
            uint32_t bits;
            memcpy(&bits, &own[i], sizeof bits);
            most = (bits & 0x7fffffffu) > most ? bits & 0x7fffffffu : most;
        }
    }
    check_close(label(bed, "momentum"), std::vector<double>(momentum.begin(), momentum.end()),
                expected, 1e-6);
    check_same(label(bed, "how many are chosen"), counts.host, expected_counts);
    check_same(label(bed, "which are chosen"), got, expected_numbers);
    check_same(label(bed, "the largest"), largest.host, std::vector<uint32_t>(1, most));
}

// What apply.c does with the results of a commit, with the CPU's kernels.
static void apply_on_cpu(const struct bed *bed, uint32_t results,
                         const std::vector<uint16_t> &counts, const std::vector<uint16_t> &numbers,
                         const std::vector<float> &values, float keep, float rate,
                         std::vector<float> &parameters)
{
    const struct distro_kernels *kernels = distro_kernels_best();
    std::vector<float> sums(DISTRO_ELEMENTS_MAX), means(DISTRO_ELEMENTS_MAX);
    std::vector<uint32_t> hits(DISTRO_ELEMENTS_MAX);
    std::vector<uint16_t> sent(DISTRO_ELEMENTS_MAX);
    for (uint32_t c = 0; c < bed->plan->chunks; c++) {
        const struct chunk chunk = chunks_at(bed->chunks, c);
        const struct plan_part &part = bed->plan->parts[chunks_part_of(bed->chunks, c)];
        std::fill(sums.begin(), sums.end(), 0.0f);
        std::fill(hits.begin(), hits.end(), 0);
        for (uint32_t r = 0; r < results; r++) {
            const size_t at =
                r * bed->plan->slots + part.slot + (uint64_t)(c - part.first) * part.top_k;
            for (uint32_t i = 0; i < counts[r * bed->plan->chunks + c]; i++)
                sums[numbers[at + i]] += values[at + i], hits[numbers[at + i]]++;
        }
        uint32_t count = 0;
        for (uint32_t i = 0; i < chunk.part->elements; i++)
            if (hits[i]) sent[count] = (uint16_t)i, means[count++] = sums[i] / (float)hits[i];
        kernels->decode(chunk.part->row_dct, chunk.part->column_dct, sent.data(), means.data(),
                        count, bed->scratch, bed->scratch->dense);
        for (uint32_t row = 0; row < chunk.part->row_dct->side; row++)
            kernels->update(chunk.part->column_dct->side,
                            bed->scratch->dense + (size_t)row * chunk.part->column_dct->stride,
                            keep, rate, &parameters[chunk.at + (size_t)row * chunk.part->columns]);
    }
}

static void test_apply(const struct bed *bed, const device_plan &plan, uint32_t results, bool bits)
{
    const uint32_t chunks = bed->plan->chunks;
    const uint64_t slots = bed->plan->slots;
    const float rate = 0.0123f, keep = fmaf(-rate, 0.1f, 1.0f);
    mirror<uint16_t> counts((size_t)results * chunks), numbers(results * slots);
    mirror<float> values(results * slots), parameters(bed->plan->total);
    fill_random(parameters, 1);
    for (uint32_t r = 0; r < results; r++)
        for (uint32_t c = 0; c < chunks; c++) {
            const struct plan_part &part = bed->plan->parts[chunks_part_of(bed->chunks, c)];
            const uint32_t elements = chunks_at(bed->chunks, c).part->elements;
            const size_t at = r * slots + part.slot + (uint64_t)(c - part.first) * part.top_k;
            uint32_t count = 0;
            const uint32_t wanted = random_bits() % (part.top_k + 1);
            for (uint32_t i = random_bits() % 4; i < elements && count < wanted;
                 i += 1 + random_bits() % (2 * elements / (wanted + 1) + 1)) {
                numbers.host[at + count] = (uint16_t)i;
                values.host[at + count++] =
                    bits ? random_bits() % 2 ? 1.0f : -1.0f : random_normal();
            }
            counts.host[r * chunks + c] = (uint16_t)count;
        }
    counts.up(), numbers.up(), values.up();
    std::vector<float> expected = parameters.host;
    apply_on_cpu(bed, results, counts.host, numbers.host, values.host, keep, rate, expected);
    // In two ranges, as a large commit comes
    const uint32_t cut = chunks / 3;
    uint64_t cut_slot = slots;
    for (uint32_t p = 0; p < bed->plan->parts_count; p++) {
        const struct plan_part &part = bed->plan->parts[p];
        if (cut >= part.first && cut < part.first + part.count)
            cut_slot = part.slot + (uint64_t)(cut - part.first) * part.top_k;
    }
    for (int half = 0; half < 2; half++) {
        const uint32_t first = half ? cut : 0, end = half ? chunks : cut;
        const uint64_t slot = half ? cut_slot : 0, range = (half ? slots : cut_slot) - slot;
        mirror<uint16_t> some_counts((size_t)results * (end - first)),
            some_numbers(results * range);
        mirror<float> some_values(results * range);
        for (uint32_t r = 0; r < results; r++) {
            std::copy_n(&counts.host[(size_t)r * chunks + first], end - first,
                        some_counts.host.begin() + (long)r * (end - first));
            std::copy_n(numbers.host.begin() + (long)(r * slots + slot), range,
                        some_numbers.host.begin() + (long)(r * range));
            std::copy_n(values.host.begin() + (long)(r * slots + slot), range,
                        some_values.host.begin() + (long)(r * range));
        }
        some_counts.up(), some_numbers.up(), some_values.up();
        const struct distro_application job = {
            first, end,   results,
            slot,  range, { some_counts.at, some_numbers.at, some_values.at },
            keep,  rate,  parameters.at
        };
        distro_apply(&device, &plan.plan, &job, bed->device_scratch);
        DEVICE_TRY(&device, cudaStreamSynchronize(device.stream));
    }
    parameters.down();
    snprintf(text, sizeof text, "apply of %u results (%s), %s", results,
             bits ? "one bit" : "values", bed->setting->name);
    check_same(text, parameters.host, expected);
}

static void test_digest(size_t count)
{
    const size_t leaves = digest_leaf_count(count);
    mirror<float> values(count);
    mirror<uint8_t> hashes(leaves * HASH_BYTES);
    fill_random(values, 1), hashes.poison();
    std::vector<struct hash> expected(leaves);
    digest_fill_leaves(values.host.data(), count, 0, leaves, expected.data());
    digest_leaves(&device, hashes.at, values.at, count);
    hashes.down();
    std::vector<struct hash> got(leaves);
    memcpy((void *)got.data(), hashes.host.data(), leaves * HASH_BYTES);
    snprintf(text, sizeof text, "digest leaves of %zu floats", count);
    check_same(text, got, expected);
}

static const struct setting settings[] = {
    { "64 x 64, k 8, and a row", { { 0, 128, 192 }, { 24576, 1, 192 } }, 2, 24768, 64, 8 },
    { "odd sides, with a hole, k 3",
      { { 5, 21, 35 }, { 800, 1, 49 }, { 900, 9, 1 } },
      3,
      1000,
      8,
      3 },
    { "sides 1, k 1", { { 0, 7, 13 } }, 1, 91, 1, 1 },
    { "rows of 2: what should cancel shows the last bit", { { 0, 1, 3000 } }, 1, 3000, 2, 4 },
    { "48 x 60, k 40", { { 0, 96, 120 } }, 1, 11520, 60, 40 },
    { "nothing but zeros in the gradient, k 7", { { 0, 32, 32 } }, 1, 1024, 16, 7 },
    { "160 x 96, beyond shared memory, k 100", { { 0, 320, 96 } }, 1, 30720, 160, 100 },
};

static void test_setting(const struct setting *setting)
{
    struct why why = {};
    struct bed bed = {};
    bed.setting = setting;
    if (chunks_new(setting->tensors, setting->count, setting->total, setting->limit, &why,
                   &bed.chunks) < 0 ||
        payload_form_new(bed.chunks, setting->top_k, true, &why, &bed.form) < 0 ||
        plan_new(bed.form, &why, &bed.plan) < 0) {
        check_say(false, "%s: %s", setting->name, why.text);
        return;
    }
    bed.scratch = (struct distro_scratch *)aligned_alloc(64, sizeof *bed.scratch);
    const size_t bytes = distro_scratch_bytes(&device, bed.plan);
    if (bytes) DEVICE_TRY(&device, cudaMalloc(&bed.device_scratch, bytes));
    const device_plan plan(*bed.plan);
    test_compress(&bed, plan);
    test_apply(&bed, plan, 1, true);
    test_apply(&bed, plan, 5, true);
    test_apply(&bed, plan, 13, false);
    if (setting->limit == 2) test_apply(&bed, plan, 200, true);
    cudaFree(bed.device_scratch);
    free(bed.scratch);
    plan_destroy(&bed.plan);
    payload_form_destroy(&bed.form);
    chunks_destroy(&bed.chunks);
}

static void tests()
{
    for (const struct setting &setting : settings) test_setting(&setting);
    for (size_t count : { 1, 14, 15, 16384, 16385, 100000 }) test_digest(count);
}

int main() { return check_main(tests); }
