// command -- a table of flags becomes argp's options, and what argp finds goes into the fields that
// the table names. First the tables are laid flat: one row for each flag, with the address of its
// field. Texts and switches are set when argp meets them, the environment twins before all of them.
// A number is kept as it is written and read at the end, so that an environment twin with a bad
// number does no harm where a flag overrides it. Before argp begins, flags that it would not know are
// looked at: a name near one that exists is a typing error, and the answer says so.

#include "common/actor/command.h"
#include "common/net/curve.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/base/nearest.h"
#include "common/base/plain_name.h"
#include <inttypes.h>
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>

const char *argp_program_version = "shoal " SHOAL_VERSION;
error_t argp_err_exit_status = EX_USAGE;

enum { ROWS_MAX = 96, KEY_FIRST = 1000, FLAG_NAME_MAX = 40 };

struct row {
    const struct flag *flag;
    void *field;
    const char *number; // FLAG_NUMBER, FLAG_REAL: as it is written; NULL: not given
};

struct parsing {
    const struct command_line *line;
    void *self;
    struct row rows[ROWS_MAX];
    int rows_count;
    size_t arguments; // Arguments taken so far
    int rc;           // The fault of the numbers; its text is in `why`
    struct why *why;
};

// ---- the table ----------------------------------------------------------------------------------

static void *field_at(void *self, size_t offset) { return (char *)self + offset; }

static void lay_flat(struct parsing *self, const struct flag *flags, void *target)
{
    for (const struct flag *flag = flags; flag && flag->to.kind != FLAG_END; flag++) {
        void *field = field_at(target, flag->to.offset);
        if (flag->to.kind == FLAG_TABLE) {
            lay_flat(self, flag->to.table, field);
            continue;
        }
        ensure(self->rows_count < ROWS_MAX);
        ensure(!flag->env || strstr(flag->about, flag->env)); // --help names every twin
        self->rows[self->rows_count++] = (struct row){ .flag = flag, .field = field };
    }
}

// argp knows a flag by a key: its letter if it has one, else KEY_FIRST plus its row.
static void make_options(const struct parsing *self, struct argp_option options[ROWS_MAX + 1])
{
    memset(options, 0, (ROWS_MAX + 1) * sizeof *options);
    for (int i = 0; i < self->rows_count; i++) {
        const struct flag *flag = self->rows[i].flag;
        const int key = flag->letter ? flag->letter : KEY_FIRST + i;
        options[i] = flag->to.kind == FLAG_REFUSED
                         ? (struct argp_option){ flag->name, key,
                                                 "X",        OPTION_HIDDEN | OPTION_ARG_OPTIONAL,
                                                 NULL,       0 }
                         : (struct argp_option){ flag->name, key,         flag->argument,
                                                 0,          flag->about, flag->group };
    }
}

static struct row *find_row(struct parsing *self, int key)
{
    for (int i = 0; i < self->rows_count; i++) {
        const int letter = self->rows[i].flag->letter;
        if (letter ? key == letter : key == KEY_FIRST + i) return &self->rows[i];
    }
    return NULL;
}

// ---- parsing ------------------------------------------------------------------------------------

static void take_value(struct row *row, void *self, const char *text, struct argp_state *state)
{
    const struct flag *flag = row->flag;
    switch (flag->to.kind) {
    case FLAG_TEXT: *(const char **)row->field = text; break;
    case FLAG_SWITCH: *(bool *)row->field = true; break;
    case FLAG_COUNT: ++*(int *)row->field; break;
    case FLAG_NUMBER:
    case FLAG_REAL: row->number = text; break;
    case FLAG_LIST: {
        size_t *count = field_at(self, flag->to.count_offset);
        if (*count == flag->to.max)
            argp_error(state, "at most %zu times --%s", (size_t)flag->to.max, flag->name);
        ((const char **)row->field)[(*count)++] = text;
        break;
    }
    case FLAG_REFUSED:
        argp_error(state, "--%s is Psyche's and not supported: %s", flag->name, flag->about);
        break;
    case FLAG_END:
    case FLAG_TABLE: break;
    }
}

static void read_environment(struct parsing *self, struct argp_state *state)
{
    for (int i = 0; i < self->rows_count; i++) {
        struct row *row = &self->rows[i];
        const char *text = row->flag->env ? command_env(row->flag->env) : NULL;
        if (text) take_value(row, self->self, text, state);
    }
}

