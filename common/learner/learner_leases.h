#pragma once
// learner_leases -- what the files of the strategy of leases share: learner_leases.c, which hears what the core
// says of groups, learner_leases_train.c, which trains tasks, learner_leases_serve.c, a server, and
// learner_leases_settle.c, which puts the state together, learner_leases_save.c, which saves it, and
// learner_leases_copies.c, which copies it in memory; for them alone.

#include "common/learner/async_server.h"
#include "common/learner/async_trainer.h"
#include "common/learner/bf16_words.h"
#include "common/learner/learner_copies.h"
#include "common/learner/learner_gather.h"
#include "common/learner/learner_inside.h"
#include "common/learner/learner_links.h"
#include "common/learner/learner_saver.h"
#include "common/run/lags.h"

// The number of a group, times this, is the window of its links (group_form); the attempts to put its state together
// take those behind it.
enum { LEARNER_LEASE_WINDOWS = 4096 };

// A task in hand. Its lists lie behind it in one piece of memory.
struct learner_task {
    struct wire_train_task said;
    uint64_t total;   // Samples of it
    uint64_t trained; // The first of them: they are in the sum, or pushed
    uint64_t pushed;  // Of these, how many the servers have dealt with
    uint32_t batch;   // Samples of a batch: the schedule's, at the task's step
    double losses;    // Sum over the samples that are trained
    uint64_t began_us;
    char failed[128]; // Why it cannot go on; "": it can
    bool no_data;     // Because nobody gave its samples
};

// The batch behind what is trained. It is read and, if no pull comes before it, computed while answers are awaited.
struct learner_ahead {
    uint64_t read; // Its samples, in self->tokens; 0: not read yet
    bool done;     // Its gradient is where gradients are computed, and not in the sum
    bool
        failed; // Computing it has failed: it is tried again when the answers are here, and fails then
    double loss;
};

// What a trainer waits for: answers of the servers in these places, to one question that went to all.
struct learner_asking {
    bool is_open;  // It was asked, and what follows from the answers is not done yet
    uint64_t of;   // Places that have not answered, as bits
    bool has_left; // A server has, while we computed, for this reason
    struct why left_why;
    bool pulls; // Else it pushes
    bool stale; // A server has discarded the push
    bool refused;
    char because[128]; // Refused
    uint64_t lag;      // Of this push: the most of all servers
};

struct learner_lease_work {
    struct wire_leases_config config;
    group_t *group;
    struct wire_links links;
    // The group in hand; number 0: none. Its lists are in `members`.
    struct wire_take_group said;
    struct group_member members[GROUP_MEMBERS_MAX];
    struct interval part; // Our share of the parameters; empty: a trainer
    bool lost;            // The state that it begins with is not here
    bool formed;
    bool broken; // GROUP_BROKE has been said
    bool adds;   // A group is being formed or adds: a job that would end that wait waits, if it may
    uint64_t
        suspect_us; // A server has left, and may be dead: until then we wait for the core; 0: none has
    struct why suspect_why;
    // A server's
    struct async_server *server;
    struct learner_saver saver;
    struct learner_copies copies;
    // What each server knew, as the state that is held was saved; NULL: it was not, or by another number of servers.
    struct async_server *loaded;
    uint32_t loaded_count;
    // A trainer's
    float *words; // Room for what travels as bf16; NULL: not taken
    uint64_t words_count;
    struct async_trainer cadence;
    float *sum;         // Of batches, if a push has several; NULL: not taken yet
    bool has_pulled;    // In this group
    uint64_t *versions; // By server, at the newest pull [GROUP_MEMBERS_MAX]
    struct learner_asking asking;
    struct learner_ahead ahead;
    struct learner_task *task;       // NULL: none
    uint64_t pushes, discarded, lag; // In this group, as in BUSY
    struct wire_lags lags;
};

static inline uint32_t learner_lease_trainers(const struct learner *self)
{
    return self->lease->said.group_count - self->lease->said.servers;
}

static inline bool learner_lease_serves(const struct learner *self)
{
    return self->lease->said.place >= learner_lease_trainers(self);
}

