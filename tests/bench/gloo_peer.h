#pragma once
// gloo_peer -- gloo's all-reduce over TCP on a loopback, for group_bench. Linked where Debian's
// libgloo-dev is installed; elsewhere gloo_new is NULL.

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Joins `members` processes that meet in the folder `dir`, new and empty for each group of them.
__attribute__((weak)) void *gloo_new(int member, int members, const char *dir);
__attribute__((weak)) void gloo_add(void *self, float *values, size_t count); // In place
__attribute__((weak)) void gloo_destroy(void *self);

#ifdef __cplusplus
}
#endif
