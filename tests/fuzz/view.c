// The view that an observer makes of a run's news, from any senders: a conversation (events.h).

#include "actors/shoal/run/run_view.h"
#include "common/base/ensure.h"
#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/honest.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { EVENTS_PER_INPUT = 400, ARENA_BYTES = 16 << 20, EFFECTS_MAX = 64, EFFECT_BYTES = 65536 };

static void *take_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(memory != MAP_FAILED);
    return memory;
}

// Time goes forward, and what is asked is answered from what was heard.
static void check_view(const struct run_view *self, const struct run_view *before, unsigned heard,
                       uint16_t kind)
{
    const struct event_person *people = event_people();
    ensure(self->round.opened.round >= before->round.opened.round &&
           self->incarnation >= before->incarnation);
    ensure(self->round.last.round >= before->round.last.round);
    if (kind != FRAME_STEPS)
        ensure((self->round.last.round > before->round.last.round) == ((heard & VIEW_COMMIT) != 0));
    ensure(self->window.number >= before->window.number &&
           self->window.commit_window >= before->window.commit_window &&
           self->window.members_count <= VIEW_GROUP_MAX);
    ensure((self->window.number > before->window.number) == ((heard & VIEW_WINDOW) != 0));
    ensure(self->roster.count <= MEMBERS_MAX && self->round.clients_count <= MEMBERS_MAX);
    ensure(run_view_phase(self)[0]);
    for (int i = 0; i < EVENT_PEOPLE; i++)
        ensure(!run_view_accepts(self, &people[i].key) ||
               run_view_member(self, &people[i].key) != UINT32_MAX);
}

// A member that hears the same news: the honest senders derive their messages from its state.
struct follower {
    struct member member;
    struct round_view view;
};

static struct follower *follow(void)
{
    static struct follower *self;
    if (!self) self = take_memory(sizeof *self);
    ensure(madvise(self, sizeof *self, MADV_DONTNEED) == 0);
    struct member *member = &self->member;
    member->admitted = true;
    member->index = 9;
    member->key = event_people()[9].key;
    member->coordinator = event_people()[0].key;
    return self;
}

static void follow_on(struct follower *self, struct honest *honest, const struct event *event,
                      const struct msg *in)
{
    static struct effect effects[EFFECTS_MAX];
    static uint8_t bytes[EFFECT_BYTES];
    struct outbox out = {
        .effects = effects, .count_max = EFFECTS_MAX, .bytes = bytes, .bytes_max = sizeof bytes
    };
    if (event->signer == 0)
        honest_note_heard(honest, &self->member, &self->view, in->kind, in->body);
    struct member_turn turn = { .member = &self->member, .in = in, .out = &out };
    turn.heard = member_hear(&self->member, in, &out);
    round_view_hear(&self->view, &turn);
}

bool core_check_view(const uint8_t *bytes, size_t count)
{
    static struct run_view *view;
    static struct event_memory memory;
    static struct wire_arena arena;
    static struct run_view before;
    const struct event_person *people = event_people();
    const uint8_t *at = bytes;
    struct event event;
    unsigned heard = 0;
    if (!view) {
        view = take_memory(sizeof *view);
        arena = (struct wire_arena){ .bytes = take_memory(ARENA_BYTES), .max = ARENA_BYTES };
    }
    struct follower *follower = follow();
    struct honest honest = { 0 };
    ensure(madvise(view, sizeof *view, MADV_DONTNEED) == 0);
    memset(&memory, 0, sizeof memory);
    for (int n = 0; n < EVENTS_PER_INPUT && event_next(&at, bytes + count, &event); n++) {
        const unsigned flags = wire_table_frame(event.what) ? wire_kind_flags(event.what) : 0;
        struct msg in = { .kind = event.what, .run = "fuzz", .from = "", .seq = (uint64_t)n };
        if (!(flags & WIRE_NEWS)) continue;
        if (flags & WIRE_SIGNED) in.sender = people[event.signer].key;
        in.incarnation = 2u + event.bearer - event.late;
        in.body = event_body(
            &event, &memory,
            honest_to_member(&honest, &follower->member, &follower->view, event.what, event.signer),
            &arena);
        event_memory_keep(&memory, event.what, in.body);
        before.round.opened.round = view->round.opened.round,
        before.incarnation = view->incarnation;
        before.round.last.round = view->round.last.round;
        before.window.number = view->window.number;
        before.window.commit_window = view->window.commit_window;
        const unsigned mask = run_view_hear(view, &in);
        check_view(view, &before, mask, in.kind);
        if (mask) core_counted("view")->heard[event.what]++;
        follow_on(follower, &honest, &event, &in);
        heard |= mask;
    }
    return heard & VIEW_COMMIT;
}
