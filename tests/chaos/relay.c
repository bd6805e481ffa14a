// relay -- one loop reads packets from both sides, draws a fate for each, and sends it when it is
// due.

#include "common/base/clock.h"
#include "tests/chaos/relay.h"
#include "common/base/ensure.h"
#include "tests/live/netns.h"
#include "tests/live/testbed.h"
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
#include <time.h>
#include <unistd.h>

enum { PACKETS_MAX = 1 << 16, PACKET_BYTES = 1 << 16, TURN = 64 };

// The profile changes between packets; half a change meets one packet and does no harm.
struct relay_shared {
    struct relay_profile profile;
    struct relay_counts counts;
};

struct packet {
    uint64_t due_us, number;
    int to, count;
    uint8_t *bytes;
};

struct heap {
    struct packet list[PACKETS_MAX];
    unsigned count;
    uint64_t number;
};

// ---- packets on their way, by due time ----------------------------------------------------------

static bool is_before(const struct packet *a, const struct packet *b)
{
    return a->due_us < b->due_us || (a->due_us == b->due_us && a->number < b->number);
}

static void swap(struct packet *a, struct packet *b)
{
    const struct packet kept = *a;
    *a = *b;
    *b = kept;
}

static void push(struct heap *self, struct packet packet)
{
    unsigned at = self->count++;
    packet.number = self->number++;
    self->list[at] = packet;
    for (; at > 0 && is_before(&self->list[at], &self->list[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&self->list[at], &self->list[(at - 1) / 2]);
}

static struct packet pop(struct heap *self)
{
    const struct packet first = self->list[0];
    self->list[0] = self->list[--self->count];
    for (unsigned at = 0, least;; at = least) {
        least = at;
        for (unsigned child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < self->count && is_before(&self->list[child], &self->list[least]))
                least = child;
        if (least == at) return first;
        swap(&self->list[at], &self->list[least]);
    }
}

// ---- fates --------------------------------------------------------------------------------------

static bool happens(uint64_t *seed, unsigned ppm) { return testbed_draw(seed) % 1000000 < ppm; }

static void send_copy(struct heap *heap, volatile struct relay_shared *shared, uint64_t *seed,
                      int to, const uint8_t *bytes, int count)
{
    const unsigned jitter = shared->profile.jitter_us;
    static uint64_t latest_us[2];
    struct packet packet = { .to = to, .count = count, .bytes = malloc((size_t)count) };
    if (!packet.bytes || heap->count == PACKETS_MAX) {
        free(packet.bytes);
        return;
    }
    memcpy(packet.bytes, bytes, (size_t)count);
    if (count > 40 && happens(seed, shared->profile.flipped_ppm)) {
        packet.bytes[40 + testbed_draw(seed) % (unsigned)(count - 40)] ^=
            (uint8_t)(1u << testbed_draw(seed) % 8);
        shared->counts.flipped++;
    }
    packet.due_us = clock_us() + shared->profile.delay_us;
    if (jitter) packet.due_us += testbed_draw(seed) % (2 * (uint64_t)jitter);
    if (packet.due_us < latest_us[to]) shared->counts.overtook++;
    else latest_us[to] = packet.due_us;
    push(heap, packet);
}

static void take(struct heap *heap, volatile struct relay_shared *shared, uint64_t *seed, int fd,
                 int to)
{
    static uint8_t bytes[PACKET_BYTES];
    for (int n = 0; n < TURN; n++) {
        const ssize_t count = read(fd, bytes, sizeof bytes);
        if (count <= 0) return;
        shared->counts.packets++;
        const bool deaf = to == 0 ? shared->profile.deaf_here : shared->profile.deaf_there;
        if (deaf || happens(seed, shared->profile.lost_ppm)) {
            shared->counts.lost++;
            continue;
        }
        send_copy(heap, shared, seed, to, bytes, (int)count);
        if (!happens(seed, shared->profile.twice_ppm)) continue;
        shared->counts.twice++;
        send_copy(heap, shared, seed, to, bytes, (int)count);
    }
}

static void pass_on(int fds[2], volatile struct relay_shared *shared, uint64_t seed)
{
    static struct heap heap;
    struct pollfd items[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
    for (;;) {
        while (heap.count && heap.list[0].due_us <= clock_us()) {
            const struct packet packet = pop(&heap);
            if (write(fds[packet.to], packet.bytes, (size_t)packet.count) < 0)
                shared->counts.lost++;
            free(packet.bytes);
        }
        const uint64_t us = heap.count ? heap.list[0].due_us - clock_us() : 1000000;
        const struct timespec wait = { 0, (long)(us < 999000 ? us : 999000) * 1000 };
        ppoll(items, 2, (int64_t)us > 0 ? &wait : &(struct timespec){ 0 }, NULL);
        for (int i = 0; i < 2; i++) take(&heap, shared, &seed, fds[i], 1 - i);
    }
}

// ---- namespaces ---------------------------------------------------------------------------------

// A TUN device in the namespace that the caller is in.
static int open_tun(void)
{
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "chaos0" };
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool set_up(int netns, const char *address, const char *peer)
{
    char line[160];
    snprintf(line, sizeof line, "ip addr add %s peer %s dev chaos0", address, peer);
    return netns_run(netns, "ip link set lo up") && netns_run(netns, line) &&
           netns_run(netns, "ip link set chaos0 up");
}

bool relay_open(struct relay *self, uint64_t seed, const char **ret_why)
{
    *self = (struct relay){ .there = -1 };
    *ret_why = "no network namespace of our own (needs root)";
    const int outer = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (outer < 0 || unshare(CLONE_NEWNET) != 0) return false;
    self->there = netns_hold(&self->holder);
    if (self->there < 0) goto failed;
    const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int fds[2] = { open_tun(), -1 };
    if (setns(self->there, CLONE_NEWNET) == 0) fds[1] = open_tun();
    ensure(setns(own, CLONE_NEWNET) == 0);
    close(own);
    *ret_why = "no TUN device (needs /dev/net/tun)";
    if (fds[0] < 0 || fds[1] < 0) goto failed;
    *ret_why = "the two ends could not be given addresses (needs ip of iproute2)";
    if (!set_up(-1, RELAY_HERE, RELAY_THERE) || !set_up(self->there, RELAY_THERE, RELAY_HERE))
        goto failed;
    self->shared =
        mmap(NULL, sizeof *self->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(self->shared != MAP_FAILED);
    self->pid = fork();
    ensure(self->pid >= 0);
    if (self->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pass_on(fds, self->shared, seed);
    }
    close(fds[0]), close(fds[1]);
    close(outer);
    return true;
failed:
    if (self->holder > 0) kill(self->holder, SIGKILL), waitpid(self->holder, NULL, 0);
    ensure(setns(outer, CLONE_NEWNET) == 0);
    close(outer);
    return false;
}

void relay_set(struct relay *self, const struct relay_profile *profile)
{
    self->shared->profile = *profile;
}

struct relay_counts relay_count(const struct relay *self) { return self->shared->counts; }

void relay_close(struct relay *self)
{
    if (self->pid <= 0) return;
    kill(self->pid, SIGKILL), kill(self->holder, SIGKILL);
    waitpid(self->pid, NULL, 0), waitpid(self->holder, NULL, 0);
    close(self->there);
    self->pid = 0;
}
