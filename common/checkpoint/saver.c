// saver -- a copy, a thread, and one state that both look at under a lock.
//
//     IDLE ─saver_take▶ TAKEN ─thread▶ ENDED ─saver_result▶ IDLE
//
// The copy is written by the caller in IDLE and read by the thread in TAKEN: no lock is held for
// either.

#include "common/checkpoint/saver.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/checkpoint/pieces_names.h"
#include <inttypes.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum saver_state { IDLE, TAKEN, ENDED };

struct saver {
    char root[PATH_MAX], run[CHECKPOINT_RUN_MAX + 1];
    uint64_t room;
    unsigned keep;

    // The save in hand
    struct pieces_save save;
    struct pieces_part parts[PIECES_ITEMS_MAX];
    char names[PIECES_ITEMS_MAX][TAGS_NAME_MAX + 2]; // Too long a name is still too long
    size_t count;
    uint8_t *copy;
    struct pieces_save before; // The newest of which our part was not the last; step 0: none
    struct saver_result result;
    bool makes_root;
    int (*digest)(const struct pieces_save *save, struct why *why, struct hash *ret_digest);
    void (*ended)(void *arg);
    void *arg;

    pthread_t thread;
    pthread_mutex_t lock; // Of what follows
    pthread_cond_t changed;
    enum saver_state state;
    bool ends;
};

// ---- in the thread ------------------------------------------------------------------------------

// Not the folder above it: that may be where a file system is mounted, and is not at the moment.
static int make_root(const char *root, struct why *why)
{
    if (mkdir(root, 0755) == 0 || errno == EEXIST) return 0;
    const int error = errno;
    return why_set(why, fault_from_errno(error), "making %s failed: %s", root, strerror(error));
}

// Before its parts are removed. If another worker has removed them by now, nobody can tell whose was missing.
static void look_back(struct saver *self, struct saver_result *result)
{
    const struct pieces_save *before = &self->before;
    char folder[PATH_MAX + PIECES_NAME], name[PIECES_NAME];
    uint32_t missing;
    if (!before->step || pieces_seal(before, NULL, &missing) < 0 || missing == before->workers)
        return;
    snprintf(folder, sizeof folder, "%s/%s", before->root,
             pieces_attempt_name(before->step, before->attempt, name));
    // mutant: saver: a worker whose part was removed is said to be missing
    if (access(folder, F_OK) != 0) return;
    result->unfinished = before->step;
    result->unfinished_missing = missing;
}

static int write_save(struct saver *self, struct saver_result *result)
{
    const struct pieces_save *save = &self->save;
    look_back(self, result);
    self->before.step = 0;
    // What failed before, so that a disk that it has filled has room again: nobody writes an earlier attempt now
    // mutant: saver: what failed before stays
    (void)pieces_clean_attempts(save, NULL);
    int rc = self->makes_root ? make_root(save->root, &result->why) : 0;
    if (rc == 0) rc = pieces_write(save, self->parts, self->count, &result->why);
    if (rc == 0) rc = pieces_seal(save, &result->why, &result->missing);
    // A full disk has room for the next save only if nothing of this one stays. Others may still be
    // writing their parts of it
    struct pieces_save next = *save;
    next.attempt++;
    // mutant: saver: half a save stays on a full disk
    if (rc < 0 && save->workers == 1) (void)pieces_clean(&next, self->keep, NULL);
    if (rc < 0) return rc;
    // mutant: saver: a part that is not there yet is said to be what cannot be cleaned
    result->why = (struct why){ 0 }; // Sealing has left there which note is missing
    if (result->missing < save->workers) self->before = *save;
    // mutant: saver: old saves stay
    if (result->missing == save->workers) (void)pieces_clean(save, self->keep, &result->why);
    if (result->missing == save->workers && self->digest &&
        self->digest(save, &result->digest_why, &result->digest) < 0)
        result->digest = (struct hash){ { 0 } };
    return 0;
}

static void *work(void *arg)
{
    struct saver *self = arg;
    ensure(pthread_mutex_lock(&self->lock) == 0);
    for (;;) {
        while (self->state != TAKEN && !self->ends)
            ensure(pthread_cond_wait(&self->changed, &self->lock) == 0);
        if (self->state != TAKEN) break;
        ensure(pthread_mutex_unlock(&self->lock) == 0);
        const uint64_t from_us = clock_us();
        self->result.rc = write_save(self, &self->result);
        self->result.write_us = clock_us() - from_us;
        ensure(pthread_mutex_lock(&self->lock) == 0);
        self->state = ENDED;
        ensure(pthread_cond_broadcast(&self->changed) == 0);
        ensure(pthread_mutex_unlock(&self->lock) == 0);
        if (self->ended) self->ended(self->arg);
        ensure(pthread_mutex_lock(&self->lock) == 0);
    }
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return NULL;
}

// ---- of the caller ------------------------------------------------------------------------------

