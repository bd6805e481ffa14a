// learner -- compute and bulk transfer as a delay and a hash. Parameters are a digest, training
// hashes what it was given, applying hashes what it is told; so whoever trained on something else,
// or applied anything but the commit, holds another digest for ever after.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of the model, says whoever has built it.
enum { FLOATS = RESIDUAL_BYTES / sizeof(float) };

// ---- what a process holds -----------------------------------------------------------------------

static const struct wire_blob *stored(const struct store *self, const struct hash *hash)
{
    for (uint32_t i = self->count; i-- > 0;)
        if (hash_equal(&self->blobs[i].hash, hash)) return &self->blobs[i];
    return NULL;
}

bool store_has(const struct store *self, const struct hash *hash)
{
    return stored(self, hash) != NULL;
}

bool store_holds(const struct store *self, const struct hash *hash, uint32_t bytes)
{
    const struct wire_blob *blob = stored(self, hash);
    return blob && blob->bytes == bytes;
}

void store_add(struct sim *sim, struct store *self, const struct hash *hash, uint32_t bytes)
{
    if (store_has(self, hash)) return;
    if (self->count == BLOBS_KEPT_MAX)
        broken(sim, "what is no longer needed is forgotten", "%u blobs are kept", self->count);
    self->blobs[self->count++] = (struct wire_blob){ *hash, bytes };
}

static void store_forget(struct store *self, const struct hash *hash)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (hash_equal(&self->blobs[i].hash, hash)) {
            self->blobs[i] = self->blobs[--self->count];
            return;
        }
}

bool pins_have(const struct learner *self, uint64_t step, const struct hash *digest)
{
    for (uint32_t i = 0; i < self->pins_count; i++)
        if (self->pins[i].step == step && hash_equal(&self->pins[i].digest, digest)) return true;
    return false;
}

static void keep_pin(struct pin *pins, uint32_t *count, uint64_t step, const struct hash *digest)
{
    for (uint32_t i = 0; i < *count; i++)
        if (pins[i].step == step) {
            pins[i].digest = *digest;
            return;
        }
    if (*count == PINS_MAX) memmove(pins, pins + 1, --*count * sizeof *pins); // The oldest goes
    pins[(*count)++] = (struct pin){ .step = step, .digest = *digest };
}

bool checkpoints_have(const struct node *node, uint64_t step, const struct hash *digest)
{
    for (uint32_t i = 0; i < node->checkpoints_count; i++)
        if (node->checkpoints[i].step == step && hash_equal(&node->checkpoints[i].digest, digest))
            return true;
    return false;
}

// As checkpoint_write does: by step, the one just written stays, the one to spare, and the highest
// others.
static void keep_checkpoint(struct node *node, const struct wire_save *job)
{
    struct pin list[PINS_MAX + 2];
    uint32_t count = 0, others = 0, kept = 0;
    for (uint32_t i = 0; i < node->checkpoints_count; i++)
        if (node->checkpoints[i].step < job->step) list[count++] = node->checkpoints[i];
    list[count++] = (struct pin){ job->step, job->digest, job->epoch, job->born_unix_ms };
    for (uint32_t i = 0; i < node->checkpoints_count; i++)
        if (node->checkpoints[i].step > job->step) list[count++] = node->checkpoints[i];
    for (uint32_t i = 0; i < count; i++)
        others += list[i].step != job->step && list[i].step != job->spare;
    for (uint32_t i = 0; i < count; i++) {
        const bool stays = list[i].step == job->step || list[i].step == job->spare;
        if (!stays && others-- > PINS_MAX - 1) continue;
        node->checkpoints[kept++] = list[i];
    }
    node->checkpoints_count = kept;
}

