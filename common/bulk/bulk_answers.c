// A question and its answer: what the store has, or what the caller's function reads. Each question
// has one answer, and each answer is copied into the connection's queue. Raw bytes are paid for
// (purse.h): blobs and descriptions from one purse, parts of states from another, so that one who
// wants states without end leaves nobody without blobs; samples from none. Of answers without raw
// bytes an asker gets BULK_WORDS, then one each BULK_WORD_MS.

#include "common/bulk/bulk_server_inside.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 256 }; // What the frame of an answer and its tags take at most

static size_t say(struct bulk_server *self, struct seat *seat, uint16_t kind, const void *body,
                  const uint8_t *raw, size_t count)
{
    const size_t bytes = bulk_line_put(&seat->line, self->run, kind, body, raw, count);
    struct asker *asker = seat->asker;
    if (raw && seat->purse < BULK_PURSES) purse_take(&asker->purses[seat->purse], bytes);
    if (!raw && asker->words_ms < clock_ms()) asker->words_ms = clock_ms();
    if (!raw) asker->words_ms += BULK_WORD_MS;
    return bytes;
}

static size_t lack(struct bulk_server *self, struct seat *seat, uint32_t request,
                   const struct hash *hash, const char *reason)
{
    struct wire_lacking lacking = { .request = request, .hash = *hash };
    snprintf(lacking.reason, sizeof lacking.reason, "%s", reason);
    return say(self, seat, FRAME_LACKING, &lacking, NULL, 0);
}

static size_t refuse_samples(struct bulk_server *self, struct seat *seat, uint32_t request,
                             const char *reason)
{
    struct wire_no_samples refusal = { .request = request };
    snprintf(refusal.reason, sizeof refusal.reason, "%.*s", (int)sizeof refusal.reason - 1, reason);
    for (char *at = refusal.reason; *at; at++)
        if ((uint8_t)*at < 0x20) *at = ' ';
    return say(self, seat, FRAME_NO_SAMPLES, &refusal, NULL, 0);
}

static size_t answer_want(struct bulk_server *self, struct seat *seat, const struct wire_want *want)
{
    static const uint8_t nothing[1];
    struct blob_ref ref = { 0 };
    struct why why = { 0 };
    if (!self->options.store)
        return lack(self, seat, want->request, &want->hash, "no blobs are served here");
    if (blob_store_get(self->options.store, &want->hash, &why, &ref) < 0)
        return lack(self, seat, want->request, &want->hash, "not here");
    const size_t total = ref.count;
    if (want->offset >= total && total > 0) {
        blob_store_release(&ref);
        return lack(self, seat, want->request, &want->hash, "it ends before this offset");
    }
    const size_t offset = total ? (size_t)want->offset : 0, rest = total - offset;
    const size_t count = want->count < rest ? want->count : rest;
    const struct wire_chunk chunk = { want->request, want->hash, offset, total };
    failpoint("serve_chunk");
    const size_t said =
        say(self, seat, FRAME_CHUNK, &chunk, count > 0 ? ref.bytes + offset : nothing, count);
    blob_store_release(&ref);
    return said;
}

static size_t answer_want_leaves(struct bulk_server *self, struct seat *seat,
                                 const struct wire_want_leaves *want)
{
    struct blob_ref ref = { 0 };
    struct state_cut cut;
    if (!self->options.store ||
        blob_store_leaves(self->options.store, &want->digest, NULL, &ref, &cut) < 0)
        return lack(self, seat, want->request, &want->digest, "not pinned here");
    if (ref.count == 0 || ref.count / HASH_BYTES > BULK_LEAVES_MAX) {
        blob_store_release(&ref);
        return lack(self, seat, want->request, &want->digest,
                    "its list of leaves is longer than can be sent");
    }
    const struct wire_leaves leaves = { want->request, want->digest, cut.bytes[0] / sizeof(float) };
    failpoint("serve_leaves");
    const size_t said = say(self, seat, FRAME_LEAVES, &leaves, ref.bytes, ref.count);
    blob_store_release(&ref);
    return said;
}

