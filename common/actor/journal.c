// Opening takes the directory's lock, reads both slots and keeps the newer whole one. A write with
// number n goes to slot n % 2, so it never touches the newest record. A slot counts only if its
// hash fits and its number belongs into that slot.

#include "common/actor/journal.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/hash.h"
#include "common/base/instance_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT = 4096, MAGIC = 0x314a4853 }; // "SHJ1"
#define NUMBER_MAX (UINT64_MAX >> 1)      // The last write: no honest journal reaches it

struct slot {
    uint32_t magic, count;
    uint64_t number;  // Rises with every write
    struct hash hash; // Of number, count and the bytes
    uint8_t bytes[JOURNAL_RECORD_MAX];
};

struct journal {
    int fd, lock;
    struct slot newest;
};

static struct hash slot_hash(const struct slot *slot)
{
    uint64_t head[2] = { slot->number, slot->count };
    return hash_of_two(head, sizeof head, slot->bytes, slot->count);
}

// True if the slot is whole and its number belongs into it. Otherwise the next write could destroy
// the newest record.
static bool slot_is_whole(const struct slot *slot, uint64_t place)
{
    if (slot->magic != MAGIC || slot->count > JOURNAL_RECORD_MAX) return false;
    if (slot->number % 2 != place || slot->number > NUMBER_MAX) return false;
    struct hash hash = slot_hash(slot);
    return hash_equal(&hash, &slot->hash);
}

static bool slot_is_blank(const struct slot *slot)
{
    static const struct slot blank;
    return memcmp(slot, &blank, sizeof blank) == 0;
}

static int take_lock(const char *dir, struct why *why, int *ret_lock)
{
    const int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", dir, strerror(errno));
    const int rc = instance_lock_take(dir_fd, dir, "lock", why, ret_lock);
    close(dir_fd);
    return rc;
}

static int read_slots(struct journal *self, const char *path, struct why *why)
{
    static const struct slot blank;
    struct slot slots[2] = { blank, blank };
    for (int i = 0; i < 2; i++)
        if (pread(self->fd, &slots[i], sizeof slots[i], i * SLOT) < 0)
            return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    bool whole[2] = { slot_is_whole(&slots[0], 0), slot_is_whole(&slots[1], 1) };
    if (!whole[0] && !whole[1]) {
        if (slot_is_blank(&slots[0]) && slot_is_blank(&slots[1])) return 0;
        return why_set(why, FAULT_CORRUPT,
                       "%s: neither record is whole; after the open round has ended, remove "
                       "the file to take part again without earlier promises",
                       path);
    }
    int newest = whole[0] && (!whole[1] || slots[0].number > slots[1].number) ? 0 : 1;
    self->newest = slots[newest];
    return 0;
}

// Makes the names of the directory and of its files durable, so that a power cut cannot remove the
// file.
static int sync_names(const char *dir, struct why *why)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
    int parent_fd = fd < 0 ? -1 : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent_fd < 0 || fsync(fd) != 0 || fsync(parent_fd) != 0) error = errno;
    if (fd >= 0) close(fd);
    if (parent_fd >= 0) close(parent_fd);
    return error ? why_set(why, fault_from_errno(error), "%s: %s", dir, strerror(error)) : 0;
}

int journal_open(const char *dir, struct why *why, struct journal **ret_journal)
{
    char path[4096];
    _Static_assert(sizeof(struct slot) <= SLOT, "a slot is one block");
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return why_set(why, fault_from_errno(errno), "%s: %s", dir, strerror(errno));
    struct journal *self = calloc(1, sizeof *self);
    ensure(self);
    self->fd = self->lock = -1;
    snprintf(path, sizeof path, "%s/journal", dir);
    int rc = take_lock(dir, why, &self->lock);
    if (rc == 0) {
        self->fd =
            failpoint("journal_open") < 0 ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        rc = self->fd < 0 ? why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno))
                          : read_slots(self, path, why);
    }
    if (rc == 0 && self->newest.number == 0) rc = sync_names(dir, why);
    if (rc < 0) journal_close(&self);
    else *ret_journal = self;
    return rc;
}

void journal_close(struct journal **self_p)
{
    struct journal *self = *self_p;
    if (!self) return;
    if (self->fd >= 0) close(self->fd);
    instance_lock_release(self->lock);
    free(self);
    *self_p = NULL;
}

size_t journal_read(const struct journal *self, const uint8_t **ret_bytes)
{
    *ret_bytes = self->newest.bytes;
    return self->newest.count;
}

static bool put_slot(const struct journal *self, const struct slot *slot)
{
    if (failpoint("journal_write") < 0) return false;
    const ssize_t n = pwrite(self->fd, slot, sizeof *slot, (off_t)(slot->number % 2) * SLOT);
    if (n == sizeof *slot) return failpoint("journal_sync") == 0 && fdatasync(self->fd) == 0;
    if (n >= 0) errno = ENOSPC; // A short write does not set it
    return false;
}

int journal_write(struct journal *self, const void *bytes, size_t count, struct why *why)
{
    ensure(count <= JOURNAL_RECORD_MAX);
    if (self->newest.number == NUMBER_MAX)
        return why_set(why, FAULT_LIMIT,
                       "journal: its number says 2^63 writes; remove it after the "
                       "open round has ended");
    struct slot slot = { .magic = MAGIC,
                         .count = (uint32_t)count,
                         .number = self->newest.number + 1 };
    memcpy(slot.bytes, bytes, count);
    slot.hash = slot_hash(&slot);
    if (!put_slot(self, &slot))
        return why_set(why, fault_from_errno(errno),
                       "journal: %s; ending, a restart reads the previous record", strerror(errno));
    self->newest = slot;
    return 0;
}
