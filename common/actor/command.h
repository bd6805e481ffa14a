#pragma once
// command -- what the command lines of all actors share: flags, their environment twins, refusals.
//
// A flag wins over its environment twin, the twin over the default. Flags of Psyche that we have no
// thing for are known and refused by name, so that a Psyche user learns what is missing at once.

#include "common/actor/post.h"
#include "common/actor/ticket.h"
#include <argp.h>

struct command {
    const char *identity_path; // -i, --identity-secret-key-path, IDENTITY_SECRET_KEY_PATH
    const char *run_id;        // --run-id, RUN_ID
    const char *server_addr;   // --server-addr, SERVER_ADDR: the broker's host:port
    const char *server_key;    // --server-key, SERVER_KEY: its public key, 64 hex digits
    const char *ticket_text;   // --ticket, TICKET: all three at once, or a file that has them
    const char *state_dir;     // --state-dir, STATE_DIRECTORY
    bool json;                 // --json
    int verbose;               // -v
    struct ticket ticket;      // What all of these say, once checked
};

// To be added as a child of every actor's argp, with a struct command as its input.
extern const struct argp command_argp;

// The last checks that need the whole line: EX_USAGE texts name flag, value and what is allowed.
// Fills in what a ticket says and no flag does: run_id, server_addr, and `ticket` for the post.
int command_check(struct command *self, struct why *why);

// The same for who needs a broker: where it is and its key are known, or FAULT_USAGE. `address`:
// where it is if nobody says.
int command_check_broker(struct command *self, const char *address, struct why *why);

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
