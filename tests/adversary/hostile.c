// hostile -- a trainer that lies, for tests only: the objects of shoal-trainer, linked with --wrap
// so that some of its calls come here first. Journal, signatures, transport and REVEAL are the real
// ones.
//
//     HOSTILE=word of the table below       HOSTILE_FROM=round in which it begins (3)
//
// Its log names what it did: "hostile.result round=5 kind=noise" for each such result published,
// "hostile.finding", "hostile.silent". attacks.c has more words: what its trainers compute is
// honest.

#include "tests/adversary/hostile.h"
#include "common/base/ensure.h"
#include "common/optimizer/distro.h"
#include "common/crypto/merkle.h"
#include "common/optimizer/result.h"
#include "common/pace/rounds/rounds_member.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum kind {
    HONEST,
    SIGN_FLIP,    // Its gradient times -1
    TIMES_10,     // Its gradient times 10
    NOISE,        // Noise as long as its gradient, instead of it
    LAZY,         // No gradient at all: the momentum alone
    STALE,        // A payload of its own, of an earlier round
    COPY,         // The payload of another's claim of the same round
    WRONG_BATCH,  // The gradient of other samples than were dealt to it
    NOT_A_NUMBER, // A payload with NaN in it
    NO_RESIDUAL,  // A residual with NaN in it, so that no replay can make the result again
    EQUIVOCATE,   // One claim to every other witness, another claim to the rest
    WITHHOLD,     // A claim whose payload it does not serve
    ACCUSE,       // Reports a finding "different" where there is none
    SILENT,       // Its gradient times -1, and reveals nothing when it is audited
    LATE,         // An honest result, LATE_MS after the others'
    FLAKY,        // The same in one round of six
    KINDS
};

static const char *const words[KINDS] = { "honest", "sign-flip",    "times-10",   "noise",
                                          "lazy",   "stale",        "copy",       "wrong-batch",
                                          "nan",    "nan-residual", "equivocate", "withhold",
                                          "accuse", "silent",       "late",       "flaky" };

enum { LATE_MS = 3700 };

static enum kind kind(void)
{
    const char *word = getenv("HOSTILE");
    for (int i = 0; i < KINDS; i++)
        if (word && strcmp(word, words[i]) == 0) return (enum kind)i;
    if (hostile_is_attack(word)) return HONEST;
    ensure_failed("HOSTILE is a word of hostile.c or attacks.c", __FILE__, __LINE__);
}

// ---- between the core and the learner's thread ----------------------------------------------------

static _Atomic uint64_t training; // Round of the TRAIN in hand
static _Atomic uint64_t done_in;  // Round of the newest result that is not what it says
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t round;
    struct hash payload;
} other;                 // Heard in a claim; under the lock
static struct hash twin; // Payload of the second claim; under the lock

// The learner's own.
static const struct learner_options *options;
static struct compute_config config; // Of the model in hand
static uint64_t floats;
static const payload_form_t *form;    // Of its results
static _Thread_local bool honest_now; // We recompute another trainer's result

const struct learner_options *hostile_options(void) { return options; }

bool hostile_has_begun(uint64_t round)
{
    const char *from = getenv("HOSTILE_FROM");
    return round >= (from ? strtoull(from, NULL, 10) : 3);
}

static bool lies_as(enum kind as)
{
    return kind() == as && !honest_now && hostile_has_begun(atomic_load(&training));
}

static void did(void) { atomic_store(&done_in, atomic_load(&training)); }

#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

WRAP(void, learner_body, struct worker *worker, void *arg)
{
    options = arg;
    __real_learner_body(worker, arg);
}

WRAP(int, compute_new, const struct compute_device *device, const struct compute_config *given,
     struct why *why, compute_t **ret_compute)
{
    config = *given;
    floats = model_parameter_count(&given->shape);
    return __real_compute_new(device, given, why, ret_compute);
}

// We do our own audits honestly.
WRAP(int, result_gradient_again, optimizer_t *self, const struct result_work *work, struct why *why)
{
    honest_now = true;
    const int rc = __real_result_gradient_again(self, work, why);
    honest_now = false;
    return rc;
}

WRAP(int, result_again, optimizer_t *self, const struct result_work *work, struct why *why,
     uint8_t *ret_payload, struct hash *ret_to)
{
    honest_now = true;
    const int rc = __real_result_again(self, work, why, ret_payload, ret_to);
    honest_now = false;
    return rc;
}

// ---- the gradient ---------------------------------------------------------------------------------

