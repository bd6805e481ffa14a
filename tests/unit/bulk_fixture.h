#pragma once
// bulk_fixture -- for the tests and the bench of the bulk plane: servers with blobs and
// parameters, a fetcher and what a core would say to it, and holders that do not keep to the
// protocol.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server.h"
#include "common/bulk/fetcher.h"
#include "common/crypto/merkle.h"
#include "common/bulk/bulk_line.h"
#include "common/net/tcp.h"
#include "tests/unit/pin_fixture.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

enum { FIXTURE_ARENA = 1 << 20, FIXTURE_BODY = 1 << 20 };
#define FIXTURE_RUN "demo"

// One identity for all of them: permission to fetch is tested elsewhere.
static inline const struct identity *fixture_identity(void)
{
    static struct identity *identity;
    static const uint8_t secret[SECRET_BYTES] = { 1, 2, 3 };
    if (!identity) ensure(identity_from_secret(secret, NULL, &identity) == 0);
    return identity;
}

static inline struct wire_holder fixture_at(const char *endpoint)
{
    struct wire_holder holder = { .endpoint = "" };
    snprintf(holder.endpoint, sizeof holder.endpoint, "%s", endpoint);
    holder.key = *identity_key(fixture_identity());
    return holder;
}

static inline void fixture_admit(bulk_server_t *server)
{
    bulk_server_admit(server, identity_key(fixture_identity()), true);
}

static inline uint8_t *fixture_bytes(size_t count, uint64_t seed)
{
    uint8_t *bytes = malloc(count + 8);
    ensure(bytes);
    for (size_t i = 0; i < count; i += 8) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = seed ^ seed >> 29;
        memcpy(bytes + i, &word, 8);
    }
    return bytes;
}

// ---- a holder -------------------------------------------------------------------------------

struct fixture_holder {
    blob_store_t *store;
    bulk_server_t *server;
    struct wire_holder holder;
};

static inline struct fixture_holder fixture_holder_new_at(const char *endpoint)
{
    struct fixture_holder self = { 0 };
    struct why why;
    ensure(blob_store_new(NULL, &why, &self.store) == 0);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = endpoint,
                                                 .run = FIXTURE_RUN,
                                                 .store = self.store };
    ensure(bulk_server_new(&options, &why, &self.server) == 0);
    fixture_admit(self.server);
    self.holder = fixture_at(bulk_server_endpoint(self.server));
    return self;
}

static inline struct fixture_holder fixture_holder_new(void)
{
    return fixture_holder_new_at("tcp://127.0.0.1:*");
}

static inline void fixture_holder_destroy(struct fixture_holder *self)
{
    bulk_server_destroy(&self->server);
    blob_store_destroy(&self->store);
}

static inline struct hash fixture_give(blob_store_t *store, const uint8_t *bytes, size_t count)
{
    struct hash hash;
    ensure(blob_store_put(store, bytes, count, NULL, &hash) == 0);
    return hash;
}

// ---- a fetcher ------------------------------------------------------------------------------

struct fixture_fetcher {
    blob_store_t *store;
    struct worker *worker;
    struct fetcher_options options;
    uint8_t *arena, *body;
};

// The thread reads the options at any time: all of them are set before it starts.
static inline struct fixture_fetcher *fixture_fetcher_make(uint32_t patience_ms,
                                                           const struct fetch_namer *namer,
                                                           const struct blob_store_options *store)
{
    struct fixture_fetcher *self = calloc(1, sizeof *self);
    ensure(self && blob_store_new(store, NULL, &self->store) == 0);
    self->options = (struct fetcher_options){ .identity = fixture_identity(),
                                              .store = self->store,
                                              .run = FIXTURE_RUN,
                                              .namer = namer,
                                              .patience_ms = patience_ms };
    self->arena = malloc(FIXTURE_ARENA);
    self->body = malloc(FIXTURE_BODY);
    ensure(self->arena && self->body);
    self->worker = worker_new(PORT_FETCHER, fetcher_run, &self->options);
    return self;
}

static inline struct fixture_fetcher *fixture_fetcher_named(uint32_t patience_ms,
                                                            const struct fetch_namer *namer)
{
    return fixture_fetcher_make(patience_ms, namer, NULL);
}

static inline struct fixture_fetcher *fixture_fetcher_new(uint32_t patience_ms)
{
    return fixture_fetcher_named(patience_ms, NULL);
}

