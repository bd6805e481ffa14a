// What a life before left in the blob store: served as long as the run may need it, then gone, in the
// core's table and on disk.

#include "actors/member/blobs.h"
#include "common/bulk/blob_store.h"
#include "common/ensure.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { LEFT = 600, OUT_BYTES = 1 << 20, OUT_COUNT = 256, RUN_STEP = 40 };

static struct blobs blobs;
static struct wire_blob left[LEFT];
static struct wire_arena arena;
static char dir[] = "/tmp/blobs_test.XXXXXX";
static uint8_t out_bytes[OUT_BYTES];
static struct effect effects[OUT_COUNT];

static struct outbox outbox(void)
{
    return (struct outbox){ effects, 0, OUT_COUNT, out_bytes, 0, sizeof out_bytes };
}

static blob_store_t *open_store(void)
{
    blob_store_t *store;
    struct why why = { 0 };
    assert_int_equal(blob_store_new(&(struct blob_store_options){ .dir = dir, .lazy = true }, &why,
                                    &store), 0);
    return store;
}

static struct hash put(blob_store_t *store, unsigned number)
{
    struct hash hash;
    assert_int_equal(blob_store_put(store, &number, sizeof number, NULL, &hash), 0);
    return hash;
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *list = opendir(dir);
    for (struct dirent *entry; (entry = readdir(list)); ) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

// What learner and fetcher do with FORGET.
static void perform(blob_store_t *store, const struct outbox *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        const void *body;
        struct wire_refusal refusal;
        arena.used = 0;
        assert_int_equal(effects[i].kind, FRAME_FORGET);
        ensure(wire_unpack_body(effects[i].body, effects[i].bytes, FRAME_FORGET, &arena, &body,
                                &refusal));
        const struct wire_forget *job = body;
        for (uint32_t k = 0; k < job->blobs_count; k++)
            blob_store_forget(store, &job->blobs[k].hash);
    }
}

static void forget(blob_store_t *store, uint64_t before_step)
{
    struct outbox out = outbox();
    blobs_forget(&blobs, before_step, &out);
    perform(store, &out);
}

// A life ends with LEFT files; the next one opens the same directory.
static blob_store_t *begin_again(void)
{
    blob_store_t *store = open_store();
    for (unsigned i = 0; i < LEFT; i++) put(store, i);
    blob_store_destroy(&store);
    store = open_store();
    struct wire_inherited inherited = { left, blob_store_list(store, left, LEFT) };
    assert_int_equal(inherited.blobs_count, LEFT);
    memset(&blobs, 0, sizeof blobs);
    blobs_inherit(&blobs, &inherited);
    for (unsigned i = 0; i < LEFT; i++)
        assert_int_equal(blobs_state(&blobs, &left[i].hash), BLOB_HERE);
    return store;
}

static void what_a_life_leaves_goes_with_its_step(void **state)
{
    (void)state;
    blob_store_t *store = begin_again();
    forget(store, UINT64_MAX - 1);              // Nobody has said yet where the run is
    assert_int_equal(count_files(), LEFT);

    blobs_date(&blobs, RUN_STEP);
    blobs_date(&blobs, RUN_STEP + 100);         // Only the first time counts
    struct outbox out = outbox();
    blobs_forget_void(&blobs, RUN_STEP, &out);  // The round goes on that it was in; another begins
    blobs_forget_void(&blobs, RUN_STEP + 1, &out);
    assert_int_equal(out.count, 0);
    forget(store, RUN_STEP + 1);
    assert_int_equal(count_files(), LEFT);

    // A commit that is still to be applied names one of them, and needs it for longer.
    blobs_want(&blobs, &left[7].hash, left[7].bytes, RUN_STEP + 5, UINT32_MAX);
    assert_int_equal(blobs_state(&blobs, &left[7].hash), BLOB_HERE);
    forget(store, RUN_STEP + 2);
    assert_int_equal(count_files(), 1);
    assert_true(blob_store_has(store, &left[7].hash));
    forget(store, RUN_STEP + 6);
    assert_int_equal(count_files(), 0);
    assert_int_equal(blobs.count, 0);
    blob_store_destroy(&store);
}

// However much was left, there is room for what comes, and the next life takes the rest.
static void room_is_kept_for_what_comes(void **state)
{
    static struct wire_blob many[BLOBS_INHERITED_MAX];
    (void)state;
    memset(&blobs, 0, sizeof blobs);
    for (uint32_t i = 0; i < BLOBS_INHERITED_MAX; i++) many[i].hash = hash_of(&i, sizeof i);
    const uint32_t one_more = BLOBS_INHERITED_MAX;
    const struct wire_blob more = { hash_of(&one_more, sizeof one_more), 4 };
    blobs_inherit(&blobs, &(struct wire_inherited){ many, BLOBS_INHERITED_MAX });
    blobs_inherit(&blobs, &(struct wire_inherited){ &more, 1 });
    assert_int_equal(blobs.count, BLOBS_INHERITED_MAX);
    assert_int_equal(blobs_state(&blobs, &more.hash), BLOB_UNKNOWN);
    blobs_want(&blobs, &more.hash, more.bytes, 3, UINT32_MAX);
    assert_int_equal(blobs_state(&blobs, &more.hash), BLOB_WANTED);
}

static int set_up(void **state)
{
    (void)state;
    arena = (struct wire_arena){ .bytes = malloc(OUT_BYTES), .max = OUT_BYTES };
    return mkdtemp(dir) && arena.bytes ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(arena.bytes);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_life_leaves_goes_with_its_step),
        cmocka_unit_test(room_is_kept_for_what_comes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
