// ddp_bench -- how fast trainers train together, by gradients that they sum, and one trainer alone.
//
//     ddp_bench MODEL PRECISION BATCH alone THREADS   one trainer, as `shoal train` does it
//     ddp_bench MODEL PRECISION BATCH group MEMBERS [MBIT]
//                                                     processes of one thread each, with the learner of
//                                                     the strategy `allreduce` and plain links; each
//                                                     sends at most so many Mbit a second
//     ddp_bench MODEL PRECISION BATCH servers TRAINERS SERVERS
//                                                     such trainers, and parameter servers that hold the moments
//                                                     MODEL 10k|8m|32m, PRECISION float32|bf16
//
// Prints the tokens of a step; then reads numbers of steps, a line each, and answers each with the
// seconds they took and the processor seconds of all. When its input ends it prints the digest of
// the state: it is the same for every number of members and servers, after the same steps. One step is the gradient
// of BATCH sequences in eight lanes, the clip, and AdamW. tests/peers/ddp_torch.py (make bench-ddp)
// asks several of these, and PyTorch, in turns.

#include "common/base/clock.h"
#include "common/bulk/blob_store.h"
#include "common/checkpoint/hf_folder.h"
#include "common/data/manifest.h"
#include "common/data/provider.h"
#include "common/learner/learner.h"
#include "common/learner/solo.h"
#include "common/model/genesis.h"
#include "common/model/model_config.h"
#include "common/model/model_tensors.h"
#include "tests/bench/train_models.h"

#include <zmq.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 8, MEMBERS_MAX = 8, SAMPLES = 16384, STEPS_MAX = 512, TENSORS_MAX = 128 };
static const float RATE = 1e-5f;

// So small that a step is what a group costs: beside `alone` with BATCH / MEMBERS it shows that cost.
static const struct bench_model smallest = { "10k",
                                             { .vocab = 256,
                                               .dim = 16,
                                               .layers = 1,
                                               .heads = 2,
                                               .kv_heads = 2,
                                               .head_dim = 8,
                                               .ffn = 16,
                                               .seq_len_max = 32,
                                               .rope_theta = 10000,
                                               .rms_eps = 1e-5 },
                                             8 };

static struct {
    const struct bench_model *model;
    bool bf16;
    uint32_t batch, micro_batch, members, threads; // members 0: alone
    uint32_t servers;                              // The last members
    uint64_t mbit;                                 // 0: as the machine does
    char folder[64];
} bench;

// What the members see of each other: each is a process.
struct shared {
    pthread_barrier_t barrier;
    struct wire_linked members[MEMBERS_MAX];
    uint32_t steps; // Of the turn; 0: the end
    double processor_s[MEMBERS_MAX];
    char digest[HASH_HEX];
};
static struct shared *shared;

static const struct windows_numbers {
    double clip, decay, beta1, beta2, eps;
} numbers = { 1.0, 0.1, 0.9, 0.95, 1e-8 };

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Each connection of the links, in place of the product's: its share of the line, by TCP's own pacing.
void __real_tcp_tune(int fd);
void __wrap_tcp_tune(int fd);
void __wrap_tcp_tune(int fd)
{
    const uint64_t bytes = bench.mbit * 125000 / (bench.members > 1 ? bench.members - 1 : 1);
    const unsigned rate = (unsigned)bytes;
    __real_tcp_tune(fd);
    if (rate) ensure(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) == 0);
}

// ---- model and data, in a folder ----------------------------------------------------------------

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", bench.folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    ensure(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static void check(int rc, const struct why *why)
{
    if (rc == 0) return;
    fprintf(stderr, "ddp_bench: %s\n", why->text);
    _exit(1);
}

