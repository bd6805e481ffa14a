// TAKE_SHARE: a server copies its share of the state, and what it knows of pushes (async_server.h), and goes on; a
// thread writes the copy to the shared folder (learner_saver.h). The server that writes last makes the save whole.
//
//     parameters, moments    reshard      the share
//     number of steps        replicate    that of the first server
//     async-server           drop         each server its own; a run that goes on with as many servers takes it up
//
// Servers are told one after the other, and none waits for another: the shares are as far as pushes have come at
// each. What is in them is at least what the step says, and may be more: those samples are trained again.

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/learner/learner_leases.h"
#include "common/learner/state_pieces.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ITEM "async-server"

static bool are_on(const struct learner *self)
{
    const struct wire_leases_config *config = &self->lease->config;
    return self->options->trains && config->shared_dir[0] &&
           (config->save_steps > 0 || config->save_passes > 0);
}

int learner_lease_saves_check(const struct learner *self, struct why *why)
{
    return are_on(self) ? learner_saver_check(self->lease->config.shared_dir, why) : 0;
}

uint64_t learner_lease_saves_memory(const struct learner *self, struct interval share)
{
    return are_on(self) ? state_parts_bytes(self->optimizer, share) + sizeof(struct async_server)
                        : 0;
}

// ---- what became of it --------------------------------------------------------------------------

static void tell(struct learner *self, uint64_t number, uint64_t step, const struct hash *digest)
{
    struct wire_share_saved saved = { .number = number, .step = step };
    if (digest) saved.digest = *digest;
    worker_answer(self->worker, FRAME_SHARE_TAKEN, &saved);
}

static void hear_result(struct learner *self, const struct saver_result *result)
{
    const bool is_whole = result->rc == 0 && result->missing == result->workers;
    tell(self, result->attempt, result->step, is_whole ? &result->digest : NULL);
}

void learner_lease_saves_look(struct learner *self)
{
    struct saver_result result;
    if (learner_saver_result(&self->lease->saver, &result)) hear_result(self, &result);
}

bool learner_lease_saves_have_ended(const struct learner *self)
{
    return learner_saver_has_ended(&self->lease->saver);
}

static void wait_for_saver(struct learner *self)
{
    struct saver_result result;
    if (learner_saver_wait(&self->lease->saver, &result)) hear_result(self, &result);
}

void learner_lease_saves_close(struct learner *self)
{
    struct saver_result result;
    if (learner_saver_close(&self->lease->saver, &result)) hear_result(self, &result);
    learner_lease_forget_loaded(self);
}

// ---- a save -------------------------------------------------------------------------------------

// Memory for the copy is taken when a group begins, not between two pushes.
void learner_lease_saves_begin(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    const struct learner_saver_place place = { .shared_dir = work->config.shared_dir,
                                               .keep = work->config.keep,
                                               .born_unix_ms = work->said.born_unix_ms,
                                               .bytes =
                                                   learner_lease_saves_memory(self, work->part) };
    struct saver_result result;
    struct why why = { 0 };
    if (!are_on(self) || !learner_lease_serves(self) || learner_saver_fits(&work->saver, &place) ||
        learner_saver_is_writing(&work->saver))
        return;
    if (learner_saver_close(&work->saver, &result)) hear_result(self, &result);
    learner_saver_open(self, &work->saver, &place, &why);
}

static int check(const struct learner *self, const struct wire_take_share *said, struct why *why)
{
    const struct learner_lease_work *work = self->lease;
    // When it has been put together it is held, and our share is here still
    const bool has_share = work->said.number && !work->lost && (!work->broken || self->holding);
    if (said->number == work->said.number && learner_lease_serves(self) && has_share) return 0;
    return why_set(why, FAULT_NOT_FOUND, "no share of the state of group %" PRIu64 " is here",
                   said->number);
}

static int take(struct learner *self, const struct wire_take_share *said, struct why *why)
{
    struct learner_lease_work *work = self->lease;
    int rc = check(self, said, why);
    if (rc < 0) return rc;
    const uint32_t worker = work->said.place - learner_lease_trainers(self);
    const struct pieces_save save = { .step = said->step,
                                      .attempt = (uint32_t)said->number,
                                      .spare = said->spare,
                                      .worker = worker,
                                      .workers = work->said.servers };
    const struct pieces_part known = { ITEM, TAG_DROP, sizeof *work->server, 1, work->server };
    // Nobody pushes any more once the group has been put together: that save waits for the one before
    if (!work->formed) wait_for_saver(self);
    learner_lease_saves_begin(self); // A save that was being written may have kept it from that
    return learner_saver_take(self, &work->saver, &save, work->part, &known, why);
}

void learner_lease_save(struct learner *self, const struct wire_take_share *said)
{
    struct why why = { 0 };
    const uint64_t from_us = clock_us();
    learner_lease_saves_look(self);
    if (take(self, said, &why) < 0) {
        log_line(LOG_ERR, "save.failed step=%" PRIu64 " reason=\"%s\"; training goes on",
                 said->step, why.text);
        tell(self, said->number, said->step, NULL);
        return;
    }
    log_line(LOG_INFO, "save.copied step=%" PRIu64 " waited_us=%" PRIu64, said->step,
             clock_us() - from_us);
}

// ---- back from a save ---------------------------------------------------------------------------

void learner_lease_forget_loaded(struct learner *self)
{
    free(self->lease->loaded);
    self->lease->loaded = NULL;
    self->lease->loaded_count = 0;
}

int learner_lease_loaded(struct learner *self, const pieces_t *pieces, struct why *why)
{
    struct learner_lease_work *work = self->lease;
    learner_lease_forget_loaded(self);
    if (!pieces) return 0;
    const struct pieces_item *item = pieces_find(pieces, ITEM);
    const uint32_t workers = pieces_meta(pieces)->workers;
    if (!item || workers != work->config.servers) return 0;
    if (item->tag != TAG_DROP || item->element_bytes != sizeof *work->loaded ||
        item->begins[workers] != workers)
        return why_set(why, FAULT_FOREIGN, "item '" ITEM "' of the save is none of this version");
    work->loaded = calloc(workers, sizeof *work->loaded);
    if (!work->loaded) return why_set(why, FAULT_MEMORY, "what %u servers knew", workers);
    work->loaded_count = workers;
    const int rc = pieces_read(pieces, item, (struct interval){ 0, workers }, work->loaded, why);
    for (uint32_t i = 0; rc == 0 && i < workers; i++)
        if (!async_server_is_sound(&work->loaded[i]))
            return why_set(why, FAULT_FOREIGN, "what server %u knew of pushes cannot be", i);
    return rc;
}
