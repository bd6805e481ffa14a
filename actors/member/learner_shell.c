#include "actors/member/learner_shell.h"
#include "actors/member/past_shell.h"
#include "common/actor/memory.h"
#include "common/actor/shell.h"
#include "common/bulk/bulk_client.h"
#include "common/crypto/merkle.h"
#include "common/data/proof.h"
#include "common/data/source.h"
#include "common/ensure.h"
#include "common/failpoint.h"
#include "common/learn/compute.h"
#include "common/learn/gemm.h"
#include "common/learn/model_config.h"
#include "common/learn/model_tensors.h"
#include "common/vector/checkpoint.h"
#include "common/vector/hf_folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REASON_MAX = 191, TENSORS_MAX = MODEL_LAYERS_MAX * MODEL_TENSORS_PER_LAYER + 3 };

struct learner {
    const struct learner_options *options;
    struct worker *worker;
    bool built, holding;
    struct wire_config config;
    char config_json[MODEL_CONFIG_BYTES_MAX + 1];
    struct model_shape shape;
    struct layout layout;
    struct layout_tensor *tensors;
    pool_t *pool;
    struct compute_config compute_config;
    chunks_t *chunks;
    payload_form_t *form;
    compute_t *compute;
    provider_t *provider;
    struct bulk_client *client;         // Of data-provider actors
    struct dataset dataset;             // What their samples are held against, once it is known
    struct hash data, order;            // What the run says it is, of the TRAIN in hand
    uint64_t floats, step;
    struct hash digest;
    struct hash *leaves;
    size_t leaf_count;
    float *params, *spare;              // compute_host of the replica; room for a pinned step
    uint32_t *tokens;                   // Of one batch
    uint64_t tokens_max;
    uint8_t *payload;
    struct past past;                   // For audits
    struct hash candidate;              // Payload that the candidate residual belongs to
    struct wire_holder providers[16];   // Of the TRAIN in hand
    uint32_t providers_count;
};

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// A reason as a field of an answer: cut to fit, no control characters.
static void put_reason(char reason[REASON_MAX + 1], const struct why *why)
{
    snprintf(reason, REASON_MAX + 1, "%.*s", REASON_MAX, why->text);
    for (char *c = reason; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
}

// ---- BUILD --------------------------------------------------------------------------------------

static void drop_model(struct learner *self)
{
    provider_close(&self->provider);
    bulk_client_destroy(&self->client);
    dataset_free(&self->dataset);
    compute_destroy(&self->compute);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    past_clear(&self->past);
    free(self->spare);
    free(self->tensors), free(self->leaves), free(self->tokens), free(self->payload);
    self->params = self->spare = NULL;
    self->tensors = NULL, self->leaves = NULL, self->tokens = NULL, self->payload = NULL;
    self->tokens_max = 0;
    self->built = self->holding = false;
}

static int fill_layout(struct learner *self, struct why *why)
{
    const uint32_t count = model_tensor_count(&self->shape);
    self->tensors = calloc(count, sizeof *self->tensors);
    if (!self->tensors) return why_set(why, FAULT_MEMORY, "%u tensors", count);
    int rc = model_tensors_layout(&self->shape, self->tensors, why, &self->layout);
    if (rc == 0) rc = chunks_of_model(&self->shape, self->config.chunk, why, &self->chunks);
    return rc;
}

// The bits of a gradient depend on it, so in a run that recomputes results it is everybody's.
static uint32_t micro_batch(const struct learner *self)
{
    return self->config.verification_percent ? self->config.micro_batch
                                             : self->options->micro_batch;
}

// Settles how the replica computes, and says what it will take before it takes it: activations that
// do not fit are computed again rather than kept.
static int plan_memory(struct learner *self, uint64_t beside, struct why *why)
{
    const struct learner_options *options = self->options;
    const uint64_t free_bytes = memory_available_bytes();
    struct compute_config *config = &self->compute_config;
    struct compute_memory memory;
    *config = (struct compute_config){ .shape = self->shape,
                                       .micro_batch = micro_batch(self),
                                       .seq = self->config.seq_len,
                                       .form = self->form,
                                       .decay = self->config.compression_decay,
                                       .trains = options->trains,
                                       .float32 = self->config.products == PRODUCTS_FLOAT32,
                                       .pool = self->pool };
    for (int less = 0; less <= 1; less++) {
        config->recompute = less;
        memory = compute_memory(&options->device, config);
        if (free_bytes == 0 || memory.host + beside <= free_bytes) break;
    }
    shell_log(6, "learner.memory parameters=%llu host_mib=%llu free_mib=%llu device_mib=%llu "
              "activations=%s", (unsigned long long)self->floats,
              (unsigned long long)(memory.host + beside) >> 20,
              (unsigned long long)free_bytes >> 20, (unsigned long long)memory.device >> 20,
              config->recompute ? "recomputed" : "kept");
    shell_log(6, "learner.compute products=%s threads=%u",
              wire_enum_name(&wire_enum_products, self->config.products), options->threads);
    const char *library = gemm_library(config->float32 ? GEMM_FLOAT32 : GEMM_BF16);
    if (library && options->trains && self->config.verification_percent)
        return why_set(why, FAULT_CONFIG,
                       "the run recomputes results, and the float32 products of this build are those "
                       "of %s, which nobody else's are to the bit; take a build without BLAS=1",
                       library);
    if (library && options->trains && options->device.kind == COMPUTE_CPU)
        shell_log(4, "learner.not_reproducible products_of=\"%s\": nobody can recompute these "
                  "gradients to the bit; a build without BLAS=1 has products of its own", library);
    if (free_bytes == 0 || memory.host + beside <= free_bytes) return 0;
    const bool less = options->trains && options->micro_batch > 1;
    return why_set(why, FAULT_MEMORY, "the model needs %llu MiB and there are %llu; %s",
                   (unsigned long long)(memory.host + beside) >> 20,
                   (unsigned long long)free_bytes >> 20,
                   less ? "--micro-batch-size 1 takes the least"
                        : "free some, or take a larger machine");
}

static int take_memory(struct learner *self, struct why *why)
{
    const uint64_t beside = self->floats * sizeof(float);
    int rc = plan_memory(self, beside, why);
    if (rc < 0) return rc;
    self->leaf_count = digest_leaf_count(self->floats);
    self->spare = aligned_alloc(64, (beside + 63) / 64 * 64);
    self->leaves = calloc(self->leaf_count, sizeof *self->leaves);
    self->payload = malloc(payload_bytes(self->form));
    if (!self->spare || !self->leaves || !self->payload)
        return why_set(why, FAULT_MEMORY, "%llu MiB for a copy of the parameters",
                       (unsigned long long)beside >> 20);
    rc = compute_new(&self->options->device, &self->compute_config, why, &self->compute);
    if (rc == 0) self->params = compute_host(self->compute);
    return rc;
}

// ---- samples of data-provider actors ------------------------------------------------------------

static int know_dataset(void *arg, const uint8_t *bytes, size_t count, struct why *why)
{
    struct learner *self = arg;
    struct dataset dataset;
    int rc = dataset_parse(bytes, count, &self->data, &self->order, why, &dataset);
    if (rc < 0) return rc;
    if (dataset.samples.config.seq_len != self->config.seq_len) {
        rc = why_set(why, FAULT_RANGE, "its samples are of seq_len %u, the run's of %u",
                     dataset.samples.config.seq_len, self->config.seq_len);
        dataset_free(&dataset);
        return rc;
    }
    dataset.samples.config.vocab_size = self->shape.vocab;
    dataset_free(&self->dataset);
    self->dataset = dataset;
    return 0;
}

static int take_samples(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                        size_t bytes_count, uint32_t *tokens, struct why *why)
{
    struct learner *self = arg;
    return dataset_check(&self->dataset, position, count, bytes, bytes_count, tokens, why);
}

static void refuse_provider(void *arg, const char *endpoint, const char *reason)
{
    (void)arg;
    shell_log(4, "data.refused provider=%s reason=\"%s\"; another one is asked", endpoint, reason);
}

static bool is_known(const struct learner *self)
{
    return self->dataset.manifest.file_count > 0 &&
           hash_equal(&self->dataset.manifest.digest, &self->data) &&
           hash_equal(&self->dataset.order, &self->order);
}

static int fetch_samples(void *context, uint64_t position, uint32_t count, uint32_t *tokens,
                         struct why *why)
{
    struct learner *self = context;
    if (self->providers_count == 0)
        return why_set(why, FAULT_UNREACHABLE, "no data-provider has joined the run; start one");
    bulk_client_set_providers(self->client, self->providers, self->providers_count);
    int rc = is_known(self) ? 0 : bulk_know_dataset(self->client, why);
    return rc < 0 ? rc : bulk_read_samples(self->client, position, count, tokens, why);
}

// A folder of our own is checked against its manifest, and that against what the run pins.
static int open_source(struct learner *self, const struct wire_data_source *data,
                       const struct samples_config *samples, struct why *why)
{
    int rc = source_open(data, samples, why, &self->provider);
    if (rc < 0 || data->kind != DATA_LOCAL) return rc;
    const struct hash *digest = provider_digest(self->provider), *pin = &self->config.data_digest;
    if (!digest)
        return why_set(why, FAULT_NOT_FOUND, "%s has no " MANIFEST_NAME ", by which its bytes are "
                       "checked; make it with `shoal manifest %s`", data->where, data->where);
    if (hash_is_none(pin) || hash_equal(digest, pin)) return 0;
    return why_set(why, FAULT_DIGEST, "%s is another dataset than [data] manifest_digest names",
                   data->where);
}

static int open_data(struct learner *self, struct why *why)
{
    const struct wire_data_source *data = &self->config.data;
    struct samples_config samples = { .seq_len = self->config.seq_len,
                                      .vocab_size = self->shape.vocab };
    if (data->kind != DATA_SERVER) return open_source(self, data, &samples, why);
    struct provider_fetch fetch = { .fetch = fetch_samples, .context = self, .count = 1 };
    // Not for long: the core tries again, with those who have joined by then.
    struct bulk_client_options client = { .identity = self->options->identity,
                                          .run = self->options->run_id,
                                          .seq_len = self->config.seq_len,
                                          .patience_ms = 1500,
                                          .rounds_max = 2,
                                          .take = take_samples,
                                          .know = know_dataset,
                                          .refused = refuse_provider,
                                          .arg = self };
    samples.token_bytes = data->token_bytes;
    int rc = bulk_client_new(&client, why, &self->client);
    return rc < 0 ? rc : provider_open_fetch(&fetch, &samples, why, &self->provider);
}

static int build(struct learner *self, const struct wire_config *config, struct why *why)
{
    drop_model(self);
    self->config = *config;
    if (config->verification_percent && self->options->trains &&
        self->options->device.kind != COMPUTE_CPU)
        return why_set(why, FAULT_CONFIG,
                       "the run recomputes results (verification_percent %u), and what a GPU "
                       "computes nobody can recompute to the bit; use --device cpu",
                       config->verification_percent);
    if (config->verification_percent && config->micro_batch != self->options->micro_batch)
        shell_log(6, "learner.micro_batch size=%u; the run's, since it recomputes results",
                  config->micro_batch);
    if (config->model.count > MODEL_CONFIG_BYTES_MAX)
        return why_set(why, FAULT_LIMIT, "config.json of %u bytes", config->model.count);
    memcpy(self->config_json, config->model.data, config->model.count);
    self->config_json[config->model.count] = 0;
    int rc =
        model_shape_from_config_json(self->config_json, config->model.count, why, &self->shape);
    if (rc < 0) return rc;
    if (config->seq_len > self->shape.seq_len_max)
        return why_set(why, FAULT_RANGE, "max_seq_len %u, the model's config.json allows 1..%u",
                       config->seq_len, self->shape.seq_len_max);
    self->floats = model_parameter_count(&self->shape);
    if (config->verification_percent && self->floats > BLOB_BYTES_MAX / sizeof(float))
        return why_set(why, FAULT_LIMIT, "a model of %llu parameters; the run recomputes results, "
                       "and a residual of more than %zu cannot be revealed",
                       (unsigned long long)self->floats, BLOB_BYTES_MAX / sizeof(float));
    rc = fill_layout(self, why);
    if (rc == 0)
        rc = payload_form_new(self->chunks, config->topk, config->one_bit, why, &self->form);
    if (rc == 0) rc = take_memory(self, why);
    if (rc == 0 && self->options->trains) rc = open_data(self, why);
    self->built = rc == 0;
    return rc;
}

static void hear_build(struct learner *self, const struct wire_config *config)
{
    struct why why = { 0 };
    failpoint("learner_build");
    const int rc = build(self, config, &why);
    struct wire_built built = { .ok = rc == 0, .floats = self->floats,
                                .may_pass = rc == FAULT_MEMORY };
    put_reason(built.reason, &why);
    if (built.ok) built.payload_bytes = (uint32_t)payload_bytes(self->form);
    if (!built.ok) drop_model(self);
    worker_answer(self->worker, FRAME_BUILT, &built);
}

// ---- LOAD, PIN ----------------------------------------------------------------------------------

static int take_digest(struct learner *self, struct why *why)
{
    const int rc = compute_leaves(self->compute, why, self->leaves);
    if (rc == 0) self->digest = merkle_root(self->leaves, self->leaf_count);
    return rc;
}

static int pin(struct learner *self, struct why *why)
{
    const int rc = compute_pull(self->compute, why);
    if (rc < 0) return rc;
    past_pinned(&self->past, self->step, &self->digest);
    failpoint("learner_pin");
    return blob_store_pin(self->options->store, self->step, &self->digest, self->params,
                          self->floats, self->leaves, self->leaf_count, why);
}

static int load_checkpoint(struct learner *self, const struct wire_load *load, struct why *why)
{
    checkpoint_t *checkpoint;
    int rc = checkpoint_open(load->path, load->step, self->options->run_id, why, &checkpoint);
    if (rc < 0) return rc;
    rc = checkpoint_load_params(checkpoint, &self->layout, self->params, why);
    checkpoint_close(&checkpoint);
    return rc;
}

static int take_staged(struct learner *self, const struct wire_load *load, struct why *why)
{
    struct hash digest;
    uint64_t floats;
    float *vector = blob_store_unstage(self->options->store, load->step, &digest, &floats);
    if (!vector)
        return why_set(why, FAULT_NOT_FOUND, "nothing is staged for step %llu",
                       (unsigned long long)load->step);
    if (floats == self->floats) memcpy(self->params, vector, floats * sizeof *vector);
    free(vector);
    return floats == self->floats
               ? 0
               : why_set(why, FAULT_FORMAT, "%llu floats were fetched, the model has %llu",
                         (unsigned long long)floats, (unsigned long long)self->floats);
}

static int load(struct learner *self, const struct wire_load *load, struct why *why)
{
    if (!self->built) return why_set(why, FAULT_CONFIG, "no model has been built");
    self->holding = false;
    past_clear(&self->past);
    int rc = !load->path[0] ? take_staged(self, load, why)
           : load->step > 0 ? load_checkpoint(self, load, why)
           : hf_folder_load(load->path, &self->layout, self->params, why);
    if (rc == 0) rc = compute_push(self->compute, why); // A residual belongs to who made it: zero
    if (rc == 0) rc = take_digest(self, why);
    if (rc < 0) return rc;
    if (load->path[0] && load->step == 0 && !hash_is_none(&self->config.genesis_digest) &&
        !hash_equal(&self->digest, &self->config.genesis_digest)) {
        char ours[HASH_HEX], theirs[HASH_HEX];
        return why_set(why, FAULT_DIGEST, "%s has digest %.16s, the run pins %.16s", load->path,
                       hash_to_hex(&self->digest, ours),
                       hash_to_hex(&self->config.genesis_digest, theirs));
    }
    self->step = load->step;
    self->holding = true;
    return pin(self, why);
}

static void hear_load(struct learner *self, const struct wire_load *job)
{
    struct why why = { 0 };
    failpoint("learner_load");
    struct wire_loaded loaded = { .ok = load(self, job, &why) == 0, .step = job->step };
    loaded.digest = self->digest;
    put_reason(loaded.reason, &why);
    worker_answer(self->worker, FRAME_LOADED, &loaded);
}

// ---- TRAIN --------------------------------------------------------------------------------------

static int read_samples(struct learner *self, const struct wire_train *job, struct why *why,
                        uint64_t *ret_count)
{
    uint64_t row = (uint64_t)self->config.seq_len + 1, count = 0;
    for (uint32_t i = 0; i < job->samples_count; i++)
        count += job->samples[i].end - job->samples[i].begin;
    if (count == 0 || count > 65535)
        return why_set(why, FAULT_RANGE, "%llu samples", (unsigned long long)count);
    if (count * row > self->tokens_max) {
        free(self->tokens);
        self->tokens = malloc(count * row * sizeof *self->tokens);
        self->tokens_max = self->tokens ? count * row : 0;
        if (!self->tokens)
            return why_set(why, FAULT_MEMORY, "%llu samples", (unsigned long long)count);
    }
    self->data = job->data;
    self->order = job->order;
    self->providers_count = job->providers_count;
    if (job->providers_count)
        memcpy(self->providers, job->providers, job->providers_count * sizeof *job->providers);
    uint64_t at = 0;
    for (uint32_t i = 0; i < job->samples_count; i++) {
        uint32_t n = (uint32_t)(job->samples[i].end - job->samples[i].begin);
        int rc =
            provider_read(self->provider, job->samples[i].begin, n, self->tokens + at * row, why);
        if (rc < 0) return rc;
        at += n;
    }
    *ret_count = count;
    return 0;
}

static int train(struct learner *self, const struct wire_train *job, struct why *why,
                 struct wire_trained *ret_trained)
{
    uint64_t began_us = now_us(), count = 0;
    double loss = 0, norm;
    float rate;
    memcpy(&rate, &job->lr_bits, sizeof rate);
    if (!self->holding || !self->options->trains || job->step != self->step)
        return why_set(why, FAULT_RANGE, "asked to train step %llu, step %llu is held",
                       (unsigned long long)job->step, (unsigned long long)self->step);
    int rc = read_samples(self, job, why, &count);
    if (rc == 0) rc = compute_gradient(self->compute, self->tokens, (uint32_t)count, why, &loss);
    if (rc == 0 && self->config.clip_norm > 0)
        rc = compute_clip(self->compute, (double)self->config.clip_norm, why, &norm);
    if (rc == 0) rc = compute_compress(self->compute, rate, why, self->payload);
    if (rc == 0)
        rc = compute_residual_hashes(self->compute, why, &ret_trained->residual_from,
                                     &ret_trained->residual_to);
    if (rc == 0)
        rc = blob_store_put(self->options->store, self->payload, payload_bytes(self->form), why,
                            &self->candidate);
    if (rc < 0) return rc;
    uint64_t took_us = now_us() - began_us;
    ret_trained->base = self->digest;
    ret_trained->payload = self->candidate;
    ret_trained->payload_bytes = (uint32_t)payload_bytes(self->form);
    ret_trained->loss = (float)loss;
    ret_trained->train_ms = (uint32_t)(took_us / 1000);
    ret_trained->tokens_per_s =
        (float)((double)count * self->config.seq_len * 1e6 / (double)(took_us + 1));
    return 0;
}

static void hear_train(struct learner *self, const struct wire_train *job)
{
    struct why why = { 0 };
    struct wire_trained trained = { .round = job->round };
    failpoint("learner_train");
    int rc = train(self, job, &why, &trained);
    failpoint("learner_trained");
    trained.ok = rc == 0;
    if (rc < 0 && why.text[0] == 0) why_set(&why, rc, "%s", fault_sentence(rc));
    put_reason(trained.reason, &why);
    worker_answer(self->worker, FRAME_TRAINED, &trained);
}

// ---- APPLY --------------------------------------------------------------------------------------

static int apply(struct learner *self, const struct wire_apply *job, struct why *why)
{
    struct apply_step step = { .weight_decay = self->config.weight_decay };
    memcpy(&step.rate, &job->lr_bits, sizeof step.rate);
    if (!self->holding || job->step != self->step)
        return why_set(why, FAULT_RANGE, "asked to apply commit %llu, step %llu is held",
                       (unsigned long long)job->step, (unsigned long long)self->step);
    past_applied(&self->past, job);
    const struct past_step *past = &self->past.steps[job->step % PAST_STEPS];
    struct past_results taken;
    int rc = past_results_take(self->options->store, self->form, past->payloads, past->count,
                               job->step, why, &taken);
    if (rc == 0 && taken.sound > 0)
        rc = compute_apply(self->compute, taken.results, taken.sound, &step, why);
    past_results_release(&taken);
    if (rc < 0) return rc;
    if (compute_has_candidate(self->compute)) {
        if (!hash_is_none(&job->own_payload) && hash_equal(&job->own_payload, &self->candidate))
            compute_adopt(self->compute);
        else
            compute_discard(self->compute);
    }
    self->step = job->step + 1;
    rc = take_digest(self, why);
    return rc == 0 && job->pin ? pin(self, why) : rc;
}

static void hear_apply(struct learner *self, const struct wire_apply *job)
{
    struct why why = { 0 };
    uint64_t began_us = now_us();
    failpoint("learner_apply");
    struct wire_applied applied = { .ok = apply(self, job, &why) == 0 };
    failpoint("learner_applied");
    applied.step = self->step;
    applied.digest = self->digest;
    applied.apply_ms = (uint32_t)((now_us() - began_us) / 1000);
    put_reason(applied.reason, &why);
    worker_answer(self->worker, FRAME_APPLIED, &applied);
}

// ---- SAVE ---------------------------------------------------------------------------------------

// All samples below the cursor that were not returned, as the manifest wants them.
static size_t done_list(const struct wire_save *job, struct interval *ret_list)
{
    size_t count = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i <= job->returned_count; i++) {
        uint64_t end = i < job->returned_count ? job->returned[i].begin : job->cursor;
        if (at < end) ret_list[count++] = (struct interval){ at, end };
        if (i < job->returned_count) at = job->returned[i].end;
    }
    return count;
}

