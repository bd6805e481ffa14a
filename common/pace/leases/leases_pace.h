#pragma once
// leases_pace -- the pace of asynchronous parameter servers: trainers pull tasks, one at a time each, and push what
// comes of them to the servers; nobody waits for anybody.
//
//     RECORD_GROUP: trainers t1 t2, servers s1 s2 ─▶ GROUP ─▶ they link
//     t1 GET_TASK ─▶ RECORD_LEASE 17 ─▶ TASK 17 ─▶ pushes and pulls ─▶ TASK_END 17 ─▶ RECORD_LEASE_END: step 40 to 44
//     t2 GET_TASK ─▶ RECORD_LEASE 18 ─▶ TASK 18 ─▶ ...                 (and the next task)
//     a joiner waits ─▶ no more tasks ─▶ none is out ─▶ RECORD_CLOSE ─▶ CLOSE_GROUP ─▶ SETTLED, SETTLED ...
//          ─▶ RECORD_SETTLED ─▶ Cooldown: the state of that step is pinned, and joiners fetch it
//
// The rules:
//
//  1. Group. Its record names processes, and is fixed for the epoch: a process that restarts has lost its state, and
//     enters when the next epoch begins, as joiners do (muster.h). A server more than the configuration says stands by.
//  2. Tasks. A trainer has one lease at a time. It is durable before TASK goes out. What leases are, and when a task is
//     given up, common/run/leases.h says; who gets one, dealing.h.
//  3. Steps. A step of the run is a batch of trained samples, counted from the group's beginning: RECORD_LEASE_END
//     commits as many as its samples complete. What is left of a step when the epoch ends is trained, and of no step;
//     only a group that has committed none makes a step of what it did, so that no two states have one number.
//     Tasks are at-least-once: a lease that is late may have been trained in part, and is dealt again.
//  4. A trainer that dies, leaves, or says that it cannot go on costs the task in its hands: its lease ends with a
//     strike. The others go on, as long as one is left, whatever min_clients says: that many are needed to begin.
//     A process gives a task one strike; and one that has failed three tasks in a row gets none, and is in no group, until
//     it is started again (leases_is_unwell). A trainer ends itself then, so that it is.
//     A trainer that lives, and whose links to the servers broke, gets new links in the next group. The epoch ends for
//     it, as for a joiner. If its links break in two groups in a row it is in no group for a while (muster_note_cuts):
//     a trainer and a server that stay cut off from each other stop nobody else.
//  5. A server that dies, or cannot go on, takes its share of the state along: the epoch ends at once, and the run goes
//     back to the newest state that is kept, in memory or on disk. Its place is named.
//  6. The end of an epoch: no more tasks are dealt; those that are out are waited for, at most until they are late;
//     then the members of the group that are left put the state together, so that each holds all of it (closing.h). A
//     trainer's death meanwhile costs an attempt. If their digests differ the run pauses, and names them.
//  7. Saves. Each server writes its share to a shared folder on the way, if there is one (saving.h). The share is as far
//     as pushes have come by then: it has all that the save's step says, and perhaps more, which is trained again. Without
//     a folder the epoch ends for a save. With strategy.memory_every each server also copies its share in memory, and
//     keeps those of its predecessors (copying.h): a server that dies costs the steps since then, and no disk is read.
//
//   leases.def           frames, records, parts of CONFIG and SNAPSHOT
//   leases_group.[hc]    what follows from the configuration and a group
//   leases_run.[hc]      the durable half: the group, its leases, how it is closed
//   leases_pace.[hc]     the coordinator's half: what the coordinator asks, and the order in which things are due
//   muster.[hc]          ... who is in a group, what an epoch lacks to begin, who waits to join
//   dealing.[hc]         ... who gets a task, and how leases end
//   closing.[hc]         ... who lives, and how a group puts its state together
//   saving.[hc]          ... saves in pieces, beside the training
//   copying.[hc]         ... memory saves: servers keep copies of one another's shares
//   leases_member.[hc]   the member's half: gives the learner its group and its tasks, and says what came of them
//   leases_evidence.c    what the records prove
//
// RUN has the tasks of the pass by state (count_tasks), which `shoal status --tasks` prints. PUSHES has what each trainer
// says of its pushes, which `shoal status` prints; it is told once a heartbeat, if there are new ones.
//
// Pure; one thread.

#include "common/pace/leases/leases_run.h"
#include "common/pace/pace.h"

enum {
    LEASES_BARRIERS = 20,  // A trainer that waits ends an epoch that is so many of its barriers old
    LEASES_CUTS = 2,       // A trainer whose links break in so many groups in a row is in none
    LEASES_CUT_TIMES = 20, // ... for so many step_timeouts: a group that does not form costs one
    LEASES_BLAME_BEATS = 2, // Whom others call dead has so many heartbeats to show that it is not
};

