#pragma once
// leases_member -- the member's half of leases: gives its learner the group and one task after the other, and tells
// the coordinator what came of them.
//
//     nothing in hand ──GROUP, its step is held──▶ in hand: TAKE_GROUP ─▶ GROUP_FORMED
//            ▲                                       │ GET_TASK ─▶ TASK ─▶ TRAIN_TASK ─▶ TASK_TRAINED ─▶ TASK_END
//            │                                       │ CLOSE_GROUP ─▶ SETTLE_GROUP ─▶ GROUP_SETTLED ─▶ SETTLED
//            │                                       │ SAVE_SHARE, to a server ─▶ TAKE_SHARE ─▶ SHARE_TAKEN ─▶ BUSY
//            │                                       │ COPY_SHARE, to a server ─▶ TAKE_COPY ─▶ COPY_TAKEN ─▶ BUSY
//            │                                       │ KEEP_SHARES ─▶ GIVE_LISTS ─▶ LISTED ─▶ the keeper ─▶ BUSY
//            └── END_GROUP ◀── RUN: the epoch is over, or a newer GROUP
//
// A parameter server gets no tasks: its learner serves pushes and pulls over its links. While a group is in hand the
// learner is busy: nothing is loaded, pinned or told (replica.applying). When it is over, the state that was put
// together is that of the run's step; a member that has put none together drops what it has and fetches the pinned
// step.
//
// A trainer asks for a task once its links stand: the time of a task runs from when it is dealt.
//
// What is said by mail may be lost: TASK_END is said again until it is answered, SETTLED until the group is over,
// GET_TASK and BUSY once a heartbeat. What comes under an old number is ignored.
//
// After three tasks in a row that failed the process ends (75), once the end of the last one is heard: what is wrong with
// it may be over when it is started again, and until then it gets no task.
//
// Pure; one thread.

#include "common/member/keeper.h"
#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include "common/pace/leases/leases_group.h"

struct leases_member {
    struct wire_group group; // The newest that was told; number 0: none
    struct wire_place places[LEASES_GROUP_MAX];
    uint64_t in_hand; // The group that the learner has; 0: none
    uint64_t epoch;   // Of that one
    bool formed;      // The links of that one stand
    uint64_t over;    // Groups up to this are not begun (again)

    uint64_t lease, newest;   // In the learner's hands, 0: none; and the newest that it has got
    struct wire_task_end end; // Not answered yet; lease 0: none
    uint32_t failed;          // Tasks in a row

    struct wire_close_group
        closing;                 // The newest attempt that the learner was given; attempt 0: none
    struct wire_settled settled; // Its answer; attempt 0: none yet
    uint64_t save_step; // The newest step that the learner was told to save in this group; 0: none
    uint64_t copy_step; // The same for a copy in memory
    uint64_t list_step; // The newest of whose copies it was given all lists
    struct keeper keeper;

    struct wire_busy busy; // As it is told
    uint64_t say_ms, ask_ms, end_ms, settle_ms, run_ms;
};
