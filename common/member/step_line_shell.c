#include "common/member/step_line.h"
#include "common/actor/run_words.h"
#include <inttypes.h>
#include <stdio.h>

// Behind the run by more than the commit that was just taken.
static bool is_catching_up(const struct member *member)
{
    return member->has_run && member->step_held + 1 < member->now.step;
}

bool step_line(const struct member *member, char text[STEP_LINE_MAX])
{
    char loss[32] = "", rate[32] = ""; // Not known to one that takes no part in training
    const bool trained = member->loss_step == member->step_held;
    if (!trained && (is_catching_up(member) || member_is_pending(member))) return false;
    const struct run_unit *unit = run_words_unit(member->config.strategy.kind);
    const char *event = unit ? unit->trained : "round.trained";
    if (trained) snprintf(loss, sizeof loss, " loss=%.4g", (double)member->loss);
    if (trained || member->step_lr > 0)
        snprintf(rate, sizeof rate, " lr=%.6g", (double)member->step_lr);
    snprintf(text, STEP_LINE_MAX, "%s name=%s step=%" PRIu64 "%s%s tokens_per_s=%.0f", event,
             member->name, member->step_held, loss, rate, (double)member->now.tokens_per_s);
    return true;
}