// A worker answers in order, but the loop may hear of it later than of what others say meanwhile.
static void worker_says(struct sim *self, uint8_t id, enum worker worker, uint16_t kind,
                        const void *body)
{
    struct node *node = &self->nodes[id];
    size_t bytes = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    uint64_t at_ms = self->now_ms + between(self, 0, chance(self, 30) ? 3000 : 10);
    if (at_ms < node->said_ms[worker]) at_ms = node->said_ms[worker];
    node->said_ms[worker] = at_ms;
    struct parcel *answer = parcel_new(self, NULL, kind, self->bytes, (uint32_t)bytes);
    network_fly(self, at_ms - self->now_ms, TO_CORE, id, node->life, "", answer);
    parcel_release(answer);
}

void learner_says(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    worker_says(self, id, LEARNER, kind, body);
}

void fetcher_says(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    worker_says(self, id, FETCHER, kind, body);
}

void learner_forget(struct sim *self, uint8_t id, const struct effect *effect)
{
    const struct wire_forget *job =
        unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
    for (uint32_t i = 0; i < job->blobs_count; i++) {
        check_forgotten(self, id, &job->blobs[i].hash);
        store_forget(&self->nodes[id].store, &job->blobs[i].hash);
    }
}

// ---- is this crash one that the run is meant to survive? ----------------------------------------

// Nobody counts on a liar.
static bool stays(const struct sim *self, uint8_t id)
{
    const struct node *node = &self->nodes[id];
    return node->up && !node->leaving && !node->quits && !is_liar(self, id);
}

static bool is_elsewhere(const struct sim *self, uint8_t id, const struct hash *hash)
{
    for (uint8_t i = 0; i < self->nodes_count; i++) {
        const struct node *node = &self->nodes[i];
        bool lasts =
            (node->role == ACTOR_CHECKPOINTER && !is_liar(self, i)) || (i != id && stays(self, i));
        if (lasts && store_has(&node->store, hash)) return true;
    }
    return false;
}

// After a restore its checkpoint may be all that there is.
static bool is_saved(const struct sim *self, uint64_t step)
{
    if (self->ghost.restores == 0) return false;
    if (saves_have(self, step, &self->ghost.digest[step])) return true;
    if (self->checkpointer_node == NOBODY) return false;
    const struct node *node = &self->nodes[self->checkpointer_node];
    return checkpoints_have(node, step, &self->ghost.digest[step]);
}

static bool is_pinned_elsewhere(const struct sim *self, uint8_t id, uint64_t step)
{
    const struct hash *digest = &self->ghost.digest[step];
    for (uint8_t i = 0; i < self->nodes_count; i++)
        if (i != id && stays(self, i) && pins_have(&self->nodes[i].learner, step, digest))
            return true;
    if (is_saved(self, step)) return true;
    return step == self->plan.rules.first_step; // Genesis lies in a folder
}

// A member of a group of leases holds nothing, but keeps what the group began with.
static bool holds(const struct sim *self, const struct learner *learner, uint64_t step)
{
    if (learner->group.number) return pins_have(learner, step, &self->ghost.digest[step]);
    return learner->holding && learner->step >= step &&
           check_is_settled(self, learner->step, &learner->digest);
}

// Another replica stays that holds the pinned step or a later one.
static bool is_held_elsewhere(const struct sim *self, uint8_t id, uint64_t step)
{
    for (uint8_t i = 0; i < self->nodes_count; i++) {
        if (i != id && stays(self, i) && holds(self, &self->nodes[i].learner, step)) return true;
    }
    return check_commits(self) == 0;
}

bool may_lose(const struct sim *self, uint8_t id)
{
    const struct ghost *ghost = &self->ghost;
    const struct node *node = &self->nodes[id];
    uint64_t step = check_step(self), pin = ghost->pin_step;
    if (!role_takes_steps(node->role) && node->role != ACTOR_WITNESS &&
        node->role != ACTOR_CHECKPOINTER)
        return true;
    if (!is_pinned_elsewhere(self, id, pin) || !is_held_elsewhere(self, id, pin)) return false;
    if (self->pace->may_lose && !self->pace->may_lose(self, id)) return false;
    for (; pin < step; pin++) {
        const struct ghost_commit *commit = &ghost->commits[pin];
        for (uint32_t i = 0; i < commit->accepted; i++)
            if (!is_elsewhere(self, id, &commit->payloads[i])) return false;
    }
    for (uint32_t i = 0; i < ghost->promised_count; i++)
        if (!is_elsewhere(self, id, &ghost->promised[i])) return false;
    return true;
}

