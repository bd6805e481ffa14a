// bulk_server -- one thread. Before every message it minds the gate: new connections, handshakes
// (guests only), surplus connections, connections that fill memory. Then one message: it is counted
// for its connection, the sender must still be a guest, the question is answered if its answer fits
// into the share of memory that the sender has left. Reading samples blocks the thread.

#include "common/base/clock.h"
#include "common/bulk/bulk_server.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/bulk/bulk_socket.h"
#include "common/net/addresses.h"
#include "common/net/descriptors.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUEST = 1,
    GONE,
    HANDSHAKES_TURN_MAX = 16,
    PEER_ANSWERS_MAX = 64,
    TURN_MESSAGES = 64,
    LOOK_MS = 100,
    LOOK_CONNECTIONS_MS = 32,
    MEASURE_MS = 10
};

struct bulk_server {
    struct bulk_server_options options;
    char *run;
    void *context, *router, *zap, *events;
    pthread_mutex_t lock;    // Of the guests
    struct curve_set guests; // GUEST or GONE
    void *stop, *stopped;    // A pair: the caller's end, the thread's end
    char endpoint[256];
    uint16_t port;
    pthread_t thread;

    // The thread's own:
    struct bulk_mail mail;
    struct connections *connections; // "Known" is a guest that has asked something
    struct connection *asker;        // The connection of the question that is being answered
    uint32_t key_connections_max;
    uint64_t waiting; // Upper bound of the bytes of all unsent answers, at measured_ms
    uint64_t measured_ms, look_ms;
};

// ---- limits on what one peer may take -----------------------------------------------------------

static void cut(void *arg, int fd)
{
    const struct bulk_server *self = arg;
    descriptors_cut(fd, self->port);
}

static bool measure(void *arg, int fd, struct connection_counts *ret_counts)
{
    const struct bulk_server *self = arg;
    return descriptors_measure(fd, self->port, ret_counts);
}

// One key may take a fixed fraction of what is free, so that something is left for the next key,
// however many take their full share (Choudhury and Hahne, "Dynamic queue length thresholds",
// 1998).
static uint64_t share(const struct bulk_server *self)
{
    const uint64_t taken = self->waiting < BULK_WAITING_MAX ? self->waiting : BULK_WAITING_MAX;
    return (BULK_WAITING_MAX - taken) / BULK_WAITING_SHARES;
}

// Measuring costs system calls. So the asker's connections are measured only if the estimate
// refuses the answer, and all connections at most once in MEASURE_MS.
static bool may_wait(struct bulk_server *self, uint64_t bytes)
{
    if (!self->asker) return false;
    uint64_t own = connections_waiting(self->connections, &self->mail.user, NULL, NULL);
    if (own + bytes <= share(self)) return true;
    own = connections_waiting(self->connections, &self->mail.user, measure, self);
    const uint64_t now_ms = clock_ms();
    if (now_ms >= self->measured_ms + MEASURE_MS) {
        self->waiting = connections_waiting(self->connections, NULL, measure, self);
        self->measured_ms = now_ms;
    }
    return own + bytes <= share(self) ||
           (own <= BULK_CHUNK_BYTES && self->waiting + bytes <= BULK_WAITING_MAX);
}

// ---- answers --------------------------------------------------------------------------------

static void answer(struct bulk_server *self, uint16_t kind, const void *body, zmq_msg_t *raw)
{
    const size_t sent = bulk_send(self->router, &self->mail, self->run, kind, body, raw);
    if (self->asker) self->asker->given += sent;
    self->waiting += sent;
    if (!sent && raw) zmq_msg_close(raw);
}

static void lack(struct bulk_server *self, uint32_t request, const struct hash *hash,
                 const char *reason)
{
    struct wire_lacking lacking = { .request = request, .hash = *hash };
    snprintf(lacking.reason, sizeof lacking.reason, "%s", reason);
    answer(self, FRAME_LACKING, &lacking, NULL);
}

