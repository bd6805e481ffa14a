// Who may link, and how links come to stand.
//
// The end with the smaller key connects, the other accepts: first the control connection, then the
// channels. Whoever connects here is a stranger until its handshake is done. A stranger has 5 s for
// its HELLO, and a minute more once the HELLO is wanted: that of a key and instance of the window, or
// of one that is expected. No other gets an answer that costs work. Anybody can say HELLO in the name of a
// member. So an address has only so many answers (callers.h); a handshake that proves its key is not counted.
// Who calls from a member's own address can use up what that member has there. When 16 strangers without a
// wanted HELLO are under way and another one comes, the oldest of them goes. Those with a wanted one have room of
// their own: one place for each connection that a peer has still to make, and 16 more; then the oldest of them
// goes.

#include "common/group/group_inside.h"
#include "common/net/endpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    STRANGERS_MAX = 16, // Without a wanted HELLO
    HANDSHAKE_MS = 5000,
    ACCEPTS_MAX = 8,   // At one waking
    NO_ROOM_MS = 1000, // So long nobody is accepted when no descriptor or no memory is left for it
    PAUSE_MIN_MS = 2,
    PAUSE_MAX_MS = 100,
    LEISURE_MS = 1000, // The longest pause between two attempts to link with one that is expected
    // A handshake at leisure, of which a member does a part between two steps
    LEISURE_HANDSHAKE_MS = 60000,
    NOTSENT_MAX = 128 << 10,
};

// ---- the peers ------------------------------------------------------------------------------

struct peer *links_find(const group_t *self, const struct key *key, uint64_t instance)
{
    for (uint32_t i = 0; i < self->peer_count; i++)
        if (self->peers[i]->who.instance == instance && key_equal(&self->peers[i]->who.key, key))
            return self->peers[i];
    return NULL;
}

static void drop_attempts(group_t *self, const struct peer *peer);

static void peer_destroy(group_t *self, struct peer *peer)
{
    drop_attempts(self, peer);
    talk_end(peer);
    control_close(peer);
    for (uint32_t c = 0; c < self->options.connections; c++) {
        channel_close(&peer->channels[c]);
        free(peer->channels[c].room);
    }
    free(peer->channels);
    free(peer->results_taken);
    free(peer);
}

struct peer *links_peer_new(group_t *self, const struct group_member *who)
{
    ensure(self->peer_count < PEERS_MAX);
    struct peer *peer = calloc(1, sizeof *peer);
    ensure(peer);
    peer->channels = calloc(self->options.connections, sizeof *peer->channels);
    ensure(peer->channels);
    peer->who = *who;
    peer->we_connect = key_compare(&self->key, &who->key) < 0;
    peer->place = UINT32_MAX;
    peer->control.fd = -1;
    for (uint32_t c = 0; c < self->options.connections; c++)
        peer->channels[c] = (struct channel){ .fd = -1, .pipe = { -1, -1 } };
    self->peers[self->peer_count++] = peer;
    return peer;
}

int links_public(const char *address, struct why *why)
{
    return why_set(why, FAULT_CONFIG,
                   "%s is a public address: links are plain only between loopback or private ones; "
                   "choose link = \"aes-gcm\"",
                   address);
}

int links_check(const group_t *self, const struct group_member *who, struct why *why)
{
    if (!memchr(who->endpoint, 0, sizeof who->endpoint) || !*who->endpoint)
        return why_set(why, FAULT_CONFIG, "a member has no endpoint");
    if (!endpoint_is_numeric(who->endpoint))
        return why_set(why, FAULT_CONFIG,
                       "%s is no endpoint of a member: write tcp://ADDRESS:PORT in numbers, port 1 "
                       "to 65535",
                       who->endpoint);
    if (self->options.link == GROUP_PLAIN && !tcp_names_private(who->endpoint))
        return links_public(who->endpoint, why);
    return 0;
}

// Those that are in no list go, and their links with them.
void links_drop_others(group_t *self)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < self->peer_count; i++) {
        struct peer *peer = self->peers[i];
        if (peer->place != UINT32_MAX || peer->expected) self->peers[kept++] = peer;
        else peer_destroy(self, peer);
    }
    self->peer_count = kept;
}

