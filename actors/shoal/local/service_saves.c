// service_saves -- the folder is looked at before anything is changed: where it lies, whose it is, whether it is empty.

#include "actors/shoal/local/service_saves.h"
#include "common/base/ensure.h"
#include "common/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool service_saves_are_on(const struct run_config *config)
{
    return config_sums(config) && config->checkpoint_shared_dir[0];
}

// Where ProtectHome, PrivateTmp and TemporaryFileSystem of the units hide what is there.
static bool is_hidden(const char *path)
{
    static const char *const hidden[] = { "/home", "/root",    "/run/user",
                                          "/tmp",  "/var/tmp", "/var/lib/shoal" };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        const size_t length = strlen(hidden[i]);
        if (strncmp(path, hidden[i], length) == 0 && (path[length] == '/' || !path[length]))
            return true;
    }
    return false;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool empty = dir != NULL;
    while (empty) {
        const struct dirent *entry = readdir(dir);
        if (!entry) break;
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    if (dir) closedir(dir);
    return empty;
}

static uid_t user_of_services(void)
{
    const struct passwd *user = getpwnam("shoal");
    ensure(user); // services.c has seen it
    return user->pw_uid;
}

int service_saves_check(const struct run_config *config, struct why *why)
{
    const char *named = config->checkpoint_shared_dir;
    char path[PATH_MAX];
    struct stat status;
    if (!service_saves_are_on(config)) return 0;
    if (strpbrk(named, "\"\\%\n"))
        return why_set(why, FAULT_CONFIG,
                       "checkpoint.shared_dir = %s: a unit cannot name a path with one of \" \\ %% "
                       "in it; name another folder in state.toml",
                       named);
    const bool exists = realpath(named, path) != NULL;
    if (is_hidden(exists ? path : named))
        return why_set(why, FAULT_CONFIG,
                       "checkpoint.shared_dir = %s: services see neither home directories nor "
                       "/tmp; name a folder elsewhere in state.toml, /srv/shoal for example",
                       named);
    if (!exists) return 0;
    if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        return why_set(why, FAULT_CONFIG, "checkpoint.shared_dir = %s: it is no folder", named);
    if (status.st_uid == user_of_services() || is_empty(path)) return 0;
    return why_set(why, FAULT_CONFIG,
                   "checkpoint.shared_dir = %s: it is not empty, and does not belong to the user "
                   "shoal, as whom the services write: sudo chown -R shoal: %s",
                   named, named);
}

int service_saves_give(const struct run_config *config, struct why *why)
{
    const char *path = config->checkpoint_shared_dir;
    struct stat status;
    if (!service_saves_are_on(config)) return 0;
    const int rc = folder_make(path, 0750, why);
    if (rc < 0) return rc;
    if (stat(path, &status) == 0 && status.st_uid == user_of_services()) return 0;
    fprintf(stderr, "gives %s to the user shoal\n", path);
    return chown(path, user_of_services(), (gid_t)-1) == 0
               ? 0
               : why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
}

void service_saves_print(const struct run_config *config, const char *mark,
                         char ret_text[SERVICE_SAVES_TEXT])
{
    snprintf(ret_text, SERVICE_SAVES_TEXT,
             "%s# checkpoint.shared_dir of state.toml\n[Service]\nReadWritePaths=\"%s\"\n", mark,
             config->checkpoint_shared_dir);
}
