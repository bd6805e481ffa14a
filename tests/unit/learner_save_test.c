// learner_save_test -- SAVE goes through the learner's thread to a checkpoint on disk, and that is
// read back. Each sample below the cursor is trained, still to be trained, or given up, as the job
// says. While a checkpoint is written the learner does its next jobs, also those that change the state.

#include "common/checkpoint/checkpoint.h"
#include "common/learner/learner_inside.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/unit/rounds_learner_fixture.h"

#include "common/base/failpoint.h"
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 32, STEP = 9, TENSORS_MAX = 64 };

static struct layout_tensor tensors[TENSORS_MAX];
static struct learner_options options;
static struct learner learner; // What LOAD leaves, without a genesis folder

static void serve(struct worker *worker, void *arg)
{
    struct learner *self = arg;
    struct job job;
    enum worker_turn turn;
    self->worker = worker;
    while ((turn = worker_next(worker, -1, &job)) != WORKER_END) {
        if (turn == WORKER_JOB) learner_save(self, job.body);
        learner_save_look(self);
    }
    learner_save_wait(self);
}

static void make_learner(void)
{
    struct compute_device device;
    const struct optimizer_settings settings = { .decay = 0.9f, .chunk = 4, .topk = 2 };
    struct compute_config config = { .shape = shape, .micro_batch = 1, .seq = 8 };
    assert_int_equal(compute_find("cpu", NULL, &device), 0);
    assert_true(model_tensor_count(&shape) <= TENSORS_MAX);
    assert_int_equal(model_tensors_layout(&shape, tensors, NULL, &learner.layout), 0);
    const struct optimizer_place place = {
        &shape, &learner.layout, { 0, learner.layout.total }, NULL
    };
    assert_int_equal(optimizer_new(&optimizer_distro, &place, &settings, NULL, &learner.optimizer),
                     0);
    optimizer_ask(learner.optimizer, &config);
    assert_int_equal(compute_new(&device, &config, NULL, &learner.compute), 0);
    assert_int_equal(optimizer_begin(learner.optimizer, learner.compute, NULL), 0);
    learner.params = compute_host(learner.compute);
    genesis_fill(&shape, 5, learner.params);
    assert_int_equal(compute_push(learner.compute, NULL), 0);
    learner.cut = state_cut_of_floats(learner.layout.total);
    learner.leaves = calloc(state_cut_leaves(&learner.cut), sizeof *learner.leaves);
    assert_non_null(learner.leaves);
    assert_int_equal(learner_take_digest(&learner, NULL), 0);
    learner.step = STEP;
    learner.built = learner.holding = true;
    strcpy(learner.config_json, "{\"torch_dtype\": \"float32\"}");
    put("tokenizer.json", "{}", 2);
    options = (struct learner_options){
        .run_id = "r", .checkpoint_root = folder, .tokenizer_dir = folder, .keep = 1
    };
    assert_int_equal(blob_store_new(NULL, NULL, &options.store), 0);
    learner.options = &options;
}

static void free_learner(void)
{
    compute_destroy(&learner.compute);
    optimizer_destroy(&learner.optimizer);
    free(learner.leaves);
    blob_store_destroy(&options.store);
}

// One job, as the checkpointer's core sends it.
static void save(const struct wire_data_position *data_position)
{
    _Alignas(8) static uint8_t packed[1 << 16], room[1 << 16];
    const struct wire_save job = {
        .epoch = 3, .step = STEP, .digest = learner.digest, .data_position = *data_position
    };
    struct wire_arena arena = { .bytes = room, .max = sizeof room };
    struct worker *worker = worker_new(PORT_LEARNER, serve, &learner);
    const size_t count = wire_pack_body(FRAME_SAVE, &job, packed, sizeof packed);
    zmq_pollitem_t item = { .fd = worker_answers_fd(worker), .events = ZMQ_POLLIN };
    const void *body;
    uint16_t kind;
    assert_true(count > 0);
    worker_send(worker, FRAME_SAVE, packed, count);
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    assert_true(worker_take(worker, &arena, &kind, &body));
    worker_destroy(&worker);
    assert_int_equal(kind, FRAME_SAVED);
    const struct wire_saved *saved = body;
    assert_string_equal(saved->reason, "");
    assert_true(saved->ok && saved->step == STEP);
}

