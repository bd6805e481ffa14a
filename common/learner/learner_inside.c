// What every job of the learner's thread begins and ends with: taking it; a reason for the answer, a
// blob for the peers.

#include "common/learner/learner_inside.h"
#include "common/base/log.h"
#include "common/wire/wire_text.h"
#include <stdio.h>
#include <string.h>

void learner_put_reason(char reason[REASON_MAX + 1], const struct why *why)
{
    snprintf(reason, REASON_MAX + 1, "%.*s", REASON_MAX, why->text);
    const size_t count = strlen(reason);
    // A path may be no UTF-8, and the end may be half a character
    for (size_t i = 0; (i += wire_text_fault((const uint8_t *)reason + i, count - i)) < count;)
        reason[i] = reason[i] == '\n' ? ' ' : '?';
}

int learner_keep(struct learner *self, const void *bytes, size_t count, struct why *why,
                 struct hash *ret_hash)
{
    struct why said = { 0 };
    const int rc = blob_store_put(self->options->store, bytes, count, &said, ret_hash);
    if (!blob_store_is_kept(rc)) return why_set(why, rc, "%s", said.text);
    if (rc < 0)
        log_line(LOG_WARNING,
                 "learner.not_on_disk fault=%s reason=\"%s\"; served until this process ends",
                 fault_name(rc), said.text);
    return 0;
}

enum worker_turn learner_next(struct learner *self, int timeout_ms)
{
    if (self->has_job) return WORKER_JOB;
    if (self->has_ended) return WORKER_END;
    const enum worker_turn turn = worker_next(self->worker, timeout_ms, &self->job);
    self->has_job = turn == WORKER_JOB;
    self->has_ended = turn == WORKER_END;
    return turn;
}
