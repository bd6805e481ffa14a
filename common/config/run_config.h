#pragma once
// run_config -- a run's state.toml, checked and typed. Psyche's keys with Psyche's meaning, and
// tables of our own; common/config/keys.def is the manual of every key, and config_explain prints
// it.
//
//     struct run_config config;
//     static struct config_faults faults;
//     int rc = config_load_run(path, &config, &faults);
//     config_faults_print(&faults, stderr);                   // Warnings too
//     if (rc < 0) return fault_exit_code(rc);
//
// Fields have the names of keys.def. Times end in _ms. Of a variant only the fields of the chosen
// word are active: lr_total_steps with CONFIG_SCHEDULE_LINEAR and _COSINE. A key that is not set is
// zero: epoch_ms or rounds_per_epoch (exactly one is set), model_digest, manifest_digest,
// dataset_digest, clip_grad_norm. Of run_state only CONFIG_RUN_STATE_PAUSED has a meaning: begin
// paused.

#include "common/base/hash.h"
#include "common/config/load.h"

#define SAME(scope, path, field, type, of, fallback, min, max, sentence)
#define KEY(scope, path, field, type, of, fallback, min, max, sentence) CONFIG_FIELD_##type(field)
struct run_config {
#include "common/config/keys.def"
    struct config_origin origin; // Where each value came from; not part of the digest
};

// Whether the trainers of this run sum among themselves (strategy.kind). Then they trust one another, each
// has a second port, for its links, and the newest state is in their memory alone.
bool config_sums(const struct run_config *config);

// The most members of a group of such a run, parameter servers included.
enum { CONFIG_GROUP_MAX = 64 };

// Of a run with tasks: so many batches a task, and so many tasks a trainer in a pass, are asked for.
enum { CONFIG_TASK_BATCHES = 4, CONFIG_TASKS_EACH = 8 };

// How many parameter servers it has.
uint32_t config_servers(const struct run_config *config);

// Whether it has parameter servers, and nobody waits for anybody (strategy.server.mode).
bool config_is_async(const struct run_config *config);

// Whether each of its members, or each of its servers, has a share of the state that no other one has.
bool config_shares(const struct run_config *config);

// Reads and checks a file. 0 and *ret_config written, or a fault (FAULT_CONFIG, FAULT_NOT_FOUND,
// ...) with nothing written. All messages are in *faults, which may have warnings even after 0.
int config_load_run(const char *path, struct run_config *ret_config, struct config_faults *faults);

// The canonical form of the run's configuration: one line "key = value" for each active setting of
// scope RUN, in the order of keys.def. Settings of scope LOCAL (endpoints, sizes of the ledger,
// kept checkpoints) are left out. Equal configurations have equal bytes, whatever their files look
// like.
enum { CONFIG_CANONICAL_MAX = 16384 };
size_t config_canonical(const struct run_config *config, char ret_bytes[CONFIG_CANONICAL_MAX]);
struct hash config_digest(const struct run_config *config); // SHA-256 of those bytes

// The first setting, in the order of keys.def, in which two configurations differ as runs. False if
// there is none. A setting that is not active in one of them reads "(not set)".
enum { CONFIG_VALUE_MAX = 600 };
struct config_difference {
    const char *path;
    char a[CONFIG_VALUE_MAX], b[CONFIG_VALUE_MAX];
};
bool config_first_difference(const struct run_config *a, const struct run_config *b,
                             struct config_difference *ret_difference);

// Turns a path from a file (Hub's repo_id, Local, dir) into one that can be opened: a relative path
// begins at the folder of that file. FAULT_LIMIT if it is longer than `max`.
int config_resolve(const struct config_origin *origin, const char *path, char *ret_path,
                   size_t max);
