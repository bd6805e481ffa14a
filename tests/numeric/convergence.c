// convergence -- one training run in one process, to measure how well an optimizer learns and what
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
//     --no-sign   p <- p·keep - rate·s·x instead of rate·sign(x), x being the decoded mean and s,
//                 one number per tensor, gives the update the length that its signs would have
//     --hostile X  the last trainer multiplies its result by X: -1 turns it round, -10 shouts it
//
// Genesis and the order of the data come from --seed. Prints CSV: tokens, mean training loss since
// the row before, held-out loss in nats per token, and over how many windows that is: the first, as
// in shoal train, or with --spread as many from all over. Driven by convergence.py.

#include "common/actor/command.h"
#include "common/crypto/merkle.h"
#include "tests/numeric/convergence_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct wish {
    struct trial_settings settings;
    const char *optimizer, *schedule;
};

#define REAL(name, field, low, high)                                                               \
    FLAG(name, 0, "X", TO_REAL(struct wish, settings.field, low, high), "", .group = 1)
#define WHOLE(name, field, low, high)                                                              \
    FLAG(name, 0, "N", TO_NUMBER(struct wish, settings.field, low, high), "", .group = 1)

static const struct flag flags[] = {
    FLAG("model", 0, "DIR", TO_TEXT(struct wish, settings.model),
         "Folder of the model's config.json", .needed = true),
    FLAG("train", 0, "DIR", TO_TEXT(struct wish, settings.train),
         "Token files to learn from, two bytes each", .needed = true),
    FLAG("heldout", 0, "DIR", TO_TEXT(struct wish, settings.heldout),
         "Token files to be measured on", .needed = true),
    FLAG("optimizer", 0, "NAME", TO_TEXT(struct wish, optimizer), "adamw or distro (distro)"),
    FLAG("schedule", 0, "KIND", TO_TEXT(struct wish, schedule),
         "linear, cosine or constant (linear)"),
    FLAG("float-values", 0, NULL, TO_SWITCH(struct wish, settings.float_values),
         "Send coefficients, not their signs"),
    FLAG("no-sign", 0, NULL, TO_SWITCH(struct wish, settings.no_sign),
         "Apply the scaled mean, not its signs"),
    FLAG("spread", 0, NULL, TO_SWITCH(struct wish, settings.spread),
         "Windows from all over what is held out; at the end all"),
    REAL("learning-rate", schedule.base_lr, 0, 10),
    REAL("final-rate", schedule.final_lr, 0, 10),
    REAL("compression-decay", decay, 0, 0.999999),
    REAL("clip", clip, 0, 1e9),
    REAL("weight-decay", weight_decay, 0, 100),
    REAL("beta1", beta1, 0, 0.999999),
    REAL("beta2", beta2, 0, 0.999999),
    REAL("hostile", hostile, -1e6, 1e6),
    WHOLE("trainers", trainers, 1, TRIAL_TRAINERS_MAX),
    WHOLE("chunk", chunk, 1, DCT_SIDE_MAX),
    WHOLE("topk", top_k, 1, PAYLOAD_TOP_K_MAX),
    WHOLE("batch", batch, 1, 65536),
    WHOLE("steps", steps, 1, 10000000),
    WHOLE("warmup", warmup, 0, 10000000),
    WHOLE("seed", seed, 0, UINT64_MAX),
    WHOLE("lag", lag, 0, TRIAL_LAG_MAX),
    WHOLE("threads", threads, 1, POOL_THREADS_MAX),
    WHOLE("heldout-every", heldout_every, 1, UINT32_MAX),
    WHOLE("heldout-samples", heldout_samples, 1, TRIAL_HELDOUT_MAX),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Trains one model in one process and prints its losses as CSV.",
};

static int read_words(struct wish *self, struct why *why)
{
    static const struct {
        const char *word;
        enum schedule_kind kind;
    } kinds[] = { { "linear", SCHEDULE_LINEAR },
                  { "cosine", SCHEDULE_COSINE },
                  { "constant", SCHEDULE_CONSTANT } };
    self->settings.adamw = strcmp(self->optimizer, "adamw") == 0;
    if (!self->settings.adamw && strcmp(self->optimizer, "distro") != 0)
        return why_set(why, FAULT_USAGE, "--optimizer %s: adamw or distro", self->optimizer);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(self->schedule, kinds[i].word) != 0) continue;
        self->settings.schedule.kind = kinds[i].kind;
        return 0;
    }
    return why_set(why, FAULT_USAGE, "--schedule %s: linear, cosine or constant", self->schedule);
}

// What two flags together must hold to.
static int check(struct trial_settings *self, struct why *why)
{
    if (self->adamw && (self->trainers != 1 || self->lag || self->no_sign || self->hostile != 1.0))
        return why_set(why, FAULT_USAGE,
                       "--trainers, --lag, --no-sign, --hostile belong to --optimizer distro");
    if (self->hostile == 0.0)
        return why_set(why, FAULT_USAGE, "--hostile 0: a value that is zero is not sent");
    if (self->trainers > self->batch)
        return why_set(why, FAULT_USAGE,
                       "%" PRIu64 " trainers and a batch of %" PRIu64 ": each needs a sequence",
                       self->trainers, self->batch);
    self->schedule.warmup_steps = (uint32_t)self->warmup;
    self->schedule.total_steps = (uint32_t)self->steps;
    return 0;
}

int main(int argc, char **argv)
{
    struct wish wish = { .optimizer = "distro",
                         .schedule = "linear",
                         .settings = { .trainers = 1,
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
                                       .schedule = { .base_lr = 2e-3 } } };
    static struct trial self;
    struct why why = { 0 };
    char hex[HASH_HEX];
    int rc = command_parse(&line, argc, argv, &wish, &why);
    if (rc == 0) rc = read_words(&wish, &why);
    if (rc == 0) rc = check(&wish.settings, &why);
    self.settings = wish.settings;
    if (rc == 0) rc = trial_open(&self, &why);
    if (rc == 0) rc = trial_run(&self, &why);
    if (rc == 0) {
        const struct hash digest = digest_of(self.model.params, self.model.floats);
        fprintf(stderr, "digest %s\n", hash_to_hex(&digest, hex));
    }
    trial_close(&self);
    return rc < 0 ? fault_exit(rc, &why) : 0;
}