static bool has(const struct interval *list, size_t count, uint64_t sample)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].begin <= sample && sample < list[i].end) return true;
    return false;
}

static void assert_saved_as(const struct wire_data_position *data_position)
{
    checkpoint_t *checkpoint;
    struct why why = { 0 };
    if (checkpoint_open(folder, STEP, "r", &why, &checkpoint) < 0) fail_msg("%s", why.text);
    const struct checkpoint_info *info = checkpoint_info(checkpoint);
    assert_int_equal(info->cursor, data_position->cursor);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const bool failed = has(data_position->failed, data_position->failed_count, i);
        const bool todo = i >= data_position->cursor ||
                          has(data_position->returned, data_position->returned_count, i);
        assert_int_equal(has(info->failed, info->failed_count, i), failed);
        assert_int_equal(has(info->done, info->done_count, i), !failed && !todo);
    }
    checkpoint_close(&checkpoint);
}

static void what_was_given_up_is_neither_done_nor_to_be_trained(void **state)
{
    (void)state;
    static struct {
        uint64_t cursor;
        struct interval returned[3], failed[3];
        uint32_t returned_count, failed_count;
    } cases[] = {
        { .cursor = 0 },
        { .cursor = 20 },
        { 20, { { 3, 5 } }, { { 8, 9 } }, 1, 1 },
        { 20, { { 3, 5 } }, { { 5, 9 } }, 1, 1 }, // They touch
        { 20, { { 5, 9 }, { 11, 12 } }, { { 3, 5 }, { 9, 11 }, { 12, 13 } }, 2, 3 },
        { 20, { { 0, 1 } }, { { 19, 20 } }, 1, 1 }, // At both ends
        { 20, { { 18, 19 } }, { { 0, 2 }, { 19, 20 } }, 1, 2 },
        { 20, { { 0, 0 } }, { { 0, 20 } }, 0, 1 }, // All of it
        { 20, { { 4, 19 } }, { { 0, 4 }, { 19, 20 } }, 1, 2 },
    };
    make_learner();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct wire_data_position data_position = { .cursor = cases[i].cursor,
                                                          .returned = cases[i].returned,
                                                          .returned_count = cases[i].returned_count,
                                                          .failed = cases[i].failed,
                                                          .failed_count = cases[i].failed_count };
        save(&data_position);
        assert_saved_as(&data_position);
    }
    free_learner();
}

