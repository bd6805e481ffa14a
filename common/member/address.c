// address -- before it joins, be it for the first time or again, a member asks the coordinator whether
// others can connect to the address that it announces.
//
//     REACH ─▶ ACK: join ─ REFUSED "unreachable": ask once more, after a while ─▶ again: end, or wait
//        └─▶ no answer, or "not now": join after a while, and go on asking for some time
//
// One refusal may be an accident (a packet lost, a link that was down); the second one is not. A
// member that joined all the same would be waited for in every round, for as long as a round lasts.
// It ends if it was never admitted: its owner has just started it. If it was, a firewall has closed
// meanwhile: it says so, stays out of the run, and asks until the coordinator reaches it.

#include "common/member/member.h"
#include <string.h>
#include <sysexits.h>

enum {
    PATIENCE_MS = 5000, // For an answer: the coordinator tries for 3 s
    AGAIN_MS = 2000,    // From a refusal to the next question: it tries no more often
    LATER_MS = 5000,    // From "not now"
    GIVE_UP_MS = 15000, // From the admission: the coordinator knows no such question
    FRESH_MS = 10000,   // An ACK is good for the JOINs that are sent within that time
};

void member_address_begin(struct member *self, uint64_t now_ms)
{
    struct member_address *address = &self->address;
    if (address->number == 0) {
        address->number = self->instance;
        address->is_unknown = address->is_checked;
    }
    if (!address->is_unknown || address->is_refused) return;
    address->ask_ms = now_ms;
    address->join_ms = now_ms + PATIENCE_MS;
}

void member_address_again(struct member *self, uint64_t now_ms)
{
    struct member_address *address = &self->address;
    *address = (struct member_address){ .is_checked = address->is_checked,
                                        .is_unknown = address->is_checked,
                                        .number = address->number + 1 };
    address->ask_ms = now_ms;
    address->join_ms = now_ms + PATIENCE_MS;
}

bool member_address_holds_back(const struct member *self, uint64_t now_ms)
{
    return self->address.is_unknown && (self->address.is_cut_off || now_ms < self->address.join_ms);
}

// Whether a JOIN is due although no answer has come, so perhaps no coordinator is there yet. A question
// goes before each such JOIN, and a coordinator that tries an address lets its member wait.
static bool joins_unanswered(const struct member *self, uint64_t now_ms)
{
    return !self->admitted && !self->address.is_answered && now_ms >= self->join_ms &&
           !member_address_holds_back(self, now_ms);
}

void member_address_tick(struct member *self, uint64_t now_ms, struct outbox *out)
{
    struct member_address *address = &self->address;
    const bool is_stale = !address->is_unknown && now_ms >= address->reached_ms + FRESH_MS;
    if (!address->is_checked || self->leaving) return;
    if (!self->admitted && is_stale) member_address_again(self, now_ms);
    if (!address->is_unknown) return;
    if (now_ms < address->ask_ms && !joins_unanswered(self, now_ms)) return;
    if (self->admitted && address->end_ms == 0) address->end_ms = now_ms + GIVE_UP_MS;
    if (self->admitted && now_ms >= address->end_ms) {
        address->is_unknown = false;
        return;
    }
    struct wire_reach reach = { .number = address->number };
    memcpy(reach.endpoint, self->endpoint, sizeof reach.endpoint);
    outbox_mail(out, "coordinator", FRAME_REACH, &reach);
    address->ask_ms = now_ms + MEMBER_RETRY_MS;
}

bool member_address_hear_ack(struct member *self, const struct wire_ack *ack, uint64_t now_ms,
                             struct outbox *out)
{
    struct member_address *address = &self->address;
    if (!address->is_unknown || ack->round != address->number) return false;
    if (address->is_cut_off)
        outbox_note(out, "address.reached the coordinator reaches us at %.60s again; joining",
                    self->endpoint + strlen("tcp://"));
    address->is_unknown = address->is_refused = address->is_cut_off = false;
    address->reached_ms = now_ms;
    return true;
}

// "nobody answers at 192.0.2.7:7000: connection timed out; open .." tells us: connection timed out.
static void say_cut_off(const struct member *self, const char *text, struct outbox *out)
{
    const char *at = self->endpoint + strlen("tcp://"), *cause = strstr(text, at);
    cause = cause && cause[strlen(at)] == ':' ? cause + strlen(at) + strlen(": ") : text;
    outbox_note(out,
                "address.refused nobody reaches us at %.60s (%.*s): the run goes on without us; "
                "open this port in the firewall; asking again every %d s",
                at, (int)strcspn(cause, ";"), cause, MEMBER_CUT_OFF_MS / 1000);
}

// It was in the run, so others may still wait for it: without its pings, they soon do not.
static void stay_out(struct member *self, const char *text, uint64_t now_ms, struct outbox *out)
{
    struct member_address *address = &self->address;
    if (!address->is_cut_off) say_cut_off(self, text, out);
    self->admitted = false;
    address->is_cut_off = true;
    address->number++;
    address->ask_ms = now_ms + MEMBER_CUT_OFF_MS;
}

void member_address_hear_refusal(struct member *self, const struct wire_refused *refused,
                                 uint64_t now_ms, struct outbox *out)
{
    struct member_address *address = &self->address;
    if (!address->is_unknown || refused->round != address->number) return;
    address->is_answered = true;
    if (refused->reason != REFUSAL_UNREACHABLE && address->is_refused) {
        address->ask_ms = now_ms + AGAIN_MS; // JOIN waits on for the second answer
    } else if (refused->reason != REFUSAL_UNREACHABLE) {
        address->ask_ms = now_ms + LATER_MS;
        address->join_ms = now_ms;
    } else if (!address->is_refused) {
        outbox_note(out, "address.refused %s; asking once more", refused->text);
        address->is_refused = true;
        address->number++; // Another question: it is tried again
        address->ask_ms = now_ms + AGAIN_MS;
        address->join_ms = address->ask_ms + PATIENCE_MS;
    } else if (self->born_unix_ms) {
        stay_out(self, refused->text, now_ms, out);
    } else {
        outbox_quit(out, EX_CONFIG, "%s; --bind-p2p-port keeps the port the same at each start",
                    refused->text);
    }
}
