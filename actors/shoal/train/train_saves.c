// train_saves -- asks the settings whether a save is due, gathers its parts, and says on stderr
// what the saver answers.

#include "actors/shoal/train/train_saves.h"
#include "common/base/clock.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/folder.h"
#include "common/checkpoint/shared_dir.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POSITION "position"
#define RECIPE   "recipe"

#define BORN_FILE "saves"

enum { POSITION_NUMBERS = 3, BORN_BYTES_MAX = 24 };

static bool are_on(const struct train_settings *settings)
{
    return settings->config.checkpoint_shared_dir[0] && settings->checkpoint_dir;
}

// Parameters and at most two moments: no optimizer keeps more.
uint64_t train_saves_memory(const struct train_settings *settings, uint64_t floats)
{
    return are_on(settings) ? 3 * sizeof(float) * floats + TRAIN_RECIPE_MAX : 0;
}

int train_saves_check(const struct train_settings *settings, struct why *why)
{
    if (!are_on(settings)) return 0;
    const int rc = shared_dir_check(settings->config.checkpoint_shared_dir, why);
    return rc < 0 ? why_wrap(why, rc, "checkpoint.shared_dir") : 0;
}

// ---- resuming -----------------------------------------------------------------------------------

// When the training of this folder began. FAULT_NOT_FOUND: the folder does not say.
static int read_born(const struct train_settings *settings, struct why *why, uint64_t *ret_born)
{
    char *text = NULL, *end;
    size_t count;
    const int dir = open(settings->checkpoint_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return why_set(why, FAULT_NOT_FOUND, "no folder of checkpoints");
    int rc = dirfile_slurp(dir, BORN_FILE, false, BORN_BYTES_MAX, why, &text, &count);
    close(dir);
    if (rc < 0) return rc;
    *ret_born = strtoull(text, &end, 10);
    if (count == 0 || strspn(text, "0123456789") != count - 1 || *end != '\n' || *ret_born == 0)
        rc = why_set(why, FAULT_FORMAT, "%s/" BORN_FILE ": not the time of a beginning in ms",
                     settings->checkpoint_dir);
    free(text);
    return rc;
}

static int write_born(const struct train_settings *settings, uint64_t born, struct why *why)
{
    char text[BORN_BYTES_MAX];
    const int count = snprintf(text, sizeof text, "%" PRIu64 "\n", born);
    return durable_file_write(settings->checkpoint_dir, BORN_FILE, text, (size_t)count, why);
}

static int root_of(const struct train_settings *settings, uint64_t born, struct why *why,
                   char ret_root[PATH_MAX])
{
    return shared_dir_root(settings->config.checkpoint_shared_dir, settings->run, born, why,
                           ret_root);
}

int train_saves_newest(const struct train_settings *settings, struct why *why, uint64_t *ret_born,
                       uint64_t *ret_step)
{
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    char root[PATH_MAX];
    uint64_t step;
    size_t count = 0;
    if (!are_on(settings)) return why_set(why, FAULT_NOT_FOUND, "no checkpoint.shared_dir");
    int rc = read_born(settings, why, ret_born);
    if (rc == FAULT_NOT_FOUND) {
        rc = train_checkpoint_newest(settings, why, &step);
        if (rc == FAULT_NOT_FOUND)
            return shared_dir_newest(settings->config.checkpoint_shared_dir, settings->run, why,
                                     ret_born, ret_step);
        return rc < 0 ? rc : why_set(why, FAULT_NOT_FOUND, "this training has saved nothing");
    }
    if (rc == 0) rc = root_of(settings, *ret_born, why, root);
    if (rc < 0) return rc;
    rc = pieces_list(root, why, steps, &count);
    // Its checkpoints may be far behind its saves: to go on from them is for the user to say
    if (rc < 0)
        return why_wrap(why, rc == FAULT_NOT_FOUND ? FAULT_IO : rc,
                        "the saves of this training cannot be read. Remove the file %s/" BORN_FILE
                        " to begin anew, or to go on from its checkpoints with --resume",
                        settings->checkpoint_dir);
    if (count == 0) return why_set(why, FAULT_NOT_FOUND, "%s has no whole save", root);
    *ret_step = steps[0];
    return 0;
}

int train_saves_refuse_earlier(const struct train_settings *settings, struct why *why)
{
    uint64_t born, step;
    if (!are_on(settings)) return 0;
    int rc = read_born(settings, why, &born);
    if (rc == 0) rc = train_saves_newest(settings, why, &born, &step);
    if (rc == FAULT_NOT_FOUND) return 0; // It was killed before its first save
    if (rc < 0) return rc;
    return why_set(why, FAULT_DENIED,
                   "%s leads to the save of step %" PRIu64 " of an earlier training; --resume goes "
                   "on from there, another --checkpoint-dir or --no-checkpoint starts a new one",
                   settings->checkpoint_dir, step);
}

static int load_position(const pieces_t *pieces, struct why *why,
                         struct train_position *ret_position)
{
    uint64_t numbers[POSITION_NUMBERS];
    const struct pieces_item *item = pieces_find(pieces, POSITION);
    if (!item || item->tag != TAG_REPLICATE || item->element_bytes != sizeof *numbers ||
        item->begins[pieces_meta(pieces)->workers] != POSITION_NUMBERS)
        return why_set(why, FAULT_FOREIGN, "it has no item '" POSITION "' of a training");
    const struct interval all = { 0, POSITION_NUMBERS };
    const int rc = pieces_read(pieces, item, all, numbers, why);
    *ret_position = (struct train_position){ numbers[0], numbers[1], numbers[2] };
    return rc;
}

static int compare_recipe(const pieces_t *pieces, const struct train_settings *settings,
                          struct why *why)
{
    const struct pieces_item *item = pieces_find(pieces, RECIPE);
    const uint64_t count = item ? item->begins[pieces_meta(pieces)->workers] : 0;
    if (!item || item->tag != TAG_REPLICATE || item->element_bytes != 1 || count > TRAIN_RECIPE_MAX)
        return why_set(why, FAULT_FOREIGN, "it has no item '" RECIPE "' of a training");
    char *text = malloc(count + 1);
    if (!text) return why_set(why, FAULT_MEMORY, "the recipe");
    int rc = pieces_read(pieces, item, (struct interval){ 0, count }, text, why);
    text[count] = 0;
    if (rc == 0) rc = train_checkpoint_compare(settings, text, count, why);
    free(text);
    return rc;
}

static int load_all(const pieces_t *pieces, const struct train_settings *settings,
                    const struct model_folder *model, solo_t *solo, struct why *why,
                    struct train_position *ret_position)
{
    bool is_fresh = false;
    int rc = compare_recipe(pieces, settings, why);
    if (rc == 0) rc = load_position(pieces, why, ret_position);
    if (rc == 0) rc = train_position_check(settings, ret_position, why);
    if (rc == 0) rc = solo_load_pieces(solo, pieces, &model->layout, why, &is_fresh);
    if (rc == 0 && is_fresh)
        fprintf(stderr, "shoal train: saved by more than one worker, each with a part of the "
                        "optimizer's state that was its own: that part begins with zeros\n");
    return rc;
}

int train_saves_load(const struct train_settings *settings, const struct model_folder *model,
                     uint64_t born, uint64_t step, solo_t *solo, struct why *why,
                     struct train_position *ret_position)
{
    pieces_t *pieces = NULL;
    char root[PATH_MAX];
    int rc = root_of(settings, born, why, root);
    if (rc < 0) return rc;
    rc = pieces_open(root, step, settings->run, why, &pieces);
    if (rc == 0) rc = load_all(pieces, settings, model, solo, why, ret_position);
    pieces_close(&pieces);
    if (rc == 0) fprintf(stderr, "shoal train: resumes from %s/step-%08" PRIu64 "\n", root, step);
    return rc < 0 ? why_wrap(why, rc, "--resume from %s/step-%08" PRIu64, root, step) : 0;
}

// ---- saving -------------------------------------------------------------------------------------

int train_saves_begin(struct train_saves *self, const struct train_settings *settings,
                      const struct model_folder *model, solo_t *solo, uint64_t born, uint64_t pass,
                      struct why *why)
{
    int rc = 0;
    if (!are_on(settings)) return 0;
    if (born) {
        rc = root_of(settings, born, why, self->root);
        // What a training that was killed has left: it alone wrote here
        const struct pieces_save all = { .root = self->root,
                                         .run = settings->run,
                                         .born_unix_ms = born,
                                         .step = CHECKPOINT_STEP_MAX,
                                         .attempt = 1,
                                         .spare = UINT64_MAX };
        if (rc == 0) rc = pieces_clean(&all, (unsigned)settings->keep, why);
    } else {
        born = clock_unix_ms();
        rc = shared_dir_begin(settings->config.checkpoint_shared_dir, settings->run, born, why,
                              self->root);
    }
    if (rc == 0) rc = folder_make(settings->checkpoint_dir, 0755, why);
    if (rc == 0) rc = write_born(settings, born, why);
    if (rc < 0) return rc;
    self->pass = pass;
    const struct saver_options options = {
        .root = self->root,
        .run = settings->run,
        .born_unix_ms = born,
        .layout = &model->layout,
        .bytes = solo_parts_bytes(solo) + POSITION_NUMBERS * sizeof(uint64_t) + TRAIN_RECIPE_MAX,
        .keep = (unsigned)settings->keep
    };
    return saver_new(&options, why, &self->saver);
}

static void say(const struct train_saves *self, const struct saver_result *result)
{
    if (result->rc < 0)
        fprintf(stderr, "shoal train: step %" PRIu64 " could not be saved, training goes on: %s\n",
                result->step, result->why.text);
    else
        fprintf(stderr,
                "shoal train: saved %s/step-%08" PRIu64 ", %.1f MiB; training waited %.1f ms, the "
                "disk took %.1f s%s%s\n",
                self->root, result->step, (double)result->bytes / (1 << 20),
                (double)self->waited_us / 1e3, (double)result->write_us / 1e6,
                result->why.text[0] ? "; old saves stay: " : "", result->why.text);
}

static bool is_due(const struct train_saves *self, const struct train_settings *settings,
                   const struct train_position *before, const struct train_position *now)
{
    const uint64_t steps = settings->config.checkpoint_steps;
    const uint64_t samples = settings->config.checkpoint_passes * self->pass;
    if (steps) return now->step % steps == 0;
    return samples && now->sample / samples > before->sample / samples;
}

static int take(struct train_saves *self, const struct train_settings *settings,
                const struct train_position *now, solo_t *solo, struct why *why)
{
    static char recipe[TRAIN_RECIPE_MAX];
    struct pieces_part parts[STATE_PARTS_MAX + 2];
    size_t count;
    const uint64_t from_us = clock_us();
    const uint64_t numbers[POSITION_NUMBERS] = { now->step, now->sample, now->samples };
    const struct pieces_save save = {
        .step = now->step, .attempt = 1, .spare = UINT64_MAX, .workers = 1
    };
    int rc = solo_parts(solo, why, parts, &count);
    if (rc < 0) return rc;
    train_settings_recipe(settings, recipe);
    parts[count++] =
        (struct pieces_part){ POSITION, TAG_REPLICATE, sizeof *numbers, POSITION_NUMBERS, numbers };
    parts[count++] = (struct pieces_part){ RECIPE, TAG_REPLICATE, 1, strlen(recipe), recipe };
    rc = saver_take(self->saver, &save, parts, count, why);
    self->waited_us = clock_us() - from_us;
    return rc;
}

int train_saves_look(struct train_saves *self, const struct train_settings *settings,
                     const struct train_position *before, const struct train_position *now,
                     solo_t *solo, struct why *why)
{
    struct saver_result result;
    if (!self->saver) return 0;
    bool is_free = !saver_is_writing(self->saver); // Or ends before the next line
    if (saver_result(self->saver, &result)) {
        say(self, &result);
        is_free = true;
    }
    if (!is_due(self, settings, before, now)) return 0;
    // Behind the last step there is nothing that an earlier save holds up
    if (!is_free && now->step >= settings->total_steps && saver_wait(self->saver, &result)) {
        say(self, &result);
        is_free = true;
    }
    if (is_free) return take(self, settings, now, solo, why);
    fprintf(stderr, "shoal train: step %" PRIu64 " is not saved: an earlier one is being written\n",
            now->step);
    return 0;
}

void train_saves_end(struct train_saves *self)
{
    struct saver_result result;
    if (!self->saver) return;
    if (saver_is_writing(self->saver))
        fprintf(stderr, "shoal train: waiting for the save that is being written\n");
    if (saver_wait(self->saver, &result)) say(self, &result);
    saver_destroy(&self->saver);
}
