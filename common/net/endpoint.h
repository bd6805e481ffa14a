#pragma once
// endpoint -- where a peer says that it may be fetched from, before anybody believes it.
//
//     tcp://192.0.2.7:7000      IPv4, four decimal numbers
//     tcp://[2001:db8::7]:7000  IPv6, no zone
//
// Numbers only: libzmq looks a name up in its one I/O thread, and all transfers of a process wait
// there for whoever runs a slow name server. Not 0.0.0.0 or [::] either, which are no place at all.
// What an owner configures himself (his broker, his data's web server) may be a name.
//
// Pure: reads no file, asks nobody. Any thread.

#include <stdbool.h>

bool endpoint_is_numeric(const char *text); // Port 1..65535, no leading zero
bool endpoint_is_ipv6(const char *text);    // Of a numeric one
