// event_file -- a record is packed in memory, from the inside out, and written at once.

#include "actors/coordinator/event_file_shell.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PACKED_MAX = 1024, HEADER_BYTES = 12, CRC_BYTES = 4 };

struct packed {
    uint8_t bytes[PACKED_MAX];
    size_t count;
};

// ---- checksums ----------------------------------------------------------------------------------

// CRC32C (Castagnoli), bit by bit: a record has some hundred bytes.
static uint32_t crc32c(const uint8_t *bytes, size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static uint32_t masked_crc(const uint8_t *bytes, size_t count)
{
    const uint32_t crc = crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

// ---- protocol buffers ---------------------------------------------------------------------------

enum proto_type { PROTO_VARINT = 0, PROTO_64 = 1, PROTO_BYTES = 2, PROTO_32 = 5 };

static void put_bytes(struct packed *self, const void *bytes, size_t count)
{
    ensure(self->count + count <= PACKED_MAX);
    memcpy(self->bytes + self->count, bytes, count);
    self->count += count;
}

static void put_le(struct packed *self, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) {
        const uint8_t byte = (uint8_t)(value >> 8 * i);
        put_bytes(self, &byte, 1);
    }
}

static void put_varint(struct packed *self, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put_le(self, (value & 0x7f) | 0x80, 1);
    put_le(self, value, 1);
}

static void put_key(struct packed *self, unsigned field, enum proto_type type)
{
    put_varint(self, field << 3 | type);
}

static void put_text(struct packed *self, unsigned field, const void *bytes, size_t count)
{
    put_key(self, field, PROTO_BYTES);
    put_varint(self, count);
    put_bytes(self, bytes, count);
}

static void put_time(struct packed *event, uint64_t unix_ms)
{
    const double seconds = (double)unix_ms / 1000;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_key(event, 1, PROTO_64);
    put_le(event, bits, 8);
}

static void put_scalar(struct packed *summary, const struct event_scalar *scalar)
{
    struct packed value = { .count = 0 };
    uint32_t bits;
    memcpy(&bits, &scalar->value, sizeof bits);
    ensure(strlen(scalar->tag) <= EVENT_TAG_MAX);
    put_text(&value, 1, scalar->tag, strlen(scalar->tag));
    put_key(&value, 2, PROTO_32);
    put_le(&value, bits, 4);
    put_text(summary, 1, value.bytes, value.count);
}

// ---- the file -----------------------------------------------------------------------------------

int event_file_append(int fd, off_t *bytes, const void *what, size_t count, struct why *why)
{
    const ssize_t written = pwrite(fd, what, count, *bytes);
    if (written == (ssize_t)count) return *bytes += (off_t)count, 0;
    const int error = written < 0 ? errno : ENOSPC;
    if (ftruncate(fd, *bytes) != 0) return why_set(why, FAULT_IO, "%s", strerror(errno));
    return why_set(why, fault_from_errno(error), "%s", strerror(error));
}

static int add(struct event_file *self, const struct packed *event, struct why *why)
{
    struct packed record = { .count = 0 };
    put_le(&record, event->count, 8);
    put_le(&record, masked_crc(record.bytes, 8), CRC_BYTES);
    put_bytes(&record, event->bytes, event->count);
    put_le(&record, masked_crc(event->bytes, event->count), CRC_BYTES);
    return event_file_append(self->fd, &self->bytes, record.bytes, record.count, why);
}

int event_file_create(struct event_file *self, const char *dir, uint64_t unix_ms, uint64_t number,
                      struct why *why)
{
    static const char version[] = "brain.Event:2";
    char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX];
    struct packed event = { .count = 0 };
    gethostname(host, sizeof host - 1);
    if (snprintf(path, sizeof path, "%s/events.out.tfevents.%010llu.%s.%llu", dir,
                 (unsigned long long)unix_ms / 1000, host[0] ? host : "host",
                 (unsigned long long)number) >= (int)sizeof path)
        return why_set(why, FAULT_LIMIT, "%s: the path is too long", dir);
    *self = (struct event_file){ .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) };
    if (self->fd < 0)
        return why_set(why, errno == EEXIST ? FAULT_BUSY : fault_from_errno(errno), "%s: %s", path,
                       strerror(errno));
    put_time(&event, unix_ms);
    put_text(&event, 3, version, sizeof version - 1);
    const int rc = add(self, &event, why);
    if (rc < 0) event_file_close(self);
    return rc < 0 ? why_wrap(why, rc, "%s", path) : 0;
}

int event_file_add(struct event_file *self, uint64_t unix_ms, uint64_t step,
                   const struct event_scalar *scalars, size_t count, struct why *why)
{
    struct packed event = { .count = 0 }, summary = { .count = 0 };
    ensure(count <= EVENT_SCALARS_MAX);
    put_time(&event, unix_ms);
    put_key(&event, 2, PROTO_VARINT);
    put_varint(&event, step);
    for (size_t i = 0; i < count; i++) put_scalar(&summary, &scalars[i]);
    put_text(&event, 5, summary.bytes, summary.count);
    return add(self, &event, why);
}

void event_file_close(struct event_file *self)
{
    if (self->fd > 0) close(self->fd);
    self->fd = -1;
}
