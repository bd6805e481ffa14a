#pragma once
// way_in -- how other machines join a run on this machine: the address, the ports, the ticket.
//
// With an address that others reach, or with --port, every actor but the coordinator has a fixed port, so that a
// firewall can be told: the broker `port` and the one above, the data-provider, the checkpointer, the parameter servers
// and the trainers the next ones, in this order. With "allreduce", "sharded" or "server" each of them
// has two; only a server and a trainer use the second, for their links.

#include "common/actor/ticket.h"
#include "common/config/run_config.h"

#define WAY_IN_DEFAULT "127.0.0.1" // For this machine alone

struct way_in {
    const char *bind;      // The address; NULL: WAY_IN_DEFAULT
    uint32_t port;         // Of the broker: this and the one above
    uint32_t members_port; // Of the first of the others; 0: any free ones
    uint32_t members;      // How many of them
    uint32_t ports_each;   // Of each of them: 1 or 2
};

// Sets the last two fields: for a run with its parameter servers on this machine, `more` trainers and
// standby servers, a checkpointer, and a data-provider if the run has one.
void way_in_set_members(struct way_in *self, const struct run_config *config, uint32_t more);

uint32_t way_in_member_port(const struct way_in *self, uint32_t index); // 0: any free one

const char *way_in_address(const struct way_in *self); // `bind`, or the default
bool way_in_is_open(const struct way_in *self);        // Others can reach the address

// FAULT_USAGE: it is 0.0.0.0 or no IPv4 address of this machine, or there are not so many ports.
int way_in_check(const struct way_in *self, struct why *why);

// Whether the fixed ports are free, too. A fault names the port that is not.
int way_in_check_ports(const struct way_in *self, struct why *why);

// Prints the ports that a firewall must let in, the line by which others join, and the folder that they need. Nothing, if
// nobody can join.
void way_in_print(const struct way_in *self, const struct run_config *config,
                  const struct ticket *ticket);

// FAULT_CONFIG with the line of state.toml: links would be plain at a public address.
int way_in_check_link(const struct way_in *self, const struct run_config *config, struct why *why);

// A warning, if others can join and every trainer is trusted (strategy.kind is not "distro"); else "".
const char *way_in_trusts(const struct way_in *self, const struct run_config *config);
