// callers -- each call costs milliseconds. A place owes what it was granted and time has not paid for yet; a call
// is refused while the debt is as large as a burst. A probe costs more, and may find less debt.

#include "common/net/callers.h"
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

static const struct {
    uint32_t cost_ms, debt_max_ms;
} calls[] = { { CALLERS_CONNECTION_MS,
                CALLERS_CONNECTIONS *CALLERS_CONNECTION_MS + CALLERS_PROBES *CALLERS_PROBE_MS },
              { CALLERS_PROBE_MS, CALLERS_PROBES *CALLERS_PROBE_MS } };

// What counts as one caller: the family, then the address.
static void read_name(const struct sockaddr *from, uint8_t ret_name[9])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    memset(ret_name, 0, 9);
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

bool callers_admit(struct callers *self, const struct sockaddr *from, bool is_probe,
                   uint64_t now_ms)
{
    _Static_assert(sizeof self->seed == crypto_shorthash_KEYBYTES, "the seed is its key");
    uint8_t name[9], hash[crypto_shorthash_BYTES];
    uint32_t place;
    read_name(from, name);
    crypto_shorthash(hash, name, sizeof name, self->seed);
    memcpy(&place, hash, sizeof place);
    uint64_t *paid_ms = &self->paid_ms[place % CALLERS_PLACES];
    if (*paid_ms < now_ms) *paid_ms = now_ms;
    // mutant: net: an address has any number of handshakes answered
    if (*paid_ms - now_ms + calls[is_probe].cost_ms > calls[is_probe].debt_max_ms) return false;
    *paid_ms += calls[is_probe].cost_ms;
    return true;
}
