// The configuration: what validate-config checks, and the digest of the model, which it does not load.
// What the run then demands of a member follows from CONFIG, which state.toml makes.

#include "actors/coordinator/rules_shell.h"
#include "actors/coordinator/strategies_shell.h"
#include "actors/shoal/run/check_config.h"
#include "actors/shoal/run/doctor.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The line of a file says where; the sentence of each fault says what to do.
static void add_faults(struct doctor *self, const struct config_faults *faults, const char *check)
{
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct config_fault *fault = &faults->list[i];
        checkup_add(&self->checkup, fault->warning ? CHECKUP_WARNING : CHECKUP_WRONG, check,
                    "%s:%u: %s%s%s", faults->file, fault->line, fault->text,
                    fault->note[0] ? "; " : "", fault->note);
    }
}

static void take_demands(struct doctor *self, const struct config_check *check)
{
    const struct run_config *run = &check->run;
    self->has_config = true;
    self->config_digest = config_digest(run);
    snprintf(self->config_run, sizeof self->config_run, "%.*s", WIRE_RUN_MAX, run->run_id);
    self->demands.trainers = (uint32_t)run->init_min_clients;
    self->demands.ledger_bytes = run->map_mib_max << 20;
    struct rules *rules = calloc(1, sizeof *rules);
    ensure(rules);
    rules_of_config(run, rules);
    const struct strategy *strategy = strategy_of(run);
    if (strategy->set_model) strategy->set_model(&check->model, rules);
    struct wire_config frame = rules_frame(rules);
    frame.model =
        (struct wire_bytes){ (const uint8_t *)check->model.config, check->model.config_bytes };
    ensure(doctor_demands_of(&frame, &self->demands)); // Its checks have passed
    free(rules);
}

// All parameters are read, so this takes as long as a trainer takes to load them.
static void check_model(struct doctor *self, const struct config_check *check)
{
    const struct hash *pinned = &check->run.model_digest;
    const char *folder = check->model.folder;
    struct hash digest;
    struct why why = { 0 };
    char theirs[HASH_HEX], ours[HASH_HEX];
    if (hash_is_none(pinned)) {
        if (check->has_weights)
            checkup_add(&self->checkup, CHECKUP_NOT_CHECKED, "model",
                        "%s sets no model.digest; `shoal validate-config --pin` writes it",
                        check->state_path);
        return;
    }
    if (!check->has_weights) {
        checkup_add(&self->checkup, CHECKUP_NOT_CHECKED, "model",
                    "%s has no weights on this machine: they come from other members", folder);
        return;
    }
    if (config_check_model(check, &why, &digest) < 0)
        checkup_add(&self->checkup, CHECKUP_WRONG, "model", "%s", why.text);
    else if (!hash_equal(pinned, &digest))
        checkup_add(&self->checkup, CHECKUP_WRONG, "model",
                    "%s pins model.digest %.16s, and %s has %.16s: take the folder that the run "
                    "was made with",
                    check->state_path, hash_to_hex(pinned, theirs), folder,
                    hash_to_hex(&digest, ours));
    else
        checkup_add(&self->checkup, CHECKUP_OK, "model", "%s has the pinned digest %.16s", folder,
                    hash_to_hex(&digest, ours));
}

static void check_run(struct doctor *self, struct config_check *check)
{
    const struct run_config *run = &check->run;
    const int rc = config_check_run(check);
    add_faults(self, &check->faults, "state.toml");
    if (rc < 0) return;
    checkup_add(&self->checkup, CHECKUP_OK, "state.toml",
                "%s: run \"%s\", %" PRIu64 " steps, %" PRIu64 " trainers to begin",
                check->state_path, run->run_id, run->total_steps, run->init_min_clients);
    take_demands(self, check);
    check_model(self, check);
}

static void check_data(struct doctor *self, struct config_check *check)
{
    const bool is_pinned = check->state_path && !hash_is_none(&check->run.dataset_digest);
    const int rc = config_check_data(check);
    char hex[HASH_HEX];
    add_faults(self, &check->faults, "data.toml");
    if (rc < 0) return;
    checkup_add(&self->checkup, CHECKUP_OK, "data.toml", "%s: %s has the dataset %.16s%s",
                check->data_path, check->data.dir, hash_to_hex(&check->dataset, hex),
                is_pinned && check->result == 0 ? ", which state.toml pins" : "");
}

void doctor_files(struct doctor *self)
{
    static struct config_check check;
    check.state_path = self->state_path;
    check.data_path = self->data_path;
    if (self->state_path) check_run(self, &check);
    if (self->data_path) check_data(self, &check);
    config_check_end(&check);
}