WRAP(int, compute_gradient, compute_t *self, const uint32_t *tokens, uint32_t count,
     struct why *why, double *ret_loss)
{
    static uint32_t *first, first_count;
    const size_t row = (size_t)config.seq + 1;
    if (kind() != WRONG_BATCH) return __real_compute_gradient(self, tokens, count, why, ret_loss);
    if (!first) {
        first = malloc(count * row * sizeof *first);
        ensure(first);
        memcpy(first, tokens, count * row * sizeof *first);
        first_count = count;
    }
    if (!lies_as(WRONG_BATCH)) return __real_compute_gradient(self, tokens, count, why, ret_loss);
    uint32_t *others = malloc(count * row * sizeof *others);
    ensure(others);
    for (uint32_t i = 0; i < count; i++)
        memcpy(others + i * row, first + i % first_count * row, row * sizeof *others);
    const int rc = __real_compute_gradient(self, others, count, why, ret_loss);
    free(others);
    did();
    return rc;
}

static void bend(const float *gradient, float *ret)
{
    static uint64_t seed = 88172645463325252u;
    double square = 0.0;
    for (uint64_t i = 0; i < floats; i++) square += (double)gradient[i] * (double)gradient[i];
    const float size = (float)sqrt(3.0 * square / (double)floats); // Of uniform numbers
    for (uint64_t i = 0; i < floats; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const float chance = (float)(seed >> 40) * 0x1p-23f - 1.0f;
        switch (kind()) {
        case SIGN_FLIP:
        case SILENT: ret[i] = -gradient[i]; break;
        case TIMES_10: ret[i] = 10.0f * gradient[i]; break;
        case NOISE: ret[i] = size * chance; break;
        default: ret[i] = 0.0f;
        }
    }
}

WRAP(int, distro_compress, distro_t *self, const float *gradient, float rate, uint8_t *ret_payload,
     struct why *why)
{
    if (!lies_as(SIGN_FLIP) && !lies_as(SILENT) && !lies_as(TIMES_10) && !lies_as(NOISE) &&
        !lies_as(LAZY))
        return __real_distro_compress(self, gradient, rate, ret_payload, why);
    float *bent = malloc(floats * sizeof *bent);
    ensure(bent);
    bend(gradient, bent);
    const int rc = __real_distro_compress(self, bent, rate, ret_payload, why);
    free(bent);
    did();
    return rc;
}

// ---- the payload ----------------------------------------------------------------------------------

