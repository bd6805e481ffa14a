// group_bench -- the sums of a group beside gloo's all-reduce and beside bare TCP, in turns in one
// run, on a loopback.
//
//     group_bench [turns] [W] [bytes]        one cell alone, if W and bytes are given
//
// A turn of a cell (members, bytes) starts the members as processes of their own, sums a few times,
// and takes the median time; a sum takes as long as its slowest member, after a barrier. Turns
// alternate between ours and gloo's; what is printed is the median of the turns, and the quotient.
// All sockets run under the same congestion control: gloo's are made here, too (socket below).
//
// "of TCP": the bytes that the members send in all, 2 (W-1) times the vector, by what two streams
// of bare TCP move in the same time, both cores busy.

#include "tests/bench/gloo_peer.h"
#include "tests/bench/group_member.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS_MAX = 31 };

// Every socket of this process, gloo's included, begins under reno, as those of a group do.
int socket(int domain, int type, int protocol)
{
    static int (*real)(int, int, int);
    if (!real) real = (int (*)(int, int, int))(uintptr_t)dlsym(RTLD_NEXT, "socket");
    const int fd = real(domain, type, protocol);
    if (fd >= 0 && (domain == AF_INET || domain == AF_INET6))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return fd;
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

// ---- a member -------------------------------------------------------------------------------

static void add(struct member *self)
{
    struct why why = { 0 };
    const int rc = member_add(self, &why);
    if (rc < 0) _exit(fault_exit(rc, &why));
}

static void measure(struct member *self, void *arg)
{
    const int repeats = *(int *)arg;
    const long before_kib = peak_kib();
    add(self);
    for (int i = 0; i < repeats; i++) {
        pthread_barrier_wait(&shared->barrier);
        const double start_s = clock_s();
        add(self);
        shared->took_s[i][self->place] = clock_s() - start_s;
        for (size_t k = 0; k < self->count; k += 1024) self->values[k] = (float)(k % 7);
    }
    shared->extra_kib[self->place] = peak_kib() - before_kib;
    pthread_barrier_wait(&shared->barrier); // Nobody leaves before all are through
}

// The share of a core that waiting takes: member 0 waits for the others for a second.
static void wait_idly(struct member *self, void *arg)
{
    (void)arg;
    if (self->place) usleep(1000000); // What is measured: the others are busy so long
    const double start_s = clock_s(), before_s = cpu_s();
    add(self);
    if (self->place == 0) shared->waiting_share = (cpu_s() - before_s) / (clock_s() - start_s);
    pthread_barrier_wait(&shared->barrier);
}

// ---- turns ----------------------------------------------------------------------------------

static double take_turn(enum way way, uint32_t members, size_t bytes, int repeats)
{
    ensure(members_run(way, members, bytes, repeats ? measure : wait_idly, &repeats) == 0);
    double slowest_s[REPEATS_MAX];
    for (int i = 0; i < repeats; i++) {
        slowest_s[i] = 0;
        for (uint32_t place = 0; place < members; place++)
            if (shared->took_s[i][place] > slowest_s[i]) slowest_s[i] = shared->took_s[i][place];
    }
    return repeats ? median(slowest_s, repeats) : 0;
}

static const char *size_text(size_t bytes, char text[32])
{
    if (bytes < 1 << 20) snprintf(text, 32, "%zu KiB", bytes >> 10);
    else snprintf(text, 32, "%zu MiB", bytes >> 20);
    return text;
}

// ---- bare TCP -------------------------------------------------------------------------------

static void stream(double until_s, int listener, struct sockaddr_in at, bool sends)
{
    static char room[1 << 20];
    const int fd = sends ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
    ensure(!sends || connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    while (sends && clock_s() < until_s) ensure(send(fd, room, sizeof room, 0) > 0);
    size_t total = 0;
    for (ssize_t n; !sends && (n = recv(fd, room, sizeof room, 0)) > 0;) total += (size_t)n;
    if (!sends) __atomic_add_fetch(&shared->extra_kib[0], (long)(total >> 10), __ATOMIC_SEQ_CST);
    _exit(0);
}

// Bytes a second that two streams move together.
static double measure_tcp(void)
{
    const double lasts_s = 0.5;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    ensure(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 4) == 0);
    ensure(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    shared->extra_kib[0] = 0;
    const double until_s = clock_s() + lasts_s;
    for (int i = 0; i < 4; i++)
        if (fork() == 0) stream(until_s, listener, at, i & 1);
    for (int i = 0; i < 4; i++) ensure(wait(NULL) > 0);
    close(listener);
    return (double)shared->extra_kib[0] * 1024 / lasts_s;
}

// ---- the table ------------------------------------------------------------------------------

static int repeats_of(size_t bytes)
{
    return bytes <= 1 << 16 ? 200 : bytes <= 1 << 20 ? 60 : bytes <= 1 << 24 ? 12 : 4;
}

static void measure_cell(uint32_t members, size_t bytes, int turns)
{
    double s[WAYS][TURNS_MAX], tcp[TURNS_MAX], ratio[TURNS_MAX];
    char text[32];
    const bool has_gloo = gloo_new, seals = bytes >= 16 << 20;
    for (int t = 0; t < turns; t++) {
        tcp[t] = measure_tcp();
        s[PLAIN][t] = take_turn(PLAIN, members, bytes, repeats_of(bytes));
        s[GLOO][t] = has_gloo ? take_turn(GLOO, members, bytes, repeats_of(bytes)) : 1;
        s[SEALED][t] = seals ? take_turn(SEALED, members, bytes, repeats_of(bytes)) : 1;
        ratio[t] = s[GLOO][t] / s[PLAIN][t];
    }
    const double ours_s = median(s[PLAIN], turns), gloo_s = median(s[GLOO], turns);
    printf("  %u  %8s  %10.1f us  %6.3f GB/s", members, size_text(bytes, text), 1e6 * ours_s,
           (double)bytes / ours_s / 1e9);
    if (has_gloo)
        printf("  %10.1f us   %5.2f  %5.2f", 1e6 * gloo_s, gloo_s / ours_s, median(ratio, turns));
    printf("   %4.2f", 2.0 * (members - 1) * (double)bytes / ours_s / median(tcp, turns));
    if (seals) printf("   %5.2f", ours_s / median(s[SEALED], turns));
    printf("\n");
    fflush(stdout);
}

static void measure_costs(void)
{
    long most_kib = 0;
    take_turn(PLAIN, 2, 64 << 20, 0);
    printf("waiting takes %.2f %% of a core\n", 100 * shared->waiting_share);
    for (enum way way = PLAIN; way <= SEALED; way++) {
        take_turn(way, 4, 64 << 20, 2);
        for (int place = 0; place < 4; place++)
            if (shared->extra_kib[place] > most_kib) most_kib = shared->extra_kib[place];
        printf("memory beside the vector, %s, 4 members: %.1f MiB\n",
               way == PLAIN ? "plain" : "sealed", (double)most_kib / 1024);
    }
}

int main(int argc, char **argv)
{
    const int turns = argc > 1 ? atoi(argv[1]) : 5;
    ensure(turns >= 1 && turns <= TURNS_MAX);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    print_processor();
    if (!gloo_new) printf("gloo is not here: install libgloo-dev and build again\n");
    printf("medians of %d turns; W, bytes, ours, of the vector; gloo, times ours: of the medians, "
           "of each "
           "turn; of TCP; sealed by plain\n",
           turns);
    if (argc > 3) {
        measure_cell((uint32_t)atoi(argv[2]), (size_t)atoll(argv[3]), turns);
        return 0;
    }
    for (uint32_t members = 2; members <= 4; members++)
        for (size_t bytes = 4 << 10; bytes <= 256 << 20; bytes *= 4)
            if (argc <= 2 || members == (uint32_t)atoi(argv[2]))
                measure_cell(members, bytes, turns);
    measure_costs();
    return 0;
}