static void make_data(void)
{
    const struct model_shape *shape = &bench.model->shape;
    const size_t count = (size_t)SAMPLES * shape->seq_len_max + 1;
    uint16_t *tokens = malloc(count * sizeof *tokens);
    struct manifest manifest;
    struct why why = { 0 };
    ensure(tokens && mkdir(path_of("data"), 0755) == 0);
    for (size_t i = 0; i < count; i++) tokens[i] = (uint16_t)(i * 7919 % shape->vocab);
    put("data/train.bin", tokens, count * sizeof *tokens);
    check(manifest_build(path_of("data"), sizeof *tokens, &why, &manifest), &why);
    check(manifest_write(&manifest, path_of("data"), &why), &why);
    manifest_free(&manifest);
    free(tokens);
}

static void make_model(const struct layout *layout)
{
    const struct model_shape *shape = &bench.model->shape;
    char *json = model_shape_to_config_json(shape);
    float *params = malloc(layout->total * sizeof *params);
    struct why why = { 0 };
    size_t files;
    ensure(json && params && mkdir(path_of("model"), 0755) == 0);
    put("model/config.json", json, strlen(json));
    put("model/tokenizer.json", "{}", 2);
    genesis_fill(shape, 5, params);
    const int dir = open(path_of("model"), O_RDONLY | O_DIRECTORY);
    const struct safetensors_source source = safetensors_from_memory(params);
    check(hf_folder_write_weights(dir, layout, &source, NULL, 0, 1 << 30, &why, &files), &why);
    close(dir);
    free(params);
    free(json);
}

// ---- one trainer alone --------------------------------------------------------------------------

struct alone {
    pool_t *pool;
    solo_t *solo;
    provider_t *data;
    struct compute_device device;
    uint32_t *tokens;
    uint64_t sample;
};

static void alone_new(struct alone *self, const struct layout *layout)
{
    const struct model_shape *shape = &bench.model->shape;
    const struct solo_options options = {
        .optimizer = &optimizer_adamw,
        .settings = { .weight_decay = numbers.decay,
                      .beta1 = numbers.beta1,
                      .beta2 = numbers.beta2,
                      .eps = numbers.eps },
        .clip_norm = numbers.clip,
        .seq = shape->seq_len_max,
        .batch_max = bench.batch,
        .micro_batch = bench.micro_batch,
        .lanes = LANES,
        .precision = bench.bf16 ? GEMM_BF16 : GEMM_FLOAT32,
    };
    const struct samples_config samples = { .token_bytes = 2,
                                            .seq_len = shape->seq_len_max,
                                            .vocab_size = shape->vocab };
    struct why why = { 0 };
    self->pool = pool_new(bench.threads);
    ensure(self->pool && compute_find("cpu", NULL, &self->device) == 0);
    const struct solo_place place = { &self->device, shape, layout, self->pool };
    check(solo_new(&place, &options, &why, &self->solo), &why);
    genesis_fill(shape, 5, solo_params(self->solo));
    check(solo_push(self->solo, &why), &why);
    check(provider_open_local(path_of("data"), &samples, &why, &self->data), &why);
    self->tokens = malloc((size_t)bench.batch * (shape->seq_len_max + 1) * sizeof *self->tokens);
    ensure(self->tokens);
}

static void alone_train(struct alone *self, uint32_t steps)
{
    struct why why = { 0 };
    struct solo_result result;
    for (uint32_t i = 0; i < steps; i++) {
        if (self->sample + bench.batch > SAMPLES) self->sample = 0;
        check(provider_read(self->data, self->sample, bench.batch, self->tokens, &why), &why);
        check(solo_step(self->solo, self->tokens, bench.batch, RATE, &why, &result), &why);
        self->sample += bench.batch;
    }
}

// ---- a member of a group ------------------------------------------------------------------------

struct member {
    uint32_t place;
    struct worker *worker;
    struct learner_options options;
    struct identity *identity;
    blob_store_t *store;
    struct wire_arena arena;
    uint64_t window, step, samples_done;
};

