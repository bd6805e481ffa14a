// run_end -- one line: key of the broker, step, steps in all, name of the run.

#include "common/actor/run_end.h"
#include "common/base/durable_file.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 256 };

int run_end_keep(const char *dir, const struct run_end *self, struct why *why)
{
    char line[LINE_MAX_BYTES], hex[KEY_HEX];
    const int count =
        snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu64 " %s\n",
                 key_to_hex(&self->broker, hex), self->step, self->total_steps, self->run);
    return durable_file_write(dir, "finished", line, (size_t)count, why);
}

bool run_end_read(const char *dir, const char *run, const struct key *broker,
                  struct run_end *ret_end)
{
    char path[PATH_MAX], line[LINE_MAX_BYTES] = "", hex[KEY_HEX] = "";
    struct run_end end = { 0 };
    int at = 0;
    snprintf(path, sizeof path, "%.4000s/finished", dir);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool has_line = fgets(line, sizeof line, file);
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    if (!has_line ||
        sscanf(line, "%64s %" SCNu64 " %" SCNu64 " %n", hex, &end.step, &end.total_steps, &at) !=
            3 ||
        at == 0 || !key_from_hex(hex, &end.broker) || !key_equal(&end.broker, broker) ||
        strcmp(line + at, run) != 0)
        return false;
    snprintf(end.run, sizeof end.run, "%s", run);
    *ret_end = end;
    return true;
}
