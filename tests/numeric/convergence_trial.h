#pragma once
// convergence_trial -- one training run in one process, as convergence.c describes it.

#include "actors/shoal/model/model_folder.h"
#include "common/data/provider.h"
#include "common/model/batch.h"
#include "common/optimizer/adamw.h"
#include "common/optimizer/distro.h"
#include "common/run/schedule.h"

enum { TRIAL_TRAINERS_MAX = 64, TRIAL_LAG_MAX = 16, TRIAL_HELDOUT_MAX = 65536 };

struct trial_settings {
    const char *model, *train, *heldout; // Folders; of the model's, config.json
    bool adamw, float_values, no_sign;
    bool spread; // Windows from all over what is held out; at the end all
    uint64_t trainers, chunk, top_k, batch, steps, warmup, seed, lag, threads;
    uint64_t heldout_every, heldout_samples; // In tokens; windows, from the first on
    double decay, clip, weight_decay, beta1, beta2;
    double hostile; // What the last trainer's result is multiplied by
    struct schedule schedule;
};

struct trial {
    struct trial_settings settings;
    struct model_folder model;
    pool_t *pool;
    model_t *learner;
    provider_t *data, *heldout;
    uint32_t *tokens, *heldout_tokens;
    float *gradient, *scratch, *update; // update: where signs are not taken
    struct adamw adamw;
    float *state; // Moments, or two residuals of each trainer
    chunks_t *chunks;
    payload_form_t *form;
    distro_t *trainers[TRIAL_TRAINERS_MAX];
    uint8_t *payloads; // [lag + 1][trainers]: a ring of commits
};

// Takes what the settings ask for. After a fault as well: trial_close.
int trial_open(struct trial *self, struct why *why);
void trial_close(struct trial *self);

// The whole run; prints its CSV on the way.
int trial_run(struct trial *self, struct why *why);
