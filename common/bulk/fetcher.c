// fetcher -- a loop: hear jobs, hear answers, work, wait. Blobs wait in line; as many are active as
// fit into memory. Work asks holders for pieces, keeps each whole blob in the store and tells the
// core; then the same for the one model, and for the one share. All limits on peers are in peers.c.

#include "common/base/clock.h"
#include "common/bulk/fetcher.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/bulk/blob_fetch.h"
#include "common/bulk/model_fetch.h"
#include "common/bulk/share_fetch.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    PATIENCE_MS = 1000,
    TURN_JOBS = 64,
    TURN_ANSWERS = 1024,
    ACTIVE_MAX = 256,
    BLOBS_MAX = 65536,
    BUCKETS = 4096
};

// A blob in line or being fetched.
struct entry {
    struct blob_fetch *blob;
    uint64_t turn; // Of the newest FETCH that named it
    bool is_active;
    LIST_ENTRY(entry) bucket;
    TAILQ_ENTRY(entry) line;
};
LIST_HEAD(bucket, entry);
TAILQ_HEAD(line, entry);

struct fetcher {
    const struct fetcher_options *options;
    struct worker *worker;
    struct peers *peers;
    struct hash_beside *beside;
    struct line waiting, active;
    uint32_t count, active_count;
    uint64_t active_bytes;
    struct bucket buckets[BUCKETS]; // All entries, by hash
    struct model_fetch *model;      // Being fetched, or failed and kept to be continued
    bool is_model_awaited;          // The core waits for an answer
    struct share_fetch *share;      // NULL: none is being fetched
    bool is_urgent;                 // So is an active blob: its requests may be late soon
};

// ---- the blobs in line and on their way -----------------------------------------------------

static struct bucket *bucket(struct fetcher *self, const struct hash *hash)
{
    return &self->buckets[hash_to_number(hash) % BUCKETS];
}

// The entry with this hash and, if `bytes` is not NULL, this size. An entry that was asked for with
// a wrong size must not block a request with the right one.
static struct entry *find(struct fetcher *self, const struct hash *hash, const uint32_t *bytes)
{
    struct entry *entry;
    LIST_FOREACH(entry, bucket(self, hash), bucket)
    if (hash_equal(&entry->blob->hash, hash) && (!bytes || entry->blob->count == *bytes))
        return entry;
    return NULL;
}

static struct entry *add(struct fetcher *self, const struct wire_blob *blob)
{
    struct entry *entry = calloc(1, sizeof *entry);
    ensure(entry);
    failpoint("fetch_blob");
    entry->blob = blob_fetch_new(self->peers, &blob->hash, blob->bytes);
    entry->blob->fetch.namer = self->options->namer;
    LIST_INSERT_HEAD(bucket(self, &blob->hash), entry, bucket);
    TAILQ_INSERT_TAIL(&self->waiting, entry, line);
    self->count++;
    return entry;
}

static void take_out(struct fetcher *self, struct entry *entry)
{
    TAILQ_REMOVE(entry->is_active ? &self->active : &self->waiting, entry, line);
    LIST_REMOVE(entry, bucket);
    self->count--;
    if (entry->is_active) {
        self->active_count--;
        self->active_bytes -= entry->blob->count;
    }
    blob_fetch_destroy(&entry->blob);
    free(entry);
}

static void activate(struct fetcher *self, struct entry *entry)
{
    TAILQ_REMOVE(&self->waiting, entry, line);
    TAILQ_INSERT_TAIL(&self->active, entry, line);
    entry->is_active = true;
    self->active_count++;
    self->active_bytes += entry->blob->count;
    blob_fetch_start(entry->blob, self->beside);
}

// ---- answers to the core --------------------------------------------------------------------

