// elementary_test -- our log, exp, sine and cosine agree with the C library's.

#include "common/kernel/elementary.h"
#include "tests/test.h"

#include <math.h>

static void log_agrees_with_the_c_library(void **state)
{
    (void)state;
    for (double x = 1e-300; x < 1e300; x *= 1.37) {
        const double wanted = log(x);
        assert_true(fabs(elementary_log(x) - wanted) <= 1e-15 * (fabs(wanted) + 1e-3));
    }
    for (double x = 0.5; x < 2; x += 1e-4) assert_true(fabs(elementary_log(x) - log(x)) <= 4e-16);
    assert_true(elementary_log(1) == 0);
    assert_true(isnan(elementary_log(0)) && isnan(elementary_log(-1)));
    assert_true(isnan(elementary_log((double)NAN)) && isnan(elementary_log((double)INFINITY)));
}

static void exp_agrees_with_the_c_library(void **state)
{
    (void)state;
    for (double x = -700; x <= 700; x += 0.173)
        assert_true(fabs(elementary_exp(x) / exp(x) - 1) < 1e-15);
    assert_true(elementary_exp(0) == 1);
    assert_true(elementary_exp(-1000) == 0 && isinf(elementary_exp(1000)));
    assert_true(isnan(elementary_exp((double)NAN)));
}

static void sine_and_cosine_agree_with_the_c_library(void **state)
{
    (void)state;
    double sine, cosine;
    for (double x = -300; x < 300; x += 0.0137) {
        elementary_sine_cosine(x, &sine, &cosine);
        assert_true(fabs(sine - sin(x)) < 1e-15 && fabs(cosine - cos(x)) < 1e-15);
    }
    for (double x = 1; x < 1e6; x *= 1.003) {
        elementary_sine_cosine(x, &sine, &cosine);
        assert_true(fabs(sine - sin(x)) < 1e-15 && fabs(cosine - cos(x)) < 1e-15);
    }
    elementary_sine_cosine(0, &sine, &cosine);
    assert_true(sine == 0 && cosine == 1);
    elementary_sine_cosine(1e7, &sine, &cosine);
    assert_true(isnan(sine) && isnan(cosine));
}

TESTS(TEST(log_agrees_with_the_c_library), TEST(exp_agrees_with_the_c_library),
      TEST(sine_and_cosine_agree_with_the_c_library))
