// convergence -- one training run in one process, to see how far a way to learn gets and what
// limits it: AdamW, or DisTrO with any number of trainers, each with its own share of the batch and
// its own residual, as a run of actors does it.
//
//     batch ─┬▶ share 0 ─▶ gradient ─▶ clip ─▶ compress (residual 0) ─┐
//            ├▶ share 1 ─▶ ...                                        ├─▶ commit ─▶ apply
//            └▶ share n-1 ...                                         ┘   waits `lag` steps
//
// With lag 0 and signs it is the product's arithmetic: one trainer gives the bits of `shoal train
// --optimizer distro`. What exists here alone, as experiments:
//
//     --lag L     a commit is applied L steps after its gradients were taken, at its own rate;
//                 1 is Psyche's overlap (without its look-ahead)
//     --no-sign   p <- p·keep - rate·s·x instead of rate·sign(x), where x is the decoded mean and s,
//                 one number per tensor, gives the update the length that its signs would have
//     --hostile X  the last trainer multiplies its result by X: -1 turns it round, -10 shouts it
//
// Genesis and the order of the data come from --seed. Prints CSV: tokens, mean training loss since
// the row before, held-out loss in nats per token, and over how many windows that is: the first, as
// in shoal train, or with --spread as many from all over. Driven by convergence.py.

#include "common/actor/command.h"
#include "common/crypto/merkle.h"
#include "tests/numeric/convergence_trial.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at;
    double min, max;
} reals[] = {
    { "learning-rate", offsetof(struct trial_settings, schedule.base_lr), 0, 10 },
    { "final-rate", offsetof(struct trial_settings, schedule.final_lr), 0, 10 },
    { "compression-decay", offsetof(struct trial_settings, decay), 0, 0.999999 },
    { "clip", offsetof(struct trial_settings, clip), 0, 1e9 },
    { "weight-decay", offsetof(struct trial_settings, weight_decay), 0, 100 },
    { "beta1", offsetof(struct trial_settings, beta1), 0, 0.999999 },
    { "beta2", offsetof(struct trial_settings, beta2), 0, 0.999999 },
    { "hostile", offsetof(struct trial_settings, hostile), -1e6, 1e6 },
};

static const struct {
    const char *name;
    size_t at;
    uint64_t min, max;
} wholes[] = {
    { "trainers", offsetof(struct trial_settings, trainers), 1, TRIAL_TRAINERS_MAX },
    { "chunk", offsetof(struct trial_settings, chunk), 1, DCT_SIDE_MAX },
    { "topk", offsetof(struct trial_settings, top_k), 1, PAYLOAD_TOP_K_MAX },
    { "batch", offsetof(struct trial_settings, batch), 1, 65536 },
    { "steps", offsetof(struct trial_settings, steps), 1, 10000000 },
    { "warmup", offsetof(struct trial_settings, warmup), 0, 10000000 },
    { "seed", offsetof(struct trial_settings, seed), 0, UINT64_MAX },
    { "lag", offsetof(struct trial_settings, lag), 0, TRIAL_LAG_MAX },
    { "threads", offsetof(struct trial_settings, threads), 1, POOL_THREADS_MAX },
    { "heldout-every", offsetof(struct trial_settings, heldout_every), 1, UINT32_MAX },
    { "heldout-samples", offsetof(struct trial_settings, heldout_samples), 1, TRIAL_HELDOUT_MAX },
};

enum { REALS = sizeof reals / sizeof *reals, WHOLES = sizeof wholes / sizeof *wholes };
enum {
    KEY_REAL = 1000,
    KEY_WHOLE = 1100,
    KEY_MODEL = 1200,
    KEY_TRAIN,
    KEY_HELDOUT,
    KEY_OPTIMIZER,
    KEY_SCHEDULE,
    KEY_FLOAT_VALUES,
    KEY_NO_SIGN,
    KEY_SPREAD
};

static void read_real(struct trial_settings *self, int which, const char *text,
                      struct argp_state *state)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= reals[which].min && value <= reals[which].max))
        argp_error(state, "--%s %s: a number from %g to %g", reals[which].name, text,
                   reals[which].min, reals[which].max);
    memcpy((char *)self + reals[which].at, &value, sizeof value);
}

static void read_whole(struct trial_settings *self, int which, const char *text,
                       struct argp_state *state)
{
    struct why why = { 0 };
    uint64_t value = 0;
    if (command_number(wholes[which].name, text, wholes[which].min, wholes[which].max, &why,
                       &value) < 0)
        argp_error(state, "%s", why.text);
    memcpy((char *)self + wholes[which].at, &value, sizeof value);
}

static void read_schedule(struct trial_settings *self, const char *text, struct argp_state *state)
{
    if (strcmp(text, "linear") == 0) self->schedule.kind = SCHEDULE_LINEAR;
    else if (strcmp(text, "cosine") == 0) self->schedule.kind = SCHEDULE_COSINE;
    else if (strcmp(text, "constant") == 0) self->schedule.kind = SCHEDULE_CONSTANT;
    else argp_error(state, "--schedule %s: linear, cosine or constant", text);
}

