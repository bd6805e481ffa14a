// Which blobs the store removes, when, and on whose request: the blobs of an earlier life are
// served as long as the run may need them; late ones go at once; those that are asked for again
// stay.

#include "common/base/ensure.h"
#include "common/bulk/blob_store.h"
#include "common/member/blobs.h"
#include "tests/test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    assert_int_equal(
        blob_store_new(&(struct blob_store_options){ .dir = dir, .lazy = true }, &why, &store), 0);
    return store;
}

static struct hash put(blob_store_t *store, unsigned number)
{
    struct hash hash;
    assert_int_equal(blob_store_put(store, &number, sizeof number, NULL, &hash), 0);
    return hash;
}

static bool has(blob_store_t *store, const struct hash *hash)
{
    size_t bytes;
    return blob_store_size(store, hash, &bytes);
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *list = opendir(dir);
    for (struct dirent *entry; (entry = readdir(list));) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static uint32_t count_of(blob_store_t *store)
{
    static struct wire_blob listed[LEFT + 1];
    return blob_store_list(store, listed, LEFT + 1);
}

// What a member and its fetcher do with FORGET.
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
            if (effects[i].port == PORT_DISK) blob_store_drop(store, &job->blobs[k].hash);
            else blob_store_sweep(store, &job->blobs[k].hash);
    }
}

static void forget(blob_store_t *store, uint64_t before_step)
{
    struct outbox out = outbox();
    blobs_forget(&blobs, before_step, &out);
    perform(store, &out);
}

// A life ends with LEFT blobs; the next one opens the same directory.
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
    for (unsigned i = 0; i < LEFT; i++) assert_int_equal(blobs_state(&blobs, &left[i]), BLOB_HERE);
    return store;
}

static void what_a_life_leaves_goes_with_its_step(void **state)
{
    (void)state;
    blob_store_t *store = begin_again();
    forget(store, UINT64_MAX - 1); // The step of the run is not known yet
    assert_int_equal(count_of(store), LEFT);

    blobs_date(&blobs, RUN_STEP);
    blobs_date(&blobs, RUN_STEP + 100); // Only the first time counts
    struct outbox out = outbox();
    blobs_forget_step(&blobs, RUN_STEP, &out); // The round goes on that it was in; another begins
    blobs_forget_step(&blobs, RUN_STEP + 1, &out);
    assert_int_equal(out.count, 0);
    forget(store, RUN_STEP + 1);
    assert_int_equal(count_of(store), LEFT);

    // A commit that is still to be applied names one of them, and needs it for longer.
    blobs_want(&blobs, &left[7], RUN_STEP + 5, UINT32_MAX);
    assert_int_equal(blobs_state(&blobs, &left[7]), BLOB_HERE);
    forget(store, RUN_STEP + 2);
    assert_int_equal(count_of(store), 1);
    assert_true(count_files() > 0 && has(store, &left[7].hash));
    forget(store, RUN_STEP + 6);
    assert_int_equal(count_of(store), 0);
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
    assert_int_equal(blobs_state(&blobs, &more), BLOB_UNKNOWN);
    blobs_want(&blobs, &more, 3, UINT32_MAX);
    assert_int_equal(blobs_state(&blobs, &more), BLOB_WANTED);
}

// The FETCH that follows at this time, in a roster where the author is the one other member; NULL: none
// does.
static const struct wire_fetch *next_fetch(uint64_t now_ms, uint64_t run_step)
{
    static struct member member;
    struct outbox out = outbox();
    const void *body;
    struct wire_refusal refusal;
    member.roster.members[0] = (struct wire_member){ .endpoint = "tcp://127.0.0.1:1",
                                                     .role = ACTOR_TRAINER,
                                                     .state = MEMBER_HEALTHY };
    member.roster.count = 1, member.index = 1;
    member.now.step = run_step;
    blobs_fetch(&blobs, &member, now_ms, &out);
    arena.used = 0;
    if (out.count == 0) return NULL;
    ensure(
        wire_unpack_body(effects[0].body, effects[0].bytes, FRAME_FETCH, &arena, &body, &refusal));
    return body;
}

// Asks for it. The FETCH's turn.
static uint64_t fetch_turn(const struct hash *hash)
{
    blobs_want(&blobs, &(struct wire_blob){ *hash, 4 }, RUN_STEP, 0);
    const struct wire_fetch *fetch = next_fetch(1000, RUN_STEP + 1);
    assert_non_null(fetch);
    assert_int_equal(effects[0].port, PORT_FETCHER);
    return fetch->turn;
}

