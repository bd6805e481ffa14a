// windows_member_test -- a trainer in windows: which windows its learner gets, how one ends, and what it tells.

#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include "common/pace/windows/window.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { STEP = 100, ME = 1, INSTANCE = 7 };

extern const struct member_pace member_pace_windows;

static struct member *member;
static struct replica replica;
static struct blobs *blobs;
static uint8_t *state;
static struct effect effects[32];
static uint8_t out_bytes[1 << 16], arena_bytes[1 << 16];
static struct outbox out;
static uint64_t now_ms;

static int set_up(void **unused)
{
    (void)unused;
    free(member);
    free(state);
    free(blobs);
    member = calloc(1, sizeof *member);
    state = calloc(1, sizeof(struct pace_part));
    blobs = calloc(1, sizeof *blobs);
    assert_true(member && state && blobs);
    member->role = ACTOR_TRAINER;
    member->index = ME;
    member->instance = INSTANCE;
    member->admitted = member->has_config = member->has_run = true;
    static const struct wire_windows_config windows = { .lanes = 8,
                                                        .parts = PARTS_MOMENTS,
                                                        .memory_every = 1,
                                                        .buddies = 1,
                                                        .batch_start = 4,
                                                        .batch_end = 4 };
    member->config.heartbeat_ms = 1000;
    member->config.seq_len = 16;
    member->config.strategy = (struct wire_part){ FRAME_WINDOWS_CONFIG, &windows };
    member->now = (struct wire_run){ .phase = PHASE_TRAIN, .step = STEP, .pin_step = STEP };
    member->roster.count = 2;
    replica = (struct replica){ .built = true,
                                .holding = true,
                                .ready = true,
                                .step = STEP,
                                .pin_step = STEP,
                                .digest = hash_of("a", 1) };
    now_ms = 1000;
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    free(member);
    free(state);
    free(blobs);
    member = NULL;
    state = NULL;
    blobs = NULL;
    return 0;
}

// The trainer hears this, and does what is due. What it says is in `out`.
static void hear(uint16_t kind, const void *body, unsigned heard)
{
    const struct msg in = {
        .now_ms = now_ms += 10, .kind = kind, .run = "", .from = "", .body = body
    };
    out = (struct outbox){ effects, 0, 32, out_bytes, 0, sizeof out_bytes };
    const struct member_turn turn = { .member = member,
                                      .blobs = blobs,
                                      .replica = &replica,
                                      .in = &in,
                                      .out = &out,
                                      .heard = heard };
    member_pace_windows.hear(state, &turn);
    replica.ready = replica.holding && !replica.applying;
    member_pace_windows.look(state, &turn);
}

// The newest thing of this kind that it says; NULL: nothing.
static const void *said(uint16_t kind)
{
    struct wire_arena arena = { .bytes = arena_bytes, .max = sizeof arena_bytes };
    struct wire_refusal refusal;
    const void *body = NULL;
    for (uint32_t i = 0; i < out.count; i++)
        if (effects[i].kind == kind)
            assert_true(
                wire_unpack_body(effects[i].body, effects[i].bytes, kind, &arena, &body, &refusal));
    return body;
}

// Four steps from `step`. Its group is member 0 and us. `closed_from` to `closed` ended at `closed_at`.
static void hear_window(uint64_t number, uint64_t step, uint64_t closed_from, uint64_t closed,
                        uint64_t closed_at)
{
    static const struct wire_place group[] = { { .member = 0, .instance = 3 },
                                               { .member = ME, .instance = INSTANCE } };
    static const struct interval samples = { 0, 16 };
    static const uint8_t lr_bits[16];
    hear(FRAME_WINDOW,
         &(struct wire_window){ .number = number,
                                .step = step,
                                .steps = 4,
                                .lr_bits = { lr_bits, 16 },
                                .samples = &samples,
                                .samples_count = 1,
                                .group = group,
                                .group_count = 2,
                                .closed_from = closed_from,
                                .closed = closed,
                                .closed_at = closed_at },
         HEARD_PACE);
}

