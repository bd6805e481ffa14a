// validate-config, explain -- check and explain a configuration before it is used. validate-config
// checks state.toml and what it names (run_check.h), then data.toml and the folder it names, then
// whether both fit together; it prints every fault, not only the first. With --pin it then writes the
// digests of model and data into state.toml. explain prints the same tables of keys that the checks
// read, so the two cannot differ.

#include "actors/shoal/run/check_config.h"
#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/run/pin.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "common/actor/command.h"
#include "common/checkpoint/shared_dir.h"
#include "common/config/print.h"
#include "common/data/source.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

// ---- the checks ----------------------------------------------------------------------------------

// Adds a fault or a warning at a setting of the file.
static void add(struct config_check *self, bool warning, const struct config_schema *schema,
                const struct config_origin *origin, const char *path, const char *text)
{
    char line[CONFIG_FAULT_TEXT];
    const struct config_key *key = config_key_find(schema, path);
    const struct toml_place place = { .line = origin->line[config_key_index(schema, key)],
                                      .column = 1 };
    snprintf(line, sizeof line, "%s: %.*s", path, CONFIG_FAULT_TEXT - 100, text);
    config_faults_add(&self->faults, warning, place, NULL, 0, line, "");
}

// Opens a folder of tokens as its reader will. If the model is known, a sample is read, since tokens
// of another width are beyond its vocabulary.
static int check_folder(const struct config_check *self, const struct wire_data_source *source,
                        uint64_t seq_len, const struct hash *pin, struct why *why,
                        struct hash *ret_manifest, struct hash *ret_dataset, uint64_t *ret_samples)
{
    const struct samples_config samples = { .seq_len = (uint32_t)seq_len,
                                            .vocab_size = self->model.shape.vocab };
    provider_t *provider;
    int rc = source_open_folder(source, &samples, pin, why, &provider);
    if (rc < 0) return rc;
    uint32_t *tokens = calloc(seq_len + 1, sizeof *tokens);
    rc = tokens ? provider_read(provider, 0, 1, tokens, why)
                : why_set(why, FAULT_MEMORY, "a sample of %" PRIu64 " tokens", seq_len);
    *ret_manifest = *provider_digest(provider);
    *ret_dataset = provider_dataset_digest(provider);
    *ret_samples = provider_count(provider);
    free(tokens);
    provider_close(&provider);
    return rc;
}

static void check_weights(struct config_check *self)
{
    self->has_weights = run_has_weights(self->model.folder);
    if (self->has_weights || !hash_is_none(&self->run.model_digest)) return;
    add(self, true, &config_run_schema, &self->run.origin, "model.digest",
        "not set, and the model's folder here has no weights: the run begins with whatever two "
        "thirds of its first trainers have");
}

// Each trainer has a folder of its own, so it may be missing on the machine of the coordinator.
static int check_local(struct config_check *self)
{
    static const char path[] = "model.LLM.data_location.Local";
    const struct wire_data_source *source = &self->model.data;
    struct why why = { 0 };
    struct hash dataset;
    uint64_t samples;
    if (access(source->where, F_OK) != 0) {
        snprintf(why.text, sizeof why.text, "%s is not on this machine; each trainer needs it",
                 source->where);
        add(self, true, &config_run_schema, &self->run.origin, path, why.text);
        return 0;
    }
    const int rc = check_folder(self, source, self->run.max_seq_len, &self->run.manifest_digest,
                                &why, &self->manifest, &dataset, &samples);
    if (rc < 0) add(self, false, &config_run_schema, &self->run.origin, path, why.text);
    return rc;
}

// A save is tried in the folder, as each trainer of the run tries it before it joins.
static int check_shared_dir(struct config_check *self)
{
    static const char path[] = "checkpoint.shared_dir";
    const struct run_config *run = &self->run;
    const char *folder = run->checkpoint_shared_dir;
    struct why why = { 0 };
    if (!folder[0]) return 0;
    if (!config_sums(run))
        add(self, true, &config_run_schema, &run->origin, path,
            "not used in a run of strategy.kind = \"distro\", and its coordinator refuses it; "
            "shoal train alone saves there");
    const int rc = shared_dir_check(folder, &why);
    if (rc == 0) return 0;
    const bool passes = !config_sums(run) || rc == FAULT_DISK_FULL; // As for a trainer
    add(self, passes, &config_run_schema, &run->origin, path, why.text);
    return passes ? 0 : rc;
}

