#pragma once
// folder_shell -- the files beside the ledger in the --state-dir. They say which run the ledger is
// of:
//
//     state.toml         the configuration that the run was begun with
//     owner              the public key of the coordinator that began it, in hex
//     begun-anew         a time in unix ms: when the owner last started with --begin-anew. run_folder_give_up may
//                        set it later. What members heard from coordinators that began before it no longer
//                        counts: of other runs of this name, and of copies of this run up to the next number
//     begun-anew-after   how many records the ledger had then
//
// Each file is written whole and durably (common/base/durable_file.h), the first two before the
// run's first record. One thread, of a process that has locked the ledger.

#include "common/config/run_config.h"
#include "common/crypto/identity.h"

struct run_folder {
    const char *path;       // The --state-dir
    const char *state_path; // The state.toml that the owner gives now
    bool begin_anew;        // This process was started with --begin-anew
    uint64_t anew_unix_ms;  // The time in begun-anew; 0: there is no such file
    uint64_t anew_seq;      // Records of the ledger at that time
};

// For a ledger without records: writes state.toml and owner. A retry does no harm.
int run_folder_begin(const struct run_folder *self, const struct identity *identity,
                     struct why *why);

// For a ledger with records: FAULT_FOREIGN if `identity` is not the owner, or if the digest of
// `config` (config_digest) is not `begun_with`; `why` then names the first setting that differs, or
// says that state.toml in the folder does not tell (lost, changed, or of another version of this program).
int run_folder_compare(const struct run_folder *self, const struct run_config *config,
                       const struct hash *begun_with, const struct identity *identity,
                       struct why *why);

// Records this start if it has --begin-anew, then reads the newest such start into *self.
// `records`: how many the ledger has. An empty ledger forgets earlier starts with --begin-anew.
int run_folder_take_anew(struct run_folder *self, uint64_t records, struct why *why);

// Whether the owner has given up what the life of this coordinator that began at `life_unix_ms`
// said about record `log_seq`. In this same run, only records up to anew_seq can be given up.
bool run_folder_gave_up(const struct run_folder *self, uint64_t life_unix_ms, bool is_this_run,
                        uint64_t log_seq);

// Extends --begin-anew to this life, whose clock was ahead of ours.
int run_folder_give_up(struct run_folder *self, uint64_t life_unix_ms, struct why *why);
