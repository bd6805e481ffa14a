// payload_test -- the bits of a result lie where the format says, and every result has exactly one
// encoding.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/optimizer/distro_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Draws what a member could send for one chunk: up to k ascending numbers, values that are not
// zero.
static uint32_t drawn_chunk(const payload_form_t *form, uint32_t chunk, uint64_t *seed,
                            uint16_t *numbers, float *values)
{
    const uint32_t elements = chunks_at(payload_chunks(form), chunk).part->elements;
    const uint32_t wanted = (uint32_t)(fixture_random(seed) % (payload_top_k(form, chunk) + 1));
    uint32_t count = 0;
    for (uint32_t i = 0; i < elements && count < wanted; i++) {
        if (fixture_random(seed) % (elements - i) >= wanted - count) continue;
        numbers[count] = (uint16_t)i;
        values[count++] = fixture_float(seed) + 1.5f * (fixture_random(seed) % 2 ? 1.0f : -1.0f);
    }
    return count;
}

static uint8_t *drawn_payload(const payload_form_t *form, uint64_t *seed)
{
    uint8_t *bytes = malloc(payload_bytes(form));
    assert_non_null(bytes);
    payload_clear(form, bytes);
    static uint16_t numbers[PAYLOAD_TOP_K_MAX];
    static float values[PAYLOAD_TOP_K_MAX];
    for (uint32_t chunk = 0; chunk < chunks_count(payload_chunks(form)); chunk++) {
        const uint32_t count = drawn_chunk(form, chunk, seed, numbers, values);
        payload_write(form, chunk, numbers, values, count, bytes);
    }
    return bytes;
}

// What reading every chunk and writing it again gives.
static uint8_t *copied_payload(const payload_form_t *form, const uint8_t *bytes)
{
    uint8_t *copy = malloc(payload_bytes(form));
    assert_non_null(copy);
    payload_clear(form, copy);
    static uint16_t numbers[PAYLOAD_TOP_K_MAX];
    static float values[PAYLOAD_TOP_K_MAX];
    for (uint32_t chunk = 0; chunk < chunks_count(payload_chunks(form)); chunk++) {
        const uint32_t count = payload_read(form, chunk, bytes, numbers, values);
        payload_write(form, chunk, numbers, values, count, copy);
    }
    return copy;
}

static void sizes_follow_from_the_form(void **state)
{
    (void)state;
    static const struct chunks_tensor square = { 0, 128, 64 }, odd = { 0, 96, 96 },
                                      vector = { 0, 1, 96 };
    static const struct {
        const struct chunks_tensor *tensor;
        uint32_t limit, top_k;
        bool one_bit;
        uint32_t chunk_top_k;
        size_t body;
    } known[] = {
        { &square, 64, 8, true, 8, 23 }, // Two of 89 bits; Psyche: 2·17 bytes
        { &square, 64, 8, false, 8, 23 + 2 * 8 * 4 },
        { &square, 64, 32, true, 32, 78 },            // Selections: two of 311 bits
        { &square, 16, 4, true, 4, 128 },             // 32 of 32 bits
        { &square, 16, 4096, true, 256, 1648 },       // k is cut to 256: 32 of 412 bits
        { &square, 1, 1, false, 1, 1664 + 4 * 8192 }, // 1024 times 13 bits for 8; floats
        { &odd, 64, 8, true, 5, 27 },                 // 48 x 48: 4.5 of 8; four of 54 bits
        { &odd, 16, 8, true, 8, 257 },                // 36 full ones of 57 bits
        { &vector, 64, 8, true, 6, 8 },               // Two of 48, 6 of each: 30 bits
        { &vector, 64, 1, true, 1, 2 },               // 0.75 of 1: two of 97 states, 14 bits
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        chunks_t *chunks = NULL;
        assert_int_equal(chunks_new(known[i].tensor, 1, 128 * 96, known[i].limit, NULL, &chunks),
                         0);
        payload_form_t *form = fixture_form(chunks, known[i].top_k, known[i].one_bit);
        assert_int_equal(payload_top_k(form, 0), known[i].chunk_top_k);
        assert_int_equal(payload_bytes(form), PAYLOAD_HEADER_BYTES + known[i].body);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
    }
}

