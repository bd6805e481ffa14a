// What lies in a testbed's directory: a model, a text, keys and configuration, the same every time.

#include "tests/live/testbed.h"
#include "common/base/ensure.h"
#include "common/checkpoint/safetensors.h"
#include "common/data/manifest.h"
#include "common/model/genesis.h"
#include "common/model/model_config.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEQ_LEN = 32, SAMPLES = 200, TOKENS = SAMPLES * SEQ_LEN + 1, TENSORS_MAX = 64 };

static const struct model_shape shape = { .vocab = 256,
                                          .dim = 32,
                                          .layers = 2,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 16,
                                          .ffn = 64,
                                          .seq_len_max = SEQ_LEN,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5,
                                          .tied = true };

static void must(struct testbed *self, int rc, const struct why *why, const char *what)
{
    if (rc < 0) testbed_fail(self, "cannot write %s: %s %s", what, fault_name(rc), why->text);
}

void testbed_write_file(struct testbed *self, const char *file, const void *bytes, size_t count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->dir, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
        testbed_fail(self, "%s: %s", path, strerror(errno));
    close(fd);
}

void testbed_read_file(const char *path, char *ret_text, size_t max)
{
    ret_text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    off_t bytes = lseek(fd, 0, SEEK_END);
    ssize_t count = pread(fd, ret_text, max - 1, bytes < (off_t)max ? 0 : bytes - (off_t)max + 1);
    ret_text[count > 0 ? count : 0] = 0;
    close(fd);
}

static struct hash secret_of(const char *name)
{
    return hash_of_two("live test key", 13, name, strlen(name));
}

struct identity *testbed_identity(const char *name)
{
    struct hash secret = secret_of(name);
    struct identity *identity;
    struct why why = { 0 };
    ensure(identity_from_secret(secret.bytes, &why, &identity) == 0);
    return identity;
}

void testbed_write_key(struct testbed *self, const char *name)
{
    char path[512];
    struct hash secret = secret_of(name);
    snprintf(path, sizeof path, "%s/%s.key", self->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, secret.bytes, HASH_BYTES) != HASH_BYTES)
        testbed_fail(self, "%s: %s", path, strerror(errno));
    close(fd);
}

static void make_dir(struct testbed *self, const char *name, char ret_path[512])
{
    snprintf(ret_path, 512, "%s/%s", self->dir, name);
    if (mkdir(ret_path, 0755) != 0 && errno != EEXIST)
        testbed_fail(self, "%s: %s", ret_path, strerror(errno));
}

