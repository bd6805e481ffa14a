#include "tests/unit/distro_fixture.h"

#include "common/learn/distro_kernels.h"

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
    payload_write_header(form, bytes);
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
    payload_write_header(form, copy);
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
    const struct chunks_tensor tensor = {0, 128, 64};
    static const struct {
        uint32_t limit, top_k;
        bool one_bit;
        size_t block, chunks;
    } known[] = {
        {64, 8, true, 14, 2},                             // 4 + 8·13 = 108 bits; Psyche: 17 bytes
        {64, 8, false, 46, 2},     {64, 32, true, 53, 2}, // 6 + 32·13 = 422 bits
        {64, 4, true, 7, 2},                              // 3 + 4·13 = 55 bits
        {16, 4, true, 5, 32},                             // 3 + 4·9 = 39 bits
        {16, 4096, true, 290, 32},                        // k is cut to 256: 9 + 256·9 bits
        {1, 1, false, 5, 8192},                           // 1 + 1·1 bits and a float
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        chunks_t *chunks = NULL;
        assert_int_equal(chunks_new(&tensor, 1, 128 * 64, known[i].limit, NULL, &chunks), 0);
        payload_form_t *form = fixture_form(chunks, known[i].top_k, known[i].one_bit);
        assert_int_equal(payload_bytes(form),
                         PAYLOAD_HEADER_BYTES + known[i].block * known[i].chunks);
        payload_form_destroy(&form);
        chunks_destroy(&chunks);
    }
}

// A block by hand, so that the format is what the header says.
static void the_bits_lie_where_the_page_says(void **state)
{
    (void)state;
    const struct chunks_tensor tensor = {0, 4, 4};
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 16, 4, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 3, false);
    uint8_t bytes[64];
    assert_int_equal(payload_bytes(form), PAYLOAD_HEADER_BYTES + 3 + 12);
    payload_write_header(form, bytes);
    payload_write(form, 0, (uint16_t[]){5, 14}, (float[]){1.0f, -2.0f}, 2, bytes);
    // From the lowest bit up: count 2, numbers 5, 14, 0 of 4 bits, signs 0, 1, 0.
    // 0x96 = 2 | 5 << 2 | (14 & 3) << 6, 0x83 = 14 >> 2 | 1 << 7.
    const uint8_t want[] = {'S',  'D',  'P',  '1', 4, 0,    3,    0, 0,  0, 0,    0, 1, 0, 0, 0,
                            16,   0,    0,    0,   0, 0,    0,    0, 16, 0, 0,    0, 0, 0, 0, 0,
                            0x96, 0x83, 0x00, 0,   0, 0x80, 0x3f, 0, 0,  0, 0xc0, 0, 0, 0, 0};
    assert_memory_equal(bytes, want, sizeof want);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    uint64_t seed = 21;
    chunks_t *chunks = fixture_chunks(32);
    for (int round = 0; round < 40; round++) {
        payload_form_t *form =
            fixture_form(chunks, (uint32_t[]){1, 7, 32, 4096}[round % 4], round % 2);
        uint8_t *bytes = malloc(payload_bytes(form));
        payload_write_header(form, bytes);
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

// ---- refusals. One chunk [8, 8] with k = 4: 3 bits count, 4 x 6 bits numbers, 4 signs, 1 bit
// rest, 4 floats

enum { BLOCK = PAYLOAD_HEADER_BYTES };

struct hand {
    uint32_t count, number[4], sign[4], rest;
    uint32_t value[4];
};

static void write_hand(const struct hand *hand, uint8_t bytes[BLOCK + 20])
{
    uint64_t bits = hand->count | (uint64_t)hand->rest << 31;
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)hand->number[i] << (3 + 6 * i) | (uint64_t)hand->sign[i] << (27 + i);
    memcpy(bytes + BLOCK, &bits, 4);
    memcpy(bytes + BLOCK + 4, hand->value, 16);
}

#define ONE   0x3f800000u
#define MINUS 0xbf800000u
#define GOOD  .count = 2, .number = {3, 9}, .sign = {0, 1}, .value = {ONE, MINUS}

