#pragma once
// patience -- whether this thread, when it is woken, interrupts what runs on its processor, or waits until
// that has had its turn. Threads that it starts inherit it.
//
// A patient thread finds several messages when it comes to run, and takes them in one turn: where many
// members share few processors, a round costs a tenth less. On a processor that is idle there is no
// difference. (Linux: SCHED_BATCH and SCHED_OTHER. Where the kernel refuses, nothing changes.)

#include <stdbool.h>

void patience_set(bool is_patient);
