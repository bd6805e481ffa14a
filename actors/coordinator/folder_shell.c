// folder_shell -- decides whether a ledger may be continued with this configuration and key, and
// which claims of members about older runs still count.
//
// A new run writes state.toml and owner. A later start first compares the digest of the configuration with
// that of the GENESIS record. If they differ, it looks for the setting that differs, to name it.
// Then it compares the key.

#include "actors/coordinator/folder_shell.h"
#include "common/base/clock.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/failpoint.h"
#include "common/base/instance.h"
#include "common/base/log.h"
#include "common/config/toml_shim.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER_MAX = 4096 }; // Bytes of a file that somebody may have edited

// ---- whose run it is ----------------------------------------------------------------------------

static int put(const struct run_folder *self, const char *name, const void *bytes, size_t count,
               const char *place, struct why *why)
{
    if (failpoint(place) < 0) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "%s/%s: %s", self->path, name,
                       strerror(error));
    }
    const int rc = durable_file_write(self->path, name, bytes, count, why);
    return rc < 0 ? why_wrap(why, rc, "%s", self->path) : 0;
}

int run_folder_begin(const struct run_folder *self, const struct identity *identity,
                     struct why *why)
{
    char hex[KEY_HEX], *text;
    size_t count;
    int rc = dirfile_slurp(AT_FDCWD, self->state_path, true, TOML_BYTES_MAX, why, &text, &count);
    if (rc < 0) return rc;
    rc = put(self, "state.toml", text, count, "config_copy", why);
    free(text);
    key_to_hex(identity_key(identity), hex);
    return rc < 0 ? rc : put(self, "owner", hex, KEY_HEX - 1, "owner_sync", why);
}

// Always refuses. Names the first setting that makes it another run, if the folder's copy still says how the run was
// begun.
static int compare_config(const struct run_folder *self, const struct run_config *config,
                          const struct hash *begun_with, struct why *why)
{
    char path[4096];
    static struct run_config first;
    static struct config_faults faults;
    struct config_difference difference;
    snprintf(path, sizeof path, "%s/state.toml", self->path);
    const bool is_read = config_load_run(path, &first, &faults) == 0;
    const struct hash copy = is_read ? config_digest(&first) : (struct hash){ { 0 } };
    if (hash_equal(&copy, begun_with) && config_first_difference(&first, config, &difference))
        return why_set(why, FAULT_FOREIGN,
                       "%s makes this another run than the one in %s: %s was %s, now is %s; "
                       "put it back, or begin a new run in another --state-dir, with --begin-anew",
                       self->state_path, self->path, difference.path, difference.a, difference.b);
    return why_set(
        why, FAULT_FOREIGN,
        "%s makes this another run than the one in %s. By which setting cannot be said: %s %s. "
        "Put back what the run was begun with. If nothing was changed, another version of this "
        "program began the run: finish it with that version. Or begin a new run, with another "
        "--state-dir and --begin-anew",
        self->state_path, self->path, path,
        is_read ? "is no longer as it was then" : "cannot be read");
}

// Members know their coordinator by its key: the run belongs to the one that began it.
static int compare_owner(const struct run_folder *self, const struct identity *identity,
                         struct why *why)
{
    char path[4096], hex[KEY_HEX], *owner;
    size_t count;
    snprintf(path, sizeof path, "%s/owner", self->path);
    int rc = dirfile_slurp(AT_FDCWD, path, false, OWNER_MAX, why, &owner, &count);
    if (rc < 0) return rc;
    if (strncmp(key_to_hex(identity_key(identity), hex), owner, KEY_HEX - 1) != 0)
        rc = why_set(why, FAULT_FOREIGN,
                     "%s: the run belongs to key %.16s, this process has %.16s; give it the key "
                     "that the run was begun with",
                     path, owner, hex);
    free(owner);
    return rc;
}

int run_folder_compare(const struct run_folder *self, const struct run_config *config,
                       const struct hash *begun_with, const struct identity *identity,
                       struct why *why)
{
    const struct hash now = config_digest(config);
    if (!hash_equal(begun_with, &now)) return compare_config(self, config, begun_with, why);
    return compare_owner(self, identity, why);
}

// ---- what the owner gave up ---------------------------------------------------------------------

// One start with --begin-anew is enough: it counts until somebody replaces this ledger by a new
// one.
int run_folder_take_anew(struct run_folder *self, uint64_t records, struct why *why)
{
    int rc = 0;
    if (self->begin_anew)
        log_line(LOG_WARNING,
                 "ledger.begun_anew records=%" PRIu64
                 ": what members know of other runs until now is given "
                 "up; one start with --begin-anew is enough, leave it out from now on",
                 records);
    if (self->begin_anew || records == 0) {
        rc = instance_write(self->path, "begun-anew-after", records, why);
        if (rc == 0)
            rc = instance_write(self->path, "begun-anew", self->begin_anew ? clock_unix_ms() : 0,
                                why);
    }
    if (rc == 0) rc = instance_read(self->path, "begun-anew-after", why, &self->anew_seq);
    return rc < 0 ? rc : instance_read(self->path, "begun-anew", why, &self->anew_unix_ms);
}

bool run_folder_gave_up(const struct run_folder *self, uint64_t life_unix_ms, bool is_this_run,
                        uint64_t log_seq)
{
    return life_unix_ms < self->anew_unix_ms && (!is_this_run || log_seq <= self->anew_seq);
}

int run_folder_give_up(struct run_folder *self, uint64_t life_unix_ms, struct why *why)
{
    self->anew_unix_ms = life_unix_ms + 1;
    return instance_write(self->path, "begun-anew", self->anew_unix_ms, why);
}
