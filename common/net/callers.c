// callers -- each call costs milliseconds. A place owes what it was granted and time has not paid
// for yet; a call is refused while the debt is as large as a burst. A probe costs more, and may
// find less debt. A connection needs two places: that of its key and that of its address.

#include "common/net/callers.h"
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

struct price {
    uint32_t cost_ms, debt_max_ms;
};
static const struct price probe = { CALLERS_PROBE_MS, CALLERS_PROBES *CALLERS_PROBE_MS },
                          connection = { CALLERS_CONNECTION_MS,
                                         CALLERS_CONNECTIONS *CALLERS_CONNECTION_MS +
                                             CALLERS_PROBES *CALLERS_PROBE_MS },
                          by_key = { CALLERS_KEY_MS, CALLERS_KEY *CALLERS_KEY_MS };

enum { ADDRESS = 9 }; // Bytes of its name

// What counts as one caller: the family, then the address.
static void read_name(const struct sockaddr *from, uint8_t ret_name[ADDRESS])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    memset(ret_name, 0, ADDRESS);
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        ret_name[0] = 4;
        memcpy(ret_name + 1, &in.sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof in);
        const uint8_t *address = in.sin6_addr.s6_addr;
        const bool is_mapped = memcmp(address, mapped, sizeof mapped) == 0;
        ret_name[0] = is_mapped ? 4 : 6;
        if (is_mapped) memcpy(ret_name + 1, address + 12, 4);
        else memcpy(ret_name + 1, address, 8);
    }
}

static uint32_t number_of(const struct callers *self, const uint8_t *name, size_t count)
{
    _Static_assert(sizeof self->seed == crypto_shorthash_KEYBYTES, "the seed is its key");
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t number;
    crypto_shorthash(hash, name, count, self->seed);
    memcpy(&number, hash, sizeof number);
    return number;
}

static bool has_room(const uint64_t *paid_ms, const struct price *price, uint64_t now_ms)
{
    // mutant: net: a caller has any number of handshakes answered
    return (*paid_ms > now_ms ? *paid_ms - now_ms : 0) + price->cost_ms <= price->debt_max_ms;
}

static void pay(uint64_t *paid_ms, const struct price *price, uint64_t now_ms)
{
    *paid_ms = (*paid_ms > now_ms ? *paid_ms : now_ms) + price->cost_ms;
}

static void refund(uint64_t *paid_ms, const struct price *price)
{
    *paid_ms -= *paid_ms < price->cost_ms ? *paid_ms : price->cost_ms;
}

struct account {             // The places of one caller
    uint64_t *address, *key; // key: NULL: it is a probe
};

static struct account find_account(struct callers *self, const struct sockaddr *from,
                                   const struct key *key)
{
    uint8_t name[ADDRESS + KEY_BYTES];
    read_name(from, name);
    if (key) memcpy(name + ADDRESS, key->bytes, KEY_BYTES);
    return (struct account){
        &self->addresses_ms[number_of(self, name, ADDRESS) % CALLERS_ADDRESSES],
        key ? &self->keys_ms[number_of(self, name, sizeof name) % CALLERS_KEYS] : NULL,
    };
}

bool callers_admit(struct callers *self, const struct sockaddr *from, const struct key *key,
                   uint64_t now_ms)
{
    const struct account account = find_account(self, from, key);
    const struct price *price = key ? &connection : &probe;
    // mutant: net: a key uses up what its neighbours need
    if (account.key && !has_room(account.key, &by_key, now_ms)) return false;
    if (!has_room(account.address, price, now_ms)) return false;
    pay(account.address, price, now_ms);
    if (account.key) pay(account.key, &by_key, now_ms);
    return true;
}

void callers_pay_back(struct callers *self, const struct sockaddr *from, const struct key *key)
{
    const struct account account = find_account(self, from, key);
    refund(account.address, &connection);
    refund(account.key, &by_key);
}
