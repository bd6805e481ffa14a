#pragma once
// command -- what the command lines of all actors share: flags, their environment twins, refusals.
//
// A flag wins over its environment twin, the twin over the default. Flags of Psyche that we have no
// thing for are known and refused by name, so that a Psyche user learns what is missing at once.

#include "common/actor/post.h"
#include "common/actor/shell.h"
#include <argp.h>

struct command {
    const char *identity_path;          // -i, --identity-secret-key-path, IDENTITY_SECRET_KEY_PATH
    const char *run_id;                 // --run-id, RUN_ID
    const char *server_addr;            // --server-addr, SERVER_ADDR: the broker's host:port
    const char *state_dir;              // --state-dir, STATE_DIRECTORY
    bool insecure;                      // --insecure: other than loopback, until transport is encrypted
    bool json;                          // --json
    int verbose;                        // -v
};

// To be added as a child of every actor's argp, with a struct command as its input.
extern const struct argp command_argp;

// The last checks that need the whole line: EX_USAGE texts name flag, value and what is allowed.
int command_check(const struct command *self, struct why *why);

// "tcp://127.0.0.1:*" or the like may be bound or reached without --insecure.
bool command_is_loopback(const char *address);
int command_require_loopback(const char *flag, const char *address, bool insecure, struct why *why);

// Loads the identity that path or environment name.
int command_identity(const struct command *self, struct why *why, struct identity **ret_identity);

// getenv, but empty counts as not set.
const char *command_env(const char *name);

// A number within [min, max], or FAULT_USAGE.
int command_number(const char *flag, const char *text, uint64_t min, uint64_t max, struct why *why,
                   uint64_t *ret_value);

#ifdef SHOAL_BLAS
#define SHOAL_VERSION "0.1.0, built with BLAS=1: float32 products are NOT reproducible"
#else
#define SHOAL_VERSION "0.1.0"
#endif
