// bulk_client -- one question is put to one provider after the other, in the order of providers.h,
// until one answer is right. Now and then a question goes first to a provider that is tried, for a
// short time. Each answer is judged here: the right kind and size, then the caller's
// `take` or `know` checks its proof. If all fail, the client waits and begins again, up to
// rounds_max times or read_ms_max; the fault then quotes what each provider said.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_client.h"
#include "common/bulk/bulk_line.h"
#include "common/bulk/providers.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_MS = 5000,
    ROUNDS = 5,
    READ_PATIENCES = 3,
    WAIT_MS = 100,
    WAIT_MAX_MS = 2000,
    AGAIN_MS = 100 // A provider that is being restarted
};

struct bulk_client {
    struct bulk_client_options options;
    char run[WIRE_RUN_MAX + 1];
    uint32_t seq_len, patience_ms, rounds_max, read_ms_max;
    struct providers providers;
    struct handshake_self self;
    struct bulk_line line;              // The connection ..
    const struct provider_peer *called; // .. and to whom; NULL: none
    uint32_t request;
    struct bulk_mail mail;
};

int bulk_client_new(const struct bulk_client_options *options, struct why *why,
                    struct bulk_client **ret_self)
{
    if (strlen(options->run) > WIRE_RUN_MAX || options->seq_len == 0 ||
        options->seq_len >= BULK_SAMPLES_BYTES / 4)
        return why_set(why, FAULT_RANGE,
                       "sample client: run of %zu bytes (allowed 0..%d), seq_len %" PRIu32
                       " (1..%d); not made",
                       strlen(options->run), WIRE_RUN_MAX, options->seq_len,
                       BULK_SAMPLES_BYTES / 4 - 1);
    struct bulk_client *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = *options;
    snprintf(self->run, sizeof self->run, "%s", options->run);
    self->seq_len = options->seq_len;
    self->patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
    self->rounds_max = options->rounds_max ? options->rounds_max : ROUNDS;
    self->read_ms_max =
        options->read_ms_max ? options->read_ms_max : READ_PATIENCES * self->patience_ms;
    self->self = bulk_line_self(options->identity, self->run);
    self->line.fd = -1;
    *ret_self = self;
    return 0;
}

static void hang_up(struct bulk_client *self)
{
    bulk_line_close(&self->line);
    self->called = NULL;
}

void bulk_client_destroy(struct bulk_client **self_p)
{
    struct bulk_client *self = *self_p;
    if (!self) return;
    hang_up(self);
    free(self);
    *self_p = NULL;
}

void bulk_client_set_providers(struct bulk_client *self, const struct wire_holder *providers,
                               uint32_t count)
{
    providers_name(&self->providers, providers, count);
    if (self->called && self->called != self->providers.first) hang_up(self);
}

// ---- one question ---------------------------------------------------------------------------

struct question {
    uint64_t position;
    uint32_t count, *tokens;
}; // No tokens: the dataset

enum asked { ASKED_OK, ASKED_WRONG, ASKED_LATE };

static void refuse(struct bulk_client *self, struct provider_peer *peer, const char *reason)
{
    snprintf(peer->said, sizeof peer->said, "%.*s", (int)sizeof peer->said - 1, reason);
    if (self->options.refused)
        self->options.refused(self->options.arg, peer->holder.endpoint, peer->said);
}

// Whether the samples are those that were asked for.
static bool judge_samples(struct bulk_client *self, struct provider_peer *peer,
                          const struct question *question)
{
    struct bulk_mail *mail = &self->mail;
    const struct wire_samples *samples = mail->body;
    const size_t bytes = mail->raw_count;
    struct why why = { 0 };
    if (samples->position != question->position || samples->count != question->count ||
        samples->seq_len != self->seq_len) {
        char text[160];
        snprintf(text, sizeof text,
                 "sent %" PRIu32 " samples of seq_len %" PRIu32 " in %zu bytes, "
                 "asked were %" PRIu32 " of %" PRIu32,
                 samples->count, samples->seq_len, bytes, question->count, self->seq_len);
        refuse(self, peer, text);
        return false;
    }
    if (self->options.take(self->options.arg, question->position, question->count, mail->raw, bytes,
                           question->tokens, &why) == 0)
        return true;
    refuse(self, peer, why.text[0] ? why.text : "sent samples without a valid proof");
    return false;
}

static bool judge_dataset(struct bulk_client *self, struct provider_peer *peer)
{
    struct bulk_mail *mail = &self->mail;
    struct why why = { 0 };
    if (self->options.know(self->options.arg, mail->raw, mail->raw_count, &why) == 0) return true;
    refuse(self, peer, why.text);
    return false;
}