// Two models at Psyche's setting: 64 x 64, 8 of 4096, one bit. Their sides are not all multiples
// of 64, and norms are vectors; the whole payload counts.
static void a_model_sends_12_bytes_of_4096_parameters_at_most(void **state)
{
    (void)state;
    static const struct model_shape models[] = {
        { .vocab = 4096,
          .dim = 288,
          .layers = 6,
          .heads = 6,
          .kv_heads = 6,
          .head_dim = 48,
          .ffn = 768,
          .seq_len_max = 256,
          .rope_theta = 10000,
          .rms_eps = 1e-5 },
        { .vocab = 8192,
          .dim = 512,
          .layers = 8,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 64,
          .ffn = 1376,
          .seq_len_max = 512,
          .rope_theta = 10000,
          .rms_eps = 1e-5 },
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct why why = { "" };
        chunks_t *chunks = NULL;
        if (chunks_of_model(&models[i], 64, &why, &chunks) < 0) fail_msg("%s", why.text);
        payload_form_t *form = fixture_form(chunks, 8, true);
        const double parameters = (double)model_parameter_count(&models[i]);
        const double each = (double)payload_bytes(form) * 4096 / parameters;
        print_message("%.2f M parameters: %zu bytes, %.3f per 4096\n", parameters * 1e-6,
                      payload_bytes(form), each);
        assert_true(each <= 12.0);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
    }
}

// The two rows of the README's table: the demo's model and settings, and the shape of Llama 3.2 1B
// at Psyche's setting.
static void results_are_as_small_as_the_readme_says(void **state)
{
    (void)state;
    static const struct {
        struct model_shape shape;
        uint32_t limit, top_k;
        uint64_t parameters;
        size_t bytes;
    } rows[] = {
        { { .vocab = 256,
            .dim = 160,
            .layers = 4,
            .heads = 5,
            .kv_heads = 5,
            .head_dim = 32,
            .ffn = 448,
            .seq_len_max = 128,
            .rope_theta = 10000,
            .rms_eps = 1e-6 },
          32,
          64,
          1353120,
          70957 },
        { { .vocab = 128256,
            .dim = 2048,
            .layers = 16,
            .heads = 32,
            .kv_heads = 8,
            .head_dim = 64,
            .ffn = 8192,
            .seq_len_max = 2048,
            .rope_theta = 500000,
            .rms_eps = 1e-5,
            .tied = true },
          64,
          8,
          1235814400,
          3361812 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct why why = { "" };
        chunks_t *chunks = NULL;
        payload_form_t *form = NULL;
        if (payload_form_of_model(&rows[i].shape, rows[i].limit, rows[i].top_k, true, &why, &chunks,
                                  &form) < 0)
            fail_msg("%s", why.text);
        assert_int_equal(model_parameter_count(&rows[i].shape), rows[i].parameters);
        assert_int_equal(payload_bytes(form), rows[i].bytes);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
    }
}

// Blocks by hand, so that the format is what the header says: a shared number, a selection.
static void the_bits_lie_where_the_page_says(void **state)
{
    (void)state;
    const struct chunks_tensor pair = { 0, 1, 8 }, one = { 0, 1, 43 };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&pair, 1, 8, 4, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 2, false);
    uint8_t bytes[64];
    assert_int_equal(payload_bytes(form), PAYLOAD_HEADER_BYTES + 2 + 16);
    payload_clear(form, bytes);
    payload_write(form, 0, (uint16_t[]){ 1, 2 }, (float[]){ 1.0f, -2.0f }, 2, bytes);
    payload_write(form, 1, (uint16_t[]){ 3 }, (float[]){ -1.0f }, 1, bytes);
    // 1 + 4·2 + 6·4 = 33 states. The first is 9 + 2·4 + 2 = 19, the second 1 + 3·2 + 1 = 8: both are
    // 19 + 8·33 = 0x11b, in the 11 bits of 33·33.
    const uint8_t want[] = { 'S', 'D', 'P',  '3', 4, 0,    2,    0,    0, 0, 0,    0,    2,
                             0,   0,   0,    8,   0, 0,    0,    0,    0, 0, 0,    8,    0,
                             0,   0,   0,    0,   0, 0,    0x1b, 0x01, 0, 0, 0x80, 0x3f, 0,
                             0,   0,   0xc0, 0,   0, 0x80, 0xbf, 0,    0, 0, 0 };
    assert_memory_equal(bytes, want, sizeof want);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);

    assert_int_equal(chunks_new(&one, 1, 43, 64, NULL, &chunks), 0);
    form = fixture_form(chunks, 43, true); // 43·43/64: 29 of 43, whose numbers take 6 bits
    assert_int_equal(payload_top_k(form, 0), 29);
    assert_int_equal(payload_bytes(form), PAYLOAD_HEADER_BYTES + 9); // 69 bits
    payload_clear(form, bytes);
    payload_write(form, 0, (uint16_t[]){ 5, 14 }, (float[]){ 1.0f, -2.0f }, 2, bytes);
    // One cell. The word of two marks is 0x1ff, of ten bits; their rank is
    // 5 + C(14, 2) = 96 of ten bits; then the signs 0, 1: 0x1ff | 96 << 10 | 1 << 21.
    const uint8_t selection[9] = { 0xff, 0x81, 0x21 };
    assert_memory_equal(bytes + PAYLOAD_HEADER_BYTES, selection, sizeof selection);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// ---- sizes beside entropy

