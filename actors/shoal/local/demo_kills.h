#pragma once
// demo_kills -- when the demo kills a process, and whether the process came back. Pure: the caller
// passes the news in; this says when to kill, and the caller kills.
//
//     WAITING ──its step is reached and a round has just opened──▶ DOWN ──it is at work again──▶ BACK
//
// A trainer is back when a commit of a later round has a result of it; the coordinator, when a
// commit comes from its next life.

#include "actors/shoal/run/run_view.h"

enum demo_kill_state { KILL_WAITING, KILL_DOWN, KILL_BACK };

struct demo_kill {
    const char *name; // "trainer-2", "coordinator"
    struct key key;   // Of a trainer; none: the coordinator
    uint64_t at_step;
    enum demo_kill_state state;
    uint64_t round, ms, incarnation; // When it was killed
    uint64_t reborn_ms;              // Coordinator: when its next life was first heard; 0: not yet
    uint64_t back_round, back_ms;
};

// True if the caller must kill the process now. The struct notes it, so the answer is true once.
bool demo_kill_is_due(struct demo_kill *self, const struct run_view *view, unsigned heard,
                      uint64_t now_ms);

// True if the process has just come back. True once.
bool demo_kill_came_back(struct demo_kill *self, const struct run_view *view, unsigned heard,
                         uint64_t now_ms);