int config_check_run(struct config_check *self)
{
    const struct run_config *run = &self->run;
    int rc = config_load_run(self->state_path, &self->run, &self->faults);
    if (rc == 0) {
        rc = run_check_all(run, &self->faults, &self->model);
        if (self->model.config) check_weights(self);
        if (rc == 0 && run->data_location == CONFIG_DATA_LOCAL) rc = check_local(self);
        if (check_shared_dir(self) < 0) rc = FAULT_CONFIG;
        config_faults_sort(&self->faults);
        if (rc < 0) rc = FAULT_CONFIG;
    }
    if (self->result == 0) self->result = rc;
    return rc;
}

// What two files say of the same data must agree; neither can be checked for that alone.
static int compare(struct config_check *self)
{
    const struct run_config *run = &self->run;
    struct why why = { 0 };
    if (self->data.seq_len != run->max_seq_len) {
        why_set(&why, 0,
                "%" PRIu64 ", but model.LLM.max_seq_len of %s is %" PRIu64
                "; both must have the same sequence length",
                self->data.seq_len, self->state_path, run->max_seq_len);
        add(self, false, &config_data_schema, &self->data.origin, "seq_len", why.text);
        return FAULT_CONFIG;
    }
    if (hash_is_none(&run->dataset_digest) || hash_is_none(&self->dataset) ||
        hash_equal(&run->dataset_digest, &self->dataset))
        return 0;
    why_set(&why, 0, "other samples, or in another order, than data.dataset_digest of %s names",
            self->state_path);
    add(self, false, &config_data_schema, &self->data.origin, "dir", why.text);
    return FAULT_CONFIG;
}

// Each trainer has one task at a time. With few of them in a pass some trainers have none as it ends.
static void check_tasks(struct config_check *self)
{
    const struct run_config *run = &self->run;
    const uint64_t tasks = (self->samples + run->task_samples - 1) / run->task_samples;
    const uint64_t wanted = CONFIG_TASKS_EACH * run->init_min_clients;
    const uint64_t right = self->samples / wanted ? self->samples / wanted : 1;
    struct why why = { 0 };
    // Data with so few samples that a task would be hardly larger than a batch is as good as it can be
    if (!config_is_async(run) || tasks >= wanted ||
        (tasks >= run->init_min_clients && right < CONFIG_TASK_BATCHES * run->batch_end))
        return;
    why_set(&why, 0,
            "%" PRIu64 " sequences, so a pass has %" PRIu64 " task%s of %" PRIu64
            " (strategy.server.task_samples of %s), for %" PRIu64 " trainer%s; with %" PRIu64
            " or fewer a task, each has %d of a pass",
            self->samples, tasks, show_s(tasks), run->task_samples, self->state_path,
            run->init_min_clients, show_s(run->init_min_clients), right, CONFIG_TASKS_EACH);
    add(self, true, &config_data_schema, &self->data.origin, "dir", why.text);
}

int config_check_data(struct config_check *self)
{
    static const struct hash any;
    const bool with_run = self->state_path && self->result == 0;
    int rc = config_load_data(self->data_path, &self->data, &self->faults);
    if (rc == 0) {
        struct wire_data_source source;
        struct why why = { 0 };
        struct hash manifest;
        rc = source_of_data_config(&self->data, &why, &source);
        if (rc == 0)
            rc = check_folder(self, &source, self->data.seq_len, &any, &why, &manifest,
                              &self->dataset, &self->samples);
        if (rc < 0) add(self, false, &config_data_schema, &self->data.origin, "dir", why.text);
        if (with_run && compare(self) < 0) rc = FAULT_CONFIG;
        if (with_run && rc == 0) check_tasks(self);
        config_faults_sort(&self->faults);
        if (rc < 0) rc = FAULT_CONFIG;
    }
    if (self->result == 0) self->result = rc;
    return rc;
}

