// Makes the folders of a path one by one, from the first. A folder that is there already is no
// fault.
#include "common/base/folder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// EEXIST says only that the name is taken: it must be a folder or a link to one.
static int make_one(const char *path, mode_t mode, struct why *why)
{
    struct stat there;
    if (mkdir(path, mode) == 0) return 0;
    const int error = errno;
    if (error == EEXIST && stat(path, &there) == 0 && S_ISDIR(there.st_mode)) return 0;
    return why_set(why, fault_from_errno(error), "cannot make the folder %s: %s", path,
                   strerror(error));
}

int folder_make(const char *path, mode_t mode, struct why *why)
{
    char above[PATH_MAX] = "";
    if (snprintf(above, sizeof above, "%s", path) >= (int)sizeof above)
        return why_set(why, FAULT_LIMIT, "%.100s...: a path of at most %d bytes", path,
                       PATH_MAX - 1);
    for (char *slash = above; (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = 0;
        int rc = make_one(above, 0755, why);
        if (rc < 0) return rc;
    }
    return make_one(path, mode, why);
}

int folder_resolve(const char *path, size_t bytes_max, char ret_path[PATH_MAX], struct why *why)
{
    const int rc = folder_make(path, 0755, why);
    if (rc < 0) return rc;
    if (!realpath(path, ret_path))
        return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    if (strlen(ret_path) > bytes_max)
        return why_set(why, FAULT_LIMIT, "%s: a path of at most %zu bytes", ret_path, bytes_max);
    return 0;
}
