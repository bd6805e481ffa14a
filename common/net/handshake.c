// The three messages, field by field; what is signed; how the AES keys follow; last the socket.
//
//     HELLO    protocol 16 · run 32 · key 32 · instance 8 · to key 32 · to instance 8 · ephemeral 32 ·
//              channel 4 · channels 4 · number 8 · flags 1 · zeros 15
//     ANSWER   protocol 16 · refusal 1 · zeros 7 · key 32 · instance 8 · ephemeral 32 · signature 64
//     PROOF    signature 64
//
// The ANSWER's signature is over its own label, the HELLO, and the ANSWER before the signature; the
// PROOF's over another label, the HELLO and the whole ANSWER. A refusal has neither ephemeral key nor
// signature.

#include "common/net/handshake.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

enum hello_at {
    HELLO_RUN = 16,
    HELLO_KEY = 48,
    HELLO_INSTANCE = 80,
    HELLO_TO_KEY = 88,
    HELLO_TO_INSTANCE = 120,
    HELLO_EPHEMERAL = 128,
    HELLO_CHANNEL = 160,
    HELLO_CHANNELS = 164,
    HELLO_NUMBER = 168,
    HELLO_FLAGS = 176,
    HELLO_ZEROS = 177,
};

enum hello_flag { FLAG_SEALED = 1, FLAG_PROBE = 2 };

enum answer_at {
    ANSWER_REFUSAL = 16,
    ANSWER_KEY = 24,
    ANSWER_INSTANCE = 56,
    ANSWER_EPHEMERAL = 64,
    ANSWER_SIGNATURE = 96,
};

const char *handshake_refusal_text(enum handshake_refusal refusal)
{
#define HANDSHAKE_REFUSAL(name, text) text,
    static const char *const texts[] = { HANDSHAKE_REFUSALS(HANDSHAKE_REFUSAL) };
#undef HANDSHAKE_REFUSAL
    return refusal < HANDSHAKE_REFUSAL_END ? texts[refusal] : "it gives no known reason";
}

static void put_protocol(const struct handshake *self, uint8_t *to)
{
    const size_t count = strlen(self->self->protocol);
    ensure(count < HANDSHAKE_PROTOCOL);
    memset(to, 0, HANDSHAKE_PROTOCOL);
    memcpy(to, self->self->protocol, count);
}

static bool has_protocol(const struct handshake *self, const uint8_t *from)
{
    uint8_t wanted[HANDSHAKE_PROTOCOL];
    put_protocol(self, wanted);
    return memcmp(from, wanted, sizeof wanted) == 0;
}

static void write_next(struct handshake *self, const uint8_t *bytes, size_t count)
{
    self->out = bytes;
    self->out_count = count;
    self->out_done = 0;
}

static void read_next(struct handshake *self, uint8_t *bytes, size_t count)
{
    self->in = bytes;
    self->in_count = count;
    self->in_done = 0;
}

static void draw(struct handshake *self, uint8_t *ret_public)
{
    randombytes_buf(self->secret, sizeof self->secret);
    ensure(crypto_scalarmult_base(ret_public, self->secret) == 0);
}

// What is signed: a label, the HELLO, and so much of the ANSWER.
static struct hash digest(const struct handshake *self, const char *label, size_t answer_count)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, label, strlen(label) + 1);
    hasher_add(&hasher, self->hello, sizeof self->hello);
    hasher_add(&hasher, self->answer, answer_count);
    return hasher_end(&hasher);
}
static struct hash answer_digest(const struct handshake *self)
{
    return digest(self, "shoal link answer", ANSWER_SIGNATURE);
}
static struct hash proof_digest(const struct handshake *self)
{
    return digest(self, "shoal link proof", sizeof self->answer);
}

static void sign(const struct handshake *self, const struct hash *what, uint8_t *ret_bytes)
{
    struct signature signature;
    identity_sign(self->self->identity, what, sizeof *what, &signature);
    memcpy(ret_bytes, signature.bytes, sizeof signature.bytes);
}

static bool is_signed(const struct handshake *self, const struct hash *what, const uint8_t *bytes)
{
    struct signature signature;
    memcpy(signature.bytes, bytes, sizeof signature.bytes);
    return signature_verify(&self->peer.key, what, sizeof *what, &signature);
}

static void derive_key(const struct handshake *self, const uint8_t *secret, const char *label,
                       uint8_t *ret_key)
{
    const struct hash said = digest(self, label, sizeof self->answer);
    ensure(crypto_generichash(ret_key, SEALING_KEY, said.bytes, sizeof said.bytes, secret, 32) ==
           0);
}

