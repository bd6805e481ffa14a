// TRAIN names the step that is trained from, TRAINED the loss, APPLY the step that a commit leads on
// from and its learning rate, APPLIED the step after it. The loss counts if both begin at one step.

#include "common/member/round_line.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Behind the run by more than the commit that is being applied.
static bool is_catching_up(const struct member *member, uint64_t step)
{
    return member->has_run && step + 1 < member->now.step;
}

static bool print(const struct round_line *self, const struct member *member,
                  const struct wire_applied *applied, char text[ROUND_LINE_MAX])
{
    char loss[32] = "";
    const bool trained = self->has_loss && self->trained_step == self->applied_step;
    if (!applied->ok || (!trained && is_catching_up(member, applied->step))) return false;
    if (trained) snprintf(loss, sizeof loss, " loss=%.4g", (double)self->loss);
    snprintf(text, ROUND_LINE_MAX,
             "round.trained name=%s step=%" PRIu64 "%s lr=%.6g tokens_per_s=%.0f", member->name,
             applied->step, loss, (double)self->lr, (double)member->now.tokens_per_s);
    return true;
}

bool round_line_hear(struct round_line *self, const struct member *member, uint16_t kind,
                     const void *body, char text[ROUND_LINE_MAX])
{
    switch (kind) {
    case FRAME_TRAIN:
        self->trained_step = ((const struct wire_train *)body)->step;
        self->has_loss = false;
        return false;
    case FRAME_TRAINED:
        self->has_loss = ((const struct wire_trained *)body)->ok;
        self->loss = ((const struct wire_trained *)body)->loss;
        return false;
    case FRAME_APPLY:
        self->applied_step = ((const struct wire_apply *)body)->step;
        memcpy(&self->lr, &((const struct wire_apply *)body)->lr_bits, sizeof self->lr);
        return false;
    case FRAME_APPLIED: return print(self, member, body, text);
    default: return false;
    }
}
