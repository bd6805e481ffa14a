#pragma once
// train_settings -- what `shoal train` will do: a run's state.toml, changed by flags, turned into
// what the learner takes.
//
//     state.toml ──flags──▶ struct run_config ──▶ schedule, solo_options, source of the tokens
//
// Nothing is guessed: a setting that the file lacks and no flag gives is named.

#include "actors/shoal/model/model_folder.h"
#include "common/config/run_config.h"
#include "common/data/source.h"
#include "common/learner/run_check.h"
#include "common/learner/solo.h"
#include "common/run/schedule.h"
#include <limits.h>

enum { TRAIN_SETS_MAX = 64, TRAIN_RECIPE_MAX = CONFIG_CANONICAL_MAX + 4096 };

// The command line. NULL or 0 where a flag was not given and no default stands beside it.
struct train_flags {
    const char *state_path, *model, *init_seed, *data, *data_config, *shuffle_seed, *heldout;
    const char *optimizer, *learning_rate, *batch_size, *steps, *sets[TRAIN_SETS_MAX];
    const char *device, *checkpoint_dir, *log; // device "cpu"
    size_t sets_count;
    uint64_t token_bytes;
    uint64_t heldout_every, heldout_samples;   // 100, 256
    uint64_t micro_batch, threads, memory_mib; // That of state.toml, one per processor
    uint64_t lanes;                            // That of state.toml; with DisTrO 1
    uint64_t checkpoint_every, keep;           // keep 3
    bool no_shuffle, resume, no_checkpoint, json;
};

enum { TRAIN_HELDOUT_SAMPLES_MAX = 65536, TRAIN_ORDER_MAX = 160 };

struct train_settings {
    struct run_config config;
    char run[CHECKPOINT_RUN_MAX + 1]; // In checkpoints; ends in ".train": of no run
    char model[PATH_MAX];             // The folder
    // The folder of an earlier run's state, in the place of the model's parameters; "": none
    char first_state[RUN_FOLDER_MAX];
    bool init; // Random parameters of init_seed, not those of the folder
    uint64_t init_seed;
    struct model_shape shape;
    struct wire_data_source data;
    char order[TRAIN_ORDER_MAX]; // Of the samples, in words
    const char *heldout;         // Or NULL
    uint64_t heldout_every, heldout_samples;
    struct schedule schedule;
    struct cold_start cold;
    struct solo_options solo;
    struct compute_device device;
    uint64_t first_step, total_steps;
    uint64_t threads, memory_mib;    // memory_mib 0: what is free
    const char *checkpoint_dir;      // NULL: none is written
    uint64_t checkpoint_every, keep; // checkpoint_every 0: at the end alone
};

// Prints the warnings and faults of state.toml itself. FAULT_USAGE for a flag, FAULT_CONFIG ...
int train_settings_read(const struct train_flags *flags, struct why *why,
                        struct train_settings *ret_settings);

// What decides the bits of the result, one "key = value" a line: kept in each checkpoint, so that
// a resume with another recipe is reported.
void train_settings_recipe(const struct train_settings *self, char ret_text[TRAIN_RECIPE_MAX]);