// False: the other's ephemeral key is one of those that make every secret zero.
static bool derive_keys(struct handshake *self, const uint8_t *ephemeral)
{
    uint8_t secret[crypto_scalarmult_BYTES];
    if (crypto_scalarmult(secret, self->secret, ephemeral) != 0) return false;
    derive_key(self, secret, "shoal link, from the end that connects",
               self->accepts ? self->take_key : self->send_key);
    derive_key(self, secret, "shoal link, from the end that accepts",
               self->accepts ? self->send_key : self->take_key);
    sodium_memzero(secret, sizeof secret);
    return true;
}

void handshake_wipe(struct handshake *self)
{
    sodium_memzero(self->secret, sizeof self->secret);
    sodium_memzero(self->send_key, sizeof self->send_key);
    sodium_memzero(self->take_key, sizeof self->take_key);
}

bool handshake_seal(const struct handshake *self, struct sealing *ret_seal,
                    struct sealing *ret_unseal)
{
    ensure(self->done && !self->purpose.probe);
    return !self->purpose.sealed || (sealing_new(ret_seal, self->send_key, true) &&
                                     sealing_new(ret_unseal, self->take_key, false));
}

void handshake_connect(struct handshake *self, const struct handshake_self *own,
                       const struct handshake_party *peer, const struct handshake_purpose *purpose)
{
    *self = (struct handshake){ .self = own, .peer = *peer, .purpose = *purpose };
    uint8_t *hello = self->hello;
    put_protocol(self, hello);
    memcpy(hello + HELLO_RUN, own->run.bytes, HASH_BYTES);
    memcpy(hello + HELLO_KEY, identity_key(own->identity)->bytes, KEY_BYTES);
    le_put(hello + HELLO_INSTANCE, own->instance, 8);
    memcpy(hello + HELLO_TO_KEY, peer->key.bytes, KEY_BYTES);
    le_put(hello + HELLO_TO_INSTANCE, peer->instance, 8);
    draw(self, hello + HELLO_EPHEMERAL);
    le_put(hello + HELLO_CHANNEL, purpose->channel, 4);
    le_put(hello + HELLO_CHANNELS, purpose->channels, 4);
    le_put(hello + HELLO_NUMBER, purpose->number, 8);
    hello[HELLO_FLAGS] =
        (uint8_t)((purpose->sealed ? FLAG_SEALED : 0) | (purpose->probe ? FLAG_PROBE : 0));
    write_next(self, hello, HANDSHAKE_HELLO);
    read_next(self, self->answer, HANDSHAKE_ANSWER);
}

void handshake_accept(struct handshake *self, const struct handshake_self *own)
{
    *self = (struct handshake){ .self = own, .accepts = true };
    read_next(self, self->hello, HANDSHAKE_HELLO);
}

// ---- the end that accepts -------------------------------------------------------------------

static bool read_hello(struct handshake *self)
{
    const uint8_t *hello = self->hello;
    uint8_t other = hello[HELLO_FLAGS] & (uint8_t) ~(FLAG_SEALED | FLAG_PROBE);
    for (size_t i = HELLO_ZEROS; i < HANDSHAKE_HELLO; i++) other |= hello[i];
    memcpy(self->peer.key.bytes, hello + HELLO_KEY, KEY_BYTES);
    self->peer.instance = le_get(hello + HELLO_INSTANCE, 8);
    self->purpose = (struct handshake_purpose){
        .channel = (uint32_t)le_get(hello + HELLO_CHANNEL, 4),
        .channels = (uint32_t)le_get(hello + HELLO_CHANNELS, 4),
        .number = le_get(hello + HELLO_NUMBER, 8),
        .sealed = hello[HELLO_FLAGS] & FLAG_SEALED,
        .probe = hello[HELLO_FLAGS] & FLAG_PROBE,
    };
    return has_protocol(self, hello) && other == 0;
}

static enum handshake_refusal judge(const struct handshake *self)
{
    const struct handshake_self *own = self->self;
    if (memcmp(self->hello + HELLO_RUN, own->run.bytes, HASH_BYTES) != 0)
        return HANDSHAKE_REFUSED_RUN;
    if (memcmp(self->hello + HELLO_TO_KEY, identity_key(own->identity)->bytes, KEY_BYTES) != 0 ||
        le_get(self->hello + HELLO_TO_INSTANCE, 8) != own->instance)
        return HANDSHAKE_REFUSED_NOT_ME;
    // mutant: net: a probe is judged as a connection
    handshake_judge *asked = self->purpose.probe ? own->judge_probe : own->judge;
    return asked ? asked(own->judge_arg, &self->peer, &self->purpose) : HANDSHAKE_REFUSED_PURPOSE;
}

