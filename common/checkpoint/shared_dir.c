// shared_dir -- a rehearsal of a save in a folder of its own, and the names of the runs' folders.

#include "common/checkpoint/shared_dir.h"
#include "common/base/dirfile.h"
#include "common/checkpoint/pieces.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *doing, const char *place, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "%s: %s failed: %s", place, doing,
                   strerror(error));
}

// Each step is one that a save takes, in its order.
static int rehearse(int root, const char *folder, const char *renamed, struct why *why)
{
    static const char text[] = "a rehearsal of a save\n";
    struct dirfile file;
    char *back = NULL;
    size_t count = 0;
    uint64_t bytes;
    if (mkdirat(root, folder, 0755) < 0) return fail("mkdir", folder, why);
    const int dir = openat(root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) return fail("open", folder, why);
    int rc = dirfile_begin_unhashed(&file, dir, "file", why);
    if (rc == 0) {
        rc = dirfile_add(&file, text, sizeof text, why);
        if (rc == 0) rc = dirfile_end(&file, why, NULL, &bytes);
        else dirfile_abandon(&file);
    }
    if (rc == 0 && renameat(dir, "file", dir, "whole") < 0) rc = fail("rename", "file", why);
    if (rc == 0) rc = dirfile_sync_dir(dir, folder, why);
    if (rc == 0 && renameat(root, folder, root, renamed) < 0) rc = fail("rename", folder, why);
    if (rc == 0) rc = dirfile_sync_dir(root, ".", why);
    if (rc == 0) rc = dirfile_slurp(dir, "whole", false, sizeof text, why, &back, &count);
    if (rc == 0 && (count != sizeof text || memcmp(back, text, count) != 0))
        rc = why_set(why, FAULT_CORRUPT, "%s: what was written is not what is read", folder);
    free(back);
    close(dir);
    return rc;
}

int shared_dir_check(const char *shared_dir, struct why *why)
{
    char folder[64], renamed[80];
    const int root = open(shared_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return why_wrap(why, fail("open", shared_dir, why), "this folder cannot be used for saves");
    // Processes of two machines may have one number and begin in the same instant
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        close(root);
        return why_set(why, FAULT_IO, "the kernel gives no random number");
    }
    snprintf(folder, sizeof folder, "rehearsal-%016" PRIx64, random);
    snprintf(renamed, sizeof renamed, "%s-done", folder);
    int rc = rehearse(root, folder, renamed, why);
    if (rc < 0) why_wrap(why, rc, "%s cannot be used for saves", shared_dir);
    const int gone = dirfile_remove(root, renamed, rc < 0 ? NULL : why);
    const int first_gone = dirfile_remove(root, folder, rc < 0 ? NULL : why);
    close(root);
    return rc < 0 ? rc : gone < 0 ? gone : first_gone;
}

// ---- a folder a run -----------------------------------------------------------------------------

int shared_dir_root(const char *shared_dir, const char *run, uint64_t born_unix_ms, struct why *why,
                    char ret_root[PATH_MAX])
{
    if (!dirfile_name_valid(run) || strlen(run) > CHECKPOINT_RUN_MAX)
        return why_set(why, FAULT_RANGE, "'%.64s' is no id of a run", run);
    const int count = snprintf(ret_root, PATH_MAX, "%s/%s-%" PRIu64, shared_dir, run, born_unix_ms);
    return count < PATH_MAX ? 0
                            : why_set(why, FAULT_RANGE, "%.64s...: too long a path", shared_dir);
}

int shared_dir_begin(const char *shared_dir, const char *run, uint64_t born_unix_ms,
                     struct why *why, char ret_root[PATH_MAX])
{
    const int rc = shared_dir_root(shared_dir, run, born_unix_ms, why, ret_root);
    if (rc < 0) return rc;
    if (mkdir(ret_root, 0755) == 0) return 0;
    if (errno == EEXIST)
        return why_set(why, FAULT_BUSY, "%s is there already: a run that began in the same instant",
                       ret_root);
    return fail("mkdir", ret_root, why);
}

// The time in `name`, if it is <run>-<time>; 0: it is not.
static uint64_t born_of(const char *name, const char *run)
{
    const size_t count = strlen(run);
    if (strncmp(name, run, count) != 0 || name[count] != '-') return 0;
    const char *digits = name + count + 1;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 16) return 0;
    if (*digits == '0') return 0; // Not a name that shared_dir_root makes
    return strtoull(digits, NULL, 10);
}

// The newest beginning of the run before `bound` that has a folder; 0: there is none.
static int newest_before(DIR *dir, const char *place, const char *run, uint64_t bound,
                         struct why *why, uint64_t *ret_newest)
{
    int rc = 0;
    *ret_newest = 0;
    rewinddir(dir);
    for (struct dirent *entry;
         rc == 0 && (rc = dirfile_next(dir, place, why, &entry)) == 0 && entry;) {
        const uint64_t born = born_of(entry->d_name, run);
        if (born < bound && born > *ret_newest) *ret_newest = born;
    }
    return rc;
}

// A folder that cannot be read is a fault: to take an older run in its place would be a silent loss.
static int find_newest(DIR *dir, const char *shared_dir, const char *run, uint64_t *steps,
                       struct why *why, uint64_t *ret_born_unix_ms, uint64_t *ret_step)
{
    char root[PATH_MAX];
    uint64_t born = UINT64_MAX;
    size_t count = 0;
    while (count == 0) {
        int rc = newest_before(dir, shared_dir, run, born, why, &born);
        if (rc == 0 && born == 0) break;
        if (rc == 0) rc = shared_dir_root(shared_dir, run, born, why, root);
        if (rc == 0) rc = pieces_list(root, why, steps, &count);
        if (rc == FAULT_NOT_FOUND) return why_wrap(why, FAULT_IO, "%s cannot be read", root);
        if (rc < 0) return rc;
    }
    if (count == 0)
        return why_set(why, FAULT_NOT_FOUND, "%s has no whole save of a run '%s'", shared_dir, run);
    *ret_born_unix_ms = born;
    *ret_step = steps[0];
    return 0;
}

int shared_dir_newest(const char *shared_dir, const char *run, struct why *why,
                      uint64_t *ret_born_unix_ms, uint64_t *ret_step)
{
    DIR *dir = opendir(shared_dir);
    if (!dir) return fail("open", shared_dir, why);
    uint64_t *steps = malloc(CHECKPOINT_LIST_MAX * sizeof *steps);
    const int rc = steps ? find_newest(dir, shared_dir, run, steps, why, ret_born_unix_ms, ret_step)
                         : why_set(why, FAULT_MEMORY, "a list of saves");
    free(steps);
    closedir(dir);
    return rc;
}
