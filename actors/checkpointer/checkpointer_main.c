// shoal-checkpointer -- follows a run, writes its checkpoints, and serves them.

#include "actors/checkpointer/checkpointer.h"
#include "common/base/folder.h"
#include "common/base/log.h"
#include "common/checkpoint/checkpoint.h"
#include "common/member/member_shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void init(void *state) { checkpointer_init(state); }

// The latest run of that name; in it the latest epoch, since a restore may have given up higher steps of
// earlier epochs; in that the highest step.
static bool is_newer(const struct checkpoint_seen *one, const struct checkpoint_seen *than)
{
    if (one->born_unix_ms != than->born_unix_ms) return one->born_unix_ms > than->born_unix_ms;
    return replica_is_newer(one->step, one->epoch, than->step, than->epoch);
}

// A checkpointer resumes from its newest whole checkpoint, if the replica finds that it is of this run. A
// damaged one is logged and skipped; that is safe, because the replica compares the digest with the run's
// record.
static int find_checkpoint(const struct member_options *options, struct why *why,
                           struct wire_load *ret_resume)
{
    static struct checkpoint_seen seen[CHECKPOINT_LIST_MAX];
    size_t count = 0, newest = 0;
    bool any = false;
    if (strlen(options->checkpoint_dir) >= sizeof ret_resume->path)
        return why_set(why, FAULT_USAGE, "--checkpoint-dir: its path has at most %zu bytes",
                       sizeof ret_resume->path - 1);
    int rc = folder_make(options->checkpoint_dir, 0755, why);
    if (rc < 0) return rc;
    snprintf(ret_resume->path, sizeof ret_resume->path, "%s", options->checkpoint_dir);
    rc = checkpoint_clean(options->checkpoint_dir, why);
    if (rc == 0)
        rc = checkpoint_list(options->checkpoint_dir, options->command.run_id, why, seen, &count);
    if (rc < 0) return rc;
    for (size_t i = 0; i < count; i++) {
        if (seen[i].fault == FAULT_FOREIGN)
            return why_set(why, FAULT_FOREIGN,
                           "%s holds checkpoints of another run than \"%s\"; give another "
                           "--checkpoint-dir",
                           options->checkpoint_dir, options->command.run_id);
        if (seen[i].fault == 0 && (!any || is_newer(&seen[i], &seen[newest]))) newest = i;
        any |= seen[i].fault == 0;
        if (seen[i].fault)
            log_line(LOG_ERR, "checkpoint.damaged step=%" PRIu64 " dir=%s fault=%s; skipped",
                     seen[i].step, options->checkpoint_dir, fault_name(seen[i].fault));
    }
    if (!any) return 0;
    ret_resume->step = seen[newest].step;
    log_line(LOG_INFO, "checkpoint.found step=%" PRIu64 " dir=%s", seen[newest].step,
             options->checkpoint_dir);
    return 0;
}

static const struct flag flags[] = {
    FLAG("checkpoint-dir", 0, "DIR", TO_TEXT(struct member_options, checkpoint_dir),
         "Where checkpoints go (checkpoints; env CHECKPOINT_DIR)", .env = "CHECKPOINT_DIR"),
    FLAG("keep-steps", 0, "N", TO_NUMBER(struct member_options, keep, 1, 1000),
         "Number of newest checkpoints to keep (3; env KEEP_STEPS)", .env = "KEEP_STEPS"),
    FLAG("tokenizer-dir", 0, "DIR", TO_TEXT(struct member_options, tokenizer_dir),
         "Tokenizer files to put beside the parameters (those of the genesis folder)"),
    FLAG("threads", 't', "N", TO_NUMBER(struct member_options, threads, 1, 64),
         "Threads for applying commits (1)"),
    FLAGS_TOO(member_flags),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Turns commits into checkpoints that other tools can read.\n\n"
             "  shoal-checkpointer -i secret.key --ticket ticket --checkpoint-dir checkpoints\n"
             "  shoal-checkpointer -i secret.key --ticket ticket --checkpoint-dir checkpoints "
             "--keep-steps 10\n",
};

int main(int argc, char **argv)
{
    static const struct actor actor = { sizeof(struct checkpointer), checkpointer_step };
    struct member_options self = { MEMBER_DEFAULTS, .checkpoint_dir = "checkpoints" };
    const struct member_process process = { .actor = &actor,
                                            .init = init,
                                            .workers = { member_learner, member_fetcher },
                                            .keeps_blobs = true,
                                            .find = find_checkpoint };
    return member_main(argc, argv, &line, "checkpointer", &self, &process);
}
