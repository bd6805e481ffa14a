// tags_test -- what is saved and loaded of an item follows from its tag, for any cut of the
// intervals.

#include "common/vector/tags.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { N = 103, WORKERS_MAX = 7, STEPS_MAX = 512 };
// One item of each tag, in order of registration.
enum { RESIDUAL, MOMENT, SETTINGS, POSITION };

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

static struct tags_cut even_cut(uint32_t workers, struct interval_piece pieces[WORKERS_MAX])
{
    for (uint32_t i = 0; i < workers; i++)
        pieces[i] = (struct interval_piece){ interval_share(N, i, workers), i };
    return (struct tags_cut){ .pieces = pieces, .count = workers, .workers = workers };
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

// Together the workers write each own value, each element of the moment once, the settings once.
static void saving_follows_from_the_tags(void **state)
{
    (void)state;
    const struct tags tags = registry();
    struct interval_piece pieces[WORKERS_MAX];
    const struct tags_cut cut = even_cut(3, pieces);
    unsigned own = 0, settings = 0, written[N] = { 0 };
    for (uint32_t worker = 0; worker < 3; worker++) {
        struct tags_step steps[STEPS_MAX];
        size_t count;
        assert_int_equal(tags_plan_save(&tags, &cut, worker, &why, steps, &count), 0);
        assert_in_range(count, 0, tags_plan_max(&tags, NULL, &cut));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(steps[i].deed, TAGS_COPY);
            if (steps[i].item == SETTINGS) settings++;
            else assert_int_equal(steps[i].from, worker);
            if (steps[i].item == RESIDUAL || steps[i].item == POSITION) own++;
            for (uint64_t k = steps[i].at.begin; steps[i].item == MOMENT && k < steps[i].at.end;
                 k++)
                written[k]++;
        }
    }
    assert_int_equal(own, 6);
    assert_int_equal(settings, 1);
    for (int k = 0; k < N; k++) assert_int_equal(written[k], 1);
}

static void load_one(const struct tags *tags, const struct tags_cut *before,
                     const struct tags_cut *now, uint32_t worker)
{
    struct tags_step steps[STEPS_MAX];
    size_t count;
    unsigned copied[4] = { 0 }, fresh[4] = { 0 }, gathered[4] = { 0 };
    const bool same = tags_cut_equal(before, now);
    assert_int_equal(tags_plan_load(tags, before, now, worker, &why, steps, &count), 0);
    assert_in_range(count, 0, tags_plan_max(tags, before, now));
    uint64_t held = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tags_step *step = &steps[i];
        if (step->deed == TAGS_FRESH) fresh[step->item]++;
        else if (step->deed == TAGS_GATHER) assert_int_equal(step->from, gathered[step->item]++);
        else copied[step->item]++;
        if (step->item != MOMENT) continue;
        held += interval_length(step->at);
        bool theirs = false, ours = false; // The old holder had it and the new one wants it
        for (size_t k = 0; k < before->count; k++)
            theirs |= before->pieces[k].owner == step->from &&
                      interval_contains(before->pieces[k].at, step->at);
        for (size_t k = 0; k < now->count; k++)
            ours |=
                now->pieces[k].owner == worker && interval_contains(now->pieces[k].at, step->at);
        assert_true(theirs && ours);
    }
    uint64_t wanted = 0;
    for (size_t k = 0; k < now->count; k++)
        if (now->pieces[k].owner == worker) wanted += interval_length(now->pieces[k].at);
    assert_int_equal(held, wanted);
    assert_int_equal(copied[RESIDUAL], same);
    assert_int_equal(fresh[RESIDUAL], !same);
    assert_int_equal(copied[SETTINGS], 1);
    assert_int_equal(copied[POSITION], same);
    assert_int_equal(gathered[POSITION], same ? 0 : before->workers);
}

static void loading_follows_from_the_tags_at_any_numbers(void **state)
{
    (void)state;
    const struct tags tags = registry();
    for (uint32_t n = 1; n <= WORKERS_MAX; n++) {
        for (uint32_t m = 1; m <= WORKERS_MAX; m++) {
            struct interval_piece old_pieces[WORKERS_MAX], new_pieces[WORKERS_MAX];
            const struct tags_cut before = even_cut(n, old_pieces), now = even_cut(m, new_pieces);
            for (uint32_t worker = 0; worker < m; worker++) load_one(&tags, &before, &now, worker);
        }
    }
}

