// attacks -- the hostile trainer's attacks on lines, processors and deadlines, for tests only. Each
// uses what any guest may do: it has a key that was admitted, and its results are honest.
//
//     HOSTILE=word        one of those below
//     HOSTILE_FROM=round  in which it begins (3)
//     HOSTILE_MS=n        how late it is, or what it sends in a second (1000)
//     HOSTILE_VICTIM=text the first other trainer whose endpoint has this in it; none: the first
//     HOSTILE_LINES=n     connections of `gorge` (3, beside that of its own fetcher)
//
// Its log says what it did: "hostile.sent", "hostile.kept" or "hostile.got", and how much.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server_inside.h"
#include "common/net/tcp.h"
#include "common/pace/rounds/rounds_member.h"
#include "tests/adversary/hostile.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum attack {
    NONE,
    LATE_VOTE,     // Two witnesses get its claim; it votes HOSTILE_MS after RoundWitness began
    EMPTY_VOTE,    // Votes at once: complete, and nothing seen
    SILENT_TO_ONE, // Answers no question of the first key that asks it for a blob
    LATE_FINDING,  // Its FINDING goes HOSTILE_MS after the round began
    HELD_HOLDS,    // Never says HOLDS
    GORGE,         // Fetches the victim's newest payload, without end
    REVEALS,       // HOSTILE_MS letters a second to the victim
    PROBES,        // HOSTILE_MS probes a second of the victim's key
    ATTACKS
};
static const char *const words[ATTACKS] = {
    "",           "late-vote", "empty-vote", "silent-to-one", "late-finding",
    "held-holds", "gorge",     "reveals",    "probes"
};

enum { LINES_MAX = 32, AHEAD = 16, TELL_MS = 2000, PROBE_WAIT_MS = 1000 };

static enum attack attack(void)
{
    const char *word = getenv("HOSTILE");
    for (int i = 1; i < ATTACKS; i++)
        if (word && strcmp(word, words[i]) == 0) return (enum attack)i;
    return NONE;
}

bool hostile_is_attack(const char *word)
{
    return word && attack() != NONE && strcmp(words[attack()], word) == 0;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

// A line each TELL_MS, from any thread.
static void tell(const char *what, uint64_t count)
{
    static _Atomic uint64_t told_ms;
    const uint64_t now_ms = clock_ms();
    if (now_ms < told_ms + TELL_MS) return;
    told_ms = now_ms;
    fprintf(stderr, "hostile.%s count=%" PRIu64 "\n", what, count);
}

// ---- the victim ---------------------------------------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct wire_holder holder;
    struct hash payload; // Its newest
    bool is_known;
} prey; // Under the lock

static const struct wire_member *victim_of(const struct trainer *self)
{
    const char *text = getenv("HOSTILE_VICTIM");
    for (uint32_t i = 0; i < self->member.roster.count; i++) {
        const struct wire_member *member = &self->member.roster.members[i];
        if (member->role == ACTOR_TRAINER && member->index != self->member.index &&
            member->endpoint[0] && strstr(member->endpoint, text ? text : ""))
            return member;
    }
    return NULL;
}

static void watch_victim(const struct trainer *self, const struct msg *in)
{
    const struct wire_member *victim = victim_of(self);
    const struct wire_claim *claim = in->body;
    if (!victim || in->kind != FRAME_CLAIM || !key_equal(&claim->author, &victim->key)) return;
    pthread_mutex_lock(&lock);
    memcpy(prey.holder.endpoint, victim->endpoint, sizeof prey.holder.endpoint);
    prey.holder.key = victim->key;
    prey.payload = claim->payload;
    prey.is_known = true;
    pthread_mutex_unlock(&lock);
}

static void start_once(void *(*body)(void *))
{
    static bool is_started;
    pthread_t thread;
    if (is_started || !prey.is_known || !hostile_options()) return;
    is_started = true;
    ensure(pthread_create(&thread, NULL, body, NULL) == 0);
}

static void sleep_us(uint64_t us)
{
    nanosleep(&(struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 }, NULL);
}

// ---- gorge --------------------------------------------------------------------------------------

struct mouth {
    struct bulk_line line;
    uint32_t wanted;
};

