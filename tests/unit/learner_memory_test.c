// learner_memory_test -- what learner.memory says is what a trainer then holds, within 5 %: its model,
// the pins that peers fetch, and a state that it fetches meanwhile. The whole learner is built here, for
// each strategy; it loads from the stage until the store is full of pins, and trains. With a folder for
// its blobs, a trainer of a run without audits holds 17 bytes a parameter at most, and its activations.

#include "common/base/memory.h"
#include "common/data/manifest.h"
#include "common/group/group.h"
#include "common/learner/learner.h"
#include "common/learner/learner_gather.h"
#include "common/model/genesis.h"
#include "common/model/model.h"
#include "common/model/model_config.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/unit/folder_fixture.h"

#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

enum { SEQ = 64, WAIT_MS = 60000, ROOM = 1 << 16, STEPS = BLOB_PINS_MAX + 1, MIB = 1 << 20 };

// Sanitizers keep what is freed. There all of it runs, with a small model, and nothing is measured.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEASURED = false, LAYERS = 1, LAYERS_MANY = 1 };
#else
enum { MEASURED = true, LAYERS = 4, LAYERS_MANY = 16 };
#endif

// 4.3 million parameters.
static struct model_shape shape = { .vocab = 4096,
                                    .dim = 256,
                                    .layers = LAYERS,
                                    .heads = 4,
                                    .kv_heads = 4,
                                    .head_dim = 64,
                                    .ffn = 704,
                                    .seq_len_max = SEQ,
                                    .rope_theta = 10000,
                                    .rms_eps = 1e-5,
                                    .tied = true };

// A line of /proc/self/status: VmRSS, VmHWM.
static double resident_mib(const char *name)
{
    char line[128];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + 6, "%lu", &kib);
    fclose(file);
    return (double)kib / 1024;
}

// VmHWM begins again (proc(5), clear_refs).
static void forget_the_most(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");
    assert_true(file && fputs("5", file) >= 0 && fclose(file) == 0);
}

static const void *answer(struct worker *worker)
{
    _Alignas(8) static uint8_t bytes[ROOM];
    struct wire_arena arena = { .bytes = bytes, .max = ROOM };
    zmq_pollitem_t item = { .fd = worker_answers_fd(worker), .events = ZMQ_POLLIN };
    const void *body;
    uint16_t came;
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    assert_true(worker_take(worker, &arena, &came, &body));
    return body;
}

static const void *ask(struct worker *worker, uint16_t kind, const void *job)
{
    _Alignas(8) static uint8_t packed[ROOM];
    const size_t count = wire_pack_body(kind, job, packed, ROOM);
    assert_true(count > 0);
    worker_send(worker, kind, packed, count);
    return answer(worker);
}

static struct learner_options options_of(blob_store_t *store)
{
    struct learner_options options = { .identity = fixture_identity(),
                                       .store = store,
                                       .run_id = "r",
                                       .threads = 1,
                                       .micro_batch = 2,
                                       .trains = true,
                                       .links_bind = "127.0.0.1:0",
                                       .links_announced = "tcp://127.0.0.1:1" };
    assert_int_equal(compute_find("cpu", NULL, &options.device), 0);
    return options;
}

static void write_data(void)
{
    static const uint16_t tokens[64 * (SEQ + 1)];
    struct manifest manifest;
    put("a.bin", tokens, sizeof tokens);
    assert_int_equal(manifest_build(folder, 2, NULL, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, NULL), 0);
    manifest_free(&manifest);
}

static uint32_t micro_batch = 2; // Of the run
static bool copies_for_saves;    // Then what is said to come later is held

static const struct wire_built *build(struct worker *worker, const struct wire_part *strategy)
{
    static char *json;
    json = model_shape_to_config_json(&shape);
    struct wire_config config = { .run = "r",
                                  .model = { (const uint8_t *)json, (uint32_t)strlen(json) },
                                  .seq_len = SEQ,
                                  .heartbeat_ms = 1,
                                  .lease_ms = 1,
                                  .snapshot_rounds = 1,
                                  .total_steps = 1,
                                  .micro_batch = micro_batch,
                                  .data = { .kind = DATA_LOCAL, .token_bytes = 2 },
                                  .strategy = *strategy };
    snprintf(config.data.where, sizeof config.data.where, "%.200s", folder);
    const struct wire_built *built = ask(worker, FRAME_BUILD, &config);
    free(json);
    return built;
}