// True if the mail answers the request; *ret_ok then says whether the answer is right.
static bool hear(struct bulk_client *self, struct provider_peer *peer,
                 const struct question *question, bool *ret_ok)
{
    const struct bulk_mail *mail = &self->mail;
    const void *body = mail->body;
    if (mail->head.kind == FRAME_NO_SAMPLES) {
        const struct wire_no_samples *refusal = body;
        if (refusal->request != self->request) return false;
        snprintf(peer->said, sizeof peer->said, "%s", refusal->reason);
        *ret_ok = false;
        return true;
    }
    if (mail->head.kind != (question->tokens ? FRAME_SAMPLES : FRAME_DATASET)) return false;
    if (question->tokens) {
        if (((const struct wire_samples *)body)->request != self->request) return false;
        *ret_ok = judge_samples(self, peer, question);
    } else {
        if (((const struct wire_dataset *)body)->request != self->request) return false;
        *ret_ok = judge_dataset(self, peer);
    }
    return true;
}

static void send(struct bulk_client *self, const struct question *question)
{
    const struct wire_want_dataset dataset = { ++self->request };
    const struct wire_want_samples samples = { self->request, question->position, question->count };
    if (question->tokens)
        bulk_line_put(&self->line, self->run, FRAME_WANT_SAMPLES, &samples, NULL, 0);
    else bulk_line_put(&self->line, self->run, FRAME_WANT_DATASET, &dataset, NULL, 0);
}

// Connects, unless there is a connection, and asks. 0, or the fault that said says.
static int call(struct bulk_client *self, struct provider_peer *peer,
                const struct question *question)
{
    struct why why = { 0 };
    const int rc =
        self->line.fd >= 0 ? 0 : bulk_line_connect(&self->line, &self->self, &peer->holder, &why);
    if (rc < 0) {
        snprintf(peer->said, sizeof peer->said, "cannot be called: %.*s",
                 (int)sizeof peer->said - 32, why.text);
        return rc;
    }
    self->called = peer;
    self->line.raw_max = BULK_ANSWER_BYTES_MAX;
    send(self, question);
    return 0;
}

static void wait_for_line(const struct bulk_client *self, uint64_t ms)
{
    struct pollfd item = { .fd = self->line.fd,
                           .events = self->line.fd < 0 ? 0 : bulk_line_events(&self->line) };
    poll(&item, 1, (int)ms);
}

// What has come, if anything. 1: an answer, *ret_ok says whether it is right. 0: not yet. Or the fault
// that ended the connection.
static int listen_once(struct bulk_client *self, struct provider_peer *peer,
                       const struct question *question, struct why *why, bool *ret_ok)
{
    int rc = bulk_line_move(&self->line, why);
    if (rc <= 0) return rc;
    switch (bulk_line_recv(&self->line, &self->mail, why)) {
    case BULK_NOTHING: return 0;
    case BULK_ENDED: return FAULT_UNREACHABLE;
    default:
        if (hear(self, peer, question, ret_ok)) return 1;
        refuse(self, peer, "sends what makes no answer");
        return FAULT_PROTOCOL;
    }
}

// A connection that is not taken or that ends is made again, as long as there is patience: a
// provider that is restarted is back in a moment. One that refuses us, or lies, is left at once.
// *ret_took_ms is without the time that a new connection takes to open, so that it compares with an
// answer over an old one.
static enum asked ask(struct bulk_client *self, struct provider_peer *peer,
                      const struct question *question, uint32_t patience_ms, uint32_t *ret_took_ms)
{
    uint64_t begun_ms = clock_ms();
    const uint64_t until_ms = begun_ms + patience_ms;
    struct why why = { 0 };
    bool ok = false, is_new = self->line.fd < 0 && self->called != peer;
    if (call(self, peer, question) < 0) return ASKED_WRONG;
    for (uint64_t now_ms; (now_ms = clock_ms()) < until_ms;) {
        const uint64_t rest_ms = until_ms - now_ms;
        if (self->line.fd < 0) {
            wait_for_line(self, rest_ms < AGAIN_MS ? rest_ms : AGAIN_MS);
            if (call(self, peer, question) == FAULT_CONFIG) return ASKED_WRONG;
            continue;
        }
        const int rc = listen_once(self, peer, question, &why, &ok);
        if (is_new && self->line.is_open && rc == 0) is_new = false, begun_ms = clock_ms();
        *ret_took_ms = (uint32_t)(clock_ms() - begun_ms);
        if (rc == 1) {
            peer->refused = !ok;
            return ok ? ASKED_OK : ASKED_WRONG;
        }
        if (rc == FAULT_DENIED) snprintf(peer->said, sizeof peer->said, "%.120s", why.text);
        if (rc == FAULT_DENIED || rc == FAULT_PROTOCOL) return ASKED_WRONG;
        if (rc == 0) wait_for_line(self, rest_ms);
        else bulk_line_close(&self->line);
    }
    snprintf(peer->said, sizeof peer->said, "no answer in %" PRIu32 " ms%s%.100s", patience_ms,
             why.text[0] ? ": " : "", why.text);
    return ASKED_LATE;
}

