#pragma once
// demo_setup -- the demo's folder: text, model and configuration of one run, ready to be started.
//
//     <dir>/.shoal-demo            a demo made this folder, so the next one may empty it
//     <dir>/text/train  heldout    the tokens, and baselines.json
//     <dir>/text/pass              the beginning of text/train, if the strategy needs a short pass
//     <dir>/model/                 the genesis model
//     <dir>/data.toml              of config/demo; the samples are those of <dir>/text/train
//     <dir>/state.toml             of config/demo, with the digests of this dataset and this model
//     <dir>/saves/                 those of the trainers, if the strategy needs them
//     <dir>/run/                   the state of the demo's processes; <dir>/run/logs, checkpoints

#include "common/config/run_config.h"
#include "common/model/model_layout.h"
#include "common/text/demo_text.h"
#include <limits.h>

struct demo_setup {
    char dir[PATH_MAX], config_dir[PATH_MAX];
    struct run_config config; // Of <dir>/state.toml
    struct model_shape shape;
    struct hash genesis;
    struct demo_text_result text;
};

// Finds config/demo: the given folder; else in the working directory; else beside or above our own
// program.
int demo_find_config(const char *given, char ret_dir[PATH_MAX], struct why *why);

struct demo_place {
    const char *dir;        // The demo's folder
    const char *config_dir; // As for demo_find_config
    const char *settings;   // The file of config_dir that becomes state.toml
    bool saves;             // The trainers save in <dir>/saves
    uint64_t pass_samples;  // Samples of the text to train on, from its beginning; 0: all of them
    uint64_t seed;          // Of the first parameters
};

// Makes the folder. An earlier demo in it is removed once the configuration's model.json is read.
// FAULT_DENIED, and nothing is changed: something is in it that no demo made. `say` gets what
// demo_text_prepare tells, then a line about the text and, at the end, one about the model.
int demo_set_up(struct demo_setup *self, const struct demo_place *place, demo_text_say *say,
                void *context, struct why *why);
