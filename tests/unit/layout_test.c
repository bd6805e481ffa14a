// layout_test -- tensors in a vector: their places, refusals by name, and the hash of the canonical
// form.

#include "common/vector/layout.h"
#include "tests/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

static struct layout_tensor room[8], other_room[8];
static struct why why;

static struct layout small(struct layout_tensor *tensors)
{
    struct layout layout;
    layout_init(&layout, tensors, 8);
    assert_int_equal(layout_add_matrix(&layout, "embed", 5, 4, LAYOUT_F32, &why), 0);
    assert_int_equal(layout_add_vector(&layout, "norm", 4, LAYOUT_F32, &why), 0);
    assert_int_equal(layout_add_matrix(&layout, "head", 1, 3, LAYOUT_F32, &why), 0);
    return layout;
}

static void tensors_lie_one_after_another(void **state)
{
    (void)state;
    const struct layout layout = small(room);
    assert_int_equal(layout.total, 27);
    assert_int_equal(layout_find(&layout, "norm")->offset, 20);
    assert_int_equal(layout_find(&layout, "norm")->dims, 1);
    assert_int_equal(layout_find(&layout, "head")->dims, 2);
    assert_null(layout_find(&layout, "tail"));
    const struct interval head = layout_interval(layout_find(&layout, "head"));
    assert_true(head.begin == 24 && head.end == 27);
}

static void every_element_finds_its_tensor(void **state)
{
    (void)state;
    const struct layout layout = small(room);
    for (uint64_t k = 0; k < layout.total; k++)
        assert_string_equal(layout_at(&layout, k)->name, k < 20   ? "embed"
                                                         : k < 24 ? "norm"
                                                                  : "head");
    assert_null(layout_at(&layout, layout.total));
    assert_null(layout_at(&layout, UINT64_MAX));
}

static void refuse(struct layout *layout, int fault, const char *name, uint64_t rows, uint64_t cols,
                   const char *word)
{
    const size_t count = layout->count;
    const uint64_t total = layout->total;
    assert_int_equal(layout_add_matrix(layout, name, rows, cols, LAYOUT_F32, &why), fault);
    assert_non_null(strstr(why.text, word));
    assert_int_equal(layout->count, count);
    assert_true(layout->total == total);
}

