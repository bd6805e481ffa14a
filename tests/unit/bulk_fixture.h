#pragma once
// bulk_fixture -- for the tests and the bench of the bulk plane: servers with blobs and
// parameters, a fetcher and what a core would say to it, and holders that do not keep to the
// protocol.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server.h"
#include "common/bulk/fetcher.h"
#include "common/crypto/merkle.h"
#include "common/bulk/bulk_socket.h"
#include "tests/unit/pin_fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct curve_key key;
    ensure(curve_of_key(identity_key(fixture_identity()), &key));
    bulk_server_admit(server, &key, true);
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

static inline struct fixture_holder fixture_holder_new(void)
{
    struct fixture_holder self = { 0 };
    struct why why;
    ensure(blob_store_new(NULL, &why, &self.store) == 0);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .store = self.store };
    ensure(bulk_server_new(&options, &why, &self.server) == 0);
    fixture_admit(self.server);
    self.holder = fixture_at(bulk_server_endpoint(self.server));
    return self;
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
static inline struct fixture_fetcher *fixture_fetcher_named(uint32_t patience_ms,
                                                            const struct fetch_namer *namer)
{
    struct fixture_fetcher *self = calloc(1, sizeof *self);
    ensure(self && blob_store_new(NULL, NULL, &self->store) == 0);
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
    zmq_pollitem_t item = { .socket = worker_socket(self->worker), .events = ZMQ_POLLIN };
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
    fixture_job(self, FRAME_FETCH, &(struct wire_fetch){ &blob, 1, holders, count, 0 });
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
    ROGUE_ENDLESS,    // `chunks` parts of a MiB each, of one answer, to whatever is asked
    ROGUE_SLOW, // All is right; after `chunks` of them each connection gets one in ROGUE_PACE_MS
};

enum { ROGUE_PACE_MS = 180, ROGUE_QUEUE_MAX = 2048, ROGUE_CONNECTIONS_MAX = 64 };

struct rogue_connection {
    uint8_t id[BULK_ID_MAX];
    size_t id_count;
    uint32_t asked;
    uint64_t due_ms;
};
struct rogue_queued {
    struct bulk_mail mail;
    uint64_t due_ms;
};

struct rogue {
    enum rogue_mode mode;
    uint32_t chunks;
    blob_store_t *store; // Borrowed: what it would hold if it were honest
    void *context, *router, *zap;
    pthread_t thread;
    atomic_uint asked, answered;
    struct wire_holder holder;
    struct rogue_connection connections[ROGUE_CONNECTIONS_MAX]; // ROGUE_SLOW, as is the queue
    uint32_t connections_count, queued_count;
    struct rogue_queued *queued;
};

// It costs the rogue nothing: all parts are the same bytes. What the peer's end leaves unsent is
// dropped.
static inline void rogue_send_endless(struct rogue *self, const struct bulk_mail *mail)
{
    static uint8_t part[1 << 20];
    zmq_send(self->router, mail->id, mail->id_count, ZMQ_SNDMORE);
    for (uint32_t i = 1; i <= self->chunks; i++) {
        zmq_msg_t raw;
        zmq_msg_init_data(&raw, part, sizeof part, NULL, NULL);
        if (zmq_msg_send(&raw, self->router, i < self->chunks ? ZMQ_SNDMORE : 0) < 0)
            zmq_msg_close(&raw);
    }
}

static inline void rogue_answer(struct rogue *self, struct bulk_mail *mail)
{
    const struct wire_want *want = mail->body;
    const bool is_list = mail->head.kind == FRAME_WANT_LEAVES;
    struct blob_ref ref = { 0 };
    struct state_cut cut = { 0 };
    zmq_msg_t raw;
    if (self->mode == ROGUE_SILENT) return;
    self->answered++;
    if (self->mode == ROGUE_ENDLESS) {
        rogue_send_endless(self, mail);
        return;
    }
    const struct hash hash =
        is_list ? ((const struct wire_want_leaves *)mail->body)->digest : want->hash;
    const uint32_t request =
        is_list ? ((const struct wire_want_leaves *)mail->body)->request : want->request;
    const int rc = is_list ? blob_store_leaves(self->store, &hash, NULL, &ref, &cut)
                           : blob_store_get(self->store, &hash, NULL, &ref);
    if (rc < 0) {
        bulk_send(self->router, mail, FIXTURE_RUN, FRAME_LACKING,
                  &(struct wire_lacking){ request, hash, "" }, NULL);
        return;
    }
    const size_t offset = is_list ? 0 : want->offset, rest = ref.count - offset;
    size_t count = is_list || rest < want->count ? rest : want->count;
    if (self->mode == ROGUE_SHORT) count--;
    if (self->mode == ROGUE_SHORT_LIST && is_list) count = HASH_BYTES;
    zmq_msg_init_size(&raw, self->mode == ROGUE_HUGE ? BULK_ANSWER_BYTES_MAX + 1 : count);
    memcpy(zmq_msg_data(&raw), ref.bytes + offset, count);
    if (self->mode == ROGUE_WRONG && self->asked > self->chunks)
        ((uint8_t *)zmq_msg_data(&raw))[count / 2] ^= 4;
    if (self->mode == ROGUE_WRONG_LIST && is_list) ((uint8_t *)zmq_msg_data(&raw))[5] ^= 1;
    if (self->mode == ROGUE_SHORT_LIST && is_list) memcpy(zmq_msg_data(&raw), &hash, HASH_BYTES);
    struct wire_chunk chunk = { request, hash, offset, ref.count + (self->mode == ROGUE_LARGER) };
    if (self->mode == ROGUE_OTHER) chunk.hash.bytes[0] ^= 1;
    const struct wire_leaves leaves = { request, hash, cut.bytes[0] / sizeof(float) };
    if (!bulk_send(self->router, mail, FIXTURE_RUN, is_list ? FRAME_LEAVES : FRAME_CHUNK,
                   is_list ? (const void *)&leaves : &chunk, &raw))
        zmq_msg_close(&raw); // It has gone
    blob_store_release(&ref);
}

