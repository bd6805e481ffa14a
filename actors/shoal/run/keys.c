// new-identity, show-identity -- who an actor is.

#include "actors/shoal/shoal.h"
#include "common/actor/msg.h"
#include "common/crypto/identity.h"
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct keys {
    const char *path;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct keys *self = state->input;
    if (key == 'i' || (key == ARGP_KEY_ARG && !self->path)) self->path = arg;
    else if (key == 'j') self->json = true;
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

// The names that follow from a key: one for each role that has the key in its name.
static void name_of(uint8_t role, const struct identity *identity, char name[ACTOR_NAME_MAX + 1])
{
    actor_name(role, identity_key(identity), name);
}

static int show(const struct keys *self, const struct identity *identity, struct why *why)
{
    char hex[KEY_HEX], name[ACTOR_NAME_MAX + 1];
    json_t *names = json_object();
    key_to_hex(identity_key(identity), hex);
    if (!self->json) printf("public key     %s\n", hex);
    for (uint8_t role = 0; role < ACTOR_COUNT; role++) {
        if (role == ACTOR_COORDINATOR) continue;
        name_of(role, identity, name);
        json_object_set_new(names, wire_enum_name(&wire_enum_role, role), json_string(name));
        if (!self->json) printf("%-14s %s\n", wire_enum_name(&wire_enum_role, role), name);
    }
    json_t *object = json_pack("{s:s, s:s, s:o}", "schema", "shoal.identity.1", "public_key", hex,
                               "names", names);
    if (self->json) return shoal_print_json(object, why);
    json_decref(object);
    return 0;
}

int shoal_show_identity(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "identity-secret-key-path", 'i', "FILE", 0,
          "32 random bytes (or RAW_IDENTITY_SECRET_KEY)", 0 },
        { "json", 'j', NULL, 0, "Print one JSON object", 0 },
        { 0 },
    };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Prints the public key of a secret one, and the names that actors with it go by.\n\n"
        "  shoal show-identity -i secret.key\n"
        "  RAW_IDENTITY_SECRET_KEY=$(openssl rand -hex 32) shoal show-identity\n",
        NULL,
        NULL,
        NULL
    };
    struct keys self = { .path = getenv("IDENTITY_SECRET_KEY_PATH") };
    struct why why = { 0 };
    struct identity *identity = NULL;
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    if (self.path && !self.path[0]) self.path = NULL;
    int rc = identity_load(self.path, getenv(IDENTITY_ENV), &why, &identity);
    if (rc == 0) rc = show(&self, identity, &why);
    identity_destroy(&identity);
    return fault_exit(rc, &why);
}

int shoal_new_identity(int argc, char **argv)
{
    static const struct argp argp = {
        NULL,
        parse,
        "FILE",
        "Makes a new secret key, readable by its owner alone. Never overwrites one.\n\n"
        "  shoal new-identity secret.key\n"
        "  openssl rand 32 > secret.key && chmod 600 secret.key      does the same\n",
        NULL,
        NULL,
        NULL
    };
    struct keys self = { 0 };
    struct why why = { 0 };
    struct identity *identity = NULL;
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    if (!self.path)
        return fault_exit(why_set(&why, FAULT_USAGE, "the name of a new file is needed"), &why);
    int rc = identity_create(self.path, &why);
    if (rc == 0) rc = identity_load(self.path, NULL, &why, &identity);
    if (rc == 0) rc = show(&self, identity, &why);
    identity_destroy(&identity);
    return fault_exit(rc, &why);
}
