// Obtains the parameters, from a folder or from peers, and checks them each turn against the
// record: has a restore given them up, are they too far behind, do they differ at the pinned step.
// If none of these is true, the replica is ready and the pace may move it.

#include "common/member/replica.h"
#include "common/base/ensure.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

// A step that no run reaches: our newest usable checkpoint is not known. Then the one of the step
// that the run was restored to is tried, or that of the pinned step.
static const uint64_t RESUME_UNKNOWN = UINT64_MAX;

// RUN names only the newest of several restores. A replica that missed both and holds a step
// between them is not recognised here; its parameters then differ from the record, and it repairs
// itself (seed 6653).
bool replica_is_given_up(const struct wire_run *run, uint64_t step, uint64_t epoch)
{
    // mutant: restore: a replica that is ahead stays there
    // mutant: restore: a replica that is ahead is met there again
    return step > run->restored_step && epoch < run->restored_epoch;
}

bool replica_is_newer(uint64_t step, uint64_t epoch, uint64_t than_step, uint64_t than_epoch)
{
    // mutant: restore: the highest step is the newest
    return epoch > than_epoch || (epoch == than_epoch && step > than_step);
}

// ---- obtaining parameters -----------------------------------------------------------------------

static void fetch_pinned(struct replica *self, const struct member *member, struct outbox *out)
{
    static const struct wire_holder none[1];
    struct wire_holder holders[64];
    uint32_t count = member_holders(member, UINT32_MAX, self->failures, holders, 64);
    self->fetching = true;
    self->fetched_epoch = member->now.epoch;
    outbox_job(out, PORT_FETCHER, FRAME_FETCH_MODEL,
               &(struct wire_fetch_model){ .step = member->now.pin_step,
                                           .digest = member->now.pin_digest,
                                           .holders = count ? holders : none,
                                           .holders_count = count,
                                           .floats = self->floats,
                                           .items = self->items,
                                           .items_count = self->items_count });
}

static void load(struct replica *self, uint64_t step, const char *path, bool genesis,
                 struct outbox *out)
{
    struct wire_load load = { .step = step, .genesis = genesis };
    snprintf(load.path, sizeof load.path, "%s", path);
    self->loading = self->own_folder = true;
    self->pieces = false;
    outbox_job(out, PORT_LEARNER, FRAME_LOAD, &load);
}

static bool is_unread(const struct replica *self, uint64_t step, const struct hash *digest)
{
    return self->unread.step == step && hash_equal(&self->unread.digest, digest);
}

// The members have saved the pinned step, so each may read it by itself. The save does not say in which epoch of the
// run it is read: as what peers have, it is of the present one.
static void load_pieces(struct replica *self, const struct member *member, struct outbox *out)
{
    struct wire_load load = { .step = member->now.pin_step,
                              .epoch = member->now.epoch,
                              .pieces = true,
                              .digest = member->now.pin_digest,
                              .born_unix_ms = member->born_unix_ms };
    // One that can be read is looked for once: that takes as long as to read it
    if (!is_unread(self, load.step, &member->now.pin_digest) || !self->readable)
        load.older = member->now.older;
    snprintf(load.path, sizeof load.path, "%s", self->shared_dir);
    self->loading = self->own_folder = self->pieces = true;
    self->pieces_digest = member->now.pin_digest;
    outbox_job(out, PORT_LEARNER, FRAME_LOAD, &load);
}

static bool is_saved(const struct wire_run *run)
{
    return run->checkpoint_pieces && run->checkpoint_step == run->pin_step &&
           hash_equal(&run->checkpoint_digest, &run->pin_digest);
}

static bool is_in_pieces(const struct replica *self, const struct wire_run *run)
{
    // mutant: saves: a save is never read back
    return self->shared_dir[0] && is_saved(run);
}

