// first_state -- both kinds of folders have a manifest of the same name. It is read as that of a save first; a manifest
// of a checkpoint has another format, and is read as such then.

#include "common/learner/first_state.h"
#include "common/learner/state_pieces.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int first_state_look(const char *folder, uint64_t step, struct why *why)
{
    char root[PATH_MAX], manifest[PATH_MAX + 32];
    uint64_t found = 0;
    const int rc = checkpoint_split(folder, why, root, &found);
    if (rc < 0) return rc;
    if (found != step)
        return why_set(why, FAULT_RANGE,
                       "%s is of step %" PRIu64 ", and progress.step - 1 is %" PRIu64, folder,
                       found, step);
    snprintf(manifest, sizeof manifest, "%s/%s", folder, CHECKPOINT_MANIFEST);
    if (access(manifest, R_OK) == 0) return 0;
    const int error = errno;
    return why_set(why, fault_from_errno(error),
                   "%s: %s; a save or a checkpoint of a run is wanted, with all its files",
                   manifest, strerror(error));
}

int first_state_open(const char *folder, struct why *why, struct first_state *ret_state)
{
    char root[PATH_MAX];
    uint64_t step = 0;
    struct first_state state = { 0 };
    int rc = checkpoint_split(folder, why, root, &step);
    if (rc == 0) rc = pieces_open(root, step, NULL, why, &state.pieces);
    if (rc == FAULT_FORMAT) {
        rc = checkpoint_open(root, step, NULL, why, &state.checkpoint);
        if (rc == FAULT_FORMAT)
            rc = why_set(why, rc, "%s: its %s is neither that of a save nor that of a checkpoint",
                         folder, CHECKPOINT_MANIFEST);
    }
    if (rc == 0) *ret_state = state;
    return rc;
}

// *ret_pieces NULL: the folder is a checkpoint.
static int open_save(const char *folder, struct why *why, pieces_t **ret_pieces,
                     const struct pieces_item **ret_parameters)
{
    char root[PATH_MAX];
    uint64_t step = 0;
    *ret_pieces = NULL;
    int rc = checkpoint_split(folder, why, root, &step);
    if (rc == 0) rc = pieces_open(root, step, NULL, why, ret_pieces);
    if (rc == FAULT_FORMAT && !pieces_is_save(folder)) return 0;
    if (rc < 0) return rc;
    *ret_parameters = pieces_find(*ret_pieces, STATE_PARAMETERS);
    if (*ret_parameters) return 0;
    pieces_close(ret_pieces);
    return why_set(why, FAULT_NOT_FOUND, "%s has no parameters", folder);
}

int first_state_params(const char *folder, struct why *why, struct hash *ret_digest)
{
    pieces_t *pieces;
    const struct pieces_item *parameters;
    *ret_digest = (struct hash){ { 0 } };
    int rc = open_save(folder, why, &pieces, &parameters);
    if (rc == 0 && pieces) rc = pieces_root(pieces, parameters, why, ret_digest);
    pieces_close(&pieces);
    return rc;
}

int first_state_count(const char *folder, struct why *why, uint64_t *ret_count)
{
    pieces_t *pieces;
    const struct pieces_item *parameters;
    *ret_count = 0;
    const int rc = open_save(folder, why, &pieces, &parameters);
    if (rc == 0 && pieces) *ret_count = parameters->begins[pieces_meta(pieces)->workers];
    pieces_close(&pieces);
    return rc;
}

void first_state_close(struct first_state *self)
{
    pieces_close(&self->pieces);
    checkpoint_close(&self->checkpoint);
}