static int answer(struct handshake *self, struct why *why)
{
    uint8_t *answer = self->answer;
    if (!read_hello(self)) return why_set(why, FAULT_PROTOCOL, "no HELLO of this protocol");
    self->refusal = judge(self);
    put_protocol(self, answer);
    answer[ANSWER_REFUSAL] = (uint8_t)self->refusal;
    write_next(self, answer, HANDSHAKE_ANSWER);
    self->ends = self->refusal != HANDSHAKE_REFUSED_NONE || self->purpose.probe;
    read_next(self, self->proof, self->ends ? 0 : HANDSHAKE_PROOF);
    if (self->refusal) return 0;
    memcpy(answer + ANSWER_KEY, identity_key(self->self->identity)->bytes, KEY_BYTES);
    le_put(answer + ANSWER_INSTANCE, self->self->instance, 8);
    draw(self, answer + ANSWER_EPHEMERAL);
    const struct hash what = answer_digest(self);
    sign(self, &what, answer + ANSWER_SIGNATURE);
    return 0;
}

static int hear_proof(struct handshake *self, struct why *why)
{
    const struct hash what = proof_digest(self);
    if (!is_signed(self, &what, self->proof))
        return why_set(why, FAULT_SIGNATURE, "the PROOF is not signed by the key of its HELLO");
    if (!derive_keys(self, self->hello + HELLO_EPHEMERAL))
        return why_set(why, FAULT_PROTOCOL, "the HELLO's ephemeral key is none");
    read_next(self, NULL, 0);
    self->done = true;
    return 0;
}

// ---- the end that connects ------------------------------------------------------------------

static int hear_answer(struct handshake *self, struct why *why)
{
    const uint8_t *answer = self->answer;
    if (!has_protocol(self, answer))
        return why_set(why, FAULT_PROTOCOL, "what answers there does not speak '%s'",
                       self->self->protocol);
    self->refusal = answer[ANSWER_REFUSAL];
    if (self->refusal)
        return why_set(why, FAULT_DENIED, "refused: %s", handshake_refusal_text(self->refusal));
    if (memcmp(answer + ANSWER_KEY, self->peer.key.bytes, KEY_BYTES) != 0 ||
        le_get(answer + ANSWER_INSTANCE, 8) != self->peer.instance) {
        self->refusal = HANDSHAKE_REFUSED_NOT_ME;
        return why_set(why, FAULT_DENIED, "%s", handshake_refusal_text(self->refusal));
    }
    struct hash what = answer_digest(self);
    if (!is_signed(self, &what, answer + ANSWER_SIGNATURE))
        return why_set(why, FAULT_SIGNATURE, "the ANSWER is not signed by the key in it");
    read_next(self, NULL, 0);
    self->done = true;
    if (self->purpose.probe) return 0;
    if (!derive_keys(self, answer + ANSWER_EPHEMERAL))
        return why_set(why, FAULT_PROTOCOL, "the ANSWER's ephemeral key is none");
    what = proof_digest(self);
    sign(self, &what, self->proof);
    write_next(self, self->proof, HANDSHAKE_PROOF);
    return 0;
}

int handshake_take(struct handshake *self, struct why *why)
{
    if (!self->accepts) return hear_answer(self, why);
    return self->in == self->hello ? answer(self, why) : hear_proof(self, why);
}

// ---- the socket -----------------------------------------------------------------------------

static int write_some(struct handshake *self, int fd, struct why *why)
{
    while (self->out_done < self->out_count) {
        const ssize_t n = send(fd, self->out + self->out_done, self->out_count - self->out_done,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n < 0) return why_set(why, FAULT_UNREACHABLE, "%s", strerror(errno));
        self->out_done += (size_t)n;
    }
    return 1;
}

static int read_some(struct handshake *self, int fd, struct why *why)
{
    while (self->in_done < self->in_count) {
        const ssize_t n =
            recv(fd, self->in + self->in_done, self->in_count - self->in_done, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0)
            return why_set(why, FAULT_UNREACHABLE, "it hung up during the handshake%s%s",
                           n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
        self->in_done += (size_t)n;
    }
    return 1;
}

int handshake_move(struct handshake *self, int fd, struct why *why)
{
    for (;;) {
        int rc = write_some(self, fd, why);
        if (rc <= 0) return rc;
        if (self->done || self->ends) return self->done;
        rc = read_some(self, fd, why);
        if (rc <= 0) return rc;
        rc = handshake_take(self, why);
        if (rc < 0) return rc;
    }
}

short handshake_events(const struct handshake *self)
{
    return self->out_done < self->out_count ? POLLOUT : POLLIN;
}