// What a member said last of itself (BUSY). An earlier word that comes late changes nothing.
struct busy {
    uint64_t instance; // 0: nothing yet
    uint64_t seq;
    char links[128]; // "": its links are not known
    uint64_t number, lease, pushes, discarded, lag;
    float tokens_per_s;
    bool broken, leaves;
    char because[128]; // Why it is broken
    uint64_t dead;     // Places of group `number`, as bits
    uint64_t cut;      // The place that it has no link with, as a bit
    struct wire_share_saved saved;
    struct wire_share_copied copied; // In memory
    struct wire_share_saved kept;
};

// In how many groups one after the other the links of this process broke, or did not form; and until when it is in no
// group, after LEASES_CUTS of them.
struct cut_off {
    uint64_t instance, until_ms;
    uint8_t groups;
};

// What a member of the newest attempt to close the group has answered.
struct settling {
    bool known, ok;
    struct hash digest;
    char because[128];
};

// May be forgotten: a restart empties it, and members say again what it had.
struct lease_pace {
    struct busy busy[MEMBERS_MAX]; // By index in the roster
    // Of the open group, by place.
    // It waits for a task: how many had asked before it, from 1 on; 0: it does not
    uint64_t asked[LEASES_GROUP_MAX];
    uint64_t asked_count;
    bool answered[LEASES_GROUP_MAX]; // It was told so
    // It lacked the samples of its newest task, and gets none before then; 0: it did not
    uint64_t starved_ms[LEASES_GROUP_MAX];
    enum lease_answer none; // Why the newest request got no task
    // By index in the roster: a process, and how many tasks it has failed in a row.
    uint64_t failing[MEMBERS_MAX];
    uint8_t failures[MEMBERS_MAX];
    struct cut_off cut_off[MEMBERS_MAX];     // By index in the roster
    uint64_t ended[LEASES_GROUP_MAX];        // Its newest lease whose end was acknowledged
    uint64_t blamed_ms[LEASES_GROUP_MAX];    // Others call it dead since then; 0: nobody does
    struct wire_lags lags[LEASES_GROUP_MAX]; // Of its pushes, as it said last
    uint64_t pushes_ms, pushes_told;         // PUSHES is told again from then on; what it told
    // The newest attempt to close it, once it was told in this life.
    uint64_t attempt, attempt_ms, tell_ms, settle_by_ms;
    struct settling settling[LEASES_GROUP_MAX];
    char cause[128];       // Why the group is being closed
    uint64_t save_tell_ms; // When servers are told again to save
    uint64_t copy_tell_ms; // The same for copies in memory
    bool copy_keeps;       // They were told to keep one another's, and not to copy
    uint64_t looked_ms;    // When the clock was looked at last
    // The newest barrier, as windows has it. _closing_ms: of it, until the group was over.
    uint64_t barrier_began_ms, barrier_closing_ms, barrier_ended_ms, barrier_ms, barrier_epoch;
    char lacks[224], missed[224]; // For the owner; "": nothing
};

// Copies words of a member that end up on the owner's screen: what is not printable ASCII, or a quote, becomes '?'. There
// is room for all of `said`.
void leases_take_words(char *kept, const char *said);

// Whether this process is in the run, and its lease of membership has not run out.
bool leases_is_intact(const struct run *run, const struct wire_place *place);

// The earlier of two times; 0 is never.
static inline uint64_t leases_earlier(uint64_t a, uint64_t b) { return a && (!b || a < b) ? a : b; }

// The newest word of this process; NULL: it has said nothing.
const struct busy *leases_busy(const struct lease_pace *self, const struct wire_place *place);

// Whether the process in this place is intact, well, and has not said that it cannot go on in this group.
bool leases_is_able(const struct lease_pace *self, const struct run *run, uint32_t place);

// Whether this process has failed LEASES_FAILURES tasks in a row, by its own words. It gets none until it is started
// again: alone in a run it would fail task after task, and the pass would go on without them.
bool leases_is_unwell(const struct lease_pace *self, uint32_t member, uint64_t instance);

// Why a process that is intact is not able, as words behind its name.
const char *leases_why_unable(const struct lease_pace *self, const struct wire_place *place);

// Its places in the open group that are able, as bits.
uint64_t leases_able(const struct lease_pace *self, const struct run *run);

// Mails this to the members in these places of the open group, as bits.
void leases_mail(const struct turn *turn, uint64_t places, uint16_t kind, const void *body);

// The sender's index in the roster, if it is the process that the roster has there; else NO_MEMBER, and an older one
// is refused.
uint32_t leases_sender(const struct turn *turn, const struct msg *in, uint64_t instance);

// What the verifier of a ledger keeps: the durable half, and a table of samples.
struct leases_witness {
    struct leases_run run;
    struct table table;
    struct wire_table_entry memory[2 * TABLE_INTERVALS_MAX];
    struct interval list[TABLE_INTERVALS_MAX]; // Scratch
    uint64_t samples_done, pass_samples;
};
bool leases_verifies(struct evidence *evidence, uint16_t kind, const void *record);