static inline struct rogue_connection *rogue_connection_of(struct rogue *self,
                                                           const struct bulk_mail *mail)
{
    for (uint32_t i = 0; i < self->connections_count; i++) {
        struct rogue_connection *connection = &self->connections[i];
        if (connection->id_count == mail->id_count &&
            memcmp(connection->id, mail->id, mail->id_count) == 0)
            return connection;
    }
    ensure(self->connections_count < ROGUE_CONNECTIONS_MAX);
    struct rogue_connection *connection = &self->connections[self->connections_count++];
    memcpy(connection->id, mail->id, connection->id_count = mail->id_count);
    return connection;
}

static inline void rogue_answer_slowly(struct rogue *self, struct bulk_mail *mail)
{
    struct rogue_connection *connection = rogue_connection_of(self, mail);
    const uint64_t now_ms = clock_ms();
    if (mail->head.kind == FRAME_WANT_LEAVES || connection->asked++ < self->chunks) {
        rogue_answer(self, mail);
        return;
    }
    ensure(self->queued_count < ROGUE_QUEUE_MAX && !mail->has_raw);
    if (connection->due_ms < now_ms) connection->due_ms = now_ms;
    struct rogue_queued *queued = &self->queued[self->queued_count++];
    queued->due_ms = connection->due_ms += ROGUE_PACE_MS;
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
            rogue_answer(self, &queued->mail);
            continue;
        }
        if (to != queued) *to = *queued;
        to->mail.body = to->mail.arena + offset;
        kept++;
    }
    self->queued_count = kept;
}

static inline bool rogue_lets_in(void *arg, const struct zap_request *request)
{
    (void)arg, (void)request;
    return true;
}

static inline void *rogue_run(void *arg)
{
    struct rogue *self = arg;
    struct bulk_mail mail;
    bulk_mail_init(&mail);
    zmq_pollitem_t items[] = { { .socket = self->router, .events = ZMQ_POLLIN },
                               { .socket = self->zap, .events = ZMQ_POLLIN } };
    while (zmq_poll(items, 2, self->queued_count ? 10 : -1) >= 0) {
        rogue_answer_due(self);
        zap_serve(self->zap, rogue_lets_in, NULL, 16);
        while (bulk_mail_recv(&mail, self->router) == BULK_MAIL) {
            self->asked++;
            if (self->mode == ROGUE_DIES && self->asked > self->chunks) goto out;
            if (self->mode == ROGUE_SLOW) rogue_answer_slowly(self, &mail);
            else rogue_answer(self, &mail);
        }
    }
out:
    bulk_mail_end(&mail);
    zmq_close(self->router);
    zmq_close(self->zap);
    return NULL;
}

// NULL: this machine has no such address.
static inline struct rogue *rogue_new_at(const char *endpoint, enum rogue_mode mode,
                                         uint32_t chunks, blob_store_t *store)
{
    const int is_ipv6 = strchr(endpoint, '[') != NULL;
    struct rogue *self = calloc(1, sizeof *self);
    size_t size = sizeof self->holder.endpoint;
    ensure(self);
    self->holder = fixture_at("");
    self->mode = mode;
    self->chunks = chunks;
    self->store = store;
    self->queued = malloc(ROGUE_QUEUE_MAX * sizeof *self->queued);
    ensure(self->queued);
    self->context = net_context_new(1);
    self->router = net_socket_new(self->context, ZMQ_ROUTER, -1, 1000);
    self->zap = zap_open(self->context);
    ensure(self->router);
    zap_secure_server(self->router, fixture_identity(), "peer");
    ensure(zmq_setsockopt(self->router, ZMQ_IPV6, &is_ipv6, sizeof is_ipv6) == 0);
    if (zmq_bind(self->router, endpoint) < 0) {
        zmq_close(self->router);
        zmq_close(self->zap);
        net_context_destroy(&self->context);
        free(self->queued);
        free(self);
        return NULL;
    }
    ensure(zmq_getsockopt(self->router, ZMQ_LAST_ENDPOINT, self->holder.endpoint, &size) == 0);
    ensure(pthread_create(&self->thread, NULL, rogue_run, self) == 0);
    return self;
}

static inline struct rogue *rogue_new(enum rogue_mode mode, uint32_t chunks, blob_store_t *store)
{
    struct rogue *self = rogue_new_at("tcp://127.0.0.1:*", mode, chunks, store);
    ensure(self);
    return self;
}

// One rogue under as many names as there shall be holders.
static inline struct rogue *rogue_new_of_names(enum rogue_mode mode, uint32_t chunks,
                                               blob_store_t *store, struct wire_holder *list,
                                               uint32_t count)
{
    struct rogue *rogue = rogue_new_at("tcp://0.0.0.0:*", mode, chunks, store);
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
    zmq_ctx_shutdown(self->context);
    pthread_join(self->thread, NULL);
    net_context_destroy(&self->context);
    free(self->queued);
    free(self);
}