static void malformed_blocks_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct hand hand;
        int fault;
        const char *says;
    } wrong[] = {
        {{.count = 5, .number = {1, 2, 3, 4}, .value = {ONE, ONE, ONE, ONE}}, FAULT_FORMAT, "0..4"},
        {{.count = 7, .number = {1, 2, 3, 4}, .value = {ONE, ONE, ONE, ONE}}, FAULT_FORMAT, "0..4"},
        {{.count = 2, .number = {9, 3}, .value = {ONE, ONE}}, FAULT_RANGE, "10..63"}, // Falling
        {{.count = 2, .number = {9, 9}, .value = {ONE, ONE}}, FAULT_RANGE, "10..63"}, // Twice
        {{.count = 2, .number = {0, 0}, .value = {ONE, ONE}}, FAULT_RANGE, "1..63"},
        {{.count = 3, .number = {62, 63, 63}, .value = {ONE, ONE, ONE}}, FAULT_RANGE, "64..63"},
        {{.count = 1, .number = {3, 4}, .value = {ONE}}, FAULT_FORMAT, "unused"}, // Number unused
        {{.count = 0, .number = {0, 0, 0, 1}}, FAULT_FORMAT, "unused"},
        {{.count = 1, .number = {3}, .sign = {0, 1}, .value = {ONE}}, FAULT_FORMAT, "sign"},
        {{.count = 1, .number = {3}, .value = {ONE, ONE}}, FAULT_FORMAT, "unused"}, // Value unused
        {{.count = 1, .number = {3}, .value = {ONE, 0, 0, 0x80000000u}}, FAULT_FORMAT, "unused"},
        {{.count = 1, .number = {3}, .value = {0x7f800000u}}, FAULT_NAN, "finite"}, // Infinity
        {{.count = 1, .number = {3}, .sign = {1}, .value = {0xff800000u}}, FAULT_NAN, "finite"},
        {{.count = 1, .number = {3}, .value = {0x7fc00000u}}, FAULT_NAN, "finite"}, // Quiet NaN
        {{.count = 1, .number = {3}, .value = {0x7f800001u}}, FAULT_NAN, "finite"}, // Signalling
        {{.count = 1, .number = {3}, .value = {0x5f800000u}}, FAULT_NAN, "2^64"},   // 2^64
        {{.count = 1, .number = {3}, .value = {0}}, FAULT_FORMAT, "zero"},
        {{.count = 1, .number = {3}, .sign = {1}, .value = {0x80000000u}}, FAULT_FORMAT, "zero"},
        {{.count = 1, .number = {3}, .value = {MINUS}}, FAULT_FORMAT, "sign bit 0"},
        {{.count = 1, .number = {3}, .sign = {1}, .value = {ONE}}, FAULT_FORMAT, "sign bit 1"},
        {{GOOD, .rest = 1}, FAULT_FORMAT, "behind"},
    };
    const struct chunks_tensor tensor = {0, 8, 8};
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 64, 8, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 4, false);
    uint8_t bytes[BLOCK + 20];
    assert_int_equal(payload_bytes(form), sizeof bytes);
    payload_write_header(form, bytes);
    const struct hand good = {GOOD};
    write_hand(&good, bytes);
    assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct why why = {""};
        write_hand(&wrong[i].hand, bytes);
        assert_int_equal(payload_check(form, bytes, sizeof bytes, &why), wrong[i].fault);
        if (!strstr(why.text, wrong[i].says) || !strstr(why.text, "chunk 0"))
            fail_msg("row %zu says: %s", i, why.text);
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

// Numbers outside a chunk whose elements are no power of two, and a count above k in the last
// block.
static void numbers_outside_the_chunk_are_refused(void **state)
{
    (void)state;
    const struct chunks_tensor tensor = {0, 6, 7};
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(&tensor, 1, 42, 7, NULL, &chunks), 0);
    payload_form_t *form = fixture_form(chunks, 1, true);
    uint8_t bytes[BLOCK + 1];
    assert_int_equal(payload_bytes(form), sizeof bytes);
    payload_write_header(form, bytes);
    for (uint32_t number = 0; number < 64; number++) {
        bytes[BLOCK] = (uint8_t)(1 | number << 1);
        assert_int_equal(payload_check(form, bytes, sizeof bytes, NULL),
                         number < 42 ? 0 : FAULT_RANGE);
    }
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
    const size_t sizes[] = {0, 1, PAYLOAD_HEADER_BYTES, count - 1, count + 1, SIZE_MAX};
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
    const struct chunks_tensor tensors[] = {{0, 1, 7}, {8, 6, 10}, {68, 16, 16}};
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(tensors, 3, 400, 8, NULL, &chunks), 0);
    for (int round = 0; round < 20000; round++) {
        payload_form_t *form = fixture_form(chunks, 1 + (uint32_t)round % 9, round % 2);
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
        payload_form_destroy(&form);
    }
    assert_true(passed > 1000 && refused > 1000);
    chunks_destroy(&chunks);
}

static void a_top_k_out_of_range_is_refused(void **state)
{
    (void)state;
    chunks_t *chunks = fixture_chunks(32);
    payload_form_t *form = NULL;
    struct why why = {""};
    assert_int_equal(payload_form_new(chunks, 0, true, &why, &form), FAULT_RANGE);
    assert_non_null(strstr(why.text, "1..65535"));
    assert_int_equal(payload_form_new(chunks, PAYLOAD_TOP_K_MAX + 1, true, &why, &form),
                     FAULT_RANGE);
    assert_null(form);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_follow_from_the_form),
        cmocka_unit_test(the_bits_lie_where_the_page_says),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(malformed_blocks_are_refused),
        cmocka_unit_test(numbers_outside_the_chunk_are_refused),
        cmocka_unit_test(another_size_or_header_is_refused),
        cmocka_unit_test(damaged_payloads_are_refused_or_canonical),
        cmocka_unit_test(a_top_k_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