int group_expect(group_t *self, const struct group_member *members, uint32_t count, struct why *why)
{
    int rc = 0;
    ensure(count <= GROUP_MEMBERS_MAX);
    for (uint32_t i = 0; i < self->peer_count; i++) self->peers[i]->expected = false;
    self->expected_self = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct peer *peer = links_find(self, &members[i].key, members[i].instance);
        if (peer) peer->expected = true;
        else if (key_equal(&members[i].key, &self->key)) self->expected_self = (uint64_t)1 << i;
    }
    links_drop_others(self);
    for (uint32_t i = 0; i < count; i++) {
        struct peer *peer = links_find(self, &members[i].key, members[i].instance);
        if (key_equal(&members[i].key, &self->key)) continue;
        const int fault = links_check(self, &members[i], rc ? NULL : why);
        if (rc == 0) rc = fault;
        if (peer) peer->expected = fault == 0;
        if (fault != 0) continue;
        if (!peer) peer = links_peer_new(self, &members[i]);
        peer->expected = true;
        memcpy(peer->who.endpoint, members[i].endpoint, sizeof peer->who.endpoint);
        peer->expected_at = i;
    }
    links_begin_due(self);
    return rc;
}

uint64_t group_linked(const group_t *self)
{
    uint64_t linked = self->expected_self;
    for (uint32_t i = 0; i < self->peer_count; i++) {
        const struct peer *peer = self->peers[i];
        if (peer->expected && peer->control.fd >= 0 && !peer->silent)
            linked |= (uint64_t)1 << peer->expected_at;
    }
    return linked;
}

int group_serve(group_t *self, uint32_t timeout_ms, struct why *why)
{
    const uint64_t until_ms = clock_ms() + timeout_ms, before = group_linked(self);
    int rc;
    self->idle = timeout_ms > 0;
    do rc = group_wait(self, until_ms, false, why);
    while (rc == 0 && group_linked(self) == before && clock_ms() < until_ms);
    self->idle = false;
    if (rc == 0 && group_linked(self) == before)
        rc = why_set(why, FAULT_TIMEOUT, "no link has changed within %u ms", timeout_ms);
    return rc;
}

// No window in hand needs this link now: there is time.
static bool is_at_leisure(const group_t *self, const struct peer *peer)
{
    return peer->expected && (peer->place == UINT32_MAX || self->idle || self->fault);
}

// ---- attempts -------------------------------------------------------------------------------

static void attempt_free(group_t *self, struct attempt *attempt)
{
    for (struct attempt **at = &self->attempts; *at; at = &(*at)->next)
        if (*at == attempt) {
            *at = attempt->next;
            break;
        }
    if (attempt->fd >= 0) close(attempt->fd);
    handshake_wipe(&attempt->handshake);
    free(attempt);
}

static void drop_attempts(group_t *self, const struct peer *peer)
{
    for (struct attempt *a = self->attempts, *next; a; a = next) {
        next = a->next;
        if (a->connects && a->peer == peer) attempt_free(self, a);
    }
}

void links_destroy(group_t *self)
{
    while (self->attempts) attempt_free(self, self->attempts);
    while (self->peer_count) peer_destroy(self, self->peers[--self->peer_count]);
}

static struct attempt *attempt_new(group_t *self, int fd)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    ensure(attempt);
    attempt->fd = fd;
    attempt->begun_ms = clock_ms();
    attempt->deadline_ms = attempt->begun_ms + HANDSHAKE_MS;
    attempt->next = self->attempts;
    self->attempts = attempt;
    return attempt;
}

bool links_is_attempted(const group_t *self, const struct peer *peer, uint32_t channel)
{
    for (const struct attempt *a = self->attempts; a; a = a->next)
        if (a->connects && a->peer == peer && a->channel == channel) return true;
    return false;
}

void links_pause(struct peer *peer)
{
    const uint32_t most_ms = peer->place == UINT32_MAX ? LEISURE_MS : PAUSE_MAX_MS;
    peer->pause_ms = peer->pause_ms ? 2 * peer->pause_ms : PAUSE_MIN_MS;
    if (peer->pause_ms > most_ms) peer->pause_ms = most_ms;
    peer->retry_at_ms = clock_ms() + peer->pause_ms;
}