// The coordinator's word, too, is looked at before a learner works by it.
static void a_window_whose_lists_do_not_fit_is_ignored(void **unused)
{
    (void)unused;
    struct wire_place group[] = { { .member = ME, .instance = INSTANCE }, { .member = ME } };
    const struct interval samples = { 0, 16 };
    const uint8_t lr_bits[16] = { 0 };
    const struct wire_window sound = { .number = 1,
                                       .step = STEP,
                                       .steps = 4,
                                       .lr_bits = { lr_bits, 16 },
                                       .samples = &samples,
                                       .samples_count = 1,
                                       .group = group,
                                       .group_count = 1 };
    struct wire_window bad[4] = { sound, sound, sound, sound };
    bad[0].lr_bits.count = 12;
    bad[1].steps = 3;
    bad[2].group_count = 2; // One member twice
    bad[3].group_count = 0;
    for (int i = 0; i < 4; i++) {
        hear(FRAME_WINDOW, &bad[i], HEARD_PACE);
        assert_null(said(FRAME_TAKE_WINDOW));
    }
    hear(FRAME_WINDOW, &sound, HEARD_PACE);
    assert_non_null(said(FRAME_TAKE_WINDOW));
}

static void hear_closing(uint64_t from, uint64_t to, uint64_t at)
{
    hear(FRAME_STEPS, &(struct wire_steps){ .number = from, .step = at, .end = at, .closed = to },
         HEARD_PACE);
}

static void hear_links(void)
{
    hear(FRAME_LINKS, &(struct wire_links){ .endpoint = "tcp://127.0.0.1:7000" }, 0);
    assert_non_null(said(FRAME_STANDS));
}

static uint64_t taken(void) // The window that the learner is given; 0: none
{
    const struct wire_take_window *job = said(FRAME_TAKE_WINDOW);
    return job ? job->number : 0;
}

// ---- cases --------------------------------------------------------------------------------------

static void windows_follow_one_another(void **unused)
{
    (void)unused;
    hear_window(1, STEP, 0, 0, 0);
    assert_int_equal(taken(), 1);
    assert_true(replica.applying);
    hear_window(2, STEP + 4, 0, 0, 0); // Before the first is done
    assert_int_equal(taken(), 2);
    hear_window(2, STEP + 4, 0, 0, 0);
    assert_int_equal(taken(), 0);
}

static void a_window_that_begins_elsewhere_waits(void **unused)
{
    (void)unused;
    hear_window(2, STEP + 4, 0, 0, 0);
    assert_int_equal(taken(), 0);
    assert_non_null(said(FRAME_ASK)); // The one before it was lost
    hear_window(1, STEP, 0, 0, 0);
    assert_int_equal(taken(), 1);
    hear(FRAME_WAKE, NULL, HEARD_TICK);
    assert_int_equal(taken(), 2);
}

static void it_says_where_it_stands(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear(FRAME_STEPPED, &(struct wire_stepped){ .window = 1, .step = STEP + 1 }, 0);
    assert_null(said(FRAME_STANDS)); // At the next heartbeat
    hear(FRAME_STEPPED, &(struct wire_stepped){ .window = 1, .step = STEP + 3 }, 0);
    const struct wire_stands *stands = said(FRAME_STANDS); // Past the middle
    assert_non_null(stands);
    assert_int_equal(stands->instance, INSTANCE);
    assert_int_equal(stands->window, 1);
    assert_int_equal(stands->step, STEP + 3);
    assert_int_equal(member->step_held, STEP + 3);
}

// Its state is not that of the others: it says so, and fetches another one once the window is closed.
static void a_state_that_differs_is_said_and_dropped(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear(FRAME_BROKE, &(struct wire_broke){ .window = 1, .step = STEP + 1, .differ = 1 }, 0);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->broken && stands->differ == 1 && !stands->has);
    hear_closing(1, 1, STEP + 1);
    assert_non_null(said(FRAME_CLOSE_WINDOW));
    hear(FRAME_CLOSED_WINDOW, &(struct wire_closed_window){ .window = 1, .step = STEP + 1 }, 0);
    assert_false(replica.holding);
    stands = said(FRAME_STANDS);
    assert_true(!stands || (!stands->broken && stands->differ == 0));
}