static error_t take_argument(struct parsing *self, const char *text, struct argp_state *state)
{
    const struct flag_target *to = &self->line->arguments;
    void *field = field_at(self->self, to->offset);
    char stray[COMMAND_STRAY_MAX];
    if (to->kind == FLAG_END && self->line->stray && self->line->stray(text, stray))
        argp_error(state, "%s", stray);
    if (to->kind == FLAG_END || (to->kind == FLAG_TEXT && self->arguments > 0))
        return ARGP_ERR_UNKNOWN; // "Too many arguments"
    self->arguments++;
    if (to->kind == FLAG_TEXT) {
        *(const char **)field = text;
        return 0;
    }
    size_t *count = field_at(self->self, to->count_offset);
    if (*count == to->max)
        argp_error(state, "at most %zu of %s", (size_t)to->max, self->line->usage);
    ((const char **)field)[(*count)++] = text;
    return 0;
}

static int read_real(const char *flag, const char *text, const struct flag_target *to,
                     struct why *why, double *ret_value)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < to->low || value > to->high)
        return why_set(why, FAULT_USAGE, "%s %s: a number from %g to %g", flag, text, to->low,
                       to->high);
    *ret_value = value;
    return 0;
}

static int read_numbers(const struct parsing *self)
{
    int rc = 0;
    for (int i = 0; i < self->rows_count && rc == 0; i++) {
        const struct row *row = &self->rows[i];
        const struct flag_target *to = &row->flag->to;
        char flag[FLAG_NAME_MAX];
        if (!row->number) continue;
        snprintf(flag, sizeof flag, "--%s", row->flag->name);
        rc = to->kind == FLAG_REAL
                 ? read_real(flag, row->number, to, self->why, row->field)
                 : command_number(flag, row->number, to->min, to->max, self->why, row->field);
    }
    return rc;
}

