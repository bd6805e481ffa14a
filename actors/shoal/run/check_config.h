#pragma once
// check_config -- every fault of a state.toml and a data.toml: of the files, of what they name on
// this machine, and of the two together. `shoal validate-config` and `shoal doctor` print them.
//
//     struct config_check check = { .state_path = "state.toml", .data_path = "data.toml" };
//     int rc = config_check_run (&check);          check.faults has those of state.toml
//     rc = config_check_data (&check);             now those of data.toml
//     config_check_end (&check);

#include "common/config/data_config.h"
#include "common/config/run_config.h"
#include "common/learner/run_check.h"

struct config_check {
    const char *state_path, *data_path; // Borrowed; NULL: no such file
    struct run_config run;
    struct data_config data;
    struct run_model model;      // What `run` names, as far as it could be opened
    bool has_weights;            // In the folder of the model
    struct hash dataset;         // Of the data that data.toml names
    uint64_t samples;            // Of that data: the length of a pass
    struct hash manifest;        // Of the data that state.toml names, where it is Local
    struct config_faults faults; // Of the file that was checked last
    int result;                  // The first fault of both
};

// Each returns 0, perhaps with warnings in `faults`, or a fault (FAULT_CONFIG, FAULT_NOT_FOUND, ...).
// Check state.toml first: data.toml is compared with it if it has no fault.
int config_check_run(struct config_check *self);
int config_check_data(struct config_check *self);

// The digest of the model that state.toml names. It follows from all parameters, so they are loaded.
// FAULT_NOT_FOUND: its folder has no weights.
int config_check_model(const struct config_check *self, struct why *why, struct hash *ret_digest);

void config_check_end(struct config_check *self);