static int save(struct learner *self, const struct wire_save *job, struct why *why)
{
    const struct learner_options *options = self->options;
    if (!options->checkpoint_root)
        return why_set(why, FAULT_CONFIG, "no --checkpoint-dir was given");
    bool held = self->holding && self->step == job->step && hash_equal(&self->digest, &job->digest);
    int rc = held ? compute_pull(self->compute, why)
                  : past_gather(options->store, &job->digest, self->floats, why, self->spare);
    if (rc < 0) return rc;
    const float *params = held ? self->params : self->spare;
    struct interval *done = calloc((size_t)job->returned_count + 1, sizeof *done);
    ensure(done);
    struct checkpoint_info info = { .epoch = job->epoch,
                                    .step = job->step,
                                    .digest = job->digest,
                                    .protocol = WIRE_PROTOCOL,
                                    .created_unix_s = shell_unix_ms() / 1000,
                                    .pass_length = CHECKPOINT_NUMBER_MAX,
                                    .cursor = job->cursor,
                                    .done = done,
                                    .done_count = done_list(job, done) };
    snprintf(info.run, sizeof info.run, "%s", options->run_id);
    // What a replica holds beside its parameters: each member's residual, which goes with the
    // member.
    struct tags_item item;
    struct tags tags;
    tags_init(&tags, &item, 1);
    static const void *const no_value[1];
    rc = tags_add(&tags, "distro-residual", TAG_DROP, self->floats, sizeof(float), why);
    char *config = model_config_with_dtype(self->config_json, "float32");   // As its numbers are
    ensure(config);
    struct checkpoint_parts parts = {
        .config_json = config, .state = &tags, .values = no_value, .keep = options->keep,
        .tokenizer_dir = options->tokenizer_dir ? options->tokenizer_dir : self->config.genesis };
    struct hash manifest;
    if (rc == 0)
        rc = checkpoint_write(options->checkpoint_root, &info, &parts, &self->layout, params, why,
                              &manifest);
    free(config);
    free(done);
    return rc;
}

