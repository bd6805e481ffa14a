#pragma once
// round_line -- the line that a trainer writes to the log for each commit that its replica has
// applied: step, its own loss, learning rate, the run's tokens per second.
//
//     round.trained name=trainer.3fa2b1c4d5e6f708 step=100 loss=2.713 lr=0.0004 tokens_per_s=12345
//
// It follows from the learner's jobs and answers. There is no line for a commit that the trainer
// applies while it catches up, and no loss where it trained nothing for the commit.

#include "common/member/member.h"

struct round_line {                      // Zeroed: nothing heard
    uint64_t trained_step, applied_step; // Of the newest TRAIN, the newest APPLY
    float loss, lr;
    bool has_loss; // A result for trained_step was made
};

enum { ROUND_LINE_MAX = 256 };

// Takes a job of the learner or its answer. True: a commit was applied, and `text` is its line.
bool round_line_hear(struct round_line *self, const struct member *member, uint16_t kind,
                     const void *body, char text[ROUND_LINE_MAX]);
