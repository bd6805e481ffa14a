#pragma once
// run_view -- what an observer knows of a run, from its news alone. Pure: the caller passes
// messages in. It decides nothing. News may be lost, and then the view lacks them: the ledger is
// the authority.
//
//     unsigned heard = run_view_hear(view, &letter.msg);
//     if (heard & VIEW_COMMIT && run_view_accepts(view, &key)) ...
//
// The news of a pace tells which one the run has: rounds, windows or leases. Until some was heard nothing is
// said of either.

#include "common/actor/msg.h"
#include "common/actor/run_words.h"
#include "common/pace/rounds/round.h"

enum view_heard {
    VIEW_RUN = 1,
    VIEW_ROSTER = 2,
    VIEW_ROUND = 4,  // ROUND: one that was not open before
    VIEW_COMMIT = 8, // A round ended that had not ended before; or steps were committed
    VIEW_EPOCH_END = 16,
    VIEW_PROGRESS = 32,
    VIEW_REBORN = 64,  // The coordinator has restarted
    VIEW_PHASE = 128,  // Another phase than before
    VIEW_WINDOW = 256, // WINDOW or GROUP: a later one than before
    VIEW_PUSHES = 512  // PUSHES of the newest group
};

enum { VIEW_GROUP_MAX = 64 };

struct view_window {      // The newest WINDOW, or GROUP: then with number and members alone
    uint64_t number;      // 0: none was heard
    uint64_t step, steps; // It may be opened before the one before it is over
    uint64_t samples;     // Of all its steps
    uint32_t members[VIEW_GROUP_MAX], members_count; // Of its group, by index in the roster
    uint64_t end;           // Steps before it are committed, as the newest STEPS says
    uint64_t commit_window; // The number of that STEPS; 0: none was heard
    uint64_t commit_steps, commit_samples; // How many steps it committed, and their samples
};

struct view_pushes { // The newest PUSHES
    uint64_t number; // Of its group; 0: none was heard
    struct wire_push_line lines[VIEW_GROUP_MAX];
    uint32_t count;
};

struct view_progress {    // Of one trainer, as it reported it
    uint64_t step, round; // round: the newest of which it has a result
    uint32_t samples;     // Of windows: how many of a batch are its part
    struct hash digest;   // Of the parameters of that step; none: nothing heard
};

struct run_view {
    uint64_t incarnation, run_seq, roster_seq; // Of the coordinator; of its newest RUN and roster
    uint64_t pushes_seq;                       // Of its newest PUSHES
    uint64_t roster_incarnation;               // Of the life that told the roster
    uint64_t beats;                            // How many BEATs were heard: it lives
    struct wire_run now;                       // has_run: at least one RUN was heard
    bool has_run;
    struct roster roster;
    struct view_progress progress[MEMBERS_MAX]; // By member
    const struct run_unit *unit;                // NULL: not known yet
    struct round round;                         // The newest, and the newest commit
    struct view_window window;                  // The same of windows
    struct view_pushes pushes;                  // Of leases
};

// About 10 MiB, most of it never touched: on the heap, zeroed. Returns a mask of enum view_heard;
// 0: nothing new. What an older life of the coordinator says is ignored.
unsigned run_view_hear(struct run_view *self, const struct msg *in);

// NO_MEMBER: no member with this key is known.
uint32_t run_view_member(const struct run_view *self, const struct key *key);

// Whether the newest commit has a result of this member. False as well if its round was not heard.
bool run_view_accepts(const struct run_view *self, const struct key *key);

const char *run_view_phase(const struct run_view *self); // "RoundTrain"; of windows "Train"

// Whether the member is in the group of the newest window.
bool run_view_in_group(const struct run_view *self, uint32_t member);
