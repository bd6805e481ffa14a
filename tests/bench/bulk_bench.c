// bulk_bench -- how fast a blob goes from a server to a fetcher on one machine, beside two threads with
// nothing but a TCP socket between them: in turns, in the same run. Over loopback nothing is sealed; over
// another address of this machine, if it has one, all of it is. "Unhashed" is the line alone, asked for
// chunks by hand; a fetcher checks SHA-256 of all of it besides.
//
//     bulk_bench [MB of the blob] [rounds]
#include "common/base/clock.h"
#include "common/net/addresses.h"
#include "tests/unit/bulk_fixture.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 5, ROUNDS_MAX = 100, HOLDERS = 4, WAIT_MS = 60000, BLOCK = 256 << 10, AHEAD = 8 };

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// ---- the yardstick --------------------------------------------------------------------------

struct sender {
    int listener;
    const uint8_t *bytes;
    size_t count;
};

static void *send_all(void *arg)
{
    const struct sender *self = arg;
    const int fd = accept(self->listener, NULL, NULL);
    for (size_t done = 0; done < self->count;) {
        const size_t rest = self->count - done;
        const ssize_t n = send(fd, self->bytes + done, rest < BLOCK ? rest : BLOCK, MSG_NOSIGNAL);
        ensure(n > 0);
        done += (size_t)n;
    }
    close(fd);
    return NULL;
}

static double measure_tcp(const uint8_t *bytes, size_t count)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    pthread_t thread;
    struct sender sender = { socket(AF_INET, SOCK_STREAM, 0), bytes, count };
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint8_t *got = malloc(count);
    ensure(got && bind(sender.listener, (struct sockaddr *)&at, size) == 0 &&
           listen(sender.listener, 1) == 0);
    ensure(getsockname(sender.listener, (struct sockaddr *)&at, &size) == 0);
    ensure(pthread_create(&thread, NULL, send_all, &sender) == 0);
    const double start_s = clock_s();
    ensure(connect(fd, (struct sockaddr *)&at, size) == 0);
    for (size_t done = 0; done < count;) {
        const ssize_t n = recv(fd, got + done, count - done < BLOCK ? count - done : BLOCK, 0);
        ensure(n > 0);
        done += (size_t)n;
    }
    const double took_s = clock_s() - start_s;
    pthread_join(thread, NULL);
    close(fd);
    close(sender.listener);
    free(got);
    return took_s;
}

// ---- ours -----------------------------------------------------------------------------------

static double measure_blob(struct fixture_fetcher *fetcher, const struct hash *hash, size_t count,
                           const struct wire_holder *list, uint32_t holders)
{
    const double start_s = clock_s();
    fixture_fetch(fetcher, hash, count, list, holders);
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, WAIT_MS);
    const double took_s = clock_s() - start_s;
    ensure(fetched && fetched->ok);
    blob_store_drop(fetcher->store, hash);
    return took_s;
}

static double measure_model(struct fixture_fetcher *fetcher, const struct hash *digest,
                            size_t count, const struct wire_holder *list, uint32_t holders)
{
    const double start_s = clock_s();
    fixture_fetch_model(fetcher, 1, digest, count / sizeof(float), list, holders);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, WAIT_MS);
    const double took_s = clock_s() - start_s;
    struct blob_snapshot got;
    struct state_copy copy;
    ensure(fetched && fetched->ok);
    ensure(blob_store_unstage(fetcher->store, 1, &got, &copy));
    state_copy_free(&copy);
    return took_s;
}

// Asks for chunks, some ahead, and drops them.
static double measure_line(const struct hash *hash, size_t count, const struct wire_holder *holder)
{
    struct fixture_asker asker;
    fixture_asker_open(&asker, fixture_identity(), holder);
    while (!asker.line.is_open) ensure(fixture_hear(&asker, 1) == BULK_NOTHING);
    const double start_s = clock_s();
    const uint32_t chunks = (uint32_t)(count / BULK_CHUNK_BYTES);
    for (uint32_t asked = 0, got = 0; got < chunks; got++) {
        for (; asked < chunks && asked < got + AHEAD; asked++) {
            const struct wire_want want = { asked, *hash, (uint64_t)asked * BULK_CHUNK_BYTES,
                                            BULK_CHUNK_BYTES };
            fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want);
        }
        ensure(fixture_hear(&asker, WAIT_MS) == BULK_MAIL &&
               asker.mail.raw_count == BULK_CHUNK_BYTES);
    }
    const double took_s = clock_s() - start_s;
    bulk_line_close(&asker.line);
    return took_s;
}

static struct hash pin(blob_store_t *store, const uint8_t *bytes, size_t count)
{
    return pin_vector(store, 1, (const float *)(const void *)bytes, count / sizeof(float));
}

// ---- in turns -------------------------------------------------------------------------------