// Others read the save, or the run goes back to an older one once all members say that they cannot read it. So who reads
// no saves waits for them, and so does one that knows an older one.
static bool may_go_on(const struct replica *self, const struct wire_run *run)
{
    const bool is_ours = is_in_pieces(self, run);
    // Who keeps a part of it in memory takes that along if it ends; the run waits for one that is cut off
    // mutant: keeping: a keeper ends as it cannot fetch what others keep
    if (run->memory_window && run->memory_step == run->pin_step) return true;
    return is_saved(run) &&
           (!is_ours || (is_unread(self, run->pin_step, &run->pin_digest) && self->readable > 0));
}

// Tries in turn a folder (our own checkpoint, a save in pieces, or genesis) and the peers that hold the pinned step.
// After REPLICA_FAILURES_MAX failures the process ends with an error.
static void obtain(struct replica *self, const struct member *member, uint64_t now_ms,
                   struct outbox *out)
{
    const struct wire_run *run = &member->now;
    // mutant: windows: a checkpointer looks into its newest folder alone
    uint64_t own_step = self->follows_pins               ? run->pin_step
                        : self->resume.step <= run->step ? self->resume.step
                        : run->restored_epoch            ? run->restored_step
                                                         : run->pin_step;
    // Our checkpoints begin after the run's first step. An earlier one is of another run. One ahead
    // of the run is of the time before the run lost its ledger. In both cases we have none of this
    // run, and its first parameters lie in the genesis folder.
    // mutant: a checkpoint of an earlier run is taken for one of this
    // mutant: a checkpoint ahead of the run hides the genesis folder
    if (own_step <= member->config.genesis_step) own_step = 0;
    // As long as no checkpoint has later parameters than genesis, a member that can replay begins
    // with genesis, if no peer serves the pinned step.
    // mutant: a checkpoint of the first step hides the genesis folder
    bool replays = self->can_replay && own_step == 0 &&
                   run->checkpoint_step <= member->config.genesis_step && self->failures > 0;
    char hex[HASH_HEX];
    if (self->sought_epoch != run->restored_epoch) { // A restore changed the model that we look for
        self->sought_epoch = run->restored_epoch;
        self->failures = 0;
        self->peers_turn = false;
    }
    if (now_ms < self->retry_ms || member->roster.version == 0) return; // No peer is known yet
    self->retry_ms = now_ms + REPLICA_RETRY_MS;
    // mutant: only a run from step 1 has its parameters in a folder
    if (self->failures >= REPLICA_FAILURES_MAX && hash_is_none(&run->pin_digest)) {
        outbox_quit(out, EX_UNAVAILABLE,
                    "the parameters of step %" PRIu64 " are not here, and their digest is not on "
                    "record, so no peer can be asked: most of the first trainers must have the "
                    "model in a folder of their own (repo_id); give it to this one, too",
                    run->pin_step);
    } else if (self->failures >= REPLICA_FAILURES_MAX && is_in_pieces(self, run) &&
               !may_go_on(self, run)) {
        outbox_quit(out, EX_UNAVAILABLE,
                    "the save of step %" PRIu64 " in pieces cannot be read (see model.unavailable "
                    "above), nor an older one that the run could go back to, and no member holds "
                    "its state: put it back from a copy in %s",
                    run->pin_step, self->shared_dir);
    } else if (self->failures >= REPLICA_FAILURES_MAX && !may_go_on(self, run)) {
        outbox_quit(out, EX_UNAVAILABLE,
                    "the parameters of step %" PRIu64 " (digest %.16s) are not available: no "
                    "trainer, no checkpointer and no folder here has them; start one that holds "
                    "them, never random ones",
                    run->pin_step, hash_to_hex(&run->pin_digest, hex));
    } else if (self->resume.path[0] && own_step > 0 && !self->peers_turn) {
        load(self, own_step, self->resume.path, false, out);
    } else if (member->config.genesis[0] && !self->peers_turn &&
               (run->pin_step == member->config.genesis_step || replays)) {
        // mutant: the folder of an earlier run is taken for step 0
        load(self, member->config.genesis_step, member->config.genesis, true, out);
    } else if (is_in_pieces(self, run) && !self->peers_turn) {
        load_pieces(self, member, out);
    } else if (!hash_is_none(&run->pin_digest)) {
        fetch_pinned(self, member, out);
    } else {
        self->failures++;
        // mutant: a folder that failed is never read again
        self->peers_turn = false; // Without a digest there is nothing to ask peers for
        outbox_note(out, "model.unknown genesis is not available, and no digest is on record yet; "
                         "retrying");
    }
}