// As many workers as before, other intervals: that is another cut.
static void cuts_are_compared_and_not_counted(void **state)
{
    (void)state;
    const struct tags tags = registry();
    const struct interval_piece a[] = { { { 0, 50 }, 0 }, { { 50, N }, 1 } };
    const struct interval_piece b[] = { { { 0, 51 }, 0 }, { { 51, N }, 1 } };
    const struct interval_piece c[] = { { { 0, 50 }, 1 }, { { 50, N }, 0 } };
    const struct tags_cut first = { a, 2, 2 }, moved = { b, 2, 2 }, swapped = { c, 2, 2 },
                          idle = { a, 2, 3 };
    assert_true(tags_cut_equal(&first, &first));
    assert_false(tags_cut_equal(&first, &moved));
    assert_false(tags_cut_equal(&first, &swapped));
    assert_false(tags_cut_equal(&first, &idle));
    for (uint32_t worker = 0; worker < 2; worker++) {
        load_one(&tags, &first, &first, worker);
        load_one(&tags, &first, &moved, worker);
        load_one(&tags, &first, &swapped, worker);
    }
    load_one(&tags, &first, &idle, 2);
}

// Values carried through a chain of random cuts, pieces of any length, several per worker.
static void chains_of_cuts_keep_every_value(void **state)
{
    (void)state;
    const struct tags tags = registry();
    static struct interval_piece pieces[2][N];
    static float held[2][WORKERS_MAX][N];
    struct tags_cut cuts[2];
    unsigned seed = 5;
    for (uint64_t k = 0; k < N; k++) held[0][0][k] = (float)k;
    pieces[0][0] = (struct interval_piece){ { 0, N }, 0 };
    cuts[0] = (struct tags_cut){ pieces[0], 1, 1 };
    for (int turn = 1; turn < 200; turn++) {
        const int old = (turn - 1) & 1, new = turn & 1;
        const uint32_t workers = 1 + (uint32_t)rand_r(&seed) % WORKERS_MAX;
        size_t count = 0;
        for (uint64_t reached = 0; reached < N; count++) {
            const uint64_t end = reached + 1 + (uint64_t)rand_r(&seed) % 30;
            pieces[new][count] = (struct interval_piece){ { reached, end < N ? end : N },
                                                          (uint32_t)rand_r(&seed) % workers };
            reached = pieces[new][count].at.end;
        }
        cuts[new] = (struct tags_cut){ pieces[new], count, workers };
        memset(held[new], 0xff, sizeof held[new]);
        for (uint32_t worker = 0; worker < workers; worker++) {
            struct tags_step steps[STEPS_MAX];
            size_t step_count;
            assert_int_equal(
                tags_plan_load(&tags, &cuts[old], &cuts[new], worker, &why, steps, &step_count), 0);
            for (size_t i = 0; i < step_count; i++) {
                if (steps[i].item != MOMENT) continue;
                for (uint64_t k = steps[i].at.begin; k < steps[i].at.end; k++)
                    held[new][worker][k] = held[old][steps[i].from][k];
            }
        }
        for (size_t i = 0; i < count; i++) {
            for (uint64_t k = pieces[new][i].at.begin; k < pieces[new][i].at.end; k++)
                assert_true(held[new][pieces[new][i].owner][k] == (float)k);
        }
    }
}

static void bad_cuts_give_no_plan(void **state)
{
    (void)state;
    const struct tags tags = registry();
    struct interval_piece pieces[WORKERS_MAX];
    const struct tags_cut good = even_cut(2, pieces);
    const struct interval_piece hole[] = { { { 0, 50 }, 0 }, { { 51, N }, 1 } };
    const struct interval_piece both[] = { { { 0, 52 }, 0 }, { { 51, N }, 1 } };
    const struct interval_piece stranger[] = { { { 0, 50 }, 0 }, { { 50, N }, 2 } };
    const struct {
        struct tags_cut cut;
        const char *word;
    } bad[] = {
        { { hole, 2, 2 }, "does not tile the 103 elements of state item 'moment'" },
        { { both, 2, 2 }, "overlap" },
        { { stranger, 2, 2 }, "piece 1 to worker 2 of 2" },
    };
    struct tags_step steps[STEPS_MAX];
    size_t count = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tags_plan_save(&tags, &bad[i].cut, 0, &why, steps, &count), FAULT_RANGE);
        assert_non_null(strstr(why.text, bad[i].word));
        assert_int_equal(tags_plan_load(&tags, &bad[i].cut, &good, 0, &why, steps, &count),
                         FAULT_RANGE);
        assert_non_null(strstr(why.text, "saved cut"));
        assert_int_equal(tags_plan_load(&tags, &good, &bad[i].cut, 0, &why, steps, &count),
                         FAULT_RANGE);
        assert_non_null(strstr(why.text, "present cut"));
    }
    assert_int_equal(count, 77);
}

TESTS(TEST(an_item_is_registered_once_with_one_tag), TEST(tags_have_names),
      TEST(saving_follows_from_the_tags), TEST(loading_follows_from_the_tags_at_any_numbers),
      TEST(cuts_are_compared_and_not_counted), TEST(chains_of_cuts_keep_every_value),
      TEST(bad_cuts_give_no_plan))