static void hear_save(struct learner *self, const struct wire_save *job)
{
    struct why why = { 0 };
    failpoint("learner_save");
    struct wire_saved saved = { .ok = save(self, job, &why) == 0,
                                .epoch = job->epoch,
                                .step = job->step,
                                .digest = job->digest };
    snprintf(saved.name, sizeof saved.name, "step-%08llu", (unsigned long long)job->step);
    put_reason(saved.reason, &why);
    failpoint("learner_saved");
    worker_answer(self->worker, FRAME_SAVED, &saved);
}

// What it put into the store itself, and nobody needs any more.
static void hear_forget(struct learner *self, const struct wire_forget *job)
{
    for (uint32_t i = 0; i < job->blobs_count; i++)
        blob_store_forget(self->options->store, &job->blobs[i].hash);
}

// ---- SHOW, RECOMPUTE ----------------------------------------------------------------------------

static int show(struct learner *self, const struct wire_show *job, struct why *why,
                struct wire_shown *ret_shown)
{
    const float *residual =
        self->holding ? compute_residual_of(self->compute, &job->residual) : NULL;
    if (!residual)
        return why_set(why, FAULT_NOT_FOUND, "the residual of that result is no more here");
    ret_shown->blob.bytes = (uint32_t)(self->floats * sizeof *residual);
    return blob_store_put(self->options->store, residual, self->floats * sizeof *residual, why,
                          &ret_shown->blob.hash);
}