// Counts a failure; the other source has the next turn. A model that is not the recorded one is
// never used.
static void failed(struct replica *self, bool was_folder, const char *reason, struct outbox *out)
{
    self->failures++;
    self->peers_turn = was_folder;
    outbox_note(out, "model.unavailable attempt=%u reason=\"%s\"; %s", self->failures, reason,
                was_folder ? "the other members may have it and are asked next" : "asking again");
}

static void note_unread(struct replica *self, const struct wire_loaded *loaded)
{
    if (!is_unread(self, loaded->step, &self->pieces_digest)) self->readable = 0;
    if (loaded->readable) self->readable = loaded->readable;
    self->unread = (struct wire_saved_step){ loaded->step, self->pieces_digest };
    _Static_assert(sizeof self->unread_because == sizeof loaded->reason, "the same words");
    memcpy(self->unread_because, loaded->reason, sizeof self->unread_because);
}

// The coordinator hears of a save that cannot be read each time that no peer had its state either: one may have it in its
// store, though it reports nothing, and then it is not lost (seed 16479). If all members say so, the coordinator takes
// the run back to an older one.
static void tell_unread(const struct replica *self, const struct member *member, struct outbox *out)
{
    const struct wire_run *run = &member->now;
    if (!is_in_pieces(self, run) || !is_unread(self, run->pin_step, &run->pin_digest)) return;
    struct wire_unread unread = { .step = self->unread.step,
                                  .digest = self->unread.digest,
                                  .readable = self->readable };
    memcpy(unread.because, self->unread_because, sizeof unread.because);
    // mutant: older: nobody hears that a save cannot be read
    outbox_mail(out, "coordinator", FRAME_UNREAD, &unread);
}

static void hear_built(struct replica *self, const struct wire_built *built, struct outbox *out)
{
    self->built = built->ok;
    self->floats = built->floats;
    ensure(built->items_count <= REPLICA_ITEMS_MAX);
    self->items_count = built->items_count;
    for (uint32_t i = 0; i < built->items_count; i++) self->items[i] = built->items[i];
    if (!built->ok) // A lack of memory may pass; a wrong shape does not
        outbox_quit(out, built->may_pass ? EX_TEMPFAIL : EX_CONFIG,
                    "the run cannot be trained here: %s", built->reason);
}

static void hear_loaded(struct replica *self, struct member *member,
                        const struct wire_loaded *loaded, struct outbox *out)
{
    self->loading = false;
    if (!loaded->ok) {
        if (self->own_folder && self->pieces) note_unread(self, loaded);
        failed(self, true, loaded->reason, out);
        return;
    }
    // mutant: a checkpoint of an earlier run under its name is loaded
    if (loaded->born_unix_ms && loaded->born_unix_ms != member->born_unix_ms) {
        self->resume.step = RESUME_UNKNOWN;
        failed(self, true, "it is of an earlier run of this name", out);
        return;
    }
    // mutant: restore: a checkpoint given up is loaded
    if (replica_is_given_up(&member->now, loaded->step, loaded->epoch)) {
        if (self->own_folder) self->resume.step = RESUME_UNKNOWN;
        failed(self, self->own_folder, "a restore gave it up", out);
        return;
    }
    self->beginnings++;
    self->holding = true;
    self->failures = 0;
    self->step = self->pin_step = member->step_held = loaded->step;
    self->digest = loaded->digest;
    // mutant: restore: a checkpoint given up is loaded (2)
    self->epoch = loaded->epoch;
    self->told = false;
    self->tell_ms = 0;
    self->stuck_ms = 0;
}

void replica_move(struct replica *self, struct member *member, uint64_t step,
                  const struct hash *digest, uint64_t epoch)
{
    self->step = member->step_held = step;
    member->steps_taken++;
    self->digest = *digest;
    self->epoch = epoch;
    self->stuck_ms = 0;
    self->told = false;
    self->tell_ms = 0;
}

