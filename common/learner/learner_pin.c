// PIN: puts the held state into the blob store, for peers. Pins in memory are copied at once. Where pins lie in files
// (a trainer's, with DisTrO and a state directory on a disk), a thread writes the pin while the next TRAIN computes.
// It reads the parameters in place, so every job that changes them waits for it first (learner_pin_wait). Until the
// pin is written, peers that ask for it are told that it is not here, and ask again.
//
// Where the moments are away (learner_away.c), their copy becomes the pin: the parameters alone are written to it. A view
// of a save has them already, and a server's copy, too.

#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/learner/learner_away.h"
#include "common/learner/state.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

struct learner_pinning {
    blob_store_t *store;
    struct blob_snapshot held;
    const void *items[STATE_ITEMS_MAX];
    const struct hash *leaves;
    bool is_away; // The items lie in `copy` already: all of them, or all but the parameters
    bool has_parameters;
    struct state_copy copy;
    struct why why;
    int rc;
    pthread_t thread;
};

static void *write_pin(void *arg)
{
    struct learner_pinning *self = arg;
    if (!self->is_away) {
        self->rc = blob_store_pin(self->store, &self->held, self->items, self->leaves, &self->why);
        return NULL;
    }
    if (!self->has_parameters)
        self->rc =
            state_copy_put(&self->copy, 0, self->items[0], self->held.cut.bytes[0], &self->why);
    if (self->rc == 0)
        self->rc =
            blob_store_pin_copy(self->store, &self->held, &self->copy, self->leaves, &self->why);
    return NULL;
}

// Collects all that the thread needs of the learner.
static int gather(struct learner *self, struct learner_pinning *pinning, struct why *why)
{
    struct state state;
    uint32_t count = 1;
    *pinning = (struct learner_pinning){ .store = self->options->store,
                                         .held = { self->step, self->digest, self->cut },
                                         .items = { self->params },
                                         .leaves = self->leaves,
                                         .copy = no_state_copy,
                                         .is_away = self->away };
    int rc = compute_pull(self->compute, why);
    if (rc < 0) return rc;
    if (self->away) { // The copy is the pin's from now on
        ensure(self->has_moments);
        pinning->copy = self->moments;
        pinning->has_parameters = self->moments.view || learner_away_takes_parameters(self);
        self->has_moments = false;
        return 0;
    }
    rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &state);
    if (rc < 0) return rc;
    for (size_t i = 0; i < state.tags.count; i++)
        if (state.values[i]) pinning->items[count++] = state.values[i];
    ensure(count == self->cut.count);
    return 0;
}

// A copy that could not be pinned has the moments all the same.
static void take_back(struct learner *self, struct learner_pinning *pinning)
{
    if (pinning->rc == 0 || !pinning->is_away) return;
    if (self->away && !self->has_moments && self->step == pinning->held.step)
        self->moments = pinning->copy, self->has_moments = true;
    else state_copy_free(&pinning->copy);
}

int learner_pin(struct learner *self, struct why *why)
{
    struct learner_pinning now, *later = NULL;
    learner_pin_wait(self);
    const struct blob_snapshot held = { self->step, self->digest, self->cut };
    if (self->away && !self->has_moments) {
        if (blob_store_pin_again(self->options->store, &held)) return 0;
        return why_set(why, FAULT_NOT_FOUND, "the state of step %" PRIu64 " is not here",
                       self->step);
    }
    int rc = gather(self, &now, why);
    if (rc < 0) return rc;
    past_pinned(&self->past, self->step, &self->digest);
    failpoint("learner_pin");
    if (self->pins_in_files && (later = malloc(sizeof *later))) {
        *later = now;
        if (pthread_create(&later->thread, NULL, write_pin, later) == 0) {
            self->pinning = later;
            return 0;
        }
        free(later);
    }
    write_pin(&now);
    take_back(self, &now);
    return now.rc < 0 ? why_set(why, now.rc, "%s", now.why.text) : 0;
}

static void say_fault(uint64_t step, const char *text)
{
    log_line(LOG_WARNING,
             "learner.not_pinned step=%" PRIu64
             " reason=\"%s\"; nobody can fetch this step here, and the next one is pinned again",
             step, text);
}

void learner_pin_wait(struct learner *self)
{
    struct learner_pinning *pinning = self->pinning;
    if (!pinning) return;
    ensure(pthread_join(pinning->thread, NULL) == 0);
    if (pinning->rc < 0) say_fault(pinning->held.step, pinning->why.text);
    take_back(self, pinning);
    self->pinning = NULL;
    free(pinning);
}

void learner_offer(struct learner *self)
{
    struct why why = { 0 };
    if (learner_pin(self, &why) < 0) say_fault(self->step, why.text);
}