// In bits: of all contents that a chunk's block can have, and the values.
static double entropy_of(uint32_t elements, uint32_t k, bool one_bit)
{
    double largest = 0, log_term = 0; // Natural logarithms, by count
    static double logs[65537];
    for (uint32_t c = 0; c <= k; c++) {
        if (c > 0) log_term += log(2.0 * (elements - c + 1) / c);
        logs[c] = log_term;
        if (log_term > largest) largest = log_term;
    }
    double sum = 0;
    for (uint32_t c = 0; c <= k; c++) sum += exp(logs[c] - largest);
    return (largest + log(sum)) / log(2.0) + (one_bit ? 0.0 : 32.0 * k);
}

// A payload's bytes behind its header against the entropy of its blocks. Returns their ratio, 0 of
// few bytes, where the last one counts for much.
static double held_to_entropy(const chunks_t *chunks, uint32_t top_k, bool one_bit)
{
    payload_form_t *form = fixture_form(chunks, top_k, one_bit);
    double bits = 0;
    for (uint32_t i = 0; i < chunks_parts(chunks); i++) {
        const struct chunks_part *part = chunks_part(chunks, i);
        bits += part->count * entropy_of(part->elements, payload_top_k(form, part->first), one_bit);
    }
    const size_t body = payload_bytes(form) - PAYLOAD_HEADER_BYTES;
    if ((double)body > ceil(1.1 * bits / 8))
        fail_msg("%u elements, top-k %u, chunk %u: %zu bytes, entropy %.1f",
                 chunks_part(chunks, 0)->elements, top_k, chunks_limit(chunks), body, bits / 8);
    payload_form_destroy(&form);
    return body < 100 ? 0.0 : 8.0 * (double)body / bits;
}

// The models and settings of the demo, of the tests and of Psyche's files.
static void every_model_is_near_its_entropy(void **state)
{
    (void)state;
#define SHAPE(v, d, l, h, kv, size, f, s)                                                          \
    {                                                                                              \
        .vocab = v, .dim = d, .layers = l, .heads = h, .kv_heads = kv, .head_dim = size, .ffn = f, \
        .seq_len_max = s, .rope_theta = 10000, .rms_eps = 1e-5                                     \
    }
    static const struct model_shape shapes[] = {
        SHAPE(256, 160, 4, 5, 5, 32, 448, 128), // The demo
        SHAPE(16, 8, 1, 2, 2, 4, 16, 8),        SHAPE(19, 8, 2, 2, 1, 4, 12, 8),
        SHAPE(256, 4, 1, 2, 2, 2, 8, 16),       SHAPE(256, 48, 2, 3, 3, 16, 128, 64),
        SHAPE(256, 32, 2, 2, 1, 16, 88, 32),    SHAPE(700, 48, 3, 4, 2, 12, 96, 32),
        SHAPE(256, 96, 3, 6, 3, 16, 200, 64),   SHAPE(4096, 288, 6, 6, 6, 48, 768, 256),
    };
    static const uint32_t settings[][2] = {
        // compression_chunk, compression_topk
        { 32, 64 }, { 32, 8 }, { 64, 2 },  { 64, 4 },  { 64, 8 },   { 64, 16 },     { 64, 64 },
        { 16, 4 },  { 8, 4 },  { 4, 2 },   { 1, 1 },   { 4, 16 },   { 32, 32 },     { 16, 16 },
        { 16, 64 }, { 8, 64 }, { 24, 24 }, { 48, 96 }, { 64, 300 }, { 256, 65535 }, { 128, 1 },
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t j = 0; j < sizeof settings / sizeof settings[0]; j++) {
            struct why why = { "" };
            chunks_t *chunks = NULL;
            if (chunks_of_model(&shapes[i], settings[j][0], &why, &chunks) < 0)
                fail_msg("%s", why.text);
            const double ratio = held_to_entropy(chunks, settings[j][1], true);
            held_to_entropy(chunks, settings[j][1], false);
            if (i == 0 && j == 0) print_message("the demo's: %.4f\n", ratio);
            if (ratio > worst) worst = ratio;
            chunks_destroy(&chunks);
        }
    }
    print_message("of 100 bytes and more at most %.4f\n", worst);
}