// A link that does not come to stand: the sentence, and whether trying again is of any use.
void links_refuse(struct peer *peer, int fault, bool final, const struct why *why)
{
    links_pause(peer);
    peer->form_fault = fault;
    peer->form_final = final;
    snprintf(peer->said, sizeof peer->said, "%.120s: %.120s", peer->who.endpoint, why->text);
}

// A process that was never linked may yet begin to listen.
bool links_refuses(const group_t *self, const struct peer *peer, int error)
{
    const uint32_t refused_ms = self->options.refused_ms;
    const bool is_over = refused_ms && clock_ms() - self->form_ms >= refused_ms;
    return error == ECONNREFUSED && (peer->was_linked || is_over);
}

void links_connect(group_t *self, struct peer *peer, uint32_t channel)
{
    struct why why = { 0 };
    int fd;
    const int rc = tcp_connect(peer->who.endpoint, &why, &fd);
    if (rc < 0) {
        links_refuse(peer, rc, links_refuses(self, peer, errno) || rc == FAULT_CONFIG, &why);
        return;
    }
    struct attempt *attempt = attempt_new(self, fd);
    attempt->connects = true;
    attempt->peer = peer;
    attempt->channel = channel;
    if (is_at_leisure(self, peer)) attempt->deadline_ms += LEISURE_HANDSHAKE_MS;
    const struct handshake_party party = { peer->who.key, peer->who.instance };
    const struct handshake_purpose purpose = { .channel = channel,
                                               .channels = self->options.connections,
                                               .number = self->window,
                                               .sealed = self->options.link == GROUP_SEALED };
    handshake_connect(&attempt->handshake, &self->self, &party, &purpose);
}

void links_hurry(group_t *self)
{
    const uint64_t most_ms = clock_ms() + HANDSHAKE_MS;
    for (struct attempt *a = self->attempts, *next; a; a = next) {
        next = a->next;
        if (a->deadline_ms > most_ms) a->deadline_ms = most_ms;
        // The other end takes a channel in its window alone
        if (a->connects && a->channel > 0) attempt_free(self, a);
    }
}

void links_begin_due(group_t *self)
{
    const uint64_t now_ms = clock_ms();
    for (struct attempt *a = self->attempts, *next; a; a = next) {
        next = a->next;
        if (now_ms < a->deadline_ms) continue;
        if (a->connects) {
            const struct why late = { "no answer to the handshake" };
            links_refuse(a->peer, FAULT_TIMEOUT, false, &late);
        }
        attempt_free(self, a);
    }
    for (uint32_t i = 0; i < self->peer_count; i++) {
        struct peer *peer = self->peers[i];
        if (!is_at_leisure(self, peer)) continue;
        if (peer->silent) control_close(peer); // Another connection takes its place
        if (!peer->we_connect || peer->control.fd >= 0 || now_ms < peer->retry_at_ms ||
            links_is_attempted(self, peer, 0))
            continue;
        peer->retry_at_ms = now_ms + LEISURE_MS;
        links_connect(self, peer, 0);
    }
}

uint64_t links_next_ms(const group_t *self)
{
    uint64_t at_ms = links_may_accept(self) ? UINT64_MAX : self->accept_at_ms;
    for (const struct attempt *a = self->attempts; a; a = a->next)
        if (a->deadline_ms < at_ms) at_ms = a->deadline_ms;
    for (uint32_t i = 0; i < self->peer_count; i++) {
        const struct peer *peer = self->peers[i];
        if (is_at_leisure(self, peer) && peer->we_connect && peer->control.fd < 0 &&
            peer->retry_at_ms < at_ms && !links_is_attempted(self, peer, 0))
            at_ms = peer->retry_at_ms;
        const uint64_t form_ms = form_next_ms(self, peer);
        if (form_ms < at_ms) at_ms = form_ms;
    }
    return at_ms;
}

// ---- handshakes -----------------------------------------------------------------------------

