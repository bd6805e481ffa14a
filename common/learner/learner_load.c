// LOAD: how a replica gets the state of a step. The state is the
// parameters and the items of the optimizer that members hold alike (common/vector/state_cut.h): from
// the stage and from a checkpoint come all of them; so do they if the run begins with the state of an earlier one
// (first_state.h). Else the run's first model has parameters alone, and the rest is zero. With DisTrO the parameters
// are all there is.
//
// Until all of a LOAD has worked, the replica holds no step. What was loaded must have the digest that
// its source names: the stage was checked by the fetcher, a checkpoint by its manifest and here, a save
// in pieces by its hashes and here, the first model by the digest of parameters that the run's configuration pins.

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/hf_folder.h"
#include "common/checkpoint/shared_dir.h"
#include "common/learner/first_state.h"
#include "common/learner/learner_away.h"
#include "common/learner/state.h"
#include "common/learner/state_pieces.h"
#include "common/run/older.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// ---- what is held -------------------------------------------------------------------------------

int learner_take_digest(struct learner *self, struct why *why)
{
    if (self->share_only)
        return why_set(why, FAULT_NOT_FOUND,
                       "only our share of the optimizer's state of step %" PRIu64 " is here",
                       self->step);
    int rc = 0;
    // The leaves of what is away are known
    if (!self->away || !learner_away_takes_parameters(self))
        rc = compute_leaves(self->compute, COMPUTE_PARAMETERS, why, self->leaves);
    if (rc == 0 && !self->away)
        rc = optimizer_leaves(self->optimizer, why,
                              self->leaves + state_item_leaves(self->cut.bytes[0]));
    if (rc == 0) self->digest = state_cut_root(&self->cut, self->leaves);
    return rc;
}

// ---- LOAD ---------------------------------------------------------------------------------------

static int take_checkpoint(struct learner *self, const checkpoint_t *checkpoint, struct why *why)
{
    const int rc = checkpoint_load_params(checkpoint, &self->layout, self->params, why);
    return rc < 0 ? rc : state_load(self->optimizer, OPTIMIZER_SHARED, checkpoint, why);
}

static int load_checkpoint(struct learner *self, const struct wire_load *load, struct why *why,
                           struct wire_loaded *ret, struct hash *ret_digest)
{
    checkpoint_t *checkpoint;
    int rc = checkpoint_open(load->path, load->step, self->options->run_id, why, &checkpoint);
    if (rc < 0) return rc;
    rc = take_checkpoint(self, checkpoint, why);
    *ret_digest = checkpoint_info(checkpoint)->digest;
    const uint64_t epoch = checkpoint_info(checkpoint)->epoch;
    ret->born_unix_ms = checkpoint_info(checkpoint)->born_unix_ms;
    if (epoch <= UINT32_MAX) ret->epoch = epoch;
    else if (rc == 0)
        rc = why_set(why, FAULT_RANGE, "%s: epoch %" PRIu64 ", allowed 0..%u; not loaded",
                     load->path, epoch, UINT32_MAX);
    checkpoint_close(&checkpoint);
    return rc;
}

static uint64_t state_bytes(const struct state_cut *cut)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < cut->count; i++) bytes += cut->bytes[i];
    return bytes;
}

// All floats of an item, read from the copy that is the learner's already.
static int give_from_copy(const struct learner_away_item *to, void *arg, struct why *why)
{
    enum { LEAVES = 64, FLOATS = LEAVES * STATE_LEAF_BYTES / sizeof(float) };
    struct learner *self = to->learner;
    const uint64_t place = state_cut_place(&self->cut, to->number);
    const uint64_t floats = self->cut.bytes[to->number] / sizeof(float);
    float *room = malloc(FLOATS * sizeof *room);
    int rc = room ? 0 : why_set(why, FAULT_MEMORY, "%d floats of the state", FLOATS);
    (void)arg;
    for (uint64_t i = 0; i < floats && rc == 0; i += FLOATS) {
        const struct interval at = { i, floats - i < FLOATS ? floats : i + FLOATS };
        rc = state_copy_get(&self->moments, place + i * sizeof *room, room,
                            interval_length(at) * sizeof *room, why);
        if (rc == 0) rc = learner_away_put(to, at, room, why);
    }
    free(room);
    return rc;
}

static int fill_from_save(const struct learner_away_item *to, void *values, void *arg,
                          struct why *why)
{
    return state_read_item(arg, to->item, values, why);
}

static int check_in_save(const struct state_item *item, void *arg, struct why *why,
                         struct hash *ret_leaves)
{
    return state_check_pieces(arg, item, why, ret_leaves);
}

