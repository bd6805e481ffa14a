// shoal-checkpointer -- follows a run, writes its checkpoints, and serves them.

#include "actors/checkpointer/checkpointer.h"
#include "common/member/member_shell.h"

static void init(void *state) { checkpointer_init(state); }

enum { KEY_KEEP = 3000, KEY_TOKENIZER };

static const struct argp_option options[] = {
    { "checkpoint-dir", 'c', "DIR", 0, "Where checkpoints go (checkpoints; env CHECKPOINT_DIR)",
      0 },
    { "keep-steps", KEY_KEEP, "N", 0, "The newest so many stay (3; env KEEP_STEPS)", 0 },
    { "tokenizer-dir", KEY_TOKENIZER, "DIR", 0,
      "Tokenizer files to put beside the parameters (those of the "
      "genesis folder)",
      0 },
    { "threads", 't', "N", 0, "Threads for applying commits (1)", 0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct member_options *self = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = self;
    else if (key == 'c') self->checkpoint_dir = arg;
    else if (key == 't') self->threads = arg;
    else if (key == KEY_KEEP) self->keep = arg;
    else if (key == KEY_TOKENIZER) self->tokenizer_dir = arg;
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct actor actor = { "checkpointer", sizeof(struct checkpointer),
                                        checkpointer_step };
    static const struct argp_child children[] = { { &member_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Turns commits into checkpoints that other tools can read.\n\n"
        "  shoal-checkpointer -i secret.key --ticket ticket -c "
        "checkpoints\n"
        "  shoal-checkpointer -i secret.key --ticket ticket -c "
        "checkpoints --keep-steps 10\n",
        children,
        NULL,
        NULL
    };
    struct member_options self = { 0 };
    const char *dir = command_env("CHECKPOINT_DIR"), *keep = command_env("KEEP_STEPS");
    self.checkpoint_dir = dir ? dir : "checkpoints";
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    if (keep && !self.keep) self.keep = keep;
    struct member_process process = {
        .actor = &actor, .init = init, .has_learner = true, .has_fetcher = true, .keeps_blobs = true
    };
    return member_run(&self, &process);
}