// Returns the bytes that came.
static uint64_t chew(struct mouth *self, const struct handshake_self *own,
                     const struct wire_holder *holder, const struct hash *payload)
{
    static struct bulk_mail mail;
    static uint32_t request;
    struct why why;
    enum bulk_heard heard;
    uint64_t bytes = 0;
    if (self->line.fd < 0 && bulk_line_connect(&self->line, own, holder, &why) < 0) return 0;
    self->line.raw_max = BULK_CHUNK_MAX;
    if (bulk_line_move(&self->line, &why) < 0) {
        bulk_line_close(&self->line);
        self->wanted = 0;
        return 0;
    }
    for (; self->line.is_open && self->wanted < AHEAD; self->wanted++) {
        const struct wire_want want = { request++, *payload, 0, BULK_CHUNK_MAX };
        bulk_line_put(&self->line, hostile_options()->run_id, FRAME_WANT, &want, NULL, 0);
    }
    while ((heard = bulk_line_recv(&self->line, &mail, &why)) == BULK_MAIL) {
        bytes += mail.raw_count;
        if (self->wanted) self->wanted--;
    }
    if (heard == BULK_ENDED) bulk_line_close(&self->line), self->wanted = 0;
    return bytes;
}

static void *gorge(void *arg)
{
    static struct mouth mouths[LINES_MAX];
    const uint64_t wish = number("HOSTILE_LINES", 3), lines = wish < LINES_MAX ? wish : LINES_MAX;
    const struct learner_options *options = hostile_options();
    const struct handshake_self own = bulk_line_self(options->identity, options->run_id);
    uint64_t bytes = 0;
    (void)arg;
    for (uint64_t i = 0; i < lines; i++) mouths[i].line.fd = -1;
    for (;; sleep_us(1000)) {
        pthread_mutex_lock(&lock);
        const struct wire_holder holder = prey.holder;
        const struct hash payload = prey.payload;
        pthread_mutex_unlock(&lock);
        for (uint64_t i = 0; i < lines; i++) bytes += chew(&mouths[i], &own, &holder, &payload);
        tell("got", bytes);
    }
    return NULL;
}

// ---- probes -------------------------------------------------------------------------------------

// The same HELLO each time: it costs nothing to make.
static bool probe(const struct handshake *shake, const struct wire_holder *holder)
{
    uint8_t answer[HANDSHAKE_ANSWER];
    struct why why;
    int fd;
    if (tcp_connect(holder->endpoint, &why, &fd) < 0) return false;
    struct pollfd item = { .fd = fd, .events = POLLOUT };
    bool done = poll(&item, 1, PROBE_WAIT_MS) == 1 &&
                send(fd, shake->hello, HANDSHAKE_HELLO, MSG_NOSIGNAL) == HANDSHAKE_HELLO;
    item.events = POLLIN;
    done = done && poll(&item, 1, PROBE_WAIT_MS) == 1 && recv(fd, answer, sizeof answer, 0) > 0;
    close(fd);
    return done;
}

static void *pour_probes(void *arg)
{
    const struct learner_options *options = hostile_options();
    const struct handshake_self own = bulk_line_self(options->identity, options->run_id);
    const uint64_t began_ms = clock_ms();
    struct handshake shake;
    (void)arg;
    pthread_mutex_lock(&lock);
    const struct wire_holder holder = prey.holder;
    pthread_mutex_unlock(&lock);
    const struct handshake_party party = { .key = holder.key };
    handshake_connect(&shake, &own, &party, &(struct handshake_purpose){ .probe = true });
    for (uint64_t sent = 0;;) {
        const uint64_t due = (clock_ms() - began_ms) * number("HOSTILE_MS", 1000) / 1000;
        if (sent >= due) sleep_us(500);
        else sent += probe(&shake, &holder);
        tell("sent", sent);
    }
    return NULL;
}

// ---- letters ------------------------------------------------------------------------------------

static void pour_reveals(const struct trainer *self, const struct msg *in, struct outbox *out)
{
    static uint64_t last_ms, sent;
    const struct wire_member *victim = victim_of(self);
    const struct wire_reveal reveal = { .claim = rounds_of(&self->pace)->training.claim,
                                        .residual = { .bytes = 77 } };
    if (!victim || !reveal.claim.round) return;
    if (!last_ms || in->now_ms > last_ms + 1000) last_ms = in->now_ms - 1;
    const uint64_t due = (in->now_ms - last_ms) * number("HOSTILE_MS", 1000) / 1000;
    if (due > 0) last_ms = in->now_ms;
    for (uint64_t n = 0; n < due; n++) outbox_mail(out, victim->name, FRAME_REVEAL, &reveal);
    sent += due;
    tell("sent", sent);
}

// The core's own state: a liar may do with it what it likes.
static struct rounds_member *pace_of(struct trainer *self)
{
    return (struct rounds_member *)(uintptr_t)rounds_of(&self->pace);
}

static uint32_t drop(struct outbox *out, uint32_t index)
{
    static uint64_t kept;
    hostile_remove_effect(out, index);
    tell("kept", ++kept);
    return index - 1; // For a loop that goes on behind it
}