// Its author answers all others, and not us: the others have what the commit names. They are asked once,
// whether the author is still silent or has been given up.
static void what_a_commit_names_is_asked_for_at_once(void **state)
{
    (void)state;
    for (int given_up = 0; given_up <= 1; given_up++) {
        const struct wire_blob blob = { hash_of(&given_up, sizeof given_up), 4 };
        const struct wire_fetch *fetch;
        memset(&blobs, 0, sizeof blobs);
        blobs_want(&blobs, &blob, RUN_STEP, 0);
        assert_true((fetch = next_fetch(1000, RUN_STEP + 1)) && !fetch->urgent);
        const uint64_t first = fetch->turn;
        blobs_want(&blobs, &blob, RUN_STEP, 0); // Its claim, once more
        assert_null(next_fetch(1010, RUN_STEP + 1));
        const struct msg failed = { .now_ms = 1010,
                                    .kind = FRAME_FETCHED,
                                    .body = &(struct wire_fetched){ .hash = blob.hash,
                                                                    .turn = first } };
        struct outbox out = outbox();
        if (given_up) blobs_hear(&blobs, &(struct member_turn){ .in = &failed, .out = &out });
        blobs_want(&blobs, &blob, RUN_STEP, UINT32_MAX);
        assert_true((fetch = next_fetch(1020, RUN_STEP + 1)) && fetch->urgent &&
                    fetch->turn > first);
        blobs_want(&blobs, &blob, RUN_STEP, UINT32_MAX);
        assert_null(next_fetch(1030, RUN_STEP + 1));
        assert_int_equal(blobs_state(&blobs, &blob), BLOB_COMING);
    }
    const struct wire_blob old = { hash_of("old", 3), 4 };
    memset(&blobs, 0, sizeof blobs);
    blobs_want(&blobs, &old, RUN_STEP, UINT32_MAX); // We are behind, and fetch a lot
    const struct wire_fetch *fetch = next_fetch(1000, RUN_STEP + 1 + BLOBS_URGENT_STEPS);
    assert_true(fetch && !fetch->urgent);
}

static void hear_fetched(blob_store_t *store, const struct hash *hash, uint64_t turn)
{
    struct outbox out = outbox();
    const struct msg in = { .now_ms = 1000,
                            .kind = FRAME_FETCHED,
                            .body =
                                &(struct wire_fetched){ .hash = *hash, .ok = true, .turn = turn } };
    blobs_hear(&blobs, &(struct member_turn){ .in = &in, .out = &out });
    perform(store, &out);
}

// Seed 3670: the forgetting of what was there before must not hit what came since; and an answer
// from before the forgetting is no proof that anything is there now.
static void what_is_asked_for_again_stays(void **state)
{
    (void)state;
    memset(&blobs, 0, sizeof blobs);
    blob_store_t *store = open_store();
    const struct hash hash = put(store, 1);
    blobs_have(&blobs, &(struct wire_blob){ hash, 4 }, RUN_STEP - 1);
    forget(store, RUN_STEP);
    assert_false(has(store, &hash));

    const uint64_t first = fetch_turn(&hash);
    struct outbox out = outbox();
    blobs_forget(&blobs, RUN_STEP + 1, &out); // On its way: the fetcher is told, too
    assert_int_equal(out.count, 2);
    assert_int_equal(effects[1].port, PORT_FETCHER);
    const uint64_t second = fetch_turn(&hash);
    assert_true(second > first);
    hear_fetched(store, &hash, first);
    assert_int_equal(blobs_state(&blobs, &(struct wire_blob){ hash, 4 }), BLOB_COMING);
    put(store, 1);
    hear_fetched(store, &hash, second);
    assert_int_equal(blobs_state(&blobs, &(struct wire_blob){ hash, 4 }), BLOB_HERE);
    assert_true(has(store, &hash));

    const struct hash late = put(store, 2); // Two results that no round waits for
    out = outbox();
    blobs_spare(&blobs, &late, &out);
    blobs_spare(&blobs, &hash, &out); // ... but this one is still of use
    perform(store, &out);
    assert_true(blobs_spared_since(&blobs, &late)); // ... even if it is being made at this moment
    assert_false(blobs_spared_since(&blobs, &hash));
    blobs_mark(&blobs);
    assert_false(blobs_spared_since(&blobs, &late));
    assert_false(has(store, &late));
    assert_true(has(store, &hash));
    forget(store, RUN_STEP + 1);
    assert_int_equal(count_of(store), 0);
    blob_store_destroy(&store);
    store = open_store(); // It finds what was forgotten in the newest file, and forgets it again
    for (uint32_t n = blob_store_list(store, left, LEFT); n-- > 0;) {
        blob_store_drop(store, &left[n].hash);
        blob_store_sweep(store, &left[n].hash);
    }
    assert_int_equal(count_files(), 0);
    blob_store_destroy(&store);
}

