#pragma once
// installed -- the runs in which the services of this machine take part, as `make install` lays them
// out and an administrator sets them up (systemd/README.md):
//
//     /var/lib/shoal/UNIT      a folder for each actor that was started here; a coordinator's and a
//                              data provider's unit is named after the run
//     /etc/shoal/shoal.env     RUN_ID and TICKET of all actors; a ticket may name a run, too
//     /etc/shoal/UNIT.env      the same of one actor, which wins
//     /run/shoal/ticket        of this machine's broker, if no file names a ticket
//
// Reads files; what cannot be read counts as missing.

#include "common/actor/ticket.h"

enum { INSTALLED_RUNS_MAX = 16 };
#define INSTALLED_TICKET "/run/shoal/ticket"

struct installed_run {
    char run[WIRE_RUN_MAX + 1];
    char ticket[TICKET_TEXT_MAX + 1]; // The ticket, or the name of a file with it
};

// The runs, each with the ticket of one of its actors. Where no actor was ever started: that of
// shoal.env. Returns their number. `root` is put before the paths of folders and settings: "", but
// in tests.
uint32_t installed_runs(const char *root, struct installed_run ret_runs[INSTALLED_RUNS_MAX]);
