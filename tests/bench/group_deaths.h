#pragma once
// group_deaths -- a member of a group dies in the middle of a sum, and the others sum again without
// it, in the next window.

#include "tests/bench/group_member.h"

struct group_death {
    double known_ms;  // From the death until the last of the others knows of it
    double formed_ms; // From then on until the last of them has formed the next window
    double again_ms;  // From the death until the last of them has the next good sum
};

// One death: by a signal, when so many per cent of a sum of so many bytes are over.
struct group_death group_death(enum way way, uint32_t members, size_t bytes, int percent);
