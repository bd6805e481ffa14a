// shoal-witness -- a witness as a process of its own, for runs with [witness] standalone = true.

#include "actors/witness/witness.h"
#include "common/member/member_shell.h"

static void init(void *state) { witness_actor_init(state); }

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != ARGP_KEY_INIT) return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = state->input;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct actor actor = { "witness", sizeof(struct witness_actor),
                                        witness_actor_step };
    static const struct argp_child children[] = { { &member_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = { NULL,
                                      parse,
                                      NULL,
                                      "Records who delivered what, and proves it.\n\n"
                                      "  shoal-witness -i secret.key --ticket ticket\n"
                                      "  shoal-witness -i secret.key --ticket ticket --state-dir "
                                      "/var/lib/shoal/w\n",
                                      children,
                                      NULL,
                                      NULL };
    struct member_options self = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    struct member_process process = {
        .actor = &actor, .init = init, .workers = { member_fetcher }, .keeps_blobs = true
    };
    return member_run(&self, &process);
}