static void hear_fetched_model(struct replica *self, const struct member *member,
                               const struct wire_fetched_model *fetched, struct outbox *out)
{
    self->fetching = false;
    if (!fetched->ok) {
        tell_unread(self, member, out);
        failed(self, false, fetched->reason, out);
        return;
    }
    outbox_note(out, "model.fetched step=%" PRIu64 " bytes=%" PRIu64 " holders=%u", fetched->step,
                fetched->bytes, fetched->holders);
    self->loading = true;
    self->own_folder = false;
    outbox_job(out, PORT_LEARNER, FRAME_LOAD,
               &(struct wire_load){ .step = fetched->step, .epoch = self->fetched_epoch });
}

// Drops the held parameters, so that the right ones are obtained.
static void start_over(struct replica *self, bool peers_turn)
{
    self->holding = false;
    self->failures = 0;
    self->peers_turn = peers_turn;
    self->stuck_ms = 0;
    self->end_digest = (struct hash){ { 0 } }; // A restore may have given up that epoch's end
    self->beginnings++;
    self->ready = false;
}

void replica_repair(struct replica *self, struct outbox *out)
{
    char hex[HASH_HEX];
    outbox_note(out,
                "model.differs step=%" PRIu64 " ours=%.16s; fetching the intervals that differ",
                self->step, hash_to_hex(&self->digest, hex));
    if (self->own_folder && self->resume.step == self->step) self->resume.step = RESUME_UNKNOWN;
    // mutant: a replica that is stuck on its own folder tries it again
    start_over(self, true);
}

void replica_drop(struct replica *self, const char *why, struct outbox *out)
{
    outbox_note(out, "model.dropped step=%" PRIu64 " because=\"%s\"; fetching the pinned step",
                self->step, why);
    if (self->own_folder) self->resume.step = RESUME_UNKNOWN;
    start_over(self, true);
}

// At the given recorded step: checks our digest, and pins the step once. False: our digest differs.
static bool settle(struct replica *self, uint64_t step, const struct hash *digest,
                   struct outbox *out)
{
    if (step != self->step || hash_is_none(digest) || hash_is_none(&self->digest)) return true;
    if (!hash_equal(digest, &self->digest)) return false;
    if (self->pin_step == step) return true;
    self->pin_step = step;
    outbox_job(out, PORT_LEARNER, FRAME_PIN, &(struct wire_pin){ step });
    return true;
}

// EPOCH_END is news and may be lost. RUN names the same step later. A restore gives up the ends of epochs, too: the
// run comes to such a step again, with another state (seed 18265).
static bool settle_epoch_end(struct replica *self, const struct wire_run *run, struct outbox *out)
{
    // mutant: restore: the end of an epoch that was given up binds
    if (replica_is_given_up(run, self->end_step, self->end_epoch))
        self->end_digest = (struct hash){ { 0 } };
    // mutant: only the news say which step is pinned
    return settle(self, self->end_step, &self->end_digest, out) &&
           settle(self, run->pin_step, &run->pin_digest, out);
}

static void hear_ack(struct replica *self, const struct wire_ack *ack)
{
    if (ack->kind == FRAME_HOLDS && self->holding && ack->round == self->step &&
        hash_equal(&ack->hash, &self->digest))
        self->told = true;
}

static void hear_refused(struct replica *self, const struct wire_refused *refused,
                         struct outbox *out)
{
    if (refused->kind == FRAME_HOLDS && refused->reason == REFUSAL_WRONG_MODEL && self->holding &&
        refused->round == self->step && !self->applying)
        replica_repair(self, out);
}

