// shoal-trainer -- takes part in a run: trains, witnesses when elected, serves its peers.

#include "actors/trainer/trainer.h"
#include "common/member/member_shell.h"

static void init(void *state) { trainer_init(state); }

static const struct argp_option options[] = {
    { "device", 'd', "WORD", 0,
      "What computes: cpu, cuda, or auto, which takes a GPU if there is one and says so (cpu). "
      "The GPU's part has been compiled, not yet run on a GPU",
      0 },
    { "threads", 't', "N", 0, "Compute threads (1)", 0 },
    { "micro-batch-size", 'm', "N", 0,
      "Sequences at a time: memory against speed (4; env MICRO_BATCH_SIZE). A run with "
      "verification_percent has its own, compute.micro_batch_size: it is part of a result",
      0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct member_options *self = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = self;
    else if (key == 'd') self->device = arg;
    else if (key == 't') self->threads = arg;
    else if (key == 'm') self->micro_batch = arg;
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct actor actor = { "trainer", sizeof(struct trainer), trainer_step };
    static const struct argp_child children[] = { { &member_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = { options,
                                      parse,
                                      "[train]",
                                      "Trains one model together with others.\n\n"
                                      "  shoal-trainer -i secret.key --ticket ticket\n"
                                      "  shoal-trainer -i secret.key --ticket ticket -t 2\n",
                                      children,
                                      NULL,
                                      NULL };
    struct member_options self = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    struct member_process process = { .actor = &actor,
                                      .init = init,
                                      .workers = { member_learner, member_fetcher },
                                      .keeps_blobs = true };
    return member_run(&self, &process);
}
