#pragma once
// folder_shell -- what lies beside the ledger in the --state-dir, and says which run it is of:
//
//     state.toml         the configuration that the run was begun with
//     owner              the public key of the coordinator that began it, in hex
//     begun-anew         unix ms of the owner's word --begin-anew: what members know of other runs of this
//                        name, or of older copies of this one, from before that word is given up
//     begun-anew-after   the records that the ledger had at that word
//
// Each is written whole and durably (common/base/durable_file.h), before the run's first record. One
// thread, of a process that has the ledger's lock.

#include "common/config/run_config.h"
#include "common/crypto/identity.h"

struct run_folder {
    const char *path;       // The --state-dir
    const char *state_path; // The state.toml that the owner gives now
    bool begin_anew;        // The owner's word was said to this very process
    uint64_t anew_unix_ms;  // The newest such word; 0: none
    uint64_t anew_seq;      // Records here when it was said
};

// For a ledger without records: writes state.toml and owner. May be done again.
int run_folder_begin(const struct run_folder *self, const struct identity *identity,
                     struct why *why);

// For one with records: FAULT_FOREIGN if the key is not the run's, or if `config` is not that which it
// was `begun_with` (config_digest), naming the first setting that differs.
int run_folder_compare(const struct run_folder *self, const struct run_config *config,
                       const struct hash *begun_with, const struct identity *identity,
                       struct why *why);

// Writes down the owner's word, if it was said, and reads the newest one. `records` is what the ledger
// has: with none, no older word counts.
int run_folder_take_anew(struct run_folder *self, uint64_t records, struct why *why);

// Whether the owner has given up what a life of this coordinator, which began at `life_unix_ms`, said.
// Of this very run never what was ahead of this ledger at that word.
bool run_folder_gave_up(const struct run_folder *self, uint64_t life_unix_ms, bool is_this_run,
                        uint64_t log_seq);

// The word covers this life, too: its clock was ahead of ours.
int run_folder_give_up(struct run_folder *self, uint64_t life_unix_ms, struct why *why);
