#include "common/base/ensure.h"
#include <stdio.h>
#include <stdlib.h>

_Noreturn void ensure_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: must hold: %s\n", file, line, what);
    abort();
}
