// shoal-checkpointer -- follows a run, writes its checkpoints, and serves them.

#include "actors/checkpointer/checkpointer.h"
#include "common/base/log.h"
#include "common/checkpoint/checkpoint.h"
#include "common/member/member_shell.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void init(void *state) { checkpointer_init(state); }

// A checkpointer goes on from the newest checkpoint of its own that is whole: the highest step of
// the latest epoch, since a restore may have given up higher ones of epochs before. A damaged one is
// said and passed over here, by the caller's explicit choice, because the digest of the run decides
// anyway.
static int find_checkpoint(const struct member_options *options, struct why *why,
                           struct wire_load *ret_resume)
{
    static struct checkpoint_seen seen[CHECKPOINT_LIST_MAX];
    size_t count = 0, newest = 0;
    bool any = false;
    if (mkdir(options->checkpoint_dir, 0755) != 0 && errno != EEXIST)
        return why_set(why, fault_from_errno(errno), "%s: %s", options->checkpoint_dir,
                       strerror(errno));
    snprintf(ret_resume->path, sizeof ret_resume->path, "%s", options->checkpoint_dir);
    int rc = checkpoint_clean(options->checkpoint_dir, why);
    if (rc == 0)
        rc = checkpoint_list(options->checkpoint_dir, options->command.run_id, why, seen, &count);
    if (rc < 0) return rc;
    for (size_t i = 0; i < count; i++) {
        if (seen[i].fault == FAULT_FOREIGN)
            return why_set(why, FAULT_FOREIGN,
                           "%s holds checkpoints of another run than \"%s\"; give another "
                           "--checkpoint-dir",
                           options->checkpoint_dir, options->command.run_id);
        if (seen[i].fault == 0 && (!any || replica_is_newer(seen[i].step, seen[i].epoch,
                                                            seen[newest].step, seen[newest].epoch)))
            newest = i;
        any |= seen[i].fault == 0;
        if (seen[i].fault)
            log_line(LOG_ERR, "checkpoint.damaged step=%llu dir=%s fault=%s; passed over",
                     (unsigned long long)seen[i].step, options->checkpoint_dir,
                     fault_name(seen[i].fault));
    }
    if (!any) return 0;
    ret_resume->step = seen[newest].step;
    log_line(LOG_INFO, "checkpoint.found step=%llu dir=%s", (unsigned long long)seen[newest].step,
             options->checkpoint_dir);
    return 0;
}

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
    struct member_process process = { .actor = &actor,
                                      .init = init,
                                      .workers = { member_learner, member_fetcher },
                                      .keeps_blobs = true,
                                      .find = find_checkpoint };
    return member_run(&self, &process);
}
