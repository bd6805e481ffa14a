// First what is announced: what is bound, or --announce in its place. Then whether others can use it:
// members of other machines fetch from it, so a loopback address is right only where the broker has
// one, too. A broker whose name cannot be looked up now may have one.
#include "common/net/announce.h"

#include "common/net/addresses.h"
#include "common/net/endpoint.h"
#include <stdio.h>
#include <string.h>

// --announce, with the port that is bound if it names none.
static int read_announce(const char *text, const char *bound, struct why *why,
                         char ret_endpoint[ANNOUNCE_MAX])
{
    snprintf(ret_endpoint, ANNOUNCE_MAX, "tcp://%.90s", text);
    if (endpoint_is_numeric(ret_endpoint)) return 0;
    snprintf(ret_endpoint, ANNOUNCE_MAX, "tcp://%.90s%.6s", text, strrchr(bound, ':'));
    if (endpoint_is_numeric(ret_endpoint)) return 0;
    return why_set(why, FAULT_USAGE,
                   "--announce %.90s: HOST or HOST:PORT is wanted, an address in numbers and not "
                   "0.0.0.0: 203.0.113.7, 203.0.113.7:7000 or [2001:db8::7]:7000",
                   text);
}

static bool is_loopback(const char *endpoint)
{
    char host[ANNOUNCE_MAX];
    const char *from = endpoint + strlen("tcp://"), *end = strrchr(from, ':');
    if (*from == '[') from++, end--;
    snprintf(host, sizeof host, "%.*s", (int)(end - from), from);
    return addresses_is_loopback(host);
}

static int check_reach(const struct announce *self, const char *endpoint, struct why *why)
{
    const char *flag = self->announce ? "announce" : "bulk-bind";
    const char *value = self->announce ? self->announce : self->bulk_bind;
    const bool is_address = endpoint_is_numeric(endpoint);
    char own[ADDRESSES_TEXT_MAX] = "HOST";
    if (is_address && !is_loopback(endpoint)) return 0;
    const int rc = addresses_towards(self->broker, NULL, own);
    const bool is_broker_here = rc == 0 && addresses_is_loopback(own);
    if (is_address && (is_broker_here || rc == FAULT_NOT_FOUND)) return 0;
    return why_set(why, FAULT_CONFIG,
                   "--%s %s: peers cannot fetch from %s; the address of this machine that leads to "
                   "the broker %s is %s: --bulk-bind %s, and behind NAT also --announce HOST:PORT, "
                   "the address at which others reach it",
                   flag, value, endpoint + strlen("tcp://"), self->broker,
                   rc == 0 ? own : "not known", own);
}

int announce_endpoint(const struct announce *self, const char *bound, struct why *why,
                      char ret_endpoint[ANNOUNCE_MAX])
{
    int rc = 0;
    if (self->announce) rc = read_announce(self->announce, bound, why, ret_endpoint);
    else snprintf(ret_endpoint, ANNOUNCE_MAX, "%s", bound);
    return rc < 0 ? rc : check_reach(self, ret_endpoint, why);
}
