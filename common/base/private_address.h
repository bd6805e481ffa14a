#pragma once
// private_address -- which addresses belong to this machine or to a network of its owner, so that
// nobody else is on the way. Pure; any thread.
//
//     IPv4   127/8, 10/8, 172.16/12, 192.168/16 (RFC 1918), 169.254/16 (the link alone)
//     IPv6   ::1, fc00::/7 (RFC 4193), fe80::/10 (the link alone), and the above, mapped
//
// 100.64/10 (RFC 6598) counts as public: a provider shares it among its customers.

#include <stdbool.h>

// An address in numbers; IPv6 without brackets. False for a name, and for what is no address.
bool address_is_private(const char *address);

// Of "tcp://HOST:PORT": HOST is an address in numbers, and not private. A name counts as not public,
// because nothing is looked up here; so does another kind of endpoint.
bool address_of_endpoint_is_public(const char *endpoint);
