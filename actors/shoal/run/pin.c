// The file is edited as text (toml_edit.h). A table that it lacks is added at its end. Before the new
// text takes the file's place it is loaded as a configuration, from a file beside it.
#include "actors/shoal/run/pin.h"
#include "actors/shoal/local/toml_edit.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/ensure.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Replaces *text, which is freed.
static void set(char **text, const struct pin *pin)
{
    char value[HASH_HEX + 2], hex[HASH_HEX];
    snprintf(value, sizeof value, "\"%s\"", hash_to_hex(&pin->digest, hex));
    char *edited = toml_edit(*text, pin->table, pin->key, value);
    if (!edited && asprintf(&edited, "%s\n[%s]\n%s = %s\n", *text, pin->table, pin->key, value) < 0)
        edited = NULL;
    ensure(edited);
    free(*text);
    *text = edited;
}

// A file that is written in a way that toml_edit does not know (model.digest = "..") comes out wrong.
static int try(const char *dir, const char *name, const char *text, struct why *why)
{
    static struct run_config config;
    static struct config_faults faults;
    char other[300], path[PATH_MAX];
    snprintf(other, sizeof other, ".%.250s.pinned", name);
    snprintf(path, sizeof path, "%.3000s/%s", dir, other);
    int rc = durable_file_write(dir, other, text, strlen(text), why);
    if (rc < 0) return rc;
    rc = config_load_run(path, &config, &faults);
    unlink(path);
    return rc < 0 ? why_set(why, FAULT_UNSUPPORTED,
                            "%s/%s: the digest cannot be written into it: %s; write it by hand",
                            dir, name, faults.list[0].text)
                  : 0;
}

int pin_config(const char *path, const struct pin *pins, size_t count, struct why *why)
{
    char of_dir[PATH_MAX], of_name[PATH_MAX], *text;
    size_t bytes;
    for (size_t i = 0; i < count; i++) {
        char hex[HASH_HEX];
        if (hash_is_none(&pins[i].there) || hash_equal(&pins[i].there, &pins[i].digest)) continue;
        return why_set(why, FAULT_DIGEST,
                       "%s: %s.%s is pinned, and what is here has %s; nothing is written: remove "
                       "that line first",
                       path, pins[i].table, pins[i].key, hash_to_hex(&pins[i].digest, hex));
    }
    int rc = dirfile_slurp(AT_FDCWD, path, true, TOML_BYTES_MAX, why, &text, &bytes);
    if (rc < 0) return rc;
    for (size_t i = 0; i < count; i++)
        if (hash_is_none(&pins[i].there)) set(&text, &pins[i]);
    snprintf(of_dir, sizeof of_dir, "%s", path);
    snprintf(of_name, sizeof of_name, "%s", path);
    const char *dir = dirname(of_dir), *name = basename(of_name);
    rc = try(dir, name, text, why);
    if (rc == 0) rc = durable_file_write(dir, name, text, strlen(text), why);
    free(text);
    return rc;
}
