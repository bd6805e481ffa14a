#pragma once
// source -- where a run's tokens are, as its state.toml says it, and a provider (provider.h) of
// them.
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

// The same of a data.toml: a folder, shuffled by its seed. FAULT_LIMIT.
int source_of_data_config(const struct data_config *config, struct why *why,
                          struct wire_data_source *ret_source);

// Of a web server alone: what it is held against, and who hears of it when it lies or dies
// (http_range.h). A folder is held against its own manifest, whose digest the caller compares.
struct source_check {
    struct hash manifest_digest; // All zero: what comes is believed
    void (*refused)(void *arg, const char *reason, const char *next); // May be NULL
    void *arg;
};

// Opens a folder or a web server. Of `samples`, seq_len and vocab_size are taken; width and order
// of the tokens are the source's. `check` is read for a web server alone. A Server is another actor's
// to ask: FAULT_UNSUPPORTED.
int source_open(const struct wire_data_source *source, const struct samples_config *samples,
                const struct source_check *check, struct why *why, provider_t **ret_provider);
