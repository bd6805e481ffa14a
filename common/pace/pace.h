#pragma once
// pace -- how the steps of a run come to be committed: the coordinator's half of one protocol.
//
//     Warmup ends ─▶ begin ─▶ hear, hear ... ─▶ settle: commit, next ... ─▶ why the epoch is over
//
// The coordinator keeps the members and their leases, the phases, the table of samples, the pinned
// steps, the checkpoints and the owner's orders. In the phases that make steps it leaves everything
// to the pace of the run. Rounds (common/pace/rounds) is the pace for members who do not trust each
// other. The member's half of the same protocol lies in the same folder.
//
// A new pace is a folder of its own and one line in paces.def. tests/pace is a small example.
//
// The state of a pace has two halves. The durable half must survive a crash: it lies in the run
// (struct run_pace), and only records change it. The live half is what members resend: it lies in
// the memory that the functions below get as `self`, and a restart of the coordinator empties it.
//
// No function does I/O or reads a clock: it uses its arguments alone. What it says goes to
// turn->out, after the record that justifies it. A function marked (optional) may be NULL.

#include "common/pace/turn.h"

struct evidence;

enum {
    PACE_LIVE_BYTES = 20 << 20, // Room for the live half of any pace, most of it never touched
    PACE_EVIDENCE_BYTES = 16 << 20,
    PACE_COUNTS_MAX = 8
};

// What a record of committed steps says for people, in the files of --log. 0: the pace has none.
struct commit_facts {
    float lr;         // The learning rate of its last step
    uint32_t results; // That its last step applies
};

// A state that lies in members' memory (way_back).
struct way_back {
    struct wire_record_restore point;
    uint64_t window; // That made it
    uint32_t lost; // Where there is no way back: a member whose part is with nobody; else NO_MEMBER
};

struct pace {
    const char *name;    // In plain words, for logs
    uint16_t config;     // The kind of its part of CONFIG; a run has the pace whose part it has
    size_t live_bytes;   // Size of `self`, at most PACE_LIVE_BYTES. It begins as zeros
    struct run_pace run; // The functions of the durable half
    // Members trust one another: those who hold the newest step say what its digest is, however few
    // they are, and no third of the members may lie. Their state lies in their memory alone: if
    // nobody here holds the newest step, the coordinator itself takes the run back to its newest
    // checkpoint: at once if newer processes have replaced all that held it, else after
    // PACE_SEARCH_LEASES leases.
    bool trusted;

    // ---- the phases that make steps ----

    // Why no step can be made now, in plain words ("no witness is in the run"), or NULL. (optional)
    const char *(*lacks)(const struct turn *turn);

    // Whose part the newest step lacked when its time was up, as a sentence, or NULL. Nothing waits
    // for it: it is shown while nothing else is lacking. (optional)
    const char *(*missed)(const void *self);

    // Why the pace itself has paused the run, as a sentence, or NULL. Asked for in Cooldown and
    // Paused. (optional)
    const char *(*why_paused)(const struct turn *turn);

    // Warmup is over. The record that it puts must leave Warmup (run_enter).
    void (*begin)(void *self, const struct turn *turn);

    // The coordinator restarted, in any phase. Rebuilds `self` from the durable half; members
    // resend what was never recorded. (optional)
    void (*resume)(void *self, const struct turn *turn);

    // Takes one message. False: it is of no kind of this pace, and nothing was done. (optional: the
    // pace needs no message of its own)
    bool (*hear)(void *self, const struct turn *turn, const struct msg *in);

    // Makes every transition that is due by now: by messages, by the roster, or by the clock.
    // Returns why the epoch is over, or NULL. It is called again as long as the phase changes, and
    // news is sent after each call.
    const char *(*settle)(void *self, const struct turn *turn);

    // When `settle` is due if no message comes, besides the end of the phase; 0: never. (optional)
    uint64_t (*due_ms)(const void *self, const struct turn *turn);

    // ---- what is told ----

    // The number of what is open and must be known to members (of a round, say); 0: nothing. It is
    // told as news once per number, and once more when the broker has restarted. An actor that asks
    // gets it by mail.
    uint64_t (*open_number)(const struct run *run);

    // Sends what is open: as mail to an actor, or as news if `to` is NULL.
    void (*tell)(const struct turn *turn, const char *to);

    // The steps that a record commits: [begin, end), or empty. For the ledger's index and reports.
    struct interval (*commits)(uint16_t kind, const void *record);
    struct commit_facts (*facts)(const void *record); // Of such a record. (optional: it has none)
    uint16_t commit_frame; // The frame that resends such a record to members that missed it