int config_check_model(const struct config_check *self, struct why *why, struct hash *ret_digest)
{
    struct model_folder model;
    if (!self->has_weights)
        return why_set(why, FAULT_NOT_FOUND, "%s has no weights", self->model.folder);
    const int rc = model_folder_load(self->model.folder, why, &model);
    if (rc < 0) return rc;
    *ret_digest = model.digest;
    model_folder_free(&model);
    return 0;
}

void config_check_end(struct config_check *self)
{
    free(self->model.config);
    self->model.config = NULL;
}

// ---- validate-config ----------------------------------------------------------------------------

struct validate {
    struct config_check check;
    bool json, pin;
    json_t *files;
};

static json_t *faults_to_json(const struct config_faults *faults, const char *path, bool ok)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct config_fault *fault = &faults->list[i];
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:s, s:o, s:o}", "line", (int)fault->line, "column",
                            (int)fault->column, "severity", fault->warning ? "warning" : "error",
                            "text", shoal_text(fault->text), "note", shoal_text(fault->note)));
    }
    return json_pack("{s:o, s:b, s:i, s:i, s:o}", "file", shoal_text(path), "ok", ok, "errors",
                     (int)faults->errors, "warnings", (int)faults->warnings, "faults", list);
}

static void say(struct validate *self, const char *path, int rc)
{
    const struct config_faults *faults = &self->check.faults;
    if (self->json) json_array_append_new(self->files, faults_to_json(faults, path, rc == 0));
    else config_faults_print(faults, stderr);
}

static void validate_run(struct validate *self)
{
    const struct run_config *run = &self->check.run;
    const int rc = config_check_run(&self->check);
    say(self, self->check.state_path, rc);
    if (rc == 0 && !self->json)
        printf("%s: OK: run \"%s\", %" PRIu64 " steps of %" PRIu64 "..%" PRIu64
               " sequences of %" PRIu64 " tokens, %" PRIu64 " member%s to begin\n",
               self->check.state_path, run->run_id, run->total_steps, run->batch_start,
               run->batch_end, run->max_seq_len, run->init_min_clients,
               show_s(run->init_min_clients));
}

static void validate_data(struct validate *self)
{
    const struct data_config *data = &self->check.data;
    const int rc = config_check_data(&self->check);
    say(self, self->check.data_path, rc);
    if (rc == 0 && !self->json)
        printf("%s: OK: %s, sequences of %" PRIu64 " tokens of %u bytes\n", self->check.data_path,
               data->dir, data->seq_len, config_token_bytes(data->token_size));
}

// ---- --pin --------------------------------------------------------------------------------------

static int pin_model(const struct config_check *self, struct why *why, struct pin *ret_pin)
{
    *ret_pin = (struct pin){ "model", "digest", .there = self->run.model_digest };
    const int rc = config_check_model(self, why, &ret_pin->digest);
    return rc < 0 ? why_wrap(why, rc, "--pin") : 0;
}

static int pin_data(const struct config_check *self, struct why *why, struct pin *ret_pin)
{
    const struct run_config *run = &self->run;
    if (run->data_location == CONFIG_DATA_SERVER && !self->data_path)
        return why_set(why, FAULT_USAGE,
                       "--pin needs the data-provider's data.toml, too: --data-config FILE");
    if (run->data_location == CONFIG_DATA_HTTP)
        return why_set(why, FAULT_USAGE,
                       "--pin does not read a web server; `shoal manifest DIR --blocks`, where the "
                       "files are, prints the manifest_digest to set");
    *ret_pin =
        run->data_location == CONFIG_DATA_SERVER
            ? (struct pin){ "data", "dataset_digest", self->dataset, run->dataset_digest }
            : (struct pin){ "data", "manifest_digest", self->manifest, run->manifest_digest };
    if (!hash_is_none(&ret_pin->digest)) return 0;
    return why_set(why, FAULT_NOT_FOUND, "--pin: %s is not on this machine",
                   self->model.data.where);
}