static void send_job(struct member *self, uint16_t kind, const void *job)
{
    static _Alignas(8) uint8_t packed[1 << 17];
    const size_t count = wire_pack_body(kind, job, packed, sizeof packed);
    ensure(count > 0);
    worker_send(self->worker, kind, packed, count);
}

// The next answer of a kind.
static const void *hear(struct member *self, uint16_t kind)
{
    for (;;) {
        zmq_pollitem_t item = { .fd = worker_answers_fd(self->worker), .events = ZMQ_POLLIN };
        uint16_t heard;
        const void *body;
        zmq_poll(&item, 1, -1);
        self->arena.used = 0;
        if (!worker_take(self->worker, &self->arena, &heard, &body)) continue;
        if (heard == kind) return body;
        if (heard != FRAME_BROKE) continue;
        fprintf(stderr, "ddp_bench: %s\n", ((const struct wire_broke *)body)->reason);
        _exit(1);
    }
}

static void build(struct member *self)
{
    char *json = model_shape_to_config_json(&bench.model->shape);
    const struct wire_windows_config strategy = { .lanes = LANES,
                                                  .window_ms = 1000,
                                                  .step_timeout_ms = 60000,
                                                  .link = LINK_PLAIN,
                                                  .connections = 1,
                                                  .servers = bench.servers,
                                                  .parts = bench.servers ? PARTS_MOMENTS : 0,
                                                  .clip_norm = numbers.clip,
                                                  .weight_decay = numbers.decay,
                                                  .beta1 = numbers.beta1,
                                                  .beta2 = numbers.beta2,
                                                  .eps = numbers.eps,
                                                  .batch_start = bench.batch,
                                                  .batch_end = bench.batch };
    struct wire_config config = { .run = "bench",
                                  .seq_len = bench.model->shape.seq_len_max,
                                  .heartbeat_ms = 1000,
                                  .lease_ms = 10000,
                                  .snapshot_rounds = 1,
                                  .total_steps = 1 << 20,
                                  .products = bench.bf16 ? PRODUCTS_BF16 : PRODUCTS_FLOAT32,
                                  .micro_batch = bench.micro_batch,
                                  .model = { (const uint8_t *)json, (uint32_t)strlen(json) },
                                  .data = { .kind = DATA_LOCAL, .token_bytes = 2 },
                                  .strategy = { FRAME_WINDOWS_CONFIG, &strategy } };
    snprintf(config.genesis, sizeof config.genesis, "%s", path_of("model"));
    snprintf(config.data.where, sizeof config.data.where, "%s", path_of("data"));
    send_job(self, FRAME_BUILD, &config);
    const struct wire_built *built = hear(self, FRAME_BUILT);
    struct why why;
    check(built->ok ? 0 : why_set(&why, FAULT_CONFIG, "%s", built->reason), &why);
    const struct wire_links *links = hear(self, FRAME_LINKS);
    struct wire_linked *linked = &shared->members[self->place];
    *linked = (struct wire_linked){ .key = *identity_key(self->identity), .instance = 1 };
    memcpy(linked->endpoint, links->endpoint, sizeof linked->endpoint);
    free(json);
}

