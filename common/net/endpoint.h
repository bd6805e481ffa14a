#pragma once
// endpoint -- checks the address that a peer announces, before anything connects to it.
//
//     tcp://192.0.2.7:7000      IPv4, four decimal numbers
//     tcp://[2001:db8::7]:7000  IPv6, no zone
//
// Numbers only: libzmq looks names up in its one I/O thread, so a slow name server would delay
// every transfer of the process. 0.0.0.0 and [::] are refused, too: nothing can be fetched from
// there. Addresses that the operator configures (the broker, the web server of the data) may be
// names.
//
// Pure: reads no file, sends nothing. Any thread.

#include <stdbool.h>

bool endpoint_is_numeric(const char *text); // Port 1..65535, no leading zero
bool endpoint_is_ipv6(const char *text);    // Of a numeric one