// The list goes to the learner once its model is built and the roster knows these processes; what the learner says of
// its links goes to the coordinator at once. A model that is built again has no links.
static void it_links_with_those_that_a_window_may_name(void **unused)
{
    (void)unused;
    const struct wire_place trainers[] = {
        { .member = 0, .instance = 4, .links = "tcp://10.0.0.1:1" },
        { .member = ME, .instance = INSTANCE }
    };
    hear(FRAME_LINKING,
         &(struct wire_linking){ .number = 7, .trainers = trainers, .trainers_count = 2 },
         HEARD_PACE);
    assert_null(said(FRAME_EXPECT)); // No model
    hear_links();
    assert_null(said(FRAME_EXPECT)); // The roster is behind
    member->roster.members[0].instance = 4;
    member->roster.members[ME].instance = INSTANCE;
    hear(FRAME_WAKE, NULL, HEARD_TICK);
    const struct wire_expect *job = said(FRAME_EXPECT);
    assert_true(job && job->number == 7 && job->trainers_count == 2);
    assert_string_equal(job->trainers[0].endpoint, "tcp://10.0.0.1:1");
    hear(FRAME_LINKS, &(struct wire_links){ "tcp://127.0.0.1:7000", 7, 3 }, 0);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->linking == 7 && stands->linked == 3);
    assert_null(said(FRAME_EXPECT));
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(1, 1, STEP);
    hear(FRAME_CLOSED_WINDOW, &(struct wire_closed_window){ 1, STEP, true, .reason = "" }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->linking == 7 && stands->linked == 3);
    hear_links();
    assert_non_null(said(FRAME_EXPECT));
}

// It has not begun the window when LEVEL comes, and does not begin it any more: the coordinator counts on the
// answer.
static void a_frozen_window_is_not_begun(void **unused)
{
    (void)unused;
    hear_links();
    hear(FRAME_LEVEL, &(struct wire_level){ .window = 1, .level = 9 }, HEARD_PACE);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_non_null(stands);
    assert_int_equal(stands->level, 9);
    assert_int_equal(stands->step, STEP);
    assert_false(stands->has);
    hear_window(1, STEP, 0, 0, 0);
    assert_int_equal(taken(), 0);
    hear_window(2, STEP, 1, 1, STEP);
    assert_int_equal(taken(), 2);
}

static void a_window_in_hand_is_frozen_and_closed(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear(FRAME_LEVEL, &(struct wire_level){ .window = 1, .level = 9 }, HEARD_PACE);
    assert_non_null(said(FRAME_FREEZE));
    const struct wire_stands *stands = said(FRAME_STANDS); // It lives, and its learner is asked
    assert_true(stands && stands->heard == 9 && stands->level == 0 && stands->step == STEP);
    hear(FRAME_FROZEN, &(struct wire_frozen){ 1, 9, STEP + 1, true, 4, 0, 0, 0, 0, false }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->level == 9 && stands->step == STEP + 1 && stands->has);
    assert_true(stands->heard == 0 && stands->dead == 4);
    hear_closing(1, 1, STEP + 2);
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->window == 1 && job->end == STEP + 2);
    hear(FRAME_CLOSED_WINDOW, &(struct wire_closed_window){ 1, STEP + 2, true, .reason = "" }, 0);
    assert_false(replica.applying);
    assert_int_equal(replica.step, STEP + 2);
    assert_true(replica.holding && hash_is_none(&replica.digest));
}

static void who_cannot_reach_the_end_drops_its_state(void **unused)
{
    (void)unused;
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(1, 1, STEP + 2);
    assert_non_null(said(FRAME_CLOSE_WINDOW));
    hear(FRAME_CLOSED_WINDOW,
         &(struct wire_closed_window){ 1, STEP, false, .reason = "not in memory" }, 0);
    assert_false(replica.holding);
    assert_false(replica.applying);
}

// Others would wait for it in a window that names it: it says at once that it cannot go on. So it does until it has
// begun one.
static void who_has_lost_its_state_is_not_waited_for(void **unused)
{
    (void)unused;
    hear_links();
    who_cannot_reach_the_end_drops_its_state(unused);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->lost && !stands->broken);
    hear_window(2, STEP + 2, 1, 1, STEP + 2);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->lost && stands->broken && stands->window == 2 &&
                stands->step == 0);
    assert_int_equal(taken(), 0);
    hear_closing(2, 2, STEP + 2);
    replica.holding = true, replica.step = replica.pin_step = STEP + 2;
    hear_window(3, STEP + 2, 2, 2, STEP + 2);
    assert_int_equal(taken(), 3);
    now_ms += 5000;
    hear(FRAME_BROKE, &(struct wire_broke){ .window = 3, .step = STEP + 2 }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && !stands->lost && stands->broken && stands->window == 3);
}