// What two flags together must hold to.
static void check(struct trial_settings *self, struct argp_state *state)
{
    if (!self->model || !self->train || !self->heldout)
        argp_error(state, "--model, --train and --heldout are needed");
    if (self->adamw && (self->trainers != 1 || self->lag || !self->sign || self->hostile != 1.0))
        argp_error(state, "--trainers, --lag, --no-sign, --hostile belong to --optimizer distro");
    if (self->hostile == 0.0) argp_error(state, "--hostile 0: a value that is zero is not sent");
    if (self->trainers > self->batch)
        argp_error(state, "%" PRIu64 " trainers and a batch of %" PRIu64 ": each needs a sequence",
                   self->trainers, self->batch);
    self->schedule.warmup_steps = (uint32_t)self->warmup;
    self->schedule.total_steps = (uint32_t)self->steps;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct trial_settings *self = state->input;
    if (key >= KEY_REAL && key < KEY_REAL + REALS) read_real(self, key - KEY_REAL, arg, state);
    else if (key >= KEY_WHOLE && key < KEY_WHOLE + WHOLES)
        read_whole(self, key - KEY_WHOLE, arg, state);
    else if (key == KEY_MODEL) self->model = arg;
    else if (key == KEY_TRAIN) self->train = arg;
    else if (key == KEY_HELDOUT) self->heldout = arg;
    else if (key == KEY_SCHEDULE) read_schedule(self, arg, state);
    else if (key == KEY_FLOAT_VALUES) self->one_bit = false;
    else if (key == KEY_NO_SIGN) self->sign = false;
    else if (key == KEY_SPREAD) self->spread = true;
    else if (key == KEY_OPTIMIZER) {
        self->adamw = strcmp(arg, "adamw") == 0;
        if (!self->adamw && strcmp(arg, "distro") != 0)
            argp_error(state, "--optimizer %s: adamw or distro", arg);
    } else if (key == ARGP_KEY_END) check(self, state);
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

static void read_settings(int argc, char **argv, struct trial_settings *self)
{
    static struct argp_option options[REALS + WHOLES + 9] = {
        { "model", KEY_MODEL, "DIR", 0, "Folder of the model's config.json", 0 },
        { "train", KEY_TRAIN, "DIR", 0, "Token files to learn from, two bytes each", 0 },
        { "heldout", KEY_HELDOUT, "DIR", 0, "Token files to be measured on", 0 },
        { "optimizer", KEY_OPTIMIZER, "NAME", 0, "adamw, or distro (what is meant without)", 0 },
        { "schedule", KEY_SCHEDULE, "KIND", 0, "linear (meant without), cosine, constant", 0 },
        { "float-values", KEY_FLOAT_VALUES, 0, 0, "Send coefficients, not their signs", 0 },
        { "no-sign", KEY_NO_SIGN, 0, 0, "Apply the scaled mean, not its signs", 0 },
        { "spread", KEY_SPREAD, 0, 0, "Windows from all over what is held out; at the end all", 0 },
    };
    for (int i = 0; i < REALS; i++)
        options[8 + i] = (struct argp_option){ reals[i].name, KEY_REAL + i, "X", 0, "", 1 };
    for (int i = 0; i < WHOLES; i++)
        options[8 + REALS + i] =
            (struct argp_option){ wholes[i].name, KEY_WHOLE + i, "N", 0, "", 1 };
    const struct argp argp = {
        options, parse, NULL, "Trains one model in one process and prints its losses as CSV.",
        NULL,    NULL,  NULL
    };
    argp_parse(&argp, argc, argv, 0, NULL, self);
}

int main(int argc, char **argv)
{
    static struct trial self = { .settings = {
                                     .one_bit = true,
                                     .sign = true,
                                     .trainers = 1,
                                     .chunk = 64,
                                     .top_k = 8,
                                     .batch = 8,
                                     .steps = 600,
                                     .warmup = 20,
                                     .threads = 2,
                                     .heldout_every = 61440,
                                     .heldout_samples = 256,
                                     .decay = 0.95,
                                     .clip = 1.0,
                                     .beta1 = 0.9,
                                     .beta2 = 0.95,
                                     .hostile = 1.0,
                                     .schedule = { .kind = SCHEDULE_LINEAR, .base_lr = 2e-3 } } };
    struct why why = { 0 };
    char hex[HASH_HEX];
    read_settings(argc, argv, &self.settings);
    int rc = trial_open(&self, &why);
    if (rc == 0) rc = trial_run(&self, &why);
    if (rc == 0) {
        const struct hash digest = digest_of(self.model.params, self.model.floats);
        fprintf(stderr, "digest %s\n", hash_to_hex(&digest, hex));
    }
    trial_close(&self);
    return rc < 0 ? fault_exit(rc, &why) : 0;
}