// ---- the learner --------------------------------------------------------------------------------

// Late on purpose, healed or not: just within the time of a round.
static bool is_belated(struct sim *self, uint8_t id, uint16_t kind)
{
    if (kind != FRAME_TRAIN || self->plan.late != id || check_round(self) % self->plan.late_every)
        return false;
    self->faults[BELATED]++;
    return true;
}

static uint64_t takes_ms(struct sim *self, uint8_t id, uint16_t kind)
{
    if (is_belated(self, id, kind)) return (uint64_t)self->plan.rules.train_ms * 9 / 10;
    bool slow = self->plan.slow == id && faulty(self);
    switch (kind) {
    case FRAME_RECOMPUTE:
    case FRAME_TRAIN: return between(self, 50, self->plan.train_ms) * (slow ? 10 : 1);
    case FRAME_BUILD: return between(self, 20, 100);
    case FRAME_LOAD: return between(self, 20, 200);
    case FRAME_APPLY: return between(self, 5, slow ? 600 : 60);
    case FRAME_SAVE: // A copy
    case FRAME_PIN: return 1;
    default: return self->pace->takes_ms ? self->pace->takes_ms(self, id) : 1;
    }
}

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

void learner_take(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    struct learner *learner = &node->learner;
    if (learner->busy_until_ms < self->now_ms) learner->busy_until_ms = self->now_ms;
    if (effect->kind == FRAME_SAVE || effect->kind == FRAME_LOAD || effect->kind == FRAME_BUILD)
        learner->busy_until_ms = later_of(learner->busy_until_ms, learner->saving_until_ms);
    learner->busy_until_ms += takes_ms(self, id, effect->kind);
    if (effect->kind == FRAME_SAVE) // The writing goes on beside the jobs after it
        learner->saving_until_ms =
            learner->busy_until_ms + between(self, 50, chance(self, 100) ? 5000 : 800);
    struct parcel *job = parcel_new(self, NULL, effect->kind, effect->body, effect->bytes);
    network_fly(self, learner->busy_until_ms - self->now_ms, TO_LEARNER, id, node->life, "", job);
    parcel_release(job);
}

// Where a LOAD finds parameters, if it does.
static bool find_model(const struct sim *self, const struct node *node, const struct wire_load *job,
                       struct wire_loaded *ret)
{
    const struct learner *learner = &node->learner;
    ret->digest = job->path[0] ? hash_number("genesis", 0) : learner->stage.digest;
    if (!job->path[0]) return learner->staged && learner->stage.step == job->step;
    if (job->pieces) {
        const struct sim_save *save = saves_find(self, job->born_unix_ms, job->step);
        if (save) ret->digest = save->digest;
        return save && !save->decayed &&
               (hash_is_none(&job->digest) || hash_equal(&save->digest, &job->digest));
    }
    if (job->genesis) return node->has_genesis && job->step == self->plan.rules.first_step;
    for (uint32_t i = 0; i < node->checkpoints_count; i++)
        if (node->checkpoints[i].step == job->step) {
            ret->digest = node->checkpoints[i].digest;
            ret->epoch = node->checkpoints[i].epoch;
            ret->born_unix_ms = node->checkpoints[i].born_unix_ms;
            return true;
        }
    return false;
}

