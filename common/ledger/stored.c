#include "common/ledger/stored.h"
#include <inttypes.h>

int stored_unpack(const char *what, uint64_t number, const void *bytes, size_t count,
                  struct wire_arena *arena, struct why *why, uint16_t *ret_kind,
                  const void **ret_body)
{
    struct wire_refusal refusal;
    char text[WIRE_REFUSAL_TEXT_MAX];
    arena->used = 0;
    if (wire_unpack_record(bytes, count, WIRE_LOCAL, arena, ret_kind, ret_body, &refusal)) return 0;
    wire_refusal_text(&refusal, text, sizeof text);
    return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 ": %s", what, number, text);
}

int stored_unpack_kind(const char *what, uint64_t number, const void *bytes, size_t count,
                       uint16_t kind, struct wire_arena *arena, struct why *why,
                       const void **ret_body)
{
    uint16_t found;
    int rc = stored_unpack(what, number, bytes, count, arena, why, &found, ret_body);
    if (rc < 0 || found == kind) return rc;
    return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 ": a %s where a %s belongs", what, number,
                   wire_kind_name(found), wire_kind_name(kind));
}