// Whether the gradients of a push have a vector of their own. Else a push is where the gradient of its batch was computed.
static inline bool learner_lease_sums(const struct learner *self)
{
    return self->lease->config.push_every > 1 || self->lease->config.pull_every > 1;
}

// Whether what travels is bf16 (bf16_words.h). Then it lies in work->words, and is half as many floats.
static inline bool learner_lease_halves(const struct learner *self)
{
    return self->lease->config.transfer == TRANSFER_BF16;
}

// How many floats of a question or an answer a share is.
static inline uint64_t learner_lease_words(const struct learner *self, struct interval share)
{
    const uint64_t floats = interval_length(share);
    return learner_lease_halves(self) ? bf16_words_count(floats) : floats;
}

// Where those of a share that begins at `begin` lie in work->words. It begins with a leaf, at an even float.
static inline uint64_t learner_lease_words_at(uint64_t begin) { return begin / 2; }

// Takes work->words: of so many floats, or of none.
int learner_lease_take_words(struct learner *self, uint64_t floats, struct why *why);

static inline struct interval learner_lease_share(const struct learner *self, uint32_t server)
{
    return group_interval(self->floats, server, self->lease->said.servers);
}

// A reason as the field `because` of an answer.
void learner_lease_because(char because[128], const struct why *why);

// Says GROUP_BROKE, once in a group. `dead`, `cut`: places, as bits, as in BUSY (leases.def).
void learner_lease_broke(struct learner *self, uint64_t dead, uint64_t cut, const struct why *why);

// A trainer. _begin: a group is taken. _task: takes a task, or answers that it cannot. _drop: no task is in hand any
// more, and nothing is said of it. _train: one thing: a batch, a push, a pull, a wait for answers. False: there is
// nothing to do.
void learner_lease_begin_trainer(struct learner *self);
void learner_lease_task(struct learner *self, const struct wire_train_task *said);
void learner_lease_drop_task(struct learner *self);
bool learner_lease_train(struct learner *self);

// A server. _begin: a group is taken. _serve: waits for a question, and answers it. _end: says in the log what it
// did.
void learner_lease_begin_server(struct learner *self);
void learner_lease_serve(struct learner *self);
void learner_lease_end_server(const struct learner *self);

// Puts the state of the group together, and answers.
void learner_lease_settle(struct learner *self, const struct wire_close_group *said);

// Saves, beside what the group does. _check: whether the shared folder serves. _memory: what a copy of a share takes.
// _begin: a group is taken. _look: has one ended? Says what became of it. _close waits for it. learner_lease_save:
// the job.
int learner_lease_saves_check(const struct learner *self, struct why *why);
uint64_t learner_lease_saves_memory(const struct learner *self, struct interval share);
void learner_lease_saves_begin(struct learner *self);
void learner_lease_saves_look(struct learner *self);
bool learner_lease_saves_have_ended(const struct learner *self);
void learner_lease_saves_close(struct learner *self);
void learner_lease_save(struct learner *self, const struct wire_take_share *said);

// Copies of a server's share in memory. _memory: the most that they take. _begin: a group is taken. _kept: a memory save is
// on record. learner_lease_copy, learner_lease_list: the jobs. _look: has the newest been hashed? _close waits for it.
uint64_t learner_lease_copies_memory(const struct learner *self);
void learner_lease_copies_begin(struct learner *self);
void learner_lease_copies_kept(struct learner *self, const struct wire_kept *said);
void learner_lease_copy(struct learner *self, const struct wire_save_share *said);
void learner_lease_list(struct learner *self, const struct wire_keep_shares *said);
void learner_lease_copies_look(struct learner *self);
bool learner_lease_copies_have_ended(const struct learner *self);
void learner_lease_copies_close(struct learner *self);

// A state has been loaded: from this save (keeps what its servers knew), or, NULL, from elsewhere. Faults of
// pieces_read; FAULT_FOREIGN: what the servers knew cannot be.
int learner_lease_loaded(struct learner *self, const pieces_t *pieces, struct why *why);
void learner_lease_forget_loaded(struct learner *self);
