// train -- one trainer without any other actor, for finding a learning rate or making a small
// model.

#include "actors/shoal/shoal.h"
#include "actors/shoal/train/train_run.h"
#include "common/actor/command.h"
#include "common/kernel/pool.h"
#include "common/model/model.h"
#include <sysexits.h>

static const struct flag flags[] = {
    FLAG("model", 0, "DIR", TO_TEXT(struct train_flags, model),
         "The model to begin with (that of STATE_TOML)", .group = 1),
    FLAG("init-seed", 0, "N", TO_TEXT(struct train_flags, init_seed),
         "Begin with random parameters of this seed", .group = 1),
    FLAG("data", 0, "DIR", TO_TEXT(struct train_flags, data), "Token files (those of STATE_TOML)",
         .group = 1),
    FLAG("data-config", 0, "FILE", TO_TEXT(struct train_flags, data_config),
         "A data-provider's data.toml, not --data", .group = 1),
    FLAG("token-bytes", 0, "N", TO_NUMBER(struct train_flags, token_bytes, 2, 4),
         "Bytes of a token of --data: 2 or 4 (its manifest's)", .group = 1),
    FLAG("shuffle-seed", 0, "N", TO_TEXT(struct train_flags, shuffle_seed),
         "Seed of the samples' order (with --data: 0)", .group = 1),
    FLAG("no-shuffle", 0, NULL, TO_SWITCH(struct train_flags, no_shuffle),
         "Take the samples in the order of the files", .group = 1),
    FLAG("heldout", 0, "DIR", TO_TEXT(struct train_flags, heldout), "Token files to measure on",
         .group = 1),
    FLAG("heldout-every", 0, "N", TO_NUMBER(struct train_flags, heldout_every, 1, UINT32_MAX),
         "Steps from one measure to the next (100)", .group = 1),
    FLAG("heldout-samples", 0, "N",
         TO_NUMBER(struct train_flags, heldout_samples, 1, TRAIN_HELDOUT_SAMPLES_MAX),
         "Samples to measure, from the first (256)", .group = 1),
    FLAG("optimizer", 0, "KIND", TO_TEXT(struct train_flags, optimizer),
         "adamw, adam, sgd, or distro as a run with one trainer", .group = 2),
    FLAG("learning-rate", 0, "X", TO_TEXT(struct train_flags, learning_rate),
         "base_lr of the schedule", .group = 2),
    FLAG("batch-size", 0, "N", TO_TEXT(struct train_flags, batch_size),
         "Sequences a step, the same in all steps", .group = 2),
    FLAG("steps", 0, "N", TO_TEXT(struct train_flags, steps),
         "config.total_steps; a schedule keeps its own", .group = 2),
    FLAG("set", 0, "KEY=VALUE", TO_LIST(struct train_flags, sets, sets_count, TRAIN_SETS_MAX),
         "Any setting of STATE_TOML: lr_schedule=Cosine", .group = 2),
    FLAG("device", 0, "WORD", TO_TEXT(struct train_flags, device),
         "cpu, cuda, or auto: a GPU if there is one (cpu)", .group = 3),
    FLAG("micro-batch-size", 0, "N", TO_NUMBER(struct train_flags, micro_batch, 1, MODEL_BATCH_MAX),
         "Sequences at a time: memory against speed (that of STATE_TOML)", .group = 3),
    FLAG("lanes", 0, "N", TO_NUMBER(struct train_flags, lanes, 1, LANES_MAX),
         "Parts that a batch is summed in (strategy.lanes; with distro 1)", .group = 3),
    FLAG("threads", 0, "N", TO_NUMBER(struct train_flags, threads, 1, POOL_THREADS_MAX),
         "Compute threads (one per processor)", .group = 3),
    FLAG("memory-mib", 0, "N", TO_NUMBER(struct train_flags, memory_mib, 1, 1 << 30),
         "Memory limit (the free memory)", .group = 3),
    FLAG("checkpoint-dir", 0, "DIR", TO_TEXT(struct train_flags, checkpoint_dir),
         "Where checkpoints go (checkpoints)", .group = 4),
    FLAG("checkpoint-every", 0, "N", TO_NUMBER(struct train_flags, checkpoint_every, 1, UINT32_MAX),
         "Steps between checkpoints (only at the end)", .group = 4),
    FLAG("keep-steps", 0, "N", TO_NUMBER(struct train_flags, keep, 1, 1000),
         "How many checkpoints stay (3)", .group = 4),
    FLAG("resume", 0, NULL, TO_SWITCH(struct train_flags, resume),
         "Go on from the newest checkpoint or save", .group = 4),
    FLAG("no-checkpoint", 0, NULL, TO_SWITCH(struct train_flags, no_checkpoint),
         "Write no checkpoint and no save", .group = 4),
    FLAG("log", 0, "FILE", TO_TEXT(struct train_flags, log),
         "A row for each step: FILE.csv or FILE.jsonl", .group = 4),
    FLAG("json", 0, NULL, TO_SWITCH(struct train_flags, json), "Print one JSON object at the end",
         .group = 4),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .usage = "STATE_TOML",
    .about =
        "One trainer alone, without a run: to find a learning rate, or to make a small model. "
        "Ctrl-C saves. On the CPU the bits are the same for any number of threads, and with "
        "--resume; with strategy.kind = \"allreduce\", \"sharded\" or \"server\" (in step) they "
        "are those of "
        "the run, however many trainers it has. The GPU's part has been compiled, not yet run on a "
        "GPU.\n\n"
        "  shoal train state.toml --data-config data.toml --learning-rate 1e-3\n"
        "  shoal train state.toml --data data/train --optimizer adamw --log a.csv\n",
    .arguments = TO_TEXT(struct train_flags, state_path),
    .none = "a state.toml is needed",
};

int shoal_train(int argc, char **argv)
{
    static struct train_flags self = {
        .device = "cpu", .heldout_every = 100, .heldout_samples = 256, .keep = 3
    };
    struct why why = { 0 };
    self.threads = shoal_threads();
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = train_run(&self, &why);
    return rc == FAULT_TIMEOUT && !why.text[0] ? EX_TEMPFAIL : fault_exit(rc, &why);
}
