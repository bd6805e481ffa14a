// What several commands need; shoal_main.c finds the command.

#include "actors/shoal/shoal.h"
#include "common/base/sealed_json.h"
#include "common/kernel/pool.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int shoal_print_json(json_t *object, struct why *why)
{
    if (!object) return why_set(why, FAULT_MEMORY, "no memory for the answer");
    int rc = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (rc != 0 || puts("") == EOF || fflush(stdout) != 0)
        return why_set(why, FAULT_IO, "standard output: %s", strerror(errno));
    return 0;
}

json_t *shoal_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *shoal_hash(const struct hash *hash)
{
    return hash_is_none(hash) ? json_null() : sealed_json_hash(hash);
}

json_t *shoal_text(const char *text)
{
    json_t *string = json_string(text);
    if (string) return string;
    char *ascii = strdup(text);
    for (char *at = ascii; at && *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    string = ascii ? json_string(ascii) : NULL;
    free(ascii);
    return string;
}

bool shoal_is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
                                 one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

const char *shoal_shown(const char *text)
{
    json_t *valid = json_string(text);
    json_decref(valid);
    return valid ? text : "(its name is not UTF-8)";
}

uint32_t shoal_threads(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) return 1;
    return processors > POOL_THREADS_MAX ? POOL_THREADS_MAX : (uint32_t)processors;
}
