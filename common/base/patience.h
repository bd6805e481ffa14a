#pragma once
// patience -- whether a thread that is woken interrupts the one that runs on its processor (not patient), or waits
// until that one has had its turn (patient). Sets it for the calling thread; threads that it starts inherit it.
//
// A patient thread finds several messages when it comes to run, and takes them in one turn: where many
// members share few processors, a round costs a tenth less. On a processor that is idle there is no
// difference. (Linux: SCHED_BATCH and SCHED_OTHER. Where the kernel refuses, nothing changes.)

#include <stdbool.h>

void patience_set(bool is_patient);