// Squares and rows of every size in use, from one place to all.
static void every_chunk_is_near_its_entropy(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t side = 1; side <= 128; side += side < 64 ? 1 : 16) {
        const uint32_t all = side * side;
        for (uint32_t rows = 1; rows <= side; rows += side < 2 ? 1 : side - 1) { // Row and square
            const struct chunks_tensor tensor = { 0, rows, 2 * side };
            const uint32_t top = rows == 1 ? side : all;
            chunks_t *chunks = NULL;
            assert_int_equal(chunks_new(&tensor, 1, 2ull * all, side, NULL, &chunks), 0);
            for (uint32_t k = 1; k <= top; k += 1 + k / (side % 16 ? 4 : 16)) {
                const double ratio = held_to_entropy(chunks, k, true);
                if (ratio > worst) worst = ratio;
            }
            held_to_entropy(chunks, top, true);
            chunks_destroy(&chunks);
        }
    }
    print_message("of 100 bytes and more at most %.4f\n", worst);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    uint64_t seed = 21;
    chunks_t *chunks = fixture_chunks(32);
    for (int round = 0; round < 40; round++) {
        payload_form_t *form =
            fixture_form(chunks, (uint32_t[]){ 1, 7, 32, 4096 }[round % 4], round % 2);
        uint8_t *bytes = malloc(payload_bytes(form));
        payload_clear(form, bytes);
        for (uint32_t chunk = 0; chunk < chunks_count(chunks); chunk++) {
            static uint16_t numbers[2][1024];
            static float values[2][1024];
            const uint32_t count = drawn_chunk(form, chunk, &seed, numbers[0], values[0]);
            payload_write(form, chunk, numbers[0], values[0], count, bytes);
            assert_int_equal(payload_read(form, chunk, bytes, numbers[1], values[1]), count);
            assert_memory_equal(numbers[1], numbers[0], count * sizeof numbers[0][0]);
            for (uint32_t i = 0; i < count; i++)
                assert_true(values[1][i] ==
                            (round % 2 ? copysignf(1.0f, values[0][i]) : values[0][i]));
        }
        assert_int_equal(payload_check(form, bytes, payload_bytes(form), NULL), 0);
        uint8_t *copy = copied_payload(form, bytes);
        assert_memory_equal(copy, bytes, payload_bytes(form));
        free(copy);
        free(bytes);
        payload_form_destroy(&form);
    }
    chunks_destroy(&chunks);
}

// ---- refusals. A selection: one chunk [8, 8] with k = 22, in 80 bits; 22 floats. Its words, of
// one cell: 0 for none, 512 for one mark, 256 for two, of ten bits each.

enum {
    BLOCK = PAYLOAD_HEADER_BYTES,
    TOP_K = 22,
    SELECTION = 10,
    HAND = BLOCK + SELECTION + 4 * TOP_K
};

static void put_bits(uint8_t *bytes, uint32_t at, uint32_t value, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        bytes[(at + i) / 8] |= (uint8_t)((value >> i & 1) << (at + i) % 8);
}

#define ONE   0x3f800000u
#define MINUS 0xbf800000u
struct hand {
    uint32_t word, rank, rank_bits, signs; // Of 10 bits, of rank_bits, of 2
    uint32_t further;                      // 32 bits behind them
    uint32_t value[4];
};

static void write_hand(const struct hand *hand, uint8_t bytes[HAND])
{
    memset(bytes + BLOCK, 0, HAND - BLOCK);
    put_bits(bytes + BLOCK, 0, hand->word, 10);
    put_bits(bytes + BLOCK, 10, hand->rank, hand->rank_bits);
    put_bits(bytes + BLOCK, 10 + hand->rank_bits, hand->signs, 2);
    put_bits(bytes + BLOCK, 12 + hand->rank_bits, hand->further, 32);
    memcpy(bytes + BLOCK + SELECTION, hand->value, 16);
}

#define NONE         .word = 0
#define ONE_OF(a)    .word = 512, .rank = a, .rank_bits = 6
#define TWO_OF(a, b) .word = 256, .rank = a + b * (b - 1) / 2, .rank_bits = 11 // Of 2016