void replica_hear(void *state, const struct member_turn *turn)
{
    struct replica *self = state;
    struct member *member = turn->member;
    const void *body = turn->in->body;
    struct outbox *out = turn->out;
    if (turn->heard & HEARD_CONFIG) outbox_job(out, PORT_LEARNER, FRAME_BUILD, &member->config);
    if (turn->heard & HEARD_REBORN) { // The coordinator restarted and has lost what we hold
        self->told = false;
        self->tell_ms = 0;
    }
    if (turn->heard & HEARD_EPOCH_END) {
        self->end_epoch = ((const struct wire_epoch_end *)body)->epoch;
        self->end_step = ((const struct wire_epoch_end *)body)->step;
        self->end_digest = ((const struct wire_epoch_end *)body)->digest;
    }
    if (turn->heard & HEARD_REFUSED) hear_refused(self, body, out);
    if (turn->heard & HEARD_ACK) hear_ack(self, body);
    switch (turn->in->kind) {
    case FRAME_RESUME: self->resume = *(const struct wire_load *)body; break;
    case FRAME_BUILT: hear_built(self, body, out); break;
    case FRAME_LOADED: hear_loaded(self, member, body, out); break;
    case FRAME_FETCHED_MODEL: hear_fetched_model(self, member, body, out); break;
    }
}

// ---- going on -----------------------------------------------------------------------------------

void replica_tell(struct replica *self, const struct member *member, uint64_t now_ms,
                  struct outbox *out)
{
    bool awaited = member->now.phase == PHASE_WARMUP || member->now.phase == PHASE_COOLDOWN ||
                   member->now.phase == PHASE_WAITING || member->now.phase == PHASE_PAUSED;
    // mutant: what is held is told once and for all
    if (self->told_seq != member->now.log_seq) { // It may have lost it: told again for each RUN
        self->told_seq = member->now.log_seq;
        self->told = false;
        self->tell_ms = 0;
    }
    if (!awaited || self->tells_later || self->told || now_ms < self->tell_ms ||
        self->step != member->now.step)
        return;
    if (hash_is_none(&self->digest)) return;
    self->tell_ms = now_ms + MEMBER_RETRY_MS;
    outbox_mail(out, "coordinator", FRAME_HOLDS,
                &(struct wire_holds){ self->epoch, self->step, self->digest });
}

// True if the replica can only continue from the pinned step: it is so far behind that peers have
// dropped the blobs in between, or one of them is not available.
static bool is_left_behind(const struct replica *self, const struct member *member, uint64_t now_ms)
{
    bool stuck = self->stuck_ms && now_ms - self->stuck_ms > REPLICA_STUCK_MS;
    if (self->follows_pins)
        return member->now.pin_step > self->step && !hash_is_none(&member->now.pin_digest);
    if (self->can_replay && !stuck) return false;
    return member->now.pin_step > self->step + (stuck ? 0 : 2 * member->config.snapshot_rounds);
}

void replica_look(void *state, const struct member_turn *turn)
{
    struct replica *self = state;
    struct member *member = turn->member;
    const uint64_t now_ms = turn->in->now_ms;
    struct outbox *out = turn->out;
    self->ready = false;
    if (!self->built || !member->admitted || !member->has_run || self->loading || self->applying)
        return;
    if (self->holding && replica_is_given_up(&member->now, self->step, self->epoch)) {
        outbox_note(out, "model.restored step=%" PRIu64 " run=%" PRIu64 "; going back with it",
                    self->step, member->now.restored_step);
        if (self->resume.step > member->now.restored_step) self->resume.step = RESUME_UNKNOWN;
        start_over(self, false);
    } else if (self->holding && is_left_behind(self, member, now_ms)) {
        outbox_note(out, "model.behind step=%" PRIu64 " run=%" PRIu64 "; fetching the pinned step",
                    self->step, member->now.step);
        // mutant: a replica that is stuck on its own folder tries it again (2)
        start_over(self, true);
    }
    if (!self->holding && member->step_held > 0) member->ping_ms = now_ms; // Said at once
    // mutant: a dropped state is told in each PING
    if (!self->holding) member->step_held = 0;
    if (self->fetching) return;
    if (!self->holding) {
        if (self->waits_for_pin && member->now.pin_step != member->now.step) return;
        if (self->needs_no_state && phase_makes_steps(member->now.phase)) return;
        obtain(self, member, now_ms, out);
        return;
    }
    self->ready = settle_epoch_end(self, &member->now, out);
    if (!self->ready) replica_repair(self, out);
}