// An older checkpoint has a folder in it, and such are not removed. Nobody else learns of it.
static void an_older_one_that_stays_is_said(void **state)
{
    (void)state;
    char text[4096] = "";
    make_learner();
    assert_int_equal(mkdir(path_of("step-00000001"), 0755), 0);
    assert_int_equal(mkdir(path_of("step-00000001/kept"), 0755), 0);
    const int error = dup(STDERR_FILENO);
    FILE *log = fopen(path_of("log"), "w+");
    assert_true(log && error >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    save(&(struct wire_data_position){ .cursor = 0 });
    dup2(error, STDERR_FILENO), close(error);
    rewind(log);
    assert_true(fread(text, 1, sizeof text - 1, log) > 0);
    fclose(log);
    assert_non_null(strstr(text, "checkpoint.written step=9 "));
    const char *said = strstr(text, "checkpoint.not_cleaned step=9 reason=");
    assert_true(said && strstr(said, "an older one could not be removed"));
    free_learner();
}

// ---- beside the next jobs -----------------------------------------------------------------------

static sem_t may_write;
static const char
    *_Atomic waits; // The place at which a thread of the learner waits for the test, or NULL
static _Atomic bool waited_in_vain;

int failpoint_reached(const char *name)
{
    struct timespec until;
    if (!waits || strcmp(name, waits) != 0) return 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    if (sem_timedwait(&may_write, &until) != 0) waited_in_vain = true;
    return 0;
}

// SAVE of a step; more steps than there are pins follow, each with other parameters; then it may be
// written. Its pin has gone from the table by then.
static void the_next_jobs_do_not_wait_for_it(void **state)
{
    (void)state;
    struct learner_options member = { .run_id = "r",
                                      .checkpoint_root = folder,
                                      .tokenizer_dir = folder,
                                      .keep = 1,
                                      .threads = 1,
                                      .micro_batch = 1 };
    checkpoint_t *checkpoint;
    put("tokenizer.json", "{}", 2);
    assert_int_equal(compute_find("cpu", NULL, &member.device), 0);
    assert_int_equal(blob_store_new(NULL, NULL, &member.store), 0);
    assert_int_equal(sem_init(&may_write, 0, 0), 0);
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &member);
    build(worker, 0);
    const struct hash digest = load(worker, member.store, STEP);
    waits = "checkpoint_manifest"; // All but that is written
    tell(worker, FRAME_SAVE, &(struct wire_save){ .epoch = 3, .step = STEP, .digest = digest });
    for (uint64_t step = STEP + 1; step <= STEP + BLOB_PINS_MAX + 1; step++)
        load(worker, member.store, step); // SAVED would be heard here if it came first
    waits = NULL;
    assert_int_equal(sem_post(&may_write), 0);
    const struct wire_saved *saved = hear(worker, FRAME_SAVED);
    assert_string_equal(saved->reason, "");
    assert_true(saved->ok && saved->step == STEP && !waited_in_vain);
    assert_int_equal(checkpoint_open(folder, STEP, "r", NULL, &checkpoint), 0);
    assert_true(hash_equal(&checkpoint_info(checkpoint)->digest, &digest));
    checkpoint_close(&checkpoint);

    // A step that is neither held nor pinned
    tell(worker, FRAME_SAVE,
         &(struct wire_save){ .epoch = 3, .step = STEP + 2, .digest = { { 0 } } });
    saved = hear(worker, FRAME_SAVED);
    assert_true(!saved->ok && saved->step == STEP + 2); // No such digest is pinned
    worker_destroy(&worker);
    blob_store_destroy(&member.store);
    sem_destroy(&may_write);
}

static bool is_pinned(blob_store_t *store, const struct hash *digest)
{
    struct blob_ref ref;
    struct state_cut cut;
    if (blob_store_leaves(store, digest, NULL, &ref, &cut) < 0) return false;
    blob_store_release(&ref);
    return true;
}

// A trainer's pin goes to a file: jobs that leave the parameters as they are do not wait for that, a LOAD does.
static void nor_for_a_pin_in_a_file(void **state)
{
    (void)state;
    struct learner_options member = { .identity = fixture_identity(),
                                      .run_id = "r",
                                      .trains = true,
                                      .threads = 1,
                                      .micro_batch = 1 };
    write_tokens(64, false);
    assert_int_equal(compute_find("cpu", NULL, &member.device), 0);
    const struct blob_store_options where = { .dir = folder, .lazy = true };
    assert_int_equal(blob_store_new(&where, NULL, &member.store), 0);
    if (!blob_store_plan_pins(member.store, BLOB_PINS_MAX, true)) {
        blob_store_destroy(&member.store);
        print_message("%s is a file system in memory; pins are not in files there\n", folder);
        skip();
    }
    assert_int_equal(sem_init(&may_write, 0, 0), 0);
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &member);
    build(worker, 0);
    waits = "state_copy";
    const struct hash first = load(worker, member.store, STEP);
    tell(worker, FRAME_SHOW, &(struct wire_show){ .round = 1 });
    const struct wire_shown *shown = hear(worker, FRAME_SHOWN);
    assert_true(shown->round == 1 && !shown->ok);
    assert_false(is_pinned(member.store, &first));
    waits = NULL;
    assert_int_equal(sem_post(&may_write), 0);
    const struct hash second = load(worker, member.store, STEP + 1);
    assert_true(is_pinned(member.store, &first) && !waited_in_vain);
    worker_destroy(&worker);
    assert_true(is_pinned(member.store, &second));
    blob_store_destroy(&member.store);
    sem_destroy(&may_write);
}

TESTS(FOLDER_TEST(what_was_given_up_is_neither_done_nor_to_be_trained),
      FOLDER_TEST(an_older_one_that_stays_is_said), FOLDER_TEST(the_next_jobs_do_not_wait_for_it),
      FOLDER_TEST(nor_for_a_pin_in_a_file))