static void bad_tensors_are_refused_by_name(void **state)
{
    (void)state;
    struct layout layout = small(room);
    char long_name[LAYOUT_NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    refuse(&layout, FAULT_RANGE, "norm", 1, 1, "'norm' is in the layout already");
    refuse(&layout, FAULT_RANGE, "", 1, 1, "tensor 3");
    refuse(&layout, FAULT_RANGE, long_name, 1, 1, "127");
    refuse(&layout, FAULT_RANGE, "a b", 1, 1, "without space");
    refuse(&layout, FAULT_RANGE, "a\"", 1, 1, "quote");
    refuse(&layout, FAULT_RANGE, "a\x80", 1, 1, "ASCII");
    refuse(&layout, FAULT_RANGE, "__metadata__", 1, 1, "tensor 3");
    refuse(&layout, FAULT_RANGE, "zero", 0, 7, "'zero' has 0 rows of 7");
    refuse(&layout, FAULT_RANGE, "zero", 7, 0, "no size is zero");
    refuse(&layout, FAULT_RANGE, "huge", UINT64_MAX, UINT64_MAX, "2^48");
    refuse(&layout, FAULT_RANGE, "huge", (uint64_t)1 << 32, (uint64_t)1 << 32, "2^48");
    refuse(&layout, FAULT_RANGE, "rest", 1, LAYOUT_TOTAL_MAX - 26, "2^48");
    long_name[LAYOUT_NAME_MAX] = 0;
    assert_int_equal(layout_add_vector(&layout, long_name, LAYOUT_TOTAL_MAX - 27, LAYOUT_F32, &why),
                     0);
    struct layout full;
    layout_init(&full, room, 0);
    refuse(&full, FAULT_LIMIT, "one", 1, 1, "room for 0");
}

static void the_hash_sees_every_field(void **state)
{
    (void)state;
    const struct layout a = small(room);
    struct layout b = small(other_room);
    const struct hash hash = layout_hash(&a);
    struct hash changed;
    changed = layout_hash(&b);
    assert_true(hash_equal(&hash, &changed));
    const struct layout_tensor kept = b.tensors[1];
    for (int field = 0; field < 6; field++) {
        struct layout_tensor *tensor = &b.tensors[1];
        *tensor = kept;
        if (field == 0) tensor->name[0] = 'N';
        if (field == 1) tensor->offset++;
        if (field == 2) tensor->rows++;
        if (field == 3) tensor->cols++;
        if (field == 4) tensor->dims = 2;
        if (field == 5) tensor->dtype = LAYOUT_BF16;
        changed = layout_hash(&b);
        assert_false(hash_equal(&hash, &changed));
    }
    b.tensors[1] = kept;
    b.count--;
    changed = layout_hash(&b);
    assert_false(hash_equal(&hash, &changed));
}

// The canonical form, byte by byte as the header describes it.
static void hash_is_that_of_the_canonical_form(void **state)
{
    (void)state;
    struct layout layout;
    layout_init(&layout, room, 8);
    assert_int_equal(layout_add_matrix(&layout, "ab", 258, 3, LAYOUT_F16, &why), 0);
    static const char form[] = "shoal layout 1\nab\0"
                               "\0\0\0\0\0\0\0\0"
                               "\2\1\0\0\0\0\0\0"
                               "\3\0\0\0\0\0\0\0"
                               "\2\0\0\0\0\0\0\0"
                               "\2\0\0\0\0\0\0\0";
    const struct hash wanted = hash_of(form, sizeof form - 1), hash = layout_hash(&layout);
    assert_true(hash_equal(&hash, &wanted));
}

static void a_copy_is_written_in_another_dtype(void **state)
{
    (void)state;
    const struct layout a = small(room);
    struct layout b;
    layout_init(&b, other_room, 8);
    layout_copy_as(&b, &a, LAYOUT_BF16);
    assert_int_equal(b.count, 3);
    assert_int_equal(b.total, a.total);
    for (size_t i = 0; i < b.count; i++) assert_int_equal(b.tensors[i].dtype, LAYOUT_BF16);
    layout_copy_as(&b, &a, LAYOUT_F32);
    const struct hash hash = layout_hash(&a), back = layout_hash(&b);
    assert_true(hash_equal(&hash, &back));
    assert_int_equal(layout_dtype_bytes(LAYOUT_F16), 2);
    assert_string_equal(layout_dtype_name(LAYOUT_BF16), "BF16");
}

static void a_number_that_is_not_finite_is_named(void **state)
{
    (void)state;
    const struct layout layout = small(room);
    float values[27] = { 0 };
    values[3] = FLT_MAX;
    values[4] = -FLT_TRUE_MIN;
    assert_int_equal(layout_check_finite(&layout, values, &why), 0);
    values[26] = -INFINITY;
    assert_int_equal(layout_check_finite(&layout, values, &why), FAULT_NAN);
    assert_non_null(strstr(why.text, "tensor 'head': number 2 is infinite"));
    values[20] = NAN;
    assert_int_equal(layout_check_finite(&layout, values, &why), FAULT_NAN);
    assert_non_null(strstr(why.text, "tensor 'norm': number 0 is NaN"));
}

TESTS(TEST(tensors_lie_one_after_another), TEST(every_element_finds_its_tensor),
      TEST(bad_tensors_are_refused_by_name), TEST(the_hash_sees_every_field),
      TEST(hash_is_that_of_the_canonical_form), TEST(a_copy_is_written_in_another_dtype),
      TEST(a_number_that_is_not_finite_is_named))
