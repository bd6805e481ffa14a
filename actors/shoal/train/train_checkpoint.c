// Writing puts parameters, optimizer state, position and recipe into a checkpoint. Loading takes
// the newest and prints the lines of the present recipe that its recipe does not have.
#include "actors/shoal/train/train_checkpoint.h"
#include "common/base/clock.h"
#include "common/base/folder.h"
#include "common/model/model_config.h"
#include "common/wire/wire.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECIPE "recipe.txt"

enum { DIFFERENCES_TOLD = 8 };

struct train_position train_position_first(const struct train_settings *settings)
{
    return (struct train_position){ settings->first_step, settings->config.progress_data_index, 0 };
}

int train_checkpoint_newest(const struct train_settings *settings, struct why *why,
                            uint64_t *ret_step)
{
    checkpoint_t *checkpoint = NULL;
    const int rc =
        checkpoint_open_newest(settings->checkpoint_dir, settings->run, why, &checkpoint);
    if (rc < 0) return rc;
    *ret_step = checkpoint_info(checkpoint)->step;
    checkpoint_close(&checkpoint);
    return 0;
}

int train_checkpoint_begin(const struct train_settings *settings, struct why *why)
{
    uint64_t step;
    int rc = folder_make(settings->checkpoint_dir, 0755, why);
    if (rc < 0) return why_wrap(why, rc, "--checkpoint-dir");
    rc = train_checkpoint_newest(settings, why, &step);
    if (rc == FAULT_NOT_FOUND) return 0;
    if (rc < 0) return rc;
    return why_set(why, FAULT_DENIED,
                   "%s holds step %" PRIu64 " of an earlier training; --resume goes on from there, "
                   "another --checkpoint-dir or --no-checkpoint starts a new one",
                   settings->checkpoint_dir, step);
}

int train_checkpoint_write(const struct train_settings *settings,
                           const struct train_position *position, const struct model_folder *model,
                           solo_t *solo, struct why *why)
{
    static char recipe[TRAIN_RECIPE_MAX];
    const uint64_t first = settings->config.progress_data_index;
    const struct interval done = { first, position->sample };
    int rc = solo_pull(solo, why);
    if (rc < 0) return rc;
    struct checkpoint_info info = { .step = position->step,
                                    .protocol = WIRE_PROTOCOL,
                                    .created_unix_s = clock_unix_ms() / 1000,
                                    .pass_length = CHECKPOINT_NUMBER_MAX,
                                    .cursor = position->sample,
                                    .done = &done,
                                    .done_count = position->sample > first };
    snprintf(info.run, sizeof info.run, "%s", settings->run);
    train_settings_recipe(settings, recipe);
    const struct checkpoint_file file = { RECIPE, recipe, strlen(recipe) };
    struct state state;
    rc = solo_save_state(solo, why, &state);
    if (rc < 0) return rc;
    char *config = model_config_with_dtype(model->config, "float32"); // The type of its numbers
    if (!config) return why_set(why, FAULT_MEMORY, "a config.json");
    const struct checkpoint_parts parts = { .config_json = config,
                                            .tokenizer_dir = settings->model,
                                            .files = &file,
                                            .file_count = 1,
                                            .state = &state.tags,
                                            .values = state.values,
                                            .keep = (unsigned)settings->keep };
    rc = checkpoint_digest(&parts, &model->layout, solo_params(solo), why, &info.digest);
    if (rc == 0)
        rc = checkpoint_write(settings->checkpoint_dir, &info, &parts, &model->layout,
                              solo_params(solo), why);
    free(config);
    if (rc == 0 && why->text[0]) fprintf(stderr, "shoal train: %s\n", why->text);
    return rc;
}

// Prints the lines of the present recipe that the earlier one does not have, the first few of them.
static void tell_differences(const char *before, const char *now)
{
    int told = 0;
    for (const char *line = now; *line; line += strcspn(line, "\n") + 1) {
        const size_t count = strcspn(line, "\n");
        const char *same = before;
        while (*same && (strncmp(same, line, count + 1) != 0)) same += strcspn(same, "\n") + 1;
        if (*same || told++ >= DIFFERENCES_TOLD) continue;
        if (told == 1)
            fprintf(stderr, "shoal train: resumes with another recipe, so the bits are not those "
                            "of an uninterrupted training:\n");
        fprintf(stderr, "  %.*s\n", (int)count, line);
    }
    if (told > DIFFERENCES_TOLD) fprintf(stderr, "  and %d more\n", told - DIFFERENCES_TOLD);
}

int train_checkpoint_compare(const struct train_settings *settings, const char *before,
                             size_t count, struct why *why)
{
    static char recipe[TRAIN_RECIPE_MAX];
    if (strlen(before) != count || (count > 0 && before[count - 1] != '\n'))
        return why_set(why, FAULT_FORMAT, RECIPE ": no text of whole lines");
    train_settings_recipe(settings, recipe);
    tell_differences(before, recipe);
    return 0;
}

static int compare_recipes(const checkpoint_t *checkpoint, const struct train_settings *settings,
                           struct why *why)
{
    char *before;
    size_t count;
    int rc = checkpoint_load_file(checkpoint, RECIPE, why, &before, &count);
    if (rc < 0) return rc;
    rc = train_checkpoint_compare(settings, before, count, why);
    free(before);
    return rc;
}

int train_position_check(const struct train_settings *settings,
                         const struct train_position *position, struct why *why)
{
    if (position->step >= settings->first_step &&
        position->sample >= settings->config.progress_data_index)
        return 0;
    return why_set(why, FAULT_FOREIGN,
                   "it stands at step %" PRIu64 ", sample %" PRIu64
                   ", before [progress] of state.toml",
                   position->step, position->sample);
}

static int load_all(const checkpoint_t *checkpoint, const struct train_settings *settings,
                    const struct model_folder *model, solo_t *solo, struct why *why,
                    struct train_position *ret_position)
{
    const struct checkpoint_info *info = checkpoint_info(checkpoint);
    const uint64_t first = settings->config.progress_data_index;
    int rc = compare_recipes(checkpoint, settings, why);
    if (rc == 0) rc = checkpoint_load_params(checkpoint, &model->layout, solo_params(solo), why);
    if (rc == 0) rc = solo_push(solo, why);
    if (rc == 0) rc = solo_load_state(solo, checkpoint, why);
    if (rc < 0) return rc;
    *ret_position = (struct train_position){ info->step, info->cursor, info->cursor - first };
    return train_position_check(settings, ret_position, why);
}

int train_checkpoint_load(const struct train_settings *settings, const struct model_folder *model,
                          solo_t *solo, struct why *why, struct train_position *ret_position)
{
    checkpoint_t *checkpoint = NULL;
    int rc = checkpoint_open_newest(settings->checkpoint_dir, settings->run, why, &checkpoint);
    if (rc < 0) return why_wrap(why, rc, "--resume from %s", settings->checkpoint_dir);
    rc = load_all(checkpoint, settings, model, solo, why, ret_position);
    checkpoint_close(&checkpoint);
    return rc < 0 ? why_wrap(why, rc, "--resume from %s", settings->checkpoint_dir) : 0;
}
