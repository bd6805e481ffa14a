// allreduce PLACE PORT... -- sums a buffer of yours over the processes at these ports of this machine.
#include "common/crypto/identity.h"
#include "common/group/group.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const uint32_t place = argc > 2 ? (uint32_t)atoi(argv[1]) : 99, count = (uint32_t)argc - 2;
    struct identity *identities[GROUP_MEMBERS_MAX];
    struct group_member members[GROUP_MEMBERS_MAX];
    struct group_blame blame;
    struct why why = { 0 };
    char at[32];
    group_t *group = NULL;
    if (place >= count || count > GROUP_MEMBERS_MAX)
        return fprintf(stderr, "usage: %s PLACE PORT... (PLACE 0: the first port)\n", argv[0]), 64;
    for (uint32_t m = 0; m < count; m++) { // Elsewhere: identity_load, and the keys of the others
        uint8_t secret[SECRET_BYTES] = "not so secret";
        secret[31] = (uint8_t)m;
        identity_from_secret(secret, &why, &identities[m]);
        members[m] = (struct group_member){ *identity_key(identities[m]), .instance = 1 };
        snprintf(members[m].endpoint, sizeof at, "tcp://127.0.0.1:%s", argv[2 + m]);
    }
    snprintf(at, sizeof at, "127.0.0.1:%s", argv[2 + place]);
    const struct group_options options = { identities[place], "example", 1, at, .connections = 1 };
    int rc = group_new(&options, &why, &group);
    if (rc == 0) rc = group_form(group, 1, members, count, place, 9000, &why, &blame);
    float buffer[1000] = { (float)(place + 1) };
    const float *const mine = buffer;
    // One node a member: lanes = batch = members
    const struct group_sum sum = { 0, 1000, count, count, &mine, buffer, .timeout_ms = 9000 };
    if (rc == 0) rc = group_add(group, &sum, &why, &blame);
    if (rc < 0) return fault_exit(rc, &why);
    printf("member %u of %u: %g\n", place, count, (double)buffer[0]);
    group_destroy(&group);
}
