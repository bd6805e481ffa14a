// curve_hello -- a greeting, then one command: a signature of 64 zeros, boxed with a key made for this
// connection. What the server answers is boxed for that key, with the server's own.

#include "common/net/curve_hello.h"
#include "common/base/ensure.h"
#include <sodium.h>
#include <string.h>

enum { GREETING = 64, COMMAND = 4, NONCE = 24, WELCOME_AT = GREETING + 2 };

_Static_assert(CURVE_BYTES == crypto_box_PUBLICKEYBYTES &&
                   CURVE_BYTES == crypto_box_SECRETKEYBYTES && NONCE == crypto_box_NONCEBYTES,
               "CURVE boxes are libsodium's");

bool curve_hello_make(const struct key *server, struct curve_hello *ret_hello)
{
    static const uint8_t greeting[GREETING] = { 0xff, 0, 0, 0,   0,   0,   0,   0,  0,
                                                0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E' };
    static const uint8_t zeros[64], head[] = { COMMAND, 200, 5, 'H', 'E', 'L', 'L', 'O', 1, 0 };
    static const uint8_t nonce[NONCE] = "CurveZMQHELLO---"; // Then a number: 0, as it is used once
    *ret_hello = (struct curve_hello){ 0 };
    uint8_t *command = ret_hello->bytes + GREETING + 2;
    if (!curve_of_key(server, &ret_hello->server)) return false;
    memcpy(ret_hello->bytes, greeting, sizeof greeting);
    memcpy(ret_hello->bytes + GREETING, head, sizeof head);
    ensure(crypto_box_keypair(command + 80, ret_hello->secret) == 0);
    return crypto_box_easy(command + 120, zeros, sizeof zeros, nonce, ret_hello->server.bytes,
                           ret_hello->secret) == 0;
}

bool curve_hello_proves(const struct curve_hello *self, const uint8_t welcome[CURVE_WELCOME_BYTES])
{
    static const uint8_t head[] = { COMMAND, 168, 7, 'W', 'E', 'L', 'C', 'O', 'M', 'E' };
    uint8_t nonce[NONCE] = "WELCOME-", plain[128];
    if (memcmp(welcome + GREETING, head, sizeof head) != 0) return false;
    memcpy(nonce + 8, welcome + WELCOME_AT + 8, 16);
    return crypto_box_open_easy(plain, welcome + WELCOME_AT + 24, 144, nonce, self->server.bytes,
                                self->secret) == 0;
}
