#include "common/actor/command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

const char *argp_program_version = "shoal " SHOAL_VERSION;
error_t argp_err_exit_status = EX_USAGE;

enum {
    KEY_RUN_ID = 1000,
    KEY_SERVER,
    KEY_STATE_DIR,
    KEY_SERVER_KEY,
    KEY_TICKET,
    KEY_JSON,
    KEY_REFUSED
};

// Psyche's flags without a counterpart here, and where their thing is, if anywhere.
static const struct {
    const char *flag, *reason;
} refused[] = {
    { "tui", "there is no terminal interface; use zmq-monitor" },
    { "logs", "lines go to stderr, states to zmq-monitor" },
    { "iroh-relay", "peers are reached by tcp" },
    { "iroh-discovery", "peers are found through the broker" },
    { "bind-p2p-interface", "give the address to --bulk-bind" },
    { "oltp-metrics-url", "there is no OTLP export" },
    { "oltp-tracing-url", "there is no OTLP export" },
    { "oltp-logs-url", "there is no OTLP export" },
    { "oltp-auth-header", "there is no OTLP export" },
    { "oltp-report-interval", "there is no OTLP export" },
    { "metrics-local-port", "there is no metrics port; use zmq-monitor --json" },
    { "data-parallelism", "one process is one trainer; start several" },
    { "tensor-parallelism", "a model must fit one process" },
    { "hub-repo", "checkpoints are written to a folder; upload it with the hub's own tool" },
    { "hub-max-concurrent-downloads", "nothing is downloaded from the hub" },
    { "gcs-bucket", "checkpoints are written to a folder" },
    { "gcs-prefix", "checkpoints are written to a folder" },
    { "wandb-project", "there is no W&B export; use zmq-monitor --json" },
    { "wandb-run", "there is no W&B export" },
    { "wandb-group", "there is no W&B export" },
    { "wandb-entity", "there is no W&B export" },
    { "eval-tasks", "evaluation belongs to the learner's own tools" },
    { "eval-seed", "evaluation belongs to the learner's own tools" },
    { "eval-task-max-docs", "evaluation belongs to the learner's own tools" },
    { "prompt-task", "evaluation belongs to the learner's own tools" },
    { "write-gradients-dir", "results are kept by the checkpointer" },
    { "optim-stats-steps", "there are no optimizer statistics" },
    { "grad-accum-in-fp32", "gradients are always accumulated in float32" },
    { "sidecar-port", "there is no sidecar" },
    { "device", "the processor is the only device so far" },
    { "events-dir", "the coordinator's ledger is the event log" },
    { "withdraw-on-disconnect", "leases decide: [members] lease_time" },
};
enum { REFUSED_COUNT = sizeof refused / sizeof *refused };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct command *self = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        self->identity_path = command_env("IDENTITY_SECRET_KEY_PATH");
        self->run_id = command_env("RUN_ID");
        self->server_addr = command_env("SERVER_ADDR");
        self->server_key = command_env("SERVER_KEY");
        self->ticket_text = command_env("TICKET");
        self->state_dir = command_env("STATE_DIRECTORY");
        break;
    case 'i': self->identity_path = arg; break;
    case 'v': self->verbose++; break;
    case KEY_RUN_ID: self->run_id = arg; break;
    case KEY_SERVER: self->server_addr = arg; break;
    case KEY_STATE_DIR: self->state_dir = arg; break;
    case KEY_SERVER_KEY: self->server_key = arg; break;
    case KEY_TICKET: self->ticket_text = arg; break;
    case KEY_JSON: self->json = true; break;
    default:
        if (key < KEY_REFUSED || key >= KEY_REFUSED + REFUSED_COUNT) return ARGP_ERR_UNKNOWN;
        argp_error(state, "--%s is Psyche's and not supported: %s", refused[key - KEY_REFUSED].flag,
                   refused[key - KEY_REFUSED].reason);
    }
    return 0;
}

static struct argp_option options[8 + REFUSED_COUNT + 1] = {
    { "identity-secret-key-path", 'i', "FILE", 0,
      "32 random bytes (env IDENTITY_SECRET_KEY_PATH, or the "
      "secret itself as 64 hex digits in RAW_IDENTITY_SECRET_KEY)",
      1 },
    { "run-id", KEY_RUN_ID, "ID", 0, "The run to take part in (env RUN_ID)", 1 },
    { "server-addr", KEY_SERVER, "HOST:PORT", 0,
      "The broker: mail on PORT, news on PORT+1 (env SERVER_ADDR)", 1 },
    { "server-key", KEY_SERVER_KEY, "HEX", 0, "Its public key (env SERVER_KEY)", 1 },
    { "ticket", KEY_TICKET, "TICKET", 0,
      "Run, broker and its key at once, as `shoal invite` prints them; or a file with it "
      "(env TICKET)",
      1 },
    { "state-dir", KEY_STATE_DIR, "DIR", 0, "What must survive a restart (env STATE_DIRECTORY)",
      1 },
    { "json", KEY_JSON, NULL, 0, "Print JSON, one object a line", 1 },
    { "verbose", 'v', NULL, 0, "Log every message as well", 1 },
};

