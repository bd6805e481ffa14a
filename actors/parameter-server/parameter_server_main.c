// shoal-parameter-server -- holds one share of the state of a run with strategy.kind = "server", and applies the
// run's steps to that share. It goes through the parts of a trainer (actors/trainer); because of its role the pace gives it a share, and no samples.

#include "actors/trainer/trainer.h"
#include "common/member/member_shell.h"

static void init(void *state) { trainer_init_server(state); }

static const struct flag flags[] = {
    FLAG("threads", 't', "N", TO_NUMBER(struct member_options, threads, 1, 64),
         "Threads that apply steps and hash the state (1)"),
    FLAGS_TOO(member_flags),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about =
        "Holds a share of the state of a run with parameter servers, and takes its steps.\n\n"
        "  shoal-parameter-server -i secret.key --ticket ticket\n"
        "  shoal-parameter-server -i secret.key --ticket ticket --state-dir /var/lib/shoal/s\n",
};

int main(int argc, char **argv)
{
    static const struct actor actor = { sizeof(struct trainer), trainer_step };
    struct member_options self = { MEMBER_DEFAULTS };
    const struct member_process process = { .actor = &actor,
                                            .init = init,
                                            .workers = { member_learner, member_fetcher },
                                            .keeps_blobs = true };
    return member_main(argc, argv, &line, "parameter-server", &self, &process);
}
