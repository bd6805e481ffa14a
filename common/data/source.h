#pragma once
// source -- from the setting that says where a run's tokens are to a provider (provider.h) of them.
//
//     run_config ──source_of_config──▶ wire_data_source, part of CONFIG ──source_open──▶ provider

#include "common/config/data_config.h"
#include "common/config/run_config.h"
#include "common/data/provider.h"
#include "common/wire/wire.h"

// A folder relative to the state.toml becomes one that can be opened. FAULT_UNSUPPORTED for a
// bucket, FAULT_LIMIT for too long a path.
int source_of_config(const struct run_config *config, struct why *why,
                     struct wire_data_source *ret_source);

// The same for a data.toml: a folder, shuffled by its seed. FAULT_LIMIT.
int source_of_data_config(const struct data_config *config, struct why *why,
                          struct wire_data_source *ret_source);

// For a web server only: the digest that its manifest must have, and a callback for failed requests
// (http_range.h). A folder is compared with its own manifest, whose digest the caller compares.
struct source_check {
    struct hash manifest_digest; // All zero: bytes are not checked
    void (*refused)(void *arg, const char *reason, const char *next); // May be NULL
    void *arg;
};

// What can be said of the addresses of a web server without asking it: FAULT_CONFIG, FAULT_RANGE.
int source_check_web(const struct wire_data_source *source, const struct hash *manifest_digest,
                     struct why *why);

// Opens a folder and refuses what its reader could not use: no token file, a token size other than
// the manifest's, no manifest (FAULT_NOT_FOUND), another manifest than `pin` (FAULT_DIGEST; all zero:
// any). Data-providers, trainers and `shoal validate-config` open folders by it.
int source_open_folder(const struct wire_data_source *source, const struct samples_config *samples,
                       const struct hash *pin, struct why *why, provider_t **ret_provider);

// Opens a folder or a web server. `samples` gives seq_len and vocab_size; the source gives the
// width and the order of the tokens. `check` is read for a web server only. FAULT_UNSUPPORTED for a
// Server: its tokens come from another actor.
int source_open(const struct wire_data_source *source, const struct samples_config *samples,
                const struct source_check *check, struct why *why, provider_t **ret_provider);