// Takes *pieces_p if the moments stay in the save: a member of a group reads its share there.
static int read_items(struct learner *self, pieces_t **pieces_p, struct why *why)
{
    bool is_fresh;
    struct state_copy view;
    pieces_t *pieces = *pieces_p;
    if (!learner_away_is_on(self))
        return state_read_pieces(self->optimizer, OPTIMIZER_SHARED, pieces, why, &is_fresh);
    const int rc = state_view_pieces(pieces_p, self->optimizer, &self->cut, why, &view);
    if (rc < 0) return rc;
    const struct learner_away_source source = { .give = give_from_copy,
                                                .fill = fill_from_save,
                                                .check = check_in_save,
                                                .arg = pieces,
                                                .copy = &view };
    return learner_away_take(self, &source, why);
}

// All of it, from the pieces of the members that saved it in this folder. Takes *pieces_p as read_items.
static int take_pieces(struct learner *self, pieces_t **pieces_p, const char *folder,
                       struct why *why)
{
    const uint32_t workers = pieces_meta(*pieces_p)->workers;
    const uint64_t step = pieces_about(*pieces_p)->step;
    const struct interval all = { 0, self->floats };
    int rc = learner_away_takes_parameters(self)
                 ? state_check_params(*pieces_p, &self->layout, why)
                 : state_read_params(*pieces_p, &self->layout, all, self->params, why);
    if (rc == 0) rc = read_items(self, pieces_p, why);
    if (rc == 0)
        log_line(LOG_INFO, "state.recut step=%" PRIu64 " from=%u bytes=%" PRIu64 " folder=%s", step,
                 workers, state_bytes(&self->cut), folder);
    return rc;
}

// The save of a step of this run. One that is whole, and of another state than the run has on record, was put there, or
// went on record by a false word: it is as good as damaged.
static int load_saved(struct learner *self, const struct wire_load *load, struct why *why,
                      struct hash *ret_digest)
{
    char root[PATH_MAX], folder[PATH_MAX + 32], has[HASH_HEX], wanted[HASH_HEX];
    pieces_t *pieces = NULL;
    int rc = shared_dir_root(load->path, self->options->run_id, load->born_unix_ms, why, root);
    if (rc == 0) rc = pieces_open(root, load->step, self->options->run_id, why, &pieces);
    if (rc < 0) return rc;
    snprintf(folder, sizeof folder, "%s/step-%08" PRIu64, root, load->step);
    rc = state_pieces_digest(pieces, &self->layout, why, ret_digest);
    // mutant: saves: a whole save of another state is loaded
    if (rc == 0 && !hash_is_none(&load->digest) && !hash_equal(ret_digest, &load->digest))
        rc = why_set(why, FAULT_DIGEST,
                     "%s: it is whole, and its digest %.16s is not the one on record, %.16s",
                     folder, hash_to_hex(ret_digest, has), hash_to_hex(&load->digest, wanted));
    if (rc == 0 && self->strategy->loaded) rc = self->strategy->loaded(self, pieces, why);
    if (rc == 0) rc = take_pieces(self, &pieces, folder, why);
    pieces_close(&pieces);
    return rc;
}

// What an earlier run has left. Each leaf is compared with the folder's own hashes as it is read. No record of this run
// names a digest of it.
static int load_first_state(struct learner *self, struct why *why)
{
    struct first_state state = { 0 };
    int rc = first_state_open(self->config.first_state, why, &state);
    if (rc < 0) return rc;
    if (state.pieces) rc = take_pieces(self, &state.pieces, self->config.first_state, why);
    else rc = take_checkpoint(self, state.checkpoint, why);
    first_state_close(&state);
    return rc;
}

// The run's first state.
static int load_genesis(struct learner *self, const struct wire_load *load, struct why *why)
{
    // mutant: a run that goes on from another one's state begins with its parameters alone
    if (self->config.first_state[0]) return load_first_state(self, why);
    return hf_folder_load(load->path, &self->layout, self->params, why);
}

static bool is_whole(const struct learner *self, const char *root,
                     const struct wire_saved_step *save, struct why *why)
{
    struct hash digest;
    pieces_t *pieces = NULL;
    int rc = pieces_open(root, save->step, self->options->run_id, why, &pieces);
    if (rc < 0) return false;
    rc = state_pieces_digest(pieces, &self->layout, why, &digest);
    if (rc == 0 && !hash_equal(&digest, &save->digest))
        rc = why_set(why, FAULT_DIGEST, "its digest is not the one on record");
    // mutant: older: a save of which the numbers are damaged is taken for whole
    if (rc == 0) rc = state_verify_pieces(pieces, why);
    pieces_close(&pieces);
    return rc == 0;
}

// The save that was asked for cannot be read. The newest older one that can is where the run may go back to; so that one
// is read whole here, and named, but not loaded. 0: none can.
static uint64_t newest_whole(const struct learner *self, const struct wire_load *load)
{
    char root[PATH_MAX];
    struct why why = { 0 };
    if (shared_dir_root(load->path, self->options->run_id, load->born_unix_ms, &why, root) < 0)
        return 0;
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) {
        const struct wire_saved_step *save = older_saves_at(&load->older, i);
        if (hash_is_none(&save->digest)) break;
        if (is_whole(self, root, save, &why)) return save->step;
        log_line(LOG_WARNING, "save.unreadable step=%" PRIu64 " reason=\"%s\"", save->step,
                 why.text);
    }
    return 0;
}

