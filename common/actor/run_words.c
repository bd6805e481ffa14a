#include "common/actor/run_words.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *run_words_lacks(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    const bool is_whole = strncmp(now->lacks, "waiting ", 8) == 0;
    if (!now->lacks[0]) text[0] = 0;
    else snprintf(text, RUN_WORDS_MAX, "%s%s", is_whole ? "" : "waiting: ", now->lacks);
    return text;
}

char *run_words_status(const struct wire_run *now, double loss, char text[RUN_WORDS_MAX])
{
    char lacks[RUN_WORDS_MAX];
    int used = snprintf(text, RUN_WORDS_MAX, "%s: step %" PRIu64 " of %" PRIu64,
                        wire_enum_name(&wire_enum_phase, now->phase), now->step, now->total_steps);
    if (loss > 0) used += snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", loss %.3f", loss);
    if (now->tokens_per_s > 0)
        used += snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", %.0f tokens/s",
                         (double)now->tokens_per_s);
    if (run_words_lacks(now, lacks)[0])
        snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", %.100s", lacks);
    return text;
}
