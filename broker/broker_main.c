// shoal-broker -- the post office as a process: mail, news, and the last value of each state topic.
//
// Two sockets, for mail and for news (broker.c). Both are CURVE with a key that follows from the
// broker's identity (common/net/curve.h), and admission.h decides about every HELLO. A frame is refused
// unless its sender is the actor that was welcomed on its connection. Only the run's coordinator may publish
// state topics (RUN, ROUND, ...).
//
// Only the record of invitations is on disk. After a restart of the broker, every actor sends HELLO
// again within a second, and retries what was not acknowledged.

#include "broker/broker.h"
#include "common/actor/command.h"
#include "common/base/log.h"
#include "common/net/addresses.h"
#include <stdio.h>
#include <string.h>

struct choice {
    struct command command;
    const char *bind, *admit;
    uint64_t port;
};

// ---- admission ----------------------------------------------------------------------------------

static int read_policy(const struct choice *self, struct why *why,
                       struct admission_options *ret_options)
{
    const char *admit = self->admit;
    if (strcmp(admit, "open") == 0) ret_options->policy = ADMIT_OPEN;
    else if (strcmp(admit, "invite") == 0) ret_options->policy = ADMIT_INVITE;
    else if (strncmp(admit, "allowlist=", 10) == 0 && admit[10]) {
        ret_options->policy = ADMIT_ALLOWLIST;
        ret_options->list_path = admit + 10;
    } else return why_set(why, FAULT_USAGE, "--admit %s: open, allowlist=FILE or invite", admit);
    if (self->command.owner) return 0;
    if (ret_options->policy == ADMIT_INVITE)
        return why_set(why, FAULT_USAGE,
                       "--admit invite needs --owner HEX, the public key of the "
                       "run's coordinator: only this key needs no invitation");
    if (!addresses_is_loopback(self->bind))
        return why_set(
            why, FAULT_USAGE,
            "--bind %.80s is for other machines, too, and then needs --owner HEX, the public "
            "key of the run's coordinator. Without it, the first key that says so is the "
            "coordinator. `shoal show-identity -i coordinator.key` prints it",
            self->bind);
    return 0;
}

static int open_admission(const struct choice *self, const struct identity *identity,
                          struct why *why, struct admission **ret_admission)
{
    static struct key owner;
    static char record[4096], revoked[4096];
    const struct key server = curve_server_key(identity);
    struct admission_options options = { .identity = identity_key(identity), .server = &server };
    int rc = read_policy(self, why, &options);
    if (rc == 0) rc = command_owner(&self->command, why, &owner);
    if (rc < 0) return rc;
    if (self->command.owner) options.owner = &owner;
    snprintf(record, sizeof record, "%s/invitations",
             self->command.state_dir ? self->command.state_dir : ".");
    snprintf(revoked, sizeof revoked, "%s/revoked",
             self->command.state_dir ? self->command.state_dir : ".");
    options.record_path = record;
    options.revoked_path = revoked;
    return admission_new(&options, why, ret_admission);
}

// ---- command line -------------------------------------------------------------------------------

static int open_broker(const struct choice *self, struct broker *broker, struct why *why)
{
    int rc = command_identity(&self->command, why, &broker->identity);
    if (rc < 0)
        return why_wrap(why, rc,
                        "a broker needs a key of its own, by which actors recognise it "
                        "(shoal new-identity broker.key, and -i broker.key)");
    rc = open_admission(self, broker->identity, why, &broker->admission);
    if (rc < 0) return rc;
    broker->bind = self->bind;
    broker->admit = self->admit;
    broker->port = (uint16_t)self->port;
    return broker_open(broker, why);
}

static const struct flag flags[] = {
    FLAG("server-port", 's', "PORT", TO_NUMBER(struct choice, port, 1, 65536 - POST_PORTS),
         "First of two ports: mail, news (5550; env SERVER_PORT)", .env = "SERVER_PORT"),
    FLAG("bind", 'b', "HOST", TO_TEXT(struct choice, bind),
         "Address to listen on (127.0.0.1; 0.0.0.0: all)"),
    FLAG("admit", 'a', "POLICY", TO_TEXT(struct choice, admit),
         "Which keys are welcome: open, allowlist=FILE (a key a line; SIGHUP reads it again), "
         "invite (open; env ADMIT)",
         .env = "ADMIT"),
    FLAGS_OF(command_flags, struct choice, command),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about =
        "The post office of Shoal's actors.\n\n"
        "  shoal-broker -i broker.key                for this machine alone\n"
        "  shoal-broker -i broker.key -b 0.0.0.0 -a allowlist=friends.txt --owner 3fa2..   for "
        "others\n",
};

int main(int argc, char **argv)
{
    static struct broker broker;
    struct choice self = { .port = 5550, .admit = "open", .bind = "127.0.0.1" };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    command_log(&self.command, "broker");
    rc = open_broker(&self, &broker, &why);
    if (rc == 0) broker_run(&broker);
    broker_close(&broker);
    return log_exit(rc, &why);
}
