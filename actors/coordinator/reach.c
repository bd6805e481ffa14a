// reach -- one place for each key that asked lately. reach_hear finds it, then compares: the same
// question, too soon, or a new try. If no place is free, that of another key is reused, once that
// key may ask again.

#include "actors/coordinator/reach.h"
#include "common/base/ensure.h"
#include "common/net/endpoint.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- what is said -------------------------------------------------------------------------------

static void refuse(struct reach_answer *ret_answer, const char *to, uint8_t reason, uint64_t number,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
static void refuse(struct reach_answer *ret_answer, const char *to, uint8_t reason, uint64_t number,
                   const char *format, ...)
{
    struct wire_refused *refused = &ret_answer->refused;
    *ret_answer = (struct reach_answer){ .kind = FRAME_REFUSED };
    *refused = (struct wire_refused){ .kind = FRAME_REACH, .reason = reason, .round = number };
    snprintf(ret_answer->to, sizeof ret_answer->to, "%s", to);
    va_list args;
    va_start(args, format);
    vsnprintf(refused->text, sizeof refused->text, format, args);
    va_end(args);
}

// Why nobody answers there. NULL: the fault may be ours.
static const char *unreachable_text(int error)
{
    switch (error) {
    case ETIMEDOUT: return "connection timed out";
    case ECONNREFUSED: return "connection refused";
    case ECONNRESET: return "connection reset";
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN: return "no route leads there";
    default: return NULL;
    }
}

// Tells the asker how its try ended. An address and port in numbers have 53 bytes at most.
static void say(const struct reach_place *place, struct reach_answer *ret_answer)
{
    const char *address = place->endpoint + strlen("tcp://"), *to = place->asker;
    const char *why = unreachable_text(place->error);
    const uint64_t number = place->number;
    if (place->end == REACH_PROVED) {
        *ret_answer = (struct reach_answer){ .kind = FRAME_ACK };
        ret_answer->ack = (struct wire_ack){ .kind = FRAME_REACH, .round = number };
        memcpy(ret_answer->to, to, sizeof ret_answer->to);
    } else if (place->end == REACH_OTHER) {
        refuse(ret_answer, to, REFUSAL_UNREACHABLE, number,
               "another program answers at %.60s, or one that hangs up; give --announce an address "
               "and port that lead here",
               address);
    } else if (place->end == REACH_FAILED && why) {
        refuse(ret_answer, to, REFUSAL_UNREACHABLE, number,
               "nobody answers at %.60s: %s; open this port in the firewall, or give --announce an "
               "address and port that lead here",
               address, why);
    } else if (place->end == REACH_FAILED) {
        refuse(ret_answer, to, REFUSAL_NOT_NOW, number,
               "the coordinator cannot try %.60s now (errno %d); ask again", address, place->error);
    } else if (place->end == REACH_LATE) {
        refuse(ret_answer, to, REFUSAL_NOT_NOW, number,
               "%.60s takes a connection and says nothing within %d ms; ask again", address,
               REACH_DEADLINE_MS);
    } else if (place->end == REACH_BUSY) {
        refuse(ret_answer, to, REFUSAL_NOT_NOW, number,
               "%.60s answers, and takes no more probes now; ask again", address);
    }
}

// ---- who may try --------------------------------------------------------------------------------

static bool may_try(const struct reach_place *place, uint64_t now_ms)
{
    return !place->is_tried &&
           (key_is_none(&place->key) || now_ms - place->began_ms >= REACH_AGAIN_MS);
}

// The key's own place; else a free one; else, of those that may be reused, the one whose answer is
// oldest. REACH_PLACES: none of these.
static uint32_t find_place(const struct reach *self, const struct key *key, uint64_t now_ms)
{
    uint32_t free = REACH_PLACES, oldest = REACH_PLACES;
    for (uint32_t i = 0; i < REACH_PLACES; i++) {
        const struct reach_place *place = &self->places[i];
        if (key_equal(&place->key, key)) return i;
        if (key_is_none(&place->key)) {
            if (free == REACH_PLACES) free = i;
        } else if (may_try(place, now_ms) &&
                   (oldest == REACH_PLACES || place->ended_ms < self->places[oldest].ended_ms)) {
            oldest = i;
        }
    }
    return free < REACH_PLACES ? free : oldest;
}

static bool is_same(const struct reach_place *place, const struct msg *in)
{
    const struct wire_reach *asked = in->body;
    return key_equal(&place->key, &in->sender) && place->number == asked->number &&
           strcmp(place->endpoint, asked->endpoint) == 0;
}

enum reach_verdict reach_hear(struct reach *self, const struct msg *in, uint32_t *ret_place,
                              struct reach_answer *ret_answer)
{
    const struct wire_reach *asked = in->body;
    if (!in->from[0] || key_is_none(&in->sender)) return REACH_NOTHING;
    if (!endpoint_is_numeric(asked->endpoint)) {
        refuse(ret_answer, in->from, REFUSAL_MALFORMED, asked->number,
               "endpoint %.60s: must be tcp://IPv4:PORT or tcp://[IPv6]:PORT, numbers and no name",
               asked->endpoint);
        return REACH_SAYS;
    }
    const uint32_t index = find_place(self, &in->sender, in->now_ms);
    struct reach_place *place = index < REACH_PLACES ? &self->places[index] : NULL;
    if (place && is_same(place, in) && place->is_tried) return REACH_NOTHING;
    // An asker repeats its question while it waits; the last one may come after the answer has gone
    if (place && is_same(place, in) && in->now_ms - place->ended_ms < REACH_KEPT_MS) {
        say(place, ret_answer);
        return REACH_SAYS;
    }
    if (place && !may_try(place, in->now_ms)) {
        refuse(ret_answer, in->from, REFUSAL_NOT_NOW, asked->number,
               "this key has asked less than %d ms ago, or its address is being tried; ask again",
               REACH_AGAIN_MS);
        return REACH_SAYS;
    }
    if (!place || self->tries == REACH_TRIES_MAX) {
        refuse(ret_answer, in->from, REFUSAL_NOT_NOW, asked->number,
               place ? "%d addresses are being tried, the most at a time; ask again"
                     : "%d keys have asked just now, the most that are remembered; ask again",
               place ? REACH_TRIES_MAX : REACH_PLACES);
        return REACH_SAYS;
    }
    *place = (struct reach_place){
        .key = in->sender, .number = asked->number, .began_ms = in->now_ms, .is_tried = true
    };
    snprintf(place->asker, sizeof place->asker, "%s", in->from);
    memcpy(place->endpoint, asked->endpoint, sizeof place->endpoint);
    self->tries++;
    *ret_place = index;
    return REACH_TRY;
}

static bool is_unreachable(const struct reach_place *place)
{
    return place->end == REACH_OTHER ||
           (place->end == REACH_FAILED && unreachable_text(place->error));
}

bool reach_holds_back(const struct reach *self, const struct key *key, uint64_t now_ms)
{
    const uint32_t index = find_place(self, key, now_ms);
    if (index == REACH_PLACES || !key_equal(&self->places[index].key, key)) return false;
    const struct reach_place *place = &self->places[index];
    return place->is_tried || (is_unreachable(place) && now_ms - place->ended_ms < REACH_KEPT_MS);
}

void reach_end(struct reach *self, uint32_t index, enum reach_end end, int error, uint64_t now_ms,
               struct reach_answer *ret_answer)
{
    struct reach_place *place = &self->places[index];
    ensure(index < REACH_PLACES && place->is_tried);
    place->is_tried = false;
    place->end = (uint8_t)end;
    place->error = error;
    place->ended_ms = now_ms;
    self->tries--;
    say(place, ret_answer);
}

// ---- time ---------------------------------------------------------------------------------------

uint64_t reach_due_ms(const struct reach *self)
{
    uint64_t due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < REACH_PLACES && self->tries; i++) {
        const uint64_t ends_ms = self->places[i].began_ms + REACH_DEADLINE_MS;
        if (self->places[i].is_tried && ends_ms < due_ms) due_ms = ends_ms;
    }
    return due_ms;
}

uint32_t reach_late(const struct reach *self, uint64_t now_ms)
{
    uint32_t index = 0;
    while (index < REACH_PLACES && !(self->places[index].is_tried &&
                                     now_ms >= self->places[index].began_ms + REACH_DEADLINE_MS))
        index++;
    return index;
}