static int fill_from_copy(const struct learner_away_item *to, void *values, void *arg,
                          struct why *why)
{
    const struct learner *self = to->learner;
    (void)arg;
    return state_copy_get(&self->moments, state_cut_place(&self->cut, to->number), values,
                          self->cut.bytes[to->number], why);
}

static int take_items(struct learner *self, struct state_copy *copy, struct why *why)
{
    if (!learner_away_is_on(self)) return state_take(self->optimizer, &self->cut, copy, why);
    const struct learner_away_source source = { .give = give_from_copy,
                                                .fill = fill_from_copy,
                                                .copy = copy };
    return learner_away_take(self, &source, why);
}

// Takes the state that the fetcher has brought from peers. The store gives it away once.
static int take_staged(struct learner *self, const struct wire_load *load, struct why *why,
                       struct hash *ret_digest)
{
    struct blob_snapshot state;
    struct state_copy copy;
    int rc = 0;
    if (!blob_store_unstage(self->options->store, load->step, &state, &copy))
        return why_set(why, FAULT_NOT_FOUND, "nothing is staged for step %" PRIu64, load->step);
    if (state_cut_equal(&state.cut, &self->cut)) {
        if (!learner_away_takes_parameters(self))
            rc = state_copy_get(&copy, 0, self->params, state.cut.bytes[0], why);
        if (rc == 0) rc = take_items(self, &copy, why);
    } else
        rc = why_set(why, FAULT_FORMAT,
                     "%u items of state, %" PRIu64
                     " leaves, were fetched; the model has %u, %" PRIu64,
                     state.cut.count, state_cut_leaves(&state.cut), self->cut.count,
                     state_cut_leaves(&self->cut));
    state_copy_free(&copy);
    *ret_digest = state.digest;
    return rc;
}

// What was loaded must be what its source says that it is. `wanted` none: it says nothing.
static int check_digest(const struct learner *self, const struct wire_load *load,
                        const struct hash *wanted, struct why *why)
{
    char ours[HASH_HEX], theirs[HASH_HEX];
    const char *first_state = self->config.first_state;
    const char *from = load->genesis && first_state[0] ? first_state : load->path;
    const struct hash has = load->genesis
                                ? merkle_root(self->leaves, state_item_leaves(self->cut.bytes[0]))
                                : self->digest;
    if (hash_is_none(wanted) || hash_equal(&has, wanted)) return 0;
    return why_set(why, FAULT_DIGEST, "%s has digest %.16s, %s %.16s",
                   from[0] ? from : "what was fetched", hash_to_hex(&has, ours),
                   load->genesis   ? "the run pins"
                   : load->path[0] ? "its manifest says"
                                   : "asked for was",
                   hash_to_hex(wanted, theirs));
}

static int load(struct learner *self, const struct wire_load *load, struct why *why,
                struct wire_loaded *ret)
{
    struct hash wanted = { { 0 } };
    if (load->genesis) wanted = self->config.genesis_digest; // Of the parameters alone
    if (!self->built) return why_set(why, FAULT_CONFIG, "no model has been built");
    learner_pin_wait(self);
    self->holding = false;
    self->share_only = false; // What follows replaces all of it
    learner_away_drop(self);
    self->has_share = false;
    past_clear(&self->past);
    int rc = optimizer_forget(self->optimizer, why); // No residual outlives its parameters
    const struct learner_strategy *strategy = self->strategy;
    if (rc == 0 && strategy && strategy->loaded) rc = strategy->loaded(self, NULL, why);
    if (rc < 0) return rc;
    rc = !load->path[0]  ? take_staged(self, load, why, &wanted)
         : load->pieces  ? load_saved(self, load, why, &wanted)
         : load->genesis ? load_genesis(self, load, why)
                         : load_checkpoint(self, load, why, ret, &wanted);
    if (rc == 0) rc = compute_push(self->compute, why);
    if (rc == 0 && !self->away && learner_away_takes_parameters(self))
        rc = learner_away_move(self, why);
    if (rc == 0) rc = learner_take_digest(self, why);
    if (rc == 0) rc = check_digest(self, load, &wanted, why);
    if (rc < 0) return rc;
    self->step = load->step;
    self->holding = true;
    return learner_pin(self, why);
}

void learner_load(struct learner *self, const struct wire_load *job)
{
    struct why why = { 0 };
    if (job->path[0] && !job->genesis && !job->pieces)
        learner_save_wait(self); // SAVE may remove that checkpoint
    failpoint("learner_load");
    struct wire_loaded loaded = { .step = job->step, .epoch = job->epoch };
    const int rc = load(self, job, &why, &loaded);
    loaded.ok = rc == 0;
    if (rc < 0 && rc != FAULT_MEMORY && job->pieces) loaded.readable = newest_whole(self, job);
    loaded.digest = self->digest;
    learner_put_reason(loaded.reason, &why);
    worker_answer(self->worker, FRAME_LOADED, &loaded);
}
