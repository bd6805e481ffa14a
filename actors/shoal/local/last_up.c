// last_up -- the file `last-up` has a line for each flag: "--trainers 2". A line that is not understood is
// passed over. The caller checks the values as it checks those of the command line.

#include "actors/shoal/local/last_up.h"
#include "common/base/durable_file.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const flags[LAST_UP_FLAGS] = { "--trainers", "--threads", "--name",
                                                  "--standby" };

static void read_file(struct last_up *self, const char *dir)
{
    char path[PATH_MAX], line[128];
    snprintf(path, sizeof path, "%.4000s/last-up", dir);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        for (int i = 0; i < LAST_UP_FLAGS; i++)
            if (strcmp(line, flags[i]) == 0)
                snprintf(self->values[i], LAST_UP_VALUE, "%.40s", value);
    }
    if (file) fclose(file);
}

void last_up_take(struct last_up *self, const char *dir, const char *const given[LAST_UP_FLAGS])
{
    char same[200] = "", changed[300] = "";
    *self = (struct last_up){ 0 };
    read_file(self, dir);
    for (int i = 0; i < LAST_UP_FLAGS; i++) {
        char *last = self->values[i];
        const size_t used = strlen(same), told = strlen(changed);
        if (!given[i] && last[0])
            snprintf(same + used, sizeof same - used, "%s %s ", flags[i], last);
        if (given[i] && last[0] && strcmp(given[i], last) != 0)
            snprintf(changed + told, sizeof changed - told, "%s %.20s; last time it was %.20s\n",
                     flags[i], given[i], last);
        if (given[i]) snprintf(last, LAST_UP_VALUE, "%.40s", given[i]);
    }
    snprintf(self->words, sizeof self->words, "%s%s%s", changed, same,
             same[0] ? "as last time; given again, a flag changes it\n" : "");
}

const char *last_up_value(const struct last_up *self, int flag)
{
    return self->values[flag][0] ? self->values[flag] : NULL;
}

int last_up_keep(const struct last_up *self, const char *dir, struct why *why)
{
    char text[LAST_UP_FLAGS * (LAST_UP_VALUE + 16)] = "";
    for (int i = 0; i < LAST_UP_FLAGS; i++) {
        const size_t used = strlen(text);
        if (self->values[i][0])
            snprintf(text + used, sizeof text - used, "%s %s\n", flags[i], self->values[i]);
    }
    return durable_file_write(dir, "last-up", text, strlen(text), why);
}
