#pragma once
// windows -- the pace for members who trust one another: a group takes many steps on its own word.
//
//     RECORD_WINDOW: steps 40 to 240, their samples, the group ─▶ WINDOW ─▶ step, step, step ... at once
//          RECORD_STEPS: 40 to 131 are committed   ◀── STANDS "I hold 131" of the slowest ◀──┘
//     RECORD_WINDOW: 240 to 440, while the first one is still under way
//          RECORD_STEPS: 131 to 240
//          ...                                     a member dies: STANDS "broken"
//     LEVEL: freeze, where do you stand? ─▶ STANDS, STANDS ─▶ RECORD_STEPS: up to 312, closed
//     RECORD_WINDOW: 312 to 400, with those that are left
//
// A step is an exchange among the members of the group (common/group); no message to the coordinator
// and no fsync is in its way. The rules:
//
//  1. Open. The record of a window justifies every step that its group takes under it. At most two
//     are open: the next one is recorded when the slowest has passed the middle of the newest,
//     unless the epoch is to end.
//  2. Step. A member applies step k when every member of the group has said that it has all that k
//     needs (common/run/holder.h). So if one applied k, each of the others can, from memory. With it
//     comes a check of a part of the state: within 256 steps a member whose state differs is found, named
//     and left out until it has fetched the state; without a majority the run pauses (differ.h).
//  3. Commit. Steps are committed as far as every member of the group has come, once a heartbeat and
//     at a window's end. A step that is committed never goes back.
//  4. Break. When a member says that it cannot go on, its lease runs out, or another process has its
//     key, LEVEL freezes all that live. When they have answered, the window is closed at the newest
//     step that one of them holds, or one step later if all have it (level.h); the next one follows at
//     once, with those that are left. Whom others merely cannot hear is not put out the first time.
//     A process that they call dead and that does not answer is dropped, and so is one that hangs: others
//     have waited for it for step_timeout, and it does not answer for as long again. A group that
//     breaks again and again without a step waits longer each time, up to a lease, and says why.
//  5. Lineage. What a member holds counts only within an open window of which it is a member. A
//     member that comes out of a window at another step than the run fetches the state.
//  6. Stop. A member that leaves, or hears that the run is to pause, asks its group to end after the step
//     in hand (`stop` in HAVE). All end at the same step; the window is closed there, and the next one
//     follows without those that leave. Nothing is lost, unless the process is ended before that.
//  7. The end of an epoch is the barrier at which joiners enter and checkpoints are taken: the group runs
//     out, the last step is pinned. A joiner may end an epoch once its links with all of the group stand
//     (linking.h), but not before 20 times as long as the last barrier took: of it, the time that those of the
//     new window needed, not what Warmup waited besides for links that did not come to stand.
//  8. Memory saves (with shares). After every so many steps each member copies its share in memory, and fetches those of
//     its predecessors. Once all have done so, that is recorded (keeping.h), and the run can go back to that step as
//     long as each share is with somebody: nothing is read from a disk then.
//
//  9. Parameter servers. A run may have servers, each with a share of what the optimizer keeps, for trainers that keep
//     none. A group needs exactly as many as the configuration says: one more stands by, and no epoch ends for it
//     (places.h). When a trainer dies, the step in hand is applied if all servers have what it needs, and the others
//     go on. A trainer holds no state that the run needs: it gets the parameters when a step begins. So one that comes
//     enters the next window, and no epoch ends for it. While there are too few of them the epoch goes on
//     without a window: the servers keep their shares, and nothing is lost.
//
// A place of a group is a process, not a key: a process that restarts has lost its state.
//
//   windows.def          frames, records, parts of CONFIG and SNAPSHOT
//   window.[hc]          one window, and the samples and rate of its steps
//   windows_run.[hc]     the durable half: which windows are open, what is committed of them
//   windows.[hc]         the coordinator's half: commits, and calls those that follow
//   standing.[hc]        ... takes what members say, and knows where the group stands
//   places.[hc]          ... counts a group by roles: trainers compute, parameter servers own
//   opening.[hc]         ... says whether another window is opened, and what is in it
//   linking.[hc]         ... who has links with whom, before a window names them
//   level.[hc]           ... closes a window that broke
//   voided.[hc]          ... deals a void step again, and pauses the run when it is void twice
//   differ.[hc]          ... names the members whose states differ: bad memory, a buggy kernel
//   keeping.[hc]         ... knows which memory saves are whole, and whether the run can go back to one
//   late.[hc]            says who is late, before it is left out
//   windows_member.[hc]  the member's half: gives windows to the learner, ends them, says where it stands
//   windows_member_hear.c  ... takes what the coordinator and the learner say
//   windows_member_keep.c  ... its part of memory saves
//   windows_evidence.c   what the records prove
//
// Pure; one thread.

#include "common/pace/pace.h"
#include "common/pace/windows/late.h"
#include "common/pace/windows/windows_run.h"

