#pragma once
// service_saves -- lets the services of a run write to checkpoint.shared_dir: for `shoal up --systemd`.
//
// A unit sees the file system read-only (systemd/shoal-.service.d). The trainers and parameter servers of a run that
// saves its state get a drop-in that lets them write to this one folder, which belongs to their user:
//
//     /etc/systemd/system/UNIT.service.d/50-saves.conf         ReadWritePaths=FOLDER

#include "common/config/run_config.h"

#include <limits.h>
#include <stdbool.h>

enum { SERVICE_SAVES_TEXT = PATH_MAX + 400 };

#define SERVICE_SAVES_FILE "50-saves.conf"

// Whether such a run has the folder at all.
bool service_saves_are_on(const struct run_config *config);

// Whether services can have the folder: changes nothing. FAULT_CONFIG, with what to do: it lies where a unit sees
// nothing (home directories, /tmp), or belongs to somebody else and is not empty.
int service_saves_check(const struct run_config *config, struct why *why);

// Makes the folder if it is missing, and gives an empty one to the user shoal. Says what it does on stderr.
int service_saves_give(const struct run_config *config, struct why *why);

// What the drop-in says, behind `mark`, the line that begins our files. Cut off after SERVICE_SAVES_TEXT - 1 bytes.
void service_saves_print(const struct run_config *config, const char *mark,
                         char ret_text[SERVICE_SAVES_TEXT]);