// Window 1 ended one step further than it could get, and window 2, which names it, is over. It keeps what it has, and
// says that this is not the run's step: else it would be waited for as one that may hold it (seed 140266). Where the run
// is no further, nothing is lost.
static void who_is_left_behind_says_so(void **unused)
{
    for (uint64_t ahead = 0; ahead <= 1; ahead++) {
        set_up(unused);
        member->now.step = STEP + ahead;
        hear_links();
        hear_window(1, STEP, 0, 0, 0);
        hear_closing(2, 2, STEP + ahead);
        hear(FRAME_FROZEN, &(struct wire_frozen){ 1, 1, STEP, false, 0, 0, 0, 0, 0, false }, 0);
        const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
        assert_true(job && job->end == STEP);
        hear(FRAME_CLOSED_WINDOW, &(struct wire_closed_window){ 1, STEP, true, .reason = "" }, 0);
        const struct wire_stands *stands = said(FRAME_STANDS);
        assert_true(stands && stands->window == 1 && stands->step == STEP);
        assert_true(replica.holding && stands->lost == (ahead > 0));
    }
}

// The others' shares may be lost: the coordinator knows who needs them.
static void who_holds_a_share_says_so_until_the_next_window(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(1, 1, STEP + 2);
    hear(FRAME_CLOSED_WINDOW,
         &(struct wire_closed_window){ .window = 1, .step = STEP + 2, .ok = true, .share = true },
         0);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->share && !stands->lost && stands->window == 1);
    hear_window(2, STEP + 2, 1, 1, STEP + 2);
    now_ms += 5000;
    hear(FRAME_WAKE, NULL, HEARD_TICK); // The learner has not said anything of it yet
    stands = said(FRAME_STANDS);
    assert_true(stands && !stands->share && stands->window == 2);
    now_ms += 5000;
    hear(FRAME_BROKE, &(struct wire_broke){ .window = 2, .step = STEP + 2 }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && !stands->share && stands->window == 2);
}

// So nobody waits for it if it dies then: without the others' shares its own is of no use.
static void who_has_taken_a_step_holds_a_share(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    now_ms += 5000;
    hear(FRAME_STEPPED, &(struct wire_stepped){ .window = 1, .step = STEP + 1, .share = true }, 0);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->share && stands->step == STEP + 1);
}

// ---- memory saves -------------------------------------------------------------------------------

static const struct wire_blob lists[2] = { { { { 1 } }, 32 }, { { { 2 } }, 64 } };

static void hear_listed(void)
{
    hear(FRAME_LISTED,
         &(struct wire_listed){
             .window = 1, .step = STEP + 1, .place = 1, .lists = lists, .lists_count = 2 },
         0);
}

static void hear_fetched(uint64_t turn, bool ok)
{
    hear(FRAME_FETCHED_SHARE,
         &(struct wire_fetched_share){
             .turn = turn, .step = STEP + 1, .ok = ok, .digest = { { ok ? 9 : 0 } } },
         0);
}

