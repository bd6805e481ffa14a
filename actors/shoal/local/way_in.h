#pragma once
// way_in -- how other machines come into a run of this one: the address, the ports, the ticket.
//
// With an address that others reach, every actor has a fixed port, so that a firewall can be told:
// the broker `port` and the one above, the data-provider, the checkpointer and the trainers the next
// ones, in this order.

#include "common/actor/ticket.h"

struct way_in {
    const char *bind;      // The address; NULL: 127.0.0.1, for this machine alone
    uint32_t port;         // Of the broker: this and the one above
    uint32_t members_port; // Of the first of the others; 0: any free ones
    uint32_t members;      // How many of them
};

const char *way_in_address(const struct way_in *self); // `bind`, or 127.0.0.1
bool way_in_is_open(const struct way_in *self);        // Others can reach the address

// FAULT_USAGE: it is no IPv4 address of this machine that others can reach, or there are not so many
// ports.
int way_in_check(const struct way_in *self, struct why *why);

// Whether the fixed ports are free, too. A fault names the port that is not.
int way_in_check_ports(const struct way_in *self, struct why *why);

// Prints the ports that a firewall must let in and the line by which others join. Nothing, if nobody
// can.
void way_in_print(const struct way_in *self, const struct ticket *ticket);