static void check_line(struct parsing *self, struct argp_state *state)
{
    struct why why = { 0 };
    self->rc = read_numbers(self);
    for (int i = 0; i < self->rows_count; i++) {
        const struct flag *flag = self->rows[i].flag;
        if (flag->needed && !*(const char **)self->rows[i].field)
            argp_error(state, "--%s %s is needed", flag->name, flag->argument);
    }
    if (self->line->none && self->arguments == 0) argp_error(state, "%s", self->line->none);
    if (self->rc == 0 && self->line->check && self->line->check(self->self, &why) < 0)
        argp_error(state, "%s", why.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct parsing *self = state->input;
    struct row *row = find_row(self, key);
    if (row) take_value(row, self->self, arg, state);
    else if (key == ARGP_KEY_INIT) read_environment(self, state);
    else if (key == ARGP_KEY_ARG) return take_argument(self, arg, state);
    else if (key == ARGP_KEY_END) check_line(self, state);
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

// ---- a mistyped flag ----------------------------------------------------------------------------

// True if argp will take it: a name, or the beginning of one.
static bool is_flag(const struct parsing *self, const char *name, size_t count,
                    const struct flag **ret_flag)
{
    static const char *const own[] = { "help", "usage", "version" };
    *ret_flag = NULL;
    for (int i = 0; i < 3; i++)
        if (strncmp(own[i], name, count) == 0) return true;
    for (int i = 0; i < self->rows_count; i++) {
        const struct flag *flag = self->rows[i].flag;
        if (strncmp(flag->name, name, count) != 0) continue;
        if (!*ret_flag || strlen(flag->name) == count) *ret_flag = flag;
    }
    return *ret_flag != NULL;
}

// How many of the next words belong to this one: the value of a flag may begin with dashes.
static int values_of(const struct parsing *self, const char *word, const struct flag *flag)
{
    if (word[1] == '-') return flag && flag->argument && !strchr(word, '=');
    for (const char *letter = word + 1; *letter; letter++)
        for (int i = 0; i < self->rows_count; i++)
            if (self->rows[i].flag->letter == *letter && self->rows[i].flag->argument)
                return letter[1] == 0;
    return 0;
}

// argp would only say that the flag is not known. Ends the process if one is near it.
static void suggest(const struct parsing *self, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const struct flag *flag = NULL;
        const char *name = argv[i] + 2;
        if (argv[i][0] != '-' || !argv[i][1]) continue;
        const size_t count = strcspn(argv[i], "=") - 2;
        char wanted[NEAREST_MAX + 1];
        if (argv[i][1] != '-' || is_flag(self, name, count, &flag) || count > NEAREST_MAX) {
            i += values_of(self, argv[i], flag);
            continue;
        }
        snprintf(wanted, sizeof wanted, "%.*s", (int)count, name);
        struct nearest near = { .wanted = wanted };
        for (int k = 0; k < self->rows_count; k++)
            if (self->rows[k].flag->to.kind != FLAG_REFUSED)
                nearest_offer(&near, self->rows[k].flag->name, strlen(self->rows[k].flag->name));
        if (!near.best[0]) continue;
        fprintf(stderr, "%s: no flag --%s; did you mean --%s?\nTry `%s --help' for all of them.\n",
                argv[0], wanted, near.best, argv[0]);
        exit(EX_USAGE);
    }
}

int command_parse(const struct command_line *line, int argc, char **argv, void *self,
                  struct why *why)
{
    struct parsing parsing = { .line = line, .self = self, .why = why };
    struct argp_option options[ROWS_MAX + 1];
    lay_flat(&parsing, line->flags, self);
    make_options(&parsing, options);
    suggest(&parsing, argc, argv);
    const struct argp argp = { options, parse, line->usage, line->about, NULL, NULL, NULL };
    argp_parse(&argp, argc, argv, 0, NULL, &parsing);
    return parsing.rc;
}

int command_check_texts(const char *const *texts, size_t count, struct why *why)
{
    for (size_t i = 0; i < count; i++)
        if (texts[i] && strlen(texts[i]) > COMMAND_TEXT_MAX)
            return why_set(why, FAULT_USAGE, "%.40s..: at most %d bytes", texts[i],
                           COMMAND_TEXT_MAX);
    return 0;
}

int command_check_label(const char *label, struct why *why)
{
    if (!label || !label[0] || actor_label_is_sound(label)) return 0;
    return why_set(why, FAULT_USAGE, "--name %.40s: " ACTOR_LABEL_RULE ", such as anna or gpu-2",
                   label);
}

const char *command_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

int command_number(const char *flag, const char *text, uint64_t min, uint64_t max, struct why *why,
                   uint64_t *ret_value)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value < min || value > max)
        return why_set(why, FAULT_USAGE, "%s %s: a whole number from %" PRIu64 " to %" PRIu64, flag,
                       text, min, max);
    *ret_value = value;
    return 0;
}

// ---- flags that all actors share ----------------------------------------------------------------

