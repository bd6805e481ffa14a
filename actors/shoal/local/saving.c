// saving -- the order has a new number each time, so that one that came too early, while the run waited
// for members, does not make the coordinator pass over the next one.

#include "actors/shoal/local/saving.h"
#include "common/base/clock.h"
#include <string.h>

enum { SAVE_MS = 60000, AGAIN_MS = 1000 };

// Ours may not be in the run yet; the order is given again until it is.
static bool has_checkpointer(const struct testnet *net)
{
    const struct roster *roster = &net->view->roster;
    for (uint32_t i = 0; i < net->fleet.count; i++)
        if (net->fleet.children[i].pid && strcmp(net->fleet.children[i].name, "checkpointer") == 0)
            return true;
    for (uint32_t i = 0; i < roster->count; i++)
        if (roster->members[i].role == ACTOR_CHECKPOINTER &&
            roster->members[i].state == MEMBER_HEALTHY)
            return true;
    return false;
}

uint64_t saving_at_risk(const struct testnet *net)
{
    const struct wire_run *now = &net->view->now;
    const uint64_t begin = net->config.progress_step - 1; // Steps that were done before the run
    const uint64_t saved = now->checkpoint_step > begin ? now->checkpoint_step : begin;
    if (!config_sums(&net->config) || now->phase == PHASE_FINISHED) return 0;
    return now->step > saved ? now->step - saved : 0;
}

bool saving_begin(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why)
{
    // The checkpointer has cooldown_time to write one; the group has to finish a step before.
    const uint64_t patience_ms =
        net->config.cooldown_ms > SAVE_MS ? net->config.cooldown_ms : SAVE_MS;
    *self = (struct saving){ .step = net->view->now.step, .end_ms = now_ms + patience_ms };
    return saving_at_risk(net) > 0 && has_checkpointer(net) && testnet_become_owner(net, why) == 0;
}

uint64_t saving_order(struct saving *self, struct testnet *net, uint64_t now_ms)
{
    if (now_ms < self->order_ms) return self->order_ms;
    const struct wire_control order = { .action = ACTION_CHECKPOINT,
                                        .incarnation = net->view->incarnation,
                                        .number = clock_unix_ms() };
    tap_mail(net->tap, "coordinator", FRAME_CONTROL, &order);
    self->order_ms = now_ms + AGAIN_MS;
    return self->order_ms;
}

// A save in pieces of a step that was due anyway may be recorded after the order: the run went on behind it,
// and the checkpoint that was ordered is still to come.
static bool is_saved(const struct saving *self, const struct testnet *net)
{
    const struct wire_run *now = &net->view->now;
    return now->checkpoint_step >= self->step &&
           (saving_at_risk(net) == 0 || !now->checkpoint_pieces);
}

// It has ended, and is not started again: somebody else told it to end, as when all processes get SIGTERM.
static bool is_gone(const struct child *child) { return !child->pid && !child->due_ms; }

bool saving_is_over(const struct saving *self, const struct testnet *net, uint64_t now_ms)
{
    const struct wire_run *now = &net->view->now;
    return is_saved(self, net) || now->phase == PHASE_FINISHED || net->insists ||
           now_ms >= self->end_ms || is_gone(&net->fleet.children[0]) || is_gone(net->coordinator);
}