// Of the older ones that the job names, the newest that can be read; 0: none.
static uint64_t find_readable(struct sim *self, const struct wire_load *job)
{
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) {
        const struct wire_saved_step *older = older_saves_at(&job->older, i);
        const struct sim_save *save = saves_find(self, job->born_unix_ms, older->step);
        if (!hash_is_none(&older->digest) && save && !save->decayed &&
            hash_equal(&save->digest, &older->digest) && !chance(self, self->plan.damage / 4))
            return older->step;
    }
    return 0;
}

static void load(struct sim *self, uint8_t id, const struct wire_load *job)
{
    struct node *node = &self->nodes[id];
    struct learner *learner = &node->learner;
    struct wire_loaded loaded = { .step = job->step, .epoch = job->epoch };
    if (job->pieces) saves_try(self, job->born_unix_ms, job->step);
    const bool unreadable = job->path[0] && chance(self, self->plan.damage / 4); // This time
    loaded.ok = learner->built && !unreadable && find_model(self, node, job, &loaded);
    learner->holding = loaded.ok;
    if (!job->path[0]) learner->staged = false;
    if (loaded.ok) {
        learner->step = job->step;
        learner->digest = loaded.digest;
        learner->has_candidate = false;
        learner->residual = (struct hash){ 0 }; // A residual belongs to the replica that made it
        learner->has_previous = false;
        learner->loaded_step = job->step;
        learner->differs = learner->is_named = false;
        learner->exchange.shares.only = learner->exchange.shares.dropped = false;
        learner->exchange.shares.pulls = false;
        learner->generation++;
        keep_pin(learner->pins, &learner->pins_count, job->step, &loaded.digest);
        check_loaded(self, id);
    } else {
        snprintf(loaded.reason, sizeof loaded.reason, "nothing there");
        if (job->pieces) loaded.readable = find_readable(self, job);
    }
    worker_says(self, id, LEARNER, FRAME_LOADED, &loaded);
}

uint8_t node_at(const struct wire_holder *holder)
{
    const unsigned long port = strtoul(strrchr(holder->endpoint, ':') + 1, NULL, 10);
    ensure(port >= SIM_PORT && port < SIM_PORT + NODES_MAX);
    return (uint8_t)(port - SIM_PORT);
}

bool learner_has_data(const struct sim *self, uint8_t id, const struct wire_holder *providers,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t provider = node_at(&providers[i]);
        if (self->nodes[provider].up && reachable(self, id, provider)) return true;
    }
    return false;
}

static struct hash work_of(const struct hash *base, const struct hash *residual,
                           const struct interval *samples, uint32_t count, uint32_t lr_bits)
{
    struct hash parts[3] = { *base, *residual, hash_of(samples, count * sizeof *samples) };
    return hash_of_two(parts, sizeof parts, &lr_bits, sizeof lr_bits);
}

static struct hash residual_after(const struct hash *residual, const struct hash *work)
{
    return hash_of_two(residual, HASH_BYTES, work, HASH_BYTES);
}

static struct hash revelation_of(const struct hash *residual)
{
    return hash_of_two("residual", 8, residual, HASH_BYTES);
}

static void show(struct sim *self, uint8_t id, const struct wire_show *job)
{
    struct node *node = &self->nodes[id];
    const struct learner *learner = &node->learner;
    struct wire_shown shown = { .round = job->round };
    shown.ok = learner->holding &&
               (hash_equal(&learner->residual, &job->residual) ||
                (learner->has_previous && hash_equal(&learner->previous, &job->residual)));
    if (shown.ok) {
        shown.blob = (struct wire_blob){ revelation_of(&job->residual), RESIDUAL_BYTES };
        store_add(self, &node->store, &shown.blob.hash, shown.blob.bytes);
    } else snprintf(shown.reason, sizeof shown.reason, "no more here");
    worker_says(self, id, LEARNER, FRAME_SHOWN, &shown);
}