// Once the list of the other is here, the share is asked for, again if that fails. Its digest is said. The lists stay until
// all have what they need: until the save is on record.
static void a_share_is_kept_with_that_of_the_other(bool told_by_run)
{
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear_listed();
    assert_null(said(FRAME_FETCH_SHARE));
    assert_true(blobs_state(blobs, &lists[0]) == BLOB_WANTED &&
                blobs_state(blobs, &lists[1]) == BLOB_HERE);
    blobs_have(blobs, &lists[0], STEP + 1);
    hear(FRAME_WAKE, NULL, 0);
    const struct wire_fetch_share *job = said(FRAME_FETCH_SHARE);
    assert_true(job && job->step == STEP + 1 && job->place == 1 && job->buddies == 1 &&
                job->lists_count == 2);
    const uint64_t first = job->turn;
    hear_fetched(first, false);
    assert_null(said(FRAME_FETCH_SHARE));
    now_ms += 1000;
    hear(FRAME_WAKE, NULL, 0);
    job = said(FRAME_FETCH_SHARE);
    assert_true(job && job->turn > first);
    const uint64_t second = job->turn;
    hear_fetched(first, true); // Of before
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(!stands || stands->kept_step == 0);
    hear_fetched(second, true);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->kept_step == STEP + 1 && stands->kept_window == 1 &&
                stands->kept.bytes[0] == 9);
    assert_int_equal(blobs_state(blobs, &lists[1]), BLOB_HERE);
    member->now.memory_step = STEP + 1, member->now.memory_window = 1;
    const struct wire_steps steps = {
        .number = 1, .step = STEP, .end = STEP + 1, .kept_step = STEP + 1, .kept_window = 1
    };
    if (told_by_run) hear(FRAME_RUN, &member->now, HEARD_RUN);
    else hear(FRAME_STEPS, &steps, HEARD_PACE);
    const struct wire_kept *kept = said(FRAME_KEPT);
    assert_true(kept && kept->step == STEP + 1 && kept->window == 1);
    assert_int_equal(blobs_state(blobs, &lists[1]), BLOB_UNKNOWN);
}

static void the_steps_say_that_a_share_is_kept(void **unused)
{
    (void)unused;
    a_share_is_kept_with_that_of_the_other(false);
}

static void the_run_says_that_a_share_is_kept(void **unused)
{
    (void)unused;
    a_share_is_kept_with_that_of_the_other(true);
}

// Where window 1 ended, nobody has said. One step is applied and another is in memory; the commits say whether they are
// the run's.
static void freeze_in_the_dark(void)
{
    member->now.step = STEP + 9;
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(5, 6, STEP + 9);
    assert_null(said(FRAME_CLOSE_WINDOW));
    assert_non_null(said(FRAME_FREEZE));
    hear(FRAME_FROZEN, &(struct wire_frozen){ 1, 1, STEP + 1, true, 0, 0, 0, 0, 0, false }, 0);
    const struct wire_ask *ask = said(FRAME_ASK);
    assert_true(ask && ask->topic == TOPIC_COMMITS && ask->from == STEP);
    assert_null(said(FRAME_CLOSE_WINDOW));
}

static void hear_commits(uint64_t number, uint64_t step, uint64_t end)
{
    now_ms += MEMBER_RETRY_MS;
    hear(FRAME_STEPS, &(struct wire_steps){ .number = number, .step = step, .end = end },
         HEARD_PACE);
}

// `number`: the window that committed the step in memory here.
static void close_by_commit(uint64_t number, uint64_t expected)
{
    freeze_in_the_dark();
    hear_commits(1, STEP, STEP + 1);
    const struct wire_ask *ask = said(FRAME_ASK);
    assert_true(ask && ask->topic == TOPIC_COMMITS && ask->from == STEP + 1);
    assert_null(said(FRAME_CLOSE_WINDOW));
    hear_commits(number, STEP + 1, STEP + 3);
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->end == expected);
}

static void a_later_closing_says_nothing_of_this_window(void **unused)
{
    (void)unused;
    close_by_commit(3, STEP + 1);
}

static void a_step_in_memory_is_the_runs(void **unused)
{
    (void)unused;
    close_by_commit(1, STEP + 2);
}

// The run gave window 1 up at STEP, and another window has made the same step since: what is applied here is another
// state, and is dropped.
static void another_window_has_made_the_step_that_is_applied(void **unused)
{
    (void)unused;
    freeze_in_the_dark();
    hear_commits(3, STEP, STEP + 3);
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->end == STEP);
}

// Two windows in hand: the learner says the newer one when it freezes, and stands in the older one.
static void a_step_of_the_older_of_two_windows_is_the_runs(void **unused)
{
    (void)unused;
    member->now.step = STEP + 9;
    hear_window(1, STEP, 0, 0, 0);
    hear_window(2, STEP + 4, 0, 0, 0);
    hear_closing(5, 6, STEP + 20);
    hear(FRAME_FROZEN, &(struct wire_frozen){ 2, 1, STEP + 1, true, 0, 0, 0, 0, 0, false }, 0);
    hear_commits(1, STEP, STEP + 2);
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->end == STEP + 2);
}