static void malformed_blocks_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct hand hand;
        int fault;
        const char *says;
    } wrong[] = {
        { { .word = 874 }, FAULT_FORMAT, "no word" },
        { { TWO_OF(0, 64), .value = { ONE, ONE } }, FAULT_RANGE, "below 2016" },
        { { TWO_OF(3, 9), .further = 1, .value = { ONE, ONE } }, FAULT_FORMAT, "behind" },
        { { ONE_OF(3), .signs = 2, .value = { ONE } }, FAULT_FORMAT, "behind" },
        { { NONE, .further = 1u << 31 }, FAULT_FORMAT, "behind" },
        { { ONE_OF(3), .value = { ONE, ONE } }, FAULT_FORMAT, "unused" }, // Value unused
        { { ONE_OF(3), .value = { ONE, 0, 0, 0x80000000u } }, FAULT_FORMAT, "unused" },
        { { NONE, .value = { ONE } }, FAULT_FORMAT, "unused" },
        { { ONE_OF(3), .value = { 0x7f800000u } }, FAULT_NAN, "finite" }, // Infinity
        { { ONE_OF(3), .signs = 1, .value = { 0xff800000u } }, FAULT_NAN, "finite" },
        { { ONE_OF(3), .value = { 0x7fc00000u } }, FAULT_NAN, "finite" }, // Quiet NaN
        { { ONE_OF(3), .value = { 0x7f800001u } }, FAULT_NAN, "finite" }, // Signalling
        { { ONE_OF(3), .value = { 0x5f800000u } }, FAULT_NAN, "2^64" },
        { { ONE_OF(3), .value = { 0 } }, FAULT_FORMAT, "zero" },
        { { ONE_OF(3), .signs = 1, .value = { 0x80000000u } }, FAULT_FORMAT, "zero" },
        { { ONE_OF(3), .value = { MINUS } }, FAULT_FORMAT, "sign bit 0" },
        { { ONE_OF(3), .signs = 1, .value = { ONE } }, FAULT_FORMAT, "sign bit 1" },
        { { TWO_OF(3, 9), .signs = 1, .value = { MINUS, MINUS } }, FAULT_FORMAT, "sign bit 0" },
    };
    const struct chunks_tensor tensor = { 0, 8, 8 };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 64, 8, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, TOP_K, false);
    uint8_t bytes[HAND], written[HAND];
    assert_int_equal(payload_bytes(form), sizeof bytes);
    payload_clear(form, bytes);
    payload_clear(form, written);
    payload_write(form, 0, (uint16_t[]){ 3, 9 }, (float[]){ 1.0f, -1.0f }, 2, written);
    const struct hand good = { TWO_OF(3, 9), .signs = 2, .value = { ONE, MINUS } };
    write_hand(&good, bytes);
    assert_memory_equal(bytes, written, sizeof bytes);
    assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct why why = { "" };
        write_hand(&wrong[i].hand, bytes);
        assert_int_equal(payload_check(form, bytes, sizeof bytes, &why), wrong[i].fault);
        if (!strstr(why.text, wrong[i].says) || !strstr(why.text, "tensor 0"))
            fail_msg("row %zu says: %s", i, why.text);
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// One of 42 with a sign or none: 85 states, so three chunks share a number of 20 bits. What is no
// state is refused, and the bits behind are.
static void combinations_beyond_the_last_are_refused(void **state)
{
    (void)state;
    enum { STATES = 85, ALL = STATES * STATES * STATES };
    const struct chunks_tensor tensor = { 0, 18, 7 };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 126, 7, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 1, true);
    uint8_t bytes[BLOCK + 3];
    assert_int_equal(chunks_count(chunks), 3);
    assert_int_equal(payload_bytes(form), sizeof bytes);
    for (uint32_t number = 0; number < 1u << 20; number += number < ALL - 1 ? 139 : 1) {
        struct why why = { "" };
        payload_clear(form, bytes);
        put_bits(bytes + BLOCK, 0, number, 20);
        const int rc = payload_check(form, bytes, sizeof bytes, &why);
        assert_int_equal(rc, number < ALL ? 0 : FAULT_RANGE);
        if (rc < 0 && !strstr(why.text, "chunk 2")) fail_msg("%s", why.text);
        if (rc < 0) continue;
        uint8_t *copy = copied_payload(form, bytes);
        assert_memory_equal(copy, bytes, sizeof bytes);
        free(copy);
    }
    for (uint32_t bit = 20; bit < 24; bit++) { // Behind the last block
        payload_clear(form, bytes);
        put_bits(bytes + BLOCK, bit, 1, 1);
        struct why why = { "" };
        assert_int_equal(payload_check(form, bytes, sizeof bytes, &why), FAULT_FORMAT);
        assert_non_null(strstr(why.text, "behind"));
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// Between two tensors too: a small one, a large one, and two small ones behind it in its group.
static void bits_between_tensors_are_refused(void **state)
{
    (void)state;
    const struct chunks_tensor tensors[] = {
        { 0, 1, 3 }, { 3, 64, 64 }, { 4099, 1, 3 }, { 4102, 1, 5 }
    };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(tensors, 4, 4107, 16, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 4, true); // 1 of 3: 7 states; 1 of 5: 11
    // 3 bits; from the next byte 16 of 32 bits; 3 and 4 bits; one bit is left
    const size_t count = BLOCK + 1 + 64 + 1;
    uint8_t bytes[BLOCK + 1 + 64 + 1];
    assert_int_equal(payload_bytes(form), count);
    assert_int_equal(payload_group(form, 17), payload_group(form, 16));
    assert_int_equal(payload_group(form, 18), payload_group(form, 16));
    assert_int_equal(payload_group(form, 16), 9);
    assert_int_equal(payload_group(form, 1), 1);
    static const struct {
        size_t bit;
        const char *says;
    } known[] = { { 3, "tensor 0" }, { 7, "tensor 0" }, { 8 * 65 + 7, "tensor 3" } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct why why = { "" };
        payload_clear(form, bytes);
        assert_int_equal(payload_check(form, bytes, count, NULL), 0);
        put_bits(bytes + BLOCK, (uint32_t)known[i].bit, 1, 1);
        assert_int_equal(payload_check(form, bytes, count, &why), FAULT_FORMAT);
        if (!strstr(why.text, known[i].says)) fail_msg("%s", why.text);
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// The values beside a combination: one for each that is chosen, of its sign, and no other.
static void values_must_belong_to_their_combination(void **state)
{
    (void)state;
    static const struct {
        uint32_t value[2];
        int fault;
    } known[] = {
        { { ONE, MINUS }, 0 },
        { { ONE, ONE }, FAULT_FORMAT }, // The other sign
        { { MINUS, MINUS }, FAULT_FORMAT },
        { { ONE, 0 }, FAULT_FORMAT },
        { { ONE, 0xff800000u }, FAULT_NAN },
    };
    const struct chunks_tensor tensor = { 0, 4, 4 };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 16, 4, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 2, false);
    uint8_t bytes[BLOCK + 2 + 8]; // 1 + 32 + 480 states
    assert_int_equal(payload_bytes(form), sizeof bytes);
    payload_clear(form, bytes);
    payload_write(form, 0, (uint16_t[]){ 5, 14 }, (float[]){ 1.0f, -2.0f }, 2, bytes);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        memcpy(bytes + BLOCK + 2, known[i].value, 8);
        assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL), known[i].fault);
    }
    payload_clear(form, bytes); // Nothing chosen, and yet a value
    assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL), 0);
    memcpy(bytes + BLOCK + 2, known[0].value, 4);
    assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL), FAULT_FORMAT);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// Threads write groups; a group's first byte and last byte are its own.