static enum handshake_refusal wants(const group_t *self, const struct handshake_party *from,
                                    const struct handshake_purpose *purpose)
{
    const struct peer *peer = links_find(self, &from->key, from->instance);
    if (!peer || peer->we_connect) return HANDSHAKE_REFUSED_STRANGER;
    if (purpose->channels != self->options.connections || purpose->channel > purpose->channels ||
        purpose->sealed != (self->options.link == GROUP_SEALED))
        return HANDSHAKE_REFUSED_PURPOSE;
    const bool has_place = peer->place != UINT32_MAX && purpose->number == self->window;
    if (purpose->channel > 0 && (peer->control.fd < 0 || !has_place))
        return HANDSHAKE_REFUSED_NOT_YET;
    return HANDSHAKE_REFUSED_NONE;
}

enum handshake_refusal links_judge(void *arg, const struct handshake_party *from,
                                   const struct handshake_purpose *purpose)
{
    group_t *self = arg;
    const enum handshake_refusal refusal = wants(self, from, purpose);
    if (refusal != HANDSHAKE_REFUSED_NONE) return refusal;
    struct sockaddr_storage *caller = &self->judged->caller;
    *caller = tcp_other_end(self->judged->fd);
    // mutant: group: anybody has any number of handshakes answered
    return callers_admit(&self->callers, (const struct sockaddr *)caller, &from->key, clock_ms())
               ? HANDSHAKE_REFUSED_NONE
               : HANDSHAKE_REFUSED_BUSY;
}

static void install_control(group_t *self, struct peer *peer, struct attempt *attempt)
{
    char name[PEER_NAME_MAX];
    if (peer->control.fd >= 0)
        peer_end(peer, FAULT_UNREACHABLE, "%s: it has connected again", peer_name(peer, name));
    control_close(peer);
    for (uint32_t c = 0; c < self->options.connections; c++) channel_close(&peer->channels[c]);
    struct control *control = &peer->control;
    ensure(handshake_seal(&attempt->handshake, &control->seal, &control->unseal));
    control->fd = attempt->fd;
    control->may_read = true;
    peer->was_linked = true;
    peer->silent = false;
    tcp_watch(control->fd);
}

static void install_channel(group_t *self, struct peer *peer, struct attempt *attempt,
                            uint32_t number)
{
    struct channel *channel = &peer->channels[number];
    channel_close(channel);
    ensure(handshake_seal(&attempt->handshake, &channel->seal, &channel->unseal));
    channel->fd = attempt->fd;
    channel->window = attempt->handshake.purpose.number;
    channel->may_read = channel->may_write = true;
    tcp_watch(channel->fd);
    // So that no connection takes far more than it can send
    if (self->options.connections > 1) tcp_bound_unsent(channel->fd, NOTSENT_MAX);
}

static void install(group_t *self, struct attempt *attempt)
{
    const struct handshake *handshake = &attempt->handshake;
    struct peer *peer = attempt->connects
                            ? attempt->peer
                            : links_find(self, &handshake->peer.key, handshake->peer.instance);
    const uint32_t channel = handshake->purpose.channel;
    // A while has passed since the HELLO
    const bool wanted = attempt->connects ? channel == 0 || peer->place != UINT32_MAX
                                          : wants(self, &handshake->peer, &handshake->purpose) ==
                                                HANDSHAKE_REFUSED_NONE;
    if (!attempt->connects)
        callers_pay_back(&self->callers, (const struct sockaddr *)&attempt->caller,
                         &handshake->peer.key);
    if (peer && wanted) {
        tcp_tune(attempt->fd);
        peer->form_fault = 0;
        if (channel == 0) install_control(self, peer, attempt);
        else install_channel(self, peer, attempt, channel - 1);
        attempt->fd = -1;
    }
    attempt_free(self, attempt);
}

// 0; FAULT_CONFIG: it leads to a public address; FAULT_UNREACHABLE: it is broken already.
static int may_be_plain(group_t *self, struct attempt *attempt, struct why *why)
{
    char address[TCP_ADDRESS_MAX];
    if (self->options.link != GROUP_PLAIN || tcp_is_private(attempt->fd, address)) return 0;
    if (address[0] == '?') return why_set(why, FAULT_UNREACHABLE, "the connection is broken");
    links_public(address, why);
    return FAULT_CONFIG;
}

