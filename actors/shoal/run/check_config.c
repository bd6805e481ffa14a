// validate-config, explain -- check and explain a configuration before it is used. validate-config
// checks state.toml, then data.toml, then whether both have the same sequence length; it prints
// every fault, not only the first. explain prints the same tables of keys that the checks read, so
// the two cannot differ.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/config/data_config.h"
#include "common/config/print.h"
#include "common/config/run_config.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

struct check {
    const char *state_path, *data_path;
    bool json;
    struct run_config run;
    struct data_config data;
    struct config_faults faults; // Of the file in hand
    int result;                  // The first fault
    json_t *files;
};

// ---- validate-config ----------------------------------------------------------------------------

static json_t *faults_to_json(const struct config_faults *faults, const char *path, bool ok)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct config_fault *fault = &faults->list[i];
        json_array_append_new(list, json_pack("{s:i, s:i, s:s, s:s, s:s}", "line", (int)fault->line,
                                              "column", (int)fault->column, "severity",
                                              fault->warning ? "warning" : "error", "text",
                                              fault->text, "note", fault->note));
    }
    return json_pack("{s:s, s:b, s:i, s:i, s:o}", "file", path, "ok", ok, "errors",
                     (int)faults->errors, "warnings", (int)faults->warnings, "faults", list);
}

static void say(struct check *self, const char *path, int rc)
{
    if (self->json)
        json_array_append_new(self->files, faults_to_json(&self->faults, path, rc == 0));
    else config_faults_print(&self->faults, stderr);
    if (self->result == 0) self->result = rc;
}

static void check_run(struct check *self)
{
    const struct run_config *run = &self->run;
    int rc = config_load_run(self->state_path, &self->run, &self->faults);
    say(self, self->state_path, rc);
    if (rc == 0 && !self->json)
        printf("%s: OK: run \"%s\", %" PRIu64 " steps of %" PRIu64 "..%" PRIu64
               " sequences of %" PRIu64 " tokens, %" PRIu64 " members to begin\n",
               self->state_path, run->run_id, run->total_steps, run->batch_start, run->batch_end,
               run->max_seq_len, run->init_min_clients);
}

// Both files must have the same sequence length; neither can be checked for that alone.
static void check_data(struct check *self)
{
    int rc = config_load_data(self->data_path, &self->data, &self->faults);
    if (rc == 0 && self->state_path && self->result == 0 &&
        self->data.seq_len != self->run.max_seq_len) {
        char text[200];
        snprintf(text, sizeof text,
                 "seq_len: %" PRIu64 ", but model.LLM.max_seq_len of %s is %" PRIu64,
                 self->data.seq_len, self->state_path, self->run.max_seq_len);
        config_faults_add(&self->faults, false, (struct toml_place){ 0 }, NULL, 0, text,
                          "both must have the same sequence length");
        rc = FAULT_CONFIG;
    }
    say(self, self->data_path, rc);
    if (rc == 0 && !self->json)
        printf("%s: OK: %s, sequences of %" PRIu64 " tokens of %u bytes\n", self->data_path,
               self->data.dir, self->data.seq_len, config_token_bytes(self->data.token_size));
}

static const struct flag check_flags[] = {
    FLAG("state", 's', "FILE", TO_TEXT(struct check, state_path), "A run's state.toml"),
    FLAG("data-config", 'd', "FILE", TO_TEXT(struct check, data_path),
         "A data-provider's data.toml"),
    FLAG("json", 'j', NULL, TO_SWITCH(struct check, json), "Print one JSON object"),
    { 0 },
};

static int needs_file(const void *line, struct why *why)
{
    const struct check *self = line;
    if (self->state_path || self->data_path) return 0;
    return why_set(why, FAULT_USAGE, "--state FILE or --data-config FILE is needed");
}

static const struct command_line check_line = {
    .flags = check_flags,
    .about = "Prints every fault of a configuration at once. Exit code 78 if there is one.\n\n"
             "  shoal validate-config --state config/demo/state.toml\n"
             "  shoal validate-config --state state.toml --data-config data.toml --json\n",
    .check = needs_file,
};

int shoal_validate_config(int argc, char **argv)
{
    static struct check self;
    struct why why = { 0 };
    command_parse(&check_line, argc, argv, &self, &why); // Has no number that could be wrong
    self.files = json_array();
    if (self.state_path) check_run(&self);
    if (self.data_path) check_data(&self);
    if (self.json) {
        int rc = shoal_print_json(json_pack("{s:s, s:b, s:O}", "schema", "shoal.validate-config.1",
                                            "ok", self.result == 0, "files", self.files),
                                  &why);
        if (rc < 0) return fault_exit(rc, &why);
    }
    json_decref(self.files);
    return fault_exit_code(self.result);
}

// ---- explain ------------------------------------------------------------------------------------

struct explain {
    const char *name;
};

static const struct command_line explain_line = {
    .usage = "KEY",
    .about = "Explains a setting: meaning, type, unit, range, default. For `state.toml` or "
             "`data.toml` it prints the whole file with comments, ready to edit.\n\n"
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
        return config_print_sample(&config_run_schema, stdout), EX_OK;
    if (strcmp(name, "data.toml") == 0)
        return config_print_sample(&config_data_schema, stdout), EX_OK;
    int rc =
        config_explain(is_of_data(name) ? &config_data_schema : &config_run_schema, name, stdout);
    return rc < 0 ? EX_USAGE : EX_OK;
}
