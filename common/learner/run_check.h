#pragma once
// run_check -- does what a state.toml names fit together? Each check opens something of this machine,
// or refuses what a run cannot do though the file may say it. The coordinator makes them when it
// starts and ends at the first fault; `shoal validate-config` prints them all.
//
//     model.LLM.optimizer       is the one of strategy.kind         FAULT_UNSUPPORTED for another
//     model.LLM.checkpoint      a folder with a config.json of a model that is computed here
//     progress.state            a save or a checkpoint of the step before progress.step, of as many
//                               parameters as the model                FAULT_FOREIGN
//     model.LLM.max_seq_len     at most what the model allows       FAULT_RANGE
//     compression_topk          results are not too large           FAULT_LIMIT
//     strategy.server.servers   at most the leaves of the model     FAULT_RANGE
//     model.LLM.data_location   can be read by a run                FAULT_UNSUPPORTED for buckets
//
// A data-provider and a trainer check their data by source_open_folder (common/data/source.h).

#include "common/config/run_config.h"
#include "common/model/model_layout.h"
#include "common/wire/wire.h"

enum { RUN_FOLDER_MAX = 256 }; // As frames carry them

struct run_model {
    char folder[RUN_FOLDER_MAX];      // With state.toml's own folder in front
    char first_state[RUN_FOLDER_MAX]; // Likewise; "": none
    char *config;                     // The text of its config.json, to be freed; NULL: not read
    uint32_t config_bytes;            // Of that text
    struct model_shape shape;         // What it says
    uint32_t result_bytes;            // All results of the run have this size; 0: not known
    struct wire_data_source data;
};

// The folder of progress.state, with state.toml's own in front; "" if it is not set. Faults of first_state_look and
// first_state_params; FAULT_DIGEST: model.digest pins other parameters; FAULT_UNSUPPORTED with Distro.
int run_first_state(const struct run_config *config, struct why *why,
                    char ret_folder[RUN_FOLDER_MAX]);

bool run_has_weights(const char *folder); // Beside its config.json

// Ends at the first fault, whose setting is named in `why`. *ret_model is written on success.
int run_check(const struct run_config *config, struct why *why, struct run_model *ret_model);

// Adds all faults, each at the line of its setting, and returns the first. What could be found out
// is in *ret_model, also after a fault.
int run_check_all(const struct run_config *config, struct config_faults *faults,
                  struct run_model *ret_model);
