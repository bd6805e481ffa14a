#pragma once
// suggest -- "did you mean". Offer it all names that would have been right; it keeps the nearest,
// if that is near enough to be a slip of the finger: a third of the letters, at least one.
//
//     struct config_nearest near = { .wanted = "min_client" };
//     config_nearest_offer(&near, "min_clients", 11);          // near.best is "min_clients"

#include <stdbool.h>
#include <stddef.h>

enum { CONFIG_NEAREST_MAX = 64 };       // Longer names are not compared
struct config_nearest { const char *wanted; char best[CONFIG_NEAREST_MAX + 1]; size_t distance; };

// True if this name is now the best.
bool config_nearest_offer(struct config_nearest *self, const char *name, size_t count);
