// rope_test -- the frequencies of rotary positions are those of transformers.

#include "common/model/rope.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

enum { PLACES = 8 };

// What transformers 5.23 computes (ROPE_INIT_FUNCTIONS, in float32) for the published models and
// two more, at pairs 0, 1, 1/4, 1/3, 1/2, 5/8, 3/4 and the last: for llama3 and yarn all three of
// kept, blended and divided are among them.
static const struct known {
    const char *name;
    struct rope_scaling scaling;
    double theta;
    uint32_t head_dim, pairs[PLACES];
    double frequencies[PLACES];
} known[] = {
    { "Llama 3.1 8B",
      { .type = ROPE_LLAMA3,
        .factor = 8,
        .original = 8192,
        .low_freq_factor = 1,
        .high_freq_factor = 4 },
      500000,
      128,
      { 0, 1, 16, 21, 32, 40, 48, 63 },
      { 1, 0.814617217, 0.0376060307, 0.0134904198, 0.000524846022, 3.42810235e-05, 6.64786967e-06,
        3.06892588e-07 } },
    { "Llama 3.2 1B",
      { .type = ROPE_LLAMA3,
        .factor = 32,
        .original = 8192,
        .low_freq_factor = 1,
        .high_freq_factor = 4 },
      500000,
      64,
      { 0, 1, 8, 10, 16, 20, 24, 31 },
      { 1, 0.663601279, 0.0376060307, 0.0165604409, 0.000429556705, 8.57025589e-06, 1.66196742e-06,
        9.41830649e-08 } },
    { "Yarn Llama 2 128k",
      { .type = ROPE_YARN,
        .factor = 32,
        .original = 4096,
        .beta_fast = 32,
        .beta_slow = 1,
        .attention_factor = 1.3465735902799727,
        .truncate = true },
      10000,
      128,
      { 0, 1, 16, 21, 32, 40, 48, 63 },
      { 1, 0.865964353, 0.100000001, 0.0468823276, 0.00552884629, 0.000805772666, 3.12500015e-05,
        3.60869353e-06 } },
    { "yarn, not truncated",
      { .type = ROPE_YARN,
        .factor = 4,
        .original = 4096,
        .beta_fast = 16,
        .beta_slow = 2,
        .attention_factor = 1.25 },
      50000,
      64,
      { 0, 1, 8, 10, 16, 20, 24, 31 },
      { 1, 0.713111103, 0.0668740347, 0.0340072773, 0.00172589056, 0.000289123738, 7.47674421e-05,
        7.01153022e-06 } },
    { "linear",
      { .type = ROPE_LINEAR, .factor = 4 },
      100000,
      128,
      { 0, 1, 16, 21, 32, 40, 48, 63 },
      { 0.25, 0.208840638, 0.0140585322, 0.00571893295, 0.000790569466, 0.000187473546,
        4.44569851e-05, 2.99271255e-06 } },
};

static void frequencies_are_transformers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        double frequencies[64];
        rope_fill_frequencies(&known[k].scaling, known[k].theta, known[k].head_dim, frequencies);
        for (int i = 0; i < PLACES; i++) {
            const double ours = frequencies[known[k].pairs[i]], theirs = known[k].frequencies[i];
            if (fabs(ours / theirs - 1) > 1e-6) // Theirs are rounded several times
                fail_msg("%s, pair %u: %.9g, transformers %.9g", known[k].name, known[k].pairs[i],
                         ours, theirs);
        }
    }
    assert_true(fabs(rope_attention_factor(32) - 1.3465735902799727) < 1e-15);
    assert_true(rope_attention_factor(1) == 1);
}

static void tables_are_the_angles_sines_and_cosines(void **state)
{
    (void)state;
    enum { HALF = 64, POSITIONS = 300 };
    static float cosine[POSITIONS * HALF], sine[POSITIONS * HALF];
    double frequencies[HALF];
    const struct known *yarn = &known[2];
    rope_fill_frequencies(&yarn->scaling, yarn->theta, 2 * HALF, frequencies);
    rope_fill_tables(&yarn->scaling, yarn->theta, 2 * HALF, POSITIONS, cosine, sine);
    for (int p = 0; p < POSITIONS; p++) {
        for (int i = 0; i < HALF; i++) {
            const double gain = yarn->scaling.attention_factor;
            assert_true(fabs((double)sine[p * HALF + i] - gain * sin(p * frequencies[i])) < 1e-7);
            assert_true(fabs((double)cosine[p * HALF + i] - gain * cos(p * frequencies[i])) < 1e-7);
        }
    }
}

TESTS(TEST(frequencies_are_transformers), TEST(tables_are_the_angles_sines_and_cosines))
