#pragma once
// nearest -- "did you mean". Offer it all allowed names; it keeps the nearest one if that is near
// enough to be a typing error: at most a third of the letters differ (in a short name, one).
//
//     struct nearest near = { .wanted = "min_client" };
//     nearest_offer(&near, "min_clients", 11);          // near.best is "min_clients"

#include <stdbool.h>
#include <stddef.h>

enum { NEAREST_MAX = 64 }; // Longer names are not compared
struct nearest {
    const char *wanted;
    char best[NEAREST_MAX + 1];
    size_t distance;
};

// True if this name is now the best.
bool nearest_offer(struct nearest *self, const char *name, size_t count);