static void recompute(struct sim *self, uint8_t id, const struct wire_recompute *job)
{
    const struct node *node = &self->nodes[id];
    const struct learner *learner = &node->learner;
    const struct wire_audit *audit = &job->audit;
    if (job->ahead) return; // Of a gradient there is nothing to tell
    struct wire_finding finding = { .round = job->round,
                                    .result = audit->result,
                                    .finding = FINDING_UNABLE };
    const struct hash blob = revelation_of(&audit->residual_from);
    const bool zero = hash_is_none(&audit->residual_from);
    const bool shown = zero || hash_equal(&blob, &job->residual);
    if (learner->holding && audit->step >= learner->loaded_step && audit->step <= learner->step &&
        learner_has_data(self, id, job->providers, job->providers_count) &&
        (zero || store_holds(&node->store, &job->residual, RESIDUAL_BYTES))) {
        finding.payload = work_of(&audit->base, &audit->residual_from, job->samples,
                                  job->samples_count, audit->lr_bits);
        finding.residual_to = residual_after(&audit->residual_from, &finding.payload);
        finding.finding = hash_equal(&finding.payload, &audit->payload) &&
                                  hash_equal(&finding.residual_to, &audit->residual_to)
                              ? FINDING_SAME
                              : FINDING_DIFFERENT;
        // mutant: audit: a trainer that revealed something else is called wrong
        if (!shown) finding.finding = FINDING_WITHHELD; // Others may have been shown it
    }
    worker_says(self, id, LEARNER, FRAME_RECOMPUTED, &finding);
}

static void train(struct sim *self, uint8_t id, const struct wire_train *job)
{
    struct node *node = &self->nodes[id];
    struct learner *learner = &node->learner;
    struct wire_trained trained = { .round = job->round, .loss = 1, .tokens_per_s = 10 };
    trained.ok = learner->holding && job->step == learner->step &&
                 learner_has_data(self, id, job->providers, job->providers_count);
    if (trained.ok && job->from_zero) {
        learner->residual = self->ghost.residual[id] = (struct hash){ { 0 } };
        learner->has_previous = false;
    }
    if (trained.ok) {
        struct hash work = work_of(&learner->digest, &learner->residual, job->samples,
                                   job->samples_count, job->lr_bits);
        liar_makes_up(self, id, job->round, &work);
        trained.base = learner->digest;
        trained.residual_from = learner->residual;
        trained.payload = work;
        trained.payload_bytes = PAYLOAD_BYTES;
        trained.residual_to = residual_after(&learner->residual, &work);
        learner->has_previous = false;
        learner->has_candidate = true;
        learner->candidate = work;
        learner->candidate_to = trained.residual_to;
        store_add(self, &node->store, &work, trained.payload_bytes);
        check_trained(self, id, job);
    } else snprintf(trained.reason, sizeof trained.reason, "no samples, or another step is held");
    worker_says(self, id, LEARNER, FRAME_TRAINED, &trained);
}

struct hash digest_after(const struct hash *digest, const struct hash *payloads, uint32_t count,
                         uint32_t lr_bits)
{
    struct hash hash = hash_of_two(digest, HASH_BYTES, &lr_bits, sizeof lr_bits);
    return hash_of_two(&hash, HASH_BYTES, payloads, count * sizeof *payloads);
}

static void apply(struct sim *self, uint8_t id, const struct wire_apply *job)
{
    struct node *node = &self->nodes[id];
    struct learner *learner = &node->learner;
    struct hash payloads[NODES_MAX];
    struct wire_applied applied = { .ok = learner->holding && job->step == learner->step &&
                                          job->payloads_count <= NODES_MAX };
    for (uint32_t i = 0; applied.ok && i < job->payloads_count; i++) {
        payloads[i] = job->payloads[i].hash;
        applied.ok = store_holds(&node->store, &payloads[i], PAYLOAD_BYTES);
    }
    if (applied.ok) {
        learner->digest =
            digest_after(&learner->digest, payloads, job->payloads_count, job->lr_bits);
        learner->step++;
        if (learner->has_candidate && hash_equal(&job->own_payload, &learner->candidate)) {
            learner->previous = learner->residual;
            learner->has_previous = true;
            learner->residual = learner->candidate_to;
        }
        learner->has_candidate = false;
        if (job->pin)
            keep_pin(learner->pins, &learner->pins_count, learner->step, &learner->digest);
        check_applied(self, id, job);
    } else
        snprintf(applied.reason, sizeof applied.reason,
                 "a payload is missing, or another step is held");
    applied.step = learner->step;
    applied.digest = learner->digest;
    worker_says(self, id, LEARNER, FRAME_APPLIED, &applied);
}

