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

// A look each ten seconds; every life begins at another height. `steps` of them, in all, rise by 5.
static struct growth watch(double per_hour, double spread, int steps)
{
    struct growth self = { 0 };
    uint64_t seed = 1;
    for (int life = 0; life < LIVES; life++) {
        double height = 100 - 7 * life;
        for (int look = 0; look < LOOKS; look++) {
            const double hours = look / 360.0;
            if (look == LOOKS / 2 && steps-- > 0) height += 5;
            growth_add(&self, hours, height + per_hour * hours + spread * noise(&seed));
        }
        growth_end_life(&self);
    }
    return self;
}

static void what_creeps_is_found(void **state)
{
    (void)state;
    struct growth_rate rate;
    const struct growth flat = watch(0, .2, 0), creeps = watch(40, .2, 0), steady = watch(40, 0, 0);
    assert_true(growth_measure(&flat, &rate));
    assert_true(fabs(rate.per_hour) < 3 * rate.error && rate.error < 5);
    assert_false(growth_exceeds(&flat, 0));
    assert_true(growth_measure(&creeps, &rate));
    assert_true(fabs(rate.per_hour - 40) < 3 * rate.error);
    assert_true(growth_exceeds(&creeps, 16));
    assert_false(growth_exceeds(&creeps, 45));
    assert_true(growth_measure(&steady, &rate));
    assert_true(fabs(rate.per_hour - 40) < 1e-6 && rate.error < 1e-3);
}

static void one_step_is_no_growth_and_many_are(void **state)
{
    (void)state;
    const struct growth once = watch(0, 0, 1), thrice = watch(0, 0, 3), always = watch(0, 0, LIVES);
    assert_false(growth_exceeds(&once, 0));
    assert_false(growth_exceeds(&thrice, 0));
    assert_true(growth_exceeds(&always, 0));
}

static void too_few_looks_say_nothing(void **state)
{
    (void)state;
    struct growth self = { 0 };
    struct growth_rate rate;
    for (int life = 0; life < 100; life++) { // Never two in one life
        growth_add(&self, 0, life);
        growth_end_life(&self);
    }
    assert_false(growth_measure(&self, &rate));
    for (int look = 0; look < GROWTH_SAMPLES_MIN; look++) growth_add(&self, look, 1000 * look);
    assert_false(growth_exceeds(&self, 0));
    growth_add(&self, GROWTH_SAMPLES_MIN, 1000 * GROWTH_SAMPLES_MIN);
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

TESTS(TEST(what_creeps_is_found), TEST(one_step_is_no_growth_and_many_are),
      TEST(too_few_looks_say_nothing), TEST(a_process_and_a_folder_are_read))
