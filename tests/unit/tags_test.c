// tags_test -- an item is registered once, with one tag, a good name and a size.

#include "common/vector/tags.h"
#include "tests/test.h"

#include <string.h>

enum { N = 103 };

static struct tags_item room[8];
static struct why why;

static struct tags registry(void)
{
    struct tags tags;
    tags_init(&tags, room, 8);
    assert_int_equal(tags_add(&tags, "residual", TAG_DROP, 11, 4, &why), 0);
    assert_int_equal(tags_add(&tags, "moment", TAG_RESHARD, N, 4, &why), 0);
    assert_int_equal(tags_add(&tags, "settings", TAG_REPLICATE, 5, 1, &why), 0);
    assert_int_equal(tags_add(&tags, "position", TAG_CUSTOM, 2, 8, &why), 0);
    return tags;
}

static void refuse(struct tags *tags, const char *name, enum tag tag, uint64_t elements,
                   uint32_t bytes, const char *word)
{
    const size_t count = tags->count;
    assert_int_equal(tags_add(tags, name, tag, elements, bytes, &why), FAULT_RANGE);
    assert_non_null(strstr(why.text, word));
    assert_int_equal(tags->count, count);
}

static void an_item_is_registered_once_with_one_tag(void **state)
{
    (void)state;
    struct tags tags = registry();
    refuse(&tags, "second", TAG_UNSET, 1, 1, "'second' has tag 0");
    refuse(&tags, "second", TAG_COUNT, 1, 1, "exactly one of drop, reshard, replicate, custom");
    refuse(&tags, "moment", TAG_RESHARD, N, 4, "registered already, as reshard");
    refuse(&tags, "moment", TAG_DROP, N, 4, "registered already, as reshard");
    refuse(&tags, "second", TAG_DROP, 0, 4, "0 elements");
    refuse(&tags, "second", TAG_DROP, ((uint64_t)1 << 48) + 1, 4, "2^48");
    refuse(&tags, "second", TAG_DROP, 1, 0, "0 bytes");
    refuse(&tags, "second", TAG_DROP, 1, 17, "17 bytes");
    refuse(&tags, "../up", TAG_DROP, 1, 1, "a-z");
    refuse(&tags, "", TAG_DROP, 1, 1, "a-z");
    refuse(&tags, "a-name-that-is-longer-than-the-47-characters-it-has", TAG_DROP, 1, 1, "47");
    tags.capacity = tags.count;
    assert_int_equal(tags_add(&tags, "second", TAG_DROP, 1, 1, &why), FAULT_LIMIT);
}

static void tags_have_names(void **state)
{
    (void)state;
    for (enum tag tag = TAG_DROP; tag < TAG_COUNT; tag++)
        assert_int_equal(tags_tag_from_name(tags_tag_name(tag)), tag);
    assert_int_equal(tags_tag_from_name("unset"), TAG_UNSET);
    assert_int_equal(tags_tag_from_name("shard"), TAG_UNSET);
}

TESTS(TEST(an_item_is_registered_once_with_one_tag), TEST(tags_have_names))
