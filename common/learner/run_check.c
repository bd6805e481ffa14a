// One table says which checks there are, in which order, and at which setting a fault stands. A check
// that needs the model is left out if there is none: that fault is enough.
#include "common/learner/run_check.h"

#include "common/base/dirfile.h"
#include "common/bulk/blob_store.h"
#include "common/checkpoint/hf_folder.h"
#include "common/data/source.h"
#include "common/learner/first_state.h"
#include "common/model/model_config.h"
#include "common/optimizer/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODEL_JSON_MAX = 65535 }; // Bytes; members keep it in memory

// Distro is for results, the other optimizers are for sums of gradients.
static int check_optimizer(const struct run_config *config, struct run_model *model,
                           struct why *why)
{
    const bool is_distro = config->optimizer == CONFIG_OPTIMIZER_DISTRO;
    (void)model;
    if (config_sums(config) && is_distro)
        return why_set(why, FAULT_UNSUPPORTED,
                       "Distro exchanges results, not gradients; this strategy.kind needs AdamW, "
                       "Adam or SGD");
    if (!config_sums(config) && !is_distro)
        return why_set(why, FAULT_UNSUPPORTED,
                       "AdamW, Adam and SGD exchange no results, so a run cannot be made of them "
                       "with strategy.kind = \"distro\"; write Distro, or kind = \"allreduce\" if "
                       "the trainers trust one another, or use shoal train");
    return 0;
}

// "meta-llama/Llama-3.2-1B" is a name of the Hub's, "./model" and "/srv/model" are not.
static bool is_of_hub(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && slash != name && slash[1] && !strchr(slash + 1, '/') && name[0] != '.';
}

static int refuse_folder(const struct run_config *config, const char *folder, struct why *why)
{
    const int error = errno;
    if (error != ENOENT || !is_of_hub(config->checkpoint_folder))
        return why_set(why, fault_from_errno(error),
                       "%s: %s; a Hugging Face folder is wanted, shoal init-model makes one",
                       folder, strerror(error));
    return why_set(why, FAULT_NOT_FOUND,
                   "%s: no such folder, and nothing is fetched from the Hub; download %s with the "
                   "Hub's own tool and name the folder here",
                   folder, config->checkpoint_folder);
}

static int check_folder(const struct run_config *config, struct run_model *model, struct why *why)
{
    char path[sizeof model->folder + 16];
    struct stat status;
    size_t bytes;
    int rc = config_resolve(&config->origin, config->checkpoint_folder, model->folder,
                            sizeof model->folder);
    if (rc < 0)
        return why_set(why, rc, "its path is longer than %zu bytes", sizeof model->folder - 1);
    if (stat(model->folder, &status) != 0) return refuse_folder(config, model->folder, why);
    snprintf(path, sizeof path, "%s/config.json", model->folder);
    rc = dirfile_slurp(AT_FDCWD, path, true, MODEL_JSON_MAX, why, &model->config, &bytes);
    if (rc < 0 && pieces_is_save(model->folder))
        return why_set(why, FAULT_CONFIG,
                       "%s is a save in pieces, and a model's folder is wanted: name the save by "
                       "progress.state, or have shoal checkpoint export make a folder of it",
                       model->folder);
    if (rc < 0) return why_wrap(why, rc, "a Hugging Face folder is wanted");
    rc = model_shape_from_config_json(model->config, bytes, why, &model->shape);
    if (rc < 0) {
        free(model->config);
        model->config = NULL;
        return why_wrap(why, rc, "%s", path);
    }
    model->config_bytes = (uint32_t)bytes;
    return 0;
}

// A pin of the parameters holds for those of the state. Of a checkpoint the trainers find out as they read it.
static int check_params(const struct run_config *config, const char *folder, struct why *why)
{
    const struct hash *pin = &config->model_digest;
    struct hash found;
    char hex[HASH_HEX], pinned[HASH_HEX];
    if (hash_is_none(pin)) return 0;
    const int rc = first_state_params(folder, why, &found);
    if (rc < 0 || hash_is_none(&found) || hash_equal(&found, pin)) return rc;
    return why_set(why, FAULT_DIGEST,
                   "model.digest pins %.16s, and the parameters in %s have %s: write that digest, "
                   "or none",
                   hash_to_hex(pin, pinned), folder, hash_to_hex(&found, hex));
}

int run_first_state(const struct run_config *config, struct why *why,
                    char ret_folder[RUN_FOLDER_MAX])
{
    ret_folder[0] = 0;
    if (!config->progress_state[0]) return 0;
    if (config->optimizer == CONFIG_OPTIMIZER_DISTRO)
        return why_set(why, FAULT_UNSUPPORTED,
                       "with Distro a run begins with parameters alone: name their folder by "
                       "repo_id (shoal checkpoint export makes one)");
    int rc = config_resolve(&config->origin, config->progress_state, ret_folder, RUN_FOLDER_MAX);
    if (rc < 0) return why_set(why, rc, "its path is longer than %d bytes", RUN_FOLDER_MAX - 1);
    rc = first_state_look(ret_folder, config->progress_step - 1, why);
    return rc < 0 ? rc : check_params(config, ret_folder, why);
}

static int check_state(const struct run_config *config, struct run_model *model, struct why *why)
{
    return run_first_state(config, why, model->first_state);
}