static inline void fixture_fetcher_destroy(struct fixture_fetcher *self)
{
    worker_destroy(&self->worker);
    blob_store_destroy(&self->store);
    free(self->arena);
    free(self->body);
    free(self);
}

static inline void fixture_job(struct fixture_fetcher *self, uint16_t kind, const void *body)
{
    const size_t count = wire_pack_body(kind, body, self->body, FIXTURE_BODY);
    ensure(count > 0);
    worker_send(self->worker, kind, self->body, count);
}

// The next answer, which must be of this kind; valid until the next one.
static inline const void *fixture_answer(struct fixture_fetcher *self, uint16_t kind,
                                         int timeout_ms)
{
    struct wire_arena arena = { self->arena, 0, FIXTURE_ARENA };
    zmq_pollitem_t item = { .fd = worker_answers_fd(self->worker), .events = ZMQ_POLLIN };
    uint16_t came;
    const void *body;
    if (zmq_poll(&item, 1, timeout_ms) != 1) return NULL;
    ensure(worker_take(self->worker, &arena, &came, &body) && came == kind);
    return body;
}

static inline void fixture_fetch(struct fixture_fetcher *self, const struct hash *hash,
                                 size_t bytes, const struct wire_holder *holders, uint32_t count)
{
    const struct wire_blob blob = { *hash, (uint32_t)bytes };
    fixture_job(self, FRAME_FETCH, &(struct wire_fetch){ &blob, 1, holders, count, 0, false });
}

static inline void fixture_fetch_urgently(struct fixture_fetcher *self, const struct hash *hash,
                                          size_t bytes, const struct wire_holder *holders,
                                          uint32_t count)
{
    const struct wire_blob blob = { *hash, (uint32_t)bytes };
    fixture_job(self, FRAME_FETCH, &(struct wire_fetch){ &blob, 1, holders, count, 0, true });
}

static inline void fixture_fetch_state(struct fixture_fetcher *self, uint64_t step,
                                       const struct hash *digest, const struct state_cut *cut,
                                       const struct wire_holder *holders, uint32_t count)
{
    struct wire_state_item items[STATE_ITEMS_MAX];
    for (uint32_t i = 1; i < cut->count; i++) items[i - 1].bytes = cut->bytes[i];
    const struct wire_fetch_model job = { .step = step,
                                          .digest = *digest,
                                          .holders = holders,
                                          .holders_count = count,
                                          .floats = cut->bytes[0] / sizeof(float),
                                          .items = items,
                                          .items_count = cut->count - 1 };
    fixture_job(self, FRAME_FETCH_MODEL, &job);
}

static inline void fixture_fetch_model(struct fixture_fetcher *self, uint64_t step,
                                       const struct hash *digest, uint64_t floats,
                                       const struct wire_holder *holders, uint32_t count)
{
    const struct state_cut cut = state_cut_of_floats(floats);
    fixture_fetch_state(self, step, digest, &cut, holders, count);
}

static inline void fixture_forget(struct fixture_fetcher *self, const struct hash *hash)
{
    fixture_job(self, FRAME_FORGET, &(struct wire_forget){ &(struct wire_blob){ *hash, 1 }, 1 });
}

// ---- one that asks in its own words -----------------------------------------------------------

struct fixture_asker {
    struct handshake_self self;
    struct bulk_line line;
    struct bulk_mail mail; // The newest answer
    struct why why;        // Why its connection has ended
};

static inline void fixture_asker_open(struct fixture_asker *self, const struct identity *identity,
                                      const struct wire_holder *holder)
{
    *self = (struct fixture_asker){ .self = bulk_line_self(identity, FIXTURE_RUN) };
    ensure(bulk_line_connect(&self->line, &self->self, holder, &self->why) == 0);
    self->line.raw_max = BULK_ANSWER_BYTES_MAX;
}

// Queues a question, and sends what can be sent without waiting. False: the connection has ended.
static inline bool fixture_say(struct fixture_asker *self, const char *run, uint16_t kind,
                               const void *question)
{
    bulk_line_put(&self->line, run, kind, question, NULL, 0);
    return bulk_line_move(&self->line, &self->why) >= 0;
}