static void member_new(struct member *self, uint32_t place)
{
    const uint8_t secret[SECRET_BYTES] = { (uint8_t)(place + 1) };
    struct why why = { 0 };
    *self = (struct member){ .place = place, .arena = { .max = 1 << 16 } };
    self->arena.bytes = malloc(self->arena.max);
    ensure(self->arena.bytes && identity_from_secret(secret, NULL, &self->identity) == 0);
    check(blob_store_new(NULL, &why, &self->store), &why);
    self->options = (struct learner_options){ .identity = self->identity,
                                              .store = self->store,
                                              .run_id = "bench",
                                              .threads = bench.threads,
                                              .micro_batch = bench.micro_batch,
                                              .trains = true,
                                              .serves = place >= bench.members - bench.servers,
                                              .instance = 1,
                                              .links_bind = "127.0.0.1:0",
                                              .links_announced = "tcp://127.0.0.1:1" };
    check(compute_find("cpu", &why, &self->options.device), &why);
    self->worker = worker_new(PORT_LEARNER, learner_body, &self->options);
    build(self);
    struct wire_load load = { .genesis = true };
    snprintf(load.path, sizeof load.path, "%s", path_of("model"));
    send_job(self, FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear(self, FRAME_LOADED);
    check(loaded->ok ? 0 : why_set(&why, FAULT_CONFIG, "%s", loaded->reason), &why);
}

// The samples of the steps, as alone_train deals them. Returns how many intervals.
static uint32_t deal(uint64_t samples_done, uint32_t steps, struct interval *ret_samples)
{
    const uint64_t whole = SAMPLES / bench.batch * bench.batch;
    const uint64_t end = samples_done + (uint64_t)steps * bench.batch;
    uint32_t count = 0;
    for (uint64_t at = samples_done; at < end;) {
        const uint64_t first = at % whole, left = end - at;
        const uint64_t length = left < whole - first ? left : whole - first;
        ret_samples[count++] = (struct interval){ first, first + length };
        at += length;
    }
    return count;
}

static void member_train(struct member *self, uint32_t steps)
{
    static float rates[STEPS_MAX];
    static struct interval samples[STEPS_MAX];
    for (uint32_t i = 0; i < steps; i++) rates[i] = RATE;
    const struct wire_take_window job = { .number = ++self->window,
                                          .step = self->step,
                                          .steps = steps,
                                          .samples_done = self->samples_done,
                                          .lr_bits = { (const uint8_t *)rates,
                                                       steps * (uint32_t)sizeof *rates },
                                          .samples = samples,
                                          .samples_count = deal(self->samples_done, steps, samples),
                                          .group = shared->members,
                                          .group_count = bench.members,
                                          .place = self->place };
    self->step += steps;
    self->samples_done += (uint64_t)steps * bench.batch;
    send_job(self, FRAME_TAKE_WINDOW, &job);
    while (((const struct wire_stepped *)hear(self, FRAME_STEPPED))->step < self->step) {
    }
}

// The digest, by members that close their last window.
static void member_end(struct member *self)
{
    const struct wire_close_window job = { self->window, self->step, true };
    send_job(self, FRAME_CLOSE_WINDOW, &job);
    const struct wire_closed_window *closed = hear(self, FRAME_CLOSED_WINDOW);
    ensure(closed->ok);
    if (self->place == 0) hash_to_hex(&closed->digest, shared->digest);
    worker_destroy(&self->worker);
    blob_store_destroy(&self->store);
    identity_destroy(&self->identity);
    free(self->arena.bytes);
}

// ---- turns --------------------------------------------------------------------------------------

static _Noreturn void live(uint32_t place)
{
    static struct member self;
    member_new(&self, place);
    pthread_barrier_wait(&shared->barrier);
    for (;;) {
        pthread_barrier_wait(&shared->barrier); // The turn begins
        if (shared->steps == 0) break;
        const double began_s = processor_s();
        member_train(&self, shared->steps);
        shared->processor_s[place] = processor_s() - began_s;
        pthread_barrier_wait(&shared->barrier);
    }
    member_end(&self);
    exit(0);
}

static void group_turn(uint32_t steps)
{
    shared->steps = steps;
    pthread_barrier_wait(&shared->barrier);
    if (steps) pthread_barrier_wait(&shared->barrier);
}

static void group_new_processes(void)
{
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, bench.members + 1);
    fflush(NULL);
    for (uint32_t place = 0; place < bench.members; place++) {
        const pid_t pid = fork();
        ensure(pid >= 0);
        if (pid == 0) live(place);
    }
    pthread_barrier_wait(&shared->barrier);
}

