// way_in -- asks the kernel about addresses and ports by binding to them.

#include "actors/shoal/local/way_in.h"
#include "common/actor/post.h"
#include "common/base/ensure.h"
#include "common/base/private_address.h"
#include "common/net/addresses.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *way_in_address(const struct way_in *self)
{
    return self->bind ? self->bind : WAY_IN_DEFAULT;
}

bool way_in_is_open(const struct way_in *self)
{
    return !addresses_is_loopback(way_in_address(self));
}

// Returns the error of bind, 0: the port is free. Port 0 asks for the address alone.
static int try_bind(struct sockaddr_in *address, uint32_t port)
{
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(fd >= 0);
    address->sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const int rc = bind(fd, (const struct sockaddr *)address, sizeof *address), error = errno;
    close(fd);
    return rc == 0 ? 0 : error;
}

static int read_address(const struct way_in *self, struct why *why, struct sockaddr_in *ret_address)
{
    const char *text = way_in_address(self);
    *ret_address = (struct sockaddr_in){ .sin_family = AF_INET };
    if (inet_pton(AF_INET, text, &ret_address->sin_addr) == 1 &&
        ret_address->sin_addr.s_addr != htonl(INADDR_ANY))
        return 0;
    return why_set(why, FAULT_USAGE,
                   "--bind %s: an IPv4 address of this machine that the others can reach", text);
}

void way_in_set_members(struct way_in *self, const struct run_config *config, uint32_t more)
{
    const bool has_provider = config->data_location == CONFIG_DATA_SERVER;
    self->members = config_servers(config) + more + 1 + has_provider;
    self->ports_each = config_sums(config) ? 2 : 1;
}

uint32_t way_in_member_port(const struct way_in *self, uint32_t index)
{
    return self->members_port ? self->members_port + index * self->ports_each : 0;
}

static uint32_t last_port(const struct way_in *self)
{
    return self->members_port + self->members * self->ports_each - 1;
}

int way_in_check(const struct way_in *self, struct why *why)
{
    struct sockaddr_in address;
    const int rc = read_address(self, why, &address);
    if (rc < 0) return rc;
    if (try_bind(&address, 0) == EADDRNOTAVAIL)
        return why_set(why, FAULT_USAGE,
                       "%s is no address of this machine (--bind; without it, that of last time): "
                       "give --bind another one",
                       way_in_address(self));
    if (self->members_port && last_port(self) > 65535)
        return why_set(why, FAULT_USAGE,
                       "--port %u: %u actors need ports up to %u, and the last is 65535",
                       self->port, self->members + 1, last_port(self));
    return 0;
}

static int check_range(const struct way_in *self, uint32_t from, uint32_t count, struct why *why)
{
    struct sockaddr_in address;
    int rc = read_address(self, why, &address);
    for (uint32_t port = from; port < from + count && rc == 0; port++) {
        const int error = try_bind(&address, port);
        if (error)
            rc = why_set(why, fault_from_errno(error),
                         "port %u of %s: %s%s. Ports %u to %u must be free here: choose others",
                         port, way_in_address(self), strerror(error),
                         error == EADDRINUSE ? "; another run may use it, or be just ending" : "",
                         from, from + count - 1);
    }
    return rc;
}

int way_in_check_ports(const struct way_in *self, struct why *why)
{
    int rc = way_in_check(self, why);
    if (rc == 0) rc = check_range(self, self->port, POST_PORTS, why);
    if (rc == 0 && self->members_port)
        rc = check_range(self, self->members_port, self->members * self->ports_each, why);
    return rc;
}

void way_in_print(const struct way_in *self, const struct run_config *config,
                  const struct ticket *ticket)
{
    char text[TICKET_TEXT_MAX];
    if (!way_in_is_open(self)) return;
    printf("A firewall must let in TCP ports %u to %u. Others join with:\n\n  shoal join %s\n\n",
           self->port, last_port(self), ticket_print(ticket, text));
    // Where servers hold the state, only they write to it
    if (config_sums(config) && !config_servers(config) && config->checkpoint_shared_dir[0])
        printf("Each of them needs the folder %s, the same one at the same path.\n\n",
               config->checkpoint_shared_dir);
}

int way_in_check_link(const struct way_in *self, const struct run_config *config, struct why *why)
{
    const struct config_key *key = config_key_find(&config_run_schema, "strategy.link");
    if (!config_sums(config) || config->link != CONFIG_LINK_PLAIN ||
        address_is_private(way_in_address(self)))
        return 0;
    return why_set(why, FAULT_CONFIG,
                   "%s:%u: strategy.link: plain, but --bind %s is a public address; write aes-gcm",
                   config->origin.file,
                   config->origin.line[config_key_index(&config_run_schema, key)],
                   way_in_address(self));
}

const char *way_in_trusts(const struct way_in *self, const struct run_config *config)
{
    if (!way_in_is_open(self) || !config_sums(config)) return "";
    return "warning: in this run every trainer is trusted (strategy.kind), and this broker admits "
           "everybody that has the ticket: give it to people whom you trust, and to nobody else\n";
}
