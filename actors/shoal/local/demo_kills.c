// demo_kills -- each kill waits for its step and then for the news that a round has opened, so that
// it falls in RoundTrain, where most work is lost. A result in a later commit, or a commit of the
// coordinator's next life, shows that the process is back: a process that only runs again has shown
// nothing.

#include "actors/shoal/local/demo_kills.h"

bool demo_kill_is_due(struct demo_kill *self, const struct run_view *view, unsigned heard,
                      uint64_t now_ms)
{
    if (self->state != KILL_WAITING || !(heard & VIEW_ROUND)) return false;
    if (view->now.phase != PHASE_TRAIN || view->now.step < self->at_step) return false;
    self->state = KILL_DOWN;
    self->round = view->round.opened.round;
    self->ms = now_ms;
    self->incarnation = view->incarnation;
    return true;
}

bool demo_kill_came_back(struct demo_kill *self, const struct run_view *view, unsigned heard,
                         uint64_t now_ms)
{
    if (self->state != KILL_DOWN) return false;
    bool coordinator = key_is_none(&self->key);
    bool reborn = view->incarnation > self->incarnation;
    if (coordinator && reborn && self->reborn_ms == 0) self->reborn_ms = now_ms;
    if (!(heard & VIEW_COMMIT)) return false;
    if (coordinator ? !reborn
                    : view->round.last.round <= self->round || !run_view_accepts(view, &self->key))
        return false;
    self->state = KILL_BACK;
    self->back_round = view->round.last.round;
    self->back_ms = now_ms;
    return true;
}