// A liar says that the residual it was shown is its result: the hash of the one, the size of the
// other. Neither keeps the judges from having the residual, nor takes it from a member that needs
// it.
static void what_is_said_of_another_size_is_another_blob(void **state)
{
    (void)state;
    const struct wire_blob residual = { hash_of("residual", 8), 4000 }, lie = { residual.hash, 4 };
    struct outbox out = outbox();
    memset(&blobs, 0, sizeof blobs);
    blobs_want(&blobs, &lie, RUN_STEP, UINT32_MAX);
    blobs_have_kept(&blobs, &residual, RUN_STEP);
    assert_int_equal(blobs_state(&blobs, &residual), BLOB_HERE);
    assert_int_equal(blobs_state(&blobs, &lie), BLOB_WANTED);
    blobs_release(&blobs, &residual, &out);
    assert_int_equal(blobs_state(&blobs, &residual), BLOB_UNKNOWN);
    assert_int_equal(blobs_state(&blobs, &lie), BLOB_WANTED);
    blobs_release(&blobs, &lie, &out);
    assert_int_equal(blobs_state(&blobs, &lie), BLOB_WANTED);
    assert_int_equal(out.count, 0); // While either is of use, the store keeps it
    blobs_forget(&blobs, RUN_STEP + 1, &out);
    assert_int_equal(out.count, 2);
    assert_int_equal(blobs.count, 0);
}

// Results may have the size of a residual. What a commit names stays when the audit is over.
static void what_a_result_is_does_not_go_with_the_audit(void **state)
{
    (void)state;
    const struct wire_blob both = { hash_of("both", 4), 4000 }, late = { hash_of("late", 4), 4000 };
    struct outbox out = outbox();
    memset(&blobs, 0, sizeof blobs);
    blobs_want_kept(&blobs, &both, RUN_STEP, UINT32_MAX);
    blobs_want(&blobs, &both, RUN_STEP, UINT32_MAX); // As a commit, or whose claim comes later
    blobs_have(&blobs, &late, RUN_STEP);
    blobs_have_kept(&blobs, &late, RUN_STEP);
    blobs_want_kept(&blobs, &late, RUN_STEP, UINT32_MAX);
    blobs_release(&blobs, &both, &out);
    blobs_release(&blobs, &late, &out);
    blobs_release(&blobs, &late, &out);
    assert_int_equal(blobs_state(&blobs, &both), BLOB_WANTED);
    assert_int_equal(blobs_state(&blobs, &late), BLOB_HERE);
    assert_int_equal(out.count, 0);
}

// A member that audits and is audited may have one residual for both: the blob stays until both
// audits end.
static void what_two_audits_reveal_goes_with_the_last(void **state)
{
    (void)state;
    const struct wire_blob own = { hash_of("own", 3), 4000 };
    struct outbox out = outbox();
    memset(&blobs, 0, sizeof blobs);
    blobs_have_kept(&blobs, &own, RUN_STEP);
    blobs_want_kept(&blobs, &own, RUN_STEP, UINT32_MAX);
    blobs_release(&blobs, &own, &out);
    blobs_forget(&blobs, RUN_STEP + 9, &out); // However long it takes
    assert_int_equal(blobs_state(&blobs, &own), BLOB_HERE);
    assert_int_equal(out.count, 0);
    blobs_release(&blobs, &own, &out);
    assert_int_equal(blobs_state(&blobs, &own), BLOB_UNKNOWN);
    assert_int_equal(out.count, 2);
}

// However many results a step has, the table never fills.
static void a_large_run_keeps_fewer_steps(void **state)
{
    (void)state;
    assert_int_equal(blobs_steps_kept(64, 4), 64);
    assert_int_equal(blobs_steps_kept(64, 256), 64);
    assert_int_equal(blobs_steps_kept(64, 600), 27);
    assert_int_equal(blobs_steps_kept(64, MEMBERS_MAX), 1);
    assert_int_equal(blobs_steps_kept(34, 0), 34);
    struct outbox out = outbox();
    enum { RESULTS = 1000 };
    memset(&blobs, 0, sizeof blobs);
    for (uint64_t step = 1; step < 50; step++) {
        const uint64_t keep = blobs_steps_kept(64, RESULTS);
        out = outbox();
        if (step > keep) blobs_forget(&blobs, step - keep, &out);
        for (uint64_t i = 0; i < RESULTS; i++) {
            const uint64_t number = step * RESULTS + i;
            const struct wire_blob blob = { hash_of(&number, sizeof number), 4 };
            blobs_have(&blobs, &blob, step);
            assert_int_equal(blobs_state(&blobs, &blob), BLOB_HERE);
        }
    }
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

TESTS_WITH(set_up, tear_down, TEST(what_a_life_leaves_goes_with_its_step),
           TEST(room_is_kept_for_what_comes), TEST(what_is_asked_for_again_stays),
           TEST(what_a_commit_names_is_asked_for_at_once),
           TEST(what_is_said_of_another_size_is_another_blob),
           TEST(what_a_result_is_does_not_go_with_the_audit),
           TEST(what_two_audits_reveal_goes_with_the_last), TEST(a_large_run_keeps_fewer_steps))