struct place { // Where holders listen
    const char *name, *endpoint;
    struct fixture_holder holders[HOLDERS];
    struct wire_holder list[HOLDERS];
};

static struct hash hash, digest;
static size_t count;
static uint8_t *bytes;
static struct fixture_fetcher *fetcher;

static void open_place(struct place *self)
{
    for (int i = 0; i < HOLDERS; i++) {
        self->holders[i] = fixture_holder_new_at(self->endpoint);
        self->list[i] = self->holders[i].holder;
        hash = fixture_give(self->holders[i].store, bytes, count);
        digest = pin(self->holders[i].store, bytes, count);
    }
}

// New servers on the same stores: to each the fetcher's key is new, and may have all of it
// (common/bulk/purse.h).
static void renew_servers(struct place *self)
{
    struct why why;
    for (int i = 0; i < HOLDERS; i++) {
        struct fixture_holder *holder = &self->holders[i];
        const struct bulk_server_options options = { .identity = fixture_identity(),
                                                     .endpoint = self->endpoint,
                                                     .run = FIXTURE_RUN,
                                                     .store = holder->store };
        bulk_server_destroy(&holder->server);
        ensure(bulk_server_new(&options, &why, &holder->server) == 0);
        fixture_admit(holder->server);
        self->list[i] = fixture_at(bulk_server_endpoint(holder->server));
    }
}

static double measure(const struct place *place, unsigned what)
{
    switch (what) {
    case 0: return measure_tcp(bytes, count);
    case 1: return measure_line(&hash, count, place->list);
    case 2: return measure_blob(fetcher, &hash, count, place->list, 1);
    case 3: return measure_model(fetcher, &digest, count, place->list, 1);
    case 4: return measure_blob(fetcher, &hash, count, place->list, HOLDERS);
    default: return measure_model(fetcher, &digest, count, place->list, HOLDERS);
    }
}

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void bench_place(struct place *place, unsigned rounds)
{
    static const char *const names[] = { "TCP, send and recv", "unhashed, 1 holder",
                                         "a blob, 1 holder",   "a model, 1 holder",
                                         "a blob, 4 holders",  "a model, 4 holders" };
    enum { KINDS = 6 };
    double took_s[KINDS][ROUNDS_MAX], of_tcp[KINDS][ROUNDS_MAX], spent_s[KINDS][ROUNDS_MAX];
    open_place(place);
    for (unsigned i = 0; i < rounds; i++)
        for (unsigned what = 0; what < KINDS; what++) {
            renew_servers(place);
            const double before_s = cpu_s();
            took_s[what][i] = measure(place, what);
            spent_s[what][i] = cpu_s() - before_s;
            of_tcp[what][i] = took_s[0][i] / took_s[what][i];
        }
    printf("%s, %zu MB, medians of %u rounds:\n", place->name, count >> 20, rounds);
    for (unsigned what = 0; what < KINDS; what++) {
        const double megabytes = (double)count / 1e6;
        qsort(took_s[what], rounds, sizeof(double), by_size);
        qsort(of_tcp[what], rounds, sizeof(double), by_size);
        qsort(spent_s[what], rounds, sizeof(double), by_size);
        printf("  %-22s %7.0f MB/s   %5.2f of TCP   %5.2f ms of CPU for each MB\n", names[what],
               megabytes / took_s[what][rounds / 2], of_tcp[what][rounds / 2],
               1000 * spent_s[what][rounds / 2] / megabytes);
    }
    for (int i = 0; i < HOLDERS; i++) fixture_holder_destroy(&place->holders[i]);
}

int main(int argc, char **argv)
{
    const unsigned wish = argc > 2 ? (unsigned)atoi(argv[2]) : ROUNDS;
    const unsigned rounds = wish < 1 ? 1 : wish > ROUNDS_MAX ? ROUNDS_MAX : wish;
    struct place loopback = { .name = "over loopback, plain", .endpoint = "tcp://127.0.0.1:*" };
    char own[ADDRESSES_TEXT_MAX], endpoint[ADDRESSES_TEXT_MAX + 16];
    struct why why;
    count = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    bytes = fixture_bytes(count, 1);
    fetcher = fixture_fetcher_new(10000);
    bench_place(&loopback, rounds);
    if (addresses_towards("192.0.2.1:1", &why, own) == 0 && !addresses_is_loopback(own)) {
        struct place there = { .name = "over another address of this machine, sealed",
                               .endpoint = endpoint };
        snprintf(endpoint, sizeof endpoint, "tcp://%s:*", own);
        bench_place(&there, rounds);
    } else printf("sealed: left out, as this machine has no address but loopback\n");
    const double start_s = clock_s();
    ensure(hash_of(bytes, count).bytes[0] == hash.bytes[0]);
    printf("SHA-256 alone, in memory: %.0f MB/s\n", (double)count / 1e6 / (clock_s() - start_s));
    fixture_fetcher_destroy(fetcher);
    free(bytes);
    return 0;
}