// Of a save in pieces; of a checkpoint the trainers find out as they read it.
static int check_state_fits(const struct run_config *config, struct run_model *model,
                            struct why *why)
{
    const uint64_t ours = model_parameter_count(&model->shape);
    uint64_t count = 0;
    (void)config;
    const int rc = model->first_state[0] ? first_state_count(model->first_state, why, &count) : 0;
    if (rc < 0 || count == 0 || count == ours) return rc;
    return why_set(why, FAULT_FOREIGN,
                   "%s has %" PRIu64 " parameters, and the model in %s has %" PRIu64
                   ": name the model that it was saved with",
                   model->first_state, count, model->folder, ours);
}

bool run_has_weights(const char *folder)
{
    static const char *const files[] = { HF_FOLDER_WEIGHTS, HF_FOLDER_INDEX };
    char path[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (access(path, F_OK) == 0) return true;
    }
    return false;
}

static int check_length(const struct run_config *config, struct run_model *model, struct why *why)
{
    const uint32_t most = model_seq_len(&model->shape);
    if (config->max_seq_len <= most) return 0;
    return why_set(why, FAULT_RANGE, "%" PRIu64 ", but config.json of %s allows 1..%u",
                   config->max_seq_len, model->folder, most);
}

// All results of a run have one size, which follows from the model's shape and the compression.
static int check_results(const struct run_config *config, struct run_model *model, struct why *why)
{
    chunks_t *chunks;
    payload_form_t *form;
    if (config->optimizer != CONFIG_OPTIMIZER_DISTRO) return 0;
    int rc = payload_form_of_model(&model->shape, (uint32_t)config->compression_chunk,
                                   (uint32_t)config->compression_topk, config->quantize_1bit, why,
                                   &chunks, &form);
    if (rc < 0) return rc;
    const size_t bytes = payload_bytes(form);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
    if (bytes > BLOB_BYTES_MAX)
        return why_set(why, FAULT_LIMIT,
                       "a result of this model has %zu bytes, allowed 1..%d; a smaller "
                       "compression_topk makes it smaller",
                       bytes, BLOB_BYTES_MAX);
    model->result_bytes = (uint32_t)bytes;
    return 0;
}

// A share is whole leaves of the digest: of more servers than leaves some would own nothing.
static int check_servers(const struct run_config *config, struct run_model *model, struct why *why)
{
    const uint64_t floats = model_parameter_count(&model->shape);
    const uint64_t leaves = (floats + DIGEST_LEAF_FLOATS - 1) / DIGEST_LEAF_FLOATS;
    if (config_servers(config) <= leaves) return 0;
    return why_set(why, FAULT_RANGE,
                   "%u, but the model has %" PRIu64 " parameters, and a share is %d of them or "
                   "more: allowed 1..%" PRIu64,
                   config_servers(config), floats, DIGEST_LEAF_FLOATS, leaves);
}

static int check_data(const struct run_config *config, struct run_model *model, struct why *why)
{
    const int rc = source_of_config(config, why, &model->data);
    const bool web = model->data.kind == DATA_URL || model->data.kind == DATA_NUMBERED;
    return rc < 0 || !web ? rc : source_check_web(&model->data, &config->manifest_digest, why);
}

static const struct check {
    const char *path;
    int (*run)(const struct run_config *config, struct run_model *model, struct why *why);
    bool needs_model;
} checks[] = {
    { "model.LLM.optimizer", check_optimizer, false },
    { "model.LLM.checkpoint.Hub.repo_id", check_folder, false },
    { "progress.state", check_state, false },
    { "progress.state", check_state_fits, true },
    { "model.LLM.max_seq_len", check_length, true },
    { "model.LLM.optimizer.Distro.compression_topk", check_results, true },
    { "strategy.server.servers", check_servers, true },
    { "model.LLM.data_location", check_data, false },
};
enum { CHECKS = sizeof checks / sizeof *checks };

// The active setting of a check: of checkpoint.Hub.repo_id and checkpoint.P2P.repo_id one is.
static const char *path_of(const struct check *check, const struct run_config *config)
{
    if (check->run == check_folder && config->checkpoint == CONFIG_CHECKPOINT_P2P)
        return "model.LLM.checkpoint.P2P.repo_id";
    return check->path;
}

static int make(const struct check *check, const struct run_config *config, struct run_model *model,
                struct why *why)
{
    if (check->needs_model && !model->config) return 0;
    const int rc = check->run(config, model, why);
    return rc < 0 ? why_wrap(why, rc, "%s", path_of(check, config)) : 0;
}

int run_check(const struct run_config *config, struct why *why, struct run_model *ret_model)
{
    struct run_model model = { 0 };
    int rc = 0;
    for (int i = 0; i < CHECKS && rc == 0; i++) rc = make(&checks[i], config, &model, why);
    if (rc < 0) free(model.config);
    else *ret_model = model;
    return rc;
}

int run_check_all(const struct run_config *config, struct config_faults *faults,
                  struct run_model *ret_model)
{
    const struct config_schema *schema = &config_run_schema;
    struct run_model model = { 0 };
    int first = 0;
    for (int i = 0; i < CHECKS; i++) {
        struct why why = { 0 };
        const int rc = make(&checks[i], config, &model, &why);
        const struct config_key *key = config_key_find(schema, path_of(&checks[i], config));
        const uint32_t line = config->origin.line[config_key_index(schema, key)];
        if (rc < 0)
            config_faults_add(faults, false, (struct toml_place){ .line = line, .column = 1 }, NULL,
                              0, why.text, "");
        if (first == 0) first = rc;
    }
    config_faults_sort(faults);
    *ret_model = model;
    return first;
}
