// The judge of make soak: a figure that goes up and down does not grow, a creeping one does,
// however often the process restarts.

#include "tests/chaos/growth.c"
#include "tests/test.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIVES = 12, LOOKS = 20 };

static double noise(uint64_t *seed) // -1 .. 1
{
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return (double)(*seed >> 11) / (double)(1ull << 52) - 1;
}

// A look each ten seconds; every life begins at another height, and takes `steps` steps of 5 that
// it keeps, at even distances.
static struct growth watch(double per_hour, double spread, int looks, int steps)
{
    struct growth self = { 0 };
    uint64_t seed = 1;
    for (int life = 0; life < LIVES; life++) {
        const double height = 100 - 7 * life;
        for (int look = 0; look < looks; look++) {
            const double hours = look / 360.0;
            const double taken = 5 * floor((double)look * (steps + 1) / looks);
            growth_add(&self, hours, height + taken + per_hour * hours + spread * noise(&seed));
        }
        growth_end_life(&self);
    }
    return self;
}

static void what_creeps_is_found(void **state)
{
    (void)state;
    struct growth_rate rate;
    for (int looks = LOOKS; looks <= 20 * LOOKS; looks *= 20) { // Minutes, and an hour
        const struct growth flat = watch(0, .2, looks, 0), creeps = watch(40, .2, looks, 0);
        const struct growth steady = watch(40, 0, looks, 0);
        assert_true(growth_measure(&flat, &rate));
        assert_true(rate.least < 2 && rate.most < 6 && rate.least > -6);
        assert_true(growth_measure(&creeps, &rate));
        assert_true(fabs(rate.least - 40) < 6 && fabs(rate.most - 40) < 6);
        assert_true(growth_exceeds(&creeps, 16));
        assert_false(growth_exceeds(&creeps, 45));
        assert_true(growth_measure(&steady, &rate));
        assert_true(fabs(rate.least - 40) < 1e-6 && fabs(rate.most - 40) < 1e-6);
    }
}

static void what_goes_up_and_down_hides_no_leak(void **state)
{
    (void)state;
    const struct growth flat = watch(0, 20, 360, 0), creeps = watch(40, 20, 360, 0);
    assert_false(growth_exceeds(&flat, 10));
    assert_true(growth_exceeds(&creeps, 30));
}

static void one_step_is_no_growth_and_one_in_each_quarter_is(void **state)
{
    (void)state;
    const struct growth once = watch(0, 0, LOOKS, 1), twice = watch(0, 0, LOOKS, 2);
    const struct growth always = watch(0, 0, LOOKS, 4);
    assert_false(growth_exceeds(&once, 0));
    assert_false(growth_exceeds(&twice, 0));
    assert_true(growth_exceeds(&always, 0));
}

// A heap rises to its highest use, in steps that become smaller.
static void first_use_is_no_growth(void **state)
{
    (void)state;
    struct growth self = { 0 };
    struct growth_rate rate;
    for (int look = 0; look < 360; look++)
        growth_add(&self, look / 360.0, 100 - 50 * exp(-look / 20.0));
    assert_true(growth_measure(&self, &rate));
    assert_true(rate.most > 16);
    assert_false(growth_exceeds(&self, 1));
}

static void too_few_looks_say_nothing(void **state)
{
    (void)state;
    struct growth self = { 0 };
    struct growth_rate rate;
    for (int life = 0; life < 100; life++) {
        for (int look = 0; look < GROWTH_LIFE_MIN - 1; look++) growth_add(&self, look, 10 * look);
        growth_end_life(&self);
    }
    assert_false(growth_measure(&self, &rate));
    for (int look = 0; look < GROWTH_SAMPLES_MIN - 1; look++) growth_add(&self, look, 1000 * look);
    assert_false(growth_exceeds(&self, 0));
    growth_add(&self, GROWTH_SAMPLES_MIN - 1, 1000 * GROWTH_SAMPLES_MIN);
    assert_true(growth_exceeds(&self, 999));
}

static void a_process_and_a_folder_are_read(void **state)
{
    (void)state;
    enum { MORE = 5, BYTES = 8 << 20 };
    double before[GROWTH_KINDS], after[GROWTH_KINDS];
    int fds[MORE];
    char dir[] = "/tmp/growth_test.XXXXXX", path[64];
    assert_true(growth_read_process(getpid(), before));
    for (int i = 0; i < MORE; i++) fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *memory = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i += 4096) ((volatile char *)memory)[i] = 1;
    assert_true(growth_read_process(getpid(), after));
    for (int i = 0; i < MORE; i++) close(fds[i]);
    free(memory);
    assert_true(after[GROWTH_DESCRIPTORS] == before[GROWTH_DESCRIPTORS] + MORE);
    assert_true(after[GROWTH_MEMORY] > before[GROWTH_MEMORY] + BYTES / 2);
    assert_true(after[GROWTH_THREADS] >= 1);
    assert_false(growth_read_process(-1, after));

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++) fputc('x', file);
    fclose(file);
    assert_true(growth_read_folder(dir) >= 100000);
    assert_int_equal(unlink(path) | rmdir(dir), 0);
    assert_true(growth_read_folder(dir) < 1);
}

TESTS(TEST(what_creeps_is_found), TEST(what_goes_up_and_down_hides_no_leak),
      TEST(one_step_is_no_growth_and_one_in_each_quarter_is), TEST(first_use_is_no_growth),
      TEST(too_few_looks_say_nothing), TEST(a_process_and_a_folder_are_read))