// A restore took the run behind the step that is applied here: no commit of it will ever be told.
static void a_step_that_a_restore_gave_up_is_dropped(void **unused)
{
    (void)unused;
    member->now.step = STEP;
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(5, 6, STEP + 9);
    member->now.restored_step = STEP;
    member->now.restored_epoch = replica.epoch + 1;
    hear(FRAME_FROZEN, &(struct wire_frozen){ 1, 1, STEP + 2, false, 0, 0, 0, 0, 0, false }, 0);
    assert_null(said(FRAME_ASK));
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->end == STEP);
}

// The run has given window 1 up and is behind what is applied here: that is no step of the run.
static void a_window_that_was_given_up_leaves_no_step(void **unused)
{
    (void)unused;
    member->now.step = STEP;
    hear_window(1, STEP, 0, 0, 0);
    hear_closing(5, 6, STEP);
    hear(FRAME_FROZEN, &(struct wire_frozen){ 1, 1, STEP + 2, false, 0, 0, 0, 0, 0, false }, 0);
    const struct wire_close_window *close = said(FRAME_CLOSE_WINDOW);
    assert_true(close && close->window == 1 && close->end == STEP);
}

static void an_epoch_that_ends_wants_the_digest(void **unused)
{
    (void)unused;
    hear_window(1, STEP, 0, 0, 0);
    hear(FRAME_STEPPED, &(struct wire_stepped){ .window = 1, .step = STEP + 4 }, 0);
    member->now.phase = PHASE_COOLDOWN;
    member->now.round = 1;
    member->now.step = STEP + 4;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    const struct wire_close_window *job = said(FRAME_CLOSE_WINDOW);
    assert_true(job && job->end == STEP + 4 && job->digest);
    hear(FRAME_CLOSED_WINDOW,
         &(struct wire_closed_window){ 1, STEP + 4, true, hash_of("b", 1), "", false }, 0);
    const struct wire_holds *holds = said(FRAME_HOLDS);
    assert_true(holds && holds->step == STEP + 4);
}

static void a_pause_stops_the_group(void **unused)
{
    (void)unused;
    hear_window(1, STEP, 0, 0, 0);
    member->now.pausing = true;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_non_null(said(FRAME_STOP_WINDOW));
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_null(said(FRAME_STOP_WINDOW));
}

// It says so, stops the group, and stays in the run until the window is over.
static void a_member_that_leaves_stops_its_group_first(void **unused)
{
    (void)unused;
    hear(FRAME_LINKS, &(struct wire_links){ .endpoint = "tcp://127.0.0.1:7001" }, 0);
    hear_window(1, STEP, 0, 0, 0);
    assert_true(member->leaves_later);
    member->leaving = true;
    now_ms += 2000;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_non_null(said(FRAME_STOP_WINDOW));
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->leaves && !stands->stopped);
    hear(FRAME_STEPPED,
         &(struct wire_stepped){ .window = 1, .step = STEP + 2, .loss = 1, .stopped = true }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->leaves && stands->stopped && stands->step == STEP + 2);
    hear(FRAME_STEPS,
         &(struct wire_steps){ .number = 1, .step = STEP, .end = STEP + 2, .closed = 1 },
         HEARD_PACE);
    assert_non_null(said(FRAME_CLOSE_WINDOW));
    hear(FRAME_CLOSED_WINDOW,
         &(struct wire_closed_window){ 1, STEP + 2, true, { { 0 } }, "", false }, 0);
    assert_false(member->leaves_later);
    assert_null(said(FRAME_STANDS));
}

static void a_checkpointer_takes_no_window(void **unused)
{
    (void)unused;
    member->role = ACTOR_CHECKPOINTER;
    hear_window(1, STEP, 0, 0, 0);
    assert_int_equal(taken(), 0);
    assert_true(replica.follows_pins && !replica.waits_for_pin);
    assert_int_equal(member->round, 1);
}

