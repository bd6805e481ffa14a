// invite -- prints a ticket: one line with which another person's actor finds the broker and is
// admitted. In this order: load the key that signs, decide which broker the ticket names, sign the
// invitation, print.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/net/curve.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { DAYS_MAX = 36500, USES_MAX = 65535, DAY_S = 86400 };

struct invite {
    struct command command;
    const char *guest, *roles;
    uint64_t uses, days;
    bool any_run;
};

// The broker's key is that of --ticket; without one it is the key that signs, which is then the
// broker's own. The owner's is that of --owner, else that of --ticket, else the key that signs, if it is
// not the broker's. The run is that of the flags, else that of --ticket.
static int find_broker(struct invite *self, const struct identity *owner, struct why *why)
{
    const struct key server = curve_server_key(owner);
    struct ticket *ticket = &self->command.ticket;
    int rc = command_check(&self->command, why);
    if (rc < 0) return rc;
    if (self->any_run && self->command.run_id && self->command.run_id != ticket->run)
        return why_set(why, FAULT_USAGE, "--any-run and a run (%s): one of them",
                       self->command.run_id);
    if (self->any_run) self->command.run_id = "";
    if (!self->command.run_id)
        return why_set(why, FAULT_USAGE,
                       "into which run? --run-id ID (or RUN_ID), or --ticket with a ticket of that "
                       "run; a ticket of --any-run leaves it open, and each actor then needs its "
                       "own --run-id");
    if (key_is_none(&ticket->server)) ticket->server = server;
    else if (key_is_none(&ticket->owner) && !key_equal(&ticket->server, &server))
        ticket->owner = *identity_key(owner);
    if (!self->command.server_addr)
        snprintf(ticket->address, sizeof ticket->address, "%s", SHOAL_BROKER);
    if (self->command.run_id != ticket->run) // Else it is there already
        snprintf(ticket->run, sizeof ticket->run, "%s", self->command.run_id);
    return 0;
}

// Words with commas between them. 0: all roles but the coordinator's.
static int read_roles(const char *text, struct why *why, uint8_t *ret_roles)
{
    *ret_roles = 0;
    for (const char *at = text; at && *at;) {
        const size_t count = strcspn(at, ",");
        uint8_t role = ACTOR_COORDINATOR + 1;
        for (; role < ACTOR_COUNT; role++) {
            const char *name = wire_enum_name(&wire_enum_role, role);
            if (strlen(name) == count && strncmp(at, name, count) == 0) break;
        }
        if (role == ACTOR_COUNT)
            return why_set(
                why, FAULT_USAGE,
                "--roles %.80s: some of trainer,witness,checkpointer,data-provider,monitor,"
                "operator,parameter-server",
                text);
        *ret_roles |= (uint8_t)(1 << role);
        at += count + (at[count] == ',');
    }
    return 0;
}

static int make(struct invite *self, const struct identity *owner, struct why *why)
{
    struct ticket *ticket = &self->command.ticket;
    struct invitation invitation = { .uses = (uint16_t)self->uses };
    const int rc = read_roles(self->roles, why, &invitation.roles);
    if (rc < 0) return rc;
    if (self->guest && !key_from_hex(self->guest, &invitation.guest))
        return why_set(why, FAULT_USAGE,
                       "--for %.80s: the guest's public key, 64 hexadecimal digits", self->guest);
    invitation.expires_unix_s = clock_unix_ms() / 1000 + self->days * DAY_S;
    ensure(getrandom(invitation.number, sizeof invitation.number, 0) == sizeof invitation.number);
    invitation_sign(&invitation, owner, &ticket->server, ticket->run, ticket->invitation);
    ticket->has_invitation = true;
    return 0;
}

static int print(const struct invite *self, struct why *why)
{
    const struct ticket *ticket = &self->command.ticket;
    char text[TICKET_TEXT_MAX], hex[KEY_HEX];
    ticket_print(ticket, text);
    if (!self->command.json) return puts(text) < 0 ? why_set(why, FAULT_IO, "standard output") : 0;
    json_t *owner =
        key_is_none(&ticket->owner) ? json_null() : json_string(key_to_hex(&ticket->owner, hex));
    return shoal_print_json(json_pack("{s:s, s:s, s:s, s:s, s:o, s:s}", "schema", "shoal.ticket.1",
                                      "ticket", text, "broker", ticket->address, "broker_key",
                                      key_to_hex(&ticket->server, hex), "owner_key", owner, "run",
                                      ticket->run),
                            why);
}

static const struct flag flags[] = {
    FLAG("for", 'f', "HEX", TO_TEXT(struct invite, guest),
         "Admit this public key only; without it, any key"),
    FLAG("roles", 0, "LIST", TO_TEXT(struct invite, roles),
         "Admit to these roles only: trainer,witness for example (all but the coordinator's)"),
    FLAG("uses", 'u', "N", TO_NUMBER(struct invite, uses, 1, USES_MAX),
         "Number of keys that the ticket admits (1)"),
    FLAG("days", 0, "N", TO_NUMBER(struct invite, days, 1, DAYS_MAX),
         "Days until the ticket expires (7)"),
    FLAG("any-run", 0, NULL, TO_SWITCH(struct invite, any_run),
         "Name no run: each actor gives its own --run-id"),
    FLAGS_OF(command_flags, struct invite, command),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Prints a ticket: where the broker is, its key, the run, and an invitation signed by "
             "-i, the key of the broker or of its owner. An actor joins with --ticket. "
             "Under shoal-broker --admit invite the ticket admits --uses keys for --days days; "
             "under --admit open it admits every key.\n\n"
             "  shoal invite -i broker.key --run-id demo --server-addr 10.0.0.1:5550\n"
             "  shoal invite -i coordinator.key --ticket broker.ticket --for 3fa2..64 digits..\n",
};

int shoal_invite(int argc, char **argv)
{
    struct invite self = { .uses = 1, .days = 7 };
    struct why why = { 0 };
    struct identity *owner = NULL;
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = command_identity(&self.command, &why, &owner);
    if (rc == 0) rc = find_broker(&self, owner, &why);
    if (rc == 0) rc = make(&self, owner, &why);
    if (rc == 0) rc = print(&self, &why);
    identity_destroy(&owner);
    return fault_exit(rc, &why);
}