static void groups_share_no_byte(void **state)
{
    (void)state;
    chunks_t *chunks = fixture_chunks(8);
    payload_form_t *form = fixture_form(chunks, 3, true);
    const uint32_t count = chunks_count(chunks);
    uint8_t *owner = calloc(payload_bytes(form), 1), *bytes = malloc(payload_bytes(form));
    uint32_t groups = 0;
    for (uint32_t chunk = 0; chunk < count; chunk++) {
        const uint32_t group = payload_group(form, chunk);
        assert_true(group <= chunk && payload_group(form, group) == group);
        groups += group == chunk;
        payload_clear(form, bytes);
        const uint32_t k = payload_top_k(form, chunk);
        const uint32_t elements = chunks_at(chunks, chunk).part->elements;
        uint16_t numbers[3]; // The last state: all of its high bits
        for (uint32_t i = 0; i < k; i++) numbers[i] = (uint16_t)(elements - k + i);
        payload_write(form, chunk, numbers, (float[]){ -1.0f, -1.0f, -1.0f }, k, bytes);
        for (size_t i = BLOCK; i < payload_bytes(form); i++) {
            if (bytes[i] == 0) continue;
            assert_true(owner[i] == 0 || owner[i] == 1 + group % 251);
            owner[i] = (uint8_t)(1 + group % 251);
        }
    }
    if (!(groups > 20 && groups < count / 4)) fail_msg("%u groups of %u", groups, count);
    assert_int_equal(payload_group(form, count), count);
    free(owner);
    free(bytes);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

static void another_size_or_header_is_refused(void **state)
{
    (void)state;
    uint64_t seed = 22;
    chunks_t *chunks = fixture_chunks(32);
    payload_form_t *form = fixture_form(chunks, 8, true);
    const size_t count = payload_bytes(form);
    uint8_t *bytes = drawn_payload(form, &seed);
    assert_int_equal(payload_check(form, bytes, count, NULL), 0);
    const size_t sizes[] = { 0, 1, PAYLOAD_HEADER_BYTES, count - 1, count + 1, SIZE_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(payload_check(form, bytes, sizes[i], NULL), FAULT_FORMAT);
    for (size_t bit = 0; bit < 8 * PAYLOAD_HEADER_BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(payload_check(form, bytes, count, NULL), FAULT_FORMAT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// Any bytes: refused, or one canonical encoding. Some of both must occur.
static void damaged_payloads_are_refused_or_canonical(void **state)
{
    (void)state;
    uint64_t seed = 23;
    uint32_t passed = 0, refused = 0;
    const struct chunks_tensor tensors[] = { { 0, 1, 7 }, { 8, 6, 10 }, { 68, 16, 16 } };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(tensors, 3, 400, 8, NULL, &chunks), 0);
    // From 22 of 64 on a block is a selection
    static const uint32_t top_k[] = { 1, 2, 3, 5, 8, 9, 21, 22, 40, 63, 64 };
    enum { KINDS = 2 * sizeof top_k / sizeof top_k[0] };
    payload_form_t *forms[KINDS];
    for (uint32_t i = 0; i < KINDS; i++) forms[i] = fixture_form(chunks, top_k[i / 2], i % 2);
    for (int round = 0; round < 20000; round++) {
        payload_form_t *form = forms[round % KINDS];
        uint8_t *bytes = drawn_payload(form, &seed);
        const size_t body = payload_bytes(form) - PAYLOAD_HEADER_BYTES;
        for (uint64_t n = fixture_random(&seed) % 4 + 1; n > 0; n--)
            bytes[PAYLOAD_HEADER_BYTES + fixture_random(&seed) % body] ^=
                (uint8_t)(1u << fixture_random(&seed) % 8);
        if (payload_check(form, bytes, payload_bytes(form), NULL) == 0) {
            uint8_t *copy = copied_payload(form, bytes);
            assert_memory_equal(copy, bytes, payload_bytes(form));
            free(copy);
            passed++;
        } else {
            refused++;
        }
        free(bytes);
    }
    assert_true(passed > 1000 && refused > 1000);
    for (uint32_t i = 0; i < KINDS; i++) payload_form_destroy(&forms[i]);
    chunks_destroy(&chunks);
}

// All that 16 bits can be, for chunks of 2 of 4 (33 states, twice), 1 of 3 (7 states) and one (3):
// as many are accepted as there are results, and each says another. So a result has one encoding.
static void a_result_has_one_encoding(void **state)
{
    (void)state;
    static const struct {
        struct chunks_tensor tensor;
        uint32_t limit, top_k, accepted;
    } known[] = {
        { { 0, 1, 8 }, 4, 2, 33 * 33 },
        { { 0, 1, 6 }, 3, 1, 7 * 7 },
        { { 0, 1, 5 }, 1, 1, 3 * 3 * 3 * 3 * 3 },
        { { 0, 2, 4 }, 2, 4, 81 * 81 }, // All of four: three for each
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        chunks_t *chunks = NULL;
        assert_int_equal(chunks_new(&known[i].tensor, 1, 8, known[i].limit, NULL, &chunks), 0);
        payload_form_t *form = fixture_form(chunks, known[i].top_k, true);
        const size_t body = payload_bytes(form) - PAYLOAD_HEADER_BYTES;
        uint8_t bytes[PAYLOAD_HEADER_BYTES + 2];
        uint32_t accepted = 0;
        assert_true(body == 1 || body == 2);
        payload_clear(form, bytes);
        for (uint32_t bits = 0; bits < 1u << 8 * body; bits++) {
            bytes[PAYLOAD_HEADER_BYTES] = (uint8_t)bits;
            if (body == 2) bytes[PAYLOAD_HEADER_BYTES + 1] = (uint8_t)(bits >> 8);
            if (payload_check(form, bytes, payload_bytes(form), NULL) < 0) continue;
            uint8_t *copy = copied_payload(form, bytes);
            assert_memory_equal(copy, bytes, payload_bytes(form));
            free(copy);
            accepted++;
        }
        assert_int_equal(accepted, known[i].accepted);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
    }
}

// One bad value in one chunk, whichever: refused, and the chunk is named.
static void no_chunk_is_overlooked(void **state)
{
    (void)state;
    static const uint32_t bad[] = { 0x7fc00000, 0xff800000, 0x5f800000, 0x80000000, 0xbf9d0000, 0 };
    chunks_t *chunks = fixture_chunks(32);
    for (uint32_t top_k = 3; top_k <= 300; top_k += 297) { // Combinations; mostly fields
        payload_form_t *form = fixture_form(chunks, top_k, false);
        const size_t count = payload_bytes(form);
        uint8_t *bytes = malloc(count);
        assert_non_null(bytes);
        for (uint32_t chunk = 0; chunk < chunks_count(chunks); chunk++) {
            const float value = 1.2265625f; // 0x3f9d0000, which is found again
            const uint16_t number = (uint16_t)(chunks_at(chunks, chunk).part->elements - 1);
            payload_clear(form, bytes);
            payload_write(form, chunk, &number, &value, 1, bytes);
            struct why good = { "" };
            if (payload_check(form, bytes, count, &good) < 0) fail_msg("%s", good.text);
            uint8_t *at = memmem(bytes, count, &value, sizeof value);
            assert_non_null(at);
            char says[32];
            snprintf(says, sizeof says, "at chunk %u (", chunk);
            for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct why why = { "" };
                memcpy(at, &bad[i], sizeof bad[i]);
                assert_int_equal(payload_check(form, bytes, count, &why),
                                 i < 3 ? FAULT_NAN : FAULT_FORMAT);
                if (!strstr(why.text, says)) fail_msg("chunk %u says: %s", chunk, why.text);
            }
        }
        free(bytes);
        payload_form_destroy(&form);
    }
    chunks_destroy(&chunks);
}

// By its definition; its bits are in the digests of apply_test.c.
static void the_square_sum_is_that_of_the_values(void **state)
{
    (void)state;
    uint64_t seed = 24;
    chunks_t *chunks = fixture_chunks(32);
    for (uint32_t top_k = 1; top_k < 1024; top_k += 55) {
        payload_form_t *form = fixture_form(chunks, top_k, false);
        uint8_t *bytes = drawn_payload(form, &seed);
        static uint16_t numbers[1024];
        static float values[1024];
        for (uint32_t chunk = 0; chunk < chunks_count(chunks); chunk++) {
            const uint32_t count = payload_read(form, chunk, bytes, numbers, values);
            long double want = 0.0L;
            for (uint32_t i = 0; i < count; i++) want += (long double)values[i] * values[i];
            const double sum = payload_square_sum(form, chunk, bytes);
            assert_true(fabs(sum - (double)want) <= 1e-14 * (double)want);
        }
        free(bytes);
        payload_form_destroy(&form);
    }
    chunks_destroy(&chunks);
}

static void a_top_k_out_of_range_is_refused(void **state)
{
    (void)state;
    chunks_t *chunks = fixture_chunks(32);
    payload_form_t *form = NULL;
    struct why why = { "" };
    assert_int_equal(payload_form_new(chunks, 0, true, &why, &form), FAULT_RANGE);
    assert_non_null(strstr(why.text, "1..65535"));
    assert_int_equal(payload_form_new(chunks, PAYLOAD_TOP_K_MAX + 1, true, &why, &form),
                     FAULT_RANGE);
    assert_null(form);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

TESTS(TEST(sizes_follow_from_the_form), TEST(a_model_sends_12_bytes_of_4096_parameters_at_most),
      TEST(results_are_as_small_as_the_readme_says), TEST(the_bits_lie_where_the_page_says),
      TEST(what_is_written_is_read), TEST(every_model_is_near_its_entropy),
      TEST(every_chunk_is_near_its_entropy), TEST(malformed_blocks_are_refused),
      TEST(combinations_beyond_the_last_are_refused), TEST(bits_between_tensors_are_refused),
      TEST(values_must_belong_to_their_combination), TEST(groups_share_no_byte),
      TEST(another_size_or_header_is_refused), TEST(damaged_payloads_are_refused_or_canonical),
      TEST(a_result_has_one_encoding), TEST(no_chunk_is_overlooked),
      TEST(the_square_sum_is_that_of_the_values), TEST(a_top_k_out_of_range_is_refused))