static void who_is_late_is_said_at_once(void **unused)
{
    (void)unused;
    hear_links();
    hear_window(1, STEP, 0, 0, 0);
    hear(FRAME_STEPPED,
         &(struct wire_stepped){
             .window = 1, .step = STEP + 1, .samples = 3, .train_ms = 70, .apply_ms = 8 },
         0);
    const struct wire_progress *progress = said(FRAME_PROGRESS);
    assert_true(progress && progress->samples == 3); // And its own times, not the group's
    assert_true(progress->train_ms == 70 && progress->apply_ms == 8);
    hear(FRAME_STEPPED,
         &(struct wire_stepped){
             .window = 1, .step = STEP + 1, .late = 1, .late_ms = 3700, .usual_ms = 900 },
         0);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_non_null(stands);
    assert_int_equal(stands->late, 1);
    assert_int_equal(stands->late_ms, 3700);
    assert_int_equal(stands->usual_ms, 900);
    hear(FRAME_STEPPED, &(struct wire_stepped){ .window = 1, .step = STEP + 1, .late = 1 }, 0);
    assert_null(said(FRAME_STANDS)); // Nothing new
    hear(FRAME_BROKE,
         &(struct wire_broke){ .window = 1, .step = STEP + 1, .missing = 1, .overdue = true }, 0);
    stands = said(FRAME_STANDS);
    assert_true(stands && stands->broken && stands->overdue && stands->late == 1);
}

// ---- a trainer of a run with parameter servers ----------------------------------------------------

// Member 2 is the server. The trainer holds no state, and has links.
static void be_without_a_state(void)
{
    static struct wire_windows_config with;
    with = *(const struct wire_windows_config *)member->config.strategy.body;
    with.servers = 1;
    member->config.strategy.body = &with;
    member->roster.count = 3;
    replica.holding = replica.ready = false;
    hear(FRAME_RUN, &member->now, HEARD_CONFIG);
    hear_links();
}

static uint64_t epoch_of_servers;

static void hear_window_of_server(uint64_t number, uint64_t step)
{
    static const struct wire_place group[] = { { .member = ME, .instance = INSTANCE },
                                               { .member = 2, .instance = 3 } };
    static const struct interval samples = { 0, 16 };
    static const uint8_t lr_bits[16];
    hear(FRAME_WINDOW,
         &(struct wire_window){ .number = number,
                                .epoch = epoch_of_servers,
                                .step = step,
                                .steps = 4,
                                .lr_bits = { lr_bits, 16 },
                                .samples = &samples,
                                .samples_count = 1,
                                .group = group,
                                .group_count = 2 },
         HEARD_PACE);
}

static bool has_entered(void)
{
    const struct wire_take_window *job = said(FRAME_TAKE_WINDOW);
    return job && job->enters;
}

static void who_needs_no_state_enters_the_newest_window(void **unused)
{
    (void)unused;
    be_without_a_state();
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->enters);
    hear_window_of_server(5, STEP + 40);
    assert_true(taken() == 5 && has_entered());
    assert_true(replica.applying && replica.holding && replica.step == STEP + 40);
    now_ms += 2000;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    stands = said(FRAME_STANDS);
    assert_true(stands && !stands->enters && stands->window == 5 && stands->step == STEP + 40);
    // One that follows is taken as by all others
    hear_window_of_server(6, STEP + 44);
    assert_true(taken() == 6 && !has_entered());
}

static void who_loads_a_state_enters_no_window(void **unused)
{
    (void)unused;
    be_without_a_state();
    replica.loading = true;
    now_ms += 2000;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && !stands->enters);
    hear_window_of_server(5, STEP + 40);
    assert_int_equal(taken(), 0);
    replica.loading = false;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_int_equal(taken(), 5);
}

static void a_window_that_is_over_is_not_entered(void **unused)
{
    (void)unused;
    be_without_a_state();
    hear_closing(4, 5, STEP + 42);
    hear_window_of_server(5, STEP + 40);
    assert_int_equal(taken(), 0);
}

// Whom the window names with the state that it holds begins it as all others do.
static void who_holds_the_state_does_not_enter_without_it(void **unused)
{
    (void)unused;
    be_without_a_state();
    replica.holding = replica.ready = true;
    replica.epoch = replica.pin_step = member->now.pin_step = 0;
    epoch_of_servers = 1; // It has not pinned yet what this epoch begins with
    hear_window_of_server(1, STEP);
    assert_int_equal(taken(), 0);
    replica.epoch = 1;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_true(taken() == 1 && !has_entered());
    epoch_of_servers = 0;
}

