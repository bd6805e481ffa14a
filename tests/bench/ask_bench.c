// ask_bench -- one member pushes a vector to another and pulls it back (group_ask), beside bare TCP in turns, on a
// loopback.
//
//     ask_bench [turns] [bytes]
//
// A push is a header and the vector, answered with a header; a pull is a header, answered with a header and the
// vector. Bare TCP does the same with two sockets' calls: blocking, the whole vector in one, into one place; its
// congestion control is that of the links. A turn of a size starts the processes, pushes and pulls a few times, and
// takes the median times. What is printed are medians of the turns: bare TCP's speed, and of that the share that
// ours reaches in the same turn, plain and sealed.

#include "common/net/tcp.h"
#include "tests/bench/group_member.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS_MAX = 31, HEADER = 64, PUSH = 0, PULL = 1 };

struct times {
    double push_s, pull_s; // Medians
};

// ---- ours -----------------------------------------------------------------------------------

static void serve(struct member *self, int questions)
{
    struct why why = { 0 };
    struct group_blame blame;
    struct group_letter question;
    uint32_t from;
    for (int i = 0; i < questions; i++) {
        const int rc =
            group_hear_question(self->group, self->count, WAIT_MS, &why, &blame, &from, &question);
        if (rc < 0) _exit(fault_exit(rc, &why));
        const bool pulls = *(const uint8_t *)question.header == PULL;
        const struct group_letter answer = { question.header, HEADER, pulls ? self->values : NULL,
                                             pulls ? self->count : 0 };
        group_answer(self->group, from, &answer);
    }
    // The last answer is on its way until the other one leaves
    group_hear_question(self->group, self->count, WAIT_MS, &why, &blame, &from, &question);
}

static void ask(struct member *self, uint8_t way)
{
    const uint8_t header[HEADER] = { way };
    struct why why = { 0 };
    struct group_blame blame;
    struct group_question question = { .to = 1,
                                       .said = { .header = header, .count = HEADER },
                                       .ret_floats = self->values,
                                       .answer_floats = way == PULL ? self->count : 0 };
    if (way == PUSH) question.said.floats = self->values, question.said.floats_count = self->count;
    struct group_letter answer;
    uint32_t from;
    int rc = group_ask(self->group, &question, &why, &blame);
    if (rc == 0) rc = group_hear_answer(self->group, WAIT_MS, &why, &blame, &from, &answer);
    if (rc < 0) _exit(fault_exit(rc, &why));
    ensure(answer.count == HEADER && answer.floats_count == (way == PULL ? self->count : 0));
}

static void push_and_pull(struct member *self, void *arg)
{
    const int repeats = *(int *)arg;
    if (self->place == 1) {
        serve(self, 2 * repeats + 2);
        return;
    }
    ask(self, PUSH);
    ask(self, PULL);
    for (int i = 0; i < 2 * repeats; i++) {
        const double start_s = clock_s();
        ask(self, i % 2 ? PULL : PUSH);
        shared->took_s[i / 2][i % 2] = clock_s() - start_s;
    }
}

// ---- bare TCP -------------------------------------------------------------------------------

static void send_all(int fd, const void *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        const ssize_t n = send(fd, (const uint8_t *)bytes + at, count - at, MSG_NOSIGNAL);
        ensure(n > 0);
        at += (size_t)n;
    }
}

static void recv_all(int fd, void *bytes, size_t count)
{
    ensure(recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count);
}

static uint8_t *take_vector(size_t bytes)
{
    const size_t page = 2 << 20;
    uint8_t *values = aligned_alloc(page, (bytes + page - 1) / page * page);
    ensure(values);
    madvise(values, bytes, MADV_HUGEPAGE);
    memset(values, 1, bytes);
    return values;
}

static void serve_bare(int fd, size_t bytes, int questions)
{
    uint8_t header[HEADER], *values = take_vector(bytes);
    for (int i = 0; i < questions; i++) {
        recv_all(fd, header, HEADER);
        if (header[0] == PUSH) recv_all(fd, values, bytes);
        send_all(fd, header, HEADER);
        if (header[0] == PULL) send_all(fd, values, bytes);
    }
    recv(fd, header, 1, 0); // Until the other one leaves
    _exit(0);
}

static void ask_bare(int fd, size_t bytes, int repeats)
{
    uint8_t header[HEADER] = { 0 }, *values = take_vector(bytes);
    for (int i = -2; i < 2 * repeats; i++) {
        const double start_s = clock_s();
        header[0] = i % 2 ? PULL : PUSH;
        send_all(fd, header, HEADER);
        if (header[0] == PUSH) send_all(fd, values, bytes);
        recv_all(fd, header, HEADER);
        if (header[0] == PULL) recv_all(fd, values, bytes);
        if (i >= 0) shared->took_s[i / 2][i % 2] = clock_s() - start_s;
    }
    _exit(0);
}

static void run_bare(size_t bytes, int repeats)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    ensure(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0);
    ensure(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        if (fork()) continue;
        const int fd = i ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
        if (i == 0) ensure(connect(fd, (struct sockaddr *)&at, size) == 0);
        tcp_tune(fd);
        if (i) serve_bare(fd, bytes, 2 * repeats + 2);
        else ask_bare(fd, bytes, repeats);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        ensure(wait(&status) > 0 && status == 0);
    }
    close(listener);
}

// ---- turns ----------------------------------------------------------------------------------

static struct times times_of(int repeats)
{
    double s[2][REPEATS_MAX];
    for (int i = 0; i < 2 * repeats; i++) s[i % 2][i / 2] = shared->took_s[i / 2][i % 2];
    return (struct times){ median(s[PUSH], repeats), median(s[PULL], repeats) };
}

static void measure(size_t bytes, int turns)
{
    int repeats = bytes <= 1 << 20 ? 60 : bytes <= 16 << 20 ? 12 : 5;
    double tcp[2][TURNS_MAX], share[2][2][TURNS_MAX]; // share: [plain, sealed][push, pull]
    for (int t = 0; t < turns; t++) {
        run_bare(bytes, repeats);
        const struct times bare = times_of(repeats);
        tcp[PUSH][t] = (double)bytes / bare.push_s / 1e9;
        tcp[PULL][t] = (double)bytes / bare.pull_s / 1e9;
        for (enum way way = PLAIN; way <= SEALED; way++) {
            ensure(members_run(way, 2, bytes, push_and_pull, &repeats) == 0);
            const struct times ours = times_of(repeats);
            share[way][PUSH][t] = bare.push_s / ours.push_s;
            share[way][PULL][t] = bare.pull_s / ours.pull_s;
        }
    }
    printf("  %3zu MiB  %6.2f %6.2f GB/s  ", bytes >> 20, median(tcp[PUSH], turns),
           median(tcp[PULL], turns));
    for (enum way way = PLAIN; way <= SEALED; way++)
        printf("   %5.2f %5.2f", median(share[way][PUSH], turns), median(share[way][PULL], turns));
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int turns = argc > 1 ? atoi(argv[1]) : 7;
    ensure(turns >= 1 && turns <= TURNS_MAX);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    print_processor();
    printf("medians of %d turns, push and pull: bare TCP; of it plain; sealed\n", turns);
    for (size_t bytes = 1 << 20; argc <= 2 && bytes <= 64 << 20; bytes *= 4) measure(bytes, turns);
    if (argc > 2) measure((size_t)atoll(argv[2]), turns);
    return 0;
}
