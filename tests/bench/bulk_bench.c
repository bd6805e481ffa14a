// bulk_bench -- how fast a blob goes from a server to a fetcher over loopback, beside two threads
// with nothing
// but a TCP socket between them, in the same run. Our way includes SHA-256 of all of it.
//
//     bulk_bench [MB of the blob]
#include "common/base/clock.h"
#include "tests/unit/bulk_fixture.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 5, HOLDERS = 4, WAIT_MS = 60000, BLOCK = 256 << 10 };

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
    ensure(fetched && fetched->ok);
    free(blob_store_unstage(fetcher->store, 1, &got));
    return took_s;
}

static void report(const char *what, size_t count, const double *took_s, double spent_s,
                   double tcp_s)
{
    double best_s = took_s[0];
    for (int i = 1; i < ROUNDS; i++) best_s = took_s[i] < best_s ? took_s[i] : best_s;
    const double megabytes = (double)count / 1e6;
    printf("  %-28s %7.0f MB/s   %5.2f of TCP   %5.2f ms of CPU for each MB\n", what,
           megabytes / best_s, tcp_s / best_s, 1000 * spent_s / ROUNDS / megabytes);
}

static struct hash pin(blob_store_t *store, const uint8_t *bytes, size_t count)
{
    return pin_vector(store, 1, (const float *)(const void *)bytes, count / sizeof(float));
}

int main(int argc, char **argv)
{
    const size_t count = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    uint8_t *bytes = fixture_bytes(count, 1);
    struct fixture_holder holders[HOLDERS];
    struct wire_holder list[HOLDERS];
    struct hash hash, digest;
    double took_s[ROUNDS], tcp_s = 1e9, spent_s;
    for (int i = 0; i < HOLDERS; i++) {
        holders[i] = fixture_holder_new();
        list[i] = holders[i].holder;
        hash = fixture_give(holders[i].store, bytes, count);
        digest = pin(holders[i].store, bytes, count);
    }
    struct fixture_fetcher *fetcher = fixture_fetcher_new(10000);
    printf("%zu MB over loopback, best of %d:\n", count >> 20, ROUNDS);
    spent_s = cpu_s();
    for (int i = 0; i < ROUNDS; i++)
        tcp_s = (took_s[i] = measure_tcp(bytes, count)) < tcp_s ? took_s[i] : tcp_s;
    report("TCP, send and recv", count, took_s, cpu_s() - spent_s, tcp_s);
    for (uint32_t n = 1; n <= HOLDERS; n += HOLDERS - 1) {
        char text[64];
        spent_s = cpu_s();
        for (int i = 0; i < ROUNDS; i++) took_s[i] = measure_blob(fetcher, &hash, count, list, n);
        snprintf(text, sizeof text, "a blob, %u holder%s", n, n > 1 ? "s" : "");
        report(text, count, took_s, cpu_s() - spent_s, tcp_s);
        spent_s = cpu_s();
        for (int i = 0; i < ROUNDS; i++)
            took_s[i] = measure_model(fetcher, &digest, count, list, n);
        snprintf(text, sizeof text, "a model, %u holder%s", n, n > 1 ? "s" : "");
        report(text, count, took_s, cpu_s() - spent_s, tcp_s);
    }
    spent_s = cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        const double start_s = clock_s();
        const struct hash again = hash_of(bytes, count);
        took_s[i] = clock_s() - start_s;
        ensure(hash_equal(&again, &hash));
    }
    report("SHA-256 alone, in memory", count, took_s, cpu_s() - spent_s, tcp_s);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < HOLDERS; i++) fixture_holder_destroy(&holders[i]);
    free(bytes);
    return 0;
}
