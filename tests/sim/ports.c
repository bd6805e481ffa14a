// ports -- the far side of the wall: one case per port, the deed being to put something into a
// queue.

#include "common/ensure.h"
#include "tests/sim/sim.h"
#include <string.h>

static void end(struct sim *self, uint8_t id, const struct wire_quit *quit)
{
    struct node *node = &self->nodes[id];
    check_quit(self, id, quit);
    node->quits = true;                             // Once the rest of the batch is out
    if (quit->code == 0 && check_phase(self) == PHASE_FINISHED) node->ended = true;
}

static void wake(struct sim *self, struct node *node, uint64_t at_ms)
{
    if (at_ms == UINT64_MAX) return;
    uint64_t clock_ms = node_clock(self, node);
    uint64_t at = at_ms > clock_ms ? self->now_ms + (at_ms - clock_ms) : self->now_ms;
    if (at < node->alarm_ms) node->alarm_ms = at;
}

static void send(struct sim *self, uint8_t id, const struct effect *effect)
{
    if (liar_withholds(self, id, effect)) return;
    struct parcel *twisted = liar_twist(self, id, effect);
    bool tells_the_truth = !twisted || roll(self, 2);
    if (twisted) {
        network_mail(self, id, effect->to, twisted);
        parcel_release(twisted);
    }
    if (!tells_the_truth) return;
    liar_intrude(self, id, effect);
    struct parcel *parcel =
        parcel_new(self, &self->nodes[id], effect->kind, effect->body, effect->bytes);
    if (effect->port == PORT_MAIL) network_mail(self, id, effect->to, parcel);
    else if (effect->kind != FRAME_PROGRESS) network_news(self, id, parcel);
    parcel_release(parcel);
}

void perform(struct sim *self, uint8_t id, const struct effect *effect)
{
    struct node *node = &self->nodes[id];
    check_said(self, id, effect);
    switch (effect->port) {
    case PORT_MAIL:
    case PORT_NEWS:
        send(self, id, effect);
        break;
    case PORT_DISK:
        disk_store(self, id, effect);
        break;
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
    default: break;                                 // PORT_LOG: printed, if anybody looks
    }
}