enum {
    WINDOW_FIRST_STEPS = 8, // Of a window, while the speed is not known
    WINDOW_GROWTH = 8,      // A window has at most so many times the steps of the one before
    WINDOW_BARRIERS = 20,   // A joiner ends an epoch that lasts at least so many of its barriers
};

// What a member said last of itself (STANDS), newest step first: late words change nothing.
struct stands {
    uint64_t instance; // 0: nothing yet
    uint64_t seq;      // Of the newest word
    uint64_t window, step, level, heard;
    bool has, broken, stopped, leaves, overdue, lost, share;
    // By its newest word alone: the state of this step, from what it has in memory; 0: none. And whether it can be in
    // the next window without a state.
    uint64_t can_make;
    bool enters;
    // Places of the oldest open window, as bits: whose bytes it lacks, and whom it calls dead.
    uint64_t missing, dead;
    uint8_t unsound;   // UNSOUND_: `step` is void
    uint64_t differ;   // The states before `step` differ: these places of its window, as bits
    char links[128];   // "": its links are not known
    char because[128]; // Why it is broken; "": it is not
    uint64_t taken,
        taken_window; // The newest step of which it has taken its part of a save, and where
    // The newest save that it has seen whole: its digest (none: none is), step, and the window of that.
    struct hash saved;
    uint64_t saved_step, saved_window;
    uint64_t copied,
        copied_window; // The newest step of which its share is copied in memory, and where
    // The newest step of which it keeps its own share and those of its predecessors; as `saved`.
    struct hash kept;
    uint64_t kept_step, kept_window;
};

// The trainers that link with one another before a window names them (linking.c).
struct linking {
    uint64_t number; // Of the list; 0: there is none yet
    uint32_t count;
    struct wire_place trainers[WINDOW_MEMBERS_MAX];
    uint64_t since_ms[WINDOW_MEMBERS_MAX]; // In the list since then
    uint64_t linked[WINDOW_MEMBERS_MAX];   // The links that stand, as it says, as bits
    bool has_failed;                       // Warmup could not begin an epoch, as too few are linked
    char words[224];                       // Who waits to join, and why; "": nobody
};

// May be forgotten: a restart empties it, and the next STANDS fill it again.
struct windows {
    struct stands stands[MEMBERS_MAX]; // By index in the roster
    struct linking linking;
    uint64_t commit_ms; // Before this, a part of a window is not committed
    // How fast the group is: of the newest whole window.
    uint64_t began_ms;  // When the oldest open window became that
    uint64_t step_us;   // 0: not known
    uint32_t steps_max; // Of the next window
    // The newest barrier.
    uint64_t barrier_began_ms, barrier_ended_ms, barrier_ms;
    uint64_t barrier_epoch; // That it leads to
    // Of Warmup: the trainers that are linked with one another, by index in the roster, and since when.
    uint32_t linked[WINDOW_MEMBERS_MAX], linked_count;
    uint64_t linked_ms;
    // A break under way (level.c).
    uint64_t level;          // Its number; 0: none
    uint64_t level_ms;       // When LEVEL is said again
    uint64_t began_level_ms; // When LEVEL was said first
    // By place in the oldest open window: since when it is here and has not answered; 0: it is not, or has.
    uint64_t asked_ms[WINDOW_MEMBERS_MAX];
    uint64_t lonely_ms; // Since when others wait for a group of which nobody lives; 0: not so
    // When the newest window was given up, as nobody of its group came back, and since when that was waited for.
    uint64_t given_up_ms, given_up_since_ms;
    // Since when some wait at the end for others who do not say that they are there; 0: nobody does.
    uint64_t behind_ms;
    uint64_t blames;       // Places that are blamed, as bits
    uint32_t last_overdue; // A member that did not in the break before; NO_MEMBER: none
    // Windows in a row that were closed without a step, by the same group; before this the next one is not opened.
    uint32_t fruitless;
    uint64_t open_ms;
    // The newest window was closed before its group had put its shares together. Before the epoch ends those that are
    // left of the group get one more window, behind which it does. `mends`: the newest window is that one.
    bool apart, mends;
    char because[224];     // What the first of them that cannot go on says
    uint32_t pair[2];      // Who blames whom in this break (members); NO_MEMBER: nobody
    uint32_t last_pair[2]; // The same of the break before
    // For the rest of the epoch, by index in the roster; a trainer until too few are left without it (opening.c).
    bool is_left_out[MEMBERS_MAX];
    uint8_t strikes[MEMBERS_MAX]; // Breaks in a row that it alone has seen
    char lacks[224], missed[224]; // For the owner; "": nothing
    uint32_t missed_member;       // Of whom `missed` speaks
    struct late late;
};

struct windows_closing {
    uint64_t left_out; // Places, as bits
    struct wire_voided voided;
    uint64_t differ; // Places, as bits
};

// Records that the steps up to `end` are committed, and no more of the windows that are open.
void windows_close(struct windows *self, const struct turn *turn, uint64_t end,
                   const struct windows_closing *closing);

bool windows_verifies(struct evidence *evidence, uint16_t kind, const void *record);