    // How many tasks of the pass in hand are in which state, and what its trainers say of their pushes, for RUN.
    // (optional: it deals no tasks)
    struct wire_task_counts (*count_tasks)(const struct turn *turn);

    // ---- members ----

    // Whether a trainer of the newest step is pending: then joiners fetch the model from peers.
    bool (*peer_waits)(const struct run *run);

    // Whether this member may be the only one with committed data: then its LEAVE is refused.
    bool (*needs)(const struct turn *turn, uint32_t member);

    // Whether a member that takes steps stays pending though an epoch begins, as it could not take part: so nobody
    // waits until it holds the model. Asked once Warmup is entered. (optional: none does)
    bool (*stays_pending)(const struct turn *turn, uint32_t member);

    // How many parameter servers the run has. One more may join and stand by; where there are none, none may. (optional:
    // none)
    uint32_t (*servers)(const struct rules *rules);

    // Whether a trainer that joins now takes part at once. (optional: it waits for the next epoch)
    bool (*admits)(const struct turn *turn);

    // A dropped, withdrawn or pending member is back, or a new member has this index
    // (`is_new_member`). Not called if a healthy member only restarts. (optional)
    void (*hear_arrival)(void *self, uint32_t member, bool is_new_member);

    // Whether this process took part in the newest step, so that it should hold it, and has not said that it lost it;
    // or it keeps that step for others. In a Cooldown of a trusted pace no other is waited for. (optional: all that are
    // healthy)
    bool (*took_part)(const struct turn *turn, uint32_t member);

    // Whether this process has a part of its state only, by its own words. Nobody waits for it because of what it held
    // when it was heard last, unless it took part. (optional: no)
    bool (*has_part)(const struct turn *turn, uint32_t member);

    // Whether this process is one step before the newest and has all that this step needs, by its own words. (optional:
    // no)
    bool (*is_near)(const struct turn *turn, uint32_t member);

    // The pace has just given up a group, as none of its processes came back: since when it had waited for them. They are
    // not waited for again. 0: it has given up none. (optional: it never does)
    uint64_t (*waited_since)(const struct turn *turn);

    // Whether the state that this process holds of the newest step is known to differ from that of the
    // others: it has no say in what the run's digest is, and keeps no copy. (optional: no)
    bool (*is_doubted)(const struct run *run, uint32_t member);

    // The newest state that lies in the memory of members that are here, in parts, beside what each holds: the run can go
    // back to it. False: there is none, or `lost` is a member whose part of it is with nobody. (optional: none)
    bool (*way_back)(const struct turn *turn, struct way_back *ret_way);

    // How many steps a member may be ahead of the newest commit. (optional: 0)
    uint64_t (*ahead)(const struct run *run);

    // The interval of the parameters that a member is responsible for: [0, PACE_WHOLE) is all of
    // them. (optional: trainers and checkpointers, all of them)
    struct interval (*held_by)(const struct run *run, uint32_t member);

    // ---- what its records prove (evidence.h) ----

    const char *evidence_counts[PACE_COUNTS_MAX]; // What `verifies` counts, by name; ends with NULL
    size_t evidence_bytes; // Of its state in struct evidence, at most PACE_EVIDENCE_BYTES
    // Gets every record before the shared checks, and before the shared state changes: so it checks
    // the indexes in it. False, and why in evidence->text: it does not follow from the records
    // before it.
    bool (*verifies)(struct evidence *evidence, uint16_t kind, const void *record);
};

#define PACE_WHOLE UINT64_MAX

enum { PACE_SEARCH_LEASES = 4 };

// All that this program has, NULL at the end (paces.def).
extern const struct pace *const paces[];

// The pace of a run with such rules; NULL: this program has none of that kind.
const struct pace *pace_of(const struct rules *rules);

// What the optional functions say, or their default where a pace has none.
const char *pace_lacks(const struct turn *turn);
const char *pace_why_paused(const struct turn *turn);
bool pace_admits(const struct turn *turn);
struct commit_facts pace_facts(const struct pace *self, const void *record);
bool pace_took_part(const struct turn *turn, uint32_t member);
bool pace_is_doubted(const struct turn *turn, uint32_t member);
uint64_t pace_ahead(const struct turn *turn);
struct wire_task_counts pace_count_tasks(const struct turn *turn);

// A `needs` for paces in which each holder has all that is committed: others keep the state, and none
// of them says that it is as far as the run.
bool pace_alone_is_as_far(const struct turn *turn, uint32_t member);
struct interval pace_held_by(const struct turn *turn, uint32_t member);
