// saving -- an order has a new number each time, so that one that came too early, while the run waited
// for members, does not make the coordinator pass over the next one.

#include "actors/shoal/local/saving.h"
#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/run/phase.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARK "paused-to-stop"

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

// While steps are made, some may be done that we have not heard of.
bool saving_may_lose(const struct testnet *net)
{
    return saving_at_risk(net) > 0 ||
           (config_sums(&net->config) && phase_makes_steps(net->view->now.phase));
}

// The mark is there before the run can pause: else the next `up` would not know that it has to resume. Where the owner
// has asked for a pause already, the run stays paused.
static bool put_mark(const struct testnet *net, struct why *why)
{
    if (net->view->now.pausing) return true;
    return durable_file_write(net->state_dir, MARK, "", 0, why) == 0;
}

// The work in hand comes to its end first: tasks that are out, or a step. Then the checkpointer has cooldown_time.
static uint64_t patience_ms(const struct run_config *config)
{
    const uint64_t work_ms = config_is_async(config) ? config->task_ms : config->step_timeout_ms;
    return work_ms + (config->cooldown_ms > SAVE_MS ? config->cooldown_ms : SAVE_MS);
}

// Without the mark the next `up` would find a paused run and leave it so: then it is not paused.
bool saving_begin(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why)
{
    const uint8_t phase = net->view->now.phase;
    const bool pauses = phase_makes_steps(phase) || phase == PHASE_COOLDOWN;
    *self = (struct saving){ .step = net->view->now.step,
                             .end_ms = now_ms + patience_ms(&net->config),
                             .action = pauses ? ACTION_PAUSE : ACTION_CHECKPOINT };
    if (!saving_may_lose(net) || !has_checkpointer(net) || testnet_gone(net)) return false;
    const int rc = testnet_become_owner(net, why);
    if (rc < 0) why_wrap(why, rc, "nothing is saved, as the run cannot be told");
    if (rc < 0 || !pauses || put_mark(net, why)) return rc == 0;
    why_wrap(why, FAULT_IO, "the run is not paused, and steps after its checkpoint may be lost");
    self->action = ACTION_CHECKPOINT;
    return true;
}

static void give(struct saving *self, struct testnet *net, uint64_t now_ms)
{
    const uint64_t clock = clock_unix_ms();
    const struct wire_control order = { .action = self->action,
                                        .incarnation = net->view->incarnation,
                                        .number =
                                            clock > net->order_number ? clock : net->order_number };
    net->order_number = order.number + 1;
    tap_mail(net->tap, "coordinator", FRAME_CONTROL, &order);
    self->order_ms = now_ms + AGAIN_MS;
}

uint64_t saving_order(struct saving *self, struct testnet *net, uint64_t now_ms)
{
    if (now_ms >= self->order_ms) give(self, net, now_ms);
    return self->order_ms;
}

bool saving_is_over(const struct saving *self, const struct testnet *net, uint64_t now_ms)
{
    const struct wire_run *now = &net->view->now;
    const bool done = self->action == ACTION_PAUSE ? now->phase == PHASE_PAUSED
                                                   : now->checkpoint_step >= self->step;
    return done || now->phase == PHASE_FINISHED || net->insists || now_ms >= self->end_ms ||
           testnet_gone(net);
}

bool saving_will_resume(const struct testnet *net)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", net->state_dir, MARK);
    return access(path, F_OK) == 0;
}

int saving_resume(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why,
                  uint64_t *ret_due_ms)
{
    const struct wire_run *now = &net->view->now;
    char path[PATH_MAX + 32];
    *ret_due_ms = UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", net->state_dir, MARK);
    if (self->action != ACTION_RESUME && !saving_will_resume(net)) return 0;
    if (self->action != ACTION_RESUME) {
        *self = (struct saving){ .action = ACTION_RESUME };
        const int rc = testnet_become_owner(net, why);
        if (rc < 0) return rc;
    }
    *ret_due_ms = now_ms + AGAIN_MS;
    if (!net->view->has_run)
        return 0; // A BEAT or a ROSTER that came first does not know that the run is paused
    if (now->phase == PHASE_PAUSED || now->pausing) {
        *ret_due_ms = saving_order(self, net, now_ms);
        return 0;
    }
    *self = (struct saving){ 0 };
    *ret_due_ms = UINT64_MAX;
    if (unlink(path) == 0 || errno == ENOENT) return testnet_become_observer(net, why);
    const int error = errno;
    return why_set(why, fault_from_errno(error), "%s cannot be removed: %s", path, strerror(error));
}
