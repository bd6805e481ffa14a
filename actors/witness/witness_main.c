// shoal-witness -- a witness as a process of its own, for runs with [witness] standalone = true.

#include "actors/witness/witness_actor.h"
#include "common/member/member_shell.h"

static void init(void *state) { witness_actor_init(state); }

static const struct command_line line = {
    .flags = member_flags,
    .about = "Records which results arrived in a round, and proves it by its vote.\n\n"
             "  shoal-witness -i secret.key --ticket ticket\n"
             "  shoal-witness -i secret.key --ticket ticket --state-dir /var/lib/shoal/w\n",
};

int main(int argc, char **argv)
{
    static const struct actor actor = { sizeof(struct witness_actor), witness_actor_step };
    struct member_options self = { MEMBER_DEFAULTS };
    const struct member_process process = {
        .actor = &actor, .init = init, .workers = { member_fetcher }, .keeps_blobs = true
    };
    return member_main(argc, argv, &line, "witness", &self, &process);
}
