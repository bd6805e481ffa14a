// Runs that are given bit by bit, several at a time, have the hash of their bytes; one that is dropped is
// not looked at again.
#include "common/base/large_pages.h"
#include "common/bulk/hash_beside.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"

enum { RUNS = 5, BYTES = (3 << 20) + 7, STEP = 100000 };

static struct hash_beside *beside;

static int begin(void **state)
{
    (void)state;
    beside = hash_beside_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hash_beside_destroy(&beside);
    hash_beside_destroy(&beside); // NULL
    return beside != NULL;
}

static void give_all(struct hash_beside *with)
{
    struct hash_run runs[RUNS];
    uint8_t *bytes[RUNS];
    for (unsigned i = 0; i < RUNS; i++) {
        bytes[i] = fixture_bytes(BYTES, i);
        hash_run_begin(&runs[i], with, bytes[i]);
    }
    for (size_t count = 0; count < BYTES; count += STEP) // What is given twice is hashed once
        for (unsigned i = 0; i < RUNS; i++) hash_run_give(&runs[i], count);
    for (unsigned i = 0; i < RUNS; i++) {
        const struct hash right = hash_of(bytes[i], BYTES);
        hash_run_give(&runs[i], BYTES);
        const struct hash hash = hash_run_end(&runs[i]);
        assert_memory_equal(&hash, &right, sizeof hash);
        free(bytes[i]);
    }
}

static void runs_have_the_hash_of_their_bytes(void **state)
{
    (void)state;
    give_all(beside);
    give_all(NULL);
}

static void a_run_of_nothing_ends(void **state)
{
    (void)state;
    struct hash_run run;
    const struct hash empty = hash_of("", 0);
    hash_run_begin(&run, beside, NULL);
    hash_run_give(&run, 0);
    const struct hash hash = hash_run_end(&run);
    assert_memory_equal(&hash, &empty, sizeof hash);
}

// Its bytes are freed while others wait behind it: the sanitizers would see them read.
static void a_run_that_is_dropped_is_left_alone(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct hash_run other, run;
        uint8_t *kept = fixture_bytes(BYTES, 1), *bytes = fixture_bytes(BYTES, 2);
        const struct hash right = hash_of(kept, BYTES);
        hash_run_begin(&other, beside, kept);
        hash_run_begin(&run, beside, bytes);
        hash_run_give(round % 2 ? &other : &run, BYTES);
        hash_run_give(round % 2 ? &run : &other, BYTES);
        hash_run_drop(&run);
        memset(bytes, 0, BYTES);
        memset(&run, 0, sizeof run);
        free(bytes);
        const struct hash hash = hash_run_end(&other);
        assert_memory_equal(&hash, &right, sizeof hash);
        free(kept);
    }
}

// Only the part in hand is waited for, not all that was given. A thread that is held up may find all of it done.
static void a_run_that_is_dropped_is_not_waited_for(void **state)
{
    enum { MANY = 64 << 20, ROUNDS = 20 };
    (void)state;
    uint8_t *bytes = calloc(1, MANY);
    uint64_t least = MANY;
    for (int round = 0; round < ROUNDS && least == MANY; round++) {
        struct hash_run run;
        hash_run_begin(&run, beside, bytes);
        hash_run_give(&run, MANY);
        hash_run_drop(&run);
        if (run.done < least) least = run.done;
    }
    free(bytes);
    assert_true(least < MANY);
}

static void memory_in_large_pages_is_of_the_size_asked_for(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 64, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *memory = large_pages_new(sizes[i]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 1, sizes[i]);
        free(memory);
    }
    assert_null(large_pages_new(SIZE_MAX));
}

TESTS_WITH(begin, end, TEST(runs_have_the_hash_of_their_bytes), TEST(a_run_of_nothing_ends),
           TEST(a_run_that_is_dropped_is_left_alone), TEST(a_run_that_is_dropped_is_not_waited_for),
           TEST(memory_in_large_pages_is_of_the_size_asked_for))
