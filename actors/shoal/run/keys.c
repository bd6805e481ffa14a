// new-identity, show-identity -- make a secret key; print its public key and the names that follow
// from it.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/actor/msg.h"
#include "common/crypto/identity.h"
#include "common/net/curve.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keys {
    const char *path;
    bool json;
};

// The names that follow from a key: one for each role that has the key in its name. An actor with
// --name has its label in the middle.
static void name_of(uint8_t role, const struct identity *identity, char name[ACTOR_NAME_MAX + 1])
{
    actor_name(role, identity_key(identity), name);
}

static int show(const struct keys *self, const struct identity *identity, struct why *why)
{
    char hex[KEY_HEX], server_hex[KEY_HEX], name[ACTOR_NAME_MAX + 1];
    const struct key server = curve_server_key(identity);
    json_t *names = json_object();
    key_to_hex(identity_key(identity), hex);
    key_to_hex(&server, server_hex);
    if (!self->json) printf("public key     %s\nserver key     %s\n", hex, server_hex);
    for (uint8_t role = 0; role < ACTOR_COUNT; role++) {
        if (role == ACTOR_COORDINATOR) continue;
        name_of(role, identity, name);
        json_object_set_new(names, wire_enum_name(&wire_enum_role, role), json_string(name));
        if (!self->json) printf("%-14s %s\n", wire_enum_name(&wire_enum_role, role), name);
    }
    json_t *object = json_pack("{s:s, s:s, s:s, s:o}", "schema", "shoal.identity.1", "public_key",
                               hex, "server_key", server_hex, "names", names);
    if (self->json) return shoal_print_json(object, why);
    json_decref(object);
    return 0;
}

static const struct flag show_flags[] = {
    FLAG("identity-secret-key-path", 'i', "FILE", TO_TEXT(struct keys, path),
         "32 random bytes (env IDENTITY_SECRET_KEY_PATH, or the secret itself as 64 hex digits in "
         "RAW_IDENTITY_SECRET_KEY)",
         .env = "IDENTITY_SECRET_KEY_PATH"),
    FLAG("json", 'j', NULL, TO_SWITCH(struct keys, json), "Print one JSON object"),
    { 0 },
};

static const struct command_line show_line = {
    .flags = show_flags,
    .about =
        "Prints what follows from a secret key: its public key; its server key, for --server-key, "
        "if it is a broker's; and the name of an actor of each role. An actor that is started "
        "with --name anna has the name trainer.anna.KEY.\n\n"
        "  shoal show-identity -i secret.key\n"
        "  RAW_IDENTITY_SECRET_KEY=$(openssl rand -hex 32) shoal show-identity\n",
    .arguments = TO_TEXT(struct keys, path), // The path may also be given without its flag
};

int shoal_show_identity(int argc, char **argv)
{
    struct keys self = { 0 };
    struct why why = { 0 };
    struct identity *identity = NULL;
    int rc = command_parse(&show_line, argc, argv, &self, &why);
    if (rc == 0) rc = identity_load(self.path, command_env(IDENTITY_ENV), &why, &identity);
    if (rc == 0) rc = show(&self, identity, &why);
    identity_destroy(&identity);
    return fault_exit(rc, &why);
}

static const struct command_line new_line = {
    .usage = "FILE",
    .about = "Makes a new secret key, readable by its owner alone. Never overwrites one.\n\n"
             "  shoal new-identity secret.key\n"
             "  openssl rand 32 > secret.key && chmod 600 secret.key      does the same\n",
    .arguments = TO_TEXT(struct keys, path),
    .none = "the name of a new file is needed",
};

int shoal_new_identity(int argc, char **argv)
{
    struct keys self = { 0 };
    struct why why = { 0 };
    struct identity *identity = NULL;
    int rc = command_parse(&new_line, argc, argv, &self, &why);
    if (rc == 0) rc = identity_create(self.path, &why);
    if (rc == 0) rc = identity_load(self.path, NULL, &why, &identity);
    if (rc == 0) rc = show(&self, identity, &why);
    identity_destroy(&identity);
    return fault_exit(rc, &why);
}