static void refuse_samples(struct bulk_server *self, uint32_t request, const char *reason)
{
    struct wire_no_samples refusal = { .request = request };
    snprintf(refusal.reason, sizeof refusal.reason, "%.*s", (int)sizeof refusal.reason - 1, reason);
    for (char *at = refusal.reason; *at; at++)
        if ((uint8_t)*at < 0x20) *at = ' ';
    answer(self, FRAME_NO_SAMPLES, &refusal, NULL);
}

// A message part with a copy of these bytes. A view would keep a whole pin in memory for as long as
// its reader is slow, even after the store has forgotten it. Copying costs a tenth of the processor
// time of a transfer. False: no room or no memory, and the question is dropped.
static bool copy(struct bulk_server *self, zmq_msg_t *part, const uint8_t *bytes, size_t count)
{
    if (!may_wait(self, count) || zmq_msg_init_size(part, count) != 0) return false;
    if (count > 0) memcpy(zmq_msg_data(part), bytes, count);
    return true;
}

// ---- questions ------------------------------------------------------------------------------

static void hear_want(struct bulk_server *self, const struct wire_want *want)
{
    struct blob_ref ref = { 0 };
    struct why why = { 0 };
    zmq_msg_t raw;
    if (!self->options.store) {
        lack(self, want->request, &want->hash, "no blobs are served here");
        return;
    }
    if (blob_store_get(self->options.store, &want->hash, &why, &ref) < 0) {
        lack(self, want->request, &want->hash, "not here");
        return;
    }
    const size_t total = ref.count;
    if (want->offset >= total && total > 0) {
        blob_store_release(&ref);
        lack(self, want->request, &want->hash, "it ends before this offset");
        return;
    }
    const size_t offset = total ? (size_t)want->offset : 0, rest = total - offset;
    const size_t count = want->count < rest ? want->count : rest;
    const bool is_copied = copy(self, &raw, count > 0 ? ref.bytes + offset : NULL, count);
    blob_store_release(&ref);
    if (!is_copied) return;
    failpoint("serve_chunk");
    const struct wire_chunk chunk = { want->request, want->hash, offset, total };
    answer(self, FRAME_CHUNK, &chunk, &raw);
}

static void hear_want_leaves(struct bulk_server *self, const struct wire_want_leaves *want)
{
    struct blob_ref ref = { 0 };
    struct state_cut cut;
    zmq_msg_t raw;
    if (!self->options.store ||
        blob_store_leaves(self->options.store, &want->digest, NULL, &ref, &cut) < 0) {
        lack(self, want->request, &want->digest, "not pinned here");
        return;
    }
    if (ref.count == 0 || ref.count / HASH_BYTES > BULK_LEAVES_MAX) {
        blob_store_release(&ref);
        lack(self, want->request, &want->digest, "its list of leaves is longer than can be sent");
        return;
    }
    const bool is_copied = copy(self, &raw, ref.bytes, ref.count);
    blob_store_release(&ref);
    if (!is_copied) return;
    failpoint("serve_leaves");
    const struct wire_leaves leaves = { want->request, want->digest, cut.bytes[0] / sizeof(float) };
    answer(self, FRAME_LEAVES, &leaves, &raw);
}

static void free_bytes(void *bytes, void *none)
{
    (void)none;
    free(bytes);
}

// Takes the bytes.
static void give(struct bulk_server *self, const struct wire_want_samples *want, uint8_t *bytes,
                 size_t count)
{
    zmq_msg_t raw;
    ensure(zmq_msg_init_data(&raw, bytes, count, free_bytes, NULL) == 0);
    failpoint("serve_samples");
    const struct wire_samples samples = { want->request, want->position, want->count,
                                          self->options.seq_len };
    answer(self, FRAME_SAMPLES, &samples, &raw);
}

static const char too_many[] = "busy: too many answers to you wait to be sent; retry later";