// ---- all of them ----------------------------------------------------------------------------

static int give_up(const struct bulk_client *self, const struct question *question,
                   uint64_t took_ms, struct why *why)
{
    char text[WHY_MAX / 2] = "";
    uint32_t asked = 0;
    size_t used = 0;
    bool refused = false;
    for (uint32_t i = 0; i < self->providers.count; i++) {
        const struct provider_peer *peer = &self->providers.list[i];
        if (peer->times == 0) continue;
        asked++;
        refused |= peer->refused;
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "; %s: %s",
                                     peer->holder.endpoint, peer->said);
    }
    if (!question->tokens)
        return why_set(why, FAULT_UNREACHABLE,
                       "%" PRIu32 " providers asked in %" PRIu64 " ms, none "
                       "described the run's dataset%s",
                       asked, took_ms, text);
    // mutant: samples that are damaged wherever they are wait for a provider that is away
    return why_set(why, refused ? FAULT_DIGEST : FAULT_UNREACHABLE,
                   "samples %" PRIu64 "..%" PRIu64 ": %" PRIu32 " providers asked in %" PRIu64
                   " ms, none gave them%s",
                   question->position, question->position + question->count - 1, asked, took_ms,
                   text);
}

static bool ask_next(struct bulk_client *self, struct provider_peer *peer,
                     const struct question *question)
{
    uint32_t took_ms = 0;
    peer->times++;
    if (peer != self->called) hang_up(self);
    const bool ok = ask(self, peer, question, self->patience_ms, &took_ms) == ASKED_OK;
    if (ok)
        providers_succeed(&self->providers, peer, question->tokens, took_ms,
                          (self->patience_ms + 2) / 3, clock_ms());
    else providers_fail(&self->providers, peer, self->patience_ms, clock_ms());
    if (self->providers.first != peer) hang_up(self);
    return ok;
}

// One that is late in a trial has not failed: the others are asked, and it may be asked again.
static bool try_another(struct bulk_client *self, const struct question *question)
{
    uint32_t most_ms, took_ms = 0;
    struct provider_peer *peer = providers_try(&self->providers, clock_ms(), &most_ms);
    if (!peer) return false;
    if (most_ms > self->patience_ms) most_ms = self->patience_ms;
    hang_up(self);
    const enum asked asked = ask(self, peer, question, most_ms, &took_ms);
    if (asked == ASKED_WRONG) providers_fail(&self->providers, peer, self->patience_ms, clock_ms());
    else
        providers_end_trial(&self->providers, peer, asked == ASKED_OK, question->tokens,
                            asked == ASKED_OK ? took_ms : most_ms, clock_ms());
    if (self->providers.first != peer) hang_up(self);
    return asked == ASKED_OK;
}

static int ask_all(struct bulk_client *self, const struct question *question, struct why *why)
{
    const uint64_t begun_ms = clock_ms(), until_ms = begun_ms + self->read_ms_max;
    uint32_t wait_ms = WAIT_MS;
    providers_begin(&self->providers);
    if (try_another(self, question)) return 0;
    for (uint32_t round = 1; round <= self->rounds_max; round++) {
        struct provider_peer *peer;
        while (clock_ms() < until_ms &&
               (peer = providers_next(&self->providers, round, clock_ms())))
            if (ask_next(self, peer, question)) return 0;
        if (round == self->rounds_max || clock_ms() + wait_ms >= until_ms ||
            !providers_next(&self->providers, round + 1, clock_ms()))
            break;
        poll(NULL, 0, (int)wait_ms);
        wait_ms = 2 * wait_ms < WAIT_MAX_MS ? 2 * wait_ms : WAIT_MAX_MS;
    }
    return give_up(self, question, clock_ms() - begun_ms, why);
}

int bulk_know_dataset(struct bulk_client *self, struct why *why)
{
    return ask_all(self, &(struct question){ .count = 0 }, why);
}

int bulk_read_samples(struct bulk_client *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why)
{
    const size_t words = (size_t)self->seq_len + 1;
    // The proof of a sample may add up to two blocks and two paths.
    const size_t each = words * sizeof *tokens + 12288;
    const uint32_t part_max = each < BULK_SAMPLES_BYTES ? (uint32_t)(BULK_SAMPLES_BYTES / each) : 1;
    for (uint32_t done = 0, part; done < count; done += part) {
        part = count - done < part_max ? count - done : part_max;
        if (part > UINT16_MAX) part = UINT16_MAX; // WANT_SAMPLES.count
        const struct question question = { position + done, part, tokens + done * words };
        const int rc = ask_all(self, &question, why);
        if (rc < 0) return rc;
    }
    return 0;
}