const struct flag command_flags[] = {
    FLAG("identity-secret-key-path", 'i', "FILE", TO_TEXT(struct command, identity_path),
         "32 random bytes (env IDENTITY_SECRET_KEY_PATH, or the secret itself as 64 hex digits in "
         "RAW_IDENTITY_SECRET_KEY)",
         .env = "IDENTITY_SECRET_KEY_PATH", .group = COMMAND_GROUP),
    FLAG("run-id", 0, "ID", TO_TEXT(struct command, run_id), "The run to take part in (env RUN_ID)",
         .env = "RUN_ID", .group = COMMAND_GROUP),
    FLAG("server-addr", 0, "HOST:PORT", TO_TEXT(struct command, server_addr),
         "The broker: mail on PORT, news on PORT+1 (env SERVER_ADDR)", .env = "SERVER_ADDR",
         .group = COMMAND_GROUP),
    FLAG("server-key", 0, "HEX", TO_TEXT(struct command, server_key),
         "The key of its connections (env SERVER_KEY)", .env = "SERVER_KEY",
         .group = COMMAND_GROUP),
    FLAG("owner", 0, "HEX", TO_TEXT(struct command, owner),
         "Public key of the run's coordinator: no other one is followed (env OWNER)",
         .env = "OWNER", .group = COMMAND_GROUP),
    FLAG("ticket", 0, "TICKET", TO_TEXT(struct command, ticket_text),
         "Run, broker and keys at once, as `shoal invite` prints them; or a file with it "
         "(env TICKET)",
         .env = "TICKET", .group = COMMAND_GROUP),
    FLAG("state-dir", 0, "DIR", TO_TEXT(struct command, state_dir),
         "What must survive a restart (env STATE_DIRECTORY)", .env = "STATE_DIRECTORY",
         .group = COMMAND_GROUP),
    FLAG("json", 0, NULL, TO_SWITCH(struct command, json),
         "Print JSON, one object a line; an actor writes its log so", .group = COMMAND_GROUP),
    FLAG("verbose", 'v', NULL, TO_COUNT(struct command, verbose), "Log every message as well",
         .group = COMMAND_GROUP),
    // Psyche's flags, refused with the place of what they do, if there is one
    FLAG_OF_PSYCHE("tui", "there is no terminal interface; use zmq-monitor"),
    FLAG_OF_PSYCHE("logs", "lines go to stderr, states to zmq-monitor"),
    FLAG_OF_PSYCHE("iroh-relay", "peers are reached by tcp"),
    FLAG_OF_PSYCHE("iroh-discovery", "peers are found through the broker"),
    FLAG_OF_PSYCHE("bind-p2p-interface", "give the address to --bulk-bind"),
    FLAG_OF_PSYCHE("oltp-metrics-url", "there is no OTLP export"),
    FLAG_OF_PSYCHE("oltp-tracing-url", "there is no OTLP export"),
    FLAG_OF_PSYCHE("oltp-logs-url", "there is no OTLP export"),
    FLAG_OF_PSYCHE("oltp-auth-header", "there is no OTLP export"),
    FLAG_OF_PSYCHE("oltp-report-interval", "there is no OTLP export"),
    FLAG_OF_PSYCHE("metrics-local-port", "there is no metrics port; use zmq-monitor --json"),
    FLAG_OF_PSYCHE("data-parallelism", "one process is one trainer; start several"),
    FLAG_OF_PSYCHE("tensor-parallelism", "a model must fit one process"),
    FLAG_OF_PSYCHE("hub-repo",
                   "checkpoints are written to a folder; upload it with the hub's own tool"),
    FLAG_OF_PSYCHE("hub-max-concurrent-downloads", "nothing is downloaded from the hub"),
    FLAG_OF_PSYCHE("gcs-bucket", "checkpoints are written to a folder"),
    FLAG_OF_PSYCHE("gcs-prefix", "checkpoints are written to a folder"),
    FLAG_OF_PSYCHE("wandb-project", "there is no W&B export; use zmq-monitor --json"),
    FLAG_OF_PSYCHE("wandb-run", "there is no W&B export"),
    FLAG_OF_PSYCHE("wandb-group", "there is no W&B export"),
    FLAG_OF_PSYCHE("wandb-entity", "there is no W&B export"),
    FLAG_OF_PSYCHE("eval-tasks", "evaluation belongs to the learner's own tools"),
    FLAG_OF_PSYCHE("eval-seed", "evaluation belongs to the learner's own tools"),
    FLAG_OF_PSYCHE("eval-task-max-docs", "evaluation belongs to the learner's own tools"),
    FLAG_OF_PSYCHE("prompt-task", "evaluation belongs to the learner's own tools"),
    FLAG_OF_PSYCHE("write-gradients-dir", "results are kept by the checkpointer"),
    FLAG_OF_PSYCHE("optim-stats-steps", "there are no optimizer statistics"),
    FLAG_OF_PSYCHE("grad-accum-in-fp32", "gradients are always accumulated in float32"),
    FLAG_OF_PSYCHE("sidecar-port", "there is no sidecar"),
    FLAG_OF_PSYCHE("device", "only shoal-trainer and shoal train have a --device"),
    FLAG_OF_PSYCHE("events-dir", "the coordinator's ledger is the event log"),
    FLAG_OF_PSYCHE("keep-event-files", "the coordinator's ledger is the event log"),
    FLAG_OF_PSYCHE("withdraw-on-disconnect", "leases decide: [members] lease_time"),
    FLAG_OF_PSYCHE("checkpoint-dir", "shoal-checkpointer writes the checkpoints; it has this flag"),
    FLAG_OF_PSYCHE("keep-steps", "shoal-checkpointer writes the checkpoints; it has this flag"),
    FLAG_OF_PSYCHE("delete-old-steps", "shoal-checkpointer keeps the newest --keep-steps N"),
    FLAG_OF_PSYCHE("data-config", "shoal-data-provider is an actor of its own; it has this flag"),
    FLAG_OF_PSYCHE("save-state-dir", "the ledger is the state; its folder is --state-dir"),
    FLAG_OF_PSYCHE("init-warmup-time", "write config.warmup_time into state.toml"),
    FLAG_OF_PSYCHE("init-min-clients", "write config.init_min_clients into state.toml"),
    FLAG_OF_PSYCHE("write-log", "lines go to stderr: 2>>FILE"),
    FLAG_OF_PSYCHE("dummy-training-delay-secs", "there is no dummy training"),
    FLAG_OF_PSYCHE("max-concurrent-parameter-requests", "the fetcher decides it itself"),
    FLAG_OF_PSYCHE("max-concurrent-downloads", "the fetcher decides it itself"),
    FLAG_OF_PSYCHE("eval-fewshot", "evaluation belongs to the learner's own tools"),
    { 0 },
};

