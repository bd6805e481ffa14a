#pragma once
// clock -- what time it is, for shells, threads and tools. A core never asks: msg.now_ms tells it.
// (The simulator does not link clock.c, so a core that reads a clock does not link there.)
//
// The monotonic clock counts from the machine's start and is never set back; its instants mean
// nothing to another machine or after a reboot. The Unix clock is set by an operator or NTP; it is
// for records, instances and expiry. Any thread.

#include <stdint.h>

uint64_t clock_ms(void); // Monotonic
uint64_t clock_us(void); // The same in microseconds
double clock_s(void);    // The same in seconds with fractions, for rates
uint64_t clock_unix_ms(void);