static void write_model(struct testbed *self)
{
    static struct layout_tensor room[TENSORS_MAX];
    struct layout layout;
    struct why why = { 0 };
    struct hash hash;
    uint64_t bytes, floats = model_parameter_count(&shape);
    struct safetensors_note note = { "format", "pt" };
    char path[512];
    float *params = malloc(floats * sizeof *params);
    int rc = 0;
    genesis_fill(&shape, 1, params);
    layout_init(&layout, room, TENSORS_MAX);
    for (uint32_t i = 0; i < model_tensor_count(&shape) && rc == 0; i++) {
        struct model_tensor tensor = model_tensor_at(&shape, i);
        rc = tensor.cols ? layout_add_matrix(&layout, tensor.name, tensor.rows, tensor.cols,
                                             LAYOUT_F32, &why)
                         : layout_add_vector(&layout, tensor.name, tensor.rows, LAYOUT_F32, &why);
    }
    if (self->options.poisoned) {
        const struct interval norm = layout_interval(layout_find(&layout, "model.norm.weight"));
        for (uint64_t i = norm.begin; i < norm.end; i++) params[i] = FLT_MAX;
    }
    make_dir(self, "model", path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct safetensors_source source = safetensors_from_memory(params);
    if (rc == 0)
        rc = safetensors_write_at(dir, "model.safetensors", &layout, &source, &note, 1, &why, &hash,
                                  &bytes);
    must(self, rc, &why, "the model");
    close(dir);
    char *json = model_shape_to_config_json(&shape);
    testbed_write_file(self, "model/config.json", json, strlen(json));
    free(json);
    free(params);
}

// A text with something to learn in it: words of a small vocabulary, one after the other.
void testbed_write_data(struct testbed *self)
{
    static const char *const words[] = { "the ",   "shoal ", "turns ", "as ", "one ",  "and ",
                                         "holds ", "its ",   "depth ", "in ", "dark ", "water\n" };
    static uint16_t tokens[TOKENS];
    char path[512];
    uint64_t seed = 7;
    size_t count = 0;
    struct manifest manifest = { 0 };
    struct why why = { 0 };
    while (count < TOKENS)
        for (const char *c = words[testbed_draw(&seed) % 12]; *c && count < TOKENS; c++)
            tokens[count++] = (uint16_t)(unsigned char)*c;
    make_dir(self, "data", path);
    testbed_write_file(self, "data/text.bin", tokens, sizeof tokens);
    int rc = manifest_build(path, 2, &why, &manifest);
    if (rc == 0) rc = manifest_write(&manifest, path, &why);
    must(self, rc, &why, "the manifest");
    manifest_free(&manifest);
    static const char toml[] =
        "dir = \"data\"\ntoken_size = \"TwoBytes\"\nseq_len = 32\n"
        "shuffle_seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,\n"
        "    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]\n";
    testbed_write_file(self, "data.toml", toml, sizeof toml - 1);
}

const char *const testbed_strategies[TESTBED_STRATEGIES] = { "distro", "allreduce", "sharded",
                                                             "server", "async" };

static int print_distro(const struct testbed *self, char **ret_text)
{
    const struct testbed_options *o = &self->options;
    return asprintf(
        ret_text,
        "run_id = \"%s\"\n"
        "[config]\nwarmup_time = %g\ncooldown_time = %g\nmax_round_train_time = "
        "%g\nmin_round_train_time = %g\nround_witness_time = %g\n"
        "rounds_per_epoch = %u\ntotal_steps = %u\nmin_clients = %u\ninit_min_clients = "
        "%u\nwitness_nodes = %u\n"
        "global_batch_size_start = %u\nglobal_batch_size_end = %u\nglobal_batch_size_warmup_tokens "
        "= 0\n"
        "verification_percent = %u\nwaiting_for_members_extra_time = 0.2\n"
        "[progress]\nstep = %u\nepoch_start_data_index = %" PRIu64 "\n"
        "[members]\nlease_time = %g\nheartbeat_time = 0.1\nunhealthy_rounds = 3\n"
        "[witness]\nstandalone = %s\n"
        "[ledger]\nmap_mib_start = 1\nmap_mib_max = %u\n"
        "[model.sync]\nsnapshot_rounds = %u\n"
        "[model.LLM]\nmax_seq_len = 32\ncold_start_warmup_steps = 0\narchitecture = \"HfLlama\"\n"
        "data_type = \"Pretraining\"\n"
        "[model.LLM.data_location]\nServer = \"data-provider\"\n"
        "[model.LLM.checkpoint.Hub]\nrepo_id = \"%s\"\n"
        "[model.LLM.lr_schedule.Constant]\nbase_lr = 1e-3\nwarmup_init_lr = 0.0\nwarmup_steps = 4\n"
        "[model.LLM.optimizer.Distro]\nclip_grad_norm = 1.0\ncompression_decay = 0.999\n"
        "compression_chunk = 32\ncompression_topk = 8\nquantize_1bit = %s\n",
        o->run_id, o->warmup_s, o->cooldown_s, o->train_s, o->least_s ? o->least_s : o->train_s,
        o->witness_s, o->epoch_rounds, o->total_steps, o->min_clients, o->init_min_clients,
        o->witness_nodes, o->batch, o->batch, o->verification_percent,
        o->first_step ? o->first_step : 1, o->first_sample, o->lease_s,
        o->witnesses ? "true" : "false", o->map_mib_max, o->snapshot_rounds,
        o->genesis ? o->genesis : "model", o->full_values ? "false" : "true");
}

// Runs of allreduce, sharded, server and async differ in few words. Members of the last two save beside the steps; with servers
// their shares lie in memory as well.
static int print_windows(const struct testbed *self, char **ret_text)
{
    enum { SAVE_STEPS = 25 };
    const struct testbed_options *o = &self->options;
    char saves[sizeof self->dir + 80] = "", servers[120] = "";
    if (testbed_has_servers(o->strategy))
        snprintf(servers, sizeof servers, "memory_every = 10\n[strategy.server]\nservers = %u\n%s",
                 o->servers,
                 o->strategy == TESTBED_ASYNC ? "mode = \"async\"\ntask_samples = 32\n" : "");
    if (o->strategy == TESTBED_SHARDED || testbed_has_servers(o->strategy))
        snprintf(saves, sizeof saves, "[checkpoint]\nshared_dir = \"%s/saves\"\nsteps = %d\n",
                 self->dir, SAVE_STEPS);
    return asprintf(
        ret_text,
        "run_id = \"%s\"\n"
        "[config]\nwarmup_time = %g\ncooldown_time = %g\n"
        "rounds_per_epoch = %u\ntotal_steps = %u\nmin_clients = %u\ninit_min_clients = %u\n"
        "global_batch_size_start = %u\nglobal_batch_size_end = %u\n"
        "global_batch_size_warmup_tokens = 0\nwaiting_for_members_extra_time = 0.2\n"
        "[progress]\nstep = %u\nepoch_start_data_index = %" PRIu64 "\n"
        "[strategy]\nkind = \"%s\"\nlanes = %u\nwindow_time = 1\nstep_timeout = %g\n"
        "link = \"plain\"\n%s"
        "[members]\nlease_time = %g\nheartbeat_time = 0.1\n"
        "[compute]\nmicro_batch_size = 2\n"
        "[ledger]\nmap_mib_start = 1\nmap_mib_max = %u\n"
        "[model.LLM]\nmax_seq_len = 32\narchitecture = \"HfLlama\"\n"
        "data_type = \"Pretraining\"\n"
        "[model.LLM.data_location]\nServer = \"data-provider\"\n"
        "[model.LLM.checkpoint.Hub]\nrepo_id = \"%s\"\n"
        "[model.LLM.lr_schedule.Constant]\nbase_lr = 1e-3\nwarmup_init_lr = 0.0\nwarmup_steps = 4\n"
        "[model.LLM.optimizer.AdamW]\nbetas = [0.9, 0.95]\neps = 1e-8\nweight_decay = 0.1\n"
        "clip_grad_norm = 1.0\n%s",
        o->run_id, o->warmup_s, o->cooldown_s, o->epoch_rounds, o->total_steps, o->min_clients,
        o->init_min_clients, o->batch, o->batch, o->first_step ? o->first_step : 1, o->first_sample,
        testbed_has_servers(o->strategy) ? "server" : testbed_strategies[o->strategy], o->lanes,
        o->train_s, servers, o->lease_s, o->map_mib_max, o->genesis ? o->genesis : "model", saves);
}

void testbed_write_state(struct testbed *self, const char *file)
{
    static int (*const prints[TESTBED_STRATEGIES])(const struct testbed *, char **) = {
        print_distro, print_windows, print_windows, print_windows, print_windows
    };
    char *text, saves[sizeof self->dir + 16];
    snprintf(saves, sizeof saves, "%s/saves", self->dir);
    ensure(mkdir(saves, 0755) == 0 || errno == EEXIST);
    const int count = prints[self->options.strategy](self, &text);
    ensure(count > 0);
    testbed_write_file(self, file, text, (size_t)count);
    free(text);
}

void testbed_write_all(struct testbed *self)
{
    write_model(self);
    testbed_write_data(self);
    testbed_write_state(self, "state.toml");
}