// Until an answer is here, the connection has ended, or the time is up.
static inline enum bulk_heard fixture_hear(struct fixture_asker *self, int timeout_ms)
{
    const uint64_t until_ms = clock_ms() + (uint64_t)timeout_ms;
    for (;;) {
        const int rc = bulk_line_move(&self->line, &self->why);
        const enum bulk_heard heard =
            rc < 0 ? BULK_ENDED : bulk_line_recv(&self->line, &self->mail, &self->why);
        const uint64_t now_ms = clock_ms();
        if (heard != BULK_NOTHING || now_ms >= until_ms) return heard;
        struct pollfd item = { .fd = self->line.fd, .events = bulk_line_events(&self->line) };
        poll(&item, 1, (int)(until_ms - now_ms));
    }
}

// ---- holders that are not as they should be ---------------------------------------------------

enum rogue_mode {
    ROGUE_DIES,       // Right answers, but after `chunks` of them its connection ends
    ROGUE_SILENT,     // Hears everything and says nothing
    ROGUE_WRONG,      // The right size, one wrong bit in the `chunks`th chunk and after
    ROGUE_LARGER,     // Says that the blob has one byte more
    ROGUE_SHORT,      // Sends one byte less than was asked for
    ROGUE_OTHER,      // Answers with another hash
    ROGUE_HUGE,       // Sends more than any answer may be
    ROGUE_WRONG_LIST, // A list of leaves of another model
    ROGUE_SHORT_LIST, // A list of one, the digest itself: its root is right
    ROGUE_ENDLESS,    // `chunks` answers of a MiB each, that nobody asked, to whatever is asked
    ROGUE_CHATTY,     // `chunks` short answers that nobody asked, to whatever is asked
    ROGUE_LONG,       // The right answer, behind a head that says that it is longer than was asked
    ROGUE_SLOW, // All is right; after `chunks` of them each connection gets one in ROGUE_PACE_MS
};

enum { ROGUE_PACE_MS = 180, ROGUE_QUEUE_MAX = 2048, ROGUE_CONNECTIONS_MAX = 128 };

struct rogue_connection {
    struct bulk_line line;
    uint32_t asked;
    uint64_t due_ms;
};
struct rogue_queued {
    uint32_t to; // Index of its connection
    struct bulk_mail mail;
    uint64_t due_ms;
};

struct rogue {
    enum rogue_mode mode;
    uint32_t chunks;
    blob_store_t *store; // Borrowed: what it would hold if it were honest
    struct handshake_self self;
    int listener, stop;
    pthread_t thread;
    atomic_uint asked, answered;
    struct wire_holder holder;
    struct rogue_connection connections[ROGUE_CONNECTIONS_MAX]; // Those that have ended, too
    uint32_t connections_count, queued_count;
    struct rogue_queued *queued; // ROGUE_SLOW
};

static inline void rogue_say(struct rogue_connection *to, uint16_t kind, const void *body,
                             const void *raw, size_t count)
{
    bulk_line_put(&to->line, FIXTURE_RUN, kind, body, raw, count);
}

static inline void rogue_send_endless(struct rogue *self, struct rogue_connection *to)
{
    static const uint8_t part[1 << 20];
    const struct wire_chunk chunk = { .request = 77, .total = sizeof part };
    for (uint32_t i = 0; i < self->chunks && to->line.fd >= 0; i++) {
        rogue_say(to, FRAME_CHUNK, &chunk, part, sizeof part);
        while (to->line.out_bytes > 4 * sizeof part) {
            struct pollfd item = { .fd = to->line.fd, .events = POLLOUT };
            poll(&item, 1, 100);
            if (bulk_line_move(&to->line, NULL) >= 0) continue;
            bulk_line_close(&to->line);
            return;
        }
    }
}

