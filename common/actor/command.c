#include "common/actor/command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

const char *argp_program_version = "shoal " SHOAL_VERSION;
error_t argp_err_exit_status = EX_USAGE;

enum { KEY_RUN_ID = 1000, KEY_SERVER, KEY_STATE_DIR, KEY_INSECURE, KEY_JSON, KEY_REFUSED };

// Psyche's flags without a counterpart here, and where their thing is, if anywhere.
static const struct { const char *flag, *reason; } refused[] = {
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
        self->state_dir = command_env("STATE_DIRECTORY");
        break;
    case 'i':           self->identity_path = arg; break;
    case 'v':           self->verbose++; break;
    case KEY_RUN_ID:    self->run_id = arg; break;
    case KEY_SERVER:    self->server_addr = arg; break;
    case KEY_STATE_DIR: self->state_dir = arg; break;
    case KEY_INSECURE:  self->insecure = true; break;
    case KEY_JSON:      self->json = true; break;
    default:
        if (key < KEY_REFUSED || key >= KEY_REFUSED + REFUSED_COUNT) return ARGP_ERR_UNKNOWN;
        argp_error(state, "--%s is Psyche's and not supported: %s", refused[key - KEY_REFUSED].flag,
                   refused[key - KEY_REFUSED].reason);
    }
    return 0;
}

static struct argp_option options[7 + REFUSED_COUNT + 1] = {
    { "identity-secret-key-path", 'i', "FILE", 0,
      "32 random bytes (env IDENTITY_SECRET_KEY_PATH, or the "
      "secret itself as 64 hex digits in RAW_IDENTITY_SECRET_KEY)",
      1 },
    { "run-id", KEY_RUN_ID, "ID", 0, "The run to take part in (env RUN_ID)", 1 },
    { "server-addr", KEY_SERVER, "HOST:PORT", 0,
      "The broker: mail on PORT, news on PORT+1, publishing on "
      "PORT+2 (env SERVER_ADDR)",
      1 },
    { "state-dir", KEY_STATE_DIR, "DIR", 0, "What must survive a restart (env STATE_DIRECTORY)",
      1 },
    { "insecure", KEY_INSECURE, NULL, 0,
      "Allow other than loopback addresses: nothing is encrypted yet", 1 },
    { "json", KEY_JSON, NULL, 0, "Print JSON, one object a line", 1 },
    { "verbose", 'v', NULL, 0, "Log every message as well", 1 },
};

__attribute__((constructor)) static void list_refused_flags(void)
{
    for (int i = 0; i < REFUSED_COUNT; i++)
        options[7 + i] = (struct argp_option){ refused[i].flag, KEY_REFUSED + i, "X",
                                               OPTION_HIDDEN | OPTION_ARG_OPTIONAL, NULL, 1 };
}

const struct argp command_argp = { options, parse, NULL, NULL, NULL, NULL, NULL };

const char *command_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

bool command_is_loopback(const char *address)
{
    const char *host = strncmp(address, "tcp://", 6) == 0 ? address + 6 : address;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost:", 10) == 0 ||
           strncmp(host, "[::1]:", 6) == 0;
}

int command_require_loopback(const char *flag, const char *address, bool insecure, struct why *why)
{
    if (insecure || command_is_loopback(address)) return 0;
    return why_set(why, FAULT_USAGE,
                   "%s %s: only loopback addresses (127.0.0.1, [::1], localhost) without "
                   "--insecure, because transport is not encrypted yet",
                   flag, address);
}

int command_check(const struct command *self, struct why *why)
{
    char endpoint[128];
    if (self->run_id &&
        (!self->run_id[0] || strlen(self->run_id) > WIRE_RUN_MAX ||
         strspn(self->run_id,
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
             strlen(self->run_id)))
        return why_set(why, FAULT_USAGE, "--run-id \"%s\": 1 to %d of A-Z a-z 0-9 . _ -",
                       self->run_id, WIRE_RUN_MAX);
    if (!self->server_addr) return 0;
    if (!post_endpoint(self->server_addr, 2, endpoint, sizeof endpoint))
        return why_set(why, FAULT_USAGE, "--server-addr %s: HOST:PORT with PORT 1..65533",
                       self->server_addr);
    return command_require_loopback("--server-addr", self->server_addr, self->insecure, why);
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