static size_t answer_want_samples(struct bulk_server *self, struct seat *seat,
                                  const struct wire_want_samples *want)
{
    const uint64_t sample_bytes = 4 * ((uint64_t)self->options.seq_len + 1);
    struct why why = { 0 };
    char text[160];
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (!self->options.answer)
        return refuse_samples(self, seat, want->request, "no samples are served here");
    if (want->count * sample_bytes > BULK_SAMPLES_BYTES) {
        snprintf(text, sizeof text,
                 "count %" PRIu32 ", allowed 1..%" PRIu64 " of %" PRIu64 " bytes each", want->count,
                 BULK_SAMPLES_BYTES / sample_bytes, sample_bytes);
        return refuse_samples(self, seat, want->request, text);
    }
    int rc =
        self->options.answer(self->options.arg, want->position, want->count, &bytes, &count, &why);
    if (rc == 0 && count > BULK_ANSWER_BYTES_MAX)
        rc = why_set(&why, FAULT_LIMIT, "%zu bytes with their proofs; ask for fewer", count);
    if (rc == 0) failpoint("serve_samples");
    const struct wire_samples samples = { want->request, want->position, want->count,
                                          self->options.seq_len };
    const size_t said = rc == 0 ? say(self, seat, FRAME_SAMPLES, &samples, bytes, count)
                                : refuse_samples(self, seat, want->request,
                                                 why.text[0] ? why.text : "reading them failed");
    free(bytes);
    return said;
}

static size_t answer_want_dataset(struct bulk_server *self, struct seat *seat,
                                  const struct wire_want_dataset *want)
{
    const struct bulk_server_options *options = &self->options;
    const struct wire_dataset dataset = { want->request };
    if (!options->description)
        return refuse_samples(self, seat, want->request, "no samples are served here");
    return say(self, seat, FRAME_DATASET, &dataset, options->description,
               options->description_bytes);
}

// ---- paying -------------------------------------------------------------------------------------

enum bulk_purse bulk_purse_of(const struct bulk_server *self, const struct bulk_mail *mail)
{
    const struct wire_want *want = mail->body;
    size_t bytes;
    switch (mail->head.kind) {
    case FRAME_WANT:
        return self->options.store && !blob_store_size(self->options.store, &want->hash, &bytes)
                   ? BULK_PURSE_STATE
                   : BULK_PURSE_BLOBS;
    case FRAME_WANT_LEAVES: return BULK_PURSE_STATE;
    case FRAME_WANT_SAMPLES: return BULK_PURSE_NONE;
    default: return BULK_PURSE_BLOBS;
    }
}

bool bulk_may_have(const struct bulk_server *self, struct seat *seat, uint64_t now_ms)
{
    // mutant: bulk: what is not here can be asked for without end
    if (seat->asker->words_ms >= now_ms + BULK_WORDS * BULK_WORD_MS) return false;
    if (seat->purse == BULK_PURSE_NONE) return true;
    struct purse *purse = &seat->asker->purses[seat->purse];
    if (purse->left > 0) return true;
    struct blob_amounts amounts = { 0 };
    if (self->options.store) amounts = blob_store_amounts(self->options.store);
    const struct purse_source sources[BULK_PURSES] = {
        [BULK_PURSE_BLOBS] = { amounts.bytes + AROUND * amounts.blobs +
                                   self->options.description_bytes,
                               BULK_BLOBS_LEAST, amounts.bytes_ever + AROUND * amounts.blobs_ever },
        [BULK_PURSE_STATE] = { amounts.state, BULK_STATE_LEAST, amounts.state_ever }
    };
    return purse_is_open(purse, &sources[seat->purse], now_ms);
}

// ---- answering ----------------------------------------------------------------------------------

bool bulk_is_question(const struct bulk_server *self, const struct bulk_mail *mail)
{
    const uint16_t kind = mail->head.kind;
    return !mail->raw && strcmp(mail->head.run, self->run) == 0 &&
           (kind == FRAME_WANT || kind == FRAME_WANT_LEAVES || kind == FRAME_WANT_SAMPLES ||
            kind == FRAME_WANT_DATASET);
}

size_t bulk_answer(struct bulk_server *self, struct seat *seat)
{
    const struct bulk_mail *mail = &seat->mail;
    switch (mail->head.kind) {
    case FRAME_WANT: return answer_want(self, seat, mail->body);
    case FRAME_WANT_LEAVES: return answer_want_leaves(self, seat, mail->body);
    case FRAME_WANT_SAMPLES: return answer_want_samples(self, seat, mail->body);
    default: return answer_want_dataset(self, seat, mail->body);
    }
}
