// How a result is shown: its word, what was checked, the sentence.

#include "actors/shoal/run/checkup.h"
#include "actors/shoal/shoal.h"
#include "common/base/ensure.h"
#include <stdarg.h>
#include <stdio.h>
#include <sysexits.h>

enum { SENTENCE_MAX = 1024 };

static const char *const words[CHECKUP_KINDS] = {
    [CHECKUP_OK] = "ok",
    [CHECKUP_WARNING] = "warning",
    [CHECKUP_NOT_CHECKED] = "not checked",
    [CHECKUP_UNREACHABLE] = "bad",
    [CHECKUP_WRONG] = "bad",
};

void checkup_add(struct checkup *self, enum checkup_result kind, const char *check,
                 const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    self->counts[kind]++;
    if (!self->json) {
        printf("%-12s %-13s %s\n", words[kind], check, sentence);
        fflush(stdout); // Some of the next checks take seconds
        return;
    }
    if (!self->list) self->list = json_array();
    json_t *one = json_pack("{s:s, s:s, s:o}", "check", check, "result", words[kind], "text",
                            shoal_text(sentence));
    ensure(one && json_array_append_new(self->list, one) == 0);
}

int checkup_end(struct checkup *self, struct why *why, int *ret_code)
{
    const unsigned *counts = self->counts;
    const unsigned bad = counts[CHECKUP_UNREACHABLE] + counts[CHECKUP_WRONG];
    const int code = counts[CHECKUP_WRONG]         ? EX_CONFIG
                     : counts[CHECKUP_UNREACHABLE] ? EX_UNAVAILABLE
                                                   : EX_OK;
    *ret_code = code;
    if (self->json)
        return shoal_print_json(json_pack("{s:s, s:b, s:o}", "schema", "shoal.doctor.1", "ok",
                                          bad == 0, "checks", self->list),
                                why);
    printf("bad: %u, warnings: %u, not checked: %u, ok: %u\n", bad, counts[CHECKUP_WARNING],
           counts[CHECKUP_NOT_CHECKED], counts[CHECKUP_OK]);
    return ferror(stdout) ? why_set(why, FAULT_IO, "standard output") : 0;
}
