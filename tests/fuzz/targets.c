// targets -- the list: one line for each decoder and each core.

#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/network.h"
#include "tests/fuzz/tokenizer_check.h"
#include "tests/fuzz/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON files_fuzz_print_json_words
#define CORE event_mutate, event_print_dictionary

const struct fuzz_target fuzz_targets[] = {
    // From the network.
    { "wire", 4096, wire_fuzz_check, wire_fuzz_mutate, wire_fuzz_print_dictionary,
      wire_fuzz_write_seeds },
    { "payload", 1024, payload_fuzz_check, NULL, NULL, payload_fuzz_write_seeds },
    { "merkle", 64, merkle_fuzz_check, NULL, NULL, NULL },
    { "claims", 2048, claims_fuzz_check, NULL, NULL, claims_fuzz_write_seeds },
    { "http", 1024, http_fuzz_check, NULL, http_fuzz_print_dictionary, NULL },
    { "bulk", 512, bulk_fuzz_check, NULL, NULL, bulk_fuzz_write_seeds },
    { "questions", 512, questions_fuzz_check, event_mutate, NULL, questions_fuzz_write_seeds },
    { "ticket", 512, ticket_fuzz_check, NULL, NULL, ticket_fuzz_write_seeds },
    { "invitation", 1024, invitation_fuzz_check, NULL, NULL, invitation_fuzz_write_seeds },
    { "revoked", 1024, revoked_fuzz_check, NULL, NULL, revoked_fuzz_write_seeds },
    { "zap", 512, zap_fuzz_check, NULL, NULL, zap_fuzz_write_seeds },
    { "handshake", 64, handshake_fuzz_check, NULL, NULL, handshake_fuzz_write_seeds },
    { "link", 512, link_fuzz_check, NULL, NULL, link_fuzz_write_seeds },
    { "pushes", 512, pushes_fuzz_check, NULL, NULL, pushes_fuzz_write_seeds },
    { "dataset", 1024, dataset_fuzz_check, NULL, NULL, dataset_fuzz_write_seeds },
    { "samples", 8192, samples_fuzz_check, NULL, NULL, samples_fuzz_write_seeds },
    // From files.
    { "manifest", 4096, manifest_fuzz_check, NULL, JSON, manifest_fuzz_write_seeds },
    { "npy", 512, npy_fuzz_check, NULL, npy_fuzz_print_dictionary, npy_fuzz_write_seeds },
    { "tokens", 512, tokens_fuzz_check, NULL, npy_fuzz_print_dictionary, tokens_fuzz_write_seeds },
    { "checkpoint", 4096, checkpoint_fuzz_check, NULL, JSON, checkpoint_fuzz_write_seeds },
    { "pieces", 4096, pieces_fuzz_check, NULL, JSON, pieces_fuzz_write_seeds },
    { "saves", 512, saves_fuzz_check, NULL, JSON, saves_fuzz_write_seeds },
    { "ledger", 4096, ledger_fuzz_check, NULL, NULL, ledger_fuzz_write_seeds },
    { "tasks", 512, tasks_fuzz_check, NULL, NULL, tasks_fuzz_write_seeds },
    { "pages", 256, pages_fuzz_check, NULL, NULL, pages_fuzz_write_seeds },
    { "journal", 8193, journal_fuzz_check, NULL, NULL, journal_fuzz_write_seeds },
    { "config", 16384, config_fuzz_check, NULL, config_fuzz_print_dictionary,
      config_fuzz_write_seeds },
    { "json", 2048, json_fuzz_check, NULL, JSON, NULL },
    { "allowlist", 2048, allowlist_fuzz_check, NULL, NULL, NULL },
    { "choices", 2048, choices_fuzz_check, NULL, JSON, NULL },
    { "texts", 256, texts_fuzz_check, NULL, config_fuzz_print_dictionary, texts_fuzz_write_seeds },
    { "corpus", 1024, corpus_fuzz_check, NULL, JSON, corpus_fuzz_write_seeds },
    { "model", 4096, model_fuzz_check, NULL, NULL, NULL },
    { "tokenizer", 4096, tokenizer_check_bytes, NULL, JSON, NULL },
    // Cores, as conversations.
    { "coordinator", 4096, core_check_coordinator, CORE, core_write_seeds_coordinator },
    { "trainer", 4096, core_check_trainer, CORE, core_write_seeds_member },
    { "witness", 4096, core_check_witness, CORE, core_write_seeds_member },
    { "checkpointer", 4096, core_check_checkpointer, CORE, core_write_seeds_member },
    { "data-provider", 2048, core_check_provider, CORE, core_write_seeds_member },
    { "view", 2048, core_check_view, CORE, core_write_seeds_member },
    { "broker", 2048, core_check_broker, CORE, core_write_seeds_broker },
    { "post-office", 800, core_check_post_office, NULL, NULL, NULL },
    { NULL, 0, NULL, NULL, NULL, NULL },
};

bool fuzz_is_verbose(void)
{
    static int verbose = -1;
    if (verbose < 0) verbose = getenv("FUZZ_VERBOSE") != NULL;
    return verbose;
}

const struct fuzz_target *fuzz_target_named(const char *name)
{
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
        if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

void fuzz_print_token(const char *prefix, const char *name, const uint8_t *bytes, size_t count)
{
    printf("%s%s=\"", prefix, name);
    for (size_t i = 0; i < count; i++) printf("\\x%02x", bytes[i]);
    printf("\"\n");
}

void fuzz_write_seed(const char *folder, const char *name, const void *bytes, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0) return;
    fprintf(stderr, "%s: cannot be written: giving up\n", path);
    exit(74);
}