// Takes a copy; the checkpoint is there when it has been written.
static void save(struct sim *self, uint8_t id, const struct wire_save *job)
{
    struct node *node = &self->nodes[id];
    struct learner *learner = &node->learner;
    bool held = learner->holding && learner->step == job->step &&
                hash_equal(&learner->digest, &job->digest);
    struct wire_saved saved = { .ok = held || pins_have(learner, job->step, &job->digest),
                                .epoch = job->epoch,
                                .step = job->step,
                                .digest = job->digest };
    if (!saved.ok) {
        snprintf(saved.reason, sizeof saved.reason, "not held and not pinned");
        worker_says(self, id, LEARNER, FRAME_SAVED, &saved);
        return;
    }
    if (held) keep_pin(learner->pins, &learner->pins_count, job->step, &job->digest);
    const size_t bytes = wire_pack_body(FRAME_SAVE, job, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    struct parcel *written = parcel_new(self, NULL, FRAME_SAVE, self->bytes, (uint32_t)bytes);
    network_fly(self, later_of(learner->saving_until_ms, self->now_ms) - self->now_ms, TO_SAVER, id,
                node->life, "", written);
    parcel_release(written);
}

void saver_finish(struct sim *self, uint8_t id, const struct parcel *written)
{
    const struct wire_save *job =
        unpack(self, &self->arena, written->kind, written->body, written->bytes);
    struct wire_saved saved = {
        .ok = true, .epoch = job->epoch, .step = job->step, .digest = job->digest
    };
    snprintf(saved.name, sizeof saved.name, "step-%08" PRIu64, job->step);
    keep_checkpoint(&self->nodes[id], job);
    check_saved(self, job);
    worker_says(self, id, LEARNER, FRAME_SAVED, &saved);
}

bool learner_of_rounds(struct sim *self, uint8_t id, uint16_t kind, const void *job)
{
    switch (kind) {
    case FRAME_TRAIN: train(self, id, job); return true;
    case FRAME_APPLY: apply(self, id, job); return true;
    case FRAME_SHOW: show(self, id, job); return true;
    case FRAME_RECOMPUTE: recompute(self, id, job); return true;
    default: return false;
    }
}

void learner_finish(struct sim *self, uint8_t id, const struct parcel *job)
{
    struct learner *learner = &self->nodes[id].learner;
    const void *body = unpack(self, &self->arena, job->kind, job->body, job->bytes);
    switch (job->kind) {
    case FRAME_BUILD:
        *learner = (struct learner){ .built = true,
                                     .busy_until_ms = learner->busy_until_ms,
                                     .saving_until_ms = learner->saving_until_ms,
                                     .generation = learner->generation + 1 };
        worker_says(
            self, id, LEARNER, FRAME_BUILT,
            &(struct wire_built){ .ok = true, .floats = FLOATS, .payload_bytes = PAYLOAD_BYTES });
        if (self->pace->built) self->pace->built(self, id);
        break;
    case FRAME_LOAD: load(self, id, body); break;
    case FRAME_SAVE: save(self, id, body); break;
    case FRAME_PIN:
        if (learner->holding && !learner->exchange.shares.only &&
            learner->step == ((const struct wire_pin *)body)->step)
            keep_pin(learner->pins, &learner->pins_count, learner->step, &learner->digest);
        break;
    default: ensure(self->pace->learn(self, id, job->kind, body)); // A job that it knows
    }
}

// ---- the fetcher --------------------------------------------------------------------------------

void fetcher_take(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    if (effect->kind == FRAME_FORGET) return; // What is on its way comes all the same
    struct parcel *job = parcel_new(self, NULL, effect->kind, effect->body, effect->bytes);
    uint64_t delay_ms = between(self, 5, chance(self, 50) ? 3000 : 100);
    network_fly(self, delay_ms, TO_FETCHER, id, node->life, "", job);
    parcel_release(job);
}

// The first of those asked that is up, within reach, and has it; else NOBODY.
static uint8_t holder_of(struct sim *self, uint8_t id, const struct wire_holder *holders,
                         uint32_t count, const struct wire_blob *blob,
                         const struct wire_fetch_model *model)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t other = node_at(&holders[i]);
        const struct node *node = &self->nodes[other];
        if (!node->up || !reachable(self, id, other)) continue;
        if (!(blob ? store_holds(&node->store, &blob->hash, blob->bytes) &&
                         liar_serves(self, other, id, &blob->hash)
                   : pins_have(&node->learner, model->step, &model->digest)))
            continue;
        if (!blob || blob->bytes != RESIDUAL_BYTES || other != self->plan.thin) return other;
        self->faults[THIN_LINE]++;
    }
    return NOBODY;
}