static void never_hold(struct outbox *out)
{
    for (uint32_t i = 0; i < out->count; i++)
        if (out->effects[i].kind == FRAME_HOLDS) i = drop(out, i);
}

// The core sends a FINDING again each second: it is due at the instant at which ours may go.
static void find_late(struct trainer *self, const struct msg *in, struct outbox *out)
{
    static uint64_t round, began_ms;
    if (self->member.round != round) round = self->member.round, began_ms = in->now_ms;
    const uint64_t due_ms = began_ms + number("HOSTILE_MS", 1000);
    for (uint32_t i = 0; i < out->count && in->now_ms < due_ms; i++)
        if (out->effects[i].kind == FRAME_FINDING) {
            i = drop(out, i);
            pace_of(self)->auditor.resend_ms = due_ms;
        }
}

static void vote_for_nothing(struct trainer *self, struct outbox *out)
{
    static uint64_t voted;
    const struct rounds_member *pace = pace_of(self);
    for (uint32_t i = 0; i < out->count; i++)
        if (out->effects[i].kind == FRAME_VOTE) i = drop(out, i);
    if (self->member.round == voted || self->member.now.phase != PHASE_TRAIN ||
        !round_view_is_open(&pace->view, &self->member) ||
        !round_view_elects_us(&pace->view, &self->member))
        return;
    voted = self->member.round;
    outbox_mail(out, "coordinator", FRAME_VOTE,
                &(struct wire_vote){ .round = voted, .complete = true });
}

// The last witness does not get its claim, and its vote goes late.
static void vote_late(struct trainer *self, const struct msg *in, struct outbox *out)
{
    static uint64_t round, since_ms;
    struct rounds_member *pace = pace_of(self);
    const struct wire_member *untold = NULL;
    if (self->member.round != round) round = self->member.round, since_ms = 0;
    if (!since_ms && self->member.now.phase == PHASE_WITNESS && self->member.now.round == round)
        since_ms = in->now_ms;
    const uint64_t due_ms = since_ms + number("HOSTILE_MS", 1000);
    for (uint32_t i = 0; i < pace->view.round.witnesses_count; i++) {
        const struct wire_member *witness =
            member_at(&self->member, pace->view.round.witnesses[i].member);
        if (witness && witness->index != self->member.index) untold = witness;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        const struct effect *effect = &out->effects[i];
        const bool is_news = effect->port == PORT_NEWS;
        if (effect->kind == FRAME_VOTE && (!since_ms || in->now_ms < due_ms)) {
            i = drop(out, i);
            pace->witness.resend_ms = since_ms ? due_ms : 0;
        } else if (effect->kind == FRAME_CLAIM && is_news) {
            i = drop(out, i);
            pace->training.resend_ms = 0; // By mail, then
        } else if (effect->kind == FRAME_CLAIM && untold && strcmp(effect->to, untold->name) == 0)
            i = drop(out, i);
    }
}

// ---- what it serves -----------------------------------------------------------------------------

static _Atomic uint64_t round_now;

size_t __real_bulk_answer(struct bulk_server *self, struct seat *seat);
size_t __wrap_bulk_answer(struct bulk_server *self, struct seat *seat);
size_t __wrap_bulk_answer(struct bulk_server *self, struct seat *seat)
{
    static struct key shunned;
    static uint64_t kept;
    if (attack() != SILENT_TO_ONE || !hostile_has_begun(round_now) ||
        seat->mail.head.kind != FRAME_WANT)
        return __real_bulk_answer(self, seat);
    if (key_is_none(&shunned)) shunned = seat->asker->key;
    if (!key_equal(&shunned, &seat->asker->key)) return __real_bulk_answer(self, seat);
    tell("kept", ++kept);
    return 0;
}

// -----------------------------------------------------------------------------------------------------

void hostile_attack(struct trainer *self, const struct msg *in, struct outbox *out)
{
    const enum attack as = attack();
    round_now = self->member.round;
    if (as == NONE) return;
    watch_victim(self, in);
    if (!hostile_has_begun(self->member.round)) return;
    switch (as) {
    case LATE_VOTE: vote_late(self, in, out); break;
    case EMPTY_VOTE: vote_for_nothing(self, out); break;
    case LATE_FINDING: find_late(self, in, out); break;
    case HELD_HOLDS: never_hold(out); break;
    case GORGE: start_once(gorge); break;
    case REVEALS: pour_reveals(self, in, out); break;
    case PROBES: start_once(pour_probes); break;
    default: break;
    }
}