static inline void rogue_answer(struct rogue *self, struct rogue_connection *to,
                                struct bulk_mail *mail)
{
    const struct wire_want *want = mail->body;
    const bool is_list = mail->head.kind == FRAME_WANT_LEAVES;
    struct blob_ref ref = { 0 };
    struct state_cut cut = { 0 };
    if (self->mode == ROGUE_SILENT || to->line.fd < 0) return;
    self->answered++;
    if (self->mode == ROGUE_ENDLESS) {
        rogue_send_endless(self, to);
        return;
    }
    if (self->mode == ROGUE_CHATTY) {
        const struct wire_lacking lacking = { .request = 77 };
        for (uint32_t i = 0; i < self->chunks; i++) rogue_say(to, FRAME_LACKING, &lacking, NULL, 0);
        return;
    }
    const struct hash hash =
        is_list ? ((const struct wire_want_leaves *)mail->body)->digest : want->hash;
    const uint32_t request =
        is_list ? ((const struct wire_want_leaves *)mail->body)->request : want->request;
    const int rc = is_list ? blob_store_leaves(self->store, &hash, NULL, &ref, &cut)
                           : blob_store_get(self->store, &hash, NULL, &ref);
    if (rc < 0) {
        rogue_say(to, FRAME_LACKING, &(struct wire_lacking){ request, hash, "" }, NULL, 0);
        return;
    }
    const size_t offset = is_list ? 0 : want->offset, rest = ref.count - offset;
    size_t count = is_list || rest < want->count ? rest : want->count;
    if (self->mode == ROGUE_SHORT) count--;
    if (self->mode == ROGUE_SHORT_LIST && is_list) count = HASH_BYTES;
    const size_t room = self->mode == ROGUE_HUGE ? BULK_ANSWER_BYTES_MAX + 1 : count;
    uint8_t *raw = calloc(1, room + HASH_BYTES);
    ensure(raw);
    memcpy(raw, ref.bytes + offset, count);
    if (self->mode == ROGUE_WRONG && self->asked > self->chunks) raw[count / 2] ^= 4;
    if (self->mode == ROGUE_WRONG_LIST && is_list) raw[5] ^= 1;
    if (self->mode == ROGUE_SHORT_LIST && is_list) memcpy(raw, &hash, HASH_BYTES);
    struct wire_chunk chunk = { request, hash, offset, ref.count + (self->mode == ROGUE_LARGER) };
    if (self->mode == ROGUE_OTHER) chunk.hash.bytes[0] ^= 1;
    const struct wire_leaves leaves = { request, hash, cut.bytes[0] / sizeof(float) };
    rogue_say(to, is_list ? FRAME_LEAVES : FRAME_CHUNK, is_list ? (const void *)&leaves : &chunk,
              raw, self->mode == ROGUE_HUGE ? room : count + (self->mode == ROGUE_LONG));
    free(raw);
    blob_store_release(&ref);
}

static inline void rogue_answer_slowly(struct rogue *self, struct rogue_connection *to,
                                       struct bulk_mail *mail)
{
    const uint64_t now_ms = clock_ms();
    if (mail->head.kind == FRAME_WANT_LEAVES || to->asked++ < self->chunks) {
        rogue_answer(self, to, mail);
        return;
    }
    ensure(self->queued_count < ROGUE_QUEUE_MAX && !mail->raw);
    if (to->due_ms < now_ms) to->due_ms = now_ms;
    struct rogue_queued *queued = &self->queued[self->queued_count++];
    queued->due_ms = to->due_ms += ROGUE_PACE_MS;
    queued->to = (uint32_t)(to - self->connections);
    queued->mail = *mail;
    queued->mail.body = queued->mail.arena + ((const uint8_t *)mail->body - mail->arena);
}

static inline void rogue_answer_due(struct rogue *self)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < self->queued_count; i++) {
        struct rogue_queued *queued = &self->queued[i], *to = &self->queued[kept];
        const size_t offset = (size_t)((const uint8_t *)queued->mail.body - queued->mail.arena);
        if (queued->due_ms <= clock_ms()) {
            rogue_answer(self, &self->connections[queued->to], &queued->mail);
            continue;
        }
        if (to != queued) *to = *queued;
        to->mail.body = to->mail.arena + offset;
        kept++;
    }
    self->queued_count = kept;
}

static inline enum handshake_refusal rogue_lets_in(void *arg, const struct handshake_party *from,
                                                   const struct handshake_purpose *purpose)
{
    (void)arg, (void)from, (void)purpose;
    return HANDSHAKE_REFUSED_NONE;
}