static void hear_want_samples(struct bulk_server *self, const struct wire_want_samples *want)
{
    const uint64_t sample_bytes = 4 * ((uint64_t)self->options.seq_len + 1);
    struct why why = { 0 };
    char text[160];
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (!self->options.answer) {
        refuse_samples(self, want->request, "no samples are served here");
        return;
    }
    if (want->count * sample_bytes > BULK_SAMPLES_BYTES) {
        snprintf(text, sizeof text,
                 "count %" PRIu32 ", allowed 1..%" PRIu64 " of %" PRIu64 " bytes each", want->count,
                 BULK_SAMPLES_BYTES / sample_bytes, sample_bytes);
        refuse_samples(self, want->request, text);
        return;
    }
    if (!may_wait(self, want->count * sample_bytes)) {
        refuse_samples(self, want->request, too_many);
        return;
    }
    int rc =
        self->options.answer(self->options.arg, want->position, want->count, &bytes, &count, &why);
    if (rc == 0 && count > BULK_ANSWER_BYTES_MAX - BULK_FRAME_MAX)
        rc = why_set(&why, FAULT_LIMIT, "%zu bytes with their proofs; ask for fewer", count);
    if (rc == 0 && !may_wait(self, count)) rc = why_set(&why, FAULT_LIMIT, "%s", too_many);
    if (rc == 0) {
        give(self, want, bytes, count);
        return;
    }
    free(bytes);
    refuse_samples(self, want->request, why.text[0] ? why.text : "reading them failed");
}

static void hear_want_dataset(struct bulk_server *self, const struct wire_want_dataset *want)
{
    const struct bulk_server_options *options = &self->options;
    const struct wire_dataset dataset = { want->request };
    zmq_msg_t raw;
    if (!options->description) {
        refuse_samples(self, want->request, "no samples are served here");
        return;
    }
    if (!copy(self, &raw, options->description, options->description_bytes)) return;
    answer(self, FRAME_DATASET, &dataset, &raw);
}

// An answer instead of silence, because a wrong run is a mistake of configuration that its owner
// must be able to find.
static void refuse_run(struct bulk_server *self)
{
    const struct bulk_mail *mail = &self->mail;
    char text[128];
    snprintf(text, sizeof text, "this is run '%s'", self->run);
    if (mail->head.kind == FRAME_WANT) {
        const struct wire_want *want = mail->body;
        lack(self, want->request, &want->hash, text);
    } else if (mail->head.kind == FRAME_WANT_LEAVES) {
        const struct wire_want_leaves *want = mail->body;
        lack(self, want->request, &want->digest, text);
    } else if (mail->head.kind == FRAME_WANT_DATASET) {
        refuse_samples(self, ((const struct wire_want_dataset *)mail->body)->request, text);
    } else if (mail->head.kind == FRAME_WANT_SAMPLES) {
        refuse_samples(self, ((const struct wire_want_samples *)mail->body)->request, text);
    }
}

static void hear(struct bulk_server *self)
{
    const struct bulk_mail *mail = &self->mail;
    const uint16_t kind = mail->head.kind;
    const bool is_question = kind == FRAME_WANT || kind == FRAME_WANT_LEAVES ||
                             kind == FRAME_WANT_SAMPLES || kind == FRAME_WANT_DATASET;
    if (mail->has_raw || !is_question) return;
    if (strcmp(mail->head.run, self->run) != 0) refuse_run(self);
    else if (kind == FRAME_WANT) hear_want(self, mail->body);
    else if (kind == FRAME_WANT_LEAVES) hear_want_leaves(self, mail->body);
    else if (kind == FRAME_WANT_DATASET) hear_want_dataset(self, mail->body);
    else hear_want_samples(self, mail->body);
}

// ---- guests -------------------------------------------------------------------------------------

void bulk_server_admit(bulk_server_t *self, const struct curve_key *key, bool is_guest)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    curve_set_put(&self->guests, key, is_guest ? GUEST : GONE);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
}

static bool is_guest(struct bulk_server *self, const struct curve_key *key)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    const bool is = curve_set_get(&self->guests, key) == GUEST;
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return is;
}

static bool judge(void *arg, const struct zap_request *request)
{
    return is_guest(arg, &request->key);
}