static void tell(struct fetcher *self, const struct hash *hash, uint64_t turn, bool ok,
                 const char *reason)
{
    struct wire_fetched fetched = { .hash = *hash, .turn = turn, .ok = ok };
    snprintf(fetched.reason, sizeof fetched.reason, "%s", reason);
    worker_answer(self->worker, FRAME_FETCHED, &fetched);
}

static void end_blob(struct fetcher *self, struct entry *entry)
{
    const struct blob_fetch *blob = entry->blob;
    const bool ok = blob->fetch.state == FETCH_DONE;
    for (uint32_t i = 0; i < blob->askers; i++)
        tell(self, &blob->hash, entry->turn, ok, blob->fetch.reason);
    take_out(self, entry);
}

static void tell_model(struct fetcher *self, bool ok, const char *reason)
{
    const struct model_fetch *model = self->model;
    struct wire_fetched_model fetched = { .ok = ok,
                                          .step = model->step,
                                          .bytes = model->got_bytes,
                                          .holders = model_fetch_served_by(model) };
    snprintf(fetched.reason, sizeof fetched.reason, "%s", reason);
    self->is_model_awaited = false;
    worker_answer(self->worker, FRAME_FETCHED_MODEL, &fetched);
}

static void end_model(struct fetcher *self)
{
    struct model_fetch *model = self->model;
    if (model->fetch.state == FETCH_DONE) {
        failpoint("fetch_stage");
        model_fetch_stage(model, self->options->store);
        tell_model(self, true, "");
        model_fetch_destroy(&self->model);
    } else {
        char reason[FETCH_REASON_MAX + 64];
        snprintf(reason, sizeof reason, "%s; %" PRIu32 " of %" PRIu32 " leaves are here",
                 model->fetch.reason, model_fetch_here(model), model->wanted);
        tell_model(self, false, reason);
    }
}

static void end_share(struct fetcher *self, bool ok, const char *reason)
{
    const struct share_fetch *share = self->share;
    struct wire_fetched_share fetched = { .turn = share->turn,
                                          .step = share->step,
                                          .ok = ok,
                                          .digest = share->digest,
                                          .bytes = share_fetch_bytes(share) };
    snprintf(fetched.reason, sizeof fetched.reason, "%.*s", (int)sizeof fetched.reason - 1, reason);
    share_fetch_destroy(&self->share); // Before the core may drop it: its memory is used again
    worker_answer(self->worker, FRAME_FETCHED_SHARE, &fetched);
}

// ---- jobs -----------------------------------------------------------------------------------

static void hear_blob(struct fetcher *self, const struct wire_blob *blob,
                      const struct wire_fetch *job)
{
    static const struct hash none;
    const struct hash empty = hash_of("", 0);
    struct hash kept;
    char text[FETCH_REASON_MAX];
    struct entry *entry = find(self, &blob->hash, &blob->bytes);
    size_t bytes;
    if (blob_store_size(self->options->store, &blob->hash, &bytes)) {
        snprintf(text, sizeof text, "%" PRIu32 " bytes, but it has %zu; not fetched", blob->bytes,
                 bytes);
        tell(self, &blob->hash, job->turn, bytes == blob->bytes, bytes == blob->bytes ? "" : text);
    } else if (blob->bytes == 0 || hash_equal(&blob->hash, &none)) {
        const bool ok = hash_equal(&blob->hash, &empty) &&
                        blob_store_put(self->options->store, "", 0, NULL, &kept) == 0;
        tell(self, &blob->hash, job->turn, ok,
             ok ? "" : "nothing can have this hash and size; not fetched");
    } else if (blob->bytes > BLOB_BYTES_MAX) {
        snprintf(text, sizeof text, "%" PRIu32 " bytes, allowed 0..%d; not fetched", blob->bytes,
                 BLOB_BYTES_MAX);
        tell(self, &blob->hash, job->turn, false, text);
    } else if (!entry && self->count == BLOBS_MAX) {
        snprintf(text, sizeof text, "%d blobs are in line already; not fetched", BLOBS_MAX);
        tell(self, &blob->hash, job->turn, false, text);
    } else {
        if (!entry) entry = add(self, blob);
        entry->turn = job->turn;
        entry->blob->askers++;
        if (job->urgent && !entry->blob->urgent_ms) entry->blob->urgent_ms = clock_ms();
        fetch_add_holders(&entry->blob->fetch, job->holders, job->holders_count);
    }
}

