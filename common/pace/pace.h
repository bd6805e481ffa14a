#pragma once
// pace -- how the steps of a run come to be committed: the coordinator's half of one protocol.
//
//     Warmup is over ─▶ begin ─▶ hear, hear ... ─▶ settle: a commit, the next ... ─▶ why the epoch is over
//
// The coordinator knows members and their leases, phases, the table of samples, pins, checkpoints and orders.
// In the phases that make steps it leaves everything to the pace of the run. Rounds (common/pace/rounds) is
// the pace for strangers. The member's half of the same protocol lies in the same folder.
//
// A new pace is a folder of its own and one line in paces.def. tests/pace is a small one, an example.
//
// What a pace knows has two halves. What must survive is durable: it lies in the run (struct run_pace) and
// changes by records alone. What members would say again is live: it lies in the memory that the functions
// below get as `self`, and a restart of the coordinator empties it.
//
// Every function is pure: all that it may see is the turn, and what it says goes to turn->out, after the
// record that justifies it. A function marked (optional) may be NULL.

#include "common/pace/turn.h"

struct evidence;

enum {
    PACE_LIVE_BYTES = 20 << 20, // Room for the live half of any pace, most of it never touched
    PACE_EVIDENCE_BYTES = 8 << 20,
    PACE_COUNTS_MAX = 8
};

struct pace {
    const char *name;    // In plain words, for logs
    uint16_t config;     // The kind of its part of CONFIG; a run has the pace whose part it has
    size_t live_bytes;   // Of `self`, at most PACE_LIVE_BYTES. Zeroed memory is its start
    struct run_pace run; // The durable half

    // ---- the phases that make steps ----

    // Why no step can be made now, in plain words ("no witness is in the run"), or NULL. (optional)
    const char *(*lacks)(const struct turn *turn);

    // Warmup is over. It must leave Warmup: run_enter, in the record that it puts.
    void (*begin)(void *self, const struct turn *turn);

    // A new life of the coordinator: what was open is taken up again from the record. Only what has no
    // record is said again. Called in every phase. (optional)
    void (*resume)(void *self, const struct turn *turn);

    // One message. False: none of its kinds, and nothing was done. (optional: PINGs say all that it needs)
    bool (*hear)(void *self, const struct turn *turn, const struct msg *in);

    // Does what has ripened, by what was heard, by who is here, or by the clock. Returns why the epoch is
    // over, or NULL. Called until nothing changes any more; each phase is told in between.
    const char *(*settle)(void *self, const struct turn *turn);

    // When `settle` is due if nothing is heard meanwhile, besides the end of the phase; 0: never. (optional)
    uint64_t (*due_ms)(const void *self, const struct turn *turn);

    // ---- what is told ----

    // The number of what is open, which members must know of: it is told once; 0: nothing is open.
    uint64_t (*open)(const struct run *run);

    // What is open, as mail to an actor, or as news if `to` is NULL.
    void (*tell)(const struct turn *turn, const char *to);

    // The steps that a record commits, for the ledger's index and for reports: [begin, end), empty: none.
    struct interval (*commits)(uint16_t kind, const void *record);
    uint16_t commit_frame; // The frame that tells such a record again, to members that missed it

    // ---- members ----

    // One who took part in the newest step waits, pending: a joiner may get the model from it.
    bool (*peer_waits)(const struct run *run);

    // Without it, something that is committed would be lost.
    bool (*needs)(const struct turn *turn, uint32_t member);

    // A trainer that joins now takes part at once, and need not wait for the next epoch. (optional: never)
    bool (*admits)(const struct turn *turn);

    // Another process is at this place, or another member. (optional)
    void (*hear_arrival)(void *self, uint32_t member, bool takes_place);

    // How far a member may be ahead of the newest commit, in steps. (optional: 0)
    uint64_t (*ahead)(const struct run *run);

    // The part of the parameters that a member holds, [0, PACE_WHOLE) being all of it; empty: none.
    // (optional: trainers and checkpointers hold all of it)
    struct interval (*held_by)(const struct run *run, uint32_t member);

    // ---- evidence.h: what its records prove ----

    const char *evidence_counts[PACE_COUNTS_MAX]; // Names of what was borne out; NULL: no more
    size_t evidence_bytes; // Of its state in struct evidence, at most PACE_EVIDENCE_BYTES
    // The next record, after what all paces share was checked, before it is changed. False, and why in
    // evidence->text: it does not follow from the records before it.
    bool (*verifies)(struct evidence *evidence, uint16_t kind, const void *record);
};

#define PACE_WHOLE UINT64_MAX

// All that this program has, NULL at the end (paces.def).
extern const struct pace *const paces[];

// The pace of a run with such rules; NULL: this program has none of that kind.
const struct pace *pace_of(const struct rules *rules);

// What the optional functions say, or what is so without them.
const char *pace_lacks(const struct turn *turn);
bool pace_admits(const struct turn *turn);
uint64_t pace_ahead(const struct turn *turn);
struct interval pace_held_by(const struct turn *turn, uint32_t member);