static void take(struct bulk_server *self, bool is_sound, uint64_t now_ms)
{
    const struct bulk_mail *mail = &self->mail;
    struct connection *asker =
        connections_heard(self->connections, mail->fd, 0, &mail->user, mail->wire_bytes, now_ms);
    if (!asker || asker->cut) return;
    if (!is_guest(self, &mail->user)) {
        connections_cut_one(self->connections, mail->fd, cut, self);
        return;
    }
    if (!asker->known) {
        asker->known = true;
        connections_cut_crowd(self->connections, &mail->user, self->key_connections_max, cut, self);
    }
    self->asker = asker;
    if (is_sound) hear(self);
    self->asker = NULL;
}

// Called before every message: while one is answered, many strangers may connect.
static void mind_gate(struct bulk_server *self, uint64_t now_ms)
{
    descriptors_hear(self->events, self->connections, 0, now_ms, NULL, NULL);
    zap_serve(self->zap, judge, self, HANDSHAKES_TURN_MAX);
    connections_cut_surplus(self->connections, cut, self);
    if (now_ms < self->look_ms) return;
    connections_cut_hoarders(self->connections, measure, cut, self);
    self->waiting = connections_waiting(self->connections, NULL, NULL, NULL);
    self->measured_ms = now_ms;
    self->look_ms =
        now_ms + LOOK_MS + connections_count(self->connections, 0) / LOOK_CONNECTIONS_MS;
}

// ---- its life -------------------------------------------------------------------------------

static void *serve(void *arg)
{
    struct bulk_server *self = arg;
    zmq_pollitem_t items[] = { { .socket = self->stopped, .events = ZMQ_POLLIN },
                               { .socket = self->router, .events = ZMQ_POLLIN },
                               { .socket = self->zap, .events = ZMQ_POLLIN },
                               { .socket = self->events, .events = ZMQ_POLLIN } };
    bulk_mail_init(&self->mail);
    for (;;) {
        const bool is_alone = connections_count(self->connections, 0) == 0;
        if (zmq_poll(items, 4, is_alone ? -1 : LOOK_MS) < 0) continue; // Interrupted
        if (items[0].revents) break;
        mind_gate(self, clock_ms());
        for (int n = 0; n < TURN_MESSAGES; n++) {
            const enum bulk_heard heard = bulk_mail_recv(&self->mail, self->router);
            if (heard == BULK_NOTHING) break;
            take(self, heard == BULK_MAIL, clock_ms());
            mind_gate(self, clock_ms());
        }
    }
    bulk_mail_end(&self->mail);
    return NULL;
}

// ZeroMQ itself would accept port 99999 and bind 34463.
static bool is_endpoint(const char *text)
{
    const char *port = strncmp(text, "tcp://", 6) == 0 ? strrchr(text + 6, ':') : NULL;
    char *end;
    if (!port || port == text + 6) return false;
    if (strcmp(++port, "*") == 0) return true;
    const long number = strtol(port, &end, 10);
    return *port >= '0' && *port <= '9' && *end == 0 && number >= 1 && number <= 65535;
}

static int refuse_bind(const char *endpoint, int error, struct why *why)
{
    char host[128];
    const char *from = endpoint + strlen("tcp://");
    snprintf(host, sizeof host, "%.*s", (int)(strrchr(endpoint, ':') - from), from);
    const int rc = addresses_refuse(host, error, why);
    if (rc < 0) return why_wrap(why, rc, "bulk endpoint '%s'", endpoint);
    return why_set(why,
                   error == EADDRINUSE ? FAULT_BUSY
                   : error == EACCES   ? FAULT_DENIED
                                       : FAULT_CONFIG,
                   "bulk endpoint '%s': %s; not bound", endpoint, zmq_strerror(error));
}

static int bind_router(struct bulk_server *self, struct why *why)
{
    size_t size = sizeof self->endpoint;
    const char *wanted = self->options.endpoint;
    if (!is_endpoint(wanted))
        return why_set(why, FAULT_CONFIG,
                       "bulk endpoint '%s': must be tcp://ADDRESS:PORT, PORT "
                       "1..65535 or *; not bound",
                       wanted);
    if (zmq_bind(self->router, wanted) < 0) return refuse_bind(wanted, zmq_errno(), why);
    ensure(zmq_getsockopt(self->router, ZMQ_LAST_ENDPOINT, self->endpoint, &size) == 0);
    self->port = (uint16_t)strtol(strrchr(self->endpoint, ':') + 1, NULL, 10);
    return 0;
}