// Its window was closed elsewhere: it has lost nothing that the run needs, keeps nobody from a step, and enters again.
static void who_needs_no_state_goes_on_with_the_next_window(void **unused)
{
    (void)unused;
    be_without_a_state();
    hear_window_of_server(5, STEP + 40);
    hear_closing(5, 5, STEP + 38);
    assert_non_null(said(FRAME_CLOSE_WINDOW));
    hear(FRAME_CLOSED_WINDOW, &(struct wire_closed_window){ .window = 5, .step = STEP + 40 }, 0);
    assert_false(replica.holding);
    const struct wire_stands *stands = said(FRAME_STANDS);
    assert_true(stands && stands->enters && stands->lost && !stands->broken);
    replica.loading = true; // It has other work when the next one comes
    hear_window_of_server(6, STEP + 38);
    now_ms += 2000;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    stands = said(FRAME_STANDS);
    assert_true(taken() == 0 && stands && !stands->broken);
    replica.loading = false;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_true(taken() == 6 && has_entered());
    stands = said(FRAME_STANDS);
    assert_true(!stands || !stands->broken);
}

TESTS(TEST_WITH(windows_follow_one_another, set_up, NULL),
      TEST_WITH(who_needs_no_state_enters_the_newest_window, set_up, NULL),
      TEST_WITH(who_loads_a_state_enters_no_window, set_up, NULL),
      TEST_WITH(a_window_that_is_over_is_not_entered, set_up, NULL),
      TEST_WITH(who_holds_the_state_does_not_enter_without_it, set_up, NULL),
      TEST_WITH(who_needs_no_state_goes_on_with_the_next_window, set_up, NULL),
      TEST_WITH(a_window_that_begins_elsewhere_waits, set_up, NULL),
      TEST_WITH(a_window_whose_lists_do_not_fit_is_ignored, set_up, NULL),
      TEST_WITH(it_says_where_it_stands, set_up, NULL),
      TEST_WITH(a_state_that_differs_is_said_and_dropped, set_up, NULL),
      TEST_WITH(it_links_with_those_that_a_window_may_name, set_up, NULL),
      TEST_WITH(a_frozen_window_is_not_begun, set_up, NULL),
      TEST_WITH(a_window_in_hand_is_frozen_and_closed, set_up, NULL),
      TEST_WITH(who_cannot_reach_the_end_drops_its_state, set_up, NULL),
      TEST_WITH(who_has_lost_its_state_is_not_waited_for, set_up, NULL),
      TEST_WITH(who_is_left_behind_says_so, set_up, NULL),
      TEST_WITH(who_holds_a_share_says_so_until_the_next_window, set_up, NULL),
      TEST_WITH(who_has_taken_a_step_holds_a_share, set_up, NULL),
      TEST_WITH(the_steps_say_that_a_share_is_kept, set_up, NULL),
      TEST_WITH(the_run_says_that_a_share_is_kept, set_up, NULL),
      TEST_WITH(a_later_closing_says_nothing_of_this_window, set_up, NULL),
      TEST_WITH(a_step_in_memory_is_the_runs, set_up, NULL),
      TEST_WITH(another_window_has_made_the_step_that_is_applied, set_up, NULL),
      TEST_WITH(a_step_of_the_older_of_two_windows_is_the_runs, set_up, NULL),
      TEST_WITH(a_step_that_a_restore_gave_up_is_dropped, set_up, NULL),
      TEST_WITH(a_window_that_was_given_up_leaves_no_step, set_up, NULL),
      TEST_WITH(an_epoch_that_ends_wants_the_digest, set_up, NULL),
      TEST_WITH(a_pause_stops_the_group, set_up, NULL),
      TEST_WITH(a_member_that_leaves_stops_its_group_first, set_up, NULL),
      TEST_WITH(who_is_late_is_said_at_once, set_up, NULL),
      TEST_WITH(a_checkpointer_takes_no_window, set_up, tear_down))
