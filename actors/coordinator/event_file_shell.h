#pragma once
// event_file -- a file of numbers over steps that TensorBoard reads.
//
//   file    record, record, ...                    the first says "brain.Event:2"
//   record  length le64 │ crc le32 of it │ event │ crc le32 of the event
//   event   wall_time 1: double │ step 2: varint │ file_version 3: text │ summary 5:
//   summary value 1: { tag 1: text │ simple_value 2: float }, ...
//
// A crc is a masked CRC32C: ((c >> 15 | c << 17) + 0xa282ead8). Sources of the format, all of
// TensorFlow: tensorflow/core/lib/io/record_writer.cc (record), lib/hash/crc32c.h (mask),
// util/event.proto and framework/summary.proto (event, as protocol buffers version 3).
//
// One thread. A record that could not be written whole is taken back, so that the file can be read
// up to its end.

#include "common/base/fault.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { EVENT_SCALARS_MAX = 8, EVENT_TAG_MAX = 40 };

struct event_scalar {
    const char *tag; // At most EVENT_TAG_MAX bytes
    float value;
};

struct event_file {
    int fd;
    off_t bytes; // Of whole records
};

// Makes DIR/events.out.tfevents.SECONDS.HOST.NUMBER: TensorBoard goes through the files of a folder
// by name, so a later life of the writer needs later seconds or, with the same number of digits, a
// greater number. FAULT_BUSY: it is there already.
int event_file_create(struct event_file *self, const char *dir, uint64_t unix_ms, uint64_t number,
                      struct why *why);

// One event with these values. FAULT_IO, FAULT_DISK_FULL: nothing was added.
int event_file_add(struct event_file *self, uint64_t unix_ms, uint64_t step,
                   const struct event_scalar *scalars, size_t count, struct why *why);
void event_file_close(struct event_file *self); // Zeroed, or closed before: nothing happens

// Appends to a file whose first *bytes bytes are whole, or leaves it as it was.
int event_file_append(int fd, off_t *bytes, const void *what, size_t count, struct why *why);
