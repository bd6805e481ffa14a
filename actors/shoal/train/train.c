// train -- one trainer alone, without any other actor: what a person uses to find the learning
// rate, or to make a small model.

#include "actors/shoal/shoal.h"
#include "actors/shoal/train/train_run.h"
#include <argp.h>
#include <stddef.h>
#include <sysexits.h>

enum { KEY_FLAGS = 1000, KEY_SET = 2000, KEY_RESUME, KEY_NO_CHECKPOINT, KEY_JSON };

// Flags whose value is kept as it is written; their keys count from KEY_FLAGS.
#define TEXT(name, field, arg, doc, group)                                                         \
    {                                                                                              \
        { name, 0, arg, 0, doc, group }, offsetof(struct train_flags, field)                       \
    }
static const struct {
    struct argp_option option;
    size_t offset;
} texts[] = {
    TEXT("model", model, "DIR", "The model to begin with (that of the file)", 1),
    TEXT("init-seed", init_seed, "N", "Random parameters in the model's shape", 1),
    TEXT("data", data, "DIR", "Token files (those of the file)", 1),
    TEXT("data-config", data_config, "FILE", "Or a data-provider's data.toml", 1),
    TEXT("token-bytes", token_bytes, "N", "Width of a token of --data: 2 or 4 (2)", 1),
    TEXT("shuffle-seed", shuffle_seed, "N", "Another order of the samples", 1),
    TEXT("heldout", heldout, "DIR", "Token files to measure on", 1),
    TEXT("heldout-every", heldout_every, "N", "Steps from one measure to the next (100)", 1),
    TEXT("heldout-samples", heldout_samples, "N", "Of them, from the first on (256)", 1),
    TEXT("optimizer", optimizer, "KIND", "adamw, or distro as a run with one trainer", 2),
    TEXT("learning-rate", learning_rate, "X", "base_lr of the schedule", 2),
    TEXT("batch-size", batch_size, "N", "Sequences a step, from first to last", 2),
    TEXT("steps", steps, "N", "config.total_steps; a schedule keeps its own", 2),
    TEXT("device", device, "WORD", "cpu, cuda, or auto: a GPU if there is one (cpu)", 3),
    TEXT("micro-batch-size", micro_batch, "N", "Sequences at a time: memory against speed (4)", 3),
    TEXT("threads", threads, "N", "Compute threads (one per processor)", 3),
    TEXT("memory-mib", memory_mib, "N", "The most it may need (what is free)", 3),
    TEXT("checkpoint-dir", checkpoint_dir, "DIR", "Where checkpoints go (checkpoints)", 4),
    TEXT("checkpoint-every", checkpoint_every, "N", "Steps between them (only at the end)", 4),
    TEXT("keep-steps", keep, "N", "The newest so many stay (3)", 4),
    TEXT("log", log, "FILE", "A row for each step: FILE.csv or FILE.jsonl", 4),
};
enum { TEXTS = sizeof texts / sizeof *texts };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct train_flags *self = state->input;
    if (key >= KEY_FLAGS && key < KEY_FLAGS + TEXTS) {
        const char **to = (void *)((char *)self + texts[key - KEY_FLAGS].offset);
        *to = arg;
        return 0;
    }
    switch (key) {
    case KEY_SET:
        if (self->sets_count == TRAIN_SETS_MAX)
            argp_error(state, "at most %d times --set", TRAIN_SETS_MAX);
        self->sets[self->sets_count++] = arg;
        break;
    case KEY_RESUME: self->resume = true; break;
    case KEY_NO_CHECKPOINT: self->no_checkpoint = true; break;
    case KEY_JSON: self->json = true; break;
    case ARGP_KEY_ARG:
        if (self->state_path) argp_error(state, "one state.toml, not also %s", arg);
        self->state_path = arg;
        break;
    case ARGP_KEY_END:
        if (!self->state_path) argp_error(state, "a state.toml is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int shoal_train(int argc, char **argv)
{
    static struct argp_option options[TEXTS + 5] = {
        [TEXTS] = { "set", KEY_SET, "KEY=VALUE", 0, "Any setting of the file: lr_schedule=Cosine",
                    2 },
        { "resume", KEY_RESUME, NULL, 0, "Go on from the newest checkpoint", 4 },
        { "no-checkpoint", KEY_NO_CHECKPOINT, NULL, 0, "Write none", 4 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object at the end", 4 },
    };
    static const struct argp argp = {
        options,
        parse,
        "STATE_TOML",
        "One trainer alone, without a run: to find a learning rate, or to make a small model. "
        "Ctrl-C saves. On the CPU the bits are the same for any number of threads, and with "
        "--resume. The GPU's part has been compiled, not yet run on a GPU.\n\n"
        "  shoal train state.toml --data-config data.toml --learning-rate 1e-3\n"
        "  shoal train state.toml --data data/train --optimizer adamw --log a.csv\n",
        NULL,
        NULL,
        NULL
    };
    static struct train_flags flags;
    struct why why = { 0 };
    for (int i = 0; i < TEXTS; i++) {
        options[i] = texts[i].option;
        options[i].key = KEY_FLAGS + i;
    }
    argp_parse(&argp, argc, argv, 0, NULL, &flags);
    const int rc = train_run(&flags, &why);
    return rc == FAULT_TIMEOUT && !why.text[0] ? EX_TEMPFAIL : fault_exit(rc, &why);
}
