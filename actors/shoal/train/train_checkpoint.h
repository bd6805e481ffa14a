#pragma once
// train_checkpoint -- the checkpoints that `shoal train` writes and resumes from. They have the
// form of a checkpointer's (common/checkpoint/checkpoint.h), with the optimizer's state and the
// recipe as recipe.txt. A resumed training has the same bits as one that was not interrupted.

#include "actors/shoal/train/train_settings.h"

// Where a training stands: all that changes, beside the parameters and the optimizer.
struct train_position {
    uint64_t step;    // Steps done
    uint64_t sample;  // The next one, counted over all passes
    uint64_t samples; // Trained so far
};

// Where a training begins.
struct train_position train_position_first(const struct train_settings *settings);

// FAULT_FOREIGN: a position that lies before [progress] of state.toml.
int train_position_check(const struct train_settings *settings,
                         const struct train_position *position, struct why *why);

// Prints the lines of the present recipe that an earlier one, `count` bytes of whole lines ended by
// a zero, does not have. FAULT_FORMAT.
int train_checkpoint_compare(const struct train_settings *settings, const char *before,
                             size_t count, struct why *why);

// Makes the folder if it is missing, so that a fault shows now and not after hours. FAULT_DENIED if
// it holds checkpoints already, with which a new training would mix.
int train_checkpoint_begin(const struct train_settings *settings, struct why *why);

// Writes the checkpoint of `position`.
int train_checkpoint_write(const struct train_settings *settings,
                           const struct train_position *position, const struct model_folder *model,
                           solo_t *solo, struct why *why);

// The step of the newest. FAULT_NOT_FOUND: there is none.
int train_checkpoint_newest(const struct train_settings *settings, struct why *why,
                            uint64_t *ret_step);

// Loads parameters and optimizer from the newest. Says on stderr by which lines the recipe differs.
int train_checkpoint_load(const struct train_settings *settings, const struct model_folder *model,
                          solo_t *solo, struct why *why, struct train_position *ret_position);