__attribute__((constructor)) static void list_refused_flags(void)
{
    for (int i = 0; i < REFUSED_COUNT; i++)
        options[8 + i] = (struct argp_option){
            refused[i].flag, KEY_REFUSED + i, "X", OPTION_HIDDEN | OPTION_ARG_OPTIONAL, NULL, 1
        };
}

const struct argp command_argp = { options, parse, NULL, NULL, NULL, NULL, NULL };

const char *command_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static int check_run(const char *run, struct why *why)
{
    if (run[0] && strlen(run) <= WIRE_RUN_MAX &&
        strspn(run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
            strlen(run))
        return 0;
    return why_set(why, FAULT_USAGE, "--run-id \"%s\": 1 to %d of A-Z a-z 0-9 . _ -", run,
                   WIRE_RUN_MAX);
}

static int check_address(const char *address, struct why *why)
{
    char endpoint[128];
    if (strlen(address) <= TICKET_ADDRESS_MAX &&
        post_endpoint(address, POST_PORTS - 1, endpoint, sizeof endpoint))
        return 0;
    return why_set(why, FAULT_USAGE, "--server-addr %s: HOST:PORT with PORT 1..%d", address,
                   65536 - POST_PORTS);
}

int command_check(struct command *self, struct why *why)
{
    struct ticket *ticket = &self->ticket;
    int rc = 0;
    if (self->ticket_text && (rc = ticket_read(self->ticket_text, why, ticket)) < 0)
        return why_wrap(why, rc, "--ticket");
    if (!self->run_id && ticket->run[0]) self->run_id = ticket->run;
    if (!self->server_addr && ticket->address[0]) self->server_addr = ticket->address;
    if (self->run_id) rc = check_run(self->run_id, why);
    if (rc == 0 && self->server_addr) rc = check_address(self->server_addr, why);
    if (rc < 0) return rc;
    if (self->server_key && !key_from_hex(self->server_key, &ticket->server))
        return why_set(why, FAULT_USAGE,
                       "--server-key %.80s: 64 hexadecimal digits, as "
                       "`shoal show-identity -i broker.key` prints them",
                       self->server_key);
    if (self->server_addr && self->server_addr != ticket->address)
        snprintf(ticket->address, sizeof ticket->address, "%s", self->server_addr);
    return 0;
}

int command_check_broker(struct command *self, const char *address, struct why *why)
{
    static const struct key nobody;
    int rc = command_check(self, why);
    if (rc < 0) return rc;
    if (!self->server_addr && address) {
        self->server_addr = address;
        rc = check_address(address, why);
        if (rc < 0) return rc;
        snprintf(self->ticket.address, sizeof self->ticket.address, "%s", address);
    }
    if (!self->server_addr)
        return why_set(why, FAULT_USAGE,
                       "where is the broker? --ticket TICKET (or TICKET) as "
                       "`shoal invite` prints it, or --server-addr HOST:PORT and --server-key HEX");
    if (!key_equal(&self->ticket.server, &nobody)) return 0;
    return why_set(why, FAULT_USAGE,
                   "which key has the broker at %s? --ticket TICKET (or TICKET) "
                   "as `shoal invite` prints it, or --server-key HEX (or SERVER_KEY) as "
                   "`shoal show-identity -i broker.key` does",
                   self->server_addr);
}

int command_identity(const struct command *self, struct why *why, struct identity **ret_identity)
{
    int rc = identity_load(self->identity_path, command_env(IDENTITY_ENV), why, ret_identity);
    if (rc == FAULT_CONFIG && !self->identity_path)
        return why_wrap(why, rc, "--identity-secret-key-path");
    return rc;
}

int command_number(const char *flag, const char *text, uint64_t min, uint64_t max, struct why *why,
                   uint64_t *ret_value)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value < min || value > max)
        return why_set(why, FAULT_USAGE, "%s %s: a whole number from %llu to %llu", flag, text,
                       (unsigned long long)min, (unsigned long long)max);
    *ret_value = value;
    return 0;
}
