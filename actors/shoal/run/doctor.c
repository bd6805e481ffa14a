// doctor -- checks what the actors of this machine will need, before they are started. It starts and
// changes nothing. Here are the command line, the order of the checks and the exit code; doctor.h
// names the parts.

#include "actors/shoal/run/doctor.h"
#include "actors/shoal/shoal.h"
#include "common/kernel/pool.h"
#include <string.h>

static const struct flag flags[] = {
    FLAG("ticket", 0, "TICKET", TO_TEXT(struct doctor, command.ticket_text),
         "The run, or a file with it (env TICKET)", .env = "TICKET"),
    FLAG("run-id", 0, "ID", TO_TEXT(struct doctor, command.run_id),
         "If the ticket names none (env RUN_ID)", .env = "RUN_ID"),
    FLAG("identity-secret-key-path", 'i', "FILE", TO_TEXT(struct doctor, command.identity_path),
         "The actor's key (env IDENTITY_SECRET_KEY_PATH)", .env = "IDENTITY_SECRET_KEY_PATH"),
    FLAG("state", 0, "FILE", TO_TEXT(struct doctor, state_path), "The run's state.toml"),
    FLAG("data-config", 'd', "FILE", TO_TEXT(struct doctor, data_path),
         "A data-provider's data.toml"),
    FLAG("state-dir", 0, "DIR", TO_TEXT(struct doctor, command.state_dir),
         "Of the actor (.; env STATE_DIRECTORY)", .env = "STATE_DIRECTORY"),
    FLAG("bulk-bind", 0, "HOST", TO_TEXT(struct doctor, bulk_bind), "As of shoal-trainer"),
    FLAG("announce", 0, "HOST[:PORT]", TO_TEXT(struct doctor, announce), "As of shoal-trainer"),
    FLAG("bind-p2p-port", 0, "PORT", TO_TEXT(struct doctor, bulk_port),
         "As of shoal-trainer (env BIND_P2P_PORT)", .env = "BIND_P2P_PORT"),
    FLAG("name", 0, "LABEL", TO_TEXT(struct doctor, label), "As of shoal-trainer"),
    FLAG("device", 0, "WORD", TO_TEXT(struct doctor, device), "As of shoal-trainer (cpu)"),
    FLAG("threads", 't', "N", TO_NUMBER(struct doctor, threads, 1, POOL_THREADS_MAX),
         "As of shoal-trainer (1)"),
    FLAG("micro-batch-size", 0, "N", TO_NUMBER(struct doctor, micro_batch, 1, 4096),
         "As of shoal-trainer (4; env MICRO_BATCH_SIZE)", .env = "MICRO_BATCH_SIZE"),
    FLAG("json", 'j', NULL, TO_SWITCH(struct doctor, command.json), "Print one JSON object"),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct doctor *self = line;
    const char *const texts[] = { self->bulk_bind, self->announce, self->bulk_port, self->device };
    const int rc = command_check_texts(texts, sizeof texts / sizeof *texts, why);
    return rc < 0 ? rc : command_check_label(self->label, why);
}

static const struct command_line line = {
    .flags = flags,
    .usage = "[TICKET]",
    .about = "Checks what the actors of this machine will need, and says what to do.\n\n"
             "  shoal doctor friend.ticket           before: shoal join friend.ticket\n"
             "  shoal doctor --state state.toml --data-config data.toml\n\n"
             "Exit code 78: something is wrong here; 69: something cannot be reached.\n",
    .arguments = TO_TEXT(struct doctor, word),
    .check = check,
};

static int read_ticket(struct doctor *self, struct why *why)
{
    struct command *command = &self->command;
    if (self->word) command->ticket_text = self->word;
    if (!command->ticket_text) return 0;
    const int rc = command_check_broker(command, NULL, why);
    if (rc < 0 || command->run_id) return rc;
    return why_set(why, FAULT_USAGE, "the ticket names no run: --run-id ID (or RUN_ID)");
}

int shoal_doctor(int argc, char **argv)
{
    static struct doctor self = {
        .bulk_port = "*", .device = "cpu", .threads = 1, .micro_batch = 4
    };
    struct why why = { 0 };
    int code = 0, rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = read_ticket(&self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    self.checkup.json = self.command.json;
    doctor_files(&self);
    if (self.command.ticket_text) doctor_network(&self);
    doctor_machine(&self);
    rc = checkup_end(&self.checkup, &why, &code);
    return rc < 0 ? fault_exit(rc, &why) : code;
}