// Whoever claims, votes or reveals: nobody is made to fetch anything else.
static void check_fetched_size(struct sim *self, uint8_t id, uint32_t bytes)
{
    if (bytes != PAYLOAD_BYTES && bytes != RESIDUAL_BYTES)
        broken(self, "what is fetched has the size of a result or a residual", "%s: %u bytes",
               self->nodes[id].name, bytes);
}

static void fetch(struct sim *self, uint8_t id, const struct wire_fetch *job)
{
    struct node *node = &self->nodes[id];
    ensure(job->blobs_count == 1);
    check_fetched_size(self, id, job->blobs[0].bytes);
    const struct wire_blob *blob = &job->blobs[0];
    struct wire_fetched fetched = { .hash = blob->hash, .turn = job->turn };
    fetched.ok = store_holds(&node->store, &blob->hash, blob->bytes) ||
                 holder_of(self, id, job->holders, job->holders_count, blob, NULL) != NOBODY;
    if (fetched.ok) store_add(self, &node->store, &blob->hash, blob->bytes);
    else snprintf(fetched.reason, sizeof fetched.reason, "nobody has it");
    worker_says(self, id, FETCHER, FRAME_FETCHED, &fetched);
}

static void fetch_model(struct sim *self, uint8_t id, const struct wire_fetch_model *job)
{
    struct learner *learner = &self->nodes[id].learner;
    struct wire_fetched_model fetched = { .step = job->step, .bytes = 400, .holders = 1 };
    ensure(job->floats == FLOATS);
    fetched.ok = holder_of(self, id, job->holders, job->holders_count, NULL, job) != NOBODY ||
                 copies_serve(self, id, job);
    if (fetched.ok) {
        learner->staged = true;
        learner->stage = (struct pin){ .step = job->step, .digest = job->digest };
    } else snprintf(fetched.reason, sizeof fetched.reason, "nobody serves it");
    worker_says(self, id, FETCHER, FRAME_FETCHED_MODEL, &fetched);
}

void fetcher_finish(struct sim *self, uint8_t id, const struct parcel *job)
{
    const void *body = unpack(self, &self->arena, job->kind, job->body, job->bytes);
    switch (job->kind) {
    case FRAME_FETCH: fetch(self, id, body); break;
    case FRAME_FETCH_MODEL: fetch_model(self, id, body); break;
    case FRAME_FETCH_SHARE: copies_fetch(self, id, body); break;
    default: ensure_failed("a job that a fetcher does not know", __FILE__, __LINE__);
    }
}