// False: it is to die.
static inline bool rogue_hear(struct rogue *self, struct rogue_connection *from)
{
    struct bulk_mail mail;
    int rc = bulk_line_move(&from->line, NULL);
    while (rc == 1) {
        const enum bulk_heard heard = bulk_line_recv(&from->line, &mail, NULL);
        if (heard == BULK_NOTHING) break;
        if (heard == BULK_ENDED) rc = FAULT_UNREACHABLE;
        if (rc < 0) break;
        self->asked++;
        if (self->mode == ROGUE_DIES && self->asked > self->chunks) return false;
        if (self->mode == ROGUE_SLOW) rogue_answer_slowly(self, from, &mail);
        else rogue_answer(self, from, &mail);
        rc = bulk_line_move(&from->line, NULL);
    }
    if (rc < 0) bulk_line_close(&from->line);
    return true;
}

static inline void rogue_accept(struct rogue *self)
{
    const int fd = tcp_accept(self->listener);
    if (fd < 0) return;
    ensure(self->connections_count < ROGUE_CONNECTIONS_MAX);
    bulk_line_accept(&self->connections[self->connections_count++].line, &self->self, fd);
}

static inline void *rogue_run(void *arg)
{
    struct rogue *self = arg;
    struct pollfd items[2 + ROGUE_CONNECTIONS_MAX];
    for (bool lives = true; lives;) {
        items[0] = (struct pollfd){ .fd = self->stop, .events = POLLIN };
        items[1] = (struct pollfd){ .fd = self->listener, .events = POLLIN };
        for (uint32_t i = 0; i < self->connections_count; i++) {
            const struct bulk_line *line = &self->connections[i].line;
            items[2 + i] = (struct pollfd){ .fd = line->fd };
            if (line->fd >= 0) items[2 + i].events = bulk_line_events(line);
        }
        poll(items, 2 + self->connections_count, self->queued_count ? 10 : -1);
        if (items[0].revents) break;
        rogue_answer_due(self);
        for (uint32_t i = 0; i < self->connections_count && lives; i++)
            if (self->connections[i].line.fd >= 0) lives = rogue_hear(self, &self->connections[i]);
        rogue_accept(self);
    }
    for (uint32_t i = 0; i < self->connections_count; i++)
        bulk_line_close(&self->connections[i].line);
    close(self->listener);
    return NULL;
}

// NULL: this machine has no such address.
static inline struct rogue *rogue_new_at(const char *endpoint, enum rogue_mode mode,
                                         uint32_t chunks, blob_store_t *store)
{
    struct rogue *self = calloc(1, sizeof *self);
    uint16_t port;
    ensure(self);
    self->holder = fixture_at("");
    self->mode = mode;
    self->chunks = chunks;
    self->store = store;
    self->self = bulk_line_self(fixture_identity(), FIXTURE_RUN);
    self->self.judge = rogue_lets_in;
    if (tcp_listen(endpoint, NULL, &self->listener, &port) < 0) {
        free(self);
        return NULL;
    }
    snprintf(self->holder.endpoint, sizeof self->holder.endpoint, "%.*s:%u",
             (int)(strrchr(endpoint, ':') - endpoint), endpoint, port);
    self->queued = malloc(ROGUE_QUEUE_MAX * sizeof *self->queued);
    self->stop = eventfd(0, EFD_CLOEXEC);
    ensure(self->queued && self->stop >= 0);
    ensure(pthread_create(&self->thread, NULL, rogue_run, self) == 0);
    return self;
}

static inline struct rogue *rogue_new(enum rogue_mode mode, uint32_t chunks, blob_store_t *store)
{
    struct rogue *self = rogue_new_at("tcp://127.0.0.1:0", mode, chunks, store);
    ensure(self);
    return self;
}

// One rogue under as many names as there shall be holders.
static inline struct rogue *rogue_new_of_names(enum rogue_mode mode, uint32_t chunks,
                                               blob_store_t *store, struct wire_holder *list,
                                               uint32_t count)
{
    struct rogue *rogue = rogue_new_at("tcp://0.0.0.0:0", mode, chunks, store);
    ensure(rogue);
    const char *port = strrchr(rogue->holder.endpoint, ':');
    for (uint32_t i = 0; i < count; i++) {
        list[i] = fixture_at("");
        snprintf(list[i].endpoint, sizeof list[i].endpoint, "tcp://127.0.0.%u%s", i + 1, port);
    }
    return rogue;
}

static inline void rogue_destroy(struct rogue *self)
{
    ensure(eventfd_write(self->stop, 1) == 0);
    pthread_join(self->thread, NULL);
    close(self->stop);
    free(self->queued);
    free(self);
}