static int pin(const struct validate *validate, struct why *why)
{
    const struct config_check *self = &validate->check;
    struct pin pins[2];
    char hex[HASH_HEX];
    int rc = pin_data(self, why, &pins[0]);
    if (rc == 0) rc = pin_model(self, why, &pins[1]);
    if (rc == 0) rc = pin_config(self->state_path, pins, 2, why);
    for (int i = 0; i < 2 && rc == 0 && !validate->json; i++)
        printf("%s: %s.%s = \"%s\"\n", self->state_path, pins[i].table, pins[i].key,
               hash_to_hex(&pins[i].digest, hex));
    return rc;
}

// ---- command line -------------------------------------------------------------------------------

static const struct flag check_flags[] = {
    FLAG("state", 0, "FILE", TO_TEXT(struct validate, check.state_path), "A run's state.toml"),
    FLAG("data-config", 'd', "FILE", TO_TEXT(struct validate, check.data_path),
         "A data-provider's data.toml"),
    FLAG("pin", 0, NULL, TO_SWITCH(struct validate, pin),
         "If there is no fault, write the digests of model and data into state.toml"),
    FLAG("json", 'j', NULL, TO_SWITCH(struct validate, json), "Print one JSON object"),
    { 0 },
};

static int needs_file(const void *line, struct why *why)
{
    const struct validate *self = line;
    if (self->pin && !self->check.state_path)
        return why_set(why, FAULT_USAGE, "--pin writes into --state FILE, which is missing");
    if (self->check.state_path || self->check.data_path) return 0;
    return why_set(why, FAULT_USAGE, "--state FILE or --data-config FILE is needed");
}

static const struct command_line check_line = {
    .flags = check_flags,
    .about = "Prints every fault of a configuration at once, and opens what it names: the model's "
             "folder, token files, their manifest. Exit code 78 if there is a fault.\n\n"
             "  shoal validate-config --state state.toml --data-config data.toml\n"
             "  shoal validate-config --state state.toml --data-config data.toml --pin\n",
    .check = needs_file,
};

int shoal_validate_config(int argc, char **argv)
{
    static struct validate self;
    struct why why = { 0 };
    command_parse(&check_line, argc, argv, &self, &why); // Has no number that could be wrong
    self.files = json_array();
    if (self.check.state_path) validate_run(&self);
    if (self.check.data_path) validate_data(&self);
    const int rc_pin = self.pin && self.check.result == 0 ? pin(&self, &why) : 0;
    config_check_end(&self.check);
    if (rc_pin < 0) return fault_exit(rc_pin, &why);
    if (self.json) {
        int rc = shoal_print_json(json_pack("{s:s, s:b, s:O}", "schema", "shoal.validate-config.1",
                                            "ok", self.check.result == 0, "files", self.files),
                                  &why);
        if (rc < 0) return fault_exit(rc, &why);
    }
    json_decref(self.files);
    return fault_exit_code(self.check.result);
}

// ---- explain ------------------------------------------------------------------------------------

struct explain {
    const char *name;
};

static const struct command_line explain_line = {
    .usage = "KEY",
    .about = "Explains a setting: meaning, type, unit, range, default; or the settings of a "
             "table. For `state.toml` or `data.toml` it prints the whole file with comments, "
             "ready to edit.\n\n"
             "  shoal explain config.min_clients\n"
             "  shoal explain state.toml > my-run/state.toml\n",
    .arguments = TO_TEXT(struct explain, name),
    .none = "a key is needed, or state.toml, or data.toml",
};

static bool is_of_data(const char *name)
{
    return config_key_find(&config_data_schema, name) && !config_key_find(&config_run_schema, name);
}

int shoal_explain(int argc, char **argv)
{
    struct explain self = { 0 };
    struct why why = { 0 };
    command_parse(&explain_line, argc, argv, &self, &why); // Has no number that could be wrong
    const char *name = self.name;
    if (strcmp(name, "state.toml") == 0)
        return config_print_sample(&config_run_schema, NULL, stdout), EX_OK;
    if (strcmp(name, "data.toml") == 0)
        return config_print_sample(&config_data_schema, NULL, stdout), EX_OK;
    int rc =
        config_explain(is_of_data(name) ? &config_data_schema : &config_run_schema, name, stdout);
    return rc < 0 ? EX_USAGE : EX_OK;
}