static struct state_cut cut_of(uint64_t floats, const struct wire_state_item *items, uint32_t count)
{
    struct state_cut cut = { .count = 1 };
    if (floats <= UINT64_MAX / sizeof(float)) cut = state_cut_of_floats(floats);
    for (uint32_t i = 0; i < count; i++) state_cut_add(&cut, items[i].bytes);
    return cut;
}

static void hear_model(struct fetcher *self, const struct wire_fetch_model *job)
{
    const struct state_cut cut = cut_of(job->floats, job->items, job->items_count);
    struct model_fetch *model = self->model;
    char text[FETCH_REASON_MAX];
    if (model &&
        (!hash_equal(&model->digest, &job->digest) || !state_cut_equal(&model->cut, &cut))) {
        snprintf(text, sizeof text, "given up for the parameters of step %" PRIu64, job->step);
        if (self->is_model_awaited) tell_model(self, false, text);
        model_fetch_destroy(&self->model);
    }
    if (!self->model) self->model = model_fetch_new(self->peers, job->step, &job->digest, &cut);
    self->model->fetch.namer = self->options->namer;
    failpoint("fetch_model");
    model_fetch_begin(self->model, job->step, job->holders, job->holders_count);
    self->is_model_awaited = true;
}

static void hear_share(struct fetcher *self, const struct wire_fetch_share *job)
{
    const struct state_cut cut = cut_of(job->floats, job->items, job->items_count);
    char text[FETCH_REASON_MAX];
    snprintf(text, sizeof text, "given up for the share of step %" PRIu64, job->step);
    if (self->share) end_share(self, false, text);
    self->share =
        share_fetch_new(self->peers, self->options->store, self->options->namer, &cut, job);
}

static void hear_forget(struct fetcher *self, const struct wire_forget *job)
{
    for (uint32_t i = 0; i < job->blobs_count; i++) {
        struct entry *entry;
        while ((entry = find(self, &job->blobs[i].hash, NULL))) {
            fetch_fail(&entry->blob->fetch, "forgotten while it was fetched");
            end_blob(self, entry);
        }
        blob_store_sweep(self->options->store, &job->blobs[i].hash);
    }
}

static void hear_job(struct fetcher *self, const struct job *job)
{
    if (job->kind == FRAME_FETCH) {
        const struct wire_fetch *fetch = job->body;
        for (uint32_t i = 0; i < fetch->blobs_count; i++) hear_blob(self, &fetch->blobs[i], fetch);
    } else if (job->kind == FRAME_FETCH_MODEL) {
        hear_model(self, job->body);
    } else if (job->kind == FRAME_FETCH_SHARE) {
        hear_share(self, job->body);
    } else {
        ensure(job->kind == FRAME_FORGET);
        hear_forget(self, job->body);
    }
}

// ---- the loop -------------------------------------------------------------------------------

// The blobs that were kept in this turn become durable together, each before its answer.
static void end_blobs(struct fetcher *self)
{
    struct entry *entry, *next;
    for (entry = TAILQ_FIRST(&self->active); entry; entry = next) {
        next = TAILQ_NEXT(entry, line);
        if (entry->blob->fetch.state == FETCH_GOING) continue;
        // mutant: a fetched blob is announced before it is durable
        blob_fetch_sync(entry->blob, self->options->store);
        end_blob(self, entry);
    }
}

