// broker_bench -- frames per second through the post office, beside a bare ROUTER that passes the
// same messages on without looking at them, without CURVE and with it; what a connection costs to
// make, without and with; and what the broker takes of memory.
//
//     broker_bench [BINDIR]       where shoal-broker lies; default build/bin
//
// Each way has an actor that writes to itself (the coordinator, whose budget allows it), frames of
// the size of an ASK, and a window of 200 outstanding; in turns, median of 5. The bare ROUTER
// drains what waits before it sleeps, as the post office does. For connections it is the processor
// time of both ends together, one connection after the other.

#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/process.h"
#include "common/net/zap.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum {
    FRAMES = 100000,
    WINDOW = 200,
    TURNS = 5,
    BYTES = 64,
    CONNECTIONS = 200
}; // An ASK: about 60 bytes

// ---- the peer: a ROUTER that only passes on -----------------------------------------------------

struct bare {
    void *context, *router, *zap;
    struct identity *identity; // NULL: without CURVE
    char endpoint[64];
    pthread_t thread;
    void *dealer;
};

static bool pass_one(struct bare *self) // [from][to][bytes] becomes [to][from][bytes]
{
    char from[64], to[64], bytes[BYTES];
    int f = zmq_recv(self->router, from, sizeof from, ZMQ_DONTWAIT);
    if (f < 0) return false;
    int t = zmq_recv(self->router, to, sizeof to, 0),
        n = zmq_recv(self->router, bytes, sizeof bytes, 0);
    if (t < 0 || n < 0) return false;
    zmq_send(self->router, to, (size_t)t, ZMQ_SNDMORE);
    zmq_send(self->router, from, (size_t)f, ZMQ_SNDMORE);
    return zmq_send(self->router, bytes, (size_t)n, 0) >= 0;
}

static bool let_in(void *arg, const struct zap_request *request)
{
    (void)arg, (void)request;
    return true;
}

static void *pass_on(void *arg)
{
    struct bare *self = arg;
    zmq_pollitem_t items[] = { { .socket = self->router, .events = ZMQ_POLLIN },
                               { .socket = self->zap, .events = ZMQ_POLLIN } };
    while (zmq_poll(items, self->zap ? 2 : 1, -1) >= 0) {
        if (self->zap) zap_serve(self->zap, let_in, NULL, 16);
        while (pass_one(self)) continue;
    }
    zmq_close(self->router);
    if (self->zap) zmq_close(self->zap);
    return NULL;
}

static void *dealer(struct bare *bare, const char *name)
{
    void *socket = zmq_socket(bare->context, ZMQ_DEALER);
    struct curve_pair own, server;
    int zero = 0;
    zmq_setsockopt(socket, ZMQ_ROUTING_ID, name, strlen(name));
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    if (bare->identity) {
        curve_of_broker(bare->identity, &server);
        curve_draw(&own);
        zap_secure_client(socket, &own, &server.public);
    }
    ensure(zmq_connect(socket, bare->endpoint) == 0);
    return socket;
}

static void take_bare(void *socket)
{
    char from[64], bytes[BYTES];
    ensure(zmq_recv(socket, from, sizeof from, 0) >= 0 &&
           zmq_recv(socket, bytes, sizeof bytes, 0) >= 0);
}

static void open_bare(struct bare *self, struct identity *identity)
{
    size_t size = sizeof self->endpoint;
    struct curve_pair own;
    *self = (struct bare){ .context = zmq_ctx_new(), .identity = identity };
    self->router = zmq_socket(self->context, ZMQ_ROUTER);
    if (identity) {
        self->zap = zap_open(self->context);
        curve_of_broker(identity, &own);
        zap_secure_server(self->router, &own, "bench");
    }
    ensure(zmq_bind(self->router, "tcp://127.0.0.1:*") == 0);
    zmq_getsockopt(self->router, ZMQ_LAST_ENDPOINT, self->endpoint, &size);
    ensure(pthread_create(&self->thread, NULL, pass_on, self) == 0);
    self->dealer = dealer(self, "a");
}

static void close_bare(struct bare *self)
{
    zmq_close(self->dealer);
    zmq_ctx_shutdown(self->context);
    pthread_join(self->thread, NULL);
    zmq_ctx_term(self->context);
}