// Of one that connects: whether it is of use to try again.
static bool is_final(const struct attempt *attempt, int fault)
{
    const enum handshake_refusal refusal = attempt->handshake.refusal;
    return fault == FAULT_CONFIG || fault == FAULT_PROTOCOL || fault == FAULT_SIGNATURE ||
           (fault == FAULT_DENIED && refusal != HANDSHAKE_REFUSED_STRANGER &&
            refusal != HANDSHAKE_REFUSED_NOT_YET && refusal != HANDSHAKE_REFUSED_BUSY);
}

static void fail(group_t *self, struct attempt *attempt, int fault, bool final,
                 const struct why *why)
{
    if (attempt->connects) links_refuse(attempt->peer, fault, final, why);
    attempt_free(self, attempt);
}

void links_move(group_t *self, struct attempt *attempt)
{
    struct why why = { 0 };
    if (!attempt->stands) {
        const int error = tcp_connected(attempt->fd);
        if (error == EINPROGRESS) return;
        if (error) {
            why_set(&why, 0, "%s", strerror(error));
            const bool dead = attempt->connects && links_refuses(self, attempt->peer, error);
            fail(self, attempt, FAULT_UNREACHABLE, dead, &why);
            return;
        }
        attempt->stands = true;
        const int rc = may_be_plain(self, attempt, &why);
        if (rc < 0) {
            fail(self, attempt, rc, rc == FAULT_CONFIG, &why);
            return;
        }
    }
    self->judged = attempt;
    const int rc = handshake_move(&attempt->handshake, attempt->fd, &why);
    self->judged = NULL;
    if (rc < 0) fail(self, attempt, rc, is_final(attempt, rc), &why);
    else if (rc == 1) install(self, attempt);
    else if (attempt->handshake.ends && attempt->handshake.out_done == attempt->handshake.out_count)
        attempt_free(self, attempt);
    else if (!attempt->connects &&
             attempt->handshake.in != attempt->handshake.hello) // It is wanted
        attempt->deadline_ms = attempt->begun_ms + HANDSHAKE_MS + LEISURE_HANDSHAKE_MS;
}

// Those that peers have still to make to us.
static uint32_t missing_connections(const group_t *self)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < self->peer_count; i++) {
        const struct peer *peer = self->peers[i];
        if (peer->we_connect) continue;
        missing += peer->control.fd < 0;
        for (uint32_t c = 0; c < self->options.connections; c++)
            missing += peer->channels[c].fd < 0;
    }
    return missing;
}

// For one more. A large group that forms has many wanted handshakes under way, each a round trip long.
static void make_room(group_t *self)
{
    const uint32_t wanted_max = STRANGERS_MAX + missing_connections(self);
    struct attempt *oldest = NULL, *oldest_wanted = NULL;
    uint32_t unwanted = 0, wanted = 0;
    for (struct attempt *a = self->attempts; a; a = a->next) { // The oldest is the last
        if (a->connects) continue;
        if (a->handshake.in == a->handshake.hello) oldest = a, unwanted++;
        else oldest_wanted = a, wanted++;
    }
    if (unwanted >= STRANGERS_MAX) attempt_free(self, oldest);
    if (wanted >= wanted_max) attempt_free(self, oldest_wanted);
}

bool links_may_accept(const group_t *self) { return clock_ms() >= self->accept_at_ms; }

void links_accept(group_t *self)
{
    struct why why;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        const int fd = tcp_accept(self->listener);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            self->accept_at_ms = clock_ms() + NO_ROOM_MS; // The connection stays, and would wake us
        if (fd < 0) return;
        make_room(self);
        struct attempt *attempt = attempt_new(self, fd);
        attempt->stands = true;
        handshake_accept(&attempt->handshake, &self->self);
        if (may_be_plain(self, attempt, &why) < 0) attempt_free(self, attempt);
        else links_move(self, attempt);
    }
}
