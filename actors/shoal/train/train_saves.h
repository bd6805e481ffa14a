#pragma once
// train_saves -- the saves in pieces that `shoal train` writes beside the training, if state.toml
// says so: [checkpoint] shared_dir, and steps or passes. A training that is resumed has the same
// bits as one that was not interrupted.
//
//     parameters, adamw-m ...   as state_pieces.h says, with one worker
//     position                  replicate   step, next sample, samples trained
//     recipe                    replicate   the text of train_settings_recipe
//
// The file `saves` in the folder of the checkpoints says when the training began, and so which
// folder is its own: trainings of one name may save side by side.

#include "actors/shoal/train/train_checkpoint.h"
#include "common/checkpoint/saver.h"

struct train_saves {
    saver_t *saver; // NULL: none are written
    char root[PATH_MAX];
    uint64_t pass;      // Samples of one; 0: of no meaning
    uint64_t waited_us; // By the training, for the save that is being written
};

// The most memory that a copy of the state takes, for a model of so many parameters; 0: no saves.
uint64_t train_saves_memory(const struct train_settings *settings, uint64_t floats);

// Tries out the folder. Before anything is begun.
int train_saves_check(const struct train_settings *settings, struct why *why);

// Call it before a training begins at step 0. FAULT_DENIED: an earlier training of this checkpoint folder has made saves.
// The new one would overwrite the file that leads to them. Another fault: that file, or the saves, cannot be read.
int train_saves_refuse_earlier(const struct train_settings *settings, struct why *why);

// When this training began, Unix time in ms, and the step of its newest save. On a machine with
// neither checkpoints nor `saves`: of the newest training of this name. FAULT_NOT_FOUND: there is
// no save, or none is asked for.
int train_saves_newest(const struct train_settings *settings, struct why *why, uint64_t *ret_born,
                       uint64_t *ret_step);

// Loads parameters, optimizer and position. Says on stderr by which lines the recipe differs.
int train_saves_load(const struct train_settings *settings, const struct model_folder *model,
                     uint64_t born, uint64_t step, solo_t *solo, struct why *why,
                     struct train_position *ret_position);

// Takes memory for a copy of the state. `born`: when the training that is resumed began; 0: it
// begins now, in a new folder. `pass`: samples of one.
int train_saves_begin(struct train_saves *self, const struct train_settings *settings,
                      const struct model_folder *model, solo_t *solo, uint64_t born, uint64_t pass,
                      struct why *why);

// After a step: begins a save if one is due, and says what became of an earlier one. A save that
// cannot be written is said and not a fault: the training goes on.
int train_saves_look(struct train_saves *self, const struct train_settings *settings,
                     const struct train_position *before, const struct train_position *now,
                     solo_t *solo, struct why *why);

// Waits for a save that is being written. Also of a zeroed one.
void train_saves_end(struct train_saves *self);