static double processor_ms(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

// Milliseconds of processor time for a connection, its first message, and its answer.
static double connection_ms(struct bare *self)
{
    double began = processor_ms();
    for (int i = 0; i < CONNECTIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        void *socket = dealer(self, name);
        zmq_send(socket, name, strlen(name), ZMQ_SNDMORE);
        zmq_send(socket, "", 0, 0);
        take_bare(socket);
        zmq_close(socket);
    }
    return (processor_ms() - began) / CONNECTIONS;
}

static double bare_rate(struct bare *self)
{
    void *a = self->dealer;
    static char bytes[BYTES];
    double began = clock_s();
    for (int sent = 0, got = 0; got < FRAMES;) {
        for (; sent < FRAMES && sent - got < WINDOW; sent++) {
            zmq_send(a, "a", 1, ZMQ_SNDMORE);
            zmq_send(a, bytes, sizeof bytes, 0);
        }
        for (int n = 0; n < WINDOW / 2 && got < sent; n++, got++) take_bare(a);
    }
    return FRAMES / (clock_s() - began);
}

// ---- ours ---------------------------------------------------------------------------------------

static struct post *actor(const struct ticket *broker, struct identity *identity, uint8_t role,
                          char *name)
{
    struct why why = { 0 };
    struct post *post;
    actor_name(role, identity_key(identity), name);
    struct post_options options = { .identity = identity,
                                    .role = role,
                                    .name = name,
                                    .run = "bench",
                                    .quiet = true,
                                    .broker = broker,
                                    .incarnation = 1,
                                    .instance = 1 };
    ensure(post_new(&options, &why, &post) == 0);
    return post;
}

static enum post_result take(struct post *post, struct wire_arena *arena, int timeout_ms)
{
    static struct letter letter;
    zmq_pollitem_t item = { .socket = post_mail_socket(post), .events = ZMQ_POLLIN };
    zmq_poll(&item, 1, timeout_ms);
    return post_take(post, true, arena, &letter);
}

// ASK is not signed: it is the post office that is measured, not Ed25519.
static double our_rate(struct post *a, const char *to, struct wire_arena *arena)
{
    double began = clock_s();
    for (int sent = 0, got = 0; got < FRAMES;) {
        for (; sent < FRAMES && sent - got < WINDOW; sent++)
            ensure(post_mail(a, to, FRAME_ASK, &(struct wire_ask){ .topic = TOPIC_RUN }));
        for (int n = 0; n < WINDOW / 2 && got < sent;)
            if (take(a, arena, 1000) == POST_LETTER) n++, got++;
    }
    return FRAMES / (clock_s() - began);
}

// Its identity is the one of the file `key`, made here.
static pid_t start_broker(const char *bin_dir, const char *port, const char *key)
{
    struct arguments args = { 0 };
    pid_t child;
    arguments_add(&args, "%s/shoal-broker", bin_dir);
    arguments_add(&args, "--identity-secret-key-path=%s", key);
    arguments_add(&args, "--server-port=%s", port);
    ensure(process_start(&(struct process_options){ .arguments = &args, .log = "/dev/null" }, NULL,
                         &child) == 0);
    return child;
}

static long resident_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
    if (file) fclose(file);
    return kib;
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double values[TURNS])
{
    qsort(values, TURNS, sizeof *values, compare);
    return values[TURNS / 2];
}

static struct ticket make_ticket(const char *key, const char *port)
{
    struct ticket ticket = { .run = "" };
    struct identity *identity;
    struct why why = { 0 };
    ensure(identity_create(key, &why) == 0 && identity_load(key, NULL, &why, &identity) == 0);
    ticket.server = curve_server_key(identity);
    identity_destroy(&identity);
    snprintf(ticket.address, sizeof ticket.address, "127.0.0.1:%s", port);
    return ticket;
}

static bool await_welcome(struct post *post, struct wire_arena *arena)
{
    for (uint64_t until = clock_ms() + 10000; clock_ms() < until;) {
        post_tick(post);
        if (take(post, arena, 20) == POST_LETTER) return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    char name[ACTOR_NAME_MAX + 1], port[16], key[64];
    uint8_t secret[SECRET_BYTES] = { 1 };
    struct identity *identity;
    struct why why = { 0 };
    struct bare plain, curve;
    double ours[TURNS], plains[TURNS], curves[TURNS];
    snprintf(port, sizeof port, "%d", 20000 + getpid() % 10000);
    snprintf(key, sizeof key, "/tmp/broker-bench.%d.key", (int)getpid());
    struct ticket ticket = make_ticket(key, port);
    pid_t child = start_broker(argc > 1 ? argv[1] : "build/bin", port, key);
    ensure(identity_from_secret(secret, &why, &identity) == 0);
    struct post *post = actor(&ticket, identity, ACTOR_COORDINATOR, name);
    struct wire_arena arena = { .bytes = malloc(1 << 20), .max = 1 << 20 };
    bool welcome = await_welcome(post, &arena);
    unlink(key);
    if (!welcome) {
        fprintf(stderr, "broker_bench: no broker answered at %s; is %s/shoal-broker built?\n",
                ticket.address, argc > 1 ? argv[1] : "build/bin");
        return 69;
    }
    long idle_kib = resident_kib(child);
    open_bare(&plain, NULL);
    open_bare(&curve, identity);
    for (int i = 0; i < TURNS; i++) {
        plains[i] = bare_rate(&plain);
        curves[i] = bare_rate(&curve);
        ours[i] = our_rate(post, name, &arena);
    }
    double plain_ms = connection_ms(&plain), curve_ms = connection_ms(&curve);
    double limit = median(plains), curve_rate = median(curves), our = median(ours);
    puts("broker, mail (median of 5 turns, window 200)");
    printf("  limit: a bare ROUTER passing on %9.0f frames/s\n", limit);
    printf("  the same with CURVE             %9.0f frames/s   %.2f of the limit\n", curve_rate,
           curve_rate / limit);
    printf("  through the post office         %9.0f frames/s   %.2f of that (packing, checking, "
           "names, budgets included)\n",
           our, our / curve_rate);
    printf("  a connection, both ends, without CURVE %.3f ms, with %.3f ms of processor time\n",
           plain_ms, curve_ms);
    printf("  broker resident: idle %.1f MB, after %d frames %.1f MB (limit 30)\n",
           (double)idle_kib / 1e3, TURNS * FRAMES, (double)resident_kib(child) / 1e3);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    close_bare(&plain), close_bare(&curve);
    post_destroy(&post);
    identity_destroy(&identity);
    free(arena.bytes);
    return 0;
}