int command_check_run(const char *run, struct why *why)
{
    if (plain_name(run, WIRE_RUN_MAX)) return 0;
    return why_set(why, FAULT_USAGE, "--run-id \"%.40s\": 1 to %d of " PLAIN_NAME_RULE, run,
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

void command_log(const struct command *self, const char *actor)
{
    struct log_style style = { .json = self->json };
    snprintf(style.actor, sizeof style.actor, "%s", actor);
    log_begin(&style);
}

int command_owner(const struct command *self, struct why *why, struct key *ret_owner)
{
    struct curve_key curve;
    *ret_owner = (struct key){ { 0 } };
    if (!self->owner) return 0;
    if (key_from_hex(self->owner, ret_owner) && curve_of_key(ret_owner, &curve)) return 0;
    return why_set(why, FAULT_USAGE,
                   "--owner %.80s: no public key; 64 hexadecimal digits, as "
                   "`shoal show-identity -i coordinator.key` prints them",
                   self->owner);
}

int command_check(struct command *self, struct why *why)
{
    struct ticket *ticket = &self->ticket;
    int rc = 0;
    if (self->ticket_text && (rc = ticket_read(self->ticket_text, why, ticket)) < 0)
        return why_wrap(why, rc, "--ticket");
    if (!self->run_id && ticket->run[0]) self->run_id = ticket->run;
    if (!self->server_addr && ticket->address[0]) self->server_addr = ticket->address;
    if (self->run_id) rc = command_check_run(self->run_id, why);
    if (rc == 0 && self->server_addr) rc = check_address(self->server_addr, why);
    if (rc < 0) return rc;
    if (self->server_key && !key_from_hex(self->server_key, &ticket->server))
        return why_set(why, FAULT_USAGE,
                       "--server-key %.80s: 64 hexadecimal digits, as "
                       "`shoal show-identity -i broker.key` prints them behind \"server key\"",
                       self->server_key);
    if (self->owner && (rc = command_owner(self, why, &ticket->owner)) < 0) return rc;
    if (self->server_addr && self->server_addr != ticket->address)
        snprintf(ticket->address, sizeof ticket->address, "%s", self->server_addr);
    return 0;
}

int command_check_broker(struct command *self, const char *address, struct why *why)
{
    static const struct key none;
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
    if (!key_equal(&self->ticket.server, &none)) return 0;
    return why_set(why, FAULT_USAGE,
                   "which key has the broker at %s? --ticket TICKET (or TICKET) "
                   "as `shoal invite` prints it, or --server-key HEX (or SERVER_KEY) as "
                   "`shoal show-identity -i broker.key` does behind \"server key\"",
                   self->server_addr);
}

// The memory of an actor has the mail, the run and the keys of its connections: no other process may read them. The
// identity's secret is in no dump in any case (identity.h).
static void keep_memory_private(void)
{
    if (!getenv("SHOAL_DUMPABLE")) ensure(prctl(PR_SET_DUMPABLE, 0) == 0);
}

int command_identity(const struct command *self, struct why *why, struct identity **ret_identity)
{
    keep_memory_private();
    char *env = getenv(IDENTITY_ENV);
    int rc = identity_load(self->identity_path, command_env(IDENTITY_ENV), why, ret_identity);
    if (env) explicit_bzero(env, strlen(env)); // Else it is in a core dump, and in /proc
    if (rc == FAULT_CONFIG && !self->identity_path)
        return why_wrap(why, rc, "--identity-secret-key-path");
    return rc;
}
