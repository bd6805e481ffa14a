// share_fetch -- in order: find our share, join the lists, fetch what is missing of our predecessors, complete the share.
// Everything before the fetch is done at once, when it is made: 50,000 hashes are joined in a few milliseconds.

#include "common/bulk/share_fetch.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdlib.h>

// ---- the lists ----------------------------------------------------------------------------------

static enum share_rest rest_of(const struct wire_fetch_share *job)
{
    return job->apart ? SHARE_OF_FIRST : SHARE_ALIKE;
}

static int join_list(blob_store_t *store, const struct state_cut *cut,
                     const struct wire_fetch_share *job, uint32_t place, struct hash *leaves,
                     struct why *why)
{
    const uint32_t places = job->lists_count;
    const struct share_list list = share_list_of(cut, place, places, rest_of(job));
    struct blob_ref ref;
    const int rc = blob_store_get(store, &job->lists[place].hash, why, &ref);
    if (rc < 0) return why_wrap(why, rc, "the list of place %" PRIu32, place);
    const size_t count = ref.count;
    const enum share_fit fit =
        share_list_join(cut, place, places, rest_of(job), ref.bytes, count, leaves);
    blob_store_release(&ref);
    if (fit == SHARE_OTHER_COUNT)
        return why_set(why, FAULT_FORMAT,
                       "the list of place %" PRIu32 " has %zu bytes, not the %" PRIu64
                       " of its leaves",
                       place, count, share_list_leaves(&list) * HASH_BYTES);
    if (fit == SHARE_DIFFERS)
        return why_set(why, FAULT_DIGEST,
                       "the lists of places 0 and %" PRIu32 " differ in what each member has",
                       place);
    return 0;
}

// The hashes of all leaves. NULL: a list is not here, or does not fit.
static struct hash *join_lists(blob_store_t *store, const struct state_cut *cut,
                               const struct wire_fetch_share *job, struct why *why)
{
    struct hash *leaves = calloc(state_cut_leaves(cut), sizeof *leaves);
    ensure(leaves);
    for (uint32_t place = 0; place < job->lists_count; place++) {
        if (join_list(store, cut, job, place, leaves, why) == 0) continue;
        free(leaves);
        return NULL;
    }
    return leaves;
}

// ---- the leaves of our predecessors -------------------------------------------------------------

// The runs of the places before ours. What each place has we have, too; what only place 0 has goes with its share.
static uint32_t list_wanted(const struct state_cut *cut, const struct wire_fetch_share *job,
                            struct interval *ret_runs)
{
    const uint32_t places = job->lists_count;
    uint32_t count = 0;
    for (uint32_t back = 1; back <= job->buddies && back < places; back++) {
        // mutant: shares: a buddy is the place behind ours
        const uint32_t place = (job->place + places - back) % places;
        const struct share_list list = share_list_of(cut, place, places, rest_of(job));
        // mutant: shares: a buddy of the first lacks what only that one has
        const uint32_t of_it = job->apart ? list.count : list.cut_count;
        for (uint32_t i = 0; i < of_it; i++) ret_runs[count++] = list.runs[i];
    }
    return count;
}

// Begins to fetch what the share lacks. One that is whole already has the leaves of its predecessors.
static int begin(struct share_fetch *self, struct peers *peers, const struct fetch_namer *namer,
                 const struct wire_fetch_share *job, struct hash **leaves_p)
{
    struct interval runs[SHARE_PLACES_MAX * STATE_ITEMS_MAX];
    const struct state_cut *cut = blob_share_cut(self->share);
    struct hash digest;
    self->digest = state_cut_root(cut, *leaves_p);
    if (blob_share_is_whole(self->share, &digest)) {
        self->state = FETCH_DONE;
        return hash_equal(&digest, &self->digest)
                   ? 0
                   : why_set(&self->why, FAULT_CORRUPT,
                             "our share of step %" PRIu64 " has another digest already",
                             self->step);
    }
    const uint32_t count = list_wanted(cut, job, runs);
    self->pull = model_fetch_new_for_share(peers, self->step, leaves_p, self->share, runs, count);
    self->pull->fetch.namer = namer;
    model_fetch_begin(self->pull, self->step, job->holders, job->holders_count);
    return 0;
}

static int find_share(struct share_fetch *self, blob_store_t *store, const struct state_cut *cut,
                      const struct wire_fetch_share *job)
{
    self->share = blob_store_share(store, job->step);
    if (job->place >= job->lists_count)
        return why_set(&self->why, FAULT_RANGE, "place %" PRIu32 " of %" PRIu32 " members",
                       job->place, job->lists_count);
    if (!self->share || model_fetch_leaves(cut) == 0 ||
        !state_cut_equal(blob_share_cut(self->share), cut))
        return why_set(&self->why, FAULT_NOT_FOUND,
                       "no share of step %" PRIu64 " of such a state is here", job->step);
    return 0;
}

struct share_fetch *share_fetch_new(struct peers *peers, blob_store_t *store,
                                    const struct fetch_namer *namer, const struct state_cut *cut,
                                    const struct wire_fetch_share *job)
{
    struct share_fetch *self = calloc(1, sizeof *self);
    ensure(self);
    self->turn = job->turn;
    self->step = job->step;
    struct hash *leaves = NULL;
    if (find_share(self, store, cut, job) < 0 ||
        !(leaves = join_lists(store, cut, job, &self->why)) ||
        begin(self, peers, namer, job, &leaves) < 0)
        self->state = FETCH_FAILED;
    free(leaves);
    return self;
}

void share_fetch_destroy(struct share_fetch **self_p)
{
    struct share_fetch *self = *self_p;
    if (!self) return;
    model_fetch_destroy(&self->pull);
    blob_share_release(&self->share);
    free(self);
    *self_p = NULL;
}

// ---- work ---------------------------------------------------------------------------------------

bool share_fetch_work(struct share_fetch *self, blob_store_t *store, uint64_t now_ms)
{
    struct model_fetch *pull = self->pull;
    if (self->state != FETCH_GOING) return false;
    const bool more = model_fetch_work(pull, store, now_ms);
    self->state = pull->fetch.state;
    if (self->state == FETCH_FAILED)
        why_set(&self->why, FAULT_NOT_FOUND, "%s; %" PRIu32 " of %" PRIu32 " leaves are here",
                pull->fetch.reason, model_fetch_here(pull), pull->wanted);
    if (self->state == FETCH_DONE &&
        blob_share_complete(self->share, &self->digest, pull->leaves, &self->why) < 0)
        self->state = FETCH_FAILED;
    return more;
}

uint64_t share_fetch_bytes(const struct share_fetch *self)
{
    return self->pull ? self->pull->got_bytes : 0;
}
