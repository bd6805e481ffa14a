#pragma once
// services -- a run as services of this machine: the long way of systemd/README.md by one command,
// `shoal up DIR --systemd`.
//
//     DIR/state.toml, data.toml, the model, the tokens  ─▶  /etc/shoal/RUN/, copied
//     the settings of each actor                        ─▶  /etc/shoal/UNIT.env
//     shoal-broker, shoal-coordinator@RUN, shoal-data-provider@RUN, shoal-checkpointer@RUN,
//     shoal-parameter-server@RUN-1, shoal-trainer@RUN-1 ...  ─▶  enabled and started
//     checkpoint.shared_dir                             ─▶  a drop-in for those that save (service_saves.h)
//
// The units' names have the run in them, so those of other runs stay as they are. Each service has a key of its own and
// keeps its state below /var/lib/shoal. The coordinator's key is made here, since the broker must know it. The keys in
// DIR/run are not used. A run that `shoal up` has begun in the foreground is refused, since its records would stay
// behind.
//
// With the same options, a second call only starts what does not run. With others it also changes the settings, and
// restarts the units that run with the old ones, also if an earlier call failed between the two. Fewer trainers or
// servers than before are refused.

#include "actors/shoal/local/way_in.h"
#include "common/config/run_config.h"

struct services_options {
    const char *dir;                 // Made by `shoal init`
    const struct run_config *config; // Its state.toml
    struct way_in way_in;
    uint32_t trainers;
    uint32_t standby;    // Parameter servers more than the run has places for
    const char *threads; // Of each trainer; NULL: its default
    const char *label;   // The trainers are named label-1, label-2 ..; NULL: by key alone
};

// Prints each command and each file before it does it, and a summary on stdout. FAULT_DENIED: we are
// not root. FAULT_UNAVAILABLE: systemd, the units or the user is missing, or another run has the
// broker of this machine; `why` says what to do. FAULT_CONFIG: the folder, its settings or an earlier call do not fit;
// or a file in /etc/shoal or a drop-in is not this run's, and is not touched.
int services_start(const struct services_options *options, struct why *why);

// Before a start in the foreground: FAULT_CONFIG if the folder's run is one of this machine's services,
// where its records are.
int services_check_foreground(const char *dir, const char *run, struct why *why);