// Returns what the state is made of. The log goes to a file meanwhile.
static struct state_cut build_and_read_log(struct worker *worker, const struct wire_part *strategy,
                                           unsigned long *ret_said_mib,
                                           unsigned long *ret_later_mib)
{
    char line[1024];
    const int error = dup(STDERR_FILENO);
    FILE *log = fopen(path_of("log"), "w+");
    assert_true(log && error >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    const struct wire_built *built = build(worker, strategy);
    dup2(error, STDERR_FILENO), close(error);
    rewind(log);
    while (fgets(line, sizeof line, log))
        if (strstr(line, "host_mib="))
            sscanf(strstr(line, "host_mib="), "host_mib=%lu later_mib=%lu", ret_said_mib,
                   ret_later_mib);
    fclose(log);
    assert_string_equal(built->reason, "");
    struct state_cut cut = state_cut_of_floats(built->floats);
    for (uint32_t i = 0; i < built->items_count; i++) state_cut_add(&cut, built->items[i].bytes);
    return cut;
}

// Where a state is made before it is staged. It is there before anything is measured.
enum { MADE_BYTES = 80 * MIB };
static uint8_t *made;

static void make_room(void)
{
    made = aligned_alloc(64, MADE_BYTES);
    assert_non_null(made);
    memset(made, 1, MADE_BYTES);
}

// As the fetcher does.
static void stage(blob_store_t *store, uint64_t step, const struct state_cut *cut)
{
    struct blob_snapshot state = { .step = step, .cut = *cut };
    struct hash roots[STATE_ITEMS_MAX];
    const void *items[STATE_ITEMS_MAX];
    struct state_copy copy;
    assert_true(state_cut_room(cut) <= MADE_BYTES);
    memset(made, 0, state_cut_room(cut));
    genesis_fill(&shape, step, (float *)(void *)made);
    for (uint32_t i = 0; i < cut->count; i++) items[i] = made + state_cut_place(cut, i);
    state.digest = state_cut_digest(cut, items, roots);
    assert_int_equal(blob_store_new_copy(store, state_cut_room(cut), NULL, &copy), 0);
    assert_int_equal(state_copy_put(&copy, 0, made, state_cut_room(cut), NULL), 0);
    blob_store_stage(store, &state, &copy);
}

static void load_each_step(struct worker *worker, blob_store_t *store, const struct state_cut *cut)
{
    for (uint64_t step = 1; step <= STEPS; step++) {
        stage(store, step, cut);
        const struct wire_loaded *loaded =
            ask(worker, FRAME_LOAD, &(struct wire_load){ .step = step });
        assert_true(loaded->ok);
    }
}

static void train_a_result(struct worker *worker, const struct key *key)
{
    (void)key;
    const struct wire_trained *trained =
        ask(worker, FRAME_TRAIN,
            &(struct wire_train){ .round = 1,
                                  .step = STEPS,
                                  .samples = &(struct interval){ 0, 4 },
                                  .samples_count = 1,
                                  .lr_bits = 0x3c000000 });
    assert_string_equal(trained->reason, "");
    assert_true(hash_is_none(&trained->residual_from) && hash_is_none(&trained->residual_to));
}

// A window of one step, alone.
static void train_a_window(struct worker *worker, const struct key *key)
{
    const uint8_t lr_bits[4] = { 0, 0, 0, 0x3c };
    const struct wire_stepped *stepped =
        ask(worker, FRAME_TAKE_WINDOW,
            &(struct wire_take_window){ .number = 1,
                                        .step = STEPS,
                                        .steps = 1,
                                        .lr_bits = { lr_bits, 4 },
                                        .samples = &(struct interval){ 0, 8 },
                                        .samples_count = 1,
                                        .group = &(struct wire_linked){ .key = *key },
                                        .group_count = 1 });
    assert_true(stepped->step == STEPS + 1);
}

// `dir`: of the blobs, or NULL. Returns the bytes that were held for each parameter, without activations.
static double hold(const struct wire_part *strategy, const char *dir,
                   void (*train)(struct worker *, const struct key *))
{
    blob_store_t *store;
    mallopt(M_MMAP_THRESHOLD, MIB); // What is freed goes back, as vectors above 32 MiB always do
    write_data();
    assert_int_equal(
        blob_store_new(&(struct blob_store_options){ .dir = dir, .lazy = true }, NULL, &store), 0);
    struct learner_options options = options_of(store);
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &options);
    make_room();
    forget_the_most();
    const double before = resident_mib("VmRSS:");
    unsigned long said = 0, later = 0;
    const struct state_cut cut = build_and_read_log(worker, strategy, &said, &later);
    if (!copies_for_saves) later = 0;
    if (train == train_a_window) answer(worker); // LINKS
    load_each_step(worker, store, &cut);
    train(worker, identity_key(options.identity));
    stage(store, STEPS + 1, &cut); // Fetched while all else is held
    const double held = resident_mib("VmHWM:") - before;
    const struct model_options activations = { micro_batch, SEQ, GEMM_BF16, false };
    const double floats = (double)cut.bytes[0] / sizeof(float),
                 each = (held * MIB - (double)model_memory_bytes(&shape, &activations, 1)) / floats;
    print_message("%.0f parameters: %lu MiB said, %lu MiB for saves, %.1f MiB held, %.2f bytes "
                  "each without activations\n",
                  floats, said, later, held, each);
    free(made);
    worker_destroy(&worker);
    blob_store_destroy(&store);
    if (MEASURED) assert_true(held > 0.95 * (double)said && held < 1.05 * (double)(said + later));
    return each;
}

