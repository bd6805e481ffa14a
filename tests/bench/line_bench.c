// line_bench -- the sums of two members over a long line: RATE bits a second each way, DELAY until a
// packet is there. What is printed is the share of the line that their bytes take; for links of one
// connection and of eight, plain and sealed.
//
//     line_bench [MiB of the vector]
//
// The line is this process. Each member lives in a network namespace of its own, whose only way out
// is a TUN device, and this process carries the packets from one device to the other: each waits until
// those before it have gone out at RATE, and then DELAY more. Needs root, or permission to make
// namespaces and /dev/net/tun; without, it says so.

#include "tests/bench/group_member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PACKET = 9000, HELD_MAX = 8192, SUMS = 5 }; // HELD_MAX: packets; the rest is dropped
static const double RATE = 1e9, DELAY_S = 0.015;   // 30 ms there and back

struct direction {
    struct packet {
        double at_s; // When it is there
        uint32_t count;
        uint8_t bytes[PACKET];
    } * held;
    uint32_t first, used;
    double free_s; // When the line is free again
};

// ---- the line -------------------------------------------------------------------------------

static void take(struct direction *self, int tun)
{
    static uint8_t room[PACKET];
    for (int i = 0; i < 64; i++) {
        struct packet *packet = &self->held[(self->first + self->used) % HELD_MAX];
        const bool full = self->used == HELD_MAX;
        const ssize_t n = read(tun, full ? room : packet->bytes, PACKET);
        if (n <= 0) return;
        if (full) continue;
        const double now_s = clock_s();
        self->free_s = (self->free_s > now_s ? self->free_s : now_s) + (double)n * 8 / RATE;
        packet->at_s = self->free_s + DELAY_S;
        packet->count = (uint32_t)n;
        self->used++;
    }
}

static void give(struct direction *self, int tun)
{
    const double now_s = clock_s();
    for (; self->used && self->held[self->first].at_s <= now_s; self->used--) {
        const struct packet *packet = &self->held[self->first];
        (void)!write(tun, packet->bytes, packet->count);
        self->first = (self->first + 1) % HELD_MAX;
    }
}

static double next_s(const struct direction *self)
{
    return self->used ? self->held[self->first].at_s : 1e18;
}

static void carry(const int tuns[2], pid_t members[2])
{
    static struct direction ways[2];
    for (int i = 0; i < 2; i++) {
        if (!ways[i].held) ways[i].held = malloc(HELD_MAX * sizeof *ways[i].held);
        ensure(ways[i].held);
        ways[i].first = ways[i].used = 0;
    }
    for (int left = 2; left;) {
        struct pollfd at[2] = { { .fd = tuns[0], .events = POLLIN },
                                { .fd = tuns[1], .events = POLLIN } };
        const double due_s =
            next_s(&ways[0]) < next_s(&ways[1]) ? next_s(&ways[0]) : next_s(&ways[1]);
        const double wait_s = due_s - clock_s();
        const struct timespec wait = { .tv_nsec = wait_s <= 0     ? 0
                                                  : wait_s > 0.05 ? 50000000
                                                                  : (long)(1e9 * wait_s) };
        ppoll(at, 2, &wait, NULL);
        for (int i = 0; i < 2; i++) {
            int status;
            if (at[i].revents) take(&ways[i], tuns[i]);
            give(&ways[i], tuns[1 - i]);
            if (members[i] && waitpid(members[i], &status, WNOHANG) == members[i]) {
                ensure(status == 0);
                members[i] = 0;
                left--;
            }
        }
    }
}

// A namespace of its own for this process, with a device that has the address. -1: not permitted.
static int enter(const char *address)
{
    struct ifreq device = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    struct sockaddr_in at = { .sin_family = AF_INET };
    if (unshare(CLONE_NEWNET) != 0) return -1;
    const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0) return -1;
    snprintf(device.ifr_name, sizeof device.ifr_name, "line");
    if (ioctl(tun, TUNSETIFF, &device) != 0) return -1;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, address, &at.sin_addr);
    memcpy(&device.ifr_addr, &at, sizeof at);
    ensure(ioctl(fd, SIOCSIFADDR, &device) == 0);
    inet_pton(AF_INET, "255.255.255.0", &at.sin_addr);
    memcpy(&device.ifr_netmask, &at, sizeof at);
    ensure(ioctl(fd, SIOCSIFNETMASK, &device) == 0);
    device.ifr_mtu = PACKET;
    ensure(ioctl(fd, SIOCSIFMTU, &device) == 0);
    device.ifr_qlen = 10000;
    ensure(ioctl(fd, SIOCSIFTXQLEN, &device) == 0);
    device.ifr_flags = IFF_UP | IFF_RUNNING;
    ensure(ioctl(fd, SIOCSIFFLAGS, &device) == 0);
    close(fd);
    return tun;
}

// ---- the members ----------------------------------------------------------------------------

static void sum(struct member *self)
{
    struct why why = { 0 };
    member_start(self);
    for (int i = 0; i < SUMS; i++) {
        const double start_s = clock_s();
        const int rc = member_add(self, &why);
        if (rc < 0) _exit(fault_exit(rc, &why));
        shared->took_s[i][self->place] = clock_s() - start_s;
    }
    _exit(0);
}

// The share of the line in the median sum; -1: not permitted.
static double measure(enum way way, uint32_t connections, size_t bytes)
{
    static const char *const addresses[] = { "10.77.0.1", "10.77.0.2" };
    pthread_barrierattr_t attr;
    double took_s[SUMS];
    int tuns[2];
    pid_t pids[2];
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, 2);
    for (uint32_t m = 0; m < 2; m++) {
        tuns[m] = enter(addresses[m]);
        if (tuns[m] < 0) return -1;
        pids[m] = fork();
        if (pids[m]) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct member self = { .place = m,
                               .members = 2,
                               .way = way,
                               .connections = connections,
                               .address = addresses[m],
                               .count = bytes / sizeof(float) };
        sum(&self);
    }
    carry(tuns, pids);
    close(tuns[0]);
    close(tuns[1]);
    for (int i = 0; i < SUMS; i++)
        took_s[i] = shared->took_s[i][0] > shared->took_s[i][1] ? shared->took_s[i][0]
                                                                : shared->took_s[i][1];
    return (double)bytes * 8 / median(took_s, SUMS) / RATE; // Half of it twice: parts and results
}

int main(int argc, char **argv)
{
    const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 128) << 20;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    printf("two members, %zu MiB, a line of %.0f Mbit/s each way and %.0f ms there and back, "
           "median of "
           "%d sums:\n",
           bytes >> 20, RATE / 1e6, 2e3 * DELAY_S, SUMS);
    for (int i = 0; i < 4; i++) {
        const uint32_t connections = i & 1 ? 8 : 1;
        const double share = measure(i & 2 ? SEALED : PLAIN, connections, bytes);
        if (share < 0) {
            printf("left out: a network namespace or /dev/net/tun is not permitted here: %s\n",
                   strerror(errno));
            return 0;
        }
        printf("  %s, %u connection%s: %.0f %% of the line\n", i & 2 ? "sealed" : "plain",
               connections, connections > 1 ? "s" : "", 100 * share);
        fflush(stdout);
    }
    return 0;
}
