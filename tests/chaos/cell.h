#pragma once
// cell -- one field of the kill matrix: a small run in which one actor is hit in one phase.
//
//     start ──▶ hold the phase ──▶ hit the victim ──▶ let go ──▶ the run ends ──▶ check
//
// Phases are too short to be hit by luck. So one actor, the holder, is stopped in the phase, at a
// failpoint or by a signal, and holds it open; every limit of the run is longer than a cell, so no
// wait for the holder ends early. The instant is known from the run's news and from the holder's
// log, never from a clock.
//
//     Waiting     trainer2 is not there yet       Cooldown    the checkpointer does not write yet
//     Warmup      trainer2 has not loaded         Checkpoint  its files are there, its manifest not
//     Train       trainer2 has not trained        Transfer    a newcomer has fetched, not loaded
//     Witness     witness0 has not voted        Have        trainer2 has the sum, and says nothing
//
// A strategy has the phases and actors of its own pace; the other cells are left out. Of windows,
// Train and Have are held in the middle of one, and a newcomer fetches between two epochs.
//
// What a cell shows: the run finishes; all replicas, the ledger and the last checkpoint agree
// (testbed_finish); and where the victim's absence may cost time but no work, the digest of the end
// is that of the same run undisturbed. Only a trainer of rounds that dies may change it: its
// residual is lost. An undisturbed run of allreduce must end in the digest of `shoal train`. A run that is
// not in step promises none.

#include "common/base/hash.h"
#include "tests/live/testbed.h"
#include <stdbool.h>

enum cell_phase {
    CELL_WAITING,
    CELL_WARMUP,
    CELL_TRAIN,
    CELL_WITNESS,
    CELL_COOLDOWN,
    CELL_CHECKPOINT,
    CELL_TRANSFER,
    CELL_HAVE,
    CELL_PHASES
};
enum { CELL_VICTIMS = 7, CELL_SIGNALS = 3, CELLS = CELL_VICTIMS * CELL_PHASES * CELL_SIGNALS };

struct cell {
    enum testbed_strategy strategy;
    unsigned victim; // Into cell_victims
    enum cell_phase phase;
    int signal; // SIGKILL, SIGSTOP (for ten seconds), SIGTERM; 0: undisturbed
};

struct cell_result {
    bool finished; // And all that testbed_finish checks
    double seconds;
    struct hash digest;
    uint64_t voids,
        partial; // Rounds that committed nothing, or less than was dealt; windows that closed early
};

extern const char *const cell_victims[CELL_VICTIMS], *const cell_phases[CELL_PHASES];

struct cell cell_at(enum testbed_strategy strategy, unsigned index); // 0 .. CELLS - 1
bool cell_is_left_out(const struct cell *cell); // Its strategy has no such actor or phase
void cell_name(const struct cell *cell, char ret_name[64]); // "coordinator Train SIGKILL"
bool cell_promises_digest(const struct cell *cell);

// Runs in a process of its own, which a failure ends; its output and its actors' logs are in the
// file `log`. The directory of a failed cell stays, and the log names it.
struct cell_result cell_run(const struct cell *cell, const char *log);
