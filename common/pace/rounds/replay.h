#pragma once
// replay -- takes a replica from commit to commit, by the results that each of them names.
//
//   COMMIT of step s ─▶ FETCH payloads ─▶ all here, and the replica at s ─▶ APPLY ─▶ s + 1 ─▶ ...
//      ▲                                   └─ its base is not the replica's digest: repair
//      └─ ASK, if the run is ahead of the replica
//
// It applies exactly the results that a commit lists, in order, each once. A missing payload is
// fetched from any holder; a missed commit is asked for. A model whose results have another size
// than the run's ends the process. Trainers and checkpointers use it. Part of
// a core: pure.

#include "common/member/replica.h"

enum { REPLAY_AHEAD = 64, REPLAY_ENTRIES_MAX = 65536 };

struct replay_commit {
    struct wire_commit commit; // Its list lies among the entries
    bool known;
};

struct replay {
    uint64_t beginnings; // The replica's count when the commits below were kept
    uint64_t ask_ms;
    struct hash own_result; // The member's newest: if a commit accepts it, APPLY names its payload,
                            // so that the learner adopts the residual. Set by the training part
    struct replay_commit ahead[REPLAY_AHEAD]; // Commits from the replica's step on, by step modulo
    uint32_t entries_used;
    struct wire_accepted entries[REPLAY_ENTRIES_MAX];
    struct wire_blob payloads[MEMBERS_MAX]; // Scratch of one APPLY
};

// True if this step's commit is known or applied: its payloads are still needed.
bool replay_knows_commit(const struct replay *self, const struct replica *replica, uint64_t step);

// As a part of a role, right behind the replica; zeroed memory is its start. When nothing more can
// be applied, it makes the replica tell the coordinator what it holds.
void replay_hear(void *self, const struct member_turn *turn);
void replay_look(void *self, const struct member_turn *turn);
