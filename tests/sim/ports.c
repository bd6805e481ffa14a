// ports -- the far side of the wall: one case per port, the deed being to put something into a
// queue.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

static void end(struct sim *self, uint8_t id, const struct wire_quit *quit)
{
    struct node *node = &self->nodes[id];
    check_quit(self, id, quit);
    node->quits = true; // Once the rest of the batch is out
    if (quit->code == 0 && check_phase(self) == PHASE_FINISHED) node->ended = true;
}

static void wake(struct sim *self, struct node *node, uint64_t at_ms)
{
    if (at_ms == UINT64_MAX) return;
    uint64_t clock_ms = node_clock(self, node);
    uint64_t at = at_ms > clock_ms ? self->now_ms + (at_ms - clock_ms) : self->now_ms;
    if (at < node->alarm_ms) node->alarm_ms = at;
}

static void carry(struct sim *self, uint8_t id, const struct effect *effect, struct parcel *parcel)
{
    if (effect->port == PORT_MAIL) {
        intruder_keep(self, id, effect->to, parcel);
        greedy_keep(self, id, effect->to, parcel);
        network_mail(self, id, effect->to, parcel);
    } else network_news(self, id, parcel);
    parcel_release(parcel);
}

static void send(struct sim *self, uint8_t id, const struct effect *effect);

static void write_to_each(struct sim *self, uint8_t id, const struct effect *news)
{
    for (uint8_t i = 0; i < self->nodes_count; i++) {
        const struct node *node = &self->nodes[i];
        if (i == id || (node->role != ACTOR_TRAINER && node->role != ACTOR_WITNESS)) continue;
        struct effect mail = *news;
        mail.port = PORT_MAIL;
        snprintf(mail.to, sizeof mail.to, "%s", node->name);
        send(self, id, &mail);
    }
}

static void send(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (liar_writes_to_each(self, id, effect)) write_to_each(self, id, effect);
    liar_overhears(self, effect);
    work_done(self, id, effect->bytes, false);
    if (liar_withholds(self, id, effect) || effect->kind == FRAME_PROGRESS) return;
    struct parcel *twisted = liar_twist(self, id, effect);
    // Who lies in its claims alone says the same to all: two claims are another lie.
    bool alone = effect->kind == FRAME_CLAIM &&
                 (!(self->plan.lies & LIES_TWICE) || liar_keeps_apart(self, id));
    bool tells_the_truth = !twisted || (!alone && roll(self, 2));
    if (twisted) carry(self, id, effect, twisted);
    intruder_vote(self, id, effect);
    if (tells_the_truth)
        carry(self, id, effect,
              parcel_new(self, &self->nodes[id], effect->kind, effect->body, effect->bytes));
}

void perform(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    check_said(self, id, effect);
    switch (effect->port) {
    case PORT_MAIL:
    case PORT_NEWS: send(self, id, effect); break;
    case PORT_DISK: disk_store(self, id, effect); break;
    case PORT_CLOCK: {
        const struct wire_wake *body =
            unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes);
        wake(self, node, body->at_ms);
        break;
    }
    case PORT_LEARNER: learner_take(self, id, effect); break;
    case PORT_FETCHER: fetcher_take(self, id, effect); break;
    case PORT_SHELL:
        end(self, id, unpack(self, &self->scratch, effect->kind, effect->body, effect->bytes));
        break;
    default: break; // PORT_LOG: printed, if anybody looks
    }
}
