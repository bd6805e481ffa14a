// One table, made from fault.def, gives a fault its name, its sentence and its exit code. After it
// come the texts that callers add, and the translation of errno.
#include "common/base/fault.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const struct {
    const char *name, *sentence;
    int code;
} faults[] = {
    [FAULT_RANK_NONE] = { "NONE", "no error", 0 },
#define FAULT(name, code, sentence) [FAULT_RANK_##name] = { #name, sentence, code },
#include "common/base/fault.def"
#undef FAULT
};

static int rank(int fault) { return fault <= 0 && -fault < FAULT_RANK_END ? -fault : -1; }

const char *fault_name(int fault) { return rank(fault) < 0 ? "?" : faults[rank(fault)].name; }
const char *fault_sentence(int fault)
{
    return rank(fault) < 0 ? "?" : faults[rank(fault)].sentence;
}
int fault_exit_code(int fault) { return rank(fault) < 0 ? EX_SOFTWARE : faults[rank(fault)].code; }

int why_set(struct why *why, int fault, const char *format, ...)
{
    if (why) {
        va_list args;
        va_start(args, format);
        vsnprintf(why->text, sizeof why->text, format, args);
        va_end(args);
    }
    return fault;
}

int why_wrap(struct why *why, int fault, const char *format, ...)
{
    if (why) {
        struct why inner = *why;
        va_list args;
        va_start(args, format);
        int n = vsnprintf(why->text, sizeof why->text, format, args);
        va_end(args);
        size_t used = n < 0 ? 0 : (size_t)n;
        if (used + 3 < sizeof why->text && inner.text[0]) {
            size_t left = sizeof why->text - used - 3, count = strlen(inner.text);
            memcpy(why->text + used, ": ", 2);
            memcpy(why->text + used + 2, inner.text, count < left ? count : left);
            why->text[used + 2 + (count < left ? count : left)] = 0;
        }
    }
    return fault;
}

int fault_from_errno(int error)
{
    switch (error) {
    case 0: return FAULT_NONE;
    case ENOMEM: return FAULT_MEMORY;
    case EDQUOT:
    case ENOSPC: return FAULT_DISK_FULL;
    case ENOENT:
    case ENOTDIR: return FAULT_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS: return FAULT_DENIED;
    case EADDRINUSE:
    case EWOULDBLOCK: return FAULT_BUSY;
    case ETIMEDOUT: return FAULT_TIMEOUT;
    default: return FAULT_IO;
    }
}

int fault_exit(int fault, const struct why *why)
{
    const char *more = why && why->text[0] ? why->text : NULL;
    if (fault != FAULT_NONE)
        fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, fault_sentence(fault),
                more ? ": " : "", more ? more : "");
    return fault_exit_code(fault);
}
