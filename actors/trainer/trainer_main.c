// shoal-trainer -- takes part in a run: trains, witnesses when elected, serves its peers.

#include "actors/trainer/trainer.h"
#include "common/member/member_shell.h"
#include <string.h>

static void init(void *state) { trainer_init(state); }

static const struct flag flags[] = {
    FLAG("device", 0, "WORD", TO_TEXT(struct member_options, device),
         "Device: cpu, cuda, or auto, which takes a GPU if there is one and logs its choice (cpu). "
         "The GPU's part has been compiled, not yet run on a GPU"),
    FLAG("threads", 't', "N", TO_NUMBER(struct member_options, threads, 1, 64),
         "Compute threads (1)"),
    FLAG("micro-batch-size", 0, "N", TO_NUMBER(struct member_options, micro_batch, 1, 4096),
         "Sequences at a time: memory against speed (4; env MICRO_BATCH_SIZE). A run with "
         "verification_percent, or in step (allreduce, sharded, server), has its own, "
         "compute.micro_batch_size: its bits depend on it",
         .env = "MICRO_BATCH_SIZE"),
    FLAG("guest", 0, NULL, TO_SWITCH(struct member_options, guest),
         "In a run of somebody else, as `shoal join` starts it: says how far the run is, speaks of "
         "its owner, and ends when it is finished"),
    FLAGS_TOO(member_flags),
    { 0 },
};

// Psyche, which this replaces, is started as "… train"; so that word is accepted.
static int check_word(const void *options, struct why *why)
{
    const struct member_options *self = options;
    if (!self->word || strcmp(self->word, "train") == 0) return 0;
    return why_set(why, FAULT_USAGE,
                   "\"%.40s\": train is the only word that is taken, and needs not be written; "
                   "`shoal --help` lists other commands",
                   self->word);
}

static const struct command_line line = {
    .flags = flags,
    .usage = "[train]",
    .arguments = TO_TEXT(struct member_options, word),
    .check = check_word,
    .about = "Trains one model together with others.\n\n"
             "  shoal-trainer -i secret.key --ticket ticket\n"
             "  shoal-trainer -i secret.key --ticket ticket -t 2\n",
};

int main(int argc, char **argv)
{
    static const struct actor actor = { sizeof(struct trainer), trainer_step };
    struct member_options self = { MEMBER_DEFAULTS };
    const struct member_process process = { .actor = &actor,
                                            .init = init,
                                            .workers = { member_learner, member_fetcher },
                                            .keeps_blobs = true };
    return member_main(argc, argv, &line, "trainer", &self, &process);
}