int saver_new(const struct saver_options *options, struct why *why, saver_t **ret_saver)
{
    if (options->keep == 0)
        return why_set(why, FAULT_RANGE, "a saver keeps at least 1 save, not 0");
    if (strlen(options->root) >= PATH_MAX || strlen(options->run) > CHECKPOINT_RUN_MAX)
        return why_set(why, FAULT_RANGE, "a folder of %zu bytes or a run's id of %zu: too long",
                       strlen(options->root), strlen(options->run));
    struct saver *self = calloc(1, sizeof *self);
    uint8_t *copy = malloc(options->bytes ? options->bytes : 1);
    if (!self || !copy) {
        free(self);
        free(copy);
        return why_set(why, FAULT_MEMORY, "%" PRIu64 " bytes for a copy of the state",
                       options->bytes);
    }
    memset(copy, 0, options->bytes); // Touches the pages
    self->copy = copy;
    self->room = options->bytes;
    self->keep = options->keep;
    self->makes_root = options->makes_root;
    self->digest = options->digest;
    self->ended = options->ended;
    self->arg = options->arg;
    snprintf(self->root, sizeof self->root, "%s", options->root);
    snprintf(self->run, sizeof self->run, "%s", options->run);
    self->save = (struct pieces_save){ .root = self->root,
                                       .run = self->run,
                                       .born_unix_ms = options->born_unix_ms,
                                       .layout = options->layout };
    ensure(pthread_mutex_init(&self->lock, NULL) == 0);
    ensure(pthread_cond_init(&self->changed, NULL) == 0);
    ensure(pthread_create(&self->thread, NULL, work, self) == 0);
    *ret_saver = self;
    return 0;
}

void saver_destroy(saver_t **self_p)
{
    struct saver *self = *self_p;
    if (!self) return;
    ensure(pthread_mutex_lock(&self->lock) == 0);
    self->ends = true;
    ensure(pthread_cond_broadcast(&self->changed) == 0);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    ensure(pthread_join(self->thread, NULL) == 0);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self->copy);
    free(self);
    *self_p = NULL;
}

static enum saver_state state_of(struct saver *self)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    const enum saver_state state = self->state;
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return state;
}

static void set_state(struct saver *self, enum saver_state state)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    self->state = state;
    ensure(pthread_cond_broadcast(&self->changed) == 0);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
}

// Their bytes; UINT64_MAX: more than there is room for.
static uint64_t sum_up(const struct saver *self, const struct pieces_part *parts, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes;
        if (__builtin_mul_overflow(parts[i].elements, parts[i].element_bytes, &bytes) ||
            bytes > self->room - sum)
            return UINT64_MAX;
        sum += bytes;
    }
    return sum;
}

// Returns the bytes copied.
static uint64_t copy_parts(struct saver *self, const struct pieces_part *parts, size_t count)
{
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = parts[i].elements * parts[i].element_bytes;
        if (bytes && parts[i].bytes) memcpy(self->copy + used, parts[i].bytes, bytes);
        snprintf(self->names[i], sizeof self->names[i], "%s", parts[i].name);
        self->parts[i] = parts[i];
        self->parts[i].name = self->names[i];
        // mutant: saver: the memory of the work is saved
        self->parts[i].bytes = parts[i].bytes ? self->copy + used : NULL;
        used += bytes;
    }
    self->count = count;
    return used;
}

int saver_take(saver_t *self, const struct pieces_save *save, const struct pieces_part *parts,
               size_t count, struct why *why)
{
    // mutant: saver: a second save goes over the first
    if (state_of(self) != IDLE)
        return why_set(why, FAULT_BUSY, "step %" PRIu64 " is still being saved", self->save.step);
    if (count > PIECES_ITEMS_MAX || sum_up(self, parts, count) == UINT64_MAX)
        return why_set(why, FAULT_RANGE,
                       "%zu items of a state to save: at most %d of %" PRIu64 " bytes together",
                       count, PIECES_ITEMS_MAX, self->room);
    self->save.step = save->step;
    self->save.attempt = save->attempt;
    self->save.spare = save->spare;
    self->save.worker = save->worker;
    self->save.workers = save->workers;
    self->result = (struct saver_result){ .step = save->step,
                                          .attempt = save->attempt,
                                          .bytes = copy_parts(self, parts, count),
                                          .workers = save->workers };
    set_state(self, TAKEN);
    return 0;
}

bool saver_is_writing(saver_t *self) { return state_of(self) == TAKEN; }
bool saver_has_ended(saver_t *self) { return state_of(self) == ENDED; }

bool saver_result(saver_t *self, struct saver_result *ret_result)
{
    if (state_of(self) != ENDED) return false;
    *ret_result = self->result;
    set_state(self, IDLE);
    return true;
}

bool saver_wait(saver_t *self, struct saver_result *ret_result)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    while (self->state == TAKEN) ensure(pthread_cond_wait(&self->changed, &self->lock) == 0);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return saver_result(self, ret_result);
}