static void turn(struct alone *alone, uint32_t steps)
{
    const double began_s = clock_s(), processor_began_s = processor_s();
    double processor = 0;
    if (bench.members) group_turn(steps);
    else alone_train(alone, steps);
    const double took_s = clock_s() - began_s;
    if (!bench.members) processor = processor_s() - processor_began_s;
    for (uint32_t i = 0; i < bench.members; i++) processor += shared->processor_s[i];
    printf("%.6f %.6f\n", took_s, processor);
    fflush(stdout);
}

static void serve(const struct layout *layout)
{
    struct alone alone = { 0 };
    struct hash params, state;
    unsigned steps;
    if (bench.members) group_new_processes();
    else alone_new(&alone, layout);
    printf("%u\n", bench.batch * bench.model->shape.seq_len_max);
    fflush(stdout);
    while (scanf("%u", &steps) == 1 && steps > 0 && steps <= STEPS_MAX) turn(&alone, steps);
    if (bench.members) {
        group_turn(0);
        while (wait(NULL) > 0) {
        }
    } else {
        ensure(solo_digest(alone.solo, NULL, &params, &state) == 0);
        hash_to_hex(&state, shared->digest);
        solo_destroy(&alone.solo);
        provider_close(&alone.data);
        pool_destroy(&alone.pool);
        free(alone.tokens);
    }
    printf("digest %s\n", shared->digest);
}

// ---- command line -------------------------------------------------------------------------------

static bool read_words(char **argv)
{
    const bool served = strcmp(argv[4], "servers") == 0;
    const bool group = served || strcmp(argv[4], "group") == 0;
    const long batch = strtol(argv[3], NULL, 10);
    const long servers = served && argv[6] ? strtol(argv[6], NULL, 10) : 0;
    const long count = strtol(argv[5], NULL, 10) + servers;
    if (strcmp(argv[1], smallest.name) == 0) bench.model = &smallest;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(argv[1], models[i].name) == 0) bench.model = &models[i];
    bench.bf16 = strcmp(argv[2], "bf16") == 0;
    if (!bench.model || (!bench.bf16 && strcmp(argv[2], "float32") != 0) || batch < 1 ||
        batch > 1024 || servers < 0 || (served && servers < 1) || count < 1 + servers ||
        count > (group ? MEMBERS_MAX : POOL_THREADS_MAX) ||
        (!group && (argv[6] || strcmp(argv[4], "alone") != 0)))
        return false;
    bench.mbit = group && !served && argv[6] ? strtoull(argv[6], NULL, 10) : 0;
    bench.servers = (uint32_t)servers;
    bench.batch = (uint32_t)batch;
    bench.micro_batch = (bench.batch + LANES - 1) / LANES;
    if (bench.micro_batch > 8) bench.micro_batch = 8;
    bench.members = group ? (uint32_t)count : 0;
    bench.threads = group ? 1 : (uint32_t)count;
    return true;
}

int main(int argc, char **argv)
{
    struct layout_tensor tensors[TENSORS_MAX];
    struct layout layout;
    char command[96];
    if (argc < 6 || argc > 7 || !read_words(argv)) {
        fprintf(stderr,
                "usage: ddp_bench 10k|8m|32m float32|bf16 BATCH alone THREADS\n"
                "       ddp_bench 10k|8m|32m float32|bf16 BATCH group MEMBERS [MBIT]\n"
                "       ddp_bench 10k|8m|32m float32|bf16 BATCH servers TRAINERS SERVERS\n");
        return 64;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(bench.folder, sizeof bench.folder, "/tmp/ddp_bench.XXXXXX");
    ensure(shared != MAP_FAILED && mkdtemp(bench.folder));
    ensure(model_tensor_count(&bench.model->shape) <= TENSORS_MAX);
    ensure(model_tensors_layout(&bench.model->shape, tensors, NULL, &layout) == 0);
    make_data();
    if (bench.members) make_model(&layout);
    serve(&layout);
    snprintf(command, sizeof command, "rm -rf %s", bench.folder);
    return system(command) != 0;
}