static void hear_show(struct learner *self, const struct wire_show *job)
{
    struct why why = { 0 };
    struct wire_shown shown = { .round = job->round, .residual = job->residual };
    shown.ok = show(self, job, &why, &shown) == 0;
    put_reason(shown.reason, &why);
    worker_answer(self->worker, FRAME_SHOWN, &shown);
}

// The revealed residual, if it is the one that the claim names. NULL for the declared zero.
static int take_residual(struct learner *self, const struct wire_recompute *job, struct why *why,
                         struct blob_ref *ret_ref)
{
    struct hash digest;
    if (hash_is_none(&job->audit.residual_from)) return 0;
    int rc = blob_store_get(self->options->store, &job->residual, why, ret_ref);
    if (rc < 0) return rc;
    if (ret_ref->count == self->floats * sizeof(float))
        rc = apply_digest((const void *)ret_ref->bytes, self->floats, self->pool, &digest);
    if (rc < 0) return rc;
    if (ret_ref->count == self->floats * sizeof(float) &&
        hash_equal(&digest, &job->audit.residual_from))
        return 0;
    return why_set(why, FAULT_FORMAT, "what was revealed is not the residual that the claim names");
}

static int recompute(struct learner *self, const struct wire_recompute *job,
                     const struct blob_ref *residual, struct why *why, struct wire_finding *ret)
{
    const struct wire_audit *audit = &job->audit;
    const struct past_means means = { self->options->store, self->form, self->pool,
                                      self->config.weight_decay, self->floats };
    struct compute_work work = { .residual = (const void *)residual->bytes,
                                 .clip = (double)self->config.clip_norm };
    const struct wire_train samples = {
        .samples = job->samples, .samples_count = job->samples_count, .providers = job->providers,
        .providers_count = job->providers_count, .data = job->data, .order = job->order };
    uint64_t count = 0;
    memcpy(&work.rate, &audit->lr_bits, sizeof work.rate);
    int rc = past_params(&self->past, &means, audit->step, &audit->base, why, self->spare);
    if (rc == 0) rc = read_samples(self, &samples, why, &count);
    if (rc < 0) return rc;
    work.params = self->spare, work.tokens = self->tokens, work.count = (uint32_t)count;
    rc = compute_again(self->compute, &work, why, self->payload, &ret->residual_to);
    if (rc < 0) return rc;
    ret->payload = hash_of(self->payload, payload_bytes(self->form));
    return 0;
}

