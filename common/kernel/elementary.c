#include "common/kernel/elementary.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// 32 bits of ln 2, so that n * LN2_HIGH is exact
static const double LN2_HIGH = 6.93147180369123816490e-01;
static const double LN2_LOW = 1.90821492927058770002e-10;
// 33 bits of pi / 2, then 33 more, then the rest
static const double HALF_PI_HIGH = 1.57079632673412561417e+00;
static const double HALF_PI_MIDDLE = 6.07710050630396597660e-11;
static const double HALF_PI_LOW = 2.02226624879595063154e-21;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// x = 2^n m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)), its series to the
// 21st power.
double elementary_log(double x)
{
    if (!(x >= 2.2250738585072014e-308 && x <= 1.7976931348623157e308)) return NAN;
    const uint64_t bits = bits_of(x);
    int n = (int)(bits >> 52) - 1023;
    double m = double_of((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        n++;
    }
    const double s = (m - 1.0) / (m + 1.0), square = s * s;
    double sum = 0.0;
    for (int power = 21; power >= 3; power -= 2) sum = (sum + 1.0 / power) * square;
    return (double)n * LN2_HIGH + (2.0 * s + (2.0 * s * sum + (double)n * LN2_LOW));
}

// x = n ln 2 + r: the series of e^r to the 14th power, times 2^n, which is in range
// because |x| is at most 700.
double elementary_exp(double x)
{
    if (x != x) return x;
    if (x > 700.0) return INFINITY;
    if (x < -700.0) return 0.0;
    const double n = floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double sum = 1.0;
    for (int power = 14; power >= 1; power--) sum = 1.0 + sum * r / power;
    return sum * double_of((uint64_t)((int64_t)n + 1023) << 52);
}

// x = n pi/2 + r, |r| <= pi/4; then both series, and n mod 4 says which is which.
void elementary_sine_cosine(double x, double *ret_sine, double *ret_cosine)
{
    *ret_sine = *ret_cosine = NAN;
    if (!(x >= -1e6 && x <= 1e6)) return;
    const double n = floor(x * 0.63661977236758134 + 0.5);
    const double r = ((x - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW;
    const double square = r * r;
    double sine = 1.0, cosine = 1.0;
    for (int power = 18; power >= 2; power -= 2) {
        sine = 1.0 - sine * square / (power * (power + 1));
        cosine = 1.0 - cosine * square / (power * (power - 1));
    }
    sine *= r;
    const int quarter = (int)((int64_t)n & 3);
    const double by_quarter[] = { sine, cosine, -sine, -cosine };
    *ret_sine = by_quarter[quarter];
    *ret_cosine = by_quarter[(quarter + 1) & 3];
}
