#pragma once
// checkpointer -- holds a replica, writes it to checkpoints, and serves it to peers.
//
//   EPOCH_END step s ─▶ replica at s, same digest ─▶ SAVE ─▶ SAVED ─▶ CHECKPOINT, until its ACK
//                                                     └▶ HOLDS: the run may go on meanwhile
//   CONTROL checkpoint ─▶ the newest pinned step, as soon as it is committed ─▶ SAVE ...
//
// It keeps on disk the blobs of every commit since its newest checkpoint. So even after all
// processes were killed at once, checkpoint and blobs lead back to the committed digest. Pure.

#include "common/member/pace_part.h"
#include "common/member/replica.h"

enum { CHECKPOINT_INTERVALS_MAX = 4096 }; // Intervals of a position, returned and failed together

struct position_lists {
    struct interval returned[CHECKPOINT_INTERVALS_MAX], failed[CHECKPOINT_INTERVALS_MAX];
};

struct checkpointer {
    struct member member;
    struct blobs blobs;
    struct replica replica;
    struct pace_part pace;
    struct wire_save wanted;   // What is to be saved next; step UINT64_MAX: nothing
    struct wire_save position; // Data position of the pinned step, as the pace told it
    struct position_lists wanted_lists, position_lists;
    bool requested, saving, registering;
    struct hash saving_digest; // Of the newest state that the learner was told to write
    struct hash
        unsaveable; // Of the newest end of an epoch whose data position no manifest has room for
    bool late;      // The previous checkpoint was not on record when the newest epoch ended
    struct wire_checkpoint saved; // The newest on disk
    uint64_t resend_ms, ask_ms;
};

void checkpointer_init(struct checkpointer *self);
void checkpointer_step(void *self, const struct msg *in, struct outbox *out);
