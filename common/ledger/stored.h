#pragma once
// stored -- reads a record from disk that wire_pack_record packed.

#include "common/base/fault.h"
#include "common/wire/wire.h"

// Empties the arena and unpacks one record into it. CORRUPT: it is not a record of this version;
// the text begins with `what` and `number` ("ledger record", 17) and names the fault.
int stored_unpack(const char *what, uint64_t number, const void *bytes, size_t count,
                  struct wire_arena *arena, struct why *why, uint16_t *ret_kind,
                  const void **ret_body);

// The same; a record of another kind is CORRUPT.
int stored_unpack_kind(const char *what, uint64_t number, const void *bytes, size_t count,
                       uint16_t kind, struct wire_arena *arena, struct why *why,
                       const void **ret_body);