// Asks for as much as there is credit for, keeps whole blobs, ends finished and failed ones. True:
// there is more to do at once.
static bool work(struct fetcher *self)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&self->waiting)) && self->active_count < ACTIVE_MAX &&
           (self->active_count == 0 ||
            self->active_bytes + entry->blob->count <= FETCHER_ACTIVE_BYTES_MAX))
        activate(self, entry);
    self->is_urgent = false;
    TAILQ_FOREACH(entry, &self->active, line)
    {
        struct blob_fetch *blob = entry->blob;
        self->is_urgent |= blob->urgent_ms > 0;
        if (blob->fetch.state == FETCH_GOING && !peers_is_spent(self->peers))
            blob_fetch_ask(blob, clock_ms()); // A new time: keeping the blob before may take long
        if (blob_fetch_is_whole(blob)) failpoint("fetch_keep");
        if (blob_fetch_is_whole(blob)) blob_fetch_keep(blob, self->options->store);
    }
    end_blobs(self);
    bool more = false;
    if (self->is_model_awaited) {
        more = model_fetch_work(self->model, self->options->store, clock_ms());
        if (self->model->fetch.state != FETCH_GOING) end_model(self);
    }
    if (self->share) {
        struct share_fetch *share = self->share;
        more |= share_fetch_work(share, self->options->store, clock_ms());
        if (share->state != FETCH_GOING)
            end_share(self, share->state == FETCH_DONE, share->why.text);
    }
    const struct entry *first = TAILQ_FIRST(&self->waiting);
    return more || (first && self->active_count == 0);
}

static bool hear_jobs(struct fetcher *self)
{
    struct job job;
    for (int n = 0; n < TURN_JOBS; n++) {
        const enum worker_turn turn = worker_next(self->worker, 0, &job);
        if (turn == WORKER_END) return false;
        if (turn == WORKER_QUIET) break;
        hear_job(self, &job);
    }
    return true;
}

static void hear_answers(struct fetcher *self)
{
    struct answer answer;
    const uint64_t now_ms = clock_ms();
    for (int n = 0; n < TURN_ANSWERS && peers_next(self->peers, now_ms, &answer); n++)
        if (answer.fetch) answer.fetch->hear(answer.fetch, &answer);
}

static void wait_for_something(struct fetcher *self, bool is_busy)
{
    struct pollfd items[1 + PEERS_OPEN_MAX];
    peers_send(self->peers);
    items[0] = (struct pollfd){ .fd = worker_jobs_fd(self->worker), .events = POLLIN };
    const int count = 1 + peers_fill_items(self->peers, items + 1);
    int wait_ms = is_busy ? 0 : peers_timeout_ms(self->peers, clock_ms());
    // mutant: fetch: nobody looks whether what is urgent is late
    if (self->is_urgent && (wait_ms < 0 || wait_ms > PEERS_URGENT_MS)) wait_ms = PEERS_URGENT_MS;
    const int found = poll(items, (nfds_t)count, wait_ms);
    if (found > 0) peers_hear_items(self->peers, items + 1);
}

static void end(struct fetcher *self)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&self->active))) take_out(self, entry);
    while ((entry = TAILQ_FIRST(&self->waiting))) take_out(self, entry);
    model_fetch_destroy(&self->model);
    share_fetch_destroy(&self->share);
    hash_beside_destroy(&self->beside);
    peers_destroy(&self->peers);
    free(self);
}

void fetcher_run(struct worker *worker, void *arg)
{
    const struct fetcher_options *options = arg;
    struct fetcher *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = options;
    self->worker = worker;
    self->peers = peers_new(options->identity, options->run,
                            options->patience_ms ? options->patience_ms : PATIENCE_MS);
    self->beside = hash_beside_new();
    TAILQ_INIT(&self->waiting);
    TAILQ_INIT(&self->active);
    for (bool is_busy = false; hear_jobs(self);) {
        hear_answers(self);
        is_busy = work(self);
        wait_for_something(self, is_busy);
    }
    end(self);
}
