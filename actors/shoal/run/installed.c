// installed -- goes through the actors' folders by name. For each it does what systemd does when it
// starts the unit: shoal.env first, the actor's own file over it, and the instance as the run of a
// coordinator or data provider. A run that an earlier actor has is not taken again.

#include "actors/shoal/run/installed.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One setting of an EnvironmentFile: KEY=VALUE, blanks around them, the value in quotes or not.
static void take_line(char *line, const char *key, size_t max, char *ret_value)
{
    static const char blanks[] = " \t\r\n";
    char *value = strchr(line, '=');
    if (!value) return;
    *value++ = 0;
    line += strspn(line, blanks);
    line[strcspn(line, blanks)] = 0;
    if (strcmp(line, key) != 0) return;
    value += strspn(value, blanks);
    size_t length = strlen(value);
    while (length > 0 && strchr(blanks, value[length - 1])) length--;
    if (length > 1 && strchr("\"'", value[0]) && value[length - 1] == value[0])
        value++, length -= 2;
    if (length < max) snprintf(ret_value, max, "%.*s", (int)length, value);
}

static void read_settings(const char *root, const char *name, struct installed_run *run)
{
    char path[PATH_MAX], line[2 * TICKET_TEXT_MAX], copy[sizeof line];
    snprintf(path, sizeof path, "%s/etc/shoal/%s.env", root, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        memcpy(copy, line, sizeof line);
        take_line(line, "RUN_ID", sizeof run->run, run->run);
        take_line(copy, "TICKET", sizeof run->ticket, run->ticket);
    }
    if (file) fclose(file);
}

// A ticket may name the run, too. An actor of no run does not start, so it does not count.
static void add(struct installed_run *run, struct installed_run *runs, uint32_t *count)
{
    struct ticket ticket;
    if (!run->ticket[0]) snprintf(run->ticket, sizeof run->ticket, "%s", INSTALLED_TICKET);
    if (!run->run[0] && ticket_read(run->ticket, NULL, &ticket) == 0)
        snprintf(run->run, sizeof run->run, "%s", ticket.run);
    if (!run->run[0] || *count == INSTALLED_RUNS_MAX) return;
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp(runs[i].run, run->run) == 0) return;
    runs[(*count)++] = *run;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

uint32_t installed_runs(const char *root, struct installed_run ret_runs[INSTALLED_RUNS_MAX])
{
    char path[PATH_MAX];
    struct installed_run common = { 0 };
    struct dirent **units = NULL;
    uint32_t count = 0;
    snprintf(path, sizeof path, "%s/var/lib/shoal", root);
    read_settings(root, "shoal", &common);
    const int units_count = scandir(path, &units, NULL, alphasort);
    for (int i = 0; i < units_count; i++) {
        const char *unit = units[i]->d_name, *at = strchr(unit, '@');
        struct installed_run run = common;
        if (begins(unit, "shoal-") && at) {
            read_settings(root, unit, &run);
            if (begins(unit, "shoal-coordinator@") || begins(unit, "shoal-data-provider@"))
                snprintf(run.run, sizeof run.run, "%s", at + 1);
            add(&run, ret_runs, &count);
        }
        free(units[i]);
    }
    free(units);
    if (count == 0) add(&common, ret_runs, &count);
    return count;
}
