// genesis_shell -- checks what the configuration names (run_check.h), then makes the rules: what
// follows from the configuration, from the key, from the model.

#include "actors/coordinator/genesis_shell.h"
#include "actors/coordinator/rules_shell.h"
#include "actors/coordinator/strategies_shell.h"
#include "common/learner/run_check.h"
#include "common/pace/pace.h"
#include <stdio.h>
#include <stdlib.h>

// A hash of the key's signature: nobody else can compute it, and each restart computes the same.
static struct hash audit_secret(const struct run_config *config, const struct identity *identity)
{
    static const char domain[] = "shoal audit secret 1";
    struct signature signature;
    char text[sizeof domain + sizeof config->run_id];
    const int count = snprintf(text, sizeof text, "%s %s", domain, config->run_id);
    identity_sign(identity, text, (size_t)count, &signature);
    return hash_of(signature.bytes, sizeof signature.bytes);
}

int genesis_rules(const struct run_config *config, const struct identity *identity, struct why *why,
                  struct rules *ret_rules, char **ret_model)
{
    struct rules rules;
    struct run_model model;
    const int rc = run_check(config, why, &model);
    if (rc < 0) return rc;
    rules_of_config(config, &rules);
    rules.owner = *identity_key(identity);
    rules.audit_secret = audit_secret(config, identity);
    struct wire_config *frame = &rules.frame;
    snprintf(frame->genesis, sizeof frame->genesis, "%s", model.folder);
    snprintf(frame->first_state, sizeof frame->first_state, "%s", model.first_state);
    frame->model = (struct wire_bytes){ (const uint8_t *)model.config, model.config_bytes };
    frame->data = model.data;
    const struct strategy *strategy = strategy_of(config);
    if (strategy->set_model) strategy->set_model(&model, &rules);
    if (pace_of(&rules)) {
        *ret_rules = rules;
        *ret_model = model.config;
        return 0;
    }
    free(model.config);
    return why_set(why, FAULT_UNSUPPORTED,
                   "strategy.kind: a coordinator of this program has no \"%s\"",
                   config_word_of(config->strategy)->name);
}