static const struct wire_rounds_config rounds = {
    .compression_decay = 0.9f, .topk = 8, .chunk = 64, .one_bit = true, .payload_bytes = 1
};
static const struct wire_part distro = { FRAME_ROUNDS_CONFIG, &rounds };

static void what_is_held_is_what_was_said(void **state)
{
    (void)state;
    hold(&distro, NULL, train_a_result);
}

static void without_audits_a_trainer_holds_four_vectors(void **state)
{
    (void)state;
    shape.layers =
        LAYERS_MANY; // 13.8 million: what does not grow with the model is a small part of it
    const double each = hold(&distro, folder, train_a_result);
    shape.layers = LAYERS;
    if (MEASURED) assert_true(each < 17);
}

static const struct wire_windows_config windows = { .lanes = 8,
                                                    .window_ms = 1000,
                                                    .step_timeout_ms = 10000,
                                                    .link = LINK_PLAIN,
                                                    .connections = 1,
                                                    .clip_norm = 1,
                                                    .beta1 = 0.9,
                                                    .beta2 = 0.95,
                                                    .eps = 1e-8,
                                                    .batch_start = 8,
                                                    .batch_end = 8,
                                                    .batch_warmup_tokens = 0 };
static const struct wire_part allreduce = { FRAME_WINDOWS_CONFIG, &windows };

static void so_it_is_for_allreduce(void **state)
{
    (void)state;
    hold(&allreduce, NULL, train_a_window);
}

// A member of a group of one holds all moments. Beside them lies the copy for a save, which is said apart, with the most
// that links may take.
static void so_it_is_for_moments_by_shares(void **state)
{
    (void)state;
    struct wire_windows_config config = windows;
    config.parts = PARTS_MOMENTS;
    config.save_steps = 100;
    config.keep = 1;
    snprintf(config.shared_dir, sizeof config.shared_dir, "%.200s", folder);
    const struct wire_part sharded = { FRAME_WINDOWS_CONFIG, &config };
    copies_for_saves = true;
    hold(&sharded, NULL, train_a_window);
    copies_for_saves = false;
}

static struct wire_leases_config leases_of_one_server(void)
{
    return (struct wire_leases_config){ .servers = 1,
                                        .members_least = 1,
                                        .push_every = 1,
                                        .pull_every = 1,
                                        .staleness = 1.5,
                                        .task_samples = 8,
                                        .time_min_ms = 1000,
                                        .time_max_ms = 10000,
                                        .settle_ms = 10000,
                                        .link = LINK_PLAIN,
                                        .connections = 1,
                                        .clip_norm = 1,
                                        .beta1 = 0.9,
                                        .beta2 = 0.95,
                                        .eps = 1e-8,
                                        .batch_start = 8,
                                        .batch_end = 8 };
}

