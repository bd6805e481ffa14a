#pragma once
// scratch -- one folder for files that a target must have on a disk; gone when the process ends.

#include <stddef.h>

const char *scratch_dir(void);
int scratch_fd(void);                                                // Of that folder, open
void scratch_put(const char *name, const void *bytes, size_t count); // Replaces it
const char *scratch_path(const char *name);                          // Valid until the next call
void scratch_remove(const char *name);                               // A file, or a folder of files
void scratch_make_folder(const char *name);
