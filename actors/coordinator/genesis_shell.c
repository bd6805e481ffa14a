// genesis_shell -- makes the rules in this order: what needs only the configuration and the key,
// the model's config.json, the size of a result of that model, the place of the data. The first
// fault ends it.

#include "actors/coordinator/genesis_shell.h"
#include "actors/coordinator/rules_shell.h"
#include "common/base/dirfile.h"
#include "common/bulk/blob_store.h"
#include "common/data/source.h"
#include "common/model/model_config.h"
#include "common/optimizer/payload.h"
#include "common/pace/rounds/rounds_config.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MODEL_JSON_MAX = 65535 }; // Bytes; members keep it in memory

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

static int read_model(const char *folder, struct why *why, char **ret_model, size_t *ret_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/config.json", folder);
    const int rc = dirfile_slurp(AT_FDCWD, path, true, MODEL_JSON_MAX, why, ret_model, ret_bytes);
    return rc < 0 ? why_wrap(why, rc,
                             "[model.LLM.checkpoint] names a Hugging Face folder (make one with "
                             "shoal init-model)")
                  : 0;
}

// All results of a run have one size, which follows from the model's shape and the compression.
static int size_payloads(struct why *why, struct rules *rules)
{
    const struct wire_config *frame = &rules->frame;
    struct wire_rounds_config strategy = *rounds_config(rules);
    struct model_shape shape;
    chunks_t *chunks;
    payload_form_t *form;
    int rc = model_shape_from_config_json((const char *)frame->model.data, frame->model.count, why,
                                          &shape);
    if (rc == 0)
        rc = payload_form_of_model(&shape, strategy.chunk, strategy.topk, strategy.one_bit, why,
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
    strategy.payload_bytes = (uint32_t)bytes;
    rules_set_strategy(rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    return 0;
}

int genesis_rules(const struct run_config *config, const struct identity *identity, struct why *why,
                  struct rules *ret_rules, char **ret_model)
{
    struct rules rules;
    rules_of_config(config, &rules);
    rules.owner = *identity_key(identity);
    rules.audit_secret = audit_secret(config, identity);
    struct wire_config *frame = &rules.frame;
    if (config->optimizer != CONFIG_OPTIMIZER_DISTRO)
        return why_set(why, FAULT_UNSUPPORTED,
                       "model.LLM.optimizer: AdamW exchanges no results, so a run cannot be made "
                       "of it; write Distro, or use shoal train");
    int rc = config_resolve(&config->origin, config->checkpoint_folder, frame->genesis,
                            sizeof frame->genesis);
    char *model = NULL;
    size_t model_bytes = 0;
    if (rc == 0) rc = read_model(frame->genesis, why, &model, &model_bytes);
    frame->model = (struct wire_bytes){ (const uint8_t *)model, (uint32_t)model_bytes };
    if (rc == 0) rc = size_payloads(why, &rules);
    if (rc == 0) rc = source_of_config(config, why, &frame->data);
    if (rc < 0) {
        free(model);
        return rc;
    }
    *ret_rules = rules;
    *ret_model = model;
    return 0;
}