// A server has room for a gradient of each trainer and, if the run saves, for a copy of its share; a trainer for the
// sum of a push, if it has several batches.
static void what_leases_take_later_is_said(void **state)
{
    // The third is the number of vectors: a copy of a share has the parameters and two moments
    static const uint32_t cases[][5] = {
        { 4, 1, 4, 0, 1 },      { 0, 1, 1, 0, 1 }, { 3, 2, 3, 0, 1 },
        { 2, 2, 2 + 3, 10, 1 }, { 3, 2, 1, 0, 0 }, { 3, 1, 0, 10, 0 },
    };
    struct wire_leases_config config = leases_of_one_server();
    const struct wire_part part = { FRAME_LEASES_CONFIG, &config };
    blob_store_t *store;
    (void)state;
    write_data();
    assert_int_equal(blob_store_new(&(struct blob_store_options){ .lazy = true }, NULL, &store), 0);
    struct learner_options options = options_of(store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct worker *worker = worker_new(PORT_LEARNER, learner_body, &options);
        unsigned long said = 0, later = 0;
        config.members_least = cases[i][0];
        config.push_every = cases[i][1];
        config.save_steps = cases[i][3];
        options.serves = cases[i][4];
        config.keep = 1;
        snprintf(config.shared_dir, sizeof config.shared_dir, "%s", cases[i][3] ? folder : "");
        const struct state_cut cut = build_and_read_log(worker, &part, &said, &later);
        assert_int_equal(later, memory_mib_needed(GROUP_MEMORY + LEARNER_GATHER_MEMORY +
                                                  cases[i][2] * cut.bytes[0]));
        worker_destroy(&worker);
    }
    blob_store_destroy(&store);
}

// It lies in a file until a group begins, and then the server reads its share.
static void a_server_has_no_state_in_memory_that_it_has_loaded(void **state)
{
    const struct wire_leases_config config = leases_of_one_server();
    const struct wire_part part = { FRAME_LEASES_CONFIG, &config };
    const struct blob_store_options blobs = { .dir = folder, .lazy = true };
    blob_store_t *store;
    unsigned long said, later;
    (void)state;
    mallopt(M_MMAP_THRESHOLD, MIB);
    write_data();
    assert_int_equal(blob_store_new(&blobs, NULL, &store), 0);
    struct learner_options options = options_of(store);
    options.serves = true;
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &options);
    make_room();
    forget_the_most();
    const double before = resident_mib("VmRSS:");
    const struct state_cut cut = build_and_read_log(worker, &part, &said, &later);
    answer(worker); // LINKS
    load_each_step(worker, store, &cut);
    const double held = resident_mib("VmHWM:") - before;
    const double all = (double)state_cut_room(&cut) / MIB;
    print_message("a state of %.1f MiB: %.1f MiB held\n", all, held);
    free(made);
    worker_destroy(&worker);
    blob_store_destroy(&store);
    if (MEASURED) assert_true(all > 48 && held < 12);
}

// The folder is named by its setting: the reason alone says what to change.
static void a_shared_dir_that_is_not_there_is_named(void **state)
{
    blob_store_t *store;
    struct wire_windows_config config = windows;
    (void)state;
    const struct blob_store_options blobs = { .lazy = true };
    assert_int_equal(blob_store_new(&blobs, NULL, &store), 0);
    struct learner_options options = options_of(store);
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &options);
    write_data();
    config.save_steps = 100;
    config.keep = 1;
    snprintf(config.shared_dir, sizeof config.shared_dir, "/nowhere/at/all");
    const struct wire_part part = { FRAME_WINDOWS_CONFIG, &config };
    const struct wire_built *built = build(worker, &part);
    assert_false(built->ok);
    assert_non_null(strstr(built->reason, "checkpoint.shared_dir: "));
    assert_non_null(strstr(built->reason, "/nowhere/at/all"));
    worker_destroy(&worker);
    blob_store_destroy(&store);
}

static void a_micro_batch_of_nothing_is_refused(void **state)
{
    struct learner_options options = { .identity = fixture_identity(),
                                       .threads = 1,
                                       .micro_batch = 2 };
    struct worker *worker = worker_new(PORT_LEARNER, learner_body, &options);
    (void)state;
    micro_batch = 0;
    const struct wire_built *built = build(worker, &allreduce);
    assert_non_null(strstr(built->reason, "micro_batch_size is 0"));
    worker_destroy(&worker);
}

TESTS(FOLDER_TEST(what_is_held_is_what_was_said),
      FOLDER_TEST(without_audits_a_trainer_holds_four_vectors), FOLDER_TEST(so_it_is_for_allreduce),
      FOLDER_TEST(so_it_is_for_moments_by_shares), FOLDER_TEST(what_leases_take_later_is_said),
      FOLDER_TEST(a_server_has_no_state_in_memory_that_it_has_loaded),
      FOLDER_TEST(a_shared_dir_that_is_not_there_is_named),
      FOLDER_TEST(a_micro_batch_of_nothing_is_refused))
