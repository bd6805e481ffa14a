// broker_bench -- frames per second through the post office, beside a bare ROUTER that passes the
// same messages on without looking at them; and what broker and coordinator take of memory when
// idle.
//
//     broker_bench [BINDIR]       where shoal-broker lies; default build/bin
//
// Both ways: one sender, one receiver, frames of the size of an ASK, a window of 200 outstanding;
// in turns, median of 5. The bare ROUTER drains what waits before it sleeps, as the post office
// does.

#include "common/actor/post.h"
#include "common/actor/shell.h"
#include "common/ensure.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { FRAMES = 100000, WINDOW = 200, TURNS = 5, BYTES = 64 };        // An ASK: about 60 bytes

static double now_s(void) { return (double)shell_now_ms() / 1e3; }

// ---- the peer: a ROUTER that only passes on -----------------------------------------------------

struct bare { void *context, *router; };

static bool pass_one(struct bare *self)             // [from][to][bytes] becomes [to][from][bytes]
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

static void *pass_on(void *arg)
{
    struct bare *self = arg;
    zmq_pollitem_t item = { .socket = self->router, .events = ZMQ_POLLIN };
    while (zmq_poll(&item, 1, -1) >= 0)
        while (pass_one(self)) continue;
    zmq_close(self->router);
    return NULL;
}

static void *dealer(void *context, const char *endpoint, const char *name)
{
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int zero = 0;
    zmq_setsockopt(socket, ZMQ_ROUTING_ID, name, strlen(name));
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    ensure(zmq_connect(socket, endpoint) == 0);
    return socket;
}

static void take_bare(void *socket)
{
    char from[64], bytes[BYTES];
    ensure(zmq_recv(socket, from, sizeof from, 0) >= 0 &&
           zmq_recv(socket, bytes, sizeof bytes, 0) >= 0);
}

static double bare_rate(void *a, void *b)
{
    static char bytes[BYTES];
    double began = now_s();
    for (int sent = 0, got = 0; got < FRAMES;) {
        for (; sent < FRAMES && sent - got < WINDOW; sent++) {
            zmq_send(a, "b", 1, ZMQ_SNDMORE);
            zmq_send(a, bytes, sizeof bytes, 0);
        }
        for (int n = 0; n < WINDOW / 2 && got < sent; n++, got++) take_bare(b);
    }
    return FRAMES / (now_s() - began);
}

// ---- ours ---------------------------------------------------------------------------------------

static struct post *actor(const char *broker, struct identity *identity, uint8_t role, char *name)
{
    struct why why = { 0 };
    struct post *post;
    struct hash key;
    memcpy(key.bytes, identity_key(identity)->bytes, HASH_BYTES);
    actor_name(role, &key, name);
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
static double our_rate(struct post *a, struct post *b, const char *to, struct wire_arena *arena)
{
    double began = now_s();
    for (int sent = 0, got = 0; got < FRAMES;) {
        for (; sent < FRAMES && sent - got < WINDOW; sent++)
            ensure(post_mail(a, to, FRAME_ASK, &(struct wire_ask){ .topic = TOPIC_RUN }));
        for (int n = 0; n < WINDOW / 2 && got < sent;)
            if (take(b, arena, 1000) == POST_LETTER) n++, got++;
    }
    return FRAMES / (now_s() - began);
}

static pid_t start_broker(const char *bin_dir, const char *port)
{
    char path[512];
    snprintf(path, sizeof path, "%s/shoal-broker", bin_dir);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!freopen("/dev/null", "w", stderr)) _exit(70);
        execl(path, path, "-s", port, (char *)NULL);
        _exit(69);
    }
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

int main(int argc, char **argv)
{
    char name_a[ACTOR_NAME_MAX + 1], name_b[ACTOR_NAME_MAX + 1], broker[64], port[16];
    uint8_t secret[SECRET_BYTES] = { 1 };
    struct identity *ia, *ib;
    struct why why = { 0 };
    double ours[TURNS], bares[TURNS];
    snprintf(port, sizeof port, "%d", 20000 + getpid() % 20000);
    snprintf(broker, sizeof broker, "127.0.0.1:%s", port);
    pid_t child = start_broker(argc > 1 ? argv[1] : "build/bin", port);
    ensure(identity_from_secret(secret, &why, &ia) == 0);
    secret[0] = 2;
    ensure(identity_from_secret(secret, &why, &ib) == 0);
    struct post *a = actor(broker, ia, ACTOR_TRAINER, name_a),
                *b = actor(broker, ib, ACTOR_WITNESS, name_b);
    struct wire_arena arena = { .bytes = malloc(1 << 20), .max = 1 << 20 };
    int welcomed = 0;
    for (uint64_t until = shell_now_ms() + 10000; welcomed < 2 && shell_now_ms() < until;) {
        post_tick(a), post_tick(b);
        welcomed += take(a, &arena, 20) == POST_LETTER;
        welcomed += take(b, &arena, 20) == POST_LETTER;
    }
    if (welcomed < 2) {
        fprintf(stderr, "broker_bench: no broker answered at %s; is %s/shoal-broker built?\n",
                broker, argc > 1 ? argv[1] : "build/bin");
        return 69;
    }
    long idle_kib = resident_kib(child);
    char endpoint[64];
    size_t size = sizeof endpoint;
    struct bare bare = { .context = zmq_ctx_new() };
    bare.router = zmq_socket(bare.context, ZMQ_ROUTER);
    ensure(zmq_bind(bare.router, "tcp://127.0.0.1:*") == 0);
    zmq_getsockopt(bare.router, ZMQ_LAST_ENDPOINT, endpoint, &size);
    pthread_t thread;
    ensure(pthread_create(&thread, NULL, pass_on, &bare) == 0);
    void *da = dealer(bare.context, endpoint, "a"), *db = dealer(bare.context, endpoint, "b");
    zmq_send(db, "a", 1, ZMQ_SNDMORE); // Each is known to the ROUTER once it has spoken
    zmq_send(db, "", 0, 0);
    take_bare(da);
    for (int i = 0; i < TURNS; i++) {
        bares[i] = bare_rate(da, db);
        ours[i] = our_rate(a, b, name_b, &arena);
    }
    qsort(bares, TURNS, sizeof *bares, compare);
    qsort(ours, TURNS, sizeof *ours, compare);
    puts("broker, mail from one actor to another (median of 5 turns, window 200)");
    printf("  limit: a bare ROUTER passing on %9.0f frames/s\n", bares[TURNS / 2]);
    printf("  through the post office         %9.0f frames/s   %.2f of the limit (packing, "
           "checking, names included)\n",
           ours[TURNS / 2], ours[TURNS / 2] / bares[TURNS / 2]);
    printf("  broker resident: idle %.1f MB, after %d frames %.1f MB (limit 30)\n",
           (double)idle_kib / 1e3, TURNS * FRAMES, (double)resident_kib(child) / 1e3);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    zmq_close(da), zmq_close(db);
    zmq_ctx_shutdown(bare.context);
    pthread_join(thread, NULL);
    zmq_ctx_term(bare.context);
    post_destroy(&a), post_destroy(&b);
    identity_destroy(&ia), identity_destroy(&ib);
    free(arena.bytes);
    return 0;
}
