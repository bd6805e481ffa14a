// evidence_shell -- the impure part of evidence.h: reads the configuration beside a ledger, and
// checks Ed25519 signatures.

#include "common/pace/evidence.h"
#include "actors/coordinator/rules_shell.h"
#include "common/base/ensure.h"
#include "common/base/fault.h"
#include "common/config/run_config.h"
#include "common/crypto/identity.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool evidence_verify(const struct key *key, const uint8_t *bytes, size_t count,
                     const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    struct signature signed_by;
    memcpy(signed_by.bytes, signature, sizeof signed_by.bytes);
    return signature_verify(key, bytes, count, &signed_by);
}

int evidence_open(const char *dir, struct why *why, struct evidence **ret_evidence)
{
    char path[4096];
    struct run_config *config = calloc(1, sizeof *config);
    struct config_faults *faults = calloc(1, sizeof *faults);
    ensure(config && faults);
    snprintf(path, sizeof path, "%s/state.toml", dir);
    int rc = config_load_run(path, config, faults);
    if (rc < 0)
        rc = why_set(why, rc,
                     "the records cannot be verified: %s cannot be loaded; "
                     "shoal validate-config says why",
                     path);
    if (rc == 0) {
        struct rules rules;
        rules_of_config(config, &rules);
        *ret_evidence = calloc(1, sizeof **ret_evidence);
        ensure(*ret_evidence);
        evidence_init(*ret_evidence, &rules, evidence_verify);
    }
    free(config);
    free(faults);
    return rc;
}

void evidence_close(struct evidence **self_p)
{
    free(*self_p);
    *self_p = NULL;
}
