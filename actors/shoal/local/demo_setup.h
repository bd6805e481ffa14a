#pragma once
// demo_setup -- the demo's folder: text, model and configuration of one run, ready to be started.
//
//     <dir>/.shoal-demo            says that this folder is a demo's and may be emptied by the next one
//     <dir>/text/train  heldout    the tokens, and baselines.json
//     <dir>/model/                 the genesis model
//     <dir>/state.toml data.toml   config/demo's, with digest and data folder filled in
//     <dir>/run/                   the children's own; <dir>/run/logs, <dir>/run/checkpoints

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

// FAULT_DENIED if `dir` holds files that no demo made. `say` gets one line for each thing that is
// done.
int demo_set_up(struct demo_setup *self, const char *dir, const char *config_dir, uint64_t seed,
                demo_text_say *say, void *context, struct why *why);
