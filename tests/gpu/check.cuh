#pragma once
// check -- what the GPU tests share: a device, vectors on both sides, and a verdict in TAP.
//
// A test fills vectors with random numbers, runs kernels, runs the same arithmetic in plain C, and
// says check_close (relative to the length of the expected vector) or check_same (to the bit). The
// largest error is printed with every verdict. Without a GPU every test is skipped with a word;
// built with the emulated device (tests/gpu/emulated) they run anywhere.

#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/numbers.cuh"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>

static struct device device;
static int check_number, check_failures;

static inline void check_say(bool good, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%sok %d - ", good ? "" : "not ", ++check_number);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    check_failures += !good;
}

// Waits; false, and said, if the device has a fault.
static inline bool check_device(const char *name)
{
    struct why why = {};
    const int rc = device_wait(&device, &why);
    if (rc < 0) check_say(false, "%s: %s", name, why.text);
    return rc == 0;
}

// One side's numbers as floats on the host, the same on the device as T.
template <typename T> struct mirror {
    T *at;
    std::vector<T> host;
    explicit mirror(size_t count) : at(NULL), host(count)
    {
        DEVICE_TRY(&device, cudaMalloc(&at, (count ? count : 1) * sizeof(T)));
    }
    ~mirror() { cudaFree(at); }
    mirror(const mirror &) = delete;
    size_t count() const { return host.size(); }
    void up() { copy(at, host.data(), cudaMemcpyHostToDevice); }
    void down() { copy(host.data(), at, cudaMemcpyDeviceToHost); }
    void copy(void *to, const void *from, cudaMemcpyKind kind) // In the order of the stream
    {
        DEVICE_TRY(&device, cudaMemcpyAsync(to, from, count() * sizeof(T), kind, device.stream));
        DEVICE_TRY(&device, cudaStreamSynchronize(device.stream));
    }
    void poison()
    {
        DEVICE_TRY(&device, cudaMemsetAsync(at, 0xff, count() * sizeof(T), device.stream));
    }
};

static inline float half_to_float(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}
static inline float plain(float x) { return x; }
static inline float plain(bf16 x)
{
    uint16_t bits;
    memcpy(&bits, &x, sizeof bits);
    return half_to_float(bits);
}
template <typename T> T rounded(float x);
template <> inline float rounded<float>(float x) { return x; }
template <> inline bf16 rounded<bf16>(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint16_t bits = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    bf16 y;
    memcpy((void *)&y, &bits, sizeof y);
    return y;
}

static uint64_t check_state = 88172645463325252ULL;
static inline uint32_t random_bits()
{
    check_state ^= check_state << 13;
    check_state ^= check_state >> 7;
    check_state ^= check_state << 17;
    return (uint32_t)(check_state >> 32);
}
// About normal, standard deviation 1
static inline float random_normal()
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) sum += (float)random_bits() / 4294967296.0f;
    return sum;
}
template <typename T> void fill_random(mirror<T> &to, float scale)
{
    for (size_t i = 0; i < to.count(); i++) to.host[i] = rounded<T>(random_normal() * scale);
    to.up();
}

template <typename T> float value_of(const mirror<T> &from, size_t i)
{
    return plain(from.host[i]);
}
template <typename T> std::vector<double> doubles(const mirror<T> &from)
{
    std::vector<double> to(from.count());
    for (size_t i = 0; i < to.size(); i++) to[i] = (double)plain(from.host[i]);
    return to;
}

// |got - expected| / |expected| as vectors; NaN never passes.
static inline void check_close(const char *name, const std::vector<double> &got,
                               const std::vector<double> &expected, double bound)
{
    double difference = 0, length = 0, largest = 0;
    for (size_t i = 0; i < got.size(); i++) {
        const double d = got[i] - expected[i];
        difference += d * d, length += expected[i] * expected[i];
        if (!(fabs(d) <= largest)) largest = fabs(d);
    }
    const double error = sqrt(difference) / (length > 0 ? sqrt(length) : 1);
    check_say(got.size() == expected.size() && !got.empty() && error <= bound,
              "%s: relative error %.2e, at most %.0e; largest %.2e", name, error, bound, largest);
}

template <typename T>
void check_same(const char *name, const std::vector<T> &got, const std::vector<T> &expected)
{
    size_t differ = 0, first = 0;
    for (size_t i = 0; i < got.size(); i++)
        if (memcmp(&got[i], &expected[i], sizeof(T)) != 0 && differ++ == 0) first = i;
    check_say(differ == 0 && !got.empty() && got.size() == expected.size(),
              "%s: %zu of %zu differ, first at %zu", name, differ, got.size(), first);
}

// Opens the device and runs; the exit status says whether all was well.
static inline int check_main(void (*tests)())
{
    struct why why = {};
    if (device_open(&device, 0, &why) < 0) {
        printf("ok 1 - all # SKIP %s\n", why.text);
        return 0;
    }
    tests();
    check_device("the device at the end");
    device_close(&device);
    printf("1..%d\n", check_number);
    return check_failures != 0;
}