// Waits for another trainer's payload of this round; false if that takes too long.
static bool steal(uint8_t *ret_payload)
{
    for (int tried = 0; tried < 500; tried++) {
        struct why why = { 0 };
        struct blob_ref ref = { 0 };
        pthread_mutex_lock(&lock);
        const bool heard = other.round == atomic_load(&training);
        const struct hash hash = other.payload;
        pthread_mutex_unlock(&lock);
        if (heard && blob_store_get(options->store, &hash, &why, &ref) == 0) {
            ensure(ref.count == payload_bytes(form));
            memcpy(ret_payload, ref.bytes, ref.count);
            blob_store_release(&ref);
            return true;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
    }
    return false;
}

static void make_twin(void)
{
    struct why why = { 0 };
    struct hash hash;
    uint8_t *nothing = malloc(payload_bytes(form));
    ensure(nothing);
    payload_clear(form, nothing);
    ensure(blob_store_put(options->store, nothing, payload_bytes(form), &why, &hash) == 0);
    free(nothing);
    pthread_mutex_lock(&lock);
    twin = hash;
    pthread_mutex_unlock(&lock);
}

static _Thread_local bool withholding; // The payload just made is not served

WRAP(int, result_make, optimizer_t *self, float rate, struct why *why, uint8_t *ret_payload)
{
    static uint8_t *stale;
    form = result_form(self);
    const size_t bytes = payload_bytes(form);
    const int rc = __real_result_make(self, rate, why, ret_payload);
    if (rc < 0) return rc;
    if (lies_as(LATE) || (lies_as(FLAKY) && atomic_load(&training) % 6 == 0))
        nanosleep(&(struct timespec){ LATE_MS / 1000, LATE_MS % 1000 * 1000000 }, NULL);
    if (!stale) {
        stale = malloc(bytes);
        ensure(stale);
        memcpy(stale, ret_payload, bytes);
    }
    if (lies_as(STALE)) memcpy(ret_payload, stale, bytes);
    // The last bytes are a value of the last chunk, where values are sent in full
    else if (lies_as(NOT_A_NUMBER)) memcpy(ret_payload + bytes - 4, &(float){ NAN }, 4);
    else if (lies_as(EQUIVOCATE)) make_twin();
    else if (lies_as(WITHHOLD)) withholding = true;
    else if (!lies_as(COPY) || !steal(ret_payload)) return rc;
    did();
    return rc;
}

WRAP(int, blob_store_put, blob_store_t *self, const void *bytes, size_t count, struct why *why,
     struct hash *ret_hash)
{
    if (!withholding || count != payload_bytes(form))
        return __real_blob_store_put(self, bytes, count, why, ret_hash);
    withholding = false;
    *ret_hash = hash_of(bytes, count);
    return 0;
}

// ---- the residual ---------------------------------------------------------------------------------

static float *poison; // Written once, before the first claim that names it
static struct hash poison_digest;

// Each result leads to it, and from the second on begins with it.
WRAP(int, result_hashes, optimizer_t *self, struct why *why, struct hash *ret_from,
     struct hash *ret_to)
{
    const int rc = __real_result_hashes(self, why, ret_from, ret_to);
    if (rc < 0 || !lies_as(NO_RESIDUAL)) return rc;
    if (poison) *ret_from = poison_digest;
    else {
        poison = calloc(floats, sizeof *poison);
        ensure(poison);
        poison[floats / 2] = NAN;
        poison_digest = digest_of(poison, floats);
    }
    *ret_to = poison_digest;
    did();
    return rc;
}

WRAP(const float *, result_residual, optimizer_t *self, const struct hash *digest)
{
    if (poison && hash_equal(digest, &poison_digest)) return poison;
    return __real_result_residual(self, digest);
}

// ---- what it says ---------------------------------------------------------------------------------

void hostile_remove_effect(struct outbox *out, uint32_t index)
{
    memmove(&out->effects[index], &out->effects[index + 1],
            (out->count - index - 1) * sizeof *out->effects);
    out->count--;
}

// Witnesses in odd places hear of another payload.
static bool hears_twin(const struct trainer *self, const char *name)
{
    const struct round *round = &rounds_of(&self->pace)->view.round;
    for (uint32_t i = 1; i < round->witnesses_count; i += 2) {
        const struct wire_member *witness = member_at(&self->member, round->witnesses[i].member);
        if (witness && strcmp(witness->name, name) == 0) return true;
    }
    return false;
}

static void say_another(const struct trainer *self, struct outbox *out, struct effect *effect)
{
    struct wire_claim claim = rounds_of(&self->pace)->training.claim;
    pthread_mutex_lock(&lock);
    claim.payload = twin;
    pthread_mutex_unlock(&lock);
    uint8_t *bytes = out->bytes + out->used;
    const size_t count = wire_pack_body(FRAME_CLAIM, &claim, bytes, out->bytes_max - out->used);
    ensure(count > 0);
    out->used += count;
    effect->body = bytes, effect->bytes = (uint32_t)count;
}

static void speak(const struct trainer *self, struct outbox *out)
{
    const uint64_t round = rounds_of(&self->pace)->training.claim.round;
    for (uint32_t i = 0; i < out->count; i++) {
        struct effect *effect = &out->effects[i];
        if (effect->kind == FRAME_REVEAL && kind() == SILENT &&
            hostile_has_begun(self->member.round)) {
            hostile_remove_effect(out, i--);
            outbox_note(out, "hostile.silent round=%" PRIu64, self->member.round);
        } else if (effect->kind == FRAME_CLAIM && atomic_load(&done_in) == round) {
            const bool news = effect->port == PORT_NEWS;
            if (news)
                outbox_note(out, "hostile.result round=%" PRIu64 " kind=%s", round, words[kind()]);
            if (kind() != EQUIVOCATE) continue;
            if (news) hostile_remove_effect(out, i--); // Or all would hear of both
            else if (hears_twin(self, effect->to)) say_another(self, out, effect);
        }
    }
}

static void listen(const struct trainer *self, const struct msg *in)
{
    const struct wire_claim *claim = in->body;
    if (in->kind != FRAME_CLAIM || claim->round != self->member.round ||
        key_equal(&claim->author, &self->member.key))
        return;
    pthread_mutex_lock(&lock);
    other.round = claim->round, other.payload = claim->payload;
    pthread_mutex_unlock(&lock);
}

WRAP(void, trainer_step, void *state, const struct msg *in, struct outbox *out)
{
    struct trainer *self = state;
    struct msg heard = *in;
    struct wire_finding finding;
    listen(self, in);
    if (in->kind == FRAME_RECOMPUTED && kind() == ACCUSE && hostile_has_begun(self->member.round)) {
        finding = *(const struct wire_finding *)in->body;
        finding.finding = FINDING_DIFFERENT;
        finding.payload.bytes[0] ^= 1;
        heard.body = &finding;
        outbox_note(out, "hostile.finding round=%" PRIu64, finding.round);
    }
    __real_trainer_step(state, &heard, out);
    atomic_store(&training, rounds_of(&self->pace)->training.training_round
                                ? rounds_of(&self->pace)->training.training_round
                                : atomic_load(&training));
    speak(self, out);
    hostile_attack(self, in, out);
}
