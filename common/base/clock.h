#pragma once
// clock -- what time it is, for shells, threads and tools. A core never asks: it is told, in msg.now_ms.
// (So it is a source of its own and not part of what the simulator links: a core that reads a clock does
// not link there.)
//
// Monotonic: since the machine's start, never set back; means nothing to another machine or after a
// reboot. Unix: what an operator or NTP says; for records, instances and expiry. Any thread.

#include <stdint.h>

uint64_t clock_ms(void); // Monotonic
uint64_t clock_us(void); // The same in microseconds
double clock_s(void);    // The same in seconds and their parts, for rates
uint64_t clock_unix_ms(void);