// Signals are for the main thread.
static void start_thread(struct bulk_server *self)
{
    sigset_t all, before;
    sigfillset(&all);
    ensure(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    ensure(pthread_create(&self->thread, NULL, serve, self) == 0);
    ensure(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void open_connections(struct bulk_server *self)
{
    const uint32_t room = descriptors_raise() / 2, most = room / 8 ? room / 8 : 1;
    const struct connections_limits limits = { .room = room,
                                               .pending_max = BULK_CONNECTION_PENDING_MAX };
    self->key_connections_max = most < BULK_KEY_CONNECTIONS_MAX ? most : BULK_KEY_CONNECTIONS_MAX;
    self->connections = connections_new(&limits, 1, BULK_PENDING_MAX);
}

static void open_sockets(struct bulk_server *self)
{
    const struct bulk_server_options *options = &self->options;
    self->context = net_context_new(1);
    self->zap = zap_open(self->context);
    self->router = net_socket_new(self->context, ZMQ_ROUTER, BULK_ASK_BYTES_MAX, PEER_ANSWERS_MAX);
    self->stop = zmq_socket(self->context, ZMQ_PAIR);
    self->stopped = zmq_socket(self->context, ZMQ_PAIR);
    ensure(self->router && self->stop && self->stopped);
    zap_secure_server(self->router, options->identity, "peer");
    ensure(zmq_bind(self->stopped, "inproc://stop") == 0);
    ensure(zmq_connect(self->stop, "inproc://stop") == 0);
    self->events = descriptors_watch(self->context, self->router);
    ensure(self->events);
}

static void close_sockets(struct bulk_server *self)
{
    net_socket_close(&self->router);
    net_socket_close(&self->events);
    net_socket_close(&self->zap);
    net_socket_close(&self->stop);
    net_socket_close(&self->stopped);
    net_context_destroy(&self->context);
}

int bulk_server_new(const struct bulk_server_options *options, struct why *why,
                    bulk_server_t **ret_self)
{
    if (strlen(options->run) > WIRE_RUN_MAX ||
        (options->answer && (options->seq_len == 0 || options->seq_len >= BULK_SAMPLES_BYTES / 4)))
        return why_set(why, FAULT_RANGE,
                       "bulk server: run of %zu bytes (allowed 0..%d), seq_len %" PRIu32
                       " (1..%d); not started",
                       strlen(options->run), WIRE_RUN_MAX, options->seq_len,
                       BULK_SAMPLES_BYTES / 4 - 1);
    struct bulk_server *self = calloc(1, sizeof *self);
    ensure(self && (self->run = strdup(options->run)));
    ensure(pthread_mutex_init(&self->lock, NULL) == 0);
    self->options = *options;
    open_connections(self);
    open_sockets(self);
    const int rc = bind_router(self, why);
    if (rc < 0) {
        close_sockets(self);
        connections_destroy(&self->connections);
        pthread_mutex_destroy(&self->lock);
        free(self->run);
        free(self);
        return rc;
    }
    start_thread(self);
    *ret_self = self;
    return 0;
}

void bulk_server_destroy(bulk_server_t **self_p)
{
    struct bulk_server *self = *self_p;
    if (!self) return;
    while (zmq_send(self->stop, "", 0, 0) < 0) ensure(zmq_errno() == EINTR);
    ensure(pthread_join(self->thread, NULL) == 0);
    close_sockets(self);
    connections_destroy(&self->connections);
    curve_set_clear(&self->guests);
    pthread_mutex_destroy(&self->lock);
    free(self->run);
    free(self);
    *self_p = NULL;
}

const char *bulk_server_endpoint(const bulk_server_t *self) { return self->endpoint; }
