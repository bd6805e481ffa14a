#include "common/actor/run_words.h"
#include "common/actor/token_rate.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct run_unit units[] = {
    { FRAME_ROUNDS_CONFIG, "round", "RoundTrain", false, "round.trained" },
    { FRAME_WINDOWS_CONFIG, "window", "Train", true, "step.trained" },
    { FRAME_LEASES_CONFIG, "group", "Train", true, "state.settled" },
};

const struct run_unit *run_words_unit(uint16_t config)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].config == config) return &units[i];
    return NULL;
}

const char *run_words_phase(const struct run_unit *unit, uint8_t phase)
{
    return unit && phase == PHASE_TRAIN ? unit->training : wire_enum_name(&wire_enum_phase, phase);
}

bool run_words_is_past(const struct wire_run *now)
{
    return strncmp(now->lacks, "the round", 9) == 0 || strncmp(now->lacks, "trainer", 7) == 0;
}

char *run_words_lacks(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    const bool is_whole = strncmp(now->lacks, "waiting ", 8) == 0 ||
                          strncmp(now->lacks, "step ", 5) == 0 || run_words_is_past(now);
    if (!now->lacks[0]) text[0] = 0;
    else snprintf(text, RUN_WORDS_MAX, "%s%s", is_whole ? "" : "waiting: ", now->lacks);
    return text;
}

char *run_words_pending(const struct run_unit *unit, uint8_t role, const struct wire_run *now,
                        char text[RUN_WORDS_MAX])
{
    text[0] = 0;
    if (!phase_makes_steps(now->phase)) return text;
    if (role == ACTOR_SERVER)
        snprintf(text, RUN_WORDS_MAX,
                 "standing by: the run has its parameter servers, and this one takes the place of "
                 "one that dies (step %" PRIu64 " of %" PRIu64 ")",
                 now->step, now->total_steps);
    else
        snprintf(text, RUN_WORDS_MAX,
                 "waiting for the next epoch: this trainer joined after the present one had begun "
                 "(step %" PRIu64 " of %" PRIu64 ")%s",
                 now->step, now->total_steps,
                 unit && unit->lets_in ? "; it may end early to let it in" : "");
    return text;
}

char *run_words_lacks_for_guest(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    static const char *const of_the_owner[] = { "data-provider", "witness" };
    char *advice;
    run_words_lacks(now, text);
    if (run_words_is_past(now)) {
        if ((advice = strstr(text, ": raise ")) || (advice = strstr(text, "; if too slow, raise ")))
            *advice = 0;
        return text;
    }
    if (strncmp(text, "waiting for ", 12) == 0) text[strcspn(text, "(")] = 0;
    for (size_t i = strlen(text); i > 0 && text[i - 1] == ' '; i--) text[i - 1] = 0;
    for (size_t i = 0; i < sizeof of_the_owner / sizeof *of_the_owner; i++)
        if (strstr(text, of_the_owner[i]))
            snprintf(text, RUN_WORDS_MAX, "waiting: the owner's %s is not there", of_the_owner[i]);
    return text;
}

const char *run_words_loss(double loss, char text[RUN_WORDS_LOSS_MAX])
{
    // mutant: status: a loss may have any length
    if (loss > 0) snprintf(text, RUN_WORDS_LOSS_MAX, loss < 1e4 ? "%.3f" : "%.3g", loss);
    else snprintf(text, RUN_WORDS_LOSS_MAX, "-");
    return text;
}

double run_words_left_s(const struct wire_run *now)
{
    if (now->step >= now->total_steps) return 0;
    if (!(now->steps_per_s > 0) || now->phase == PHASE_PAUSED) return -1;
    return (double)(now->total_steps - now->step) / (double)now->steps_per_s;
}

char *run_words_silent(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    const bool rests = now->phase == PHASE_PAUSED || now->phase == PHASE_FINISHED;
    text[0] = 0;
    if (!rests && !(now->steps_per_s > 0) && now->silent_ms > TOKEN_RATE_SILENT_MS)
        snprintf(text, RUN_WORDS_MAX, "no step for %" PRIu32 " s", now->silent_ms / 1000);
    return text;
}

char *run_words_left(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    const double left_s = run_words_left_s(now);
    char silent[RUN_WORDS_MAX];
    text[0] = 0;
    if (left_s > 5400) snprintf(text, RUN_WORDS_MAX, ", about %.0f h left", left_s / 3600);
    else if (left_s > 90) snprintf(text, RUN_WORDS_MAX, ", about %.0f min left", left_s / 60);
    else if (left_s > 0) snprintf(text, RUN_WORDS_MAX, ", about %.0f s left", left_s);
    else if (run_words_silent(now, silent)[0]) snprintf(text, RUN_WORDS_MAX, ", %.64s", silent);
    return text;
}

char *run_words_status(const struct run_unit *unit, const struct wire_run *now, double loss,
                       char text[RUN_WORDS_MAX])
{
    char lacks[RUN_WORDS_MAX], shown[RUN_WORDS_LOSS_MAX];
    int used = snprintf(text, RUN_WORDS_MAX, "%s: step %" PRIu64 " of %" PRIu64,
                        run_words_phase(unit, now->phase), now->step, now->total_steps);
    if (loss > 0)
        used += snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", loss %s",
                         run_words_loss(loss, shown));
    if (now->tokens_per_s > 0)
        used += snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", %.0f tokens/s",
                         (double)now->tokens_per_s);
    if (run_words_lacks(now, lacks)[0])
        snprintf(text + used, RUN_WORDS_MAX - (size_t)used, ", %.100s", lacks);
    return text;
}