// A revelation that does not fit the claim is none: its author may have shown others the right one,
// and who called the result different would be the liar. What we lack ourselves is no finding about
// anybody.
static void hear_recompute(struct learner *self, const struct wire_recompute *job)
{
    struct why why = { 0 };
    struct blob_ref residual = { 0 };
    struct wire_finding finding = { .round = job->round, .result = job->audit.result,
                                    .finding = FINDING_UNABLE };
    int rc = self->built && self->options->trains
                 ? take_residual(self, job, &why, &residual)
                 : why_set(&why, FAULT_CONFIG, "no model has been built");
    if (rc == FAULT_FORMAT) finding.finding = FINDING_WITHHELD;
    if (rc == 0) rc = recompute(self, job, &residual, &why, &finding);
    if (rc == 0)
        finding.finding = hash_equal(&finding.payload, &job->audit.payload) &&
                                  hash_equal(&finding.residual_to, &job->audit.residual_to)
                              ? FINDING_SAME : FINDING_DIFFERENT;
    blob_store_release(&residual);
    snprintf(finding.reason, sizeof finding.reason, "%.*s", (int)sizeof finding.reason - 1,
             rc < 0 ? why.text : "");
    for (char *c = finding.reason; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    worker_answer(self->worker, FRAME_RECOMPUTED, &finding);
}

// ---- the thread ---------------------------------------------------------------------------------

void learner_body(struct worker *worker, void *arg)
{
    struct learner *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = arg;
    self->worker = worker;
    self->pool = pool_new(self->options->threads);
    ensure(self->pool);
    struct job job;
    while (worker_next(worker, -1, &job) != WORKER_END) {
        struct why why = { 0 };
        switch (job.kind) {
        case FRAME_BUILD: hear_build(self, job.body); break;
        case FRAME_LOAD:  hear_load(self, job.body); break;
        case FRAME_TRAIN: hear_train(self, job.body); break;
        case FRAME_APPLY: hear_apply(self, job.body); break;
        case FRAME_SAVE:  hear_save(self, job.body); break;
        case FRAME_FORGET: hear_forget(self, job.body); break;
        case FRAME_SHOW:  hear_show(self, job.body); break;
        case FRAME_RECOMPUTE: hear_recompute(self, job.body); break;
        case FRAME_PIN:
            if (self->holding && self->step == ((const struct wire_pin *)job.body)->step &&
                pin(self, &why) < 0)
                shell_log(4, "learner.not_pinned step=%llu %s", (unsigned long long)self->step,
                          why.text);
            break;
        default: ensure_failed("a job that a learner knows", __FILE__, __LINE__);
        }
    }
    drop_model(self);
    pool_destroy(&self->pool);
    free(self);
}
